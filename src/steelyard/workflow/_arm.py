"""Identification of an arm from its recordings: gains, preparation, friction law, fit.

data -> recordings -> gains of the drives (where currents were measured) -> samples -> model
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array
from steelyard._computing import Progress, one_blas_thread
from steelyard._units import NORMAL_95
from steelyard.errors import InvalidSamples, SteelyardError
from steelyard.identification import DynamicModel, Validation
from steelyard.identification import identify as identify_from_samples
from steelyard.identification._fit import FitMethod
from steelyard.identification._lag import LONGEST_S, time_lags
from steelyard.identification.gains import (
    DriveGains,
    gains_from_known_mass,
    gains_from_targets,
    scaled_by_targets,
)
from steelyard.identification.gains._scale import SMOOTH_HZ
from steelyard.recording import Preparation, Recording
from steelyard.robot import DriveModel, ParameterBasis, RobotModel, load_robot
from steelyard.robot._friction import FrictionLaw
from steelyard.signals import with_chosen_cutoff
from steelyard.torque import weigh as weigh_samples
from steelyard.verdict import Doubt, DoubtKind
from steelyard.workflow._data import (
    Data,
    Run,
    as_warm,
    qualities,
    runs_of,
    short_names,
    temperature_of,
)

if TYPE_CHECKING:
    from steelyard.identification._feasible import FeasibleArm
    from steelyard.report import Page

_SLOW_MOTION = Preparation(cutoff_hz=2.0, torque_cutoff_hz=2.0, trim_s=1.5, lowest_speed=0.0)
_ENOUGH_ROWS = 1500
_SMALL_TORQUE = 0.005  # of the largest joint's: smaller ones are judged beside that
_MOST_OF_TARGETS = 0.2  # of a joint's torque
_LEAST_TORQUE = 0.2  # of what the masses of the robot need


@dataclass(frozen=True, eq=False)
class KnownMass:
    """A run of the arm with a payload of known mass, [kg], which shows the gains of the drives."""

    mass: float
    data: Data


Gains: TypeAlias = Literal["auto", "robot", "targets"] | KnownMass | ArrayLike
"""Where gains come from: `auto` takes measured torques, then the robot's gains, then the
controller's targets; `robot` and `targets` insist; numbers, (n,) [Nm/A]; or a run with a known
mass, which corrects those of the robot, or else of the controller's targets."""


