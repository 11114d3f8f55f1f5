"""Recordings of joint torques or motor currents, ready to be tracked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard._arrays import Array
from steelyard.errors import InvalidRecording, InvalidSamples, UnknownName
from steelyard.identification import DynamicModel
from steelyard.identification._temperature import with_temperature_drift
from steelyard.payload import Payload
from steelyard.quality import check
from steelyard.recording import Preparation, Recording, Sample, Samples
from steelyard.signals import path_of, replay
from steelyard.torque.tracking import JointTorqueTracker, TorqueTracker, TorqueTrackerOptions
from steelyard.verdict import Doubt, DoubtKind
from steelyard.workflow._configured import configured_payload_doubts
from steelyard.workflow._data import (
    Data,
    Run,
    arm_words,
    identified_arm,
    preparation_for,
    qualities,
    runs_of,
    temperature_of,
)
from steelyard.workflow._tracking import DIRECT, Replay, TrackingOptions

if TYPE_CHECKING:
    from steelyard.report import Page, Section


@dataclass(frozen=True, eq=False)
class TorqueReplay(Replay):
    """A recording of the loaded arm, and the model of the empty one.

    Attributes:
        model: at the temperature of the recording
        run: the recording
        preparation: how rows become samples
        tracker: estimates the payload
        doubts: about the recording
        delay_s: time from the instant of a sample to its output, [s]; 0 for samples
        duration_s: of the recording, [s]; 0 for samples
    """

    model: DynamicModel
    run: Run
    preparation: Preparation
    tracker: JointTorqueTracker[Any]
    doubts: tuple[Doubt, ...]
    delay_s: float = 0.0
    duration_s: float = 0.0

    @classmethod
    def of(
        cls, data: Data, model: DynamicModel | str | Path, accuracy: float, options: TrackingOptions
    ) -> TorqueReplay:
        """The replay of a recording.

        Args:
            data: of the loaded arm: a file, a recording, samples or a table
            model: of the empty arm, or its file
            accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
            options: tracker and preparation
        """
        model = identified_arm(model)
        runs = runs_of(data, model.robot)
        if len(runs) != 1:
            raise InvalidSamples(f"one recording is tracked at a time, got {len(runs)}")
        model, doubts = with_temperature_drift(model, temperature_of(runs))
        how = replace(preparation_for(model, options.preparation), trim_s=0.0, decimate=1)
        tracker = tracker_named(options.tracker, model, accuracy)
        (run,) = runs
        made = cls(model, run, how, tracker, (*doubts, *_quality_doubts(run, model)))
        if run.recording is None:
            return made
        path = path_of(run.recording, how, None, unfiltered=tracker.takes_raw_rows)
        delay_s = path.delay_s
        return replace(made, delay_s=delay_s, duration_s=run.recording.duration_s)

    def samples(self) -> Iterator[Sample[Array]]:
        """The samples of the tracker, in the order of time."""
        source: Recording | Samples | None = self.run.recording
        if source is None:
            source = self.run.ready
        v_max = self.model.robot.limits.v_max
        drive = self.run.drive_for(self.model)
        return replay(
            source,
            self.preparation,
            drive=drive,
            v_max=v_max,
            unfiltered=self.tracker.takes_raw_rows,
        )

    def doubts_about(self, payload: Payload) -> tuple[Doubt, ...]:
        """Doubts about the recording, and about the payload that is set on the controller.

        Args:
            payload: at the end
        """
        recordings = [self.run.recording]
        beside = configured_payload_doubts(recordings, payload, beyond="the empty arm")
        return (*self.doubts, *beside)

    def page(self, payload: Payload, curve: Section) -> Page:
        """The page that shows and explains a payload of this recording.

        Args:
            payload: at the end
            curve: section with the curve of how it became known
        """
        from steelyard.report._payload import payload_page

        how = preparation_for(self.model, None)
        samples = self.run.prepared(how, self.run.drive_for(self.model)).ready
        page = payload_page(self.model, payload, samples, extra=[curve])
        page = page.with_subject(arm_words(self.model.robot), [Path(self.run.name).name])
        return page.with_quality(qualities([self.run], self.model.robot))


def tracker_named(name: str, model: DynamicModel, accuracy: float) -> JointTorqueTracker[Any]:
    """The tracker of a name: ours, or one of another package, which makes it of a model.

    Args:
        model: of the empty arm
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
    """
    if name == DIRECT:
        options = TorqueTrackerOptions(accuracy=accuracy)
        return TorqueTracker(model, model.kinematics, options=options)
    others = {entry.name: entry for entry in entry_points(group="steelyard.trackers")}
    if name in others:
        tracker: JointTorqueTracker[Any] = others[name].load()(model, accuracy)
        return tracker
    known = ", ".join([DIRECT, *others])
    hint = ""
    if not others:
        hint = "; those of papers are in another package: pip install ./papers"
    raise UnknownName(f"no tracker '{name}'; there are {known}{hint}")


def _quality_doubts(run: Run, model: DynamicModel) -> tuple[Doubt, ...]:
    """Faults of a recording that can be tracked in spite of them; others are refused."""
    if run.recording is None:
        return tuple(run.doubts)
    gain = None
    drive = run.drive_for(model)
    if drive is not None:
        gain = drive.gain
    report = check(run.recording, limits=model.robot.limits, gain=gain)
    if not report.ok:
        raise InvalidRecording(
            f"{run.name}: the recording is not fit for use: {report.findings[0].sentence}"
        )
    return tuple(
        Doubt(DoubtKind.RECORDING, f"{run.name}: {x}", blocks=False) for x in report.warnings
    )
