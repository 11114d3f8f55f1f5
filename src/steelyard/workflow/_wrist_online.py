"""A recording of a wrist sensor weighed sample by sample, as on the running arm: rests and motion mixed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard import fields, saved
from steelyard._arrays import Array
from steelyard._computing import one_blas_thread
from steelyard.errors import InvalidSamples
from steelyard.io._wrist import SensorDescription
from steelyard.quality import check
from steelyard.recording import DEFAULT_CUTOFF_HZ
from steelyard.robot import RobotModel
from steelyard.signals import RawRow
from steelyard.verdict import Doubt, DoubtKind
from steelyard.workflow._stream import RESUME_S, OnlineCurve, OnPoint, replayed
from steelyard.workflow._wrist import WristRig, WristSource
from steelyard.wrist._payload import WristPayload
from steelyard.wrist._recording import WristRecording
from steelyard.wrist.tracking import (
    WristPath,
    WristSample,
    WristTracker,
    WristTrackerOptions,
    WristTrackerState,
)
from steelyard.wrist.tracking._path import CALIBRATION_S, rows_of

if TYPE_CHECKING:
    from steelyard.report import Page

_STATE_KIND = "online wrist state"
_STATE_VERSION = 2


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WristOnlineWeighing(OnlineCurve):
    """A payload on a wrist sensor that was weighed sample by sample; `save_state` to go on later.

    Attributes:
        contact: what the surroundings did to the load in the last sample, (6,) [N, Nm], sensor
            frame
        contact_std: its standard deviation, (6,)
    """

    payload: WristPayload
    state: WristTrackerState
    estimator: WristTracker
    contact: Array
    contact_std: Array

    def to_dict(self) -> dict[str, Any]:
        """The payload at the end, those before it, the curve, and the contact force."""
        return super().to_dict() | {"contact": self.contact, "contact_std": self.contact_std}

    def save_state(self, path: str | Path) -> None:
        """Writes the state of the estimator to a JSON file, to go on from later."""
        content = {"sensor": _fingerprint(self.estimator), "state": self.state.to_dict()}
        saved.save(content, _STATE_KIND, path, version=_STATE_VERSION, sealed=True)

    def page(self) -> Page:
        """The page that shows and explains it, with the curve of how it became known."""
        from steelyard.report import Section
        from steelyard.report._payload import wrench_page
        from steelyard.report._tracking import tracking_plot

        plot = tracking_plot(self.points, accuracy=self.accuracy)
        page = wrench_page(self.payload, None, None)
        curve = Section("How the answer became known", (), [plot])
        return replace(page, sections=(*page.sections, curve), picture=[plot])


@one_blas_thread()
def weigh_wrist_online(
    source: WristSource,
    *,
    robot: RobotModel | str | None = None,
    sensor: SensorDescription | str | Path | None = None,
    cutoff_hz: float = DEFAULT_CUTOFF_HZ,
    options: WristTrackerOptions | None = None,
    resume: str | Path | None = None,
    real_time: bool = False,
    on_point: OnPoint | None = None,
) -> WristOnlineWeighing:
    """What hangs on a wrist force/torque sensor, sample by sample, from rests and motion as they come.

    Args:
        source: a recording with a wrench
        robot: the arm, or its name or file, for recordings with joints
        sensor: what the sensor is, or the TOML file of it
        cutoff_hz: of the smoother on motion and wrench, [Hz]
        options: accuracy, level base, and how contacts are found
        resume: a file that `save_state` wrote, to go on from
        real_time: not faster than the recording's clock
        on_point: called with each point of the curve as it becomes known
    """
    rig = WristRig.of(robot, sensor).in_motion
    table = rig.table(source)
    rows, doubts = _rows(rig, source, table)
    first = [row for row in rows if row.t < rows[0].t + CALIBRATION_S]
    if isinstance(source, WristRecording):
        joints = None
    else:
        joints = rig.robot
    path = WristPath.calibrated(first, table.sensor, robot=joints, cutoff_hz=cutoff_hz)
    made = (*table.notes, f"Kalman smoother, cut-off {cutoff_hz:g} Hz, {path.delay_s:.2f} s late")
    options = options or WristTrackerOptions()
    estimator = WristTracker(path.noise, table.sensor, rig.gravity_base, options, made)
    if resume is None:
        state = estimator.init()
    else:
        state = _load_state(resume, estimator)
    if np.isfinite(state.last_s):
        later_s = state.last_s + RESUME_S
    else:
        later_s = 0.0
    samples = _samples(path, rows, later_s, real_time=real_time)
    state, points = replayed(estimator, state, samples, float(table.t[-1]), on_point)
    payload = estimator.estimate(state)
    contact, contact_std = estimator.contact(state)
    return WristOnlineWeighing(
        payload=replace(payload, verdict=payload.verdict.doubted(*doubts)),
        state=state,
        estimator=estimator,
        points=points,
        accuracy=options.accuracy,
        delay_s=path.delay_s,
        contact=contact,
        contact_std=contact_std,
    )


def _rows(
    rig: WristRig, source: WristSource, table: WristRecording
) -> tuple[list[RawRow], tuple[Doubt, ...]]:
    """The rows of a source, and what is wrong with it and yet does not forbid to replay it."""
    table.require_timed()
    warnings = table.warnings
    if rig.robot is None or isinstance(source, WristRecording):
        rows = rows_of(table)
    else:
        recording = rig.recording(source)
        quality = check(recording)
        quality.require_ok()
        warnings = quality.warnings
        whole = np.isfinite(np.hstack([recording.q, np.asarray(recording.wrench)])).all(axis=1)
        times = table.t.tolist()
        q = recording.q[whole]
        rows = [RawRow(*row) for row in zip(times, q, table.wrench, strict=True)]
    return rows, tuple(Doubt(DoubtKind.RECORDING, words, blocks=False) for words in warnings)


def _samples(
    path: WristPath, rows: list[RawRow], later_s: float, *, real_time: bool
) -> Iterator[WristSample]:
    state = path.init()
    began_s = time.monotonic()
    for row in rows:
        if real_time and (wait_s := row.t - rows[0].t - (time.monotonic() - began_s)) > 0:
            time.sleep(wait_s)
        state, ready = path.step(state, row)
        for sample in ready:
            yield sample._replace(t=sample.t + later_s)


def _load_state(path: str | Path, estimator: WristTracker) -> WristTrackerState:
    """The state that `WristOnlineWeighing.save_state` wrote, with this sensor."""
    content = saved.load(path, _STATE_KIND, version=_STATE_VERSION, sealed=True)
    with saved.reading(path, _STATE_KIND):
        fields.check(content, {"sensor": fields.TEXT, "state": fields.named(fields.anything)})
        if content["sensor"] != _fingerprint(estimator):
            raise InvalidSamples(f"{path} was saved with another sensor; start without it")
        fields.require_like(content["state"], estimator.init().to_dict(), "state")
        return WristTrackerState.from_dict(content["state"])


def _fingerprint(estimator: WristTracker) -> str:
    """A short name of how a sensor sits on the arm, and the arm in the world."""
    placed = np.concatenate([estimator.sensor.T_flange_sensor.ravel(), estimator.gravity_base])
    return hashlib.sha256(
        np.round(placed, 9).tobytes() + bytes([estimator.options.level])
    ).hexdigest()[:16]
