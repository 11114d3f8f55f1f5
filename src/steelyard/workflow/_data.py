"""Data on the way to an answer: files, recordings, samples or tables, each with a name for messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidRecording, InvalidSamples, SteelyardError
from steelyard.identification import DynamicModel
from steelyard.io import read
from steelyard.io._recordings import file_kind
from steelyard.quality import QualityReport, check
from steelyard.quality._table import many
from steelyard.recording import Preparation, Recording, Samples, default_gap_s, is_data_frame
from steelyard.robot import DriveModel, JointLimits, RobotModel
from steelyard.robot._drive import GAIN_DRIFT_PER_KELVIN
from steelyard.signals import prepare, with_chosen_cutoff
from steelyard.verdict import Doubt, DoubtKind


@runtime_checkable
class _Table(Protocol):
    """A data frame of pandas or Polars, a table of Arrow: named columns."""

    def __getitem__(self, name: Any, /) -> Any:
        """One column."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...


Source: TypeAlias = str | Path | Recording | Samples | _Table
Data: TypeAlias = Source | Iterable[Source] | Mapping[str, Source]
"""One source, many, or many by name."""

_SHORTEST_S = 1.0  # a piece is a swing of a joint at least
_SETTLED = (
    3.0  # over the cut-off: so far from an end, accelerations are right to 0.1 % of the largest
)


@dataclass(frozen=True, eq=False)
class Run:
    """One run of an arm.

    Attributes:
        name: what it is called in messages, mostly its file
        recording: as measured; None where samples were given
        samples: ready to fit; None until the run is prepared
        cut: where its file was cut and what was left out, in words; empty where nothing was
    """

    name: str
    recording: Recording | None = None
    samples: Samples | None = None
    cut: str = ""

    def prepared(
        self, how: Preparation, drive: DriveModel | None, limits: JointLimits | None = None
    ) -> Run:
        """The run with samples; one that has them already stays as it is. Refusals name the run.

        A piece of a file begins and ends in motion, where the filter sees too little: its ends are
        trimmed.

        Args:
            drive: that makes torques of motor currents; None where torques were measured
            limits: of the joints, which its motion and torques must not be far beyond
        """
        if self.recording is None or self.samples is not None:
            return self
        try:
            how = with_chosen_cutoff(how, [self.recording])
            if isinstance(how.cutoff_hz, float | int):
                cutoff_hz = how.cutoff_hz
            else:
                cutoff_hz = np.inf
            if self.cut:
                settled_s = _SETTLED / cutoff_hz
            else:
                settled_s = 0.0
            here = replace(how, trim_s=max(how.trim_s, settled_s))
            samples = prepare(self.recording, here, drive=drive, limits=limits)
            return replace(self, samples=replace(samples, preparation=how))
        except SteelyardError as error:
            raise type(error)(f"{self.name}: {error}") from error

    def named(self, joint_names: Sequence[str]) -> Run:
        """The run with these names of its joints, where its recording has none of its own."""
        if self.recording is None:
            return self
        return replace(self, recording=self.recording.named(joint_names))

    def of_controller(self) -> Run:
        """The same motion with the controller's target torque, as if it had been measured."""
        if self.recording is None or self.recording.tau_target is None:
            raise InvalidSamples(
                f"{self.name} has no target torque of the controller, which the manufacturer"
                " method takes for"
                " that of the empty arm"
            )
        recording = replace(self.recording, tau=self.recording.tau_target, current=None)
        return replace(self, recording=recording, samples=None)

    @property
    def ready(self) -> Samples:
        """Its samples."""
        if self.samples is None:
            raise InvalidSamples(f"{self.name} was not prepared")
        return self.samples

    def drive_for(self, model: DynamicModel) -> DriveModel | None:
        """The drives that make torques of its currents, where a model was fitted to such torques."""
        recording = self.recording
        if recording is None:
            return None
        if not model.from_currents:
            if recording.tau is None and recording.current is not None:
                raise InvalidSamples(
                    f"{self.name} has motor currents, the model was fitted to measured torques:"
                    " record"
                    " torques, or identify the arm from currents"
                )
            return None
        if recording.current is None:
            raise InvalidSamples(
                f"{self.name} has no motor currents, but the model was fitted to torques made of"
                " currents"
            )
        return model.robot.drive

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """What is wrong with its recording, and yet does not forbid to use it."""
        warnings = () if self.samples is None else self.samples.warnings
        words = [
            *([self.cut] if self.cut else []),
            *(f"{self.name}: {warning}" for warning in warnings),
        ]
        return tuple(Doubt(DoubtKind.RECORDING, each, blocks=False) for each in words)

    def pieces(self, how: Preparation) -> tuple[Run, ...]:
        """The run cut at holes of its clock or signals too long to bridge; pieces too short are left out."""
        recording = self.recording
        if recording is None or not recording.rate_hz:
            return (self,)
        if recording.tau is None:
            effort = recording.current
        else:
            effort = recording.tau
        signals = np.hstack([x for x in (recording.q, effort) if x is not None])
        rows = np.flatnonzero(np.isfinite(signals).all(axis=1))
        steps = np.diff(recording.t[rows])
        if how.longest_gap_s is None:
            longest_s = default_gap_s(1 / recording.rate_hz)
        else:
            longest_s = how.longest_gap_s
        holes = np.flatnonzero(steps > longest_s)
        if not holes.size:
            return (self,)
        spans = np.column_stack([rows[[0, *(holes + 1)]], rows[[*holes, -1]]])
        long_enough = np.diff(recording.t[spans], axis=1)[:, 0] >= _SHORTEST_S
        at = int(steps.argmax())
        where = f"the longest {steps[at]:.4g} s after row {rows[at] + 1}"
        cut = f"{self.name} is cut at {many(holes.size, 'hole')} of its clock, {where}"
        if not long_enough.any():
            raise InvalidRecording(f"{cut}: no piece of {_SHORTEST_S:g} s is left")
        if short := [f"{i} to {j}" for i, j in spans[~long_enough] + 1]:
            cut += f"; rows {', '.join(short)} are left out, pieces shorter than {_SHORTEST_S:g} s"
        return tuple(
            Run(f"{self.name}, rows {i + 1} to {j + 1}", recording.rows(slice(i, j + 1)), cut=cut)
            for i, j in spans[long_enough].tolist()
        )


