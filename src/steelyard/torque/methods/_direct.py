"""Direct method: payload and friction together, with the empty arm as a prior.

Loaded torques follow tau = Y (pi + J phi) with the regressor Y of the empty arm. Both pi and phi
are estimated, weighted by the noise of each joint; the empty runs give a prior of pi with the
covariance C_0. Fc, Fv, B and Fs of the loaded runs are one more draw from the population of the
empty runs (see `identification._between_runs`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard.identification import RegressionFactor
from steelyard.identification._covariance import correlated_covariance
from steelyard.identification._least_squares import Solution, solve_weighted
from steelyard.torque._prior import (
    MAX_FRICTION_CONTRADICTION,
    OTHER_FRICTION,
    by_contradictions,
    contradiction,
    motion_through_prior,
    slow_noise,
    through_prior,
)
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
    answer, by_friction = _solved(problem, measured)
    if by_friction > MAX_FRICTION_CONTRADICTION:
        free, _ = _solved(replace(problem, friction_known=False), measured)
        return replace(free, remark=OTHER_FRICTION, friction_known=False)
    return answer


def _solved(problem: WeighingProblem, measured: Array) -> tuple[Answer, float]:
    """The answer, and how far the loaded runs move the friction of the empty runs."""
    model = problem.model
    mixing = problem.mixing
    prior = _Prior(problem.prior(), problem.friction_prior, measured)
    theta = model.estimate.value
    for _ in range(problem.iterations):
        rows = [model.rows(part, theta) for part in problem.loaded]
        factor = RegressionFactor.of_rows(rows)
        solution = solve_weighted(factor, prior.all, mixing)
        theta = mixing @ solution.value
    covariance, _ = correlated_covariance(rows, solution, prior=prior.all, mixing=mixing)
    return _answer(problem, factor, solution, covariance, prior)


def predicted(problem: WeighingProblem, payload: Array) -> Answer:
    """The answer of `direct` with its expected covariance.

    The torques of the loaded runs are not used: they are those that the model predicts with the
    payload, with the noise of the empty arm.

    Args:
        payload: its ten numbers, (10,)
    """
    model = problem.model
    nothing = np.zeros((0, problem.mixing.shape[1] + 1))
    prior = _Prior(problem.prior(), problem.friction_prior, nothing)
    theta = problem.mixing @ np.append(model.estimate.value, payload)
    rows = [model.rows(part, theta) for part in problem.loaded]
    factor = RegressionFactor.of_rows([replace(part, tau=part.Y @ theta) for part in rows])
    noise = np.resize(model.estimate.noise, len(factor.rows))
    solution = solve_weighted(factor, prior.all, problem.mixing, noise=noise)
    covariance = _of_empty_noise(problem, factor, solution, prior.all)
    covariance[solution.unknown, solution.unknown] = np.inf
    answer, _ = _answer(problem, factor, solution, covariance, prior)
    return replace(answer, value=payload, contradiction=0.0, contradicted=None)


class _Prior(NamedTuple):
    """Rows [Z z] of unit noise besides those of the loaded runs.

    Attributes:
        arm: of the empty arm and of fixed numbers
        friction: of friction, given the arm
        measured: n rows for each further observation
    """

    arm: Array
    friction: Array
    measured: Array

    @property
    def all(self) -> Array:
        """All rows, (r, m + 1)."""
        return np.vstack(self)

    @property
    def of_empty_runs(self) -> Array:
        """The rows that the gains of the empty runs move."""
        return np.vstack([self.arm, self.friction])


def _answer(
    problem: WeighingProblem,
    factor: RegressionFactor,
    solution: Solution,
    covariance: Array,
    prior: _Prior,
) -> tuple[Answer, float]:
    """The answer of a solution, with the effects of gains and of noise of the motion.

    The second value is the contradiction of the friction alone.
    """
    mixing = problem.mixing
    n = problem.model.robot.n
    model = problem.model
    beside = prior.measured.reshape(-1, n, prior.measured.shape[1])
    drifted = solution.gain_response(factor, n, mixing)
    drifted += solution.inverse @ np.einsum("kjm,kj->mj", beside[:, :, :-1], beside[:, :, -1])
    wrong = drifted + through_prior(model, solution, prior.of_empty_runs)
    noises = (covariance, _of_empty_noise(problem, factor, solution, prior.all))
    by_arm, by_friction = (
        contradiction(rows, solution.value, solution.inverse, noises)
        for rows in (prior.arm, prior.friction)
    )
    contradicted = by_contradictions(
        covariance[-10:, -10:],
        solution.inverse[:, -10:],
        [(by_arm, prior.arm), (by_friction, prior.friction)],
    )
    answer = Answer.of(
        solution,
        covariance,
        wrong,
        drifted,
        friction=problem.friction,
        contradiction=max(by_arm, by_friction),
    )
    noise_grams = np.concatenate([model.noise_grams(part) for part in problem.loaded])
    shift = solution.motion_shift(noise_grams, mixing)
    shift += motion_through_prior(model, solution, prior.of_empty_runs)
    return replace(answer, shift=shift[-10:], contradicted=contradicted), by_friction


def _of_empty_noise(
    problem: WeighingProblem, factor: RegressionFactor, solution: Solution, prior: Array
) -> Array:
    """The covariance if loaded torques are as noisy as those of the empty arm, (m, m)."""
    noise = np.resize(slow_noise(problem.model), len(factor.rows))
    R = (factor.R[:, :, :-1] * (solution.weights**2 * noise)[:, None, None]).reshape(-1, factor.p)
    rows = np.vstack([R @ problem.mixing, prior[:, :-1]]) @ solution.inverse
    return np.asarray(rows.T @ rows)
