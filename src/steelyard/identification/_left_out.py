"""Stretches of recordings that are left out in turn, and tests of who predicts them better.

Several recordings are left out one at a time (in at most four folds), a single one in quarters.
What is left out is cut into stretches; two fits that predict the same stretches are compared by the
differences of their squared residuals, stretch by stretch, so that what is difficult for both
cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import stdtr

from steelyard._arrays import Array

MAX_FOLDS = 4
STRETCHES_PER_PART = 8  # of each recording, or of each quarter of a single one


@dataclass(frozen=True)
class Stretch:
    """A piece of samples that is predicted from others.

    Attributes:
        part: which samples it belongs to
        rows: of these samples
        fold: the stretches of a fold are left out together
    """

    part: int
    rows: slice
    fold: int


def stretches_of(lengths: Sequence[int]) -> list[Stretch]:
    """The stretches of several sets of samples, in the order of time.

    Args:
        lengths: how many rows each set has
    """
    out = []
    if len(lengths) == 1:
        pieces = _pieces(lengths[0], MAX_FOLDS * STRETCHES_PER_PART)
        return [Stretch(0, rows, i // STRETCHES_PER_PART) for i, rows in enumerate(pieces)]
    folds = min(len(lengths), MAX_FOLDS)
    for part, length in enumerate(lengths):
        for rows in _pieces(length, STRETCHES_PER_PART):
            out.append(Stretch(part, rows, part % folds))
    return out


def _pieces(length: int, count: int) -> list[slice]:
    edges = np.linspace(0, length, count + 1).astype(int).tolist()
    return [slice(first, last) for first, last in pairwise(edges)]


def p_value_of_gain(before: Array, after: Array) -> float:
    """The probability that residuals are this much smaller by chance: a one-sided paired t test.

    Joints count alike: each is measured by its own mean square before.

    Args:
        before: squared residuals of stretches, (stretches, joints)
        after: the same of the other prediction
    """
    counted = before.any(axis=1)
    size = np.maximum(before[counted].mean(axis=0), 1e-300)
    gain = ((before - after)[counted] / size).mean(axis=1)
    freedom = len(gain) - 1
    spread = gain.std(ddof=1) if freedom > 0 else 0.0
    if not spread > 0:
        return 1.0
    t = gain.mean() / (spread / np.sqrt(len(gain)))
    return float(stdtr(freedom, -t))
