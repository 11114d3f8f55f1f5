"""Rows of a stream on a uniform grid, as they come.

Motion between rows is interpolated by the cubic through the four nearest rows, effort by a straight
line. An instant of the grid is therefore known two rows later.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard._arrays import Array

ROWS_TO_INTERPOLATE = 4
"""Number of rows around an instant that give its motion."""

_TIME_TOLERANCE = 1e-6  # of instants, in steps of the grid


@dataclass(frozen=True)
class UniformGrid:
    """Interpolates rows at the instants of a grid.

    Attributes:
        rate_hz: instants per second, [Hz], at most that of the rows
        channels: numbers of motion in a row, c
    """

    rate_hz: float
    channels: int

    @property
    def delay_s(self) -> float:
        """The delay of an instant, [s]: two rows."""
        return 2 / self.rate_hz

    def interpolated(self, rows: Array, next_s: float) -> tuple[float, list[tuple[float, Array]]]:
        """The next instant, and time and values [motion, effort] of those up to the third row.

        Args:
            rows: four rows [t, motion, effort] in the order of time, (4, 1 + c + e); with fewer
                rows nothing is known yet
            next_s: the next instant before, [s]; -infinity to begin with the second row
        """
        if len(rows) < ROWS_TO_INTERPOLATE:
            return next_s, []
        times: list[float] = rows[:, 0].tolist()
        t = next_s
        if math.isinf(t):
            t = times[1]
        step_s = 1.0 / self.rate_hz
        end_s = times[2] + _TIME_TOLERANCE * step_s
        instants = []
        while t <= end_s:
            instants.append((t, self._between(rows, times, t)))
            t += step_s
        return t, instants

    def many(self, rows: Array, next_s: float) -> tuple[float, Array, Array]:
        """The next instant, and times and values of those up to the last row but one, (K,), (K, m).

        Args:
            rows: four rows or more [t, motion, effort] in the order of time, (N, 1 + c + e)
            next_s: the next instant before, [s], after the second row
        """
        step_s = 1.0 / self.rate_hz
        slack_s = _TIME_TOLERANCE * step_s
        times = rows[:, 0]
        count = max(int(np.floor((times[-2] + slack_s - next_s) / step_s)) + 1, 0)
        t: Array = np.asarray(next_s + step_s * np.arange(count))
        third = np.clip(np.searchsorted(times, t - slack_s), 2, len(times) - 2)
        around = np.stack([rows[third + k] for k in (-2, -1, 0, 1)])
        share = ((t - around[1, :, 0]) / (around[2, :, 0] - around[1, :, 0]))[:, None]
        values = (1 - share) * around[1, :, 1:] + share * around[2, :, 1:]
        weights = _cubic_weights(around[:, :, 0], t)
        cut = self.channels
        values[:, :cut] = np.einsum("rk,rkc->kc", weights, around[:, :, 1 : 1 + cut])
        return next_s + step_s * count, t, values

    def _between(self, rows: Array, times: list[float], t: float) -> Array:
        """Motion and effort at an instant between the two middle rows of four, (c + e,)."""
        cut = self.channels
        share = (t - times[1]) / (times[2] - times[1])
        values = (1 - share) * rows[1, 1:] + share * rows[2, 1:]
        values[:cut] = _cubic_weights(times, t) @ rows[:, 1 : 1 + cut]
        return np.asarray(values)


def _cubic_weights(times: Sequence[float] | Array, t: float | Array) -> Array:
    """Weights of values at four times in their cubic at an instant (Lagrange), (4,) or (4, K).

    Args:
        times: four times, or four times for each of K instants [s]
        t: an instant, or K of them [s]
    """
    t0, t1, t2, t3 = times
    d0 = t - t0
    d1 = t - t1
    d2 = t - t2
    d3 = t - t3
    return np.array(
        [
            d1 * d2 * d3 / ((t0 - t1) * (t0 - t2) * (t0 - t3)),
            d0 * d2 * d3 / ((t1 - t0) * (t1 - t2) * (t1 - t3)),
            d0 * d1 * d3 / ((t2 - t0) * (t2 - t1) * (t2 - t3)),
            d0 * d1 * d2 / ((t3 - t0) * (t3 - t1) * (t3 - t2)),
        ]
    )
