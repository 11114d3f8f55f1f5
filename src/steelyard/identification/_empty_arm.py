"""Identification of the empty arm, and the verdict on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard._computing import Progress
from steelyard._units import NORMAL_95
from steelyard.errors import InvalidSamples
from steelyard.identification._between_runs import spread_between_runs
from steelyard.identification._estimate import Estimate
from steelyard.identification._fit import Fit, FitMethod, fit
from steelyard.identification._gravity_direction import gravity_offer
from steelyard.identification._least_squares import solve_weighted
from steelyard.identification._left_out import (
    alternating_stretches,
    left_out_squares,
    prediction_error,
)
from steelyard.identification._misfit import misfit_of
from steelyard.identification._model import DynamicModel
from steelyard.identification._other_causes import empty_arm_doubts
from steelyard.identification._problem import RowMaker, Rows, require_same_joints, samples_of
from steelyard.identification._validation import FrictionChoice, choose_friction
from steelyard.recording import Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.robot._friction import FrictionLaw
from steelyard.robot._parameters import Parameter, ParameterKind, ParameterTable
from steelyard.verdict import Doubt, DoubtKind, Verdict

_CHOICE_PROGRESS = 0.9  # share of the work that choosing the friction law takes
_FAST_FREQUENCY = 0.2  # of the sampling rate; central differences are off by a quarter there
_MAX_FAST_POWER = 0.05  # largest share of a joint's motion above that frequency
_REST_SPEED = 0.01  # [rad/s]
_MAX_NAMES = 5  # of parameters in a doubt
_MIN_TRAVEL = 0.01  # [rad]; smaller steps come from the encoder
_MAX_UNEXPLAINED = 1 / 3  # of a joint's RMS torque; good fits of large joints leave a tenth
_MAX_UNEXPLAINED_SMALL_JOINT = 0.5  # the same for joints with small torques
_MIN_STRUCTURED_INFLATION = 4.0  # widening by correlation; about 1 for sensor noise alone
_MAX_PREDICTION_ERROR = (
    0.2  # of a joint's torque, in left-out stretches, beyond what the fit leaves
)
_GRAVITY_KINDS = (DoubtKind.GRAVITY, DoubtKind.TILTED_BASE)
_GRAVITY_SYMPTOMS = (*_GRAVITY_KINDS, DoubtKind.UNEXPLAINED_TORQUE, DoubtKind.DOES_NOT_PREDICT)
_NEGLIGIBLE_FRICTION = 0.02  # of the viscous friction at 1 rad/s
_MIN_RELEVANT_RESIDUAL = 0.05  # of the largest torque; gravity tilted by three degrees gives it


def identify(
    robot: RobotModel,
    samples: Samples | Iterable[Samples],
    *,
    friction: str | FrictionLaw | None = None,
    method: FitMethod = "weighted",
    progress: Progress | None = None,
) -> DynamicModel:
    """The model of the arm, fitted to motion and torques: links, rotors and friction.

    Args:
        robot: kinematics and coupling of its drives
        samples: one or many, each in the order of time, each weighted by its own noise
        friction: the name of a law; 'auto' for the one that predicts best; a law with initial
            shapes; or None for the fixed shapes of `robot.drive`
        method: 'weighted', 'ordinary' or 'huber'
    """
    parts = _checked(robot, samples)
    robot = _with_gains_of(robot, parts)
    choice = None
    if friction == "auto":
        choice = choose_friction(robot, parts, progress=_part(progress, 0.0, _CHOICE_PROGRESS))
        progress = _part(progress, _CHOICE_PROGRESS, 1.0)
    if choice is None:
        name = friction
    else:
        name = choice.law
    if isinstance(name, str):
        law = FrictionLaw.named(name, robot.n)
    else:
        law = name or _law_of(robot)
    maker = RowMaker(robot, ParameterBasis.of(robot))
    found = fit(maker, parts, law, method=method, progress=progress)
    return _model(robot, maker, parts, found, choice)


def refit(
    model: DynamicModel,
    robot: RobotModel,
    samples: Sequence[Samples],
    *,
    friction: str | FrictionLaw | None,
) -> DynamicModel:
    """The model of samples with other gains, with the friction law that was chosen before.

    Args:
        model: fitted with the gains before
        robot: with the new gains
        samples: with torques of the new gains
        friction: the law if it was not chosen, as for `identify`
    """
    law = friction if model.choice is None else model.choice.law
    again = identify(robot, samples, friction=law)
    stopped = [doubt for doubt in model.verdict.doubts if doubt.kind is DoubtKind.STOPPED]
    estimate = replace(again.estimate, verdict=again.verdict.doubted(*stopped))
    return replace(again, estimate=estimate, choice=model.choice)


def _part(progress: Progress | None, start: float, end: float) -> Progress | None:
    """A callback that maps the progress of a part of the work to that of the whole."""
    if progress is None:
        return None
    return lambda share, words: progress(start + (end - start) * share, words)


def _checked(robot: RobotModel, samples: Samples | Iterable[Samples]) -> Sequence[Samples]:
    parts = samples_of(samples)
    if not parts:
        raise InvalidSamples("there are no samples to identify from")
    for part in parts:
        require_same_joints(robot, part)
        _require_fast_sampling(part)
    if len({part.kinematics for part in parts}) > 1:
        raise InvalidSamples(
            "some samples hold measured motion, others commanded motion; use only one of both"
        )
    return parts


def _with_gains_of(robot: RobotModel, parts: Sequence[Samples]) -> RobotModel:
    """The robot with the gains of the torques, with tolerances of published gains if unknown."""
    gains = [part.gain for part in parts if part.gain is not None]
    if not gains:
        return robot
    if len(gains) < len(parts) or any(not np.allclose(gain, gains[0]) for gain in gains):
        raise InvalidSamples(
            "the torques of some samples were converted from currents with other gains than the"
            " rest; prepare all of them with the same gains"
        )
    drive = robot.drive
    if drive.gain is None or not np.allclose(drive.gain, gains[0]):
        drive = replace(drive, gain=gains[0], gain_std=None, gain_common=None)
    return robot.with_drive(drive.with_tolerances())


def _require_fast_sampling(samples: Samples) -> None:
    """Raises an error if the sampling is too slow for the motion to be differentiated."""
    power = np.abs(np.fft.rfft(samples.v - samples.v.mean(axis=0), axis=0)) ** 2
    fast = np.fft.rfftfreq(len(samples)) > _FAST_FREQUENCY
    share = power[fast].sum(axis=0) / np.maximum(power.sum(axis=0), 1e-300)
    moving = np.ptp(samples.q, axis=0) > _MIN_TRAVEL
    if (share * moving).max() > _MAX_FAST_POWER:
        j = int((share * moving).argmax())
        raise InvalidSamples(
            f"{samples.joint_names[j]} moves too quickly for {samples.rate_hz:.4g} Hz:"
            f" {100 * share[j]:.0f} % of its motion lies above"
            f" {_FAST_FREQUENCY * samples.rate_hz:.3g} Hz; record faster, move more slowly, or"
            " filter more"
        )


def _law_of(robot: RobotModel) -> FrictionLaw:
    """The law with fixed shapes that the robot's own drive model has."""
    return replace(
        robot.drive.law, stribeck=False, load=False, smooth_speed=False, asymmetric=False
    )


