"""A wrist sensor on a stream: wrench and motion of rows, calibrated by the first second.

The first second shows how noisy the rows are. Rows become samples, and samples an estimate, as in
`steelyard.track` with a recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidRobot, InvalidSamples
from steelyard.io._wrist import SensorDescription
from steelyard.live._same_arm import require_same_arm
from steelyard.live._setup import Calibration, ContactDetector, Traces, TrackerSetup
from steelyard.live._source import MOTION_COLUMN, Row, Stream
from steelyard.payload._tracking import Progress
from steelyard.recording import DEFAULT_CUTOFF_HZ, Sample
from steelyard.recording._columns import Requested, find_layout
from steelyard.robot import RobotModel
from steelyard.verdict import Doubt
from steelyard.workflow._wrist_data import WristRig
from steelyard.wrist import WristSensor
from steelyard.wrist._checks import reading_steps
from steelyard.wrist.tracking import (
    SensorMotion,
    WristPath,
    WristTracker,
    WristTrackerOptions,
    WristTrackerState,
)
from steelyard.wrist.tracking._path import CALIBRATION_S

_NO_WRENCH = Requested({"wrench": []})  # rows carry their wrench beside the columns
_MIN_CALIBRATION_ROWS = 50
_TRACES = Traces(
    label="Contact",
    choices=("force", "torque"),
    first="force",
    curves=("x", "y", "z", "size"),
    titles=("force of a contact", "torque of a contact"),
    units=("N", "Nm"),
)


@dataclass(frozen=True, eq=False)
class WristSetup(TrackerSetup):
    """A stream with the wrench of a wrist sensor; `of` makes it.

    Attributes:
        name: of the source, for messages
        columns: names of the rows' values
        sensor: with the convention of the stream's wrench
        gravity_base: gravity without a tilt, (3,) [m/s^2], in the base frame
        robot: the arm; None where rows hold the motion of the sensor itself
        motion_columns: places of the sensor's motion or of the joint positions in a row
        cutoff_hz: of the smoother, [Hz]
        options: of the tracker
    """

    name: str
    columns: tuple[str, ...]
    sensor: WristSensor
    gravity_base: Array
    robot: RobotModel | None
    motion_columns: list[int]
    cutoff_hz: float = DEFAULT_CUTOFF_HZ
    options: WristTrackerOptions = field(default_factory=WristTrackerOptions)
    payload_is_complete = False  # a controller's payload includes the sensor
    starting = "the first second shows rate and noise"

    @classmethod
    def of(
        cls,
        stream: Stream,
        about: SensorDescription,
        robot: RobotModel | None,
        *,
        cutoff_hz: float = DEFAULT_CUTOFF_HZ,
        options: WristTrackerOptions | None = None,
    ) -> WristSetup:
        """The setup for a stream.

        Args:
            stream: its columns and, where it states one, its convention of the wrench count
            about: what is known about the sensor
            robot: the arm, where rows hold joint positions
            cutoff_hz: of the smoother, [Hz]
            options: of the tracker
        """
        name = str(stream.source)
        motion = [
            k for k, column in enumerate(stream.columns) if column.startswith(f"{MOTION_COLUMN}_")
        ]
        gravity = WristRig(robot, about).gravity_base
        if motion:
            robot = None
        else:
            motion = _joint_columns(name, stream.columns, robot)
        convention = stream.wrench_convention or about.sensor.convention
        sensor = replace(about.sensor, convention=convention)
        if options is None:
            options = WristTrackerOptions()
        return cls(name, stream.columns, sensor, gravity, robot, motion, cutoff_hz, options)

    @property
    def accuracy(self) -> float:
        """Half-width of the mass's 95 % interval over the mass at which it has converged."""
        return self.options.accuracy

    @property
    def arm(self) -> RobotModel:
        """The arm that a page shows; refused where rows hold no joints."""
        if self.robot is None:
            raise InvalidSamples(
                f"{self.name} sends no joints, and a page shows the arm: leave out `page`"
            )
        return self.robot

    @property
    def joint_columns(self) -> list[int]:
        """Places of the joint positions in a row, n."""
        return self.motion_columns

    @property
    def traces(self) -> Traces:
        """Force and torque of a contact."""
        return _TRACES

    def missing(self, row: Row) -> str:
        """What a row lacks for weighing: a wrench, or nothing."""
        if row.wrench is None:
            return "no wrench comes: is the sensor connected?"
        return ""

    def is_enough(self, rows: Sequence[Row]) -> bool:
        """Whether the first rows are enough to calibrate with."""
        return len(rows) >= _MIN_CALIBRATION_ROWS and rows[-1].t - rows[0].t >= CALIBRATION_S

    def calibrated(self, rows: Sequence[Row]) -> WristCalibration:
        """Tracker and path; refused where the rows come from another arm."""
        if self.robot is not None:
            last = zip(self.columns, rows[-1].values, strict=True)
            require_same_arm(self.robot, {name: np.array([x]) for name, x in last}, self.name)
        t = np.array([row.t - rows[0].t for row in rows])
        motion, wrench = zip(*map(self.motion_and_wrench, rows), strict=True)
        path = WristPath.calibrated(
            t,
            np.array(motion),
            np.array(wrench),
            self.sensor,
            robot=self.robot,
            cutoff_hz=self.cutoff_hz,
        )
        made = (f"Kalman smoother, cut-off {self.cutoff_hz:g} Hz, {path.delay_s:.2f} s late",)
        tracker = WristTracker(
            path.noise,
            self.sensor,
            self.gravity_base,
            self.options,
            made,
            differentiated=path.differentiated,
            reading_step=reading_steps(np.array(wrench)),
        )
        return WristCalibration(self, tracker, path)

    def motion_and_wrench(self, row: Row) -> tuple[Array, Array]:
        """Motion and wrench in a row, the wrench in our convention and in the sensor frame."""
        motion = np.array([row.values[k] for k in self.motion_columns], dtype=float)
        wrench = np.array(row.wrench, dtype=float)
        if self.sensor.frame == "base" and self.robot is not None:
            R_base_flange = self.robot.forward_kinematics(motion)[:3, :3]
            R = R_base_flange @ self.sensor.T_flange_sensor[:3, :3]
            wrench = (wrench.reshape(2, 3) @ R).ravel()
        if self.sensor.convention == "sensor_on_load":
            wrench = -wrench
        return motion, wrench


