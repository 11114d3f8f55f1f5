"""The way of a hand that guides an arm: around a rectangle, as in xu2024 Fig. 10."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from steelyard.arrays import Array
from steelyard.errors import InvalidTrajectory

_TOOL_DOWN = np.diag([1.0, -1.0, -1.0])
_SHAPES = {"centre": (3,), "sides": (2,), "R_base_flange": (3, 3)}


@dataclass(frozen=True, eq=False)
class RectanglePath:
    """A rectangle in a horizontal plane, once around from its corner of smallest x and y.

    The point comes to rest in every corner and follows each side with the least jerk,
    s = 10 x^3 - 15 x^4 + 6 x^5 for x = 0 ... 1 (Flash and Hogan 1985), as hands move.

    Attributes:
        centre: of the rectangle, (3,) [m], in the base frame
        sides: its length along x and y, (2,) [m]
        speed: mean speed along a side, [m/s]; 0.05 is that of somebody who follows a line with care
        R_base_flange: how the tool is held, (3, 3); the flange looks down by default
    """

    centre: Array = field(default_factory=lambda: np.array([0.6, 0.0, 0.3]))
    sides: Array = field(default_factory=lambda: np.array([0.3, 0.4]))
    speed: float = 0.05
    R_base_flange: Array = field(default_factory=lambda: _TOOL_DOWN.copy())

    def __post_init__(self) -> None:
        for name, shape in _SHAPES.items():
            array = np.array(getattr(self, name), dtype=float)
            if array.shape != shape or not np.isfinite(array).all():
                raise InvalidTrajectory(
                    f"{name} of a rectangle must be {shape} finite numbers, got {array.tolist()}"
                )
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not ((self.sides > 0).all() and 0 < self.speed < np.inf):
            raise InvalidTrajectory(
                f"sides and speed of a rectangle must be positive, got {self.sides.tolist()} and {self.speed}"
            )
        R = self.R_base_flange
        if not np.allclose(R @ R.T, np.eye(3), atol=1e-6) or np.linalg.det(R) < 0:
            raise InvalidTrajectory(f"R_base_flange of a rectangle must be a rotation, got {R.tolist()}")

    @property
    def corners(self) -> Array:
        """The corners in turn, the first one again at the end, (5, 3) [m], in the base frame."""
        signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]])
        return np.asarray(self.centre + np.column_stack([signs * self.sides / 2, np.zeros(5)]))

    @property
    def duration_s(self) -> float:
        """How long it takes, [s]."""
        return float(2 * self.sides.sum() / self.speed)

    def at(self, t: ArrayLike) -> tuple[Array, Array]:
        """Position and velocity of the point that the hand follows, (N, 3) each [m, m/s], in the base frame.

        Args:
            t: times, (N,) [s]; at rest before 0 and after the end
        """
        sides = np.diff(self.corners, axis=0)
        lasts = np.linalg.norm(sides, axis=1) / self.speed
        starts = np.cumsum(lasts) - lasts
        times = np.asarray(t, dtype=float)
        i = np.clip(np.searchsorted(starts, times, side="right") - 1, 0, 3)
        x = np.clip((times - starts[i]) / lasts[i], 0.0, 1.0)[:, None]
        position = self.corners[i] + sides[i] * (10 * x**3 - 15 * x**4 + 6 * x**5)
        return position, sides[i] * (30 * x**2 * (1 - x) ** 2) / lasts[i][:, None]


def xu2024_rectangle() -> RectanglePath:
    """A rectangle like that of xu2024 Fig. 10; place, size and speed are ours, the paper's text has none."""
    return RectanglePath()
