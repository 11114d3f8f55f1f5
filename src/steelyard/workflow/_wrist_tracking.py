"""Recordings of a wrist sensor, ready to be tracked: rests and motion as they come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from steelyard.io._wrist import SensorDescription
from steelyard.payload import Payload
from steelyard.quality import check
from steelyard.robot import RobotModel
from steelyard.signals import RawRow
from steelyard.verdict import Doubt, DoubtKind
from steelyard.workflow._tracking import Replay, TrackingOptions
from steelyard.workflow._wrist import WristRig, WristSource
from steelyard.wrist._recording import WristRecording, complete_rows
from steelyard.wrist.tracking import (
    WristPath,
    WristSample,
    WristTracker,
    WristTrackerOptions,
    rows_of,
)
from steelyard.wrist.tracking._path import CALIBRATION_S

if TYPE_CHECKING:
    from steelyard.report import Page, Section
    from steelyard.wrist import WristPayload


@dataclass(frozen=True, eq=False)
class WristReplay(Replay):
    """A recording with the wrench of a wrist sensor.

    Attributes:
        rows: motion and wrench
        path: makes samples of them, calibrated by the first second
        tracker: estimates the load on the sensor
        doubts: about the recording
        delay_s: time from the instant of a sample to its output, [s]
        duration_s: of the recording, [s]
    """

    rows: tuple[RawRow, ...]
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
        options: TrackingOptions,
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
        table = rig.table(source)
        rows, doubts = _rows(rig, source, table)
        first = [row for row in rows if row.t < rows[0].t + CALIBRATION_S]
        arm = None
        if rig.holds_joints(source):
            arm = rig.robot
        cutoff_hz = options.cutoff_hz
        path = WristPath.calibrated(first, table.sensor, robot=arm, cutoff_hz=cutoff_hz)
        made = f"Kalman smoother, cut-off {cutoff_hz:g} Hz, {path.delay_s:.2f} s late"
        tracker = WristTracker(
            path.noise,
            table.sensor,
            rig.gravity_base,
            WristTrackerOptions(accuracy=accuracy, level=options.level),
            (*table.notes, made),
            differentiated=path.differentiated,
        )
        return cls(tuple(rows), path, tracker, doubts, path.delay_s, float(table.t[-1]))

    def samples(self, *, real_time: bool) -> Iterator[WristSample]:
        """The samples of the tracker, in the order of time.

        Args:
            real_time: no faster than the recording's clock
        """
        state = self.path.init()
        start_s = time.monotonic()
        for row in self.rows:
            wait_s = row.t - self.rows[0].t - (time.monotonic() - start_s)
            if real_time and wait_s > 0:
                time.sleep(wait_s)
            state, ready = self.path.step(state, row)
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


def _rows(
    rig: WristRig, source: WristSource, table: WristRecording
) -> tuple[list[RawRow], tuple[Doubt, ...]]:
    """The rows of a source, and faults with which it can be tracked nevertheless."""
    table.require_timed()
    warnings = table.warnings
    if rig.holds_joints(source):
        recording = rig.recording(source)
        quality = check(recording)
        quality.require_ok()
        warnings = quality.warnings
        q = recording.q[complete_rows(recording)]
        rows = [RawRow(*row) for row in zip(table.t.tolist(), q, table.wrench, strict=True)]
    else:
        rows = rows_of(table)
    return rows, tuple(Doubt(DoubtKind.RECORDING, words, blocks=False) for words in warnings)
