"""Data of a workflow: files, recordings, samples or tables, each with a name for messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import (
    InvalidRecording,
    InvalidRobot,
    InvalidSamples,
    SteelyardError,
    UnreadableFile,
)
from steelyard.identification import DynamicModel
from steelyard.io import read
from steelyard.io._recordings import file_kind
from steelyard.quality import QualityReport, check
from steelyard.quality._check import moving_joints, with_zeros_for_unmeasured
from steelyard.quality._table import counted
from steelyard.recording import (
    UNKNOWN_ARM,
    ArmIdentity,
    Preparation,
    Recording,
    Samples,
    default_gap_s,
    is_data_frame,
)
from steelyard.recording._notes import NoteKind, has_kind
from steelyard.robot import DriveModel, JointLimits, RobotModel, robot_names
from steelyard.signals import with_chosen_cutoff
from steelyard.signals._prepare import UniformRecording
from steelyard.verdict import Doubt, DoubtKind

if TYPE_CHECKING:
    from steelyard.identification.gains import DriveGains


@runtime_checkable
class _NamedColumns(Protocol):
    """A data frame of pandas or Polars, a table of Arrow: named columns."""

    def __getitem__(self, name: Any, /) -> Any:
        """One column."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...


Source: TypeAlias = str | Path | Recording | Samples | _NamedColumns
Data: TypeAlias = Source | Iterable[Source] | Mapping[str, Source]
"""One source, many, or many by name."""

_ROBOT_ENDINGS = (".urdf", ".toml", ".xml")  # of robot files
_MIN_DURATION_S = 0.5  # of a recording
_MIN_PIECE_S = 1.0  # about one swing of a joint
_TRIM_PERIODS = 3.0  # of the cut-off, after which accelerations are right to 0.1 % of the largest


