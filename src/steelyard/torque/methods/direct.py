"""Direct: payload and friction estimated together, the empty arm as a prior with its own uncertainty.

Loaded torques follow tau = Y (pi + J phi) with the regressor Y of the empty arm. Both pi and phi are
estimated, weighted by the noise of each joint; what the empty runs told of pi is a prior of covariance C_0.
The prior says nothing of Fc, Fv, B and Fs: they are estimated anew.
"""

from __future__ import annotations

import numpy as np

from steelyard.arrays import Array
from steelyard.identification import DynamicModel
from steelyard.identification.covariance import correlated_covariance
from steelyard.identification.least_squares import Solution, solve_weighted
from steelyard.torque.methods.problem import Answer, WeighingProblem, factor_of, gain_response


def direct(problem: WeighingProblem) -> Answer:
    """The payload with the empty arm as a prior.

    Args:
        problem: loaded runs
    """
    return with_prior(problem, np.zeros((0, problem.mixing.shape[1] + 1)))


def with_prior(problem: WeighingProblem, measured: Array) -> Answer:
    """The payload with the empty arm as a prior, from loaded runs and what was measured beside them.

    Args:
        problem: loaded runs
        measured: other rows [Z z] of unit noise, those of n joints by turns, (k n, p + 11)
    """
    model, mixing = problem.model, problem.mixing
    prior = np.vstack([problem.prior(), measured])
    theta = model.estimate.value
    for _ in range(problem.rounds):
        rows = [model.rows(part, theta) for part in problem.loaded]
        factor = factor_of(rows)
        solution = solve_weighted(factor, prior, mixing)
        theta = mixing @ solution.value
    spread, _ = correlated_covariance(rows, solution, prior=prior, mixing=mixing)
    n = model.robot.n
    arm = prior[: len(prior) - len(measured)]
    response = gain_response(factor, solution, mixing, n) + through_prior(model, solution, arm)
    beside = measured.reshape(-1, n, measured.shape[1])
    response += solution.inverse @ np.einsum("kjm,kj->mj", beside[:, :, :-1], beside[:, :, -1])
    noise = np.sqrt(np.mean(solution.noise.reshape(-1, n) ** 2, axis=0))
    return Answer(
        solution.value[-10:],
        spread[-10:, -10:],
        solution.unknown[-10:],
        noise,
        float(np.sqrt(np.mean((arm[:, :-1] @ solution.value - arm[:, -1]) ** 2))),
        response[-10:],
    )


def through_prior(model: DynamicModel, solution: Solution, prior: Array) -> Array:
    """How a solution changes because the gains change what the empty runs told, (m, n).

    Args:
        model: of the empty arm
        solution: of m unknowns, the parameters of the model first
        prior: rows [Z z] of what the empty runs told, (r, m + 1)
    """
    moved = np.zeros((prior.shape[1] - 1, model.robot.n))
    moved[: len(model.estimate.value)] = empty_response(model)
    Z = prior[:, :-1]
    return np.asarray(solution.inverse @ (Z.T @ (Z @ moved)))


def empty_response(model: DynamicModel) -> Array:
    """How the parameters of the empty arm change with the logarithm of each drive's gain, (p, n).

    Args:
        model: of the empty arm
    """
    solution = solve_weighted(model.factor)
    return gain_response(model.factor, solution, np.eye(model.factor.p), model.robot.n)
