"""Estimates from factors: the model of an arm, and the payload and state of a log.

**The model** is the weighted fit of the merged factor of an arm's empty logs. Noise that is
correlated in time acts on slow columns like white noise of variance kappa sigma^2, kappa the
`widening` of the logs:

    C = A^-1 (sum_j w_j^4 kappa_j sigma_j^2 R_j'R_j) A^-1,      A = sum_j w_j^2 R_j'R_j.

**The payload** is found as by the direct method (`steelyard.torque.methods._direct`): loaded
torques follow tau = Y (pi + J phi), the model is a prior on pi. Friction and offsets are one more
draw from the population of the arm's logs (`identification._between_runs`), and free where the log
contradicts it.

**The state of a log** keeps the links and rotors theta_r of the model, and estimates what may
change from day to day: friction and offset f, payload phi, and the relative change gamma_j of each
gain,

    tau_j - Y_j theta_r = Y_f f + Y J phi + gamma_j Y_j (theta_r + J phi),

linear except for the last product, for which the previous iteration is used. The contradiction of a
log is its residual beyond that of a free fit of the log, over the residual expected by noise, with
gains constrained to half a percent. If it is large, the log is not of this arm for any friction and
payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard.fleet._reduce import Reduction
from steelyard.identification import DynamicModel, RegressionFactor
from steelyard.identification._estimate import Estimate
from steelyard.identification._least_squares import Solution, solve_weighted
from steelyard.inertia import InertialParameters
from steelyard.payload import Evidence, Payload, judge
from steelyard.payload._judgement import large_residual_doubt, model_doubt
from steelyard.robot._basis import triangle_with
from steelyard.robot._friction import FrictionLaw
from steelyard.robot._parameters import ParameterKind, ParameterTable
from steelyard.torque._other_causes import scale_doubt
from steelyard.torque._prior import (
    MAX_FRICTION_CONTRADICTION,
    by_contradiction,
    by_gravity,
    contradiction,
    shifted,
    slow_noise,
    through_prior,
    widened,
)
from steelyard.torque.methods import Answer, WeighingProblem
from steelyard.verdict import Doubt, DoubtKind, Verdict

_GAIN_DRIFT = 0.005  # usual relative change of the gains of an arm, for the contradiction
_GAIN_STD = 0.05  # relative, of the prior on changes of gains
_ITERATIONS = 3  # of payload and gains


@dataclass(frozen=True, eq=False)
class LogState:
    """The state of an arm in one log.

    Attributes:
        value: friction coefficients, ten numbers of the payload, relative changes of the gains, (f
            + 10 + n,)
        std: standard deviations for the given model, like value; infinite if undetermined
        noise: standard deviation of the residuals, (n,) [Nm]
        contradiction: residual beyond noise, see above
    """

    value: Array
    std: Array
    noise: Array
    contradiction: float


def arm_model(
    how: Reduction,
    factor: RegressionFactor,
    widening: Array,
    *,
    made_from: Sequence[str],
    from_currents: bool = False,
    doubts: Sequence[Doubt] = (),
) -> DynamicModel:
    """The model of an arm from the merged factor of its empty logs.

    Args:
        how: settings of the reduction of logs to factors
        factor: of all logs
        widening: of their noise by correlation in time, (n,)
        made_from: the logs, in words
        from_currents: whether torques were motor currents times the gains of the arm
        doubts: about the logs
    """
    solution = solve_weighted(factor)
    covariance = _spread(factor, solution, solution.noise * np.sqrt(widening))
    absent = _absent(how.law, how.parameters)
    covariance[absent] = 0.0
    covariance[:, absent] = 0.0
    unknown = solution.unknown & ~absent
    count = len(how.parameters) - int(absent.sum())
    summary = ""
    all_doubts = list(doubts)
    if unknown.any():
        missing = ", ".join(how.parameters.take(unknown).names)
        words = f"the logs say nothing about {unknown.sum()} of {count} parameters: {missing}"
        all_doubts.append(Doubt(DoubtKind.NOT_EXCITED, words))
    else:
        summary = f"all {count} parameters were excited (condition number {solution.condition:.3g})"
    estimate = Estimate(
        solution.value,
        covariance,
        how.parameters,
        solution.noise,
        widening,
        solution.condition,
        Verdict(summary, tuple(all_doubts)),
    )
    if from_currents:
        robot = how.robot.with_drive(how.robot.drive.with_tolerances())
    else:
        robot = how.robot
    return DynamicModel(
        robot,
        how.law,
        estimate,
        np.zeros((0, robot.n)),
        how.preparation.kinematics,
        tuple(made_from),
        factor,
        from_currents=from_currents,
        preparation=how.preparation,
    )


def payload_of(
    model: DynamicModel, factor: RegressionFactor, widening: Array, torque: Array
) -> Payload:
    """The payload of an arm in a log.

    Args:
        model: of the empty arm
        factor: of the log
        widening: of its noise by correlation in time, (n,)
        torque: root mean square of its torques, (n,) [Nm]
    """
    problem = _with_known_friction(WeighingProblem(model, (), np.zeros((0, 11))), factor, widening)
    mixing = problem.mixing
    arm = problem.prior()
    prior = np.vstack([arm, problem.friction_prior])
    n = model.robot.n
    solution = solve_weighted(factor, prior, mixing)
    noises = (solution.noise * np.sqrt(widening), slow_noise(model))
    covariance, expected = (_spread(factor, solution, noise, prior, mixing) for noise in noises)
    drifted = solution.gain_response(factor, n, mixing)
    if model.from_currents:
        wrong = drifted + through_prior(model, solution, prior)
    else:
        wrong = drifted
    moved = contradiction(arm, solution.value, solution.inverse, (covariance, expected))
    answer = Answer.of(
        solution, covariance, wrong, drifted, friction=problem.friction, contradiction=moved
    )
    wide, gain_error, shares = widened(
        answer.covariance,
        model.robot.drive,
        per_gain=answer.per_gain,
        per_drift=answer.per_drift,
        contradicted=by_contradiction(answer.covariance, moved),
        friction=answer.friction,
    )
    wide, shares = shifted(wide, shares, "gravity", by_gravity(model.robot, answer.value))
    residual_doubt = large_residual_doubt(
        model.robot.joint_names, answer.noise, model.estimate.noise, torque
    )
    if answer.unknown[0]:
        scale = None
    else:
        scale = _other_scale_doubt(problem, factor, solution, widening, wide[0, 0])
    plain = InertialParameters.from_vector(answer.value, model.robot.flange)
    evidence = Evidence(
        plain,
        wide,
        answer.unknown,
        unobservable=problem.unobservable,
        contradiction=moved,
        doubts=[
            doubt
            for doubt in (model_doubt(model.verdict), residual_doubt, scale)
            if doubt is not None
        ],
        shares=shares,
    )
    body, verdict = judge(evidence)
    return Payload(body, plain, wide, answer.noise, verdict, "direct", gain_error, shares)


def _with_known_friction(
    problem: WeighingProblem, factor: RegressionFactor, widening: Array
) -> WeighingProblem:
    """The problem; friction is left free where the log contradicts that of the other logs."""
    friction = problem.friction_prior
    if not len(friction):
        return problem
    prior = np.vstack([problem.prior(), friction])
    solution = solve_weighted(factor, prior, problem.mixing)
    noises = (solution.noise * np.sqrt(widening), slow_noise(problem.model))
    covariances = tuple(_spread(factor, solution, x, prior, problem.mixing) for x in noises)
    moved = contradiction(friction, solution.value, solution.inverse, covariances)
    return replace(problem, friction_known=moved <= MAX_FRICTION_CONTRADICTION)


def _other_scale_doubt(
    problem: WeighingProblem,
    factor: RegressionFactor,
    solution: Solution,
    widening: Array,
    variance: float,
) -> Doubt | None:
    """A doubt if the torques of a log have another scale than the empty arm (see `other_causes`).

    The predicted torques are a combination of the given columns, so the factor is sufficient.

    Args:
        problem: of weighing, without runs
        factor: of the log
        solution: of the weighing
        widening: of the noise by correlation in time, (n,)
        variance: of the mass, [kg^2]
    """
    mass = len(solution.value) - 10
    mixing = np.column_stack([problem.mixing, problem.mixing @ solution.value])
    known = np.vstack([problem.prior(), problem.friction_prior])
    prior = np.insert(known, mass + 10, 0.0, axis=1)
    scaled = solve_weighted(factor, prior, mixing)
    spread = _spread(factor, scaled, scaled.noise * np.sqrt(widening), prior, mixing)
    drift = problem.model.robot.drive.gain_drift or 0.0
    moved = scaled.value[mass] - solution.value[mass]
    return scale_doubt(
        float(scaled.value[-1]), spread[-1, -1] + drift**2, float(moved), np.sqrt(variance)
    )


def state_parameters(model: DynamicModel) -> ParameterTable:
    """The friction and offsets of a state, which precede payload and gains.

    Args:
        model: of the arm
    """
    return model.estimate.parameters.take(_changing(model))


def log_state(
    model: DynamicModel, factor: RegressionFactor, widening: Array, noise: Array
) -> LogState:
    """The state of an arm in one of its logs.

    Args:
        model: of the arm, whose links and rotors are kept
        factor: of the log
        widening: of its noise by correlation in time, (n,)
        noise: of the log's own free fit, (n,) [Nm]
    """
    free = _changing(model)
    n = model.robot.n
    f = int(free.sum())
    J = np.zeros((len(free), 10))
    J[: len(model.basis)] = model.basis.payload_jacobian
    rigid = np.where(free, 0.0, model.estimate.value)
    prior = np.zeros((n, f + 10 + n + 1))
    prior[:, f + 10 : -1] = np.eye(n) / _GAIN_STD
    carried = rigid
    for _ in range(_ITERATIONS):
        own = _of_state(factor, np.column_stack([np.eye(len(free))[:, free], J]), rigid, carried)
        solution = solve_weighted(own, prior)
        carried = rigid + J @ solution.value[f : f + 10]
    covariance = _spread(own, solution, solution.noise * np.sqrt(widening), prior)
    everything = _of_state(factor, np.eye(len(free)), np.zeros(len(free)), carried)
    weights = 1.0 / np.maximum(noise * np.sqrt(widening), 1e-10)
    constrained, free_fit = (_minimum(part.weighted(weights), n) for part in (own, everything))
    tested = max(everything.p - own.p, 1)
    beyond = float(np.sqrt(max(constrained - free_fit, 0.0) / tested))
    return LogState(solution.value, np.sqrt(np.diag(covariance)), solution.noise, beyond)


def _changing(model: DynamicModel) -> Mask:
    """Which parameters of a model may change from log to log."""
    parameters = model.estimate.parameters
    return np.asarray(parameters.friction_and_offsets & ~_absent(model.law, parameters))


def _absent(law: FrictionLaw, parameters: ParameterTable) -> Mask:
    """Which parameters are load shares that the friction law does not have, (p,)."""
    out = np.zeros(len(parameters), dtype=bool)
    if law.carrying is not None:
        out[parameters.of_kind(ParameterKind.LOAD_SHARE)] = law.carrying == 0
    return out


def _of_state(
    factor: RegressionFactor, mixing: Array, rigid: Array, carried: Array
) -> RegressionFactor:
    """The factor of the rows in friction, payload and gains, less links and rotors."""
    n = len(factor.R)
    size = mixing.shape[1] + len(factor.R) + 1
    R = np.zeros((n, size, size))
    for j, triangle in enumerate(factor.R):
        columns = triangle[:, :-1]
        block = np.zeros((len(triangle), size))
        block[:, : mixing.shape[1]] = columns @ mixing
        block[:, mixing.shape[1] + j] = columns @ carried
        block[:, -1] = triangle[:, -1] - columns @ rigid
        R[j] = triangle_with(R[j], block)
    return RegressionFactor(R, factor.rows)


def _minimum(triangle: Array, n: int) -> float:
    """The minimum sum of squares of weighted rows and of the prior on the n gains (the last)."""
    prior = np.zeros((n, len(triangle)))
    prior[:, -n - 1 : -1] = np.eye(n) / _GAIN_DRIFT
    return float(triangle_with(triangle, prior)[-1, -1] ** 2)


def _spread(
    factor: RegressionFactor,
    solution: Solution,
    noise: Array,
    prior: Array | None = None,
    mixing: Array | None = None,
) -> Array:
    """The covariance of a solution for white noise with given standard deviations, (m, m)."""
    rows = (factor.R[:, :, :-1] * (solution.weights**2 * noise)[:, None, None]).reshape(
        -1, factor.p
    )
    if mixing is not None:
        rows = rows @ mixing
    if prior is not None:
        rows = np.vstack([rows, prior[:, :-1]])
    half = rows @ solution.inverse
    covariance = half.T @ half
    covariance[solution.unknown, solution.unknown] = np.inf
    return np.asarray(covariance)
