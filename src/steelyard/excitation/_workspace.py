"""The workspace of an arm: feasible orientations of the flange, and obstacles.

Orientations are bounded by the directions of the axes of the sensor (the flange). An axis is a unit
vector x in the base frame, with polar angle theta from base z and azimuth phi about it (liu2025 eq.
(36)). A sector bounds theta and phi, a cone bounds the angle to a direction. The slacks are
positive inside and smooth near the border:

    theta:  cos(theta_min) - x_z,  x_z - cos(theta_max)
    phi:    (half +- phi_rel) sqrt(x_x^2 + x_y^2),  phi_rel the azimuth from the sector's middle
    cone:   x . direction - cos(half_angle)

liu2025 Algorithm 1 samples orientations from a workspace: it divides the Z-Y-X angles of the sensor
evenly, gamma_z in [0, 2 pi] and gamma_y in [0, pi] by n = 1, 2, ..., with gamma_x = K gamma_z (or
-K (2 pi - gamma_z) beyond pi), and keeps those in the workspace until it has enough. Our version
leaves out an orientation whose gravity direction exists already, because it adds no information;
this includes the orientations that the paper's loop repeats with every larger n.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array, Mask, read_only
from steelyard.errors import InfeasibleDesign, InvalidTrajectory
from steelyard.robot import RobotModel
from steelyard.robot._geometry import Body, CollisionModel

_AXES = "xyz"
_SAME_DIRECTION = 1e-6  # distance of unit vectors
_MAX_DIVISIONS = 40  # largest n of Algorithm 1
_CLEARANCE_RESERVE = 0.002  # [m], for smaller distances between the points of a grid
_CLEARANCE_SCALE = 0.1  # [m]
# Only the certificate checks pairs that keep this distance in all random postures, [m].
_MAX_DESIGN_DISTANCE = 0.15


@dataclass(frozen=True)
class Sector:
    """A rectangle in spherical coordinates for one axis.

    Attributes:
        axis: 'x', 'y' or 'z' of the sensor
        theta: polar angle from base z, smallest and largest, [rad]
        phi: azimuth about base z, smallest and largest, [rad]; unbounded if it spans 2 pi
    """

    axis: str
    theta: tuple[float, float] = (0.0, np.pi)
    phi: tuple[float, float] = (-np.pi, np.pi)

    def __post_init__(self) -> None:
        _require_axis(self.axis)
        low, high = self.theta
        left, right = self.phi
        if not 0 <= low < high <= np.pi + 1e-9:
            raise InvalidTrajectory(
                f"axis {self.axis}: theta must rise within 0 and pi, got {low:g} to {high:g}"
            )
        if not left < right:
            raise InvalidTrajectory(f"axis {self.axis}: phi must rise, got {left:g} to {right:g}")

    @property
    def middles(self) -> tuple[Array, ...]:
        """Directions to mark, (3,) each: none."""
        return ()

    def slacks(self, x: Any, xp: Any) -> list[Any]:
        """Smooth slacks of the axis x, (N, 3), in the base frame: each (N,), positive inside."""
        slacks = []
        if self.theta[0] > 0:
            slacks.append(np.cos(self.theta[0]) - x[:, 2])
        if self.theta[1] < np.pi:
            slacks.append(x[:, 2] - np.cos(self.theta[1]))
        half = (self.phi[1] - self.phi[0]) / 2
        if half < np.pi:
            relative, size = self._azimuth(x, xp)
            slacks += [(half - relative) * size, (half + relative) * size]
        return slacks

    def margin(self, x: Array) -> Array:
        """The angle of the axis x, (N, 3), to the border, negative outside, (N,) [rad]."""
        theta = np.arccos(np.clip(x[:, 2], -1, 1))
        half = (self.phi[1] - self.phi[0]) / 2
        relative, size = self._azimuth(x, np)
        margins = [np.full(len(x), np.inf)]
        if self.theta[0] > 0:
            margins.append(theta - self.theta[0])
        if self.theta[1] < np.pi:
            margins.append(self.theta[1] - theta)
        if half < np.pi:
            margins.append((half - np.abs(relative)) * size)
        return np.asarray(np.min(margins, axis=0))

    def _azimuth(self, x: Any, xp: Any) -> tuple[Any, Any]:
        """The azimuth of x from the sector's middle, (N,) [rad], and the distance from z, (N,)."""
        middle = (self.phi[0] + self.phi[1]) / 2
        c = np.cos(middle)
        s = np.sin(middle)
        along = c * x[:, 0] + s * x[:, 1]
        across = c * x[:, 1] - s * x[:, 0]
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
        object.__setattr__(self, "direction", read_only(direction / np.linalg.norm(direction)))

    @property
    def middles(self) -> tuple[Array, ...]:
        """Directions to mark, (3,) each: that of the cone, in the base frame."""
        return (self.direction,)

    def slacks(self, x: Any, xp: Any) -> list[Any]:
        """Smooth slacks of the axis x, (N, 3), in the base frame: each (N,), positive inside."""
        return [x @ self.direction - np.cos(self.half_angle)]

    def margin(self, x: Array) -> Array:
        """The angle of the axis x, (N, 3), to the border, negative outside, (N,) [rad]."""
        across = np.linalg.norm(np.cross(x, self.direction), axis=1)
        return np.asarray(self.half_angle - np.arctan2(across, x @ self.direction))


