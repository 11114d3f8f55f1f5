"""The payload while the arm moves: rows of a stream in, what is known out, as often as somebody looks.

Rows become samples and samples an estimate as in `weigh_online`, with the same preparation and the same
estimator, so that a recording of the stream, weighed with `--online`, gives the same numbers. Rows that are
not fit for weighing are left out; after them, and on another clock of the sender, the filters start anew.

How long until the mass is as sure as asked for? Of the half-width w of its interval drive gains, their
drift and local gravity are a part g that stays; the information 1 / (w^2 - g^2) of the rest is taken to grow
on as in the last second.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard.arrays import Array
from steelyard.computing import one_blas_thread
from steelyard.errors import InvalidRobot, InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.io.columns import Requested, find_layout
from steelyard.io.layout import Layout
from steelyard.live.recorder import Recorder
from steelyard.live.source import Event, EventKind, Row
from steelyard.payload import HALF_WIDTH, Payload
from steelyard.robot import RobotModel
from steelyard.signals import CausalPath, OnlineSample, RawRow, joint_torque
from steelyard.torque.online import OnlineEstimator, OnlineOptions, OnlineState
from steelyard.verdict import Doubt
from steelyard.workflow.data import Run, as_warm, preparation_for

U = TypeVar("U", covariant=True)

_FIRST_ROWS = 50  # they tell the rate and what the columns mean
_NEW_CLOCK_S = 1.0  # another clock goes on so much after the one before
_LOOK_BACK_S = 1.0
_ADVISED_S = 0.5  # between two pieces of advice, which cost as much as a third of an estimate
_NO_WRENCH = Requested({"wrench": []})  # joint torques are weighed here
_CLEARLY = 20.0  # changed is a mass whose change is so many times its half-width
_FLANGE_APART = 0.02  # [m], between two arms of one kind


@dataclass(frozen=True, eq=False)
class Update:
    """What is known at one moment, for a line, a page or a program.

    Attributes:
        t: the sender's time of the last row, [s]
        values: of the last row, as the stream's columns name them
        waiting: why nothing is weighed now, in words; empty where it is
        payload: the plain estimate, with its verdict; None before the first sample
        state: of the estimator
        sample: the last one that was weighed, filtered; None before the first
        converged: whether the mass is as sure as asked for
        remaining_s: until it is, if the arm goes on as before, [s]; infinite where no motion can show it
        predicted: torque of that sample by the estimate, and by the empty arm, (2, n) [Nm or N]; NaN where
            friction at rest is not determined
        next_step: what to do to know more, a sentence without a full stop
        events: since the update before
        rows: that have come in all
        missing: that the sender never sent
        dropped: that came, but were not taken in time
    """

    t: float
    values: tuple[float, ...]
    waiting: str
    payload: Payload | None
    state: OnlineState
    sample: OnlineSample | None
    converged: bool
    remaining_s: float
    predicted: Array | None
    next_step: str
    events: tuple[Event, ...]
    rows: int
    missing: int
    dropped: int


class LiveWeigher:
    """Weighs rows as they come.

    Args:
        model: of the empty arm
        columns: names of the rows' values
        name: of the source, for messages
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
    """

    def __init__(
        self,
        model: DynamicModel,
        columns: tuple[str, ...],
        *,
        name: str = "the stream",
        accuracy: float = 0.01,
    ) -> None:
        self.model, self.columns, self.name, self.accuracy = model, columns, name, accuracy
        self._first: list[Row] = []
        self._path: _Path | None = None
        self._estimator = OnlineEstimator(model, model.kinematics, options=OnlineOptions(accuracy=accuracy))
        self.state = self._estimator.init()
        self.doubts: tuple[Doubt, ...] = ()
        self._sample: OnlineSample | None = None
        self._last: Row | None = None
        self._events: list[Event] = []
        self._rows = self._missing = self._dropped = 0
        self._advice, self._advised_s = "", float("inf")
        self._noted_s = -np.inf  # start of the payload that a pick or a drop was said of, [s]
        self._grown: list[tuple[float, float]] = []  # time [s] and information of the last updates

    @cached_property
    def layout(self) -> Layout:
        """What the columns mean."""
        return find_layout(self.columns, _NO_WRENCH, self.name)

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
        self._rows, self._last = self._rows + 1, item
        if item.waiting:
            return
        if self._path is not None:
            return self._weigh(self._path, item)
        self._first.append(item)
        if len(self._first) == _FIRST_ROWS:
            self._begin()

    def update(self) -> Update | None:
        """What is known now; None before the first row."""
        if self._last is None:
            return None
        known = self._sample is not None
        payload = self._estimator.estimate(self.state, physical=False) if known else None
        if payload is not None:
            self._note_change(payload, self._last.t)
        events, self._events = tuple(self._events), []
        waiting = self._last.waiting
        return Update(
            t=self._last.t,
            values=self._last.values,
            waiting=waiting or ("" if known else "the filters fill"),
            payload=payload,
            state=self.state,
            sample=self._sample,
            converged=payload is not None and _half_width(payload) <= self.accuracy,
            remaining_s=float("inf") if payload is None else self._remaining_s(payload),
            predicted=None if self._sample is None else self._estimator.torque(self.state, self._sample),
            next_step=f"wait: {waiting}" if waiting else self._next_step(self._last.t),
            events=events,
            rows=self._rows,
            missing=self._missing,
            dropped=self._dropped,
        )

    def payload(self) -> Payload | None:
        """The answer: the nearest real body, with all doubts; None where there was no sample."""
        if self._sample is None:
            return None
        found = self._estimator.estimate(self.state)
        return replace(found, verdict=found.verdict.doubted(*self.doubts))

    def answer(self, update: Update) -> Payload | None:
        """What `payload` would have said at an update; another thread may ask while this one weighs.

        Args:
            update: of this weigher
        """
        if update.sample is None:
            return None
        model = self._estimator.model
        own = replace(model, robot=replace(model.robot))  # Pinocchio's workspace is not shared
        found = replace(self._estimator, model=own).estimate(update.state)
        return replace(found, verdict=found.verdict.doubted(*self.doubts))

    def _note_change(self, payload: Payload, t: float) -> None:
        """An event once another payload is known well enough to say whether it is heavier or lighter."""
        history, start_s = self.state.history, self.state.start_s
        if not history or start_s == self._noted_s:
            return
        more = payload.mass - float(history[-1].vector[0])
        if abs(more) < _CLEARLY * HALF_WIDTH * payload.std[0]:
            return
        self._noted_s, ago_s = start_s, self.state.last_s - start_s
        kind, words = (EventKind.PICK, "picked up") if more > 0 else (EventKind.DROP, "put down")
        self._events.append(Event(kind, f"{words} {abs(more):.3g} kg {ago_s:.1f} s ago", t))

    def _next_step(self, t: float) -> str:
        if not 0 <= t - self._advised_s < _ADVISED_S:
            self._advised_s, self._advice = t, self._estimator.next_step(self.state)
        return self._advice

    def _begin(self) -> None:
        """Finds out from the first rows what the columns mean, and weighs these rows."""
        rows = np.array([row.values for row in self._first], dtype=float)
        values = dict(zip(self.columns, rows.T, strict=True))
        layout, robot = self.layout, self.model.robot
        recording = layout.recording(layout.gather(values), self.name)
        if recording.n != robot.n:
            raise InvalidRobot(
                f"{self.name} sends {recording.n} joints, the model is of {robot.name} with {robot.n}"
            )
        require_same_arm(robot, values, self.name)
        run = Run(self.name, recording)
        warm, self.doubts = as_warm(self.model, [run])
        if warm is not self.model:
            options = self._estimator.options
            self._estimator = OnlineEstimator(warm, warm.kinematics, options=options)
            self.state = self._estimator.init()
        self._path = _Path(warm, run, self.columns, layout)
        for row in self._first:
            self._weigh(self._path, row)
        self._first = []

    def _weigh(self, path: _Path, row: Row) -> None:
        for sample in path.samples(row, self.state.last_s):
            self.state, self._sample = self._estimator.step(self.state, sample), sample

    def _remaining_s(self, payload: Payload) -> float:
        width, t = _half_width(payload), self.state.last_s
        stays = sum(payload.shares.get(name, 0.0) for name in ("gains", "drift", "gravity")) * width**2
        if width <= self.accuracy:
            return 0.0
        if not np.isfinite(width) or stays >= self.accuracy**2:
            return float("inf")
        now, asked = 1 / (width**2 - stays), 1 / (self.accuracy**2 - stays)
        self._grown = [x for x in self._grown if t - _LOOK_BACK_S <= x[0] < t and x[1] < now]
        self._grown.append((t, now))
        start_s, before = self._grown[0]
        return float((asked - now) * (t - start_s) / (now - before)) if now > before else float("inf")


class _Weigher(Protocol[U]):
    """Takes what comes, and says what is known."""

    def take(self, item: Row | Event) -> None: ...

    def update(self) -> U | None: ...


def watch(
    items: Iterable[Row | Event],
    weigher: _Weigher[U],
    *,
    every_s: float = 0.1,
    recorder: Recorder | None = None,
) -> Iterator[U]:
    """What is known, again and again while rows come, and at the end.

    Args:
        items: of a stream
        weigher: for its columns
        every_s: time between two updates, [s]
        recorder: that gets every row besides
    """
    due_s = time.monotonic() + every_s
    with one_blas_thread():
        for item in items:
            if recorder is not None and isinstance(item, Row):
                recorder.add(item)
            weigher.take(item)
            if time.monotonic() >= due_s and (update := weigher.update()) is not None:
                due_s = time.monotonic() + every_s
                yield update
        if (update := weigher.update()) is not None:
            yield update


def require_same_arm(robot: RobotModel, values: dict[str, Array], name: str) -> None:
    """Refuses a controller whose flange is elsewhere than the model's would be; passes where it does not say.

    A base that is turned about the vertical axis does not matter.

    Args:
        robot: the arm of the model
        values: of one row or several, by RTDE's or libfranka's names
        name: of the source
    """
    if (found := _flange_of(values)) is None:
        return
    there, q = found
    ours = robot.forward_kinematics(q)
    places = [(np.hypot(T[0, 3], T[1, 3]), T[2, 3]) for T in (there, ours)]
    if max(abs(x - y) for x, y in zip(*places, strict=True)) > _FLANGE_APART:
        words = [
            f"{1e3 * out:.0f} mm from the vertical axis and {1e3 * up:.0f} mm high" for out, up in places
        ]
        raise InvalidRobot(
            f"{name} is another arm than the model's: its flange is {words[0]}, that of {robot.name} would be"
            f" {words[1]}"
        )


def _flange_of(values: dict[str, Array]) -> tuple[Array, Array] | None:
    """Where a controller says that its flange is, (4, 4), and the joints there; None where it does not."""

    def first(word: str, count: int) -> Array:
        return np.array([values.get(f"{word}_{k}", [np.nan])[0] for k in range(count)])

    pose, offset = first("actual_TCP_pose", 6), first("tcp_offset", 6)
    if np.isfinite([*pose, *offset]).all() and pose.any():
        return _transform(pose) @ np.linalg.inv(_transform(offset)), first("actual_q", 6)
    tool, tip = (first(word, 16).reshape(4, 4).T for word in ("O_T_EE", "F_T_EE"))
    if np.isfinite([*tool, *tip]).all() and tool.any():
        return tool @ np.linalg.inv(tip), first("q", 7)
    return None


class _Path:
    """The way of a row to samples, prepared as the model's recordings were."""

    def __init__(self, model: DynamicModel, run: Run, columns: tuple[str, ...], layout: Layout) -> None:
        if run.recording is None:
            raise InvalidSamples(f"{run.name} has no rows")
        how = replace(preparation_for(model, None), trim_s=0.0, decimate=1)
        self._path = CausalPath.of(run.recording, how, model.robot.limits.v_max)
        self._drive = run.drive_for(model)
        joint_torque(run.recording, self._drive)  # which refuses what it cannot use
        motion = ("q_commanded", "v_commanded", "a_commanded")[: self._path.channels]
        motion = ("q",) if how.kinematics == "measured" else motion

        def places(*channels: str) -> list[int]:
            return [columns.index(name) for channel in channels for name in layout.columns[channel]]

        self._motion = places(*motion)
        self._effort = places("tau" if self._drive is None else "current")
        self._state, self._clock, self._start_s, self._later_s = self._path.init(), -1, 0.0, 0.0

    def samples(self, row: Row, last_s: float) -> tuple[OnlineSample, ...]:
        """The samples that are ready with one more row.

        Args:
            row: fit for weighing
            last_s: time of the last sample that was weighed, [s]
        """
        if row.clock != self._clock:
            self._later_s = last_s + _NEW_CLOCK_S if self._clock >= 0 and np.isfinite(last_s) else 0.0
            self._state, self._clock, self._start_s = self._path.init(), row.clock, row.t
        values = np.array(row.values, dtype=float)
        effort = values[self._effort]
        tau = effort if self._drive is None else self._drive.torque_from_current(effort)
        t = row.t - self._start_s + self._later_s
        self._state, ready = self._path.step(self._state, RawRow(t, values[self._motion], tau))
        return ready


def _half_width(payload: Payload) -> float:
    """Of the mass's 95 % interval over the mass."""
    return float(HALF_WIDTH * payload.std[0] / max(abs(payload.body.mass), 1e-12))


def _transform(pose: Array) -> Array:
    """Of a position [m] and a rotation vector, (4, 4)."""
    T = np.eye(4)
    T[:3, 3], T[:3, :3] = pose[:3], Rotation.from_rotvec(pose[3:]).as_matrix()
    return T
