"""Sources of a wrist sensor: files or recordings, with joints or with poses of the sensor.

A `WristRig` says what is known beforehand. Its `data` is a source with joints (`JointData`) or one
with poses (`PoseData`); both give the same things, and callers need not know which one it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeAlias, cast

import numpy as np

from steelyard._arrays import Array
from steelyard._units import GRAVITY_DOWN
from steelyard.errors import InvalidRecording, InvalidSamples, NoTime
from steelyard.io._wrist import SensorDescription
from steelyard.quality import QualityReport, check
from steelyard.recording import Recording
from steelyard.robot import RobotModel, load_robot
from steelyard.verdict import Aspect, Doubt, DoubtKind
from steelyard.wrist import WrenchSamples, WristRecording
from steelyard.wrist._recording import complete_rows, untimed_words
from steelyard.wrist.tracking import motion_of


class WrenchTable(Protocol):
    """A recording with a wrench: a `Recording` with joints, or a `WristRecording` with poses."""

    @property
    def t(self) -> Array:
        """Time, (N,) [s]."""

    @property
    def wrench(self) -> Array | None:
        """(N, 6) [N, Nm]."""


WristSource: TypeAlias = str | Path | WrenchTable


class WristData(ABC):
    """A source of wrenches.

    Attributes:
        about: what is known about the sensor
        arm: whose joints the rows hold; None where they hold the pose of the sensor
    """

    about: SensorDescription
    arm: RobotModel | None

    @property
    @abstractmethod
    def recording(self) -> Recording | None:
        """The joints and the wrench; None where the rows hold no joints."""

    @property
    @abstractmethod
    def table(self) -> WristRecording:
        """Wrench and pose."""

    @property
    @abstractmethod
    def quality(self) -> QualityReport:
        """The quality of the recording."""

    @property
    @abstractmethod
    def motion(self) -> Array:
        """The motion in each row of `table`, (N, c), as `steelyard.wrist.tracking.WristPath` takes.

        Refused where the recording is not fit for use.
        """

    @property
    @abstractmethod
    def warnings(self) -> Sequence[str]:
        """Faults with which the recording can be tracked nevertheless, in words."""

    @abstractmethod
    def samples(self, *, yaw: float, cutoff_hz: float, decimate: bool) -> WrenchSamples:
        """Samples in motion.

        Args:
            yaw: by which the sensor is turned about the flange axis, [rad]
            cutoff_hz: of the filter on motion and wrench, [Hz]
            decimate: keep only as many rows as the filter leaves independent
        """


@dataclass(frozen=True, eq=False)
class JointData(WristData):
    """A file or recording with the joints of an arm."""

    source: str | Path | Recording
    about: SensorDescription
    arm: RobotModel

    @cached_property
    def recording(self) -> Recording:
        """The joints and the wrench."""
        if isinstance(self.source, Recording):
            found = self.source.named(self.arm.joint_names)
        else:
            try:
                found = self.about.joints(self.source, self.arm)
            except NoTime as error:
                raise NoTime(untimed_words(str(self.source))) from error
        if found.wrench is None:
            name = found.source or "the recording"
            raise InvalidRecording(f"{name} has no wrench; is a wrist sensor connected and logged?")
        return found

    @cached_property
    def table(self) -> WristRecording:
        """Wrench and pose, which the joints give."""
        return self.about.of_joints(self.source, self.arm)

    @property
    def quality(self) -> QualityReport:
        """The quality of the recording, with the limits of the arm."""
        return check(self.recording, limits=self.arm.limits)

    @cached_property
    def _without_limits(self) -> QualityReport:
        return check(self.recording)

    @property
    def motion(self) -> Array:
        """The joint positions in each row of `table`, (N, n)."""
        self._without_limits.require_ok()
        return self.recording.q[complete_rows(self.recording)]

    @property
    def warnings(self) -> Sequence[str]:
        """What `check` says."""
        return self._without_limits.warnings

    def samples(self, *, yaw: float, cutoff_hz: float, decimate: bool) -> WrenchSamples:
        """Samples in motion, from joints."""
        sensor = self.about.agreeing(self.recording).turned(yaw)
        return WrenchSamples.from_joints(
            self.arm, self.recording, sensor, cutoff_hz=cutoff_hz, decimate=decimate
        )


@dataclass(frozen=True, eq=False)
class PoseData(WristData):
    """A file or recording with the pose of the sensor, or with its inertial unit."""

    source: str | Path | WristRecording
    about: SensorDescription
    arm: None = None

    @property
    def recording(self) -> None:
        """None: the rows hold no joints."""

    @cached_property
    def table(self) -> WristRecording:
        """Wrench and pose."""
        if isinstance(self.source, str | Path):
            return self.about.recording(self.source)
        return self.source

    @property
    def quality(self) -> QualityReport:
        """The quality of the recording."""
        return self.table.quality

    @property
    def motion(self) -> Array:
        """The motion of the sensor in each row of `table`, (N, 7) or (N, 10)."""
        return motion_of(self.table)

    @property
    def warnings(self) -> Sequence[str]:
        """Those of the recording."""
        return self.table.warnings

    def samples(self, *, yaw: float, cutoff_hz: float, decimate: bool) -> WrenchSamples:
        """Samples in motion, from an inertial unit or else from the pose."""
        table = self.table
        if yaw:
            table = table.turned(yaw)
        if table.acceleration is not None and table.angular_velocity is not None:
            return WrenchSamples.from_imu(table, cutoff_hz=cutoff_hz, decimate=decimate)
        return WrenchSamples.from_pose(table, cutoff_hz=cutoff_hz, decimate=decimate)


@dataclass(frozen=True, eq=False)
class WristRig:
    """The arm, for recordings with joints, and what is known about the sensor on its flange."""

    robot: RobotModel | None
    about: SensorDescription

    @classmethod
    def of(
        cls, robot: RobotModel | str | None, sensor: SensorDescription | str | Path | None
    ) -> WristRig:
        """The rig of an arm and a sensor, each as a value, by its name or file, or none."""
        arm = load_robot(robot) if isinstance(robot, str) else robot
        about = SensorDescription.load(sensor) if isinstance(sensor, str | Path) else sensor
        return cls(arm, about or SensorDescription())

    @property
    def in_motion(self) -> WristRig:
        """The same for a source that moves, whose rows are no postures."""
        return replace(self, about=replace(self.about, postures=False))

    @property
    def gravity_base(self) -> Array:
        """Where things fall, (3,) [m/s^2], in the base frame."""
        if self.about.gravity_base is not None:
            return self.about.gravity_base
        if self.robot is None:
            return np.array(GRAVITY_DOWN)
        return self.robot.gravity_base

    def pose_doubts(self, *sources: WristSource | None) -> tuple[Doubt, ...]:
        """A doubt where the pose of the sensor on the flange was assumed.

        Args:
            sources: that are weighed; a `WristRecording` states its sensor itself
        """
        described = any(isinstance(source, str | Path | Recording) for source in sources)
        if not described or self.about.pose_stated:
            return ()
        words = (
            "the pose of the sensor on the flange was not given: before an export, give"
            " `translation` and `rotation_rpy_degrees` in the TOML file of the sensor"
        )
        concerns = (Aspect.CENTRE, Aspect.INERTIA)
        return (Doubt(DoubtKind.ASSUMED, words, blocks=False, concerns=concerns),)

    def data(self, source: WristSource) -> WristData:
        """A source to weigh or track: with an arm, files and recordings of joints hold joints."""
        if isinstance(source, Recording) and self.robot is None:
            raise InvalidSamples("a recording of joints needs the arm: give `robot`")
        if self.robot is not None and isinstance(source, str | Path | Recording):
            return JointData(source, self.about, self.robot)
        return PoseData(cast("str | Path | WristRecording", source), self.about)