@dataclass(frozen=True, eq=False)
class Identification:
    """An identified arm with what it was made from.

    Attributes:
        model: of the arm
        fitted: runs that it was fitted to
        predicted: runs that it was not fitted to, to judge it by
        gains_from: where the gains come from, in words
        gains: as found, or given as numbers; None where torques were measured, or the robot has
            them
    """

    model: DynamicModel
    fitted: tuple[Run, ...]
    predicted: tuple[Run, ...]
    gains_from: str
    gains: DriveGains | None = None

    @classmethod
    @one_blas_thread()
    def of(
        cls,
        robot: RobotModel | str,
        data: Data,
        *,
        validate: Data = (),
        friction: str | FrictionLaw | None = "auto",
        gains: Gains = "auto",
        preparation: Preparation | None = None,
        method: FitMethod = "weighted",
        progress: Progress | None = None,
    ) -> Identification:
        """The empty arm with the runs that it was made from; see `identify`.

        Args:
            robot: the arm, or its name or file
            data: of the empty arm
            validate: runs to predict, not to fit
            friction: name of a law, 'auto', a law, or None
            gains: where torques come from when motor currents were recorded
            preparation: how recordings become samples
            method: 'weighted', 'ordinary' or 'huber'
            progress: called with the share that is done and words
        """
        if isinstance(robot, str):
            arm = load_robot(robot)
        else:
            arm = robot
        how = preparation or Preparation()
        fitted, predicted = (runs_of(each, arm, how=how) for each in (data, validate))
        if not fitted:
            raise InvalidSamples("there are no runs to identify from")
        recordings = [run.recording for run in fitted if run.recording is not None]
        drive, found, words = _gains(arm, recordings, gains)
        if drive is not None:
            arm = arm.with_drive(drive)
        how = with_chosen_cutoff(how, recordings)
        if found is not None and found.how == "targets" and drive is not None:
            found = _scaled(found, arm, fitted, how)
            drive = found.in_drive(drive)
            words = f"{words} {_in_words(drive)}; {found.verdict.sentence}"
            arm = arm.with_drive(drive)
        how, fitted, lag_std, late = _in_time(arm, fitted, how, drive)
        predicted = tuple(run.prepared(how, drive, arm.limits) for run in predicted)
        samples = [run.ready for run in fitted]
        model = identify_from_samples(
            arm, samples, friction=friction, method=method, progress=progress
        )
        if isinstance(gains, KnownMass):
            found = _by_mass(replace(model, lag_std=lag_std), fitted, gains, how)
            drive = found.in_drive(arm.drive)
            words = (
                f"{words}, corrected by a known mass: {_in_words(drive)}; {found.verdict.sentence}"
            )
            fitted, predicted = (_with_gains(runs, found) for runs in (fitted, predicted))
            model = _again(model, arm.with_drive(drive), fitted, friction)
        doubts = [*late, *(doubt for run in (*fitted, *predicted) for doubt in run.doubts)]
        doubts += [*_seen(fitted, predicted), *_other_robot(arm, fitted), *_too_small(arm, fitted)]
        doubts += [] if found is None else found.verdict.doubts
        verdict = model.verdict.doubted(*doubts)
        model = replace(
            model,
            estimate=replace(model.estimate, verdict=verdict),
            temperature=temperature_of(fitted),
            lag_std=lag_std,
        )
        return cls(model, fitted, predicted, words, found)

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, fitted ones first."""
        return (*self.fitted, *self.predicted)

    @property
    def validations(self) -> dict[str, Validation]:
        """How well the model predicts each run, by its name."""
        return {run.name: self.model.validate(run.ready) for run in self.runs}

    def page(self, bodies: FeasibleArm | None = None) -> Page:
        """The page that shows and explains it; it draws the first run that it was not fitted to.

        Args:
            bodies: the nearest real bodies, `model.feasible_arm()`, to be named
        """
        from steelyard.report._identification import identification_page

        names = short_names(self.runs)
        fitted = {run.name for run in self.fitted}
        if bodies is None:
            notes = []
        else:
            notes = [f"Real bodies: {bodies.status}"]
        page = identification_page(
            self.model,
            {names[run]: run.ready for run in self.fitted},
            {names[run]: run.ready for run in self.predicted if run.name not in fitted},
            notes=[f"Drives: {self.gains_from}.", self.model.lag_words, *notes],
        )
        return page.with_quality(qualities(self.runs, self.model.robot))


def identify(
    robot: RobotModel | str,
    data: Data,
    *,
    friction: str | FrictionLaw | None = "auto",
    gains: Gains = "auto",
    preparation: Preparation | None = None,
    method: FitMethod = "weighted",
    progress: Progress | None = None,
) -> DynamicModel:
    """The empty arm from its own motion and torques: base parameters and friction, with covariance.

    Args:
        robot: the arm, or its name or file for `load_robot`
        data: of the empty arm: files, recordings, samples or tables; one or several
        friction: name of a law; 'auto' for the one that predicts best; a law with shapes to start
            from; or None for the law of `robot.drive`
        gains: where torques come from when motor currents were recorded, see `Gains`
        preparation: how recordings become samples; the defaults of `Preparation` otherwise
        method: 'weighted' (joints by their noise), 'ordinary' (all alike) or 'huber'
        progress: called with the share that is done and words
    """
    return Identification.of(
        robot,
        data,
        friction=friction,
        gains=gains,
        preparation=preparation,
        method=method,
        progress=progress,
    ).model


def _in_time(
    robot: RobotModel, runs: Sequence[Run], how: Preparation, drive: DriveModel | None
) -> tuple[Preparation, tuple[Run, ...], Array | None, list[Doubt]]:
    """The preparation with the lags of torques, prepared runs, deviations of the lags, and doubts about them.

    Lags are not estimated where they are given, or where samples were: None.
    """
    ready = tuple(run.prepared(how, drive, robot.limits) for run in runs)
    if how.lag_s is not None or any(run.recording is None for run in runs):
        return how, ready, None, []
    lag, std, beyond = time_lags(robot, [run.ready for run in ready])
    doubts = _too_late(np.array(robot.joint_names)[beyond].tolist())
    if not lag.any():
        return how, ready, std, doubts
    how = replace(how, lag_s=tuple(lag.tolist()))
    return how, tuple(run.prepared(how, drive, robot.limits) for run in runs), std, doubts


def _too_late(joints: Sequence[str]) -> list[Doubt]:
    """A doubt about joints whose torques and motion are further apart in time than what is searched."""
    if not joints:
        return []
    words = (
        f"torques and motion of {', '.join(joints)} are more than {1e3 * LONGEST_S:.0f} ms apart"
        " in time,"
        " which is not repaired: give both one clock"
    )
    return [Doubt(DoubtKind.OUT_OF_TIME, words)]


def _other_robot(robot: RobotModel, runs: Sequence[Run]) -> list[Doubt]:
    """A doubt where no bodies on the links of the robot explain the torques of the controller's own model.

    Of a real arm up to 6 % of a joint's torque are left, 40 to 70 % with another arm's kinematics.
    """
    basis = ParameterBasis.of(robot)
    rigid = basis.parameters.rigid
    for run in runs:
        try:
            samples = run.of_controller().prepared(_SLOW_MOTION, None).ready
        except SteelyardError:
            continue  # it has no targets, or too few
        few = slice(0, None, -(-len(samples) // _ENOUGH_ROWS))
        q, v, a, tau = (x[few] for x in (samples.q, samples.v, samples.a, samples.tau))
        size = np.sqrt(np.mean(tau**2, axis=0))
        weight = 1 / np.maximum(size, _SMALL_TORQUE * size.max())
        Y = np.concatenate(
            [basis.reduce(chunk)[:, :, rigid] for _, chunk in robot.regressor_chunks(q, v, a)]
        )
        rows = (Y * weight[:, None]).reshape(-1, int(rigid.sum()))
        found = np.linalg.lstsq(rows, (tau * weight).ravel(), rcond=None)[0]
        share = np.sqrt(np.mean((tau * weight - (rows @ found).reshape(tau.shape)) ** 2, axis=0))
        if share.max() > _MOST_OF_TARGETS:
            j = int(share.argmax())
            words = (
                f"{run.name}: no masses on the links of {robot.name} explain the controller's own"
                " torques"
                f" ({100 * share[j]:.0f} % of those of {robot.joint_names[j]} are left): is it the"
                " recording"
                " of another robot, or is gravity in another direction?"
            )
            return [Doubt(DoubtKind.OTHER_ROBOT, words)]
    return []


def _too_small(robot: RobotModel, runs: Sequence[Run]) -> list[Doubt]:
    """A doubt where torques are far below those that the controller states, or the masses of the robot need.

    Currents read as torques are; placeholders of masses in a robot file are mostly too small: no
    harm here.
    """
    for run in runs:
        samples = run.ready
        recording = run.recording
        if samples.gain is not None:
            continue
        few = slice(0, None, -(-len(samples) // _ENOUGH_ROWS))
        needed = robot.inverse_dynamics(*(x[few] for x in (samples.q, samples.v, samples.a)))
        if recording is not None and recording.tau_target is not None:
            needed = recording.tau_target[np.isfinite(recording.tau_target).all(axis=1)]
        there, least = (np.sqrt(np.mean(x**2, axis=0)) for x in (samples.tau, needed))
        j = int(least.argmax())
        if there[j] < _LEAST_TORQUE * least[j]:
            words = (
                f"{run.name}: the torque of {robot.joint_names[j]} is {there[j]:.3g} Nm (RMS), the"
                " arm needs"
                f" about {least[j]:.3g}: is it a current in A (then read it as current), or"
                " another unit?"
            )
            return [Doubt(DoubtKind.RECORDING, words)]
    return []


def _seen(fitted: Sequence[Run], predicted: Sequence[Run]) -> list[Doubt]:
    """Doubts about runs that judge a model although it was fitted to them."""
    names = {run.name for run in fitted}
    twice = (run.name for run in predicted if run.name in names)
    words = (f"{name} is a training recording too: it validates nothing" for name in twice)
    return [Doubt(DoubtKind.RECORDING, each, blocks=False) for each in words]


def _gains(
    robot: RobotModel, recordings: Sequence[Recording], wanted: Gains
) -> tuple[DriveModel | None, DriveGains | None, str]:
    """The drives with their gains, the gains as found, and where they come from in words.

    The first is None where torques were measured, the second where the robot has the gains.
    """
    for recording in recordings:
        if recording.n != robot.n:
            raise InvalidSamples(
                f"{robot.name} has {robot.n} joints, a recording has {recording.n}"
            )
    if isinstance(wanted, KnownMass):
        if any(recording.current is None for recording in recordings):
            raise InvalidSamples(
                "a known mass corrects drive gains: the recordings need motor currents"
            )
        if robot.drive.gain is not None:
            wanted = "robot"
        else:
            wanted = "targets"
    if not isinstance(wanted, str):
        numbers = np.array(wanted, dtype=float)
        if numbers.shape != (robot.n,):
            raise InvalidSamples(
                f"there are {numbers.size} gains, {robot.name} has {robot.n} joints"
            )
        found = DriveGains.given(numbers)
        return found.in_drive(robot.drive), found, "gains as given"
    if wanted not in ("auto", "robot", "targets"):
        raise InvalidSamples(
            f"gains are 'auto', 'robot', 'targets', numbers or a known mass, got '{wanted}'"
        )
    if wanted == "auto" and all(recording.tau is not None for recording in recordings):
        return None, None, "torques were measured"
    drive = robot.drive
    if wanted == "robot" or (wanted == "auto" and drive.gain is not None):
        if drive.gain is None:
            raise InvalidSamples(
                f"{robot.name} has no drive gains: take those of targets, or give numbers"
            )
        return drive.with_tolerances(), None, "gains of the robot file"
    found = _from_targets(recordings)
    return found.in_drive(drive), found, "gains from the controller's targets:"


def _from_targets(recordings: Sequence[Recording]) -> DriveGains:
    if any(r.current_target is None or r.tau_target is None for r in recordings):
        raise InvalidSamples(
            "the recordings hold motor currents without the controller's targets:"
            " give the drive gains as --gains k1,k2,... [Nm/A], or a run with a known payload as"
            " --gains mass=KG:FILE"
        )
    found = gains_from_targets(recordings)
    if not found.known.all():
        raise InvalidSamples(f"gains from targets: {found.verdict.sentence}")
    return found


def _scaled(
    gains: DriveGains, robot: RobotModel, runs: Sequence[Run], how: Preparation
) -> DriveGains:
    """Gains of the controller's targets on the scale of its own model of the arm, where runs show it."""
    if robot.drive.coupling is not None:
        return gains
    if isinstance(how.cutoff_hz, float | int):
        cutoff_hz = how.cutoff_hz
    else:
        cutoff_hz = SMOOTH_HZ
    smooth = replace(how, cutoff_hz=min(cutoff_hz, SMOOTH_HZ))
    measured = []
    targets = []
    for run in runs:
        if run.recording is not None:
            measured.append(run.prepared(smooth, robot.drive).ready)
            targets.append(run.of_controller().prepared(smooth, None).ready)
    return scaled_by_targets(gains, robot, measured, targets)


