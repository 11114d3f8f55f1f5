"""Stretches of recordings that are left out in turn, and tests of who predicts them better.

Several recordings are left out one at a time (in at most four folds), a single one in quarters.
What is left out is cut into stretches; two fits that predict the same stretches are compared by the
differences of their squared residuals, stretch by stretch, so that what is difficult for both
cancels. Where a fit is judged by itself, stretches are left out by turns (1, 5, 9, ... then 2, 6,
10, ...), so that joints which move one after the other stay in what is fitted.

A model that predicts its own left-out stretches worse than it fits them, by more than a fifth of
the torques (mean over the joints), is not used; nor is one that predicts a run given for validation
worse by more than a half. Both were chosen on simulated arms with friction inside and outside the
laws. On others, 0 of 60 models of 8 to 40 s of motion were refused (at most 0.07), and 28 of 28
whose torques belong to another motion, or come 1.5 s late. Real arms have 0.01 to 0.07, a real
recording that no method predicts 0.3 to 0.6. What left-out stretches cannot show is that a motion
was too small: of 14 models of 3.5 s of a small motion none was refused by them, and all by a run
for validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import stdtr

from steelyard._arrays import Array
from steelyard.identification._least_squares import solve_grams
from steelyard.identification._problem import Rows

MAX_FOLDS = 4
STRETCHES_PER_PART = 8  # of each recording, or of each quarter of a single one


@dataclass(frozen=True)
class LeftOutStretch:
    """A piece of samples that is predicted from others.

    Attributes:
        part: which samples it belongs to
        rows: of these samples
        fold: the stretches of a fold are left out together
    """

    part: int
    rows: slice
    fold: int


def stretches_of(lengths: Sequence[int]) -> list[LeftOutStretch]:
    """The stretches of several sets of samples, in the order of time.

    Args:
        lengths: how many rows each set has
    """
    out = []
    if len(lengths) == 1:
        pieces = _pieces(lengths[0], MAX_FOLDS * STRETCHES_PER_PART)
        return [LeftOutStretch(0, rows, i // STRETCHES_PER_PART) for i, rows in enumerate(pieces)]
    folds = min(len(lengths), MAX_FOLDS)
    for part, length in enumerate(lengths):
        for rows in _pieces(length, STRETCHES_PER_PART):
            out.append(LeftOutStretch(part, rows, part % folds))
    return out


def alternating_stretches(lengths: Sequence[int]) -> list[LeftOutStretch]:
    """The stretches of several sets of samples, left out by turns within each set.

    Args:
        lengths: how many rows each set has
    """
    out = []
    for part, length in enumerate(lengths):
        for i, rows in enumerate(_pieces(length, MAX_FOLDS * STRETCHES_PER_PART)):
            out.append(LeftOutStretch(part, rows, i % MAX_FOLDS))
    return out


def left_out_squares(
    rows: Sequence[Rows], stretches: Sequence[LeftOutStretch], prior: Array | None = None
) -> tuple[Array, Array]:
    """Squared residuals, summed, and numbers of rows of stretches, (stretches, n) each.

    Each stretch is predicted by the fit to all stretches of other folds.

    Args:
        rows: of each set of samples
        stretches: of these sets
        prior: rows [Z z] of what is known before, with unit noise, (r, m + 1)
    """
    pieces = [_piece(rows[each.part], each.rows) for each in stretches]
    grams = np.array([piece.grams for piece in pieces])
    counts = np.array([piece.usable.sum(axis=0) for piece in pieces])
    folds = np.array([each.fold for each in stretches])
    known = np.zeros((0, grams.shape[2])) if prior is None else prior
    squares = np.zeros(counts.shape)
    for fold in range(folds.max() + 1):
        out = folds == fold
        solution = solve_grams(grams[~out].sum(axis=0), counts[~out].sum(axis=0), known)
        minus = np.append(solution.value, -1.0)
        squares[out] = np.maximum((grams[out] @ minus) @ minus, 0.0)
    return squares, counts


def _piece(rows: Rows, which: slice) -> Rows:
    """Some instants of rows."""
    return Rows(rows.Y[which], rows.tau[which], rows.usable[which])


def _pieces(length: int, count: int) -> list[slice]:
    edges = np.linspace(0, length, count + 1).astype(int).tolist()
    return [slice(first, last) for first, last in pairwise(edges)]


def prediction_error(unseen: Array, fitted: Array) -> float:
    """How much worse torques are predicted than fitted, relative to them, mean over the joints.

    What is left of a fit is no fault of its prediction: torques at the noise level are never
    predicted.

    Args:
        unseen: relative residual of what was not fitted, (n,)
        fitted: the same of what was fitted, (n,)
    """
    return float(np.sqrt(np.maximum(unseen**2 - fitted**2, 0.0)).mean())


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
