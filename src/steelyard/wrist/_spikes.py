"""Spikes: single readings that are far from those before and after.

A broken frame of a sensor's bus is one wrong row. Reading w_k is a spike where one of its numbers
lies on the same side of both its neighbours, by at least

    d = min(|w_k - w_(k-1)|, |w_k - w_(k+1)|),

and d is more than 20 standard deviations of the noise and four times both |w_(k+1) - w_(k-1)| and
|w_(k-1) - w_(k-2)|. A step or a contact keeps its new value, and a vibration changes every reading:
neither is a spike. Only a vibration with a period of three rows has two readings alike beside each
third one; the path therefore compares with the usual change of the readings before, too.

A load that is shaken for one row makes a wrench that looks like a spike. Its acceleration a_k then
has a pulse in that row, |a_k - a_(k-1)| of more than four standard deviations of its noise and
twice |a_(k-1) - a_(k-2)|. Where the noise of the motion hides the pulse, it is also large enough to
cover what the pulse does to the load.
"""

from __future__ import annotations

import numpy as np

from steelyard._arrays import Array, Mask

ROWS_OF_SPIKE = 4
"""Rows that tell whether the last but one of them is a spike."""

_SPIKE_SIGMA = 20.0
_CALM_RATIO = 4.0  # of a spike, over the changes around it
_PULSE_SIGMA = 4.0
_PULSE_RATIO = 2.0  # of a change of acceleration, over the change before


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


def has_pulse(accelerations: Array, noise: Array) -> bool:
    """Whether the last acceleration differs from the two before as a pulse does.

    Args:
        accelerations: in the order of time, (N, k), in any unit
        noise: standard deviation of one of them, (k,)
    """
    if len(accelerations) < 3:
        return False
    before, last = np.abs(np.diff(accelerations[-3:], axis=0))
    least = _PULSE_SIGMA * np.sqrt(2.0) * noise
    return bool(((last > least) & (last > _PULSE_RATIO * before)).any())