def _by_mass(
    model: DynamicModel, empty: Sequence[Run], known: KnownMass, how: Preparation
) -> DriveGains:
    """The gains that make a payload as heavy as it is."""
    runs = runs_of(known.data, model.robot, how=how)
    loaded = [run.prepared(how, run.drive_for(model), model.robot.limits).ready for run in runs]
    if not loaded:
        raise InvalidSamples("a known mass needs at least one recording with it")
    warm, doubts = as_warm(replace(model, temperature=temperature_of(empty)), runs)
    payload = weigh_samples(warm, loaded)
    found = gains_from_known_mass(
        model, payload, known.mass, empty=[run.ready for run in empty], loaded=loaded
    )
    if not found.known.all():
        raise InvalidSamples(f"gains from a known mass: {found.verdict.sentence}")
    return replace(found, verdict=found.verdict.doubted(*doubts))


def _with_gains(runs: Sequence[Run], gains: DriveGains) -> tuple[Run, ...]:
    """Runs whose torques are made with other gains."""
    changed = []
    for run in runs:
        old = run.ready.gain
        if old is None:
            tau = run.ready.tau
        else:
            tau = run.ready.tau * (gains.value / old)
        changed.append(replace(run, samples=replace(run.ready, tau=tau, gain=gains.value)))
    return tuple(changed)


def _again(
    model: DynamicModel, robot: RobotModel, runs: Sequence[Run], friction: str | FrictionLaw | None
) -> DynamicModel:
    """The model of runs with other gains, by the friction law that was chosen."""
    if model.choice is None:
        law = friction
    else:
        law = model.choice.law
    again = identify_from_samples(robot, [run.ready for run in runs], friction=law)
    stopped = [doubt for doubt in model.verdict.doubts if doubt.kind is DoubtKind.STOPPED]
    estimate = replace(again.estimate, verdict=again.verdict.doubted(*stopped))
    return replace(again, estimate=estimate, choice=model.choice)


def _in_words(drive: DriveModel) -> str:
    """The gains with all that may be wrong with them."""
    assert drive.gain is not None  # noqa: S101 - found before
    half = NORMAL_95 * np.abs(drive.gain) * np.sqrt((drive.gain_errors**2).sum(axis=1))
    return ", ".join(f"{k:.4g} +- {s:.2g}" for k, s in zip(drive.gain, half, strict=True)) + " Nm/A"