@dataclass(frozen=True)
class OrientationWorkspace:
    """Feasible directions of the sensor's axes.

    An orientation is feasible if every region contains its axis.

    Attributes:
        regions: sectors and cones, any number for each axis; empty if all orientations are feasible
    """

    regions: tuple[Sector | Cone, ...] = ()

    @classmethod
    def around(cls, R_base_sensor: ArrayLike, half_angle: float) -> OrientationWorkspace:
        """Every axis within `half_angle` [rad] of its direction in R_base_sensor, (3, 3)."""
        R = np.asarray(R_base_sensor, dtype=float)
        return cls(tuple(Cone(axis, R[:, i], half_angle) for i, axis in enumerate(_AXES)))

    def slacks(self, R: Any, xp: Any) -> Any:
        """Smooth slacks, (N, k), positive inside, of sensor orientations R, (N, 3, 3)."""
        columns = [
            s for part in self.regions for s in part.slacks(R[:, :, _AXES.index(part.axis)], xp)
        ]
        if columns:
            return xp.stack(columns, axis=1)
        return xp.zeros((len(R), 0))

    def margins(self, R: ArrayLike) -> Array:
        """The angle of each axis to its border, (N, regions) [rad], for R, (N, 3, 3)."""
        orientations = np.asarray(R, dtype=float)
        columns = [part.margin(orientations[:, :, _AXES.index(part.axis)]) for part in self.regions]
        if columns:
            return np.stack(columns, axis=1)
        return np.full((len(orientations), 1), np.inf)

    def contains(self, R: ArrayLike) -> Mask:
        """Whether each orientation R of the sensor in the base, (N, 3, 3), is feasible, (N,)."""
        return np.asarray((self.margins(R) >= 0).all(axis=1))

    def liu2025_orientations(self, count: int, *, K: float = -0.2) -> Array:
        """More than `count` orientations by liu2025's Algorithm 1, without repeats, (N, 3, 3).

        Args:
            count: N_target of the paper
            K: ratio of gamma_x to gamma_z
        """
        _require_count(count)
        kept: list[Array] = []
        for n in range(1, _MAX_DIVISIONS + 1):
            orientations = _algorithm_1(n, K)
            for R in orientations[self.contains(orientations)]:
                if all(np.linalg.norm(R[2] - other[2]) > _SAME_DIRECTION for other in kept):
                    kept.append(R)
            if len(kept) > count:
                return np.array(kept)
        raise InfeasibleDesign(
            f"the workspace holds only {len(kept)} orientations of Algorithm 1 that differ in"
            f" gravity direction, {count - len(kept) + 1} short of more than {count}; widen it"
        )

    def random_orientations(self, count: int, *, seed: int = 0) -> Array:
        """Random orientations from the whole workspace, (count, 3, 3)."""
        _require_count(count)
        rng = np.random.default_rng(seed)
        kept = np.zeros((0, 3, 3))
        for _ in range(200):
            R = np.asarray(Rotation.random(5 * count, rng).as_matrix())
            kept = np.concatenate([kept, R[self.contains(R)]])
            if len(kept) >= count:
                return kept[:count]
        raise InfeasibleDesign(
            f"of {1000 * count} random orientations only {len(kept)} lie in the workspace; widen it"
        )


