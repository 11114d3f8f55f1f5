"""Data on the way to an answer: files, recordings, samples or tables, each with a name for messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from steelyard.errors import InvalidSamples, SteelyardError
from steelyard.identification import DynamicModel
from steelyard.io import read_recording, recording_of_table
from steelyard.io.recordings import file_kind
from steelyard.recording import Preparation, Recording, Samples
from steelyard.robot import DriveModel, RobotModel
from steelyard.signals import prepare
from steelyard.verdict import Doubt, DoubtKind


@runtime_checkable
class Table(Protocol):
    """A data frame of pandas or Polars, a table of Arrow: named columns."""

    def __getitem__(self, name: Any, /) -> Any:
        """One column."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...


Source: TypeAlias = str | Path | Recording | Samples | Table
Data: TypeAlias = Source | Iterable[Source] | Mapping[str, Source]
"""One source, many, or many by name."""


@dataclass(frozen=True, eq=False)
class Run:
    """One run of an arm.

    Attributes:
        name: what it is called in messages, mostly its file
        recording: as measured; None where samples were given
        samples: ready to fit; None until the run is prepared
    """

    name: str
    recording: Recording | None = None
    samples: Samples | None = None

    def prepared(self, how: Preparation, drive: DriveModel | None) -> Run:
        """The run with samples; one that has them already stays as it is. Refusals name the run.

        Args:
            how: to make them of the recording
            drive: that makes torques of motor currents; None where torques were measured
        """
        if self.recording is None or self.samples is not None:
            return self
        try:
            return replace(self, samples=prepare(self.recording, how, drive=drive))
        except SteelyardError as error:
            raise type(error)(f"{self.name}: {error}") from error

    @property
    def ready(self) -> Samples:
        """Its samples."""
        if self.samples is None:
            raise InvalidSamples(f"{self.name} was not prepared")
        return self.samples

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """What is wrong with its recording, and yet does not forbid to use it."""
        warnings = () if self.samples is None else self.samples.warnings
        return tuple(Doubt(DoubtKind.RECORDING, f"{self.name}: {words}", blocks=False) for words in warnings)


def runs_of(data: Data, robot: RobotModel | None = None) -> tuple[Run, ...]:
    """The runs in data.

    Args:
        data: files, recordings, samples or tables: one, several, or several by name
        robot: the arm, whose joints are read from a ROS bag, in its order
    """
    if isinstance(data, Mapping):
        return tuple(_run(source, str(name), robot) for name, source in data.items())
    if isinstance(data, str | Path | Recording | Samples) or _is_table(data):
        return (_run(data, "", robot),)
    if not isinstance(data, Iterable):
        raise InvalidSamples(f"data are files, recordings, samples or tables, got {type(data).__name__}")
    runs = [_run(source, "", robot) for source in data]
    nameless = [run.recording is None or not run.recording.source for run in runs]
    return tuple(replace(run, name=f"run {k + 1}") if nameless[k] else run for k, run in enumerate(runs))


def drive_for(model: DynamicModel, run: Run) -> DriveModel | None:
    """The drives that make torques of a run's currents, where the model was fitted to such torques.

    Args:
        model: the identified arm
        run: to compare with it
    """
    recording = run.recording
    if recording is None:
        return None
    if not model.from_currents:
        if recording.tau is None and recording.current is not None:
            raise InvalidSamples(
                f"{run.name} has motor currents, the model was fitted to measured torques: record torques, or"
                " identify the arm from currents"
            )
        return None
    if recording.current is None:
        raise InvalidSamples(
            f"{run.name} has no motor currents, but the model was fitted to torques made of currents"
        )
    return model.robot.drive


def preparation_for(model: DynamicModel, preparation: Preparation | None) -> Preparation:
    """How to prepare a recording for a model: as asked for, else as those that the model was fitted to.

    Args:
        model: the identified arm
        preparation: asked for; None to do as the model did
    """
    return preparation or model.preparation or Preparation(kinematics=model.kinematics)


def doubts_of(runs: Sequence[Run]) -> tuple[Doubt, ...]:
    """What is wrong with the recordings of runs."""
    return tuple(doubt for run in runs for doubt in run.doubts)


def _run(source: Any, name: str, robot: RobotModel | None) -> Run:
    if isinstance(source, Samples):
        return Run(name or "the samples", samples=source)
    if isinstance(source, Recording):
        return Run(name or source.source or "the recording", source)
    if isinstance(source, str | Path):
        path = Path(source)
        joints = robot.joint_names if robot is not None and file_kind(path) == "bag" else ()
        return Run(
            name if name and not name.startswith("run ") else str(path),
            read_recording(path, joint_names=joints),
        )
    if _is_table(source):
        return Run(name or "the table", recording_of_table(source))
    raise InvalidSamples(f"data are files, recordings, samples or tables, got {type(source).__name__}")


def _is_table(source: Any) -> bool:
    return hasattr(source, "columns") or hasattr(source, "column_names")
