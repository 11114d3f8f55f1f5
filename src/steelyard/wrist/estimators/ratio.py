"""What least squares, total and restricted total least squares share: the smallest ratio of two forms.

With v = (theta, -1), Z = [Y wrench] and weights W, all of them minimise

    v' M v / v' P v,      M = sum_k Z_k' W Z_k,      P the covariance that noise adds to M

and differ in P: only the last entry (least squares: the wrench alone is noisy), the identity (total least
squares), or what the sensors' noise gives (restricted). The minimiser solves M v = mu P v with the smallest
mu, found as the largest 1/mu of the symmetric pair (P, M), which allows columns without noise. A prior adds
rows of its own to M, and its count of rows to the noise of the wrench. The scores are M_k v - mu P_k v,
their slope is M - mu P, and the covariance follows from them (`covariance`).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from steelyard.arrays import Array
from steelyard.wrist.covariance import sandwich
from steelyard.wrist.problem import WrenchFit, WrenchProblem, noise_of_rows, row_slope
from steelyard.wrist.regressor import wrench_tensor


def augmented(problem: WrenchProblem) -> Array:
    """The rows Z = [Y wrench], (N, 6, p + 1).

    Args:
        problem: rows and noise
    """
    return np.concatenate([problem.regressor, problem.wrench[:, :, None]], axis=2)


def propagated_noise(problem: WrenchProblem, W: Array) -> Array:
    """The covariance that the sensors' noise adds to M, (p + 1, p + 1).

    Args:
        problem: rows and noise
        W: weights, (6, 6)
    """
    P = np.zeros((problem.p + 1, problem.p + 1))
    P[:10, :10] = noise_of_rows(problem.x_covariance, W)
    P[-1, -1] = len(problem) * np.trace(W @ problem.wrench_covariance)
    return P


def with_prior(M: Array, P: Array, problem: WrenchProblem) -> tuple[Array, Array]:
    """Both forms with the prior's rows.

    Args:
        M: of the rows, (p + 1, p + 1)
        P: their noise, (p + 1, p + 1)
        problem: with its prior
    """
    rows = np.column_stack([np.eye(problem.p), problem.prior_value])
    noise = P.copy()
    noise[-1, -1] += np.linalg.matrix_rank(problem.prior_information)
    return M + rows.T @ problem.prior_information @ rows, noise


def smallest_ratio(M: Array, P: Array) -> tuple[Array, float]:
    """The theta of the v = (theta, -1) with the smallest v'Mv / v'Pv, (p,), and that ratio.

    Args:
        M: positive semi-definite, (p + 1, p + 1)
        P: positive semi-definite, (p + 1, p + 1)
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diag(M), 1e-300))
    scaled = M * np.outer(scale, scale)
    scaled = scaled + 1e-15 * np.eye(len(M))
    last = len(M) - 1
    values, vectors = eigh(P * np.outer(scale, scale), scaled, subset_by_index=[last, last])
    v = vectors[:, 0] * scale
    return -v[:-1] / v[-1], float(1.0 / values[0]) if values[0] > 0 else np.inf


def fit_of_value(problem: WrenchProblem, theta: Array, W: Array, *, noise: str, mu: float) -> WrenchFit:
    """The fit with its covariance at a solution.

    Args:
        problem: rows and noise
        theta: the solution, (p,)
        W: weights, (6, 6)
        noise: 'wrench', 'identity' or 'propagated': what P was
        mu: the smallest ratio
    """
    Y = problem.regressor
    residual = problem.wrench - Y @ theta
    scores = (Y.transpose(0, 2, 1) @ (W @ residual.T).T[:, :, None])[:, :, 0]
    slope = np.einsum("nia,ij,njb->ab", Y, W, Y, optimize=True)
    if noise == "identity":
        trace = np.trace(W)
        scores = scores + mu * trace * theta
        slope = slope - mu * trace * len(problem) * np.eye(problem.p)
    elif noise == "propagated":
        lost = W @ row_slope(theta[:10]) @ problem.x_covariance
        scores[:, :10] += mu * np.tensordot(lost, wrench_tensor(), axes=([1, 2], [1, 0]))
        slope[:10, :10] -= mu * noise_of_rows(problem.x_covariance, W)
    covariance = sandwich(slope, scores, problem.prior_information)
    S = problem.residual_covariance(theta[:10]).mean(axis=0)
    size = np.einsum("ni,ij,nj->", residual, np.linalg.inv(S), residual) / residual.size
    return WrenchFit(theta, covariance, residual, float(size))