def _algorithm_1(n: int, K: float) -> Array:
    """The orientations of one iteration n of the paper's loop, (N, 3, 3)."""
    gamma_z, gamma_y = np.meshgrid(
        2 * np.pi * np.arange(n + 1) / n, np.pi * np.arange(n + 1) / n, indexing="ij"
    )
    gamma_x = np.where(gamma_z < np.pi, K * gamma_z, -K * (2 * np.pi - gamma_z))
    angles = np.stack([gamma_z.ravel(), gamma_y.ravel(), gamma_x.ravel()], axis=1)
    return np.asarray(Rotation.from_euler("ZYX", angles).as_matrix())


def _require_count(count: int) -> None:
    if count < 1:
        raise InvalidTrajectory(f"there must be at least 1 orientation, got {count}")


def _require_axis(axis: str) -> None:
    if axis not in tuple(_AXES):
        raise InvalidTrajectory(f"a sensor has the axes x, y, z, not '{axis}'")


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Obstacles, and the shapes of the arm that must keep clear of them.

    Attributes:
        obstacles: floor, walls, boxes
        bodies: shapes of the arm; capsules along its links if empty
        radius: radius of these capsules, one number or one per link, [m]; a default of
            `Body.capsules` if None
        clearance: smallest allowed distance, [m]
        self_collision: whether the arm must also keep clear of itself
    """

    obstacles: tuple[Body, ...] = ()
    bodies: tuple[Body, ...] = ()
    radius: float | tuple[float, ...] | None = None
    clearance: float = 0.02
    self_collision: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.clearance < np.inf:
            raise InvalidTrajectory(f"clearance must not be negative, got {self.clearance}")

    def bodies_of(self, robot: RobotModel) -> tuple[Body, ...]:
        """The shapes of an arm that are checked."""
        if self.bodies:
            return self.bodies
        if self.radius is None:
            return Body.capsules(robot)
        return Body.capsules(robot, self.radius)

    def assumed(self, robot: RobotModel) -> Iterator[str]:
        """Descriptions of the shapes that are assumed because none were given."""
        if not self.bodies and self.radius is None:
            yield (
                f"the true shape of {robot.name}: capsules are assumed, as no shapes and no radius"
                " were given"
            )
        for body in self.bodies:
            if body.instead_of:
                yield f"the true shape of {body.words}"

    def model(self, robot: RobotModel) -> CollisionModel:
        """The collision model of arm and obstacles, for the calling thread."""
        bodies = self.bodies_of(robot)
        return CollisionModel(
            robot,
            bodies,
            self.obstacles,
            self_collision=self.self_collision,
            clearance=self.clearance,
        )

    def clearances(self, robot: RobotModel) -> Clearances:
        """The slacks of pairs that can come close; each thread needs its own."""
        near = self.model(robot).near(_MAX_DESIGN_DISTANCE)
        return Clearances(near, self.clearance + _CLEARANCE_RESERVE)


@dataclass(frozen=True, eq=False)
class Clearances:
    """Distances of pairs above the smallest allowed one, as slacks, (N, pairs).

    Attributes:
        model: pairs of bodies that can come close
        least: smallest allowed distance, with a reserve, [m]
        points: points of the grid of constrained instants, per harmonic
    """

    model: CollisionModel
    least: float
    points: int = 16

    def slacks(self, q: Array, v: Array, a: Array) -> Array:
        """The slacks of N samples, (N, pairs)."""
        return (self.model.distances(q) - self.least) / _CLEARANCE_SCALE

    def slopes(self, q: Array, v: Array, a: Array) -> Array:
        """The derivatives of the slacks by q, v and a, (N, pairs, 3, n)."""
        by_q = self.model.slopes(q)[1]
        by_motion = np.zeros((*by_q.shape[:2], 3, by_q.shape[2]))
        by_motion[:, :, 0] = by_q / _CLEARANCE_SCALE
        return by_motion