@dataclass(frozen=True, eq=False)
class Run:
    """One run of an arm.

    Attributes:
        name: for messages, mostly the file
        recording: as measured; None if samples were given
        samples: ready to fit; None until the run is prepared
        cut: where the file was cut and what was left out, in words; empty if it is whole
    """

    name: str
    recording: Recording | None = None
    samples: Samples | None = None
    cut: str = ""

    def prepared(
        self, how: Preparation, drive: DriveModel | None, limits: JointLimits | None = None
    ) -> Run:
        """The run with samples; a run that has samples already stays as it is.

        Args:
            how: filter and selection settings
            drive: that converts motor currents to torques; None for measured torques
            limits: of the joints, for the quality check
        """
        return UniformRun.of(self, how, drive, limits).prepared(how)

    def with_gains(self, gains: DriveGains) -> Run:
        """The prepared run with torques of other gains."""
        return replace(self, samples=gains.applied_to(self.ready))

    def named(self, joint_names: Sequence[str]) -> Run:
        """The run with names of its joints, unless its recording has names already."""
        if self.recording is None:
            return self
        return replace(self, recording=self.recording.named(joint_names))

    def of_controller(self) -> Run:
        """The same motion with the controller's target torque instead of the measured one."""
        if self.recording is None or self.recording.tau_target is None:
            raise InvalidSamples(
                f"{self.name} has no target torque of the controller, which the manufacturer method"
                " uses as that of the empty arm"
            )
        recording = replace(self.recording, tau=self.recording.tau_target, current=None)
        return replace(self, recording=recording, samples=None)

    @property
    def recorded_arm(self) -> ArmIdentity:
        """The arm that was recorded, as far as it is known."""
        if self.recording is None:
            return UNKNOWN_ARM
        return self.recording.arm

    @property
    def moves(self) -> bool:
        """Whether a joint moves in the recording."""
        return self.recording is not None and bool(moving_joints(self.recording).any())

    @property
    def ready(self) -> Samples:
        """The samples of the prepared run."""
        if self.samples is None:
            raise InvalidSamples(f"{self.name} was not prepared")
        return self.samples

    def drive_for(self, model: DynamicModel) -> DriveModel | None:
        """The drives that convert currents to torques, if the model was fitted to such torques."""
        recording = self.recording
        if recording is None:
            return None
        if not model.from_currents:
            if recording.tau is None and recording.current is not None:
                raise InvalidSamples(
                    f"{self.name} has motor currents, the model was fitted to measured torques:"
                    " record torques, or identify the arm from currents"
                )
            return None
        if recording.current is None:
            raise InvalidSamples(
                f"{self.name} has no motor currents, but the model was fitted to torques from"
                " currents"
            )
        return model.robot.drive

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Doubts about its recording that do not forbid its use."""
        words = []
        if self.cut:
            words.append(self.cut)
        if self.samples is not None:
            words += [f"{self.name}: {warning}" for warning in self.samples.warnings]
        doubts = [Doubt(DoubtKind.RECORDING, each, blocks=False) for each in words]
        notes = () if self.recording is None else self.recording.notes
        trusted = [note for note in notes if has_kind(note, NoteKind.TRUSTED)]
        doubts += [
            Doubt(DoubtKind.ASSUMED, f"{self.name}: {note}", blocks=False) for note in trusted
        ]
        return tuple(doubts)

    def pieces(self, how: Preparation) -> tuple[Run, ...]:
        """The run cut at gaps that are too long to bridge, without pieces that are too short."""
        recording = self.recording
        if recording is None or not recording.rate_hz:
            return (self,)
        measured = with_zeros_for_unmeasured(recording)
        effort = measured.current if measured.tau is None else measured.tau
        signals = np.hstack([x for x in (recording.q, effort) if x is not None])
        rows = np.flatnonzero(np.isfinite(signals).all(axis=1))
        steps = np.diff(recording.t[rows])
        longest_s = how.longest_gap_s
        if longest_s is None:
            longest_s = default_gap_s(1 / recording.rate_hz)
        gaps = np.flatnonzero(steps > longest_s)
        if not gaps.size:
            return (self,)
        spans = np.column_stack([rows[[0, *(gaps + 1)]], rows[[*gaps, -1]]])
        long_enough = np.diff(recording.t[spans], axis=1)[:, 0] >= _MIN_PIECE_S
        longest = int(steps.argmax())
        where = f"the longest {steps[longest]:.4g} s after row {rows[longest] + 1}"
        cut = f"{self.name} is cut at {counted(gaps.size, 'hole')} of its clock, {where}"
        if not long_enough.any():
            raise InvalidRecording(f"{cut}: no piece of {_MIN_PIECE_S:g} s is left")
        if short := [f"{i} to {j}" for i, j in spans[~long_enough] + 1]:
            cut += f"; rows {', '.join(short)} are left out, pieces shorter than {_MIN_PIECE_S:g} s"
        return tuple(
            Run(f"{self.name}, rows {i + 1} to {j + 1}", recording.rows(slice(i, j + 1)), cut=cut)
            for i, j in spans[long_enough].tolist()
        )


@dataclass(frozen=True, eq=False)
class UniformRun:
    """A run whose recording was checked and resampled once, for several filters and lags.

    Attributes:
        run: with the recording, or with samples
        signals: the checked recording on a uniform clock; None if the run has samples already
    """

    run: Run
    signals: UniformRecording | None

    @classmethod
    def of(
        cls,
        run: Run,
        how: Preparation,
        drive: DriveModel | None = None,
        limits: JointLimits | None = None,
    ) -> UniformRun:
        """The checked run; errors name it.

        Args:
            run: to be prepared
            how: settings, of which kinematics, rate and longest gap count
            drive: that converts motor currents to torques; None for measured torques
            limits: of the joints, for the quality check
        """
        if run.recording is None or run.samples is not None:
            return cls(run, None)
        with errors_name(run):
            return cls(run, UniformRecording.of(run.recording, how, drive=drive, limits=limits))

    def has_clock_of(self, how: Preparation) -> bool:
        """Whether other settings select and resample the recording in the same way."""
        return self.signals is not None and self.signals.has_clock_of(how)

    def prepared(self, how: Preparation) -> Run:
        """The run with samples; the moving ends of a piece of a file are trimmed.

        Args:
            how: filter and selection settings
        """
        if self.signals is None or self.run.recording is None:
            return self.run
        with errors_name(self.run):
            how = with_chosen_cutoff(how, [self.run.recording])
            trim_s = how.trim_s
            if self.run.cut and isinstance(how.cutoff_hz, float | int):
                trim_s = max(trim_s, _TRIM_PERIODS / how.cutoff_hz)
            samples = self.signals.samples(replace(how, trim_s=trim_s))
            return replace(self.run, samples=replace(samples, preparation=how))


@contextmanager
def errors_name(run: Run) -> Iterator[None]:
    """Puts the name of a run before the text of errors."""
    try:
        yield
    except SteelyardError as error:
        raise type(error)(f"{run.name}: {error}") from error


def identified_arm(model: DynamicModel | RobotModel | str | Path) -> DynamicModel:
    """The identified arm, from its file where a path is given; a robot is refused.

    Args:
        model: of the empty arm, or its file
    """
    if isinstance(model, DynamicModel):
        return model
    if isinstance(model, RobotModel) or is_robot(model):
        name = model.name if isinstance(model, RobotModel) else str(model)
        raise InvalidRobot(
            f"{name} is a robot, not an identified model: identify the empty arm first"
            " (steelyard identify, or sy.identify in Python)"
        )
    if not isinstance(model, str | Path):
        raise InvalidSamples(
            f"the model of the empty arm is a DynamicModel or its file, got {type(model).__name__}:"
            " check the order of the arguments"
        )
    return DynamicModel.load(model)


def is_robot(model: DynamicModel | RobotModel | str | Path) -> bool:
    """Whether a robot is given, its name or its file, and not an identified model.

    Args:
        model: of either kind
    """
    if isinstance(model, DynamicModel | RobotModel):
        return isinstance(model, RobotModel)
    name = str(model)
    return name in robot_names() or Path(name).suffix.lower() in _ROBOT_ENDINGS


def require_motion(runs: Sequence[Run], purpose: str) -> None:
    """Raises an error if a recording is far too short, or no joint moves in any of them.

    Args:
        runs: of an arm
        purpose: what the motion is for, as in 'identify an arm'
    """
    for run in runs:
        duration_s = _MIN_DURATION_S
        if run.recording is not None:
            duration_s = run.recording.duration_s
        if duration_s < _MIN_DURATION_S:
            raise InvalidSamples(
                f"{run.name} lasts {duration_s:.2g} s, which is too short to {purpose}: record 10 s"
                " or more, in which every joint swings"
            )
    if not runs or any(run.recording is None or run.moves for run in runs):
        return
    names = ", ".join(run.name for run in runs)
    raise InvalidSamples(
        f"no joint moves in {names}, and a single posture does not {purpose}: record a motion that"
        " swings every joint"
    )


def runs_of(
    data: Data, robot: RobotModel | None = None, *, how: Preparation | None = None
) -> tuple[Run, ...]:
    """The runs in data.

    Args:
        data: files, recordings, samples or tables: one, several, or several by name
        robot: the arm, whose joints are read from a ROS bag, in its order
        how: settings of the preparation, to cut runs at long gaps; None to leave them whole
    """
    runs = _runs(data, robot)
    if robot is not None:
        runs = tuple(run.named(robot.joint_names) for run in runs)
    if how is None:
        return runs
    return tuple(piece for run in runs for piece in run.pieces(how))


def _runs(data: Data, robot: RobotModel | None) -> tuple[Run, ...]:
    if isinstance(data, Mapping):
        return _distinct(tuple(_run(source, str(name), robot) for name, source in data.items()))
    if isinstance(data, str | Path | Recording | Samples) or is_data_frame(data):
        return (_run(data, "", robot),)
    if not isinstance(data, Iterable):
        raise InvalidSamples(
            f"data are files, recordings, samples or tables, got {type(data).__name__}"
        )
    runs = [_run(source, "", robot) for source in data]
    for k, run in enumerate(runs):
        if run.recording is None or not run.recording.source:
            runs[k] = replace(run, name=f"run {k + 1}")
    return _distinct(tuple(runs))


def _distinct(runs: tuple[Run, ...]) -> tuple[Run, ...]:
    """The runs; a recording that is given twice is refused, because its rows would count twice."""
    names: dict[int, str] = {}
    for run in runs:
        if run.recording is not None:
            signals = run.recording.signals
            key = hash(tuple((name, signals[name].tobytes()) for name in sorted(signals)))
            if key in names:
                raise InvalidSamples(
                    f"{names[key]} and {run.name} are the same recording: give it once"
                )
            names[key] = run.name
    return runs


def preparation_for(model: DynamicModel, preparation: Preparation | None) -> Preparation:
    """The settings to prepare a recording for a model: as given, else as those of the model."""
    return preparation or model.preparation or Preparation(kinematics=model.kinematics)


def temperature_of(runs: Sequence[Run]) -> Array | None:
    """The mean temperature of each drive over runs, (n,); None unless it was recorded in all.

    Args:
        runs: of an arm
    """
    means = []
    for run in runs:
        if run.recording is None or run.recording.temperature is None:
            return None
        means.append(np.nanmean(run.recording.temperature, axis=0))
    if not means:
        return None
    return np.asarray(np.mean(means, axis=0))


def qualities(runs: Sequence[Run], robot: RobotModel) -> dict[str, QualityReport]:
    """The quality of the recordings of an arm, by short name of the run."""
    return {
        name: check(run.recording, limits=robot.limits)
        for run, name in short_names(runs).items()
        if run.recording is not None
    }


def arm_words(robot: RobotModel) -> str:
    """The name of an arm, with its serial number where it is known."""
    if robot.serial:
        return f"{robot.name}, number {robot.serial}"
    return robot.name


def short_names(runs: Sequence[Run]) -> dict[Run, str]:
    """Names of runs without folders, unless two runs would have the same name."""
    count = Counter(Path(run.name).name for run in runs)
    names = {}
    for run in runs:
        short = Path(run.name).name
        names[run] = short if count[short] == 1 else run.name
    return names


def _run(source: Any, name: str, robot: RobotModel | None) -> Run:
    if isinstance(source, Samples):
        return Run(name or "the samples", samples=source)
    if isinstance(source, Recording):
        return Run(name or source.source or "the recording", source)
    if isinstance(source, str | Path):
        path = Path(source)
        joints: Sequence[str] = ()
        if robot is not None and file_kind(path) == "bag":
            joints = robot.joint_names
        return Run(name or str(path), _read(path, joints))
    if is_data_frame(source):
        return Run(name or "the data frame", Recording.from_dataframe(source))
    raise InvalidSamples(
        f"data are files, recordings, samples or tables, got {type(source).__name__}"
    )


def _read(path: Path, joints: Sequence[str]) -> Recording:
    """The recording in a file; a refusal that names arguments says whose they are."""
    try:
        return read(path, joint_names=joints)
    except UnreadableFile as error:
        if "`" in str(error):
            where = "these are arguments of `steelyard.read`, whose recording is data as well"
            error.args = (f"{error}; {where}",)
        raise
