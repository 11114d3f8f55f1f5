"""Weighted least squares from triangular factors or Gram matrices.

Each joint of each recording, a group g, has noise of its own, so its rows are weighted by 1 /
sigma_g. sigma_g follows from the residuals: weights and solution are found alternately. With A =
sum_g Y_g'Y_g / sigma_g^2 the estimate is A^-1 sum_g Y_g'tau_g / sigma_g^2. (Ordinary least squares
gives all rows the same weight.)

The iteration works on Gram matrices [Y_g tau_g]'[Y_g tau_g], which is fast; the final solution
comes from the factors, which is accurate and shows which parameters the data do not determine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from steelyard._arrays import Array
from steelyard.identification._factor import RegressionFactor

_MAX_ITERATIONS = 50
_RELATIVE_RANK = 1e-8  # smaller singular values, over the largest, count as zero
_MIN_NOISE = 1e-10  # [Nm]
_WEIGHT_TOLERANCE = 1e-12  # smaller relative changes of all weights end the iteration
_GRAM_WEIGHT_TOLERANCE = 1e-7  # the same for inner products, which resolve half of all digits
_BIAS_ITERATIONS = 6  # 2 % of the bias are left if half of the accelerations is noise
_MIN_RESOLVED_SHARE = 1e-14  # smallest residual that inner products resolve, of the sum of squares
_MIN_PIVOT = 1e-6  # of the triangular factor of inner products with unit diagonal


@dataclass(frozen=True, eq=False)
class Solution:
    """A weighted least-squares solution.

    Attributes:
        value: (p,)
        noise: standard deviation of each group's residuals, (G,) [Nm]
        weights: of the groups' rows, (G,)
        inverse: A^-1, zero along directions that the data do not determine, (p, p)
        unknown: which parameters the data do not determine, (p,)
        condition: of the weighted regression with columns of unit length
    """

    value: Array
    noise: Array
    weights: Array
    inverse: Array
    unknown: NDArray[np.bool_]
    condition: float

    def gain_response(self, factor: RegressionFactor, n: int, mixing: Array | None = None) -> Array:
        """The derivative of the solution by the logarithm of each joint's gain, (p, n).

        Args:
            factor: of the usable rows, n groups for each run
            mixing: the columns of the rows as combinations of the p unknowns, (columns, p); the
                identity by default
        """
        out = np.zeros((len(self.value), n))
        for g, (R, weight) in enumerate(zip(factor.R, self.weights, strict=True)):
            pull = R[:, :-1].T @ R[:, -1]
            out[:, g % n] += weight**2 * (pull if mixing is None else mixing.T @ pull)
        return np.asarray(self.inverse @ out)

    def motion_shift(self, noise_grams: Array, mixing: Array | None = None) -> Array:
        """The bias by noise of the motion, (p,): x - x_0 = -A^-1 N x_0, N = sum_g w_g^2 N_g.

        Inner products Y'Y of noisy motion are too large by N_g on average, so that coefficients of
        accelerations come out too small. The unbiased x_0 = x - (x - x_0) is found by iteration.

        Args:
            noise_grams: N_g of each group, (G, columns, columns)
            mixing: the columns of the rows as combinations of the p unknowns, (columns, p); the
                identity by default
        """
        N = np.einsum("g,gij->ij", self.weights**2, noise_grams)
        pull = -self.inverse @ (N if mixing is None else mixing.T @ N @ mixing)
        shift = np.zeros(len(self.value))
        for _ in range(_BIAS_ITERATIONS):
            shift = pull @ (self.value - shift)
        return np.asarray(shift)


def solve_weighted(
    factor: RegressionFactor,
    prior: Array | None = None,
    mixing: Array | None = None,
    *,
    equal_weights: bool = False,
    noise: Array | None = None,
) -> Solution:
    """The weighted least-squares solution, weights and noise found alternately.

    Args:
        factor: of the rows, p unknowns or, with `mixing`, p combinations of m unknowns
        prior: rows [Z z] of prior knowledge, Z theta = z + unit noise, (r, m + 1)
        mixing: the p combinations of the m unknowns, (p, m); the identity by default
        equal_weights: whether all rows have the same weight (ordinary least squares)
        noise: known standard deviation of each group, (G,) [Nm]; estimated by default
    """
    p = factor.p
    if mixing is None:
        mixed = np.eye(p)
    else:
        mixed = mixing
    if prior is None:
        known = np.zeros((0, mixed.shape[1] + 1))
    else:
        known = prior
    if noise is not None:
        weights = 1.0 / np.maximum(noise, _MIN_NOISE)
        value, inverse, unknown, condition = _solve_rows(factor, weights, known, mixed)
        return Solution(value, noise, weights, inverse, unknown, condition)
    grams = np.swapaxes(factor.R, 1, 2) @ factor.R
    if mixing is not None:
        wide = np.pad(mixed, (0, 1))
        wide[-1, -1] = 1.0
        grams = wide.T @ grams @ wide
    weights = solve_grams(grams, factor.rows, known, equal_weights=equal_weights).weights
    for _ in range(_MAX_ITERATIONS):
        value, inverse, unknown, condition = _solve_rows(factor, weights, known, mixed)
        squares = factor.squared_residuals(mixed @ value)
        found_noise, found = _noise(squares, factor.rows, len(value), equal_weights=equal_weights)
        previous = weights
        weights = found
        if np.abs(previous / weights - 1).max() < _WEIGHT_TOLERANCE:
            break
    return Solution(value, found_noise, previous, inverse, unknown, condition)


def solve_grams(
    grams: Array,
    rows: NDArray[np.int64],
    prior: Array,
    *,
    weights: Array | None = None,
    equal_weights: bool = False,
) -> Solution:
    """The weighted solution from inner products: fast, accurate to about half of all digits.

    Args:
        grams: [Y tau]'[Y tau] of each group, (G, m + 1, m + 1)
        rows: number of rows of each group, (G,)
        prior: rows [Z z] of prior knowledge, Z theta = z + unit noise, (r, m + 1)
        weights: initial weights, (G,); equal by default
        equal_weights: whether all rows have the same weight (ordinary least squares)
    """
    m = grams.shape[1] - 1
    known = prior.T @ prior
    least = _MIN_RESOLVED_SHARE * grams[:, m, m]
    flat = grams.reshape(len(grams), -1)
    if weights is None:
        weights = np.ones(len(grams))
    for _ in range(_MAX_ITERATIONS):
        A = (weights**2 @ flat).reshape(m + 1, m + 1) + known
        value = _solve_symmetric(A[:m, :m], A[:m, m])
        minus = np.append(value, -1.0)
        squares = np.maximum((grams @ minus) @ minus, least)
        noise, found = _noise(squares, rows, m, equal_weights=equal_weights)
        previous = weights
        weights = found
        if np.abs(previous / weights - 1).max() < _GRAM_WEIGHT_TOLERANCE:
            break
    half = half_inverse(A[:m, :m])
    return Solution(value, noise, previous, half @ half.T, np.zeros(m, dtype=bool), np.nan)


def _noise(
    squares: Array, rows: NDArray[np.int64], m: int, *, equal_weights: bool
) -> tuple[Array, Array]:
    """Noise of each group from its squared residuals, and the resulting weights, (G,) each."""
    freedom = np.maximum(rows - m * rows / max(rows.sum(), 1), 1.0)
    noise = np.sqrt(squares / freedom)
    if equal_weights:
        common = np.sqrt(np.mean(noise**2))
    else:
        common = noise
    return noise, 1.0 / np.maximum(np.broadcast_to(common, noise.shape), _MIN_NOISE)


def _solve_symmetric(A: Array, b: Array) -> Array:
    """The x of A x = b over the directions that have data, (m,)."""
    unit, scale = _unit_diagonal(A)
    L, failed = lapack.dpotrf(unit.T, lower=1, overwrite_a=1, clean=0)
    if failed or L.diagonal().min() <= _MIN_PIVOT:
        half = half_inverse(A)
        return np.asarray(half @ (half.T @ b))
    x, _ = lapack.dpotrs(L, b / scale, lower=1)
    return np.asarray(np.where(A.diagonal() > 0, x / scale, 0.0))


def _unit_diagonal(A: Array) -> tuple[Array, Array]:
    """A with rows and columns scaled so that its diagonal is 1, and the scale, (m,)."""
    length = np.sqrt(np.maximum(A.diagonal(), 0.0))  # rounding can make a zero negative
    scale = np.where(length > 0, length, 1.0)
    unit = A / scale / scale[:, None]
    unit[length == 0, length == 0] = 1.0
    return unit, scale


def half_inverse(A: Array) -> Array:
    """H with H H' = A^-1 over the directions that have data, (m, rank)."""
    unit, scale = _unit_diagonal(A)
    L, failed = lapack.dpotrf(unit, lower=1)
    if not failed and L.diagonal().min() > _MIN_PIVOT:
        half = np.tril(lapack.dtrtri(L, lower=1)[0]).T
    else:
        s, V = np.linalg.eigh(unit)
        kept = s > _MIN_PIVOT**2 * s[-1]
        half = V[:, kept] / np.sqrt(s[kept])
    return np.asarray(half * (A.diagonal() > 0)[:, None] / scale[:, None])


