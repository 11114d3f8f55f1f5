"""The orientations that a gripped part may have: where the axes of the sensor (the flange) may point.

An axis is a unit vector x in the base frame, with polar angle theta from base z and azimuth phi about it
(liu2025 eq. (36)). A sector bounds theta and phi, a cone the angle to a direction. As slacks, positive inside
and smooth where they are needed,

    theta:  cos(theta_min) - x_z,  x_z - cos(theta_max)          cone:  x . direction - cos(half_angle)
    phi:    (half +- phi_rel) sqrt(x_x^2 + x_y^2),   phi_rel the azimuth from the middle of the sector
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.arrays import Array
from steelyard.errors import InvalidTrajectory

_AXES = "xyz"


@dataclass(frozen=True)
class Sector:
    """A rectangle in spherical coordinates for one axis.

    Attributes:
        axis: 'x', 'y' or 'z' of the sensor
        theta: polar angle from base z, smallest and largest, [rad]
        phi: azimuth about base z, smallest and largest, [rad]; all around where it spans 2 pi
    """

    axis: str
    theta: tuple[float, float] = (0.0, np.pi)
    phi: tuple[float, float] = (-np.pi, np.pi)

    def __post_init__(self) -> None:
        _require_axis(self.axis)
        (low, high), (left, right) = self.theta, self.phi
        if not 0 <= low < high <= np.pi + 1e-9:
            raise InvalidTrajectory(
                f"axis {self.axis}: theta must rise within 0 and pi, got {low:g} to {high:g}"
            )
        if not left < right:
            raise InvalidTrajectory(f"axis {self.axis}: phi must rise, got {left:g} to {right:g}")

    def slacks(self, x: Any, xp: Any) -> list[Any]:
        """Smooth slacks, each (N,), positive inside.

        Args:
            x: the axis, (N, 3), in the base frame
            xp: numpy or jax.numpy
        """
        found = []
        if self.theta[0] > 0:
            found.append(np.cos(self.theta[0]) - x[:, 2])
        if self.theta[1] < np.pi:
            found.append(x[:, 2] - np.cos(self.theta[1]))
        half = (self.phi[1] - self.phi[0]) / 2
        if half < np.pi:
            relative, size = self._azimuth(x, xp)
            found += [(half - relative) * size, (half + relative) * size]
        return found

    def margin(self, x: Array) -> Array:
        """The angle to the border, negative outside, (N,) [rad].

        Args:
            x: the axis, (N, 3), in the base frame
        """
        theta = np.arccos(np.clip(x[:, 2], -1, 1))
        half = (self.phi[1] - self.phi[0]) / 2
        relative, size = self._azimuth(x, np)
        inf = np.full(len(x), np.inf)
        return np.asarray(
            np.minimum.reduce(
                [
                    theta - self.theta[0] if self.theta[0] > 0 else inf,
                    self.theta[1] - theta if self.theta[1] < np.pi else inf,
                    (half - np.abs(relative)) * size if half < np.pi else inf,
                ]
            )
        )

    def _azimuth(self, x: Any, xp: Any) -> tuple[Any, Any]:
        middle = (self.phi[0] + self.phi[1]) / 2
        c, s = np.cos(middle), np.sin(middle)
        along, across = c * x[:, 0] + s * x[:, 1], c * x[:, 1] - s * x[:, 0]
        return xp.arctan2(across, along), xp.sqrt(along**2 + across**2 + 1e-18)


@dataclass(frozen=True, eq=False)
class Cone:
    """A cone about a direction for one axis.

    Attributes:
        axis: 'x', 'y' or 'z' of the sensor
        direction: middle of the cone, (3,), in the base frame
        half_angle: from the middle to the border, [rad]
    """

    axis: str
    direction: Array
    half_angle: float

    def __post_init__(self) -> None:
        _require_axis(self.axis)
        direction = np.array(self.direction, dtype=float)
        if direction.shape != (3,) or not np.linalg.norm(direction) > 0:
            raise InvalidTrajectory(
                f"axis {self.axis}: a cone needs a direction of three numbers, got {direction}"
            )
        if not 0 < self.half_angle <= np.pi:
            raise InvalidTrajectory(
                f"axis {self.axis}: half_angle must lie in 0 to pi, got {self.half_angle:g}"
            )
        object.__setattr__(self, "direction", direction / np.linalg.norm(direction))
        self.direction.setflags(write=False)

    def slacks(self, x: Any, xp: Any) -> list[Any]:
        """Smooth slacks, each (N,), positive inside.

        Args:
            x: the axis, (N, 3), in the base frame
            xp: numpy or jax.numpy
        """
        return [x @ self.direction - np.cos(self.half_angle)]

    def margin(self, x: Array) -> Array:
        """The angle to the border, negative outside, (N,) [rad].

        Args:
            x: the axis, (N, 3), in the base frame
        """
        across = np.linalg.norm(np.cross(x, self.direction), axis=1)
        return np.asarray(self.half_angle - np.arctan2(across, x @ self.direction))


@dataclass(frozen=True)
class OrientationWorkspace:
    """Where the axes of the sensor may point; an orientation is feasible when every region holds its axis.

    Attributes:
        regions: sectors and cones, any number for each axis
    """

    regions: tuple[Sector | Cone, ...]

    @classmethod
    def around(cls, R_base_sensor: ArrayLike, half_angle: float) -> OrientationWorkspace:
        """Every axis within a cone about where it points in a given orientation.

        Args:
            R_base_sensor: the orientation in the middle, (3, 3)
            half_angle: of the three cones, [rad]
        """
        R = np.asarray(R_base_sensor, dtype=float)
        return cls(tuple(Cone(axis, R[:, i], half_angle) for i, axis in enumerate(_AXES)))

    def slacks(self, R: Any, xp: Any) -> Any:
        """Smooth slacks, (N, k), positive inside.

        Args:
            R: orientations of the sensor in the base, (N, 3, 3)
            xp: numpy or jax.numpy
        """
        columns = [s for part in self.regions for s in part.slacks(R[:, :, _AXES.index(part.axis)], xp)]
        return xp.stack(columns, axis=1)

    def margins(self, R: ArrayLike) -> Array:
        """The angle of every region's axis to its border, negative outside, (N, regions) [rad].

        Args:
            R: orientations of the sensor in the base, (N, 3, 3)
        """
        turned = np.asarray(R, dtype=float)
        columns = [part.margin(turned[:, :, _AXES.index(part.axis)]) for part in self.regions]
        return np.stack(columns, axis=1) if columns else np.full((len(turned), 1), np.inf)

    def contains(self, R: ArrayLike) -> NDArray[np.bool_]:
        """Whether each orientation is feasible, (N,).

        Args:
            R: orientations of the sensor in the base, (N, 3, 3)
        """
        return np.asarray((self.margins(R) >= 0).all(axis=1))


def _require_axis(axis: str) -> None:
    if axis not in tuple(_AXES):
        raise InvalidTrajectory(f"a sensor has the axes x, y, z, not '{axis}'")
