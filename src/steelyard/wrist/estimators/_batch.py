"""Estimators of a whole regression.

**The smallest ratio of two quadratic forms.** With v = (theta, -1), Z = [Y wrench] and weights W,
four of them minimise

    v' M v / v' P v,      M = sum_k Z_k' W Z_k,      P the covariance that noise adds to M

and differ in P and W:

- least squares: only the last entry of P (only the wrench is noisy), all axes with the same weight,
  newton and newton metre alike, as in the papers. Biased if the motion is noisy.
- weighted least squares: the same, each axis weighted by the size of its residuals, found
  alternately.
- total least squares: P is the identity, every entry of Z has the same error, liu2025 eq.
  (26)-(28): the right singular vector of the smallest singular value of Z.
- restricted total least squares: P is propagated from the noise of acceleration, angular velocity,
  angular acceleration and wrench through the regressor, liu2025 eq. (33). The weights are the
  inverse mean covariance of the residuals, which depends on the parameters and converges in a few
  iterations. The answer is consistent for any W; this W makes it efficient.

The minimiser solves M v = mu P v with the smallest mu, found as the largest 1/mu of the symmetric
pair (P, M), which permits columns without noise. A prior adds rows to M, and their number to the
noise of the wrench. The scores are M_k v - mu P_k v, their derivative is M - mu P, and the
covariance follows from both (`WrenchRegression.fit_of_ratio`).

**Maximum likelihood** with errors in the motion, the default. Each sample has its own error
covariance Sx_k, because the effect of joint noise on the acceleration depends on the posture. With
normal errors the true features are profiled out, and the cost to minimise is

    sum_k r_k' S_k(phi)^-1 r_k,    r_k = wrench_k - Y(x_k) phi - E_k eta,   S_k = Sw + B Sx_k B'

with B = B(phi), whose expectation has its minimum at the truth for any Sx. With u_k = S_k^-1 r_k
the best guess of the true features is x_k + Sx_k B' u_k, the gradient (envelope theorem) is -2 sum
Y(that guess)' u_k, and the expected curvature 2 sum (Y' S^-1 Y - E[dY' S^-1 dY]): Fisher's scoring
with step halving, which starts from restricted total least squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from steelyard._arrays import Array
from steelyard.wrist._regression import WrenchEstimator, WrenchFit, WrenchRegression
from steelyard.wrist._regressor import wrench_regressor, wrench_slope

_MAX_WEIGHT_ITERATIONS = 20
_RESTRICTED_ITERATIONS = 4
_MAX_SCORING_STEPS = 50
_MAX_STEP_HALVINGS = 12
_LIKELIHOOD_TOLERANCE = 1e-8  # change of the logarithm; a step of 1e-4 standard deviations


def _least_squares(regression: WrenchRegression) -> WrenchFit:
    Y = regression.regressor.reshape(-1, regression.p)
    theta = np.linalg.lstsq(Y, regression.wrench.ravel(), rcond=None)[0]
    return regression.fit_of_ratio(np.asarray(theta), np.eye(6), noise="wrench", mu=0.0)


def _weighted_least_squares(regression: WrenchRegression) -> WrenchFit:
    L = regression.prior_information
    p = regression.p
    Z = regression.augmented
    triangles = np.array([np.linalg.qr(Z[:, i], mode="r") for i in range(6)])
    squares = triangles.transpose(0, 2, 1) @ triangles
    variance = np.diag(regression.wrench_covariance).copy()
    for _ in range(_MAX_WEIGHT_ITERATIONS):
        M = np.tensordot(1 / variance, squares, axes=1)
        theta = np.linalg.solve(M[:p, :p] + L, M[:p, p] + L @ regression.prior_value)
        previous = variance
        left = triangles @ np.append(theta, -1.0)
        variance = np.maximum((left**2).sum(axis=1) / len(regression), 1e-24)
        if np.allclose(previous, variance, rtol=1e-6):
            break
    W = np.diag(1 / variance)
    return regression.fit_of_ratio(np.asarray(theta), np.asarray(W), noise="wrench", mu=0.0)


def _total_least_squares(regression: WrenchRegression) -> WrenchFit:
    Z = regression.augmented.reshape(-1, regression.p + 1)
    _, s, Vt = np.linalg.svd(Z, full_matrices=False)
    theta = -Vt[-1, :-1] / Vt[-1, -1]
    mu = s[-1] ** 2 / (6 * len(regression))
    return regression.fit_of_ratio(theta, np.eye(6), noise="identity", mu=mu)


def _restricted_total_least_squares(regression: WrenchRegression) -> WrenchFit:
    theta = _weighted_least_squares(regression).value
    Z = regression.augmented
    L = regression.prior_information
    prior = np.column_stack([np.eye(regression.p), regression.prior_value])
    for _ in range(_RESTRICTED_ITERATIONS):
        W = np.linalg.inv(regression.residual_covariance(theta[:10]).mean(axis=0))
        M = Z.reshape(-1, Z.shape[2]).T @ (W @ Z).reshape(-1, Z.shape[2]) + prior.T @ L @ prior
        P = np.zeros_like(M)
        P[:10, :10] = regression.regressor_noise(W)
        P[-1, -1] = len(regression) * np.trace(
            W @ regression.mean_wrench_covariance
        ) + np.linalg.matrix_rank(L)
        theta, mu = _smallest_ratio(M, P)
    return regression.fit_of_ratio(theta, W, noise="propagated", mu=mu)


def _maximum_likelihood(regression: WrenchRegression) -> WrenchFit:
    point = _Point.at(regression, _restricted_total_least_squares(regression).value)
    L = regression.prior_information
    freedom = regression.wrench.size - regression.p
    for _ in range(_MAX_SCORING_STEPS):
        scale = max(point.chi2 / freedom, 1e-12)
        gradient = point.scores.sum(axis=0) / scale + L @ point.prior_error
        step = np.asarray(np.linalg.solve(_positive_definite(point.slope) / scale + L, gradient))
        better = _improved(regression, point, step, scale)
        if better is None:
            break
        point = better
        if np.abs(step) @ np.abs(gradient) < _LIKELIHOOD_TOLERANCE:
            break
    return regression.fit(
        point.theta, point.slope / scale, point.scores / scale, point.chi2 / freedom
    )


LEAST_SQUARES = WrenchEstimator("LS", uses_prior=False, estimate=_least_squares)
WEIGHTED = WrenchEstimator("WLS", uses_prior=True, estimate=_weighted_least_squares)
TOTAL = WrenchEstimator("TLS", uses_prior=False, estimate=_total_least_squares)
RESTRICTED = WrenchEstimator(
    "restricted TLS", uses_prior=True, estimate=_restricted_total_least_squares
)
MAXIMUM_LIKELIHOOD = WrenchEstimator(
    "maximum likelihood", uses_prior=True, estimate=_maximum_likelihood
)


def _smallest_ratio(M: Array, P: Array) -> tuple[Array, float]:
    """The theta of the v = (theta, -1) with the smallest v'Mv / v'Pv, (p,), and that ratio."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(M), 1e-300))
    scaled = M * np.outer(scale, scale) + 1e-15 * np.eye(len(M))
    last = len(M) - 1
    values, vectors = eigh(P * np.outer(scale, scale), scaled, subset_by_index=[last, last])
    v = vectors[:, 0] * scale
    return -v[:-1] / v[-1], float(1.0 / values[0]) if values[0] > 0 else np.inf


