"""Direct method: payload and friction together, with the empty arm as a prior.

Loaded torques follow tau = Y (pi + J phi) with the regressor Y of the empty arm. Both pi and phi
are estimated, weighted by the noise of each joint; the empty runs give a prior of pi with the
covariance C_0. The prior leaves Fc, Fv, B and Fs free: they are estimated from the loaded runs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard._arrays import Array
from steelyard.identification import RegressionFactor
from steelyard.identification._covariance import correlated_covariance
from steelyard.identification._least_squares import Solution, solve_weighted
from steelyard.torque._prior import contradiction, motion_through_prior, slow_noise, through_prior
from steelyard.torque.methods._problem import Answer, WeighingProblem


def direct(problem: WeighingProblem) -> Answer:
    """The payload with the empty arm as a prior."""
    return with_prior(problem, np.zeros((0, problem.mixing.shape[1] + 1)))


def with_prior(problem: WeighingProblem, measured: Array) -> Answer:
    """The payload with the empty arm as a prior, from loaded runs and other evidence.

    Args:
        measured: further rows [Z z] of unit noise, n rows (one for each joint) for each of k
            observations, (k n, p + 11)
    """
    model = problem.model
    mixing = problem.mixing
    prior = np.vstack([problem.prior(), measured])
    theta = model.estimate.value
    for _ in range(problem.iterations):
        rows = [model.rows(part, theta) for part in problem.loaded]
        factor = RegressionFactor.of_rows(rows)
        solution = solve_weighted(factor, prior, mixing)
        theta = mixing @ solution.value
    covariance, _ = correlated_covariance(rows, solution, prior=prior, mixing=mixing)
    return _answer(problem, factor, solution, covariance, prior, measured)


def predicted(problem: WeighingProblem, payload: Array) -> Answer:
    """The answer of `direct` with its expected covariance.

    The torques of the loaded runs are not used: they are those that the model predicts with the
    payload, with the noise of the empty arm.

    Args:
        payload: its ten numbers, (10,)
    """
    model = problem.model
    prior = problem.prior()
    theta = problem.mixing @ np.append(model.estimate.value, payload)
    rows = [model.rows(part, theta) for part in problem.loaded]
    factor = RegressionFactor.of_rows([replace(part, tau=part.Y @ theta) for part in rows])
    noise = np.resize(model.estimate.noise, len(factor.rows))
    solution = solve_weighted(factor, prior, problem.mixing, noise=noise)
    covariance = _of_empty_noise(problem, factor, solution, prior)
    covariance[solution.unknown, solution.unknown] = np.inf
    nothing = np.zeros((0, prior.shape[1]))
    return replace(
        _answer(problem, factor, solution, covariance, prior, nothing),
        value=payload,
        contradiction=0.0,
    )


def _answer(
    problem: WeighingProblem,
    factor: RegressionFactor,
    solution: Solution,
    covariance: Array,
    prior: Array,
    measured: Array,
) -> Answer:
    """The answer of a solution, with the effects of gains and of noise of the motion."""
    mixing = problem.mixing
    n = problem.model.robot.n
    model = problem.model
    arm = prior[: len(prior) - len(measured)]
    beside = measured.reshape(-1, n, measured.shape[1])
    drifted = solution.gain_response(factor, n, mixing)
    drifted += solution.inverse @ np.einsum("kjm,kj->mj", beside[:, :, :-1], beside[:, :, -1])
    wrong = drifted + through_prior(model, solution, arm)
    expected = _of_empty_noise(problem, factor, solution, prior)
    moved = contradiction(arm, solution.value, solution.inverse, (covariance, expected))
    answer = Answer.of(
        solution, covariance, wrong, drifted, friction=problem.friction, contradiction=moved
    )
    noise_grams = np.concatenate([model.noise_grams(part) for part in problem.loaded])
    shift = solution.motion_shift(noise_grams, mixing) + motion_through_prior(model, solution, arm)
    return replace(answer, shift=shift[-10:])


def _of_empty_noise(
    problem: WeighingProblem, factor: RegressionFactor, solution: Solution, prior: Array
) -> Array:
    """The covariance if loaded torques are as noisy as those of the empty arm, (m, m)."""
    noise = np.resize(slow_noise(problem.model), len(factor.rows))
    R = (factor.R[:, :, :-1] * (solution.weights**2 * noise)[:, None, None]).reshape(-1, factor.p)
    rows = np.vstack([R @ problem.mixing, prior[:, :-1]]) @ solution.inverse
    return np.asarray(rows.T @ rows)