def _model(
    robot: RobotModel,
    maker: RowMaker,
    parts: Sequence[Samples],
    found: Fit,
    choice: FrictionChoice | None,
) -> DynamicModel:
    p = len(found.theta)
    parameters = maker.parameters(found.law)
    noise_grams = np.concatenate([maker.noise_grams(part, p) for part in parts])
    shift = solve_weighted(found.factor).motion_shift(noise_grams)
    rows = [maker.rows(part, found.law, found.theta) for part in parts]
    verdict = _verdict(found, parameters, parts).doubted(*_stopped(choice))
    verdict = verdict.doubted(*_prediction_doubts(found, rows))
    if not verdict.has(DoubtKind.UNEXPLAINED_TORQUE):
        causes = empty_arm_doubts(robot, parts, rows, parameters, found.theta, noise_grams)
        verdict = verdict.doubted(*causes)
    verdict = _with_gravity_offer(verdict, robot, parts)
    estimate = Estimate(
        found.theta,
        found.covariance[:p, :p] + np.outer(shift, shift),
        parameters,
        _noise_of_joints(found),
        found.inflation,
        found.condition,
        verdict,
    )
    shape_std = np.sqrt(np.diag(found.covariance)[p:]).reshape(found.law.log_shapes.shape)
    made_from = tuple(
        f"{len(part)} samples at {part.rate_hz:.4g} Hz: {'; '.join(part.made_by)}" for part in parts
    )
    preparations = {part.preparation for part in parts}
    rates = {part.rate_hz for part in parts}
    return DynamicModel(
        robot,
        found.law,
        estimate,
        shape_std,
        parts[0].kinematics,
        made_from,
        found.factor,
        choice,
        from_currents=parts[0].gain is not None,
        preparation=preparations.pop() if len(preparations) == 1 else None,
        motion_shift=shift,
        rate_hz=rates.pop() if len(rates) == 1 else None,
        run_spread=spread_between_runs(
            parameters, found.theta, estimate.noise, found.inflation, found.factor
        ),
        misfit=misfit_of(
            robot,
            parts,
            rows,
            parameters,
            estimate.noise * np.sqrt(np.maximum(found.inflation, 1.0)),
        ),
    )


