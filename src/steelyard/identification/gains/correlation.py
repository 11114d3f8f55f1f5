"""How many times correlation in time widens the variance of what residuals were fitted to.

The sum of N residuals with the spectrum S has the variance N S(0), not N sigma^2: kappa = S(0) / sigma^2. A
fit has taken the slowest part of the noise out of its residuals, so S(0) is not read from their slowest part
but from an autoregression of all of them,

    x_t = sum_l a_l x_{t-l} + e_t,      S(0) = var(e) / (1 - sum_l a_l)^2

with coefficients from the autocovariances (Yule, Walker) and the order by the Bayesian information criterion.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve_toeplitz

from steelyard.arrays import Array

_HIGHEST_ORDER = 24


def widening(residuals: Sequence[Array]) -> float:
    """The kappa of a joint's residuals, at least 1.

    Args:
        residuals: of one or many recordings, each in the order of time, (N,)
    """
    N = sum(len(part) for part in residuals)
    gamma = np.sum([_autocovariance(part) for part in residuals], axis=0) / max(N, 1)
    best, lowest = 1.0, np.inf
    for order in range(min(_HIGHEST_ORDER, N // 10) + 1):
        a = solve_toeplitz(gamma[:order], gamma[1 : order + 1]) if order else np.zeros(0)
        variance = float(gamma[0] - a @ gamma[1 : order + 1])
        if not variance > 0:
            break
        score = N * np.log(variance) + order * np.log(N)
        if score < lowest:
            best, lowest = variance / (1 - float(a.sum())) ** 2 / float(gamma[0]), score
    return max(best, 1.0)


def _autocovariance(x: Array) -> Array:
    """The sums of products of a signal with itself, 0 to `_HIGHEST_ORDER` rows apart."""
    centred = np.concatenate([x - x.mean(), np.zeros(_HIGHEST_ORDER)])
    return np.array([centred[: len(x)] @ centred[lag : lag + len(x)] for lag in range(_HIGHEST_ORDER + 1)])
