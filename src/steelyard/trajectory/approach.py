"""Smooth entry from a posture into a trajectory, and exit from it to a posture.

Each joint follows the polynomial of degree seven that meets position, velocity, acceleration and jerk at
both ends: at rest in the posture, and as the trajectory has them at its start or end. On s = t / T in
[0, 1] the eight coefficients follow from eight linear conditions. The slowest joint rules the time T,
which grows by tenths until the limits of velocity and acceleration hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from steelyard.arrays import Array, finite
from steelyard.errors import InvalidTrajectory
from steelyard.trajectory.fourier import FourierTrajectory

_DEGREE = 7
_LONGEST_S = 120.0
_POINTS = 201


@dataclass(frozen=True, eq=False)
class ApproachedTrajectory:
    """A trajectory, repeated, with an entry from rest and an exit to rest.

    Attributes:
        core: the periodic trajectory
        posture: where the arm rests before and after, (n,) [rad or m]
        entry_s: length of the entry, [s]
        exit_s: length of the exit, [s]
        periods: how often the core runs
    """

    core: FourierTrajectory
    posture: Array
    entry_s: float
    exit_s: float
    periods: int = 1
    _entry: Array = field(init=False, repr=False)
    _exit: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        posture = finite(self.posture, (self.core.n,), "posture", InvalidTrajectory)
        object.__setattr__(self, "posture", posture)
        if not (self.entry_s > 0 and self.exit_s > 0 and self.periods >= 1):
            raise InvalidTrajectory(
                "entry_s, exit_s and periods must be positive,"
                f" got {self.entry_s}, {self.exit_s}, {self.periods}"
            )
        rest, start = np.zeros((4, self.core.n)), _state(self.core, 0.0)
        rest[0] = posture
        object.__setattr__(self, "_entry", _polynomial(rest, start, self.entry_s))
        object.__setattr__(self, "_exit", _polynomial(start, rest, self.exit_s))

    @classmethod
    def within(
        cls,
        core: FourierTrajectory,
        posture: ArrayLike,
        *,
        v_max: ArrayLike,
        a_max: ArrayLike,
        periods: int = 1,
    ) -> ApproachedTrajectory:
        """Entry and exit as quick as limits of velocity and acceleration allow, within a tenth.

        Args:
            posture: where the arm rests before and after, (n,) [rad or m]
            v_max: largest speed, (n,) [rad/s or m/s]
            a_max: largest acceleration, (n,) [rad/s^2 or m/s^2]
            periods: how often the core runs
        """
        v_limit, a_limit = np.asarray(v_max, dtype=float), np.asarray(a_max, dtype=float)
        at_posture, at_core = np.zeros((4, core.n)), _state(core, 0.0)
        at_posture[0] = posture
        entry_s = _shortest(at_posture, at_core, v_limit, a_limit)
        exit_s = _shortest(at_core, at_posture, v_limit, a_limit)
        return cls(core, at_posture[0], entry_s, exit_s, periods)

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.core.n

    @property
    def duration_s(self) -> float:
        """Entry, all periods and exit together, [s]."""
        return self.entry_s + self.periods * self.core.period_s + self.exit_s

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at times t, (N,) [s], each (N, n); at rest before and after."""
        time = np.clip(np.asarray(t, dtype=float), 0.0, self.duration_s)
        end = self.entry_s + self.periods * self.core.period_s
        moving = self.core.at(time - self.entry_s)
        entering = _evaluated(self._entry, self.entry_s, np.minimum(time, self.entry_s))
        leaving = _evaluated(self._exit, self.exit_s, np.maximum(time - end, 0.0))
        before, after = (time < self.entry_s)[:, None], (time > end)[:, None]
        parts = zip(moving, entering, leaving, strict=True)
        q, v, a = (np.where(before, e, np.where(after, x, m)) for m, e, x in parts)
        return q, v, a


def _state(core: FourierTrajectory, t: float) -> Array:
    """Position, velocity, acceleration and jerk at one time, (4, n)."""
    at = np.array([t])
    return np.vstack([*core.at(at), core.jerk(at)])


def _polynomial(start: Array, end: Array, duration_s: float) -> Array:
    """Coefficients on s = t / T of each joint, (8, n)."""
    powers = np.arange(_DEGREE + 1)
    rows = []
    for at in (0.0, 1.0):
        for k in range(4):
            falling = np.array([factorial(p) / factorial(p - k) if p >= k else 0.0 for p in powers])
            rows.append(falling * np.where(powers >= k, at ** np.maximum(powers - k, 0), 0.0))
    scale = duration_s ** np.arange(4)[:, None]
    return np.asarray(np.linalg.solve(np.array(rows), np.vstack([start * scale, end * scale])))


def _evaluated(coefficients: Array, duration_s: float, t: Array) -> tuple[Array, Array, Array]:
    s = t / duration_s
    found, c = [], coefficients
    for k in range(3):
        found.append(np.vander(s, len(c), increasing=True) @ c / duration_s**k)
        c = c[1:] * np.arange(1, len(c))[:, None]
    return found[0], found[1], found[2]


def _shortest(start: Array, end: Array, v_max: Array, a_max: Array) -> float:
    """The shortest time, within a tenth, in which a polynomial keeps the limits, [s]."""

    def keeps(duration_s: float) -> bool:
        grid = np.linspace(0.0, duration_s, _POINTS)
        _, v, a = _evaluated(_polynomial(start, end, duration_s), duration_s, grid)
        return bool((np.abs(v).max(axis=0) <= v_max).all() and (np.abs(a).max(axis=0) <= a_max).all())

    duration_s = 0.5
    while not keeps(duration_s):
        duration_s *= 1.1
        if duration_s > _LONGEST_S:
            raise InvalidTrajectory(
                f"no entry within {_LONGEST_S:g} s keeps the limits of velocity and acceleration:"
                " the trajectory itself breaks them at its start"
            )
    return duration_s
