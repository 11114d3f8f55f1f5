"""The way from the rows of a stream to samples, and which rows are usable.

Unusable rows (times that go back, impossible steps, readings that do not change while the arm
moves) become samples that the estimator counts and skips. If ten unusable rows in a row agree with
each other, they are right and the rows before were wrong (a clock was set, or the last row was an
outlier): the path restarts with them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.recording import Sample

_MAX_VALUE = 1e6  # of any signal in SI units; larger numbers are corrupt
_MAX_SPEED = 100.0  # [rad/s or m/s] of any joint
_MAX_SPEED_RATIO = 3.0  # of speeds, over v_max
_ROWS_TO_RESTART = 10  # unusable rows that agree with each other


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

    def _channel(self, index: int) -> slice:
        """The columns of a channel of motion in rows [t, motion, tau]; the first is positions."""
        return slice(1 + index * self.n, 1 + (index + 1) * self.n)

    @property
    @abstractmethod
    def delay_s(self) -> float:
        """The delay of samples, [s]."""

    def init(self) -> Any:
        """The state before the first row."""
        return self._empty(-np.inf)

    def step(
        self, state: Any, t: float, motion: Array, effort: Array
    ) -> tuple[Any, tuple[Sample[Array], ...]]:
        """The next state and the completed samples in the order of time, usually one.

        Args:
            state: of `init` or `step`
            t: time of the next row, [s], on any clock
            motion: position, then commanded velocity and acceleration if recorded, (channels, n)
            effort: torque that the drive applies to each joint, (n,) [Nm or N]
        """
        row = np.concatenate([[t], np.ravel(motion), effort])
        if row.size != 1 + (self.channels + 1) * self.n:
            raise InvalidSamples(
                f"a row needs {self.channels} x {self.n} numbers of motion and {self.n} torques,"
                f" got {np.shape(motion)} and {np.shape(effort)}"
            )
        if not math.isfinite(t) or not np.abs(row[1:]).max() < _MAX_VALUE:
            return state, (Sample.unusable("corrupt"),)
        if fault := self._fault(state.rows, row):
            return self._refused(state, row, fault), (Sample.unusable(fault),)
        if len(state.rows) and t - state.rows[-1, 0] > self._longest_gap_s:
            state = self._empty(state.last_s)
        rows = np.concatenate([state.rows[1 - self._rows_needed :], row[None]])
        return self._with_row(state._replace(rows=rows, refused=state.refused[:0]))

    def steps(self, state: Any, rows: Array) -> tuple[Any, list[Sample[Array]]]:
        """The state and the completed samples after several rows: those of `step`, in less time.

        Args:
            state: of `init`, `step` or `steps`
            rows: [t, motion, tau] in their order, (N, 1 + (c + 1) n)
        """
        cut = 1 + self.channels * self.n
        ready: list[Sample[Array]] = []
        for row in rows:
            motion = row[1:cut].reshape(self.channels, self.n)
            state, samples = self.step(state, float(row[0]), motion, row[cut:])
            ready += samples
        return state, ready

    @abstractmethod
    def _with_row(self, state: Any) -> tuple[Any, tuple[Sample[Array], ...]]:
        """The state and samples after a usable row, which is the last of `state.rows`."""

    @abstractmethod
    def _empty(self, last_s: float) -> Any:
        """The state without rows."""

    def _fault(self, rows: Array, new: Array) -> str:
        """The reason why a row cannot follow others; empty if it can."""
        if not len(rows):
            return ""
        since_s = float(new[0] - rows[-1, 0])
        positions = self._channel(0)
        if since_s <= 0:
            if since_s < 0:
                return "late"
            return "repeated"
        change = new[1:] - rows[-1, 1:]
        if not change.any():
            moved = len(rows) > 1 and (rows[-1, positions] != rows[-2, positions]).any()
            if moved:
                return "frozen"
        steps = np.abs(change[: self.n])
        if (steps > self._fastest * max(since_s, 1 / self.rate_hz)).any():
            return "impossible"
        return ""

    def _are_plain(self, rows: Array) -> bool:
        """Whether each row but the first can follow the one before, without a gap."""
        if not np.abs(rows).max() < _MAX_VALUE:
            return False
        change = np.diff(rows, axis=0)
        since_s = change[:, 0]
        if not (since_s > 0).all() or (since_s > self._longest_gap_s).any():
            return False
        if not change[:, 1:].any(axis=1).all():
            return False  # perhaps frozen
        longest = np.maximum(since_s, 1 / self.rate_hz)[:, None]
        return bool((np.abs(change[:, self._channel(0)]) <= self._fastest * longest).all())

    def _refused(self, state: Any, row: Array, fault: str) -> Any:
        """The state after an unusable row; it restarts where many of them agree."""
        if fault in ("repeated", "frozen"):
            return state
        agree = not self._fault(state.refused, row)
        refused = np.concatenate([state.refused if agree else state.refused[:0], row[None]])
        if len(refused) < _ROWS_TO_RESTART:
            return state._replace(refused=refused)
        return self._empty(state.last_s)._replace(rows=row[None])


def fastest_steps(n: int, v_max: Array | None) -> Array:
    """The largest speed of each joint that is possible, (n,) [rad/s or m/s].

    Args:
        n: number of joints
        v_max: largest speed by the description of the arm, (n,); None if unknown
    """
    if v_max is None:
        return np.full(n, _MAX_SPEED)
    return np.minimum(_MAX_SPEED_RATIO * np.asarray(v_max), _MAX_SPEED)
