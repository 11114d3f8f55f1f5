"""Weighted least squares from triangular factors.

Each joint of each recording, a group g, has noise of its own, so its rows are weighted by 1 / sigma_g, and
sigma_g follows from the residuals: solved in turns until both agree. With A = sum_g Y_g'Y_g / sigma_g^2 the
estimate is A^-1 sum_g Y_g'tau_g / sigma_g^2. (Ordinary least squares weighs all rows alike.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.arrays import Array
from steelyard.identification.factor import RegressionFactor

_ROUNDS = 50
_RELATIVE_RANK = 1e-8
_SMALLEST_NOISE = 1e-10  # [Nm]


@dataclass(frozen=True, eq=False)
class Solution:
    """A weighted least-squares solution.

    Attributes:
        value: (p,)
        noise: standard deviation of each group's residuals, (G,) [Nm]
        weights: of the groups' rows, (G,)
        inverse: A^-1, infinite directions left out, (p, p)
        unknown: which parameters the data do not tell, (p,)
        condition: of the weighted regression with columns of unit length
    """

    value: Array
    noise: Array
    weights: Array
    inverse: Array
    unknown: NDArray[np.bool_]
    condition: float


def solve_weighted(
    factor: RegressionFactor,
    prior: Array | None = None,
    mixing: Array | None = None,
    *,
    equal_weights: bool = False,
) -> Solution:
    """The weighted least-squares solution, weights and noise found in turns.

    Args:
        factor: of the rows, p unknowns or, with `mixing`, p combinations of m unknowns
        prior: rows [Z z] of what is known before, Z theta = z + unit noise, (r, m + 1)
        mixing: the p combinations of the m unknowns, (p, m); the identity by default
        equal_weights: weigh all rows alike, as ordinary least squares does
    """
    p = factor.p
    mixed = np.eye(p) if mixing is None else mixing
    known = np.zeros((0, mixed.shape[1] + 1)) if prior is None else prior
    groups = len(factor.rows)
    freedom = np.maximum(factor.rows - mixed.shape[1] * factor.rows / max(factor.rows.sum(), 1), 1.0)
    weights = np.ones(groups)
    for _ in range(_ROUNDS):
        R = factor.weighted(weights)
        rows = np.vstack([np.column_stack([R[:, :p] @ mixed, R[:, p]]), known])
        solution = _solve(rows[:, :-1], rows[:, -1])
        noise = np.sqrt(factor.squared_residuals(mixed @ solution[0]) / freedom)
        before, weights = weights, 1.0 / np.maximum(noise, _SMALLEST_NOISE)
        if equal_weights:
            weights = np.full(groups, 1.0 / max(float(np.sqrt(np.mean(noise**2))), _SMALLEST_NOISE))
        if np.abs(before / weights - 1).max() < 1e-12:
            break
    value, inverse, unknown, condition = solution
    return Solution(value, noise, before, inverse, unknown, condition)


def _solve(Z: Array, z: Array) -> tuple[Array, Array, NDArray[np.bool_], float]:
    """Least squares with columns scaled to unit length; directions without data are left at zero."""
    length = np.linalg.norm(Z, axis=0)
    scale = np.where(length > 0, length, 1.0)
    U, s, Vt = np.linalg.svd(Z / scale, full_matrices=False)
    told = s > _RELATIVE_RANK * s[0]
    half = Vt[told].T / s[told] / scale[:, None]
    unknown = (np.abs(Vt[~told]) > 1e-6).any(axis=0) | (length == 0)
    return half @ (U[:, told].T @ z), half @ half.T, unknown, float(s[0] / s[-1]) if s[-1] > 0 else np.inf
