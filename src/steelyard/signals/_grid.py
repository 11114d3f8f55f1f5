"""Rows of a stream on a uniform grid, as they come.

Motion between rows is interpolated by the cubic through the four nearest rows, effort by a straight
line. An instant of the grid is therefore known two rows later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from steelyard._arrays import Array

ROWS_TO_INTERPOLATE = 4
"""Number of rows around an instant that give its motion."""

_ROUNDING = 1e-6  # of times, in steps of the grid


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

    def interpolated(
        self, rows: Array, next_s: float
    ) -> tuple[float, list[tuple[float, Array, Array]]]:
        """The next instant, and time, motion and effort of those up to the third row of four.

        Args:
            rows: four rows [t, motion, effort] in the order of time, (4, 1 + c + e); with fewer
                rows nothing is known yet
            next_s: the next instant before, [s]; -infinity to begin with the second row
        """
        if len(rows) < ROWS_TO_INTERPOLATE:
            return next_s, []
        t = next_s
        if math.isinf(t):
            t = float(rows[1, 0])
        end = rows[2, 0] + _ROUNDING / self.rate_hz
        instants = []
        while t <= end:
            instants.append((t, *self._between(rows, t)))
            t += 1.0 / self.rate_hz
        return t, instants

    def _between(self, rows: Array, t: float) -> tuple[Array, Array]:
        """Motion and effort at an instant between the two middle rows of four."""
        times: list[float] = rows[:, 0].tolist()
        weights = [math.prod((t - u) / (one - u) for u in times if u != one) for one in times]
        share = (t - times[1]) / (times[2] - times[1])
        cut = 1 + self.channels
        motion = np.array(weights) @ rows[:, 1:cut]
        effort = (1 - share) * rows[1, cut:] + share * rows[2, cut:]
        return motion, effort
