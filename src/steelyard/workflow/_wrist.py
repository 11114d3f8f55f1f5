"""The payload from a wrist sensor: postures at rest, then motion.

static:  postures -> mass, centre of mass, zero drift, tilt of the base, yaw of the sensor
dynamic: samples, the sensor turned by that yaw -> all ten numbers, the static answer as a start
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, cast

import numpy as np

from steelyard._arrays import Array
from steelyard._computing import one_blas_thread
from steelyard._units import GRAVITY_DOWN
from steelyard.control._contact_force import ContactForce, Rezero, ZeroKeeper, contact_force
from steelyard.errors import InvalidRecording, InvalidSamples, NoTime, UnknownName
from steelyard.io._wrist import SensorDescription
from steelyard.payload._plausibility import implausible_doubt
from steelyard.quality import QualityReport, check
from steelyard.recording import DEFAULT_CUTOFF_HZ, Recording
from steelyard.robot import RobotModel, load_robot
from steelyard.verdict import Doubt, DoubtKind
from steelyard.wrist import (
    Postures,
    StaticWeight,
    WrenchSamples,
    WristPayload,
    WristRecording,
    weigh_dynamic,
    weigh_static,
)
from steelyard.wrist.estimators import ESTIMATORS

if TYPE_CHECKING:
    from steelyard.drawing import Scene
    from steelyard.report import Page


class WrenchTable(Protocol):
    """A recording with a wrench: a `Recording` with joints, or a `WristRecording` with poses."""

    @property
    def t(self) -> Array:
        """Time, (N,) [s]."""

    @property
    def wrench(self) -> Array | None:
        """(N, 6) [N, Nm]."""


WristSource: TypeAlias = str | Path | WrenchTable


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

    def holds_joints(self, source: WristSource) -> bool:
        """Whether a source holds joint positions; files and recordings of joints do."""
        return self.robot is not None and isinstance(source, str | Path | Recording)

    def table(self, source: WristSource) -> WristRecording:
        """Wrench and pose of a source."""
        if self.robot is not None and self.holds_joints(source):
            return self.about.of_joints(cast("str | Path | Recording", source), self.robot)
        if isinstance(source, str | Path):
            return self.about.recording(source)
        if isinstance(source, Recording):
            raise InvalidSamples("a recording of joints needs the arm: give `robot`")
        return cast("WristRecording", source)

    def samples(
        self, source: WristSource, *, yaw: float, cutoff_hz: float, decimate: bool
    ) -> WrenchSamples:
        """Samples in motion, from joints, an inertial unit or the pose.

        Args:
            yaw: by which the sensor is turned about the flange axis, [rad]
            cutoff_hz: of the filter on motion and wrench, [Hz]
            decimate: keep only as many rows as the filter leaves independent
        """
        if self.robot is not None and self.holds_joints(source):
            recording = self.recording(source)
            sensor = self.about.agreeing(recording).turned(yaw)
            return WrenchSamples.from_joints(
                self.robot, recording, sensor, cutoff_hz=cutoff_hz, decimate=decimate
            )
        table = self.in_motion.table(source)
        if yaw:
            table = table.turned(yaw)
        if table.acceleration is not None and table.angular_velocity is not None:
            return WrenchSamples.from_imu(table, cutoff_hz=cutoff_hz, decimate=decimate)
        return WrenchSamples.from_pose(table, cutoff_hz=cutoff_hz, decimate=decimate)

    def quality(self, source: WristSource) -> QualityReport:
        """The quality of a source that moves."""
        if self.robot is not None and self.holds_joints(source):
            return check(self.recording(source), limits=self.robot.limits)
        return self.in_motion.table(source).quality

    def recording(self, source: WristSource) -> Recording:
        """The joints and the wrench of a source that holds joints."""
        if self.robot is None:
            raise InvalidSamples("a recording of joints needs the arm: give `robot`")
        if isinstance(source, str | Path):
            found = self.about.joints(source, self.robot)
        else:
            found = cast("Recording", source)
        if found.wrench is None:
            name = found.source or "the recording"
            raise InvalidRecording(f"{name} has no wrench; is a wrist sensor connected and logged?")
        return found


@dataclass(frozen=True, eq=False)
class WristWeighing:
    """The steps of `weigh_wrist`; each is computed when it is first needed."""

    static: WristSource | None = None
    dynamic: WristSource | None = None
    robot: RobotModel | str | None = None
    sensor: SensorDescription | str | Path | None = None
    method: str = "ml"
    cutoff_hz: float = DEFAULT_CUTOFF_HZ
    level: bool = False
    drift_again: bool = False

    @cached_property
    @one_blas_thread()
    def at_rest(self) -> StaticWeight | None:
        """The static answer, with the yaw of the sensor if unknown; None without postures."""
        if self._table is None:
            return None
        sensor = self._rig.about.sensor
        if sensor.yaw_known:
            axis = None
        else:
            axis = sensor.T_flange_sensor[2, :3]
        gravity = self._rig.gravity_base
        postures = Postures.of(self._table)
        return weigh_static(postures, gravity_base=gravity, tilt=not self.level, yaw_axis=axis)

    @cached_property
    @one_blas_thread()
    def samples(self) -> WrenchSamples | None:
        """Of the motion; None without one."""
        if self.dynamic is None:
            return None
        if self.at_rest is None:
            yaw = 0.0
        else:
            yaw = self.at_rest.yaw
        return self._rig.samples(self.dynamic, yaw=yaw, cutoff_hz=self.cutoff_hz, decimate=True)

    @cached_property
    @one_blas_thread()
    def payload(self) -> WristPayload:
        """The answer, with what is wrong with the recordings among its doubts."""
        if self.method not in ESTIMATORS:
            raise UnknownName(f"no method '{self.method}'; there are {', '.join(ESTIMATORS)}")
        if self.samples is not None:
            found = weigh_dynamic(
                self.samples,
                self.at_rest,
                estimator=ESTIMATORS[self.method],
                gravity_base=self._rig.gravity_base,
                tilt=not self.level,
                drift_again=self.drift_again,
            )
        elif self.at_rest is not None:
            found = self.at_rest.payload(
                self._rig.about.sensor.turned(self.at_rest.yaw).T_flange_sensor
            )
        else:
            raise InvalidSamples("there is nothing to weigh: give `static`, `dynamic` or both")
        warned = {"at rest": self._table, "in motion": self.samples}
        words = [
            f"{when}: {x}" for when, of in warned.items() if of is not None for x in of.warnings
        ]
        doubts = [Doubt(DoubtKind.RECORDING, each, blocks=False) for each in words]
        doubts += self._rating_doubts(found)
        return replace(found, verdict=found.verdict.doubted(*doubts))

    def _rating_doubts(self, found: WristPayload) -> list[Doubt]:
        """A doubt if the load is far above the rating of the arm."""
        robot = self._rig.robot
        if robot is None or not found.unconstrained.mass > 0:
            return []
        doubt = implausible_doubt(found.unconstrained, found.covariance, robot.name)
        if doubt is None or found.verdict.has(doubt.kind):
            return []
        return [doubt]

    @property
    def qualities(self) -> dict[str, QualityReport]:
        """The quality of the recordings, by name."""
        sources = {"at rest": self.static, "in motion": self.dynamic}
        reports = {
            "at rest": None if self._table is None else self._table.quality,
            "in motion": None if self.dynamic is None else self._rig.quality(self.dynamic),
        }
        return {
            Path(source).name if isinstance(source := sources[when], str | Path) else when: report
            for when, report in reports.items()
            if report is not None
        }

    def page(self) -> Page:
        """The page that shows and explains it."""
        from steelyard.report._payload import wrench_page

        page = wrench_page(self.payload, self.samples, self.at_rest, scene=self._scene())
        return page.with_quality(self.qualities)

    def _scene(self) -> Scene | None:
        """The arm with the payload in its motion; None where joints or times are not known."""
        from steelyard.report._scene import arm_scene

        source = self.dynamic or self.static
        robot = self._rig.robot
        if robot is None or source is None or not self._rig.holds_joints(source):
            return None
        try:
            recording = self._rig.recording(source)
        except NoTime:
            return None
        whole = np.isfinite(recording.q).all(axis=1)
        found = self.payload
        q = recording.q[whole]
        t = recording.t[whole]
        placed = found.T_flange_sensor
        return arm_scene(robot, q, t, found.body, found.covariance, T_flange_load=placed)

    @cached_property
    def _rig(self) -> WristRig:
        return WristRig.of(self.robot, self.sensor)

    @cached_property
    def _table(self) -> WristRecording | None:
        if self.static is None:
            return None
        return self._rig.table(self.static)


def weigh_wrist(
    *,
    static: WristSource | None = None,
    dynamic: WristSource | None = None,
    robot: RobotModel | str | None = None,
    sensor: SensorDescription | str | Path | None = None,
    method: str = "ml",
    cutoff_hz: float = DEFAULT_CUTOFF_HZ,
    level: bool = False,
    drift_again: bool = False,
) -> WristPayload:
    """What hangs on a wrist force/torque sensor: at rest, in motion, or both.

    Args:
        static: a recording with postures at rest
        dynamic: a recording in motion
        robot: the arm, or its name or file, for recordings with joints
        sensor: what the sensor is, or the TOML file of it
        method: of the motion, a name of `steelyard.wrist.estimators.ESTIMATORS`
        cutoff_hz: of the filter on motion and wrench, [Hz]
        level: the base is known to be level
        drift_again: the zero drift changed after the static recording
    """
    return WristWeighing(
        static, dynamic, robot, sensor, method, cutoff_hz, level, drift_again
    ).payload


@one_blas_thread()
def contact(
    payload: WristPayload | str | Path,
    source: WristSource,
    *,
    robot: RobotModel | str | None = None,
    sensor: SensorDescription | str | Path | None = None,
    frame: Literal["sensor", "base"] = "sensor",
    rezero: Rezero | ZeroKeeper = "none",
    cutoff_hz: float = DEFAULT_CUTOFF_HZ,
) -> ContactForce:
    """The external force in a recording, load and zero drift taken off.

    Args:
        payload: that hangs on the sensor, or its file
        source: a file or a recording with a wrench
        robot: the arm, or its name or file, for recordings with joints
        sensor: what the sensor is, or the TOML file of it
        frame: of the answer
        rezero: where the zero is found again: 'none', at the 'start', after every 'rest'; or a
            keeper
        cutoff_hz: of the filter on motion and wrench, [Hz]
    """
    if isinstance(payload, str | Path):
        payload = WristPayload.load(payload)
    load = payload
    rig = WristRig.of(robot, sensor)
    turned = load.T_flange_sensor
    nominal = rig.about.sensor.T_flange_sensor
    rotation = turned[:3, :3] @ nominal[:3, :3].T
    yaw = float(np.arctan2(rotation[1, 0], rotation[0, 0]))
    samples = rig.samples(source, yaw=yaw, cutoff_hz=cutoff_hz, decimate=False)
    temperature = None
    if rig.robot is None:
        table = rig.table(source)
        if table.temperature is not None:
            temperature = np.interp(samples.t, table.t, table.temperature)
    return contact_force(load, samples, frame=frame, rezero=rezero, temperature=temperature)
