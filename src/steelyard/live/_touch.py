"""Pushes on the arm while it is weighed: torque that neither the arm nor its payload explains.

The residual of a joint is its torque less what the estimate predicts. It is filtered with a cut-off
of 5 Hz and divided by its standard deviation (noise with its correlation in time, and what is not
known of the payload). A residual is a push if it exceeds three standard deviations and twice its
own largest value of the last minute. No push is reported in the first twenty seconds. A push is an
event for people and other programs, not a safety function: it is delayed by the filters of the
weighing, and picking up a part looks like a push at first. The thresholds were chosen by simulation
(docs/howto/live.md). `steelyard collisions` learns its thresholds (docs/howto/collisions.md).
"""

from __future__ import annotations

from collections import deque

import numpy as np

from steelyard._arrays import Array

_FILTER_HZ = 5.0
_LONGEST_STEP_S = 0.1  # after a longer pause the filter starts anew
_BLOCK_S = 1.0
_MAX_BLOCKS = 60  # that are remembered, by their largest residuals
_MIN_BLOCKS = 20  # that are learned from before a push is reported
_MIN_PUSH_STD = 3.0  # standard deviations of the residual; less is never a push
_MIN_PUSH_RATIO = 2.0  # of a push, over the largest remembered residual
_MAX_LEARNED_SHARE = 0.7  # of the threshold; larger residuals are not learned from
_MIN_CALM_S = 1.0  # between two pushes


class TouchWatch:
    """Finds pushes, one sample at a time.

    Args:
        joints: their names, n
    """

    def __init__(self, joints: tuple[str, ...]) -> None:
        self._joints = joints
        self._filtered = np.zeros(len(joints))
        self._last_s = -np.inf
        self._peaks: deque[Array] = deque(maxlen=_MAX_BLOCKS)
        self._block = np.zeros(len(joints))
        self._block_s = -np.inf
        self._pushed_s = -np.inf

    def look(self, t: float, residual: Array, std: Array) -> str:
        """Describes a push at the sample where it is first seen; empty at all others.

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
        usual = np.maximum(
            _MIN_PUSH_STD, _MIN_PUSH_RATIO * np.max(self._peaks, axis=0, initial=0.0)
        )
        if len(self._peaks) < _MIN_BLOCKS or (size < _MAX_LEARNED_SHARE * usual).all():
            self._learn(t, size)
            return ""
        if (size <= usual).all():
            return ""
        again = 0 <= t - self._pushed_s < _MIN_CALM_S
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