def _with_gravity_offer(verdict: Verdict, robot: RobotModel, parts: Sequence[Samples]) -> Verdict:
    """The verdict, with the direction of gravity that explains torques better, if there is one.

    Its sentence comes first and replaces what the stated gravity made of the weight of the links.
    """
    suspected = any(doubt.kind in _GRAVITY_SYMPTOMS and doubt.blocks for doubt in verdict.doubts)
    offer = gravity_offer(robot, parts, is_suspected=suspected)
    if offer is None:
        return verdict
    rest = [doubt for doubt in verdict.doubts if doubt.kind not in _GRAVITY_KINDS]
    return replace(verdict, doubts=(offer, *rest))


def _noise_of_joints(found: Fit) -> Array:
    """The noise of each joint over the parts in which it has rows, (n,) [Nm or N].

    A joint without any rows counts as noisy as the noisiest of the others.
    """
    rows = found.factor.rows.reshape(found.noise.shape)
    parts = (rows > 0).sum(axis=0)
    squares = np.where(rows > 0, found.noise**2, 0.0).sum(axis=0)
    noise = np.sqrt(squares / np.maximum(parts, 1))
    noise[parts == 0] = noise.max()
    return np.asarray(noise)


def _verdict(found: Fit, parameters: ParameterTable, parts: Sequence[Samples]) -> Verdict:
    if found.law.carrying is None:
        left_out = 0
    else:
        left_out = int((found.law.carrying == 0).sum())
    count = len(parameters) - left_out
    summary = f"all {count} parameters were excited (condition number {found.condition:.3g})"
    joint_names = parts[0].joint_names
    doubts = []
    if found.unknown.any():
        doubts.append(_not_excited(found, parameters, parts, count))
        summary = ""
    doubts += _unexplained(found, joint_names)
    doubts += _negative_friction(found, parameters, joint_names)
    doubts += _doubtful_shapes(found, joint_names)
    return Verdict(summary, tuple(doubts))


