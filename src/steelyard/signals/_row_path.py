"""Rows of a stream, the samples that are made of them, and which rows are usable.

Unusable rows (times that go back, impossible steps, readings that do not change while the arm
moves) become samples that the estimator counts and skips. If ten unusable rows in a row agree with
each other, they are right and the rows before were wrong (a clock was set, or the last row was an
outlier): the path restarts with them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array
from steelyard.errors import InvalidSamples

_MAX_VALUE = 1e6  # of any signal in SI units; larger numbers are corrupt
_MAX_SPEED = 100.0  # [rad/s or m/s] of any joint
_MAX_SPEED_RATIO = 3.0  # of speeds, over v_max
_ROWS_TO_RESTART = 10  # unusable rows that agree with each other


class OnlineSample(NamedTuple):
    """Motion and torque of one instant.

    Attributes:
        t: time, [s], on any increasing clock
        q: joint position, (n,) [rad or m]
        v: joint velocity, (n,) [rad/s or m/s]
        a: joint acceleration, (n,) [rad/s^2 or m/s^2]
        tau: torque that the drive applies to the joint, (n,) [Nm or N]
        fault: reason not to use it, one of the estimator's counts; empty for a usable sample
    """

    t: float
    q: ArrayLike
    v: ArrayLike
    a: ArrayLike
    tau: ArrayLike
    fault: str = ""


class RawRow(NamedTuple):
    """Motion and effort of one instant as measured, before any filter.

    Attributes:
        t: time, [s], on any clock
        motion: for joint torques the position, then commanded velocity and acceleration if
            recorded, (c, n), c = 1, 2 or 3; for a wrist sensor see `WristPath`
        effort: torque that the drive applies to each joint, (n,) [Nm or N], or the wrench of a
            wrist sensor, (6,) [N, Nm]
    """

    t: float
    motion: Array
    effort: Array


class RowPath(ABC):
    """Converts rows to samples, one at a time. States are values that `step` never changes.

    A state is a named tuple with at least three fields: `rows`, the last rows [t, motion, tau];
    `refused`, the last consecutive unusable rows that agree with each other; and `last_s`, the time
    of the last sample.

    Attributes:
        n: number of joints
        rate_hz: of the samples, [Hz]
        channels: 1 for positions, 2 with commanded velocities, 3 with accelerations too
    """

    n: int
    rate_hz: float
    channels: int
    _longest_gap_s: float
    _fastest: Array
    _rows_needed: int

    @property
    @abstractmethod
    def delay_s(self) -> float:
        """The delay of samples, [s]."""

    def init(self) -> Any:
        """The state before the first row."""
        return self._empty(-np.inf)

    def step(self, state: Any, row: RawRow) -> tuple[Any, tuple[OnlineSample, ...]]:
        """The next state and the completed samples in the order of time, usually one."""
        new = np.concatenate([[row.t], np.ravel(row.motion), row.effort])
        if new.size != 1 + (self.channels + 1) * self.n:
            raise InvalidSamples(
                f"a row needs {self.channels} x {self.n} numbers of motion and {self.n} torques,"
                f" got {np.shape(row.motion)} and {np.shape(row.effort)}"
            )
        if not np.isfinite(new[0]) or not np.abs(new[1:]).max() < _MAX_VALUE:
            return state, (self._bad(np.nan, "corrupt"),)
        if fault := self._fault(state.rows, new):
            return self._refused(state, new, fault)
        if len(state.rows) and row.t - state.rows[-1, 0] > self._longest_gap_s:
            state = self._empty(state.last_s)
        rows = np.concatenate([state.rows[1 - self._rows_needed :], new[None]])
        return self._with_row(state._replace(rows=rows, refused=state.refused[:0]))

    @abstractmethod
    def _with_row(self, state: Any) -> tuple[Any, tuple[OnlineSample, ...]]:
        """The state and samples after a usable row, which is the last of `state.rows`."""

    @abstractmethod
    def _empty(self, last_s: float) -> Any:
        """The state without rows."""

    def _fault(self, rows: Array, new: Array) -> str:
        """The reason why a row cannot follow others; empty if it can."""
        if not len(rows):
            return ""
        since_s = new[0] - rows[-1, 0]
        positions = slice(1, 1 + self.n)
        if since_s <= 0:
            if since_s < 0:
                return "late"
            return "repeated"
        moved = len(rows) > 1 and (rows[-1, positions] != rows[-2, positions]).any()
        if moved and (new[1:] == rows[-1, 1:]).all():
            return "frozen"
        steps = np.abs(new[positions] - rows[-1, positions])
        if (steps > self._fastest * max(since_s, 1 / self.rate_hz)).any():
            return "impossible"
        return ""

    def _refused(self, state: Any, new: Array, fault: str) -> tuple[Any, tuple[OnlineSample, ...]]:
        """The state after an unusable row; it restarts where many of them agree."""
        times = {"repeated": state.last_s, "late": state.last_s - 1.0}
        bad = (self._bad(times.get(fault, np.nan), fault),)
        if fault in ("repeated", "frozen"):
            return state, bad
        agree = not self._fault(state.refused, new)
        refused = np.concatenate([state.refused if agree else state.refused[:0], new[None]])
        if len(refused) < _ROWS_TO_RESTART:
            return state._replace(refused=refused), bad
        return self._empty(state.last_s)._replace(rows=new[None]), bad

    def _bad(self, t: float, fault: str) -> OnlineSample:
        """A sample that the estimator counts and skips."""
        nothing = np.zeros(self.n)
        return OnlineSample(t, nothing, nothing, nothing, nothing, fault)


def fastest_steps(n: int, v_max: Array | None) -> Array:
    """The largest speed of each joint that is possible, (n,) [rad/s or m/s].

    Args:
        n: number of joints
        v_max: largest speed by the description of the arm, (n,); None if unknown
    """
    if v_max is None:
        return np.full(n, _MAX_SPEED)
    return np.minimum(_MAX_SPEED_RATIO * np.asarray(v_max), _MAX_SPEED)
