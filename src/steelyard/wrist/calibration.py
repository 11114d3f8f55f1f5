"""How noisy the wrench really is: what the residuals have beyond the noise of the motion.

Errors in variables need the ratio of two noises, and a sensor's data sheet tells only one part of the
wrench's: cables, hysteresis and cross-talk come on top. If it is taken too small, total least squares
blames the motion for everything, and the inertia explodes. But the noise Sx of the motion alone is enough
for a consistent answer,

    (sum Y'WY - E[dY'WdY]) theta = sum Y'W wrench          (corrected least squares, any W)

and at that answer the residuals have the covariance Sw + B Sx B', from which Sw follows, axis by axis. It
is never taken smaller than the sensor's own noise, nor larger while the noise of the motion, which is
itself known to some ten percent only, explains the residuals.
"""

from __future__ import annotations

import numpy as np

from steelyard.arrays import Array
from steelyard.wrist.estimators.weighted import WeightedLeastSquares
from steelyard.wrist.problem import WrenchProblem, noise_of_rows, row_slope

_ROUNDS = 6
_KNOWN = 1.25  # times its variance: what the noise of the motion may explain
_LEAST = 0.02  # of the curvature must be left in every direction, else the correction is not used


def calibrated_wrench_covariance(problem: WrenchProblem) -> Array:
    """The covariance of the wrench's errors that the residuals show, diagonal, (6, 6).

    Args:
        problem: rows and noise; its own wrench covariance is the least
    """
    theta = WeightedLeastSquares().estimate(problem).value
    Y, L = problem.regressor, problem.prior_information
    least, Sx = np.diag(problem.wrench_covariance), problem.x_covariance.mean(axis=0)
    variance = least
    for _ in range(_ROUNDS):
        motion = row_slope(theta[:10]) @ Sx @ row_slope(theta[:10]).T
        residual = problem.wrench - Y @ theta
        before = variance
        squares = (residual**2).mean(axis=0)
        beyond = squares > least + _KNOWN * np.diag(motion)
        variance = np.where(beyond, np.maximum(squares - np.diag(motion), least), least)
        W = np.linalg.inv(np.diag(variance) + motion)
        theta = _corrected(problem, Y, W, L, theta)
        if np.allclose(before, variance, rtol=1e-3):
            break
    return np.diag(variance)


def _corrected(problem: WrenchProblem, Y: Array, W: Array, L: Array, theta: Array) -> Array:
    """Corrected least squares; the present value where the correction would leave too little."""
    WY = W @ Y
    H = np.tensordot(Y, WY, axes=([0, 1], [0, 1]))
    left = H.copy()
    left[:10, :10] -= noise_of_rows(problem.x_covariance, W)
    whole = np.linalg.cholesky(H + L + 1e-12 * np.diag(np.diag(H)))
    share = np.linalg.eigvalsh(np.linalg.solve(whole, np.linalg.solve(whole, left + L).T))
    if share[0] < _LEAST:
        return theta
    moment = np.tensordot(WY, problem.wrench, axes=([0, 1], [0, 1]))
    return np.asarray(np.linalg.solve(left + L, moment + L @ problem.prior_value))