def _not_excited(
    found: Fit, parameters: ParameterTable, parts: Sequence[Samples], count: int
) -> Doubt:
    """A doubt about parameters that the rows do not show.

    Where torques of a joint were not measured, what only they show stays unknown. If that is the
    drive of this joint alone, the doubt does not block: no other joint feels this drive.

    Args:
        count: of all parameters
    """
    joint_names = parts[0].joint_names
    missing = _first_names(parameters.take(found.unknown).names)
    which = f"{found.unknown.sum()} of {count} parameters ({missing})"
    speed = np.max([np.abs(part.v).max(axis=0) for part in parts], axis=0)
    moved = speed >= _REST_SPEED
    rows = found.factor.rows.reshape(-1, len(joint_names)).sum(axis=0)
    unmeasured = moved & (rows == 0)
    if moved.all() and unmeasured.any():
        names = ", ".join(np.array(joint_names)[unmeasured])
        words = f"without torques of {names}, {which} stay unknown: feed-forward and collision"
        words += " detection of such joints need a recording with their torques"
        others = found.unknown & ~(_of_joints(parameters, unmeasured) & ~parameters.links)
        return Doubt(DoubtKind.NOT_EXCITED, words, blocks=bool(others.any()))
    why = ""
    if not moved.all():
        still = ", ".join(np.array(joint_names)[~moved])
        why = f", because {still} never moved: record a motion that swings every joint"
    return Doubt(DoubtKind.NOT_EXCITED, f"the motion says nothing about {which}{why}")


def _of_joints(parameters: ParameterTable, joints: Mask) -> Mask:
    """Which parameters belong to the links and drives of joints, (p,)."""
    terms = parameters.of_kind(ParameterKind.TERM)
    return np.asarray(joints[np.where(terms, 0, parameters.joints)] & ~terms)


def _first_names(names: Sequence[str]) -> str:
    """The first of several names, and how many more there are."""
    listed = ", ".join(names[:_MAX_NAMES])
    if len(names) > _MAX_NAMES:
        return f"{listed} and {len(names) - _MAX_NAMES} more"
    return listed


def _unexplained(found: Fit, joint_names: Sequence[str]) -> list[Doubt]:
    """A doubt where the fit leaves much of a joint's torque unexplained.

    The RMS residual of each joint is compared with its RMS torque over the fitted rows. Sensor
    noise may be large beside the torque of a small joint without any fault of the model, but such
    residuals are not correlated in time. Up to half of the torque, the doubt blocks only if the
    residual is relevant beside the torques of the other joints.
    """
    n = len(joint_names)
    rows = np.maximum(found.factor.rows.reshape(-1, n).sum(axis=0), 1)
    residual = np.sqrt(
        found.factor.squared_residuals(found.theta).reshape(-1, n).sum(axis=0) / rows
    )
    torque = np.sqrt((found.factor.R[:, :, -1] ** 2).sum(axis=1).reshape(-1, n).sum(axis=0) / rows)
    unexplained = (residual > _MAX_UNEXPLAINED * torque) & (
        found.inflation > _MIN_STRUCTURED_INFLATION
    )
    blocking = unexplained & (
        (residual > _MIN_RELEVANT_RESIDUAL * torque.max())
        | (residual > _MAX_UNEXPLAINED_SMALL_JOINT * torque)
    )
    if not unexplained.any():
        return []
    share = 100 * residual / np.maximum(torque, 1e-300)
    which = ", ".join(
        f"{share[j]:.0f} % of the torque of {joint_names[j]} ({residual[j]:.3g} Nm or N RMS)"
        for j in np.flatnonzero(unexplained).tolist()
    )
    words = (
        f"{which} stay unexplained; check the direction of gravity (a tilted base, a wall mount),"
        " signs and gains of the drives, and whether this is the recorded robot"
    )
    return [Doubt(DoubtKind.UNEXPLAINED_TORQUE, words, blocks=bool(blocking.any()))]


