"""Static method: mass and centre of mass from postures at rest (gaz2017 eq. (38)-(45)).

At rest tau = Y(q, 0, 0) (pi + J phi) depends on the first four numbers of phi alone. Rows of one
rest are averaged to one equation, since their main error is the same within a posture: static
friction, which may be anything between -F and F, the torque at which the joint begins to move. With
the noise s of the torques its variance is s^2 + F^2 / 3. The arm's gravity is a prior from its
empty runs, with their uncertainty. Joints without gravity torque contain no information on the
payload, so none has to be left out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steelyard._arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel, RegressionFactor
from steelyard.identification._least_squares import Solution, solve_weighted
from steelyard.inertia import INERTIA, PARAMETER_NAMES
from steelyard.recording import Samples
from steelyard.torque._prior import through_prior
from steelyard.torque.methods._direct import with_prior
from steelyard.torque.methods._problem import Answer, WeighingProblem, undetermined
from steelyard.verdict import Doubt, DoubtKind

_REST_SPEED = 0.005  # [rad/s]; slower joints are at rest
_BREAKAWAY_SPEED = 0.05  # [rad/s], of the friction law, for static friction
_MIN_POSTURE_STEP = 0.005  # [rad] between postures
_SETTLE_S = 0.3  # the arm vibrates after it has stopped


def static(problem: WeighingProblem) -> Answer:
    """Mass and centre of mass from postures at rest; the inertia stays unknown.

    Args:
        problem: loaded runs with postures at rest
    """
    n = problem.model.robot.n
    p = len(problem.model.estimate.value)
    model = problem.model
    if problem.fixed[:, INERTIA].any():
        raise InvalidSamples(
            "the inertia has no effect at rest: do not fix it for the static method"
        )
    postures, width = _posture_rows(problem)
    k = len(postures) // n
    prior = np.delete(
        np.vstack([problem.prior(problem.model.estimate.parameters.friction), postures]),
        np.s_[-7:-1],
        axis=1,
    )
    solution = solve_weighted(RegressionFactor.empty(n, p), prior, problem.mixing[:, :-6])
    rest = (prior[:, :-1] @ solution.value - prior[:, -1])[-n * k :].reshape(k, n)
    covariance = np.zeros((10, 10))
    value = np.zeros(10)
    per_gain = np.zeros((10, n))
    per_drift = np.zeros((10, n))
    value[:4] = solution.value[-4:]
    covariance[:4, :4] = solution.inverse[-4:, -4:]
    drifted = _posture_response(solution, prior, n, k)
    wrong = drifted + through_prior(model, solution, prior[: -n * k])
    per_gain[:4] = wrong[-4:]
    per_drift[:4] = drifted[-4:]
    friction = 1.0 - float(np.mean((model.estimate.noise / width) ** 2))
    observed = np.vstack([postures[:, p : p + 4], problem.fixed[:, :4]])
    unknown = np.append(undetermined(observed), np.ones(6, bool))
    covariance[unknown, unknown] = np.inf
    contradiction = float(np.sqrt((rest**2).sum() / max(n * k - 4, 1)))
    noise = width * np.sqrt(np.mean(rest**2, axis=0))
    expected = _determined_words(k)
    doubts = tuple[Doubt, ...]()
    if unknown[:4].any():
        expected, doubts = _some_unknown(problem, k, unknown)
    return Answer(
        value,
        covariance,
        unknown,
        noise,
        contradiction,
        per_gain,
        per_drift,
        friction,
        expected=expected,
        doubts=doubts,
    )


def combined(problem: WeighingProblem) -> Answer:
    """The payload from motion and from postures at rest together.

    Args:
        problem: loaded runs, some moving and some resting
    """
    moving = [
        part for part in problem.loaded if part.mask.any() and np.abs(part.v).max() > _REST_SPEED
    ]
    if not moving:
        raise InvalidSamples(
            "nothing moves in these runs: use the static method, or add a run that moves"
        )
    return with_prior(replace(problem, loaded=moving), _posture_rows(problem)[0])


def postures_at_rest(samples: Samples) -> tuple[Array, Array]:
    """Mean position and torque of each rest, (k, n) each.

    Samples that rest throughout are split where the position steps.

    Args:
        samples: in the order of time; motion in between is ignored
    """
    still = (np.abs(samples.v) < _REST_SPEED).all(axis=1)
    step = np.abs(np.diff(samples.q, axis=0, prepend=samples.q[:1])).max(axis=1) > _MIN_POSTURE_STEP
    run = np.cumsum(step | (still != np.roll(still, 1)))
    if still.all():
        settle = 0
    else:
        settle = round(_SETTLE_S * samples.rate_hz)
    q = []
    tau = []
    for which in np.unique(run[still]):
        rows = np.flatnonzero((run == which) & still)[settle:]
        if rows.size:
            q.append(samples.q[rows].mean(axis=0))
            tau.append(samples.tau[rows].mean(axis=0))
    return np.array(q).reshape(-1, samples.n), np.array(tau).reshape(-1, samples.n)


def _posture_rows(problem: WeighingProblem) -> tuple[Array, Array]:
    """One row [Z z] of unit noise for each joint and rest, (k n, p + 11), and noise, (n,) [Nm]."""
    model = problem.model
    rests = [postures_at_rest(part) for part in problem.loaded]
    q, tau = (np.concatenate([rest[i] for rest in rests]) for i in (0, 1))
    if not len(q):
        raise InvalidSamples(
            "the arm never rests in these runs: hold at least 2 postures for a second each, with"
            " the flange tilted differently"
        )
    first = problem.loaded[0]
    held = Samples(q, 0 * q, 0 * q, tau, first.rate_hz, first.joint_names, first.kinematics)
    Y = model.rows(held).Y.copy()
    Y[:, :, model.estimate.parameters.friction] = 0.0
    width = np.hypot(model.estimate.noise, _friction_at_rest(model, Y) / np.sqrt(3))
    rows = np.concatenate([Y @ problem.mixing, tau[:, :, None]], axis=2) / width[:, None]
    return rows.reshape(-1, rows.shape[2]), width


def _friction_at_rest(model: DynamicModel, Y: Array) -> Array:
    """Static friction of each joint in postures with the regressor Y, (n,) [Nm or N]."""
    links = model.estimate.parameters.links
    load = np.abs(Y[:, :, links] @ model.estimate.value[links]).mean(axis=0)
    drives = np.abs(
        (model.friction.coefficients * model.law.breakaway(_BREAKAWAY_SPEED, load)).sum(axis=0)
    )
    return model.robot.drive.transmission.most_at_joints(drives)


def _posture_response(solution: Solution, prior: Array, n: int, k: int) -> Array:
    """The derivative of a solution by the logarithm of gains at rest, (m, n)."""
    rows = prior[-n * k :].reshape(k, n, -1)
    return np.asarray(solution.inverse @ np.einsum("kjm,kj->mj", rows[:, :, :-1], rows[:, :, -1]))


def _determined_words(k: int) -> str:
    return f"{k} postures at rest determine mass and centre of mass only"


def _some_unknown(
    problem: WeighingProblem, k: int, unknown: NDArray[np.bool_]
) -> tuple[str, tuple[Doubt, ...]]:
    """Why mass or centre of mass are unknown: unobservable at rest, or too few postures."""
    robot = problem.model.robot
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, size=(50, robot.n))
    held = robot.payload_regressor(q, 0 * q, 0 * q)[:, :, :4].reshape(-1, 4)
    never = undetermined(np.vstack([held, problem.fixed[:, :4]]))
    if not (unknown[:4] & ~never).any():
        names = ", ".join(np.array(PARAMETER_NAMES[:4])[never])
        return f"{_determined_words(k)}, and {names} are unobservable at rest with this arm", ()
    if k == 1:
        too_few = f"{k} posture at rest is too few"
    else:
        too_few = f"{k} postures at rest are too few"
    words = f"{too_few}: add at least {max(1, 2 - k)} with the flange tilted differently"
    return too_few, (Doubt(DoubtKind.NOT_EXCITED, words),)