@dataclass(frozen=True, eq=False)
class WristCalibration(Calibration):
    """Tracker of a wrist sensor, and the path from rows to its samples.

    Attributes:
        setup: of the stream
        tracker: estimates the load on the sensor
        path: makes samples of rows
        doubts: that apply to every answer
    """

    setup: WristSetup
    tracker: WristTracker
    path: WristPath
    doubts: tuple[Doubt, ...] = ()

    def motion_and_effort(self, row: Row) -> tuple[Array, Array]:
        """Motion and wrench in a row."""
        return self.setup.motion_and_wrench(row)

    def trace(
        self, state: WristTrackerState, sample: Sample[SensorMotion], progress: Progress
    ) -> Array | None:
        """Force and torque of a contact with sizes, (4, 2) [N, Nm]; None until the load is known.

        Args:
            state: of the tracker
            sample: the last one
            progress: of the state
        """
        if not progress.converged or progress.contact is None:
            return None
        parts = progress.contact.wrench.reshape(2, 3)
        return np.column_stack([parts, np.linalg.norm(parts, axis=1)]).T

    def contact_detector(self) -> ContactDetector:
        """A detector that reports nothing: the tracker measures contacts itself."""
        return _no_contact


def _no_contact(state: WristTrackerState, sample: Sample[SensorMotion]) -> str:
    return ""


def _joint_columns(name: str, columns: tuple[str, ...], robot: RobotModel | None) -> list[int]:
    """Places of the joint positions in a row; refused where the arm is unknown or another one."""
    if robot is None:
        raise InvalidSamples(f"{name} sends joints: give the arm with `robot` or `model`")
    names = find_layout(columns, _NO_WRENCH, name).columns["q"]
    if len(names) != robot.n:
        raise InvalidRobot(f"{name} sends {len(names)} joints, {robot.name} has {robot.n}")
    return [columns.index(column) for column in names]
