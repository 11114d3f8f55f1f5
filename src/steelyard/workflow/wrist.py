"""The payload from a wrist sensor: postures at rest, then motion, with what the sensor is and how it sits.

static:  postures -> mass, centre of mass, zero drift, tilt of the base, yaw of the sensor on the flange
dynamic: samples, the sensor turned by that yaw -> all ten numbers, the static answer as a start
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from steelyard.arrays import Array
from steelyard.computing import one_blas_thread
from steelyard.control.contact_force import ContactForce, contact_force
from steelyard.errors import InvalidRecording, InvalidSamples, UnknownName
from steelyard.io.wrench import SensorDescription, read_sensor, read_wrench_recording
from steelyard.recording import DEFAULT_CUTOFF_HZ, Recording
from steelyard.robot import RobotModel, load_robot
from steelyard.workflow.data import runs_of
from steelyard.wrist import (
    StaticWeight,
    WrenchPayload,
    WrenchRecording,
    WrenchSamples,
    find_postures,
    samples_from_imu,
    samples_from_joints,
    samples_from_pose,
    weigh_dynamic,
    weigh_static,
)
from steelyard.wrist.estimators import ESTIMATORS

if TYPE_CHECKING:
    from steelyard.report import Page

WristSource: TypeAlias = str | Path | Recording | WrenchRecording

_STANDARD_GRAVITY = (0.0, 0.0, -9.81)


@dataclass(frozen=True, eq=False)
class _WristRig:
    """What stands behind a recording of a wrist sensor.

    Attributes:
        robot: the arm, for recordings with joints; None where they hold the pose of the sensor
        about: what the sensor is and how it sits on the flange
    """

    robot: RobotModel | None = None
    about: SensorDescription = field(default_factory=SensorDescription)

    @classmethod
    def of(cls, robot: RobotModel | str | None, sensor: SensorDescription | str | Path | None) -> _WristRig:
        """The rig of an arm and a sensor, each as a value, by its file, or none.

        Args:
            robot: the arm, or its name or file
            sensor: its description, or the TOML file of it
        """
        arm = load_robot(robot) if isinstance(robot, str) else robot
        about = read_sensor(sensor) if isinstance(sensor, str | Path) else sensor
        return cls(arm, about or SensorDescription())

    @property
    def gravity_base(self) -> Array:
        """Where things fall, (3,) [m/s^2], in the base frame."""
        if self.about.gravity_base is not None:
            return self.about.gravity_base
        return np.array(_STANDARD_GRAVITY) if self.robot is None else self.robot.gravity_base

    def table(self, source: WristSource) -> WrenchRecording:
        """Wrench and pose of a source.

        Args:
            source: a file or a recording
        """
        if isinstance(source, WrenchRecording):
            return source
        if self.robot is None:
            if isinstance(source, Recording):
                raise InvalidSamples("a recording of joints needs the arm: give robot")
            return read_wrench_recording(source, self.about)
        return WrenchRecording.of_joints(self._recording(source), self.robot, self.about.sensor)

    def turned(self, yaw: float) -> Array:
        """T_flange_sensor with a yaw about the flange axis that was found, (4, 4).

        Args:
            yaw: [rad]
        """
        T = np.eye(4)
        T[:2, :2] = [[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]]
        return np.asarray(T @ self.about.sensor.T_flange_sensor)

    def samples(
        self,
        source: WristSource,
        *,
        yaw: float,
        cutoff_hz: float,
        decimate: bool,
    ) -> WrenchSamples:
        """Samples of a recording in motion, from joints, an inertial unit or the pose.

        Args:
            source: a file or a recording
            yaw: of the sensor about the flange axis, found at rest, [rad]
            cutoff_hz: of the filter on motion and wrench, [Hz]
            decimate: whether to leave samples out that the filter has made redundant
        """
        if self.robot is not None and not isinstance(source, WrenchRecording):
            sensor = replace(self.about.sensor, T_flange_sensor=self.turned(yaw), yaw_known=True)
            recording = self._recording(source)
            return samples_from_joints(self.robot, recording, sensor, cutoff_hz=cutoff_hz, decimate=decimate)
        table = self.table(source).turned(yaw) if yaw else self.table(source)
        if table.acceleration is not None and table.angular_velocity is not None:
            return samples_from_imu(table, cutoff_hz=cutoff_hz, decimate=decimate)
        return samples_from_pose(table, decimate=decimate)

    def _recording(self, source: str | Path | Recording) -> Recording:
        (run,) = runs_of(source, self.robot)
        if run.recording is None or run.recording.wrench is None:
            raise InvalidRecording(f"{run.name} has no wrench; is a wrist sensor connected and logged?")
        return run.recording


@dataclass(frozen=True, eq=False)
class WristWeighing:
    """A payload weighed by a wrist sensor, with what it was weighed from.

    Attributes:
        payload: the answer
        static: what the postures at rest say; None without them
        samples: of the motion; None without one
    """

    payload: WrenchPayload
    static: StaticWeight | None
    samples: WrenchSamples | None

    @classmethod
    @one_blas_thread()
    def of(
        cls,
        *,
        static: WristSource | None = None,
        dynamic: WristSource | None = None,
        robot: RobotModel | str | None = None,
        sensor: SensorDescription | str | Path | None = None,
        estimator: str = "ml",
        cutoff_hz: float = DEFAULT_CUTOFF_HZ,
        level: bool = False,
        drift_again: bool = False,
    ) -> WristWeighing:
        """What hangs on a wrist sensor, with what it was weighed from; see `weigh_wrist`.

        Args:
            static: a recording with postures at rest
            dynamic: a recording in motion
            robot: the arm, or its name or file, for recordings with joints
            sensor: what the sensor is, or the TOML file of it
            estimator: of the motion
            cutoff_hz: of the filter on motion and wrench, [Hz]
            level: the base is known to be level
            drift_again: the zero drift changed after the static recording
        """
        rig = _WristRig.of(robot, sensor)
        if estimator not in ESTIMATORS:
            raise UnknownName(f"no estimator '{estimator}'; there are {', '.join(ESTIMATORS)}")
        at_rest = None if static is None else _at_rest(rig, static, level=level)
        yaw = 0.0 if at_rest is None else at_rest.yaw
        if dynamic is not None:
            samples = rig.samples(dynamic, yaw=yaw, cutoff_hz=cutoff_hz, decimate=True)
            payload = weigh_dynamic(
                samples,
                at_rest,
                estimator=ESTIMATORS[estimator],
                gravity_base=rig.gravity_base,
                tilt=not level,
                drift_again=drift_again,
            )
            return cls(payload, at_rest, samples)
        if at_rest is None:
            raise InvalidSamples("there is nothing to weigh: give --static, --dynamic or both")
        return cls(at_rest.payload(rig.turned(yaw)), at_rest, None)

    def page(self) -> Page:
        """The page that shows and explains it."""
        from steelyard.report.payload import wrench_page

        return wrench_page(self.payload, self.samples, self.static)


def weigh_wrist(
    *,
    static: WristSource | None = None,
    dynamic: WristSource | None = None,
    robot: RobotModel | str | None = None,
    sensor: SensorDescription | str | Path | None = None,
    estimator: str = "ml",
    cutoff_hz: float = DEFAULT_CUTOFF_HZ,
    level: bool = False,
    drift_again: bool = False,
) -> WrenchPayload:
    """What hangs on a wrist force/torque sensor: at rest, in motion, or both.

    Args:
        static: a recording with postures at rest
        dynamic: a recording in motion
        robot: the arm, or its name or file, for recordings with joints
        sensor: what the sensor is, or the TOML file of it
        estimator: of the motion, a name of `steelyard.wrist.estimators.ESTIMATORS`
        cutoff_hz: of the filter on motion and wrench, [Hz]
        level: the base is known to be level
        drift_again: the zero drift changed after the static recording
    """
    found = WristWeighing.of(
        static=static,
        dynamic=dynamic,
        robot=robot,
        sensor=sensor,
        estimator=estimator,
        cutoff_hz=cutoff_hz,
        level=level,
        drift_again=drift_again,
    )
    return found.payload


@one_blas_thread()
def contact(
    payload: WrenchPayload | str | Path,
    source: WristSource,
    *,
    robot: RobotModel | str | None = None,
    sensor: SensorDescription | str | Path | None = None,
    frame: Literal["sensor", "base"] = "sensor",
    rezero: Literal["none", "start", "rest"] = "none",
    cutoff_hz: float = DEFAULT_CUTOFF_HZ,
) -> ContactForce:
    """The external force in a recording, load and zero drift taken off.

    Args:
        payload: that hangs on the sensor, or its file
        source: a file or a recording with a wrench
        robot: the arm, or its name or file, for recordings with joints
        sensor: what the sensor is, or the TOML file of it
        frame: of the answer
        rezero: whether and where the zero is found again
        cutoff_hz: of the filter on motion and wrench, [Hz]
    """
    load = payload if isinstance(payload, WrenchPayload) else WrenchPayload.load(payload)
    rig = _WristRig.of(robot, sensor)
    turned, nominal = load.T_flange_sensor, rig.about.sensor.T_flange_sensor
    rotation = turned[:3, :3] @ nominal[:3, :3].T
    yaw = float(np.arctan2(rotation[1, 0], rotation[0, 0]))
    samples = rig.samples(source, yaw=yaw, cutoff_hz=cutoff_hz, decimate=False)
    temperature = None
    if rig.robot is None:
        table = rig.table(source)
        if table.temperature is not None:
            temperature = np.interp(samples.t, table.t, table.temperature)
    return contact_force(load, samples, frame=frame, rezero=rezero, temperature=temperature)


def _at_rest(rig: _WristRig, source: WristSource, *, level: bool) -> StaticWeight:
    """What the postures say, with the yaw of the sensor where it is not known."""
    sensor = rig.about.sensor
    axis = None if sensor.yaw_known else sensor.T_flange_sensor[2, :3]
    postures = find_postures(rig.table(source))
    return weigh_static(postures, gravity_base=rig.gravity_base, tilt=not level, yaw_axis=axis)
