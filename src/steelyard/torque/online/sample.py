"""One instant of a stream, and what is wrong with it.

A real stream repeats rows, delivers them late, loses some, and contains numbers that are none. Such samples
are counted and skipped; only one of another shape is refused, because it comes from another robot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.signals import OnlineSample

_LARGEST = 1e6  # rad, rad/s, rad/s^2, Nm: beyond, a number is corrupt
_SPIKE = 20.0  # standard deviations


class Counts(NamedTuple):
    """How many samples were used, and how many were not, by reason.

    Attributes:
        used: they count (joints that rest do not)
        repeated: the same time as the one before
        late: an earlier time than the one before
        corrupt: NaN, infinite or absurdly large
        saturated: a torque at its limit
        spikes: a torque far from both its neighbours
        gaps: pauses in the stream, not samples
    """

    used: int = 0
    repeated: int = 0
    late: int = 0
    corrupt: int = 0
    saturated: int = 0
    spikes: int = 0
    gaps: int = 0

    @property
    def words(self) -> str:
        """What was skipped, as 'skipped 3 late and 2 corrupt samples'; empty when nothing was."""
        bad = [f"{n} {name}" for name, n in self._asdict().items() if n and name not in ("used", "gaps")]
        skipped = f"skipped {', '.join(bad)} samples" if bad else ""
        paused = f"{self.gaps} pauses" if self.gaps else ""
        return "; ".join(word for word in (skipped, paused) if word)

    def plus(self, name: str, more: int = 1) -> Counts:
        """The counts with one of them larger.

        Args:
            name: which one
            more: by how much
        """
        return self._replace(**{name: getattr(self, name) + more})


def checked_row(sample: OnlineSample, n: int) -> Array:
    """A copy of a sample as one row [t q v a tau], (1 + 4 n,).

    Args:
        sample: to check
        n: number of joints
    """
    row = np.empty(1 + 4 * n)
    try:
        row[0] = sample.t
        for i, values in enumerate(sample[1:]):
            if np.shape(values) != (n,):
                raise ValueError
            row[1 + i * n : 1 + (i + 1) * n] = values
    except (TypeError, ValueError):
        shapes = ", ".join(f"{name} {np.shape(x)}" for name, x in zip(sample._fields, sample, strict=True))
        raise InvalidSamples(
            f"a sample is a time and {n} numbers for each of q, v, a and tau, got {shapes}"
        ) from None
    return row


def fault_of(row: Array, last_s: float, tau_max: Array) -> str:
    """Why a sample cannot be used, as a name of `Counts`; empty when it can.

    Args:
        row: [t q v a tau], (1 + 4 n,)
        last_s: time of the sample before, [s]
        tau_max: largest torque of each joint, (n,) [Nm or N]
    """
    if not np.abs(row[1:]).max() < _LARGEST or not np.isfinite(row[0]):
        return "corrupt"
    if row[0] <= last_s:
        return "repeated" if row[0] == last_s else "late"
    if (np.abs(row[-len(tau_max) :]) >= tau_max).any():
        return "saturated"
    return ""


def lonely_spikes(e: Array, tau: Array) -> NDArray[np.bool_]:
    """Which samples have a torque far from both neighbours, and a residual far beyond theirs, (k,).

    Args:
        e: residuals over their noise, (k, n)
        tau: torques over their noise, with the one before and the one after, (k + 2, n)
    """
    size = np.abs(e)
    if size.max() < _SPIKE:
        return np.zeros(len(e), bool)
    rise = np.diff(tau, axis=0)
    up, down = rise[:-1], -rise[1:]
    alone = (up * down > 0) & (np.minimum(np.abs(up), np.abs(down)) > _SPIKE / 2)
    around = np.maximum(
        np.vstack([np.abs(e[0] - up[0]), size[:-1]]), np.vstack([size[1:], np.abs(e[-1] - down[-1])])
    )
    return np.asarray((alone & (size > _SPIKE) & (around < size / 4)).any(axis=1))
