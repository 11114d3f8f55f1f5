"""Spikes: single readings of a wrench that are far from those before and after.

A broken frame of a sensor's bus is one wrong row. Reading w_k is a spike where one of its six
numbers lies on the same side of both its neighbours, by at least

    d = min(|w_k - w_(k-1)|, |w_k - w_(k+1)|),

and d is more than 20 standard deviations of the noise and four times both |w_(k+1) - w_(k-1)| and
|w_(k-1) - w_(k-2)|. A step or a contact keeps its new value, and a vibration changes every reading:
neither is a spike. Only a vibration with a period of three rows has two readings alike beside each
third one; the path therefore compares with the usual change of the readings before, too.
"""

from __future__ import annotations

import numpy as np

from steelyard._arrays import Array, Mask

ROWS_OF_SPIKE = 4
"""Rows that tell whether the last but one of them is a spike."""

_SPIKE_SIGMA = 20.0
_CALM_RATIO = 4.0  # of a spike, over the changes around it


def spikes(wrench: Array, noise: Array) -> Mask:
    """Which readings are spikes, (N,); the first two and the last one are never known to be.

    Args:
        wrench: readings in the order of time, (N, 6) [N, Nm]
        noise: standard deviation of a reading, (6,) [N, Nm]
    """
    found = np.zeros(len(wrench), dtype=bool)
    if len(wrench) < ROWS_OF_SPIKE:
        return found
    changes = np.diff(wrench, axis=0)
    rise = changes[1:-1]
    fall = -changes[2:]
    size = np.where(rise * fall > 0, np.minimum(np.abs(rise), np.abs(fall)), 0.0)
    around = np.maximum(np.abs(rise - fall), np.abs(changes[:-2]))
    found[2:-1] = ((size > _SPIKE_SIGMA * noise) & (size > _CALM_RATIO * around)).any(axis=1)
    return found
