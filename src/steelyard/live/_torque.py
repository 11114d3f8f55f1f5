"""Joint torques or motor currents of a stream, prepared as the recordings of the model were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidRobot, InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.identification._temperature import with_temperature_drift
from steelyard.live._same_arm import require_same_arm
from steelyard.live._setup import Calibration, ContactDetector, Traces, TrackerSetup
from steelyard.live._source import Row
from steelyard.live._touch import TouchWatch
from steelyard.payload._tracking import Progress
from steelyard.recording import ArmIdentity, Preparation, Sample, recording_of
from steelyard.recording._columns import Requested, find_layout
from steelyard.recording._layout import Layout
from steelyard.robot import DriveModel, RobotModel
from steelyard.signals import RowPath, joint_torque, path_of
from steelyard.torque.tracking import JointTorqueTracker
from steelyard.verdict import Doubt
from steelyard.workflow._data import Run, preparation_for, temperature_of
from steelyard.workflow._torque_tracking import tracker_named
from steelyard.workflow._tracking import DIRECT

_CALIBRATION_ROWS = 50
_CONTACT_STEP_S = 0.02  # shortest time between two samples that are searched for a contact
_NO_WRENCH = Requested({"wrench": []})  # a wrist sensor's columns are not used here


@dataclass(frozen=True, eq=False)
class TorqueSetup(TrackerSetup):
    """A stream of joint torques or motor currents.

    Attributes:
        model: of the empty arm
        columns: names of the rows' values
        name: of the source, for messages
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
        preparation: how rows become samples; as those of the model were, by default
        tracker: 'direct', or the name of one from another package
    """

    model: DynamicModel
    columns: tuple[str, ...]
    name: str = "the stream"
    accuracy: float = 0.01
    preparation: Preparation | None = None
    tracker: str = DIRECT
    payload_is_complete = True
    starting = "the filters fill"

    @property
    def arm(self) -> RobotModel:
        """The arm that a page shows."""
        return self.model.robot

    @property
    def identity(self) -> ArmIdentity:
        """The arm of the model."""
        return self.model.arm

    @cached_property
    def layout(self) -> Layout:
        """What the columns mean."""
        return find_layout(self.columns, _NO_WRENCH, self.name)

    @property
    def joint_columns(self) -> list[int]:
        """Places of the joint positions in a row, n."""
        return [self.columns.index(name) for name in self.layout.columns["q"]]

    @property
    def traces(self) -> Traces:
        """Torque of each joint: measured, of the arm with its payload, of the empty arm."""
        names = self.arm.joint_names
        curves = ("measured", "with payload", "empty arm")
        n = len(names)
        return Traces(
            "Torque of", names, names[min(1, n - 1)], curves, ("torque",) * n, ("Nm",) * n
        )

    def missing(self, row: Row) -> str:
        """What a row lacks for weighing: nothing."""
        return ""

    def is_enough(self, rows: Sequence[Row]) -> bool:
        """Whether the first rows are enough to calibrate with."""
        return len(rows) >= _CALIBRATION_ROWS

    def calibrated(self, rows: Sequence[Row]) -> TorqueCalibration:
        """Tracker and path; refused where the rows come from another arm."""
        values = np.array([row.values for row in rows], dtype=float)
        by_name = dict(zip(self.columns, values.T, strict=True))
        layout = self.layout
        recording = recording_of(layout, layout.gather(by_name), self.name)
        if recording.n != self.arm.n:
            raise InvalidRobot(
                f"{self.name} sends {recording.n} joints, the model is of {self.arm.name} with"
                f" {self.arm.n}"
            )
        require_same_arm(self.arm, by_name, self.name)
        return TorqueCalibration.of(self, Run(self.name, recording))


@dataclass(frozen=True, eq=False)
class TorqueCalibration(Calibration):
    """Tracker of joint torques, and the path from rows to its samples.

    Attributes:
        tracker: with the model at the present temperature
        path: makes samples of rows
        doubts: that apply to every answer
        drive: turns motor currents into torques; None where torques are measured
        motion_columns: places of the motion in a row
        effort_columns: places of torques or currents in a row
        joint_names: n names
    """

    tracker: JointTorqueTracker[Any]
    path: RowPath
    doubts: tuple[Doubt, ...]
    drive: DriveModel | None
    motion_columns: list[int]
    effort_columns: list[int]
    joint_names: tuple[str, ...]

    @classmethod
    def of(cls, setup: TorqueSetup, run: Run) -> TorqueCalibration:
        """The calibration by the first rows, prepared as the model's recordings were.

        Args:
            run: the first rows as a recording
        """
        if run.recording is None:
            raise InvalidSamples(f"{run.name} has no rows")
        model, doubts = with_temperature_drift(setup.model, temperature_of([run]))
        tracker = tracker_named(setup.tracker, model, setup.accuracy)
        how = replace(preparation_for(model, setup.preparation), trim_s=0.0, decimate=1)
        v_max = model.robot.limits.v_max
        path = path_of(run.recording, how, v_max, unfiltered=tracker.takes_raw_rows)
        drive = run.drive_for(model)
        joint_torque(run.recording, drive)  # refuses recordings without torque or current
        motion: tuple[str, ...] = ("q",)
        if how.kinematics == "commanded":
            motion = ("q_commanded", "v_commanded", "a_commanded")[: path.channels]
        if drive is None:
            effort = "tau"
        else:
            effort = "current"
        named = setup.layout.columns

        def places(*channels: str) -> list[int]:
            return [setup.columns.index(name) for channel in channels for name in named[channel]]

        return cls(
            tracker=tracker,
            path=path,
            doubts=tuple(doubts),
            drive=drive,
            motion_columns=places(*motion),
            effort_columns=places(effort),
            joint_names=model.robot.joint_names,
        )

    def motion_and_effort(self, row: Row) -> tuple[Array, Array]:
        """Motion and torques in a row."""
        values = np.array(row.values, dtype=float)
        effort = values[self.effort_columns]
        if self.drive is not None:
            effort = self.drive.torque_from_current(effort)
        return values[self.motion_columns], effort

    def block(self, rows: Sequence[Row]) -> Array:
        """Several rows as [t, motion, torques], (N, 1 + (c + 1) n)."""
        values = np.array([row.values for row in rows], dtype=float)
        effort = values[:, self.effort_columns]
        if self.drive is not None:
            effort = self.drive.torque_from_current(effort)
        t = [[row.t] for row in rows]
        return np.hstack([t, values[:, self.motion_columns], effort])

    def trace(self, state: Any, sample: Sample[Array], progress: Progress) -> Array | None:
        """Torque of each joint: measured, by the estimate, by the empty arm, (3, n) [Nm or N].

        Args:
            state: of the tracker
            sample: the last one
            progress: of the state
        """
        return np.vstack([sample.effort, self.tracker.torque(state, sample)])

    def contact_detector(self) -> ContactDetector:
        """A detector of pushes on the arm."""
        return _PushDetector(self.tracker, self.joint_names)


class _PushDetector:
    """Finds pushes in the residuals of the tracker, once they show the noise."""

    def __init__(self, tracker: JointTorqueTracker[Any], joint_names: tuple[str, ...]) -> None:
        self._tracker = tracker
        self._watch = TouchWatch(joint_names)
        self._searched_s = -np.inf

    def __call__(self, state: Any, sample: Sample[Array]) -> str:
        if sample.fault or 0 <= sample.t - self._searched_s < _CONTACT_STEP_S:
            return ""
        self._searched_s = sample.t
        found = self._tracker.residual(state, sample)
        if found is None:
            return ""
        residual, std = found
        return self._watch.look(sample.t, residual, std)
