"""How small a weighting of the joints can make the condition number of Table IV.

Objective (18) weighs the regressor with the covariance Lambda of the joints' residuals, which is
not printed. With S = diag(s) the inverse standard deviations and C the correlations,

    Lambda^-1 = S C^-1 S,   cond^2 = lambda_max / lambda_min of sum_ij (Lambda^-1)_ij Y_i' Y_j,

and the least condition number over all s > 0 is a bound: no residuals with these correlations give
less. Without correlations the bound is twice the printed number. Only residuals of joints 2 and 3
that are strongly correlated can make it as small as printed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize

from steelyard._arrays import Array
from steelyard.report import Table
from steelyard_papers.xu2024.printed import CONDITION_NUMBER

CORRELATIONS = (0.0, 0.5, 0.7, 0.8, 0.9)
"""Of the residuals of joints 2 and 3."""

_PAIR = (1, 2)
_TOLERANCE = 1e-6  # of the logarithm of the condition number
_CORRELATION_TOLERANCE = 1e-5


@dataclass(frozen=True)
class WeightingBound:
    """The least condition numbers that weights of the joints give.

    Attributes:
        by_correlation: least condition number by the correlation of joints 2 and 3
        needed: correlation at which the printed number is the least one
        at_needed: least condition number there
    """

    by_correlation: dict[float, float]
    needed: float
    at_needed: float

    @property
    def uncorrelated(self) -> float:
        """The least condition number where residuals of joints are not correlated."""
        return self.by_correlation[0.0]

    @property
    def table(self) -> Table:
        """The bound over the correlation."""
        return Table(
            "Least condition number of Table IV over all weights of the joints.",
            ("correlation of joints 2 and 3", "least condition number"),
            [*self.by_correlation.items(), (self.needed, self.at_needed)],
            "The last row: the correlation that the printed number needs at least.",
        )


def weighting_bound(Y: Array) -> WeightingBound:
    """The bound for a motion.

    Args:
        Y: its regressor, (N, n, p)
    """
    grams = gram_matrices(Y)
    found = {}
    scales = np.zeros(Y.shape[1] - 1)
    for correlation in CORRELATIONS:
        found[correlation], scales = least_condition(grams, correlation, scales)

    def excess(correlation: float) -> float:
        return float(np.log(least_condition(grams, correlation, scales)[0] / CONDITION_NUMBER))

    needed = float(brentq(excess, *CORRELATIONS[-2:], xtol=_CORRELATION_TOLERANCE))
    return WeightingBound(found, needed, least_condition(grams, needed, scales)[0])


def gram_matrices(Y: Array) -> Array:
    """Y_i' Y_j of a motion for each pair of joints, (n, n, p, p).

    Args:
        Y: its regressor, (N, n, p)
    """
    return np.asarray(np.einsum("tip,tjq->ijpq", Y, Y, optimize=True))


def least_condition(
    grams: Array, correlation: float, start: Array, *, pair: tuple[int, int] = _PAIR
) -> tuple[float, Array]:
    """The least condition number, and the logarithms of the scales of joints 2 to n.

    Args:
        grams: of the motion, see `gram_matrices`
        correlation: of the residuals of two joints
        start: logarithms to start from, (n - 1,)
        pair: the two joints, from 0
    """
    C = np.eye(len(grams))
    C[pair] = correlation
    C[pair[::-1]] = correlation
    inverse = np.linalg.inv(C)

    def value(x: Array) -> float:
        scale = np.exp(np.append(0.0, x))
        weights = inverse * np.outer(scale, scale)
        lowest, *_, largest = np.linalg.eigvalsh(np.einsum("ij,ijpq->pq", weights, grams))
        return float(0.5 * np.log(largest / max(lowest, np.finfo(float).tiny)))

    options = {"maxiter": 2000, "xatol": 1e-4, "fatol": _TOLERANCE}
    for _ in range(2):  # a fresh simplex leaves places where the first one has collapsed
        start = minimize(value, start, method="Nelder-Mead", options=options).x
    return float(np.exp(value(start))), start