def _solve_rows(
    factor: RegressionFactor, weights: Array, known: Array, mixed: Array
) -> tuple[Array, Array, NDArray[np.bool_], float]:
    """Least squares of weighted rows and prior rows."""
    R = factor.weighted(weights)
    rows = np.vstack([np.column_stack([R[:, :-1] @ mixed, R[:, -1]]), known])
    return _solve(rows[:, :-1], rows[:, -1])


def _solve(Z: Array, z: Array) -> tuple[Array, Array, NDArray[np.bool_], float]:
    """Least squares with scaled columns; directions without data are set to zero."""
    length = np.linalg.norm(Z, axis=0)
    used = length > 0
    U, s, Vt = np.linalg.svd(Z[:, used] / length[used], full_matrices=False)
    determined = s > _RELATIVE_RANK * s.max(initial=0.0)
    half = np.zeros((len(length), int(determined.sum())))
    half[used] = Vt[determined].T / s[determined] / length[used][:, None]
    unknown = ~used
    unknown[used] = (np.abs(Vt[~determined]) > 1e-6).any(axis=0)
    if len(s) and s[-1] > 0:
        condition = float(s[0] / s[-1])
    else:
        condition = np.inf
    return half @ (U[:, determined].T @ z), half @ half.T, unknown, condition
