"""What hangs on a wrist sensor while the arm moves: rows in, what is known and the contact force out.

Rows become samples and samples an estimate as in `weigh_wrist_online`. The first second says how
noisy the rows are; after rows that are not fit for weighing, and on another clock, the smoother
starts anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.errors import InvalidRobot, InvalidSamples
from steelyard.io._wrist import SensorDescription
from steelyard.live._source import MOTION_COLUMN, Event, EventKind, Row, Stream
from steelyard.live._view import Traces
from steelyard.live._weigher import require_same_arm
from steelyard.payload import Payload
from steelyard.recording import DEFAULT_CUTOFF_HZ
from steelyard.recording._columns import Requested, find_layout
from steelyard.robot import RobotModel
from steelyard.signals import RawRow
from steelyard.workflow._wrist import WristRig
from steelyard.wrist import WristPayload
from steelyard.wrist.tracking import (
    WristPath,
    WristTracker,
    WristTrackerOptions,
    WristTrackerState,
)
from steelyard.wrist.tracking._path import CALIBRATION_S

_NO_WRENCH = Requested({"wrench": []})
_SILENT = "no wrench comes: is the sensor connected?"
_NEW_CLOCK_S = 1.0  # another clock goes on so much after the one before
_FEWEST_ROWS = 50  # to calibrate with


@dataclass(frozen=True, eq=False)
class WristUpdate:
    """What is known of the load on a wrist sensor at one moment.

    Attributes:
        t: the sender's time of the last row, [s]
        values: of the last row, as the stream's columns name them
        waiting: why nothing is weighed now, in words; empty where it is
        payload: the plain estimate, with its verdict; None before the first sample
        state: of the estimator; None before the first sample
        contact: what the surroundings do to the load, (6,) [N, Nm], in the sensor frame, `delay_s`
            ago
        contact_std: its standard deviation, (6,); infinite while the load is not known
        delay_s: how late a sample comes, [s]
        converged: whether the mass is as sure as asked for
        next_step: what to do to know more, a sentence without a full stop
        events: since the update before
        rows: that have come in all
        missing: that the sender never sent
        dropped: that came, but were not taken in time
    """

    t: float
    values: tuple[float, ...]
    waiting: str
    payload: WristPayload | None
    state: WristTrackerState | None
    contact: Array
    contact_std: Array
    delay_s: float
    converged: bool
    next_step: str
    events: tuple[Event, ...]
    rows: int
    missing: int
    dropped: int

    @property
    def changes(self) -> int:
        """How many loads there were before this one."""
        if self.state is None:
            return 0
        return len(self.state.history)


class WristView:
    """Looks at what a wrist sensor weighs, for a page.

    Args:
        robot: the arm
        columns: names of the rows' values
        joints: where the joint positions lie in a row, n
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
    """

    settable = False  # a controller wants the sensor with it
    traces = Traces("Contact", ("force", "torque"), ("x", "y", "z", "size"), ("N", "Nm"))

    def __init__(
        self, robot: RobotModel, columns: tuple[str, ...], joints: list[int], accuracy: float
    ) -> None:
        self.robot = robot
        self.columns = columns
        self.joints = joints
        self.accuracy = accuracy

    def update(self, update: WristUpdate) -> WristUpdate:
        """What is known: the weigher has said it."""
        return update

    def answer(self, update: WristUpdate) -> Payload | None:
        """The load in the flange frame, with all doubts; None where nothing was weighed."""
        return self.to_draw(update)

    def to_draw(self, update: WristUpdate) -> Payload | None:
        """The load in the flange frame; None where nothing is known."""
        if update.payload is None:
            return None
        return update.payload.in_flange(self.robot.flange)

    def trace(self, update: WristUpdate) -> Array | None:
        """One instant of the contact, (4, 2) [N, Nm], in the sensor frame; None until the load is known."""
        if not update.converged:
            return None
        both = update.contact.reshape(2, 3)
        return np.column_stack([both, np.linalg.norm(both, axis=1)]).T

    @property
    def content(self) -> dict[str, Any]:
        """Everything that makes the view, for another process."""
        return {"robot": self.robot.to_dict()} | {
            name: getattr(self, name) for name in ("columns", "joints", "accuracy")
        }

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> WristView:
        """The view of a content."""
        return cls(**{**content, "robot": RobotModel.from_dict(content["robot"])})


class WristWeigher:
    """Weighs rows with a wrench as they come.

    Args:
        stream: whose columns and convention count; where it does not say the convention, the
            sensor's does
        about: what is known about the sensor
        robot: the arm, where rows hold joint positions
        cutoff_hz: of the smoother, [Hz]
        options: of the estimator
    """

    def __init__(
        self,
        stream: Stream,
        about: SensorDescription,
        robot: RobotModel | None,
        *,
        cutoff_hz: float = DEFAULT_CUTOFF_HZ,
        options: WristTrackerOptions | None = None,
    ) -> None:
        self._name = str(stream.source)
        self._columns = stream.columns
        self._cutoff_hz = cutoff_hz
        self._robot, self._options = robot, options or WristTrackerOptions()
        self._sensor = replace(
            about.sensor, convention=stream.wrench_convention or about.sensor.convention
        )
        self._gravity = WristRig(robot, about).gravity_base
        self._motion = self._motion_columns()
        self._first: list[RawRow] = []
        self._path: WristPath | None = None
        self._clock = -1
        self._start_s = 0.0
        self._later_s = 0.0
        self.row: Row | None = None
        self._no_wrench = False
        self._events: list[Event] = []
        self._rows = self._missing = self._dropped = 0

    def take(self, item: Row | Event) -> None:
        """Takes what came next.

        Args:
            item: of the stream
        """
        if isinstance(item, Event):
            self._events.append(item)
            self._missing += item.rows * (item.kind is EventKind.GAP)
            self._dropped += item.rows * (item.kind is EventKind.DROPPED)
            return
        self._rows = self._rows + 1
        self.row = item
        self._no_wrench = item.wrench is None
        if item.waiting or item.wrench is None:
            return
        if item.clock != self._clock:
            self._new_clock(item)
        row = self._row(item)
        if self._path is not None:
            return self._weigh(self._path, row)
        self._first.append(row)
        if row.t - self._first[0].t >= CALIBRATION_S and len(self._first) >= _FEWEST_ROWS:
            self._begin()

    @cached_property
    def view(self) -> WristView:
        """What a page needs to look at it; refused where rows hold no joints."""
        if self._robot is None:
            raise InvalidSamples(
                f"{self._name} sends no joints: the page shows the arm, leave --page out"
            )
        return WristView(self._robot, self._columns, self._motion, self._options.accuracy)

    def seen(self) -> WristUpdate | None:
        """What is known now; None before the first row."""
        return self.update()

    def update(self) -> WristUpdate | None:
        """What is known now; None before the first row."""
        if self.row is None:
            return None
        events = tuple(self._events)
        self._events = []
        waiting = self.row.waiting or (_SILENT if self._no_wrench else "")
        payload = None
        state = None
        contact = np.zeros(6)
        std = np.full(6, np.inf)
        delay_s = 0.0
        if self._path is not None:
            state = self._state
            delay_s = self._path.delay_s
            payload = self._estimator.estimate(state, physical=False)
            contact, std = self._estimator.contact(state)
        else:
            waiting = waiting or "the first second is listened to"
        converged = payload is not None and _half_width(payload) <= self._options.accuracy
        return WristUpdate(
            t=self.row.t,
            values=self.row.values,
            waiting=waiting,
            payload=payload,
            state=state,
            contact=contact,
            contact_std=std,
            delay_s=delay_s,
            converged=converged,
            next_step=f"wait: {waiting}" if waiting else _next_step(payload, converged=converged),
            events=events,
            rows=self._rows,
            missing=self._missing,
            dropped=self._dropped,
        )

    def payload(self) -> WristPayload | None:
        """The answer: the nearest real body, with all doubts; None where nothing was weighed."""
        if self._path is None:
            return None
        return self._estimator.estimate(self._state)

    def _motion_columns(self) -> list[int]:
        """Where the motion of the sensor lies in a row: its own, or joint positions."""
        own = [k for k, name in enumerate(self._columns) if name.startswith(f"{MOTION_COLUMN}_")]
        if own:
            self._robot = None
            return own
        if self._robot is None:
            raise InvalidSamples(
                f"{self._name} sends joints: give the arm, with --robot or --model"
            )
        names = find_layout(self._columns, _NO_WRENCH, self._name).columns["q"]
        if len(names) != self._robot.n:
            raise InvalidRobot(
                f"{self._name} sends {len(names)} joints, {self._robot.name} has {self._robot.n}"
            )
        return [self._columns.index(name) for name in names]

    def _row(self, row: Row) -> RawRow:
        """A row on the estimator's clock, its wrench in our convention and frame."""
        motion = np.array([row.values[k] for k in self._motion], dtype=float)
        wrench = np.array(row.wrench, dtype=float)
        if self._sensor.frame == "base" and self._robot is not None:
            R = (
                self._robot.forward_kinematics(motion)[:3, :3]
                @ self._sensor.T_flange_sensor[:3, :3]
            )
            wrench = (wrench.reshape(2, 3) @ R).ravel()
        if self._sensor.convention == "sensor_on_load":
            sign = -1.0
        else:
            sign = 1.0
        return RawRow(row.t - self._start_s + self._later_s, motion, sign * wrench)

    def _new_clock(self, row: Row) -> None:
        if self._path is not None:
            last_s = self._state.last_s
        else:
            last_s = -np.inf
        if np.isfinite(last_s):
            self._later_s = last_s + _NEW_CLOCK_S
        else:
            self._later_s = 0.0
        self._clock = row.clock
        self._start_s = row.t
        self._first = []
        if self._path is not None:
            self._of_path = self._path.init()

    def _begin(self) -> None:
        """Finds out from the first rows how noisy they are, and weighs these rows."""
        if self._robot is not None and self.row is not None:
            values = {
                name: np.array([x]) for name, x in zip(self._columns, self.row.values, strict=True)
            }
            require_same_arm(self._robot, values, self._name)
        path = WristPath.calibrated(
            self._first, self._sensor, robot=self._robot, cutoff_hz=self._cutoff_hz
        )
        made = (f"Kalman smoother, cut-off {self._cutoff_hz:g} Hz, {path.delay_s:.2f} s late",)
        self._estimator = WristTracker(path.noise, self._sensor, self._gravity, self._options, made)
        self._state, self._of_path, self._path = self._estimator.init(), path.init(), path
        for row in self._first:
            self._weigh(path, row)
        self._first = []

    def _weigh(self, path: WristPath, row: RawRow) -> None:
        self._of_path, ready = path.step(self._of_path, row)
        for sample in ready:
            self._state = self._estimator.step(self._state, sample)


def _next_step(payload: WristPayload | None, *, converged: bool) -> str:
    """What to do to know more."""
    if payload is None or not converged:
        return "rest for a second in other postures of the wrist"
    if not payload.knows_inertia:
        return "turn the wrist about all of its axes: the inertia is not known"
    return "nothing: the mass is as sure as asked for"


def _half_width(payload: WristPayload) -> float:
    """Of the mass's 95 % interval over the mass."""
    return float(NORMAL_95 * payload.std[0] / max(abs(payload.body.mass), 1e-12))
