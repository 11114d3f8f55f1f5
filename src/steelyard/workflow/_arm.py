"""Identification of an arm from its recordings: gains, preparation, friction law, fit.

data -> recordings -> gains of the drives (if currents were measured) -> samples -> model
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array
from steelyard._computing import Progress, one_blas_thread
from steelyard.errors import InvalidRobot, InvalidSamples, SteelyardError
from steelyard.identification import DynamicModel, Validation, solved_again
from steelyard.identification import identify as identify_from_samples
from steelyard.identification._empty_arm import refit
from steelyard.identification._fit import FitMethod
from steelyard.identification._lag import time_lags
from steelyard.identification._plausibility import other_robot_doubt, small_torque_doubt
from steelyard.identification._temperature import with_temperature_drift
from steelyard.identification._witnesses import (
    arms_with_equal_fit,
    gains_doubt,
    other_kinematics_doubt,
)
from steelyard.identification.gains import (
    DriveGains,
    gains_from_known_mass,
    gains_from_targets,
    scaled_by_targets,
)
from steelyard.identification.gains._drive_gains import gain_text
from steelyard.identification.gains._scale import SMOOTH_HZ
from steelyard.recording import Preparation, Recording
from steelyard.robot import DriveModel, RobotModel, load_robot, robot_names
from steelyard.robot._friction import FrictionLaw
from steelyard.signals import joint_torque, with_chosen_cutoff
from steelyard.torque import weigh as weigh_samples
from steelyard.verdict import Doubt, DoubtKind
from steelyard.workflow._data import (
    Data,
    Run,
    UniformRun,
    arm_words,
    errors_name,
    qualities,
    require_motion,
    runs_of,
    short_names,
    temperature_of,
)

if TYPE_CHECKING:
    from steelyard.identification._feasible import FeasibleArm
    from steelyard.report import Page

_SLOW_MOTION = Preparation(cutoff_hz=2.0, torque_cutoff_hz=2.0, trim_s=1.5, lowest_speed=0.0)


@dataclass(frozen=True, eq=False)
class KnownMass:
    """Recordings with a payload of known mass, from which the gains of the drives follow.

    Attributes:
        mass: of the payload, [kg]
        data: recordings of the arm with the payload
    """

    mass: float
    data: Data


Gains: TypeAlias = Literal["auto", "robot", "targets"] | KnownMass | ArrayLike
"""Source of gains: `auto` uses measured torques, else the robot's gains, else the controller's
targets; `robot` and `targets` require these; numbers, (n,) [Nm/A]; or recordings with a known mass,
which correct those of the robot, or else of the controller's targets."""


