"""The payload from a wrist sensor: postures at rest, then motion.

static:  postures -> mass, centre of mass, zero drift, tilt of the base, yaw of the sensor
dynamic: samples, the sensor turned by that yaw -> all ten numbers, the static answer as a start
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from steelyard._arrays import Array
from steelyard._computing import one_blas_thread
from steelyard.control._contact_force import ContactForce, Rezero, ZeroKeeper, contact_force
from steelyard.errors import InvalidSamples, NoTime, UnknownName
from steelyard.io._wrist import SensorDescription
from steelyard.payload._plausibility import implausible_doubt
from steelyard.quality import QualityReport
from steelyard.recording import DEFAULT_CUTOFF_HZ
from steelyard.robot import RobotModel
from steelyard.verdict import Doubt, DoubtKind
from steelyard.workflow._data import arm_words
from steelyard.workflow._wrist_data import WristData, WristRig, WristSource
from steelyard.wrist import (
    Postures,
    StaticFit,
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

WristMethod = Callable[[WristRecording, WristRecording, Array], WristPayload]
"""From postures at rest, a motion and gravity in the base frame (3,) to the payload."""


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
    def at_rest(self) -> StaticFit | None:
        """The static answer, with the yaw of the sensor if unknown; None without postures."""
        if self._at_rest is None:
            return None
        sensor = self._rig.about.sensor
        if sensor.yaw_known:
            axis = None
        else:
            axis = sensor.T_flange_sensor[2, :3]
        gravity = self._rig.gravity_base
        postures = Postures.of(self._at_rest.table)
        return weigh_static(postures, gravity_base=gravity, tilt=not self.level, yaw_axis=axis)

    @cached_property
    @one_blas_thread()
    def samples(self) -> WrenchSamples | None:
        """Of the motion; None without one."""
        if self._in_motion is None:
            return None
        if self.at_rest is None:
            yaw = 0.0
        else:
            yaw = self.at_rest.yaw
        return self._in_motion.samples(yaw=yaw, cutoff_hz=self.cutoff_hz, decimate=True)

    @cached_property
    @one_blas_thread()
    def payload(self) -> WristPayload:
        """The answer, with what is wrong with the recordings among its doubts."""
        if self.method not in ESTIMATORS:
            found = self._by_other_package()
        elif self.samples is not None:
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
        words = []
        if self._at_rest is not None:
            words += [f"at rest: {warning}" for warning in self._at_rest.table.warnings]
        if self.samples is not None:
            words += [f"in motion: {warning}" for warning in self.samples.warnings]
        doubts = [Doubt(DoubtKind.RECORDING, each, blocks=False) for each in words]
        doubts += self._rating_doubts(found)
        doubts += self._rig.pose_doubts(self.static, self.dynamic)
        return replace(found, verdict=found.verdict.doubted(*doubts))

    def _by_other_package(self) -> WristPayload:
        """By a method of another package, which takes both recordings as they are."""
        method = wrist_method_named(self.method)
        if self._at_rest is None or self._in_motion is None:
            raise InvalidSamples(
                f"the method '{self.method}' needs postures at rest and a motion: give `static` and"
                " `dynamic`"
            )
        if ignored := self._options_of_our_methods:
            raise InvalidSamples(
                f"the method '{self.method}' takes no {', '.join(ignored)}: leave out what it would"
                f" ignore, or choose one of {', '.join(ESTIMATORS)}"
            )
        if not self._rig.about.sensor.yaw_known:
            raise InvalidSamples(
                f"the method '{self.method}' needs a sensor whose yaw is known: weigh the postures"
                " alone first, which finds it"
            )
        return method(self._at_rest.table, self._in_motion.table, self._rig.gravity_base)

    @property
    def _options_of_our_methods(self) -> list[str]:
        """Arguments that were given and that methods of other packages do not take."""
        given = {
            "`level`": self.level,
            "`cutoff_hz`": self.cutoff_hz != DEFAULT_CUTOFF_HZ,
            "`drift_again`": self.drift_again,
        }
        return [name for name, is_given in given.items() if is_given]

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
        reports = {}
        if self._at_rest is not None:
            reports[_name(self.static, "at rest")] = self._at_rest.table.quality
        if self._in_motion is not None:
            reports[_name(self.dynamic, "in motion")] = self._in_motion.quality
        return reports

    def page(self) -> Page:
        """The page that shows and explains it."""
        from steelyard.report._payload import wrench_page

        page = wrench_page(self.payload, self.samples, self.at_rest, scene=self._scene())
        found = self.qualities
        arm = self._rig.robot
        subject = page.with_subject("" if arm is None else arm_words(arm), list(found))
        return subject.with_quality(found)

    def _scene(self) -> Scene | None:
        """The arm with the payload in its motion; None where joints or times are not known."""
        from steelyard.report._scene import arm_scene

        data = self._in_motion or self._at_rest
        if data is None or data.arm is None:
            return None
        try:
            recording = data.recording
        except NoTime:
            return None
        if recording is None:
            return None
        whole = np.isfinite(recording.q).all(axis=1)
        found = self.payload
        q = recording.q[whole]
        t = recording.t[whole]
        placed = found.T_flange_sensor
        return arm_scene(data.arm, q, t, found.body, found.covariance, T_flange_load=placed)

    @cached_property
    def _rig(self) -> WristRig:
        return WristRig.of(self.robot, self.sensor)

    @cached_property
    def _at_rest(self) -> WristData | None:
        if self.static is None:
            return None
        return self._rig.data(self.static)

    @cached_property
    def _in_motion(self) -> WristData | None:
        if self.dynamic is None:
            return None
        return self._rig.in_motion.data(self.dynamic)


def wrist_method_named(name: str) -> WristMethod:
    """A method of another package by its entry point in the group `steelyard.wrist_methods`."""
    others = {entry.name: entry for entry in entry_points(group="steelyard.wrist_methods")}
    if name in others:
        method: WristMethod = others[name].load()
        return method
    known = ", ".join([*ESTIMATORS, *others])
    hint = ""
    if not others:
        hint = "; those of papers are in another package: pip install ./papers"
    raise UnknownName(f"no method '{name}'; there are {known}{hint}")


def _name(source: WristSource | None, default: str) -> str:
    """The name of a file, or else how the arm moved in a recording."""
    if isinstance(source, str | Path):
        return Path(source).name
    return default


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
        method: of the motion, a name of `steelyard.wrist.estimators.ESTIMATORS`, or one that
            another package adds by the entry point `steelyard.wrist_methods`
        cutoff_hz: of the filter on motion and wrench, [Hz]
        level: the base is known to be level
        drift_again: the zero drift changed after the static recording
    """
    found = WristWeighing(static, dynamic, robot, sensor, method, cutoff_hz, level, drift_again)
    return found.payload.with_page(found.page)


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
    data = rig.in_motion.data(source)
    samples = data.samples(yaw=yaw, cutoff_hz=cutoff_hz, decimate=False)
    temperature = None
    if rig.robot is None:
        table = data.table
        if table.temperature is not None:
            temperature = np.interp(samples.t, table.t, table.temperature)
    return contact_force(load, samples, frame=frame, rezero=rezero, temperature=temperature)
