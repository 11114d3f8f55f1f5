"""Spikes: single readings that are far from those before and after.

A broken frame of a sensor's bus is one wrong row. Reading w_k is a spike where one of its numbers
lies on the same side of both its neighbours, by at least

    d = min(|w_k - w_(k-1)|, |w_k - w_(k+1)|),

and d is more than 20 standard deviations of the noise and four times both |w_(k+1) - w_(k-1)| and
|w_(k-1) - w_(k-2)|. A step or a contact keeps its new value, and a vibration changes every reading:
neither is a spike. Only a vibration with a period of three rows has two readings alike beside each
third one; the path therefore compares with the usual change of the readings before, too.

A load that is shaken for one row makes a wrench that looks like a spike. Its acceleration a then
has a pulse as well: a_k - a_(k-2) is more than three times as large as usual in the rows before.
The limit is low: a broken reading that is taken for a true one only costs the weight of the samples
around it.
"""

from __future__ import annotations

import numpy as np

from steelyard._arrays import Array, Mask

ROWS_OF_SPIKE = 4
"""Rows that tell whether the last but one of them is a spike."""

ROWS_OF_PULSE = 5
"""Rows that tell whether the load is shaken in the last but one of them."""

_SPIKE_SIGMA = 20.0
_CALM_RATIO = 4.0  # of a spike, over the changes around it
_PULSE_SIGMA = 3.0
_MEDIAN_TO_STD = 1.4826  # of absolute values, for a normal distribution


def spikes(readings: Array, noise: Array, least: float = 0.0) -> Mask:
    """Which readings are spikes, (N,); the first two and the last one are never known to be.

    Args:
        readings: in the order of time, (N, k), in any unit
        noise: standard deviation of a reading, (k,)
        least: distance from both neighbours that is still possible
    """
    found = np.zeros(len(readings), dtype=bool)
    if len(readings) < ROWS_OF_SPIKE:
        return found
    changes = np.diff(readings, axis=0)
    rise = changes[1:-1]
    fall = -changes[2:]
    size = np.where(rise * fall > 0, np.minimum(np.abs(rise), np.abs(fall)), 0.0)
    around = np.maximum(np.abs(rise - fall), np.abs(changes[:-2]))
    enough = np.maximum(_SPIKE_SIGMA * noise, least)
    found[2:-1] = ((size > enough) & (size > _CALM_RATIO * around)).any(axis=1)
    return found


def has_pulse(accelerations: Array, before: Array, noise: Array) -> bool:
    """Whether the last of three accelerations is far from the first, on any axis.

    Args:
        accelerations: in the order of time, (3, k), in any unit
        before: in the rows before, (N, k)
        noise: standard deviation of an acceleration, (k,)
    """
    changes = before[2:] - before[:-2]
    if not len(changes):
        return False
    usual = _MEDIAN_TO_STD * np.median(np.abs(changes), axis=0)
    limit = _PULSE_SIGMA * np.maximum(usual, noise)
    return bool((np.abs(accelerations[-1] - accelerations[0]) > limit).any())
