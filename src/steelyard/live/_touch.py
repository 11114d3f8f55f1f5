"""Pushes on the arm while it is weighed: torque that neither the arm nor its payload explains.

The residual of each joint, torque less what the estimate predicts, goes through a filter of 5 Hz,
and is compared with its own largest value of the last minute, in standard deviations (noise with
its correlation in time, and what is not known of the payload). A push is what exceeds twice that,
and three deviations, too; twenty seconds are learned from first. It is an event for people and
programs that look on, not a safety
function: it comes as late as the filters of the weighing, and a part that is picked up begins as
one. Levels were chosen by simulation (docs/howto/live.md). `steelyard collisions` has learned
thresholds (docs/howto/collisions.md).
"""

from __future__ import annotations

from collections import deque

import numpy as np

from steelyard._arrays import Array

_FILTER_HZ = 5.0
_LONGEST_STEP_S = 0.1  # after a longer pause the filter starts anew
_BLOCK_S = 1.0
_BLOCKS = 60  # whose largest residuals are remembered
_FEWEST_BLOCKS = 20
_LEVEL = 3.0
_MARGIN = 2.0
_RELEASE = 0.7
_CALM_S = 1.0  # between two pushes


class TouchWatch:
    """Finds pushes, one sample at a time.

    Args:
        joints: their names, n
    """

    def __init__(self, joints: tuple[str, ...]) -> None:
        self._joints = joints
        self._filtered = np.zeros(len(joints))
        self._last_s = -np.inf
        self._peaks: deque[Array] = deque(maxlen=_BLOCKS)
        self._block = np.zeros(len(joints))
        self._block_s = -np.inf
        self._pushed_s = -np.inf

    def look(self, t: float, residual: Array, std: Array) -> str:
        """What pushes, in words, at the sample where it is first seen; empty at all others.

        Args:
            t: time, [s]
            residual: torque less the predicted one, (n,) [Nm or N]
            std: its standard deviation, with what is not known of the payload, (n,) [Nm or N]
        """
        step_s = t - self._last_s
        self._last_s = t
        if 0 < step_s < _LONGEST_STEP_S:
            kept = np.exp(-2 * np.pi * _FILTER_HZ * step_s)
        else:
            kept = 0.0
        self._filtered = kept * self._filtered + (1 - kept) * residual
        size = np.abs(self._filtered) / std
        usual = np.maximum(_LEVEL, _MARGIN * np.max(self._peaks, axis=0, initial=0.0))
        if len(self._peaks) < _FEWEST_BLOCKS or (size < _RELEASE * usual).all():
            self._learn(t, size)
            return ""
        if (size <= usual).all():
            return ""
        again = 0 <= t - self._pushed_s < _CALM_S
        self._pushed_s = t
        if again:
            return ""
        j = int((size / usual).argmax())
        if self._filtered[j] < 0:
            way = "along"
        else:
            way = "against"
        return f"{self._joints[j]}: {abs(self._filtered[j]):.2g} Nm {way} its axis, or another load"

    def _learn(self, t: float, size: Array) -> None:
        """Remembers the largest residuals of a second."""
        if not 0 <= t - self._block_s < _BLOCK_S:
            if np.isfinite(self._block_s):
                self._peaks.append(self._block)
            self._block = size
            self._block_s = t
        self._block = np.maximum(self._block, size)