def _negative_friction(
    found: Fit, parameters: ParameterTable, joint_names: Sequence[str]
) -> list[Doubt]:
    """Doubts where friction is negative beyond its 95 % interval and not negligible."""
    n = len(joint_names)
    kinds = (ParameterKind.COULOMB, ParameterKind.VISCOUS)
    half_widths = NORMAL_95 * np.sqrt(np.diag(found.covariance))[: len(parameters)]
    values = parameters.of_kinds_by_joint(found.theta, kinds, n)
    halves = parameters.of_kinds_by_joint(half_widths, kinds, n)
    negligible = _NEGLIGIBLE_FRICTION * np.abs(values[::-1])  # beside the other coefficient
    is_negative = (values + halves < 0) & (-values > negligible)
    doubts = []
    for k, word in enumerate(("Coulomb", "viscous")):
        negative = [
            f"{Parameter(kinds[k], j)} of {joint_names[j]} ({values[k, j]:.3g} +-"
            f" {halves[k, j]:.2g} Nm)"
            for j in np.flatnonzero(is_negative[k]).tolist()
        ]
        if negative:
            words = (
                f"{word} friction came out negative, which is impossible: {', '.join(negative)};"
                " the law holds only at the speeds of the recording, and another law may fit better"
            )
            doubts.append(Doubt(DoubtKind.NEGATIVE_FRICTION, words, blocks=False))
    return doubts


def _doubtful_shapes(found: Fit, joint_names: Sequence[str]) -> list[Doubt]:
    """Doubts about shapes of the friction law that did not converge or lie at a bound."""
    law = found.law
    doubts = []
    if not found.converged:
        words = (
            f"the shapes of the friction law '{law.name}' did not converge: the data hardly"
            " determine some of them"
        )
        doubts.append(Doubt(DoubtKind.NOT_CONVERGED, words, blocks=False))
    extreme = [
        f"{name.replace('_', ' ')} of {joint_names[j]} ({getattr(law, name)[j]:.3g})"
        for name, row in zip(law.free_shapes, law.at_bounds, strict=True)
        for j in np.flatnonzero(row).tolist()
    ]
    if extreme:
        words = (
            f"the friction law '{law.name}' has shapes at the end of their range:"
            f" {', '.join(extreme)}; the data hardly determine them, or another law may fit better"
        )
        doubts.append(Doubt(DoubtKind.FRICTION_SHAPE, words, blocks=False))
    return doubts


def _prediction_doubts(found: Fit, rows: Sequence[Rows]) -> list[Doubt]:
    """A doubt where the fit does not predict stretches of its own recordings that are left out.

    The shapes of the friction law are those of the whole fit; the other unknowns are fitted again.
    """
    stretches = alternating_stretches([len(part.tau) for part in rows])
    squares, _ = left_out_squares(rows, stretches)
    n = squares.shape[1]
    torque = sum((np.where(part.usable, part.tau, 0.0) ** 2).sum(axis=0) for part in rows)
    size = np.sqrt(np.maximum(torque, 1e-300))
    fitted = found.factor.squared_residuals(found.theta).reshape(-1, n).sum(axis=0)
    unseen = np.sqrt(squares.sum(axis=0)) / size
    error = prediction_error(unseen, np.sqrt(fitted) / size)
    if error <= _MAX_PREDICTION_ERROR:
        return []
    words = (
        "the fit does not predict stretches of its own recordings that are left out; torques are"
        f" off by {100 * unseen.mean():.0f} % (mean over the joints), where the fit leaves"
        f" {100 * float((np.sqrt(fitted) / size).mean()):.0f} %; record more motion,"
        " faster and wider"
    )
    return [Doubt(DoubtKind.DOES_NOT_PREDICT, words)]


def _stopped(choice: FrictionChoice | None) -> list[Doubt]:
    """A doubt where the user stopped the comparison of friction laws."""
    if choice is None or not choice.not_compared:
        return []
    words = (
        f"stopped by hand: {choice.law} is the best of {len(choice.scores)} friction laws so far;"
        f" not compared: {', '.join(choice.not_compared)}"
    )
    return [Doubt(DoubtKind.STOPPED, words, blocks=False)]