@dataclass(frozen=True, eq=False)
class Identification:
    """An identified arm with the runs that it was identified from.

    Attributes:
        model: of the arm
        fitted: runs that it was fitted to
        predicted: runs that were not fitted, for validation
        gains_from: where the gains come from, in words
        gains: as found, or given as numbers; None if torques were measured, or the robot has gains
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
        """The empty arm with the runs that it was identified from; see `identify`.

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
        arm = load_robot(robot) if isinstance(robot, str) else robot
        settings = preparation or Preparation()
        fitted = runs_of(data, arm, how=settings)
        predicted = runs_of(validate, arm, how=settings)
        if not fitted:
            raise InvalidSamples("there are no runs to identify from")
        require_motion(fitted, "identify an arm")
        arm = _with_recorded_serial(arm, (*fitted, *predicted))
        runs = _prepared(arm, fitted, settings, gains)
        arm = runs.robot
        predicted = tuple(run.prepared(runs.settings, runs.drive, arm.limits) for run in predicted)
        samples = [run.ready for run in runs.fitted]
        model = identify_from_samples(
            arm, samples, friction=friction, method=method, progress=progress
        )
        fitted = runs.fitted
        drive_gains = runs.gains
        gains_from = runs.gains_from
        if isinstance(gains, KnownMass):
            drive_gains = _gains_by_mass(replace(model, lag_std=runs.lag_std), runs, gains)
            drive = drive_gains.in_drive(arm.drive)
            gains_from += f", corrected by a known mass: {gain_text(drive)}"
            gains_from += f"; {drive_gains.verdict.sentence}"
            fitted = tuple(run.with_gains(drive_gains) for run in fitted)
            predicted = tuple(run.with_gains(drive_gains) for run in predicted)
            samples = [run.ready for run in fitted]
            model = refit(model, arm.with_drive(drive), samples, friction=friction)
        doubts = [
            *(doubt for run in (*fitted, *predicted) for doubt in run.doubts),
            *_training_run_doubts(fitted, predicted),
            *_prediction_doubts(model, fitted, predicted),
            *_other_robot_doubts(arm, fitted, runs.targets),
            *_small_torque_doubts(arm, fitted),
            *_gains_doubts(runs, gains),
        ]
        if drive_gains is not None:
            doubts += drive_gains.verdict.doubts
        model = replace(
            model,
            estimate=replace(model.estimate, verdict=model.verdict.doubted(*doubts)),
            temperature=temperature_of(fitted),
            lag_std=runs.lag_std,
        )
        return cls(model, fitted, predicted, gains_from, drive_gains)

    def solved_again(
        self, *, offsets: bool, mean_of_runs: bool, method: FitMethod
    ) -> Identification:
        """The same runs with parameters solved in another way; see `solved_again`.

        Args:
            offsets: whether torque offsets are among the unknowns
            mean_of_runs: whether each run is solved alone, and the mean of the parameters taken
            method: of the fit: 'weighted' or 'ordinary'
        """
        require_solvable_again(method, mean_of_runs=mean_of_runs, runs=len(self.fitted))
        model = solved_again(
            self.model,
            offsets=offsets,
            mean_of_runs=mean_of_runs,
            equal_weights=method == "ordinary",
        )
        return replace(self, model=model)

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, fitted ones first."""
        return (*self.fitted, *self.predicted)

    @property
    def validations(self) -> dict[str, Validation]:
        """How well the model predicts each run, by its name."""
        return {run.name: self.model.validate(run.ready) for run in self.runs}

    @cached_property
    def alike_arms(self) -> tuple[str, ...]:
        """Bundled arms that the first run may be of as well, if a bundled arm was stated.

        There are none where the recording tells its arm itself.
        """
        first = self.fitted[0]
        robot = self.model.robot
        if first.recording is not None and first.recording.arm.kind == robot.name:
            return ()
        if robot.urdf_file or robot.name not in robot_names():
            return ()
        return arms_with_equal_fit(robot, first.ready)

    @property
    def alike_sentence(self) -> str:
        """What torques do not tell about the type of the arm; empty where nothing is open."""
        if not self.alike_arms:
            return ""
        *first, last = self.alike_arms
        others = f"{', '.join(first)} or {last}" if first else last
        return (
            f"Torques do not tell {self.model.robot.name} from {others}, whose links differ in"
            " length only: read the type on the arm, because a wrong one moves the centre of mass."
        )

    def page(self, bodies: FeasibleArm | None = None) -> Page:
        """The report on the identification; it draws the first run that was not fitted.

        Args:
            bodies: the nearest real bodies, `model.feasible_arm()`, to be mentioned
        """
        from steelyard.report._identification import identification_page

        names = short_names(self.runs)
        fitted = {run.name for run in self.fitted}
        model = self.model
        notes = [f"Drives: {self.gains_from}.", model.lag_sentence, model.run_spread_sentence]
        if self.alike_sentence:
            notes.append(self.alike_sentence)
        if bodies is not None:
            notes.append(f"Real bodies: {bodies.status}")
        page = identification_page(
            self.model,
            {names[run]: run.ready for run in self.fitted},
            {names[run]: run.ready for run in self.predicted if run.name not in fitted},
            notes=notes,
        )
        page = page.with_subject(arm_words(model.robot), [names[run] for run in self.runs])
        return page.with_quality(qualities(self.runs, self.model.robot))


def identify(
    robot: RobotModel | str,
    data: Data,
    *,
    friction: str | FrictionLaw | None = "auto",
    gains: Gains = "auto",
    lag: float | Literal["auto"] = "auto",
    preparation: Preparation | None = None,
    method: FitMethod = "weighted",
    progress: Progress | None = None,
) -> DynamicModel:
    """The empty arm from its own motion and torques: base parameters and friction, with covariance.

    Args:
        robot: the arm, or its name or file for `load_robot`
        data: of the empty arm: files, recordings, samples or tables; one or several
        friction: name of a law; 'auto' for the one that predicts best; a law with initial
            shapes; or None for the law of `robot.drive`
        gains: where torques come from when motor currents were recorded, see `Gains`
        lag: how much later all torques come than the motion, [s]; 'auto' for the lag that predicts
            better than none, if there is one
        preparation: how recordings become samples; the defaults of `Preparation` otherwise
        method: 'weighted' (joints by their noise), 'ordinary' (all alike) or 'huber'
        progress: called with the share that is done and words
    """
    arm = load_robot(robot) if isinstance(robot, str) else robot
    found = Identification.of(
        arm,
        data,
        friction=friction,
        gains=gains,
        preparation=with_lag(preparation or Preparation(), lag, arm.n),
        method=method,
        progress=progress,
    )
    return found.model.with_page(found.page)


def _with_recorded_serial(robot: RobotModel, runs: Sequence[Run]) -> RobotModel:
    """The robot with the serial number of the recorded arm; several arms are refused."""
    arm = robot.arm
    for run in runs:
        if run.recorded_arm.differs_from(arm):
            raise InvalidRobot(f"{run.name} was recorded on {run.recorded_arm}, not on {arm}")
        arm = arm.completed(run.recorded_arm)
    return robot.with_serial(arm.serial)


def require_solvable_again(method: FitMethod, *, mean_of_runs: bool, runs: int) -> None:
    """Refuses what `Identification.solved_again` cannot solve; needs no computation.

    Args:
        method: of the fit
        mean_of_runs: whether each run is to be solved alone
        runs: number of recordings that are fitted
    """
    if method == "huber":
        raise InvalidSamples(
            "`method` 'huber' weights single rows, which are not kept: use 'weighted' or"
            " 'ordinary' without offsets, or for the mean of runs"
        )
    if mean_of_runs and runs < 2:
        raise InvalidSamples("the mean of runs needs two recordings or more, got one")


def with_lag(preparation: Preparation, lag: float | Literal["auto"], n: int) -> Preparation:
    """A preparation that takes all torques later by a lag.

    Args:
        preparation: without lags, if a lag is given
        lag: of all joints, [s]; 'auto' to leave the preparation as it is
        n: number of joints
    """
    if lag == "auto":
        return preparation
    if isinstance(lag, str):
        raise InvalidSamples(f"`lag` is a number of seconds or 'auto', got '{lag}'")
    if preparation.lag_s is not None:
        raise InvalidSamples(
            "`lag` and `preparation.lag_s` both say how late torques are: give one"
        )
    return replace(preparation, lag_s=(lag,) * n)


class _PreparedRuns(NamedTuple):
    """Runs of the empty arm, ready to fit, with the settings that prepared them.

    Attributes:
        robot: the arm, with gains if torques come from currents
        fitted: runs with samples
        settings: of the preparation, with the lags of torques
        drive: that converts currents to torques; None for measured torques
        gains: of the drives as found or given; None if torques were measured, or the robot has them
        gains_from: where the gains come from, in words
        targets: for each run that of the controller's target torques; None if it was not needed
        lag_std: standard deviations of the lags, (n,) [s]; None if lags were not estimated
    """

    robot: RobotModel
    fitted: tuple[Run, ...]
    settings: Preparation
    drive: DriveModel | None
    gains: DriveGains | None
    gains_from: str
    targets: tuple[UniformRun | None, ...]
    lag_std: Array | None


def _prepared(
    robot: RobotModel, runs: Sequence[Run], settings: Preparation, wanted: Gains
) -> _PreparedRuns:
    """The runs with gains, cut-off and lags found from all of them."""
    recordings = [run.recording for run in runs if run.recording is not None]
    for run in runs:
        if run.recording is not None and run.recording.current is None:
            with errors_name(run):
                joint_torque(run.recording)  # raises an error where there are no torques either
    drive, gains, gains_from = _find_gains(robot, recordings, wanted)
    if drive is not None:
        robot = robot.with_drive(drive)
    settings = with_chosen_cutoff(settings, recordings)
    targets: tuple[UniformRun | None, ...] = (None,) * len(runs)
    if gains is not None and gains.origin == "targets" and drive is not None:
        if robot.drive.coupling is None:
            gains, targets = _scaled_gains(gains, robot, runs, settings)
        drive = gains.in_drive(drive)
        gains_from = f"{gains_from} {gain_text(drive)}; {gains.verdict.sentence}"
        robot = robot.with_drive(drive)
    uniform = [UniformRun.of(run, settings, drive, robot.limits) for run in runs]
    fitted = tuple(run.prepared(settings) for run in uniform)
    lag_std = None
    if settings.lag_s is None and len(recordings) == len(runs):
        lags = time_lags(robot, [run.ready for run in fitted])
        lag_std = lags.std
        if lags.value.any():
            settings = replace(settings, lag_s=tuple(lags.value.tolist()))
            fitted = tuple(run.prepared(settings) for run in uniform)
    return _PreparedRuns(robot, fitted, settings, drive, gains, gains_from, targets, lag_std)


def _find_gains(
    robot: RobotModel, recordings: Sequence[Recording], wanted: Gains
) -> tuple[DriveModel | None, DriveGains | None, str]:
    """The drives with gains, the gains as found, and their origin in words.

    The first is None if torques were measured, the second if the robot has the gains.
    """
    for recording in recordings:
        if recording.n != robot.n:
            raise InvalidSamples(
                f"{robot.name} has {robot.n} joints, a recording has {recording.n}"
            )
    if isinstance(wanted, KnownMass):
        wanted = _first_gains(robot, recordings)
    if not isinstance(wanted, str):
        numbers = np.array(wanted, dtype=float)
        if numbers.shape != (robot.n,):
            raise InvalidSamples(
                f"there are {numbers.size} gains, {robot.name} has {robot.n} joints"
            )
        gains = DriveGains.given(numbers)
        return gains.in_drive(robot.drive), gains, "gains as given"
    if wanted not in ("auto", "robot", "targets"):
        raise InvalidSamples(
            f"`gains` must be 'auto', 'robot', 'targets', numbers or a known mass, got '{wanted}'"
        )
    if wanted == "auto" and all(recording.tau is not None for recording in recordings):
        return None, None, "torques were measured"
    drive = robot.drive
    if wanted == "robot" or (wanted == "auto" and drive.gain is not None):
        if drive.gain is None:
            raise InvalidSamples(
                f"{robot.name} has no drive gains: use those of targets, or give numbers"
            )
        return drive.with_tolerances(), None, "gains of the robot file"
    gains = _gains_by_targets(recordings)
    return gains.in_drive(drive), gains, "gains from the controller's targets:"


def _first_gains(robot: RobotModel, recordings: Sequence[Recording]) -> Literal["robot", "targets"]:
    """Where the gains come from that a known mass corrects."""
    if any(recording.current is None for recording in recordings):
        raise InvalidSamples(
            "a known mass corrects drive gains: the recordings need motor currents"
        )
    if robot.drive.gain is not None:
        return "robot"
    if not _have_targets(recordings):
        raise InvalidSamples(
            "a known mass corrects gains that are roughly known, and neither the robot file nor the"
            " controller's targets give any: give the gain of each drive as `gains` [Nm/A]"
        )
    return "targets"


def _have_targets(recordings: Sequence[Recording]) -> bool:
    """Whether all recordings hold target currents and target torques."""
    return all(r.current_target is not None and r.tau_target is not None for r in recordings)


def _gains_by_targets(recordings: Sequence[Recording]) -> DriveGains:
    if not _have_targets(recordings):
        raise InvalidSamples(
            "the recordings hold motor currents without the controller's targets: give the gain of"
            " each drive as `gains` [Nm/A]"
        )
    gains = gains_from_targets(recordings)
    if not gains.known.all():
        raise InvalidSamples(f"gains from targets: {gains.verdict.sentence}")
    return gains


def _scaled_gains(
    gains: DriveGains, robot: RobotModel, runs: Sequence[Run], settings: Preparation
) -> tuple[DriveGains, tuple[UniformRun | None, ...]]:
    """Gains on the scale of the controller's own model of the arm, and runs of its target torques.

    The gains stay as they are if the runs do not show the scale. Runs without a recording have no
    target torques: None.
    """
    cutoff_hz = SMOOTH_HZ
    if isinstance(settings.cutoff_hz, float | int):
        cutoff_hz = min(settings.cutoff_hz, SMOOTH_HZ)
    smooth = replace(settings, cutoff_hz=cutoff_hz)
    measured = []
    stated = []
    targets: list[UniformRun | None] = []
    for run in runs:
        if run.recording is None:
            targets.append(None)
            continue
        measured.append(run.prepared(smooth, robot.drive).ready)
        target = UniformRun.of(run.of_controller(), settings)
        stated.append(target.prepared(smooth).ready)
        targets.append(target)
    return scaled_by_targets(gains, robot, measured, stated), tuple(targets)


def _gains_by_mass(model: DynamicModel, empty: _PreparedRuns, known: KnownMass) -> DriveGains:
    """The gains with which the weighed payload has its known mass."""
    robot = model.robot
    runs = runs_of(known.data, robot, how=empty.settings)
    loaded = [
        run.prepared(empty.settings, run.drive_for(model), robot.limits).ready for run in runs
    ]
    if not loaded:
        raise InvalidSamples("a known mass needs at least one recording with it")
    at_identification = replace(model, temperature=temperature_of(empty.fitted))
    drifted, doubts = with_temperature_drift(at_identification, temperature_of(runs))
    payload = weigh_samples(drifted, loaded)
    gains = gains_from_known_mass(
        model, payload, known.mass, empty=[run.ready for run in empty.fitted], loaded=loaded
    )
    if not gains.known.all():
        raise InvalidSamples(f"gains from a known mass: {gains.verdict.sentence}")
    return replace(gains, verdict=gains.verdict.doubted(*doubts))


def _training_run_doubts(fitted: Sequence[Run], predicted: Sequence[Run]) -> list[Doubt]:
    """Doubts about runs that judge a model although it was fitted to them."""
    names = {run.name for run in fitted}
    doubts = []
    for run in predicted:
        if run.name in names:
            words = f"{run.name} was also fitted: it cannot validate the model"
            doubts.append(Doubt(DoubtKind.RECORDING, words, blocks=False))
    return doubts


def _prediction_doubts(
    model: DynamicModel, fitted: Sequence[Run], predicted: Sequence[Run]
) -> list[Doubt]:
    """Doubts about runs that the model does not predict."""
    names = {run.name for run in fitted}
    found = [
        model.prediction_doubt(run.ready, run.name) for run in predicted if run.name not in names
    ]
    return [doubt for doubt in found if doubt is not None]


def _other_robot_doubts(
    robot: RobotModel, runs: Sequence[Run], targets: Sequence[UniformRun | None]
) -> list[Doubt]:
    """The first doubt about a recording that seems to be of another robot.

    Args:
        robot: the arm
        runs: that were fitted
        targets: for each run that of the target torques, if it is there already
    """
    for run, target in zip(runs, targets, strict=True):
        try:
            if target is None or not target.has_clock_of(_SLOW_MOTION):
                target = UniformRun.of(run.of_controller(), _SLOW_MOTION)
            samples = target.prepared(_SLOW_MOTION).ready
        except SteelyardError:
            continue  # the recording has no targets, or too few
        doubt = other_robot_doubt(robot, run.name, samples)
        if doubt is not None:
            return [doubt]
    for run in runs:
        doubt = other_kinematics_doubt(robot, run.name, run.ready)
        if doubt is not None:
            return [doubt]
    return []


def _gains_doubts(runs: _PreparedRuns, wanted: Gains) -> list[Doubt]:
    """A doubt about gains of the robot file that contradict the controller's targets.

    It does not block if the user chose the file's gains.
    """
    recordings = [run.recording for run in runs.fitted]
    if runs.drive is None or runs.gains is not None or not isinstance(wanted, str):
        return []
    try:
        targets = _gains_by_targets([each for each in recordings if each is not None])
    except SteelyardError:
        return []  # the recordings have no targets, or targets that do not determine the gains
    doubt = gains_doubt(runs.drive, targets)
    if doubt is None:
        return []
    return [replace(doubt, blocks=wanted == "auto")]


def _small_torque_doubts(robot: RobotModel, runs: Sequence[Run]) -> list[Doubt]:
    """The first doubt about a recording with torques far below those that the arm needs."""
    for run in runs:
        tau_target = None if run.recording is None else run.recording.tau_target
        doubt = small_torque_doubt(robot, run.name, run.ready, tau_target)
        if doubt is not None:
            return [doubt]
    return []
