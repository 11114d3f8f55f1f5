"""Torque change: torques with and without the load on the same motion.

    tau_L - tau_0 = Y J phi

with tau_0 measured before (Khalil, Gautier and Lemoine 2007; 'Algorithm 1' in xu2024), friction taken as
unchanged; or with tau_0 from the controller's own model of the empty arm (gaz2017 eq. (26), 'manufacturer'),
which is taken to be exact but to know nothing of friction, so friction is estimated beside the payload.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard.arrays import Array
from steelyard.identification.covariance import correlated_covariance
from steelyard.identification.least_squares import solve_weighted
from steelyard.identification.problem import Rows, kinds
from steelyard.torque.methods.problem import FRICTION, Answer, WeighingProblem, factor_of, gain_response


def torque_change(problem: WeighingProblem) -> Answer:
    """The payload from torques before and after, friction taken as unchanged.

    Args:
        problem: loaded runs, and an empty run on the motion of each
    """
    pairs = problem.paired("an empty run")
    changed = [
        replace(loaded, tau=loaded.tau - empty.tau, usable=loaded.mask & empty.mask)
        for loaded, empty in pairs
    ]
    problem = replace(problem, loaded=changed)
    return _from_change(problem, problem.jacobian, None)


def manufacturer(problem: WeighingProblem) -> Answer:
    """The payload from torques less those of the controller's model of the empty arm.

    Args:
        problem: loaded runs, and for each the controller's torque of the empty arm as samples
    """
    pairs = problem.paired("the controller's torque of the empty arm")
    friction = np.flatnonzero(np.isin(kinds(problem.model.estimate.names), FRICTION))
    nuisance = np.eye(len(problem.model.estimate.value))[:, friction]
    changed = [replace(loaded, tau=loaded.tau - empty.tau) for loaded, empty in pairs]
    mixing = np.column_stack([nuisance, problem.jacobian])
    measured = [loaded.tau for loaded, _ in pairs]
    return _from_change(replace(problem, loaded=changed), mixing, measured)


def _from_change(problem: WeighingProblem, mixing: Array, measured: list[Array] | None) -> Answer:
    """The payload, the last ten unknowns of a mixing, from changes of torque.

    Gains scale the torques that were measured: the change itself where None are given.
    """
    n = problem.model.robot.n
    prior = np.zeros((len(problem.fixed), mixing.shape[1] + 1))
    prior[:, -11:] = problem.fixed
    rows = [problem.model.rows(part) for part in problem.loaded]
    factor = factor_of(rows)
    solution = solve_weighted(factor, prior, mixing)
    spread, _ = correlated_covariance(rows, solution, prior=prior, mixing=mixing)
    scaled = factor
    if measured is not None:
        scaled = factor_of([Rows(r.Y, tau, r.usable) for r, tau in zip(rows, measured, strict=True)])
    response = gain_response(scaled, solution, mixing, n)
    noise = np.sqrt(np.mean(solution.noise.reshape(-1, n) ** 2, axis=0))
    return Answer(
        solution.value[-10:], spread[-10:, -10:], solution.unknown[-10:], noise, 0.0, response[-10:]
    )
