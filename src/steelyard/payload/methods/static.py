"""Static: mass and centre of mass from postures at rest (gaz2017 eq. (38)-(44)); combined with motion (45).

At rest tau = Y(q, 0, 0) (pi + J phi) depends on the first four numbers of phi alone. Rows of one rest are
averaged to one equation, since what disturbs them, static friction, is one draw for each posture; its size
is taken from the residuals. The arm's gravity is the prior that its empty runs gave, with their uncertainty.
Joints that gravity does not move tell nothing, and are weighted for themselves, so none need be left out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import InvalidSamples
from steelyard.identification.least_squares import solve_weighted
from steelyard.identification.problem import Rows, kinds
from steelyard.payload.methods.direct import empty_response, moved_prior, with_prior
from steelyard.payload.methods.problem import Answer, WeighingProblem, factor_of, gain_response
from steelyard.recording import Samples

__all__ = ["combined", "postures_at_rest", "static"]

Array = NDArray[np.float64]

_REST = 0.005  # slower is at rest, [rad/s]
_SAME = 0.005  # postures that are nearer are one, [rad]
_SETTLE_S = 0.3  # after the arm has stopped it still rings
_MOVING = ("Fc", "Fv", "Fs", "Fl")


def static(problem: WeighingProblem) -> Answer:
    """Mass and centre of mass from postures at rest; the inertia stays unknown.

    Args:
        problem: loaded runs that rest now and then
    """
    model, n = problem.model, problem.model.robot.n
    rows = _posture_rows(problem)
    k = len(rows.tau)
    mixing = problem.mixing[:, :-6]
    prior = problem.prior(_MOVING)
    if prior[:, -7:-1].any():
        raise InvalidSamples("at rest the inertia has no effect: fix none of its numbers")
    prior = np.delete(prior, np.s_[-7:-1], axis=1)
    factor = factor_of([rows])
    solution = solve_weighted(factor, prior, mixing)
    moved = np.zeros((mixing.shape[1], n))
    moved[: len(model.estimate.value)] = empty_response(model)
    Z = prior[:, :-1]
    response = gain_response(factor, solution, mixing, n) + solution.inverse @ (Z.T @ (Z @ moved))
    covariance, per_gain, value = np.zeros((10, 10)), np.zeros((10, n)), np.zeros(10)
    value[:4], covariance[:4, :4] = solution.value[-4:], solution.inverse[-4:, -4:]
    per_gain[:4] = response[-4:]
    unknown = np.append(_untold(rows, problem.jacobian[:, :4], prior), np.ones(6, bool))
    covariance[unknown, unknown] = np.inf
    note = f"{k} posture{'s' if k > 1 else ''} at rest tell nothing of the inertia"
    if unknown[:4].any():
        more = max(1, 2 - k)
        note = (
            f"{k} posture{'s' if k > 1 else ''} at rest {'are' if k > 1 else 'is'} too few:"
            f" at least {more} more with the flange tilted otherwise"
        )
    moved_arm = moved_prior(prior, solution)
    return Answer(value, covariance, unknown, solution.noise, moved_arm, per_gain, (note,))


def combined(problem: WeighingProblem) -> Answer:
    """The payload from motion and from postures at rest together.

    Args:
        problem: loaded runs, some moving and some resting
    """
    moving = [part for part in problem.loaded if part.mask.any() and np.abs(part.v).max() > _REST]
    if not moving:
        raise InvalidSamples("nothing moves in these runs: use the static method, or add a run that moves")
    return with_prior(replace(problem, loaded=moving), [_posture_rows(problem)])


def postures_at_rest(samples: Samples) -> tuple[Array, Array]:
    """Mean position and torque of each rest, (k, n) each; samples that all rest are split where they step.

    Args:
        samples: in the order of time; motion in between does not matter
    """
    still = (np.abs(samples.v) < _REST).all(axis=1)
    step = np.abs(np.diff(samples.q, axis=0, prepend=samples.q[:1])).max(axis=1) > _SAME
    run = np.cumsum(step | (still != np.roll(still, 1)))
    settle = 0 if still.all() else round(_SETTLE_S * samples.rate_hz)
    q, tau = [], []
    for which in np.unique(run[still]):
        rows = np.flatnonzero((run == which) & still)[settle:]
        if rows.size:
            q.append(samples.q[rows].mean(axis=0))
            tau.append(samples.tau[rows].mean(axis=0))
    return np.array(q).reshape(-1, samples.n), np.array(tau).reshape(-1, samples.n)


def _posture_rows(problem: WeighingProblem) -> Rows:
    """One row for each rest of the loaded runs, friction that needs motion left out."""
    model = problem.model
    rests = [postures_at_rest(part) for part in problem.loaded]
    q = np.concatenate([rest[0] for rest in rests])
    if not len(q):
        raise InvalidSamples(
            "the arm never rests in these runs: hold at least 2 postures for a second each,"
            " with the flange tilted differently"
        )
    zero = np.zeros_like(q)
    tau = np.concatenate([rest[1] for rest in rests])
    first = problem.loaded[0]
    held = Samples(q, zero, zero, tau, first.rate_hz, first.joint_names, first.kinematics)
    rows = model.rows(held)
    Y = rows.Y.copy()
    Y[:, :, np.isin(kinds(model.estimate.names), _MOVING)] = 0.0
    return Rows(Y, tau, np.ones(tau.shape, bool))


def _untold(rows: Rows, J: Array, prior: Array) -> NDArray[np.bool_]:
    """Which of the four numbers the postures do not tell, (4,)."""
    effect = np.vstack([(rows.Y @ J).reshape(-1, 4), prior[:, -5:-1]])
    length = np.linalg.norm(effect, axis=0)
    _, s, Vt = np.linalg.svd(effect / np.where(length > 0, length, 1.0))
    weak = np.ones(4, bool)
    weak[: len(s)] = s < 1e-6 * s[0]
    return np.asarray((np.abs(Vt[weak]) > 1e-3).any(axis=0) | (length == 0))
