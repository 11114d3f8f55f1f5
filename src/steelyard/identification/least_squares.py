"""Weighted least squares from triangular factors, with a covariance that knows of correlated residuals.

Each joint j has noise of its own, so rows are weighted by 1 / sigma_j, and sigma_j follows from the
residuals: solved in turns until both agree. With A = sum_j Y_j'Y_j / sigma_j^2 the estimate is
A^-1 sum_j Y_j'tau_j / sigma_j^2.

Residuals of real arms are correlated over many samples, so N rows are worth fewer than N. With the residuals'
autocorrelation rho_j(l), the sum of N of them has the variance N sigma_j^2 kappa_j with
kappa_j = 1 + 2 sum_l rho_j(l), as long as the regressor changes more slowly than the residuals forget. The
covariance is therefore

    A^-1 (sum_j kappa_j Y_j'Y_j / sigma_j^2) A^-1.

The sum over l ends where it exceeds its own window five-fold (Sokal), since farther terms are noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.identification.factor import RegressionFactor

__all__ = ["Solution", "correlation_inflation", "covariance", "solve_weighted"]

Array = NDArray[np.float64]

_ROUNDS = 50
_RELATIVE_RANK = 1e-10


@dataclass(frozen=True, eq=False)
class Solution:
    """A weighted least-squares solution.

    Attributes:
        value: (p,)
        noise: standard deviation of each joint's residuals, (n,) [Nm]
        inverse: A^-1, infinite directions left out, (p, p)
        unknown: which parameters the data do not tell, (p,)
        condition: of the weighted regression with columns of unit length
    """

    value: Array
    noise: Array
    inverse: Array
    unknown: NDArray[np.bool_]
    condition: float


def solve_weighted(
    factor: RegressionFactor, prior: Array | None = None, mixing: Array | None = None
) -> Solution:
    """The weighted least-squares solution, weights and noise found in turns.

    Args:
        factor: of the rows, p unknowns or, with `mixing`, p combinations of m unknowns
        prior: rows [Z z] of what is known before, Z theta = z + unit noise, (r, m + 1)
        mixing: the p combinations of the m unknowns, (p, m); the identity by default
    """
    p = factor.p
    mixed = np.eye(p) if mixing is None else mixing
    known = np.zeros((0, mixed.shape[1] + 1)) if prior is None else prior
    noise = np.ones(len(factor.rows))
    share = factor.rows / factor.rows.sum()
    for _ in range(_ROUNDS):
        R = factor.weighted(1.0 / noise)
        rows = np.vstack([np.column_stack([R[:, :p] @ mixed, R[:, p]]), known])
        solution = _solve(rows[:, :-1], rows[:, -1])
        residuals = factor.squared_residuals(mixed @ solution[0])
        freedom = np.maximum(factor.rows - p * share, 1.0)
        before, noise = noise, np.sqrt(np.maximum(residuals / freedom, 1e-20))
        if np.abs(noise / before - 1).max() < 1e-12:
            break
    value, inverse, unknown, condition = solution
    return Solution(value, noise, inverse, unknown, condition)


def covariance(
    factor: RegressionFactor, solution: Solution, inflation: Array, mixing: Array | None = None
) -> Array:
    """The covariance of a solution whose residuals are correlated, (m, m); infinite where unknown.

    Args:
        factor: of the rows
        solution: theirs
        inflation: kappa of each joint, (n,)
        mixing: as in `solve_weighted`
    """
    p = factor.p
    mixed = np.eye(p) if mixing is None else mixing
    extra = factor.weighted(np.sqrt(np.maximum(inflation - 1.0, 0.0)) / solution.noise)[:p, :p] @ mixed
    half = solution.inverse @ extra.T
    result = solution.inverse + half @ half.T
    result[solution.unknown, solution.unknown] = np.inf
    return np.asarray(result)


def correlation_inflation(residuals: Sequence[Array]) -> Array:
    """The kappa of each joint from residuals in the order of time, (n,); at least 1.

    Args:
        residuals: of one or many recordings, each (N, n) [Nm]
    """
    longest = max(len(part) for part in residuals)
    size = 2 ** int(np.ceil(np.log2(2 * longest)))
    power = sum(np.abs(np.fft.rfft(part - part.mean(axis=0), size, axis=0)) ** 2 for part in residuals)
    autocovariance = np.fft.irfft(power, axis=0)[:longest]
    rho = autocovariance / np.maximum(autocovariance[0], 1e-300)
    kappa = 2 * np.cumsum(rho, axis=0) - 1.0
    lags = np.arange(longest)[:, None]
    inside = lags >= 5 * np.maximum(kappa, 1.0) / 2
    window = np.where(inside.any(axis=0), inside.argmax(axis=0), longest - 1)
    return np.maximum(kappa[window, np.arange(kappa.shape[1])], 1.0)


def _solve(Z: Array, z: Array) -> tuple[Array, Array, NDArray[np.bool_], float]:
    """Least squares with columns scaled to unit length; directions without data are left at zero."""
    length = np.linalg.norm(Z, axis=0)
    scale = np.where(length > 0, length, 1.0)
    U, s, Vt = np.linalg.svd(Z / scale, full_matrices=False)
    told = s > _RELATIVE_RANK * s[0]
    half = Vt[told].T / s[told] / scale[:, None]
    unknown = (np.abs(Vt[~told]) > 1e-6).any(axis=0) | (length == 0)
    return half @ (U[:, told].T @ z), half @ half.T, unknown, float(s[0] / s[-1]) if s[-1] > 0 else np.inf