def runs_of(
    data: Data, robot: RobotModel | None = None, *, how: Preparation | None = None
) -> tuple[Run, ...]:
    """The runs in data.

    Args:
        data: files, recordings, samples or tables: one, several, or several by name
        robot: the arm, whose joints are read from a ROS bag, in its order
        how: they will be prepared: each is cut at its holes; None to leave them whole
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
    nameless = [run.recording is None or not run.recording.source for run in runs]
    named = (
        replace(run, name=f"run {k + 1}") if nameless[k] else run for k, run in enumerate(runs)
    )
    return _distinct(tuple(named))


def _distinct(runs: tuple[Run, ...]) -> tuple[Run, ...]:
    """The runs, where none is there twice: its rows would count twice."""
    seen: dict[int, str] = {}
    for run in runs:
        if run.recording is not None:
            signals = run.recording.signals
            key = hash(tuple((name, signals[name].tobytes()) for name in sorted(signals)))
            if key in seen:
                raise InvalidSamples(
                    f"{seen[key]} and {run.name} are the same recording: give it once"
                )
            seen[key] = run.name
    return runs


def preparation_for(model: DynamicModel, preparation: Preparation | None) -> Preparation:
    """How to prepare a recording for a model: as requested, else as those that the model was fitted to."""
    return preparation or model.preparation or Preparation(kinematics=model.kinematics)


def temperature_of(runs: Sequence[Run]) -> Array | None:
    """The mean temperature of each drive over runs, (n,); None where it was not recorded in all of them.

    Args:
        runs: of an arm
    """
    measured = [None if run.recording is None else run.recording.temperature for run in runs]
    known = [np.nanmean(values, axis=0) for values in measured if values is not None]
    return np.mean(known, axis=0) if known and len(known) == len(measured) else None


def as_warm(model: DynamicModel, runs: Sequence[Run]) -> tuple[DynamicModel, tuple[Doubt, ...]]:
    """The model whose gains may have drifted by what temperatures say, and a doubt where they say much.

    Args:
        model: of the empty arm
        runs: of the loaded one
    """
    drive = model.robot.drive
    now = temperature_of(runs)
    if not model.from_currents or not drive.gain_drift or model.temperature is None or now is None:
        return model, ()
    kelvins = now - model.temperature
    j = int(np.abs(kelvins).argmax())
    by_warmth = GAIN_DRIFT_PER_KELVIN * abs(float(kelvins[j]))
    drifting = replace(drive, gain_drift=float(np.hypot(drive.gain_drift, by_warmth)))
    words = (
        f"{model.robot.joint_names[j]} is {kelvins[j]:+.0f} K from where it was when the arm was"
        " identified:"
        f" gains may have changed by {100 * by_warmth:.1f} %"
    )
    if by_warmth > drive.gain_drift:
        doubts = [Doubt(DoubtKind.GAINS, words, blocks=False)]
    else:
        doubts = []
    return replace(model, robot=model.robot.with_drive(drifting)), tuple(doubts)


def qualities(runs: Sequence[Run], robot: RobotModel) -> dict[str, QualityReport]:
    """The quality of the recordings of an arm's runs, by short name."""
    return {
        name: check(run.recording, limits=robot.limits)
        for run, name in short_names(runs).items()
        if run.recording is not None
    }


def short_names(runs: Sequence[Run]) -> dict[Run, str]:
    """Names of runs without folders, where they differ without them."""
    short = [Path(run.name).name for run in runs]
    return {
        run: name if short.count(name) == 1 else run.name
        for run, name in zip(runs, short, strict=True)
    }


def _run(source: Any, name: str, robot: RobotModel | None) -> Run:
    if isinstance(source, Samples):
        return Run(name or "the samples", samples=source)
    if isinstance(source, Recording):
        return Run(name or source.source or "the recording", source)
    if isinstance(source, str | Path):
        path = Path(source)
        if robot is not None and file_kind(path) == "bag":
            joints = robot.joint_names
        else:
            joints = ()
        return Run(
            name if name and not name.startswith("run ") else str(path),
            read(path, joint_names=joints),
        )
    if is_data_frame(source):
        return Run(name or "the data frame", Recording.from_dataframe(source))
    raise InvalidSamples(
        f"data are files, recordings, samples or tables, got {type(source).__name__}"
    )
