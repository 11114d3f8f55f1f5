"""Recordings of a wrist sensor, ready to be tracked: rests and motion as they come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from steelyard._arrays import Array
from steelyard.io._wrist import SensorDescription
from steelyard.payload import Payload
from steelyard.recording import Sample
from steelyard.robot import RobotModel
from steelyard.verdict import Doubt, DoubtKind
from steelyard.workflow._tracking import Replay, WristTrackingOptions
from steelyard.workflow._wrist_data import WristRig, WristSource
from steelyard.wrist._checks import biased_steps, reading_steps
from steelyard.wrist.tracking import (
    SensorMotion,
    WristPath,
    WristTracker,
    WristTrackerOptions,
)
from steelyard.wrist.tracking._path import CALIBRATION_S

if TYPE_CHECKING:
    from steelyard.report import Page, Section
    from steelyard.wrist import WristPayload


@dataclass(frozen=True, eq=False)
class WristReplay(Replay):
    """A recording with the wrench of a wrist sensor.

    Attributes:
        t: times of the rows, (N,) [s]
        motion: of the rows, (N, c), see `WristPath`
        wrench: of the rows, (N, 6) [N, Nm], in the sensor frame
        path: makes samples of them, calibrated by the first second
        tracker: estimates the load on the sensor
        doubts: about the recording
        delay_s: time from the instant of a sample to its output, [s]
        duration_s: of the recording, [s]
    """

    t: Array
    motion: Array
    wrench: Array
    path: WristPath
    tracker: WristTracker
    doubts: tuple[Doubt, ...]
    delay_s: float
    duration_s: float

    @classmethod
    def of(
        cls,
        source: WristSource,
        robot: RobotModel | str | None,
        sensor: SensorDescription | str | Path | None,
        accuracy: float,
        options: WristTrackingOptions,
    ) -> WristReplay:
        """The replay of a recording.

        Args:
            source: with a wrench
            robot: the arm, or its name or file, for recordings with joints
            sensor: what the sensor is, or the TOML file of it
            accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
            options: cut-off, and whether the base is level
        """
        rig = WristRig.of(robot, sensor).in_motion
        data = rig.data(source)
        table = data.table
        table.require_timed()
        motion = data.motion
        first = table.t < table.t[0] + CALIBRATION_S
        cutoff_hz = options.cutoff_hz
        path = WristPath.calibrated(
            table.t[first],
            motion[first],
            table.wrench[first],
            table.sensor,
            robot=data.arm,
            cutoff_hz=cutoff_hz,
        )
        made = f"Kalman smoother, cut-off {cutoff_hz:g} Hz, {path.delay_s:.2f} s late"
        tracker = WristTracker(
            path.noise,
            table.sensor,
            rig.gravity_base,
            WristTrackerOptions(accuracy=accuracy, level=options.level),
            (*table.notes, made),
            differentiated=path.differentiated,
            reading_step=biased_steps(reading_steps(table.wrench), table.wrench),
        )
        return cls(
            table.t,
            motion,
            table.wrench,
            path=path,
            tracker=tracker,
            doubts=(
                *(Doubt(DoubtKind.RECORDING, words, blocks=False) for words in data.warnings),
                *rig.pose_doubts(source),
            ),
            delay_s=path.delay_s,
            duration_s=float(table.t[-1]),
        )

    def samples(self) -> Iterator[Sample[SensorMotion]]:
        """The samples of the tracker, in the order of time."""
        state = self.path.init()
        for t, motion, wrench in zip(self.t.tolist(), self.motion, self.wrench, strict=True):
            state, ready = self.path.step(state, t, motion, wrench)
            yield from ready

    def page(self, payload: Payload, curve: Section) -> Page:
        """The page that shows and explains a payload of this recording.

        Args:
            payload: at the end
            curve: section with the curve of how it became known
        """
        from steelyard.report._payload import wrench_page

        page = wrench_page(cast("WristPayload", payload), None, None)
        return replace(page, sections=(*page.sections, curve))
