"""Rows of a stream as samples without any filter, for estimators that are published that way.

Positions, torques, and commanded velocities and accelerations are used as they come. What a row
lacks are differences over its neighbours, at the time stamps t_0 < t_1 < t_2 of three rows:

    h_0 = t_1 - t_0,   h_1 = t_2 - t_1
    x'' = 2 ((x_2 - x_1) / h_1 - (x_1 - x_0) / h_0) / (h_0 + h_1)
    x' = (x_2 - x_0) / (h_0 + h_1) - x'' (h_1 - h_0) / 2

With a constant step these are the central differences of `prepare`. Encoder steps pass into the
accelerations undamped. Steps of time that differ by rounding only count as equal, so that a joint
whose encoder reads the same before and after has exactly the speed 0, and no friction with a random
sign.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidRecording
from steelyard.recording import Preparation, Recording, Sample, default_gap_s
from steelyard.signals._row_path import RowPath, fastest_steps

_STEP_TOLERANCE = 1e-6  # of steps of time, over two steps


class _UnfilteredState(NamedTuple):
    """The state of an unfiltered path.

    Attributes:
        rows: the last rows [t, motion, tau], at most three, (r, 1 + (c + 1) n)
        last_s: time of the last sample, [s]
        refused: the last consecutive unusable rows that agree with each other, (r, 1 + (c + 1) n)
    """

    rows: Array
    last_s: float
    refused: Array


@dataclass(frozen=True)
class UnfilteredPath(RowPath):
    """Makes a sample of every usable row, without filter, grid or interpolation.

    Attributes:
        n: number of joints
        rate_hz: of the rows, [Hz]
        channels: 1 for positions, 2 with commanded velocities, 3 with accelerations too
        v_max: largest speed of each joint (`robot.limits`), (n,) [rad/s or m/s]; much faster steps
            are unusable
    """

    n: int
    rate_hz: float
    channels: int = 1
    v_max: Array | None = field(default=None, compare=False)
    _longest_gap_s: float = field(init=False, repr=False, compare=False)
    _fastest: Array = field(init=False, repr=False, compare=False)
    _rows_needed = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "_longest_gap_s", default_gap_s(1 / self.rate_hz))
        object.__setattr__(self, "_fastest", fastest_steps(self.n, self.v_max))

    @classmethod
    def of(
        cls, recording: Recording, preparation: Preparation, v_max: Array | None = None
    ) -> UnfilteredPath:
        """The path for the rows of a recording.

        Args:
            recording: with the rate of the rows
            preparation: whose kind of motion, measured or commanded, counts
            v_max: largest speed of each joint (`robot.limits`), (n,) [rad/s or m/s]
        """
        if not recording.rate_hz > 0:
            raise InvalidRecording(
                "the time of the recording does not advance: there is nothing to replay"
            )
        return cls(recording.n, recording.rate_hz, len(preparation.motion_of(recording)), v_max)

    @property
    def delay_s(self) -> float:
        """The delay of samples, [s]: one row where a difference needs the next one."""
        if self.channels == 3:
            return 0.0
        return 1 / self.rate_hz

    def _with_row(
        self, state: _UnfilteredState
    ) -> tuple[_UnfilteredState, tuple[Sample[Array], ...]]:
        """The state, and the sample that the last row completes."""
        if self.channels == 3:
            sample = self._as_commanded(state.rows[-1])
        elif len(state.rows) == 3:
            sample = self._differenced(state.rows)
        else:
            return (state, ())
        return state._replace(last_s=sample.t), (sample,)

    def _as_commanded(self, row: Array) -> Sample[Array]:
        *motion, tau = row[1:].reshape(4, self.n)
        return Sample(float(row[0]), np.array(motion), tau)

    def _differenced(self, rows: Array) -> Sample[Array]:
        """The sample of the middle one of three rows."""
        before_s, after_s = np.diff(rows[:, 0])
        x = rows[:, self._channel(self.channels - 1)]
        span_s = before_s + after_s
        uneven_s = after_s - before_s
        second = 2 * ((x[2] - x[1]) / after_s - (x[1] - x[0]) / before_s) / span_s
        first = (x[2] - x[0]) / span_s
        if abs(uneven_s) > _STEP_TOLERANCE * span_s:
            first = first - second * uneven_s / 2
        q = rows[1, self._channel(0)]
        tau = rows[1, -self.n :]
        if self.channels == 1:
            return Sample.of_joints(float(rows[1, 0]), q, first, second, tau)
        return Sample.of_joints(float(rows[1, 0]), q, rows[1, self._channel(1)], first, tau)

    def _empty(self, last_s: float) -> _UnfilteredState:
        rows = np.zeros((0, 1 + (self.channels + 1) * self.n))
        return _UnfilteredState(rows, last_s, rows)
