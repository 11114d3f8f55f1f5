"""Difference: base parameters with and without the load (gaz2017 eq. (21)-(28)).

The loaded arm is identified on its own, pi_L = Y_L^# tau_L, and epsilon = pi_L - pi = J phi. The
paper takes phi = J^# epsilon with equal weights; the weighted form uses the covariance of epsilon,
S = C_L + C_0: phi = (J' S^-1 J)^-1 J' S^-1 epsilon.
"""

from __future__ import annotations

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard.errors import InvalidSamples
from steelyard.identification import RegressionFactor
from steelyard.identification._covariance import correlated_covariance
from steelyard.identification._least_squares import solve_weighted
from steelyard.torque.methods._problem import Answer, WeighingProblem

_MAX_ROUNDING = 1e-10  # lower limit of eigenvalues, over the largest


def difference(problem: WeighingProblem) -> Answer:
    """The payload from the difference of base parameters, with equal weights, as published."""
    return _difference(problem, weighted=False)


def difference_weighted(problem: WeighingProblem) -> Answer:
    """The payload from the difference of base parameters, weighted by its covariance."""
    return _difference(problem, weighted=True)


def _difference(problem: WeighingProblem, *, weighted: bool) -> Answer:
    model = problem.model
    n = model.robot.n
    theta = model.estimate.value
    for _ in range(problem.iterations):
        rows = [model.rows(part, theta) for part in problem.loaded]
        factor = RegressionFactor.of_rows(rows)
        solution = solve_weighted(factor)
        theta = solution.value
    of_loaded, _ = correlated_covariance(rows, solution)
    shown = np.isfinite(np.diag(model.estimate.covariance)) & ~solution.unknown
    kept = np.flatnonzero(problem.jacobian.any(axis=1) & shown)
    if not kept.size:
        raise InvalidSamples(
            "these runs determine no parameter of the loaded arm: move more joints, for longer"
        )
    S = (of_loaded + model.estimate.covariance)[np.ix_(kept, kept)]
    solve, unknown = _payload_of_difference(
        problem.jacobian[kept], S if weighted else None, problem.fixed
    )
    epsilon = np.append((theta - model.estimate.value)[kept], problem.fixed[:, -1])
    widths = np.zeros((len(epsilon), len(epsilon)))
    widths[: len(kept), : len(kept)] = S
    widths[len(kept) :, len(kept) :] = np.eye(len(problem.fixed))
    covariance = solve @ widths @ solve.T
    covariance[unknown, unknown] = np.inf
    drifted = solution.gain_response(factor, n)
    wrong = drifted - model.gain_response
    by_gains, by_drift = (solve[:, : len(kept)] @ moved[kept] for moved in (wrong, drifted))
    noise = np.sqrt(np.mean(solution.noise.reshape(-1, n) ** 2, axis=0))
    value = solve @ epsilon
    rest = _whitening(S) @ (epsilon[: len(kept)] - problem.jacobian[kept] @ value)
    if weighted:
        contradiction = np.linalg.norm(rest) / np.sqrt(max(len(kept) - (~unknown).sum(), 1))
    else:
        contradiction = 0.0
    return Answer(value, covariance, unknown, noise, float(contradiction), by_gains, by_drift)


def _payload_of_difference(J: Array, S: Array | None, fixed: Array) -> tuple[Array, Mask]:
    """The matrix from parameter differences to a payload, and the unknown numbers, (10,).

    Args:
        J: payload Jacobian, (k, 10)
        S: covariance of the difference, (k, k); None for equal weights (gaz2017 eq. (28))
        fixed: rows [Z z] of fixed numbers, (f, 11)
    """
    if S is None:
        whitening = np.eye(len(J))
    else:
        whitening = _whitening(S)
    rows = np.vstack([whitening @ J, fixed[:, :-1]])
    length = np.linalg.norm(rows, axis=0)
    scale = np.where(length > 0, length, 1.0)
    U, s, Vt = np.linalg.svd(rows / scale, full_matrices=False)
    shown = s > 1e-10 * s[0]
    unknown = (np.abs(Vt[~shown]) > 1e-6).any(axis=0) | (length == 0)
    if len(s) < 10:
        unknown |= (Vt[shown] ** 2).sum(axis=0) < 1 - 1e-6
    inverse = (Vt[shown].T / s[shown]) @ U[:, shown].T / scale[:, None]
    inverse[:, : len(J)] = inverse[:, : len(J)] @ whitening
    return np.asarray(inverse), np.asarray(unknown)


def _whitening(S: Array) -> Array:
    """W with W S W' = 1, with a lower limit on the eigenvalues of S for rounding."""
    scale = np.sqrt(np.diag(S))
    values, vectors = np.linalg.eigh(S / np.outer(scale, scale))
    return np.asarray((vectors / np.sqrt(np.maximum(values, _MAX_ROUNDING * values[-1]))).T / scale)
