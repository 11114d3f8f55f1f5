"""Batch estimators: the smallest ratio of two quadratic forms.

With v = (theta, -1), Z = [Y wrench] and weights W, all of them minimise

    v' M v / v' P v,      M = sum_k Z_k' W Z_k,      P the covariance that noise adds to M

and differ in P and W:

- least squares: only the last entry of P (the wrench alone is noisy), all axes alike, newton and newton metre
  counted alike, as in the papers. Biased where the motion is noisy.
- weighted least squares: the same, each axis weighted by the size of its own residuals, found in turns.
- total least squares: P is the identity, every entry of Z is suspected of the same error, liu2025 eq.
  (26)-(28): the right singular vector of the smallest singular value of Z.
- restricted total least squares: P is propagated from the noise of acceleration, angular velocity, angular
  acceleration and wrench through the regressor, liu2025 eq. (33). The weights are the inverse mean covariance
  of the residuals, which depends on the parameters; a few rounds settle it. Whatever W is, the answer is
  consistent; W makes it efficient.

The minimiser solves M v = mu P v with the smallest mu, found as the largest 1/mu of the symmetric pair
(P, M), which allows columns without noise. A prior adds rows of its own to M, and its count of rows to the
noise of the wrench. The scores are M_k v - mu P_k v, their slope is M - mu P, and the covariance follows from
them (`WrenchRegression.fit`).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.linalg import eigh

from steelyard.arrays import Array
from steelyard.wrist.regression import WrenchEstimator, WrenchFit, WrenchRegression
from steelyard.wrist.regressor import wrench_slope, wrench_tensor

_MOST_ROUNDS = 20
_RESTRICTED_ROUNDS = 4


def _least_squares(regression: WrenchRegression) -> WrenchFit:
    Y = regression.regressor.reshape(-1, regression.p)
    theta = np.linalg.lstsq(Y, regression.wrench.ravel(), rcond=None)[0]
    return fit_of_ratio(regression, np.asarray(theta), np.eye(6), noise="wrench", mu=0.0)


def _weighted_least_squares(regression: WrenchRegression) -> WrenchFit:
    Y, L = regression.regressor, regression.prior_information
    variance = np.diag(regression.wrench_covariance).copy()
    for _ in range(_MOST_ROUNDS):
        rows = Y / np.sqrt(variance)[:, None]
        right = regression.wrench / np.sqrt(variance)
        H = np.tensordot(rows, rows, axes=([0, 1], [0, 1])) + L
        moment = np.tensordot(rows, right, axes=2 * ([0, 1],))
        theta = np.linalg.solve(H, moment + L @ regression.prior_value)
        before = variance
        variance = np.maximum(((regression.wrench - Y @ theta) ** 2).mean(axis=0), 1e-24)
        if np.allclose(before, variance, rtol=1e-6):
            break
    W = np.diag(1 / variance)
    return fit_of_ratio(regression, np.asarray(theta), np.asarray(W), noise="wrench", mu=0.0)


def _total_least_squares(regression: WrenchRegression) -> WrenchFit:
    Z = regression.augmented.reshape(-1, regression.p + 1)
    _, s, Vt = np.linalg.svd(Z, full_matrices=False)
    theta, mu = -Vt[-1, :-1] / Vt[-1, -1], s[-1] ** 2 / (6 * len(regression))
    return fit_of_ratio(regression, theta, np.eye(6), noise="identity", mu=mu)


def _restricted_total_least_squares(regression: WrenchRegression) -> WrenchFit:
    theta = _weighted_least_squares(regression).value
    Z, L = regression.augmented, regression.prior_information
    prior = np.column_stack([np.eye(regression.p), regression.prior_value])
    for _ in range(_RESTRICTED_ROUNDS):
        W = np.linalg.inv(regression.residual_covariance(theta[:10]).mean(axis=0))
        M = np.einsum("nia,ij,njb->ab", Z, W, Z, optimize=True) + prior.T @ L @ prior
        P = np.zeros_like(M)
        P[:10, :10] = regression.regressor_noise(W)
        P[-1, -1] = len(regression) * np.trace(W @ regression.wrench_covariance) + np.linalg.matrix_rank(L)
        theta, mu = _smallest_ratio(M, P)
    return fit_of_ratio(regression, theta, W, noise="propagated", mu=mu)


LEAST_SQUARES = WrenchEstimator("LS", uses_prior=False, estimate=_least_squares)
WEIGHTED = WrenchEstimator("WLS", uses_prior=True, estimate=_weighted_least_squares)
TOTAL = WrenchEstimator("TLS", uses_prior=False, estimate=_total_least_squares)
RESTRICTED = WrenchEstimator("restricted TLS", uses_prior=True, estimate=_restricted_total_least_squares)


def fit_of_ratio(
    regression: WrenchRegression,
    theta: Array,
    W: Array,
    *,
    noise: Literal["wrench", "identity", "propagated"],
    mu: float,
) -> WrenchFit:
    """The fit with its covariance at the theta of the smallest ratio.

    Args:
        regression: that was solved
        theta: the solution, (p,)
        W: weights, (6, 6)
        noise: what P was
        mu: the smallest ratio
    """
    Y = regression.regressor
    residual = regression.wrench - Y @ theta
    scores = (Y.transpose(0, 2, 1) @ (W @ residual.T).T[:, :, None])[:, :, 0]
    slope = np.einsum("nia,ij,njb->ab", Y, W, Y, optimize=True)
    if noise == "identity":
        trace = np.trace(W)
        scores = scores + mu * trace * theta
        slope = slope - mu * trace * len(regression) * np.eye(regression.p)
    elif noise == "propagated":
        lost = W @ wrench_slope(theta[:10]) @ regression.x_covariance
        scores[:, :10] += mu * np.tensordot(lost, wrench_tensor(), axes=([1, 2], [1, 0]))
        slope[:10, :10] -= mu * regression.regressor_noise(W)
    S = regression.residual_covariance(theta[:10]).mean(axis=0)
    scale = np.einsum("ni,ij,nj->", residual, np.linalg.inv(S), residual) / residual.size
    return regression.fit(theta, slope, scores, float(scale))


def _smallest_ratio(M: Array, P: Array) -> tuple[Array, float]:
    """The theta of the v = (theta, -1) with the smallest v'Mv / v'Pv, (p,), and that ratio."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(M), 1e-300))
    scaled = M * np.outer(scale, scale) + 1e-15 * np.eye(len(M))
    last = len(M) - 1
    values, vectors = eigh(P * np.outer(scale, scale), scaled, subset_by_index=[last, last])
    v = vectors[:, 0] * scale
    return -v[:-1] / v[-1], float(1.0 / values[0]) if values[0] > 0 else np.inf