@dataclass(frozen=True, eq=False)
class _Point:
    """The likelihood at some parameters, for residuals of the sensors' nominal noise."""

    theta: Array
    prior_error: Array
    chi2: float
    scores: Array
    slope: Array

    @classmethod
    def at(cls, regression: WrenchRegression, theta: Array) -> _Point:
        B = wrench_slope(theta[:10])
        inverse = np.asarray(np.linalg.inv(regression.residual_covariance(theta[:10])))
        Y = regression.regressor
        residual = regression.wrench - Y @ theta
        u = (inverse @ residual[:, :, None])[:, :, 0]
        guess = regression.x + (regression.x_covariance @ (u @ B)[:, :, None])[:, :, 0]
        Y_guess = np.concatenate([wrench_regressor(guess), regression.exact], axis=2)
        scores = (u[:, None, :] @ Y_guess)[:, 0]
        slope = Y.reshape(-1, len(theta)).T @ (inverse @ Y).reshape(-1, len(theta))
        slope[:10, :10] -= regression.regressor_noise(inverse)
        return cls(
            theta, regression.prior_value - theta, float((u * residual).sum()), scores, slope
        )

    def cost(self, prior_information: Array, scale: float) -> float:
        """The cost to minimise, with the variance of the residuals scaled."""
        return self.chi2 / scale + float(self.prior_error @ prior_information @ self.prior_error)


def _improved(
    regression: WrenchRegression, point: _Point, step: Array, scale: float
) -> _Point | None:
    """The point after the longest halved step that lowers the cost; None if there is none."""
    L = regression.prior_information
    for k in range(_MAX_STEP_HALVINGS):
        trial = _Point.at(regression, point.theta + step / 2**k)
        if trial.cost(L, scale) <= point.cost(L, scale):
            return trial
    return None


def _positive_definite(slope: Array) -> Array:
    """The curvature with the absolute values of its eigenvalues, so that steps reduce the cost."""
    scale = np.sqrt(np.maximum(np.abs(np.diag(slope)), 1e-300))
    values, vectors = np.linalg.eigh(slope / np.outer(scale, scale))
    values = np.maximum(np.abs(values), 1e-12)
    return np.asarray((vectors * values) @ vectors.T * np.outer(scale, scale))
