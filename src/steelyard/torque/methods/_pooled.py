"""Pooled: empty and loaded runs in one fit with separate friction (gaz2017, conclusions).

    empty  tau = Y_0 (pi, f_0),    loaded  tau = Y_L (pi, f_L) + Y_L J phi

It is the direct method with the empty runs themselves in place of their estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.identification import RegressionFactor
from steelyard.identification._covariance import correlated_covariance
from steelyard.identification._least_squares import solve_weighted
from steelyard.identification._problem import Rows
from steelyard.recording import Samples
from steelyard.torque.methods._problem import Answer, WeighingProblem


def pooled(problem: WeighingProblem) -> Answer:
    """The payload from one fit of empty and loaded runs.

    Args:
        problem: loaded runs, and the empty runs
    """
    n = problem.model.robot.n
    model = problem.model
    if not problem.empty:
        raise InvalidSamples(
            "the pooled method needs the empty runs too, to fit them with the loaded ones"
        )
    p = len(model.estimate.value)
    own = model.estimate.parameters.daily
    none = np.zeros((p, int(own.sum())))
    of_empty = np.column_stack([np.eye(p), none, np.zeros((p, 10))])
    of_loaded = np.column_stack([np.diag(~own).astype(float), np.eye(p)[:, own], problem.jacobian])
    prior = np.zeros((len(problem.fixed), of_loaded.shape[1] + 1))
    prior[:, -11:] = problem.fixed
    theta = [model.estimate.value, model.estimate.value]
    for _ in range(problem.iterations):
        rows = _rows(problem, problem.empty, theta[0], of_empty)
        rows += _rows(problem, problem.loaded, theta[1], of_loaded)
        factor = RegressionFactor.of_rows(rows)
        solution = solve_weighted(factor, prior)
        theta = [of_empty @ solution.value, of_loaded @ solution.value]
    covariance, _ = correlated_covariance(rows, solution, prior=prior)
    noise = np.sqrt(np.mean(solution.noise.reshape(-1, n)[len(problem.empty) :] ** 2, axis=0))
    wrong = solution.gain_response(factor, n)
    weights = solution.weights.copy()
    weights[: n * len(problem.empty)] = 0.0
    drifted = replace(solution, weights=weights).gain_response(factor, n)
    friction = np.concatenate([own, np.ones(none.shape[1], bool), np.zeros(10, bool)])
    return replace(Answer.of(solution, covariance, wrong, drifted, friction=friction), noise=noise)


def _rows(
    problem: WeighingProblem, runs: Sequence[Samples], theta: Array, mixing: Array
) -> list[Rows]:
    """The rows of some runs in the common unknowns."""
    made = [problem.model.rows(part, theta) for part in runs]
    return [Rows(part.Y @ mixing, part.tau, part.usable) for part in made]
