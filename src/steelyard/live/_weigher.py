"""The payload while the arm moves: rows of a stream in, what is known out, as often as somebody looks.

Rows become samples and samples an estimate as in `weigh_online`, with the same preparation and the
same estimator, so that a recording of the stream, weighed with `--online`, gives the same numbers.
Rows that are not fit for weighing are left out; after them, and on another clock of the sender, the
filters start anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array
from steelyard._computing import one_blas_thread, real_time_priority, short_pauses
from steelyard.errors import InvalidRobot, InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.identification._temperature import with_temperature_drift
from steelyard.live._recorder import Recorder
from steelyard.live._source import Event, EventKind, Row
from steelyard.live._touch import TouchWatch
from steelyard.live._view import Seen, Update, View
from steelyard.payload import Payload
from steelyard.recording import recording_of
from steelyard.recording._layout import Layout
from steelyard.robot import RobotModel
from steelyard.signals import JointPath, OnlineSample, RawRow, joint_torque
from steelyard.workflow._data import Run, preparation_for, temperature_of

U = TypeVar("U", covariant=True)

_FIRST_ROWS = 50  # they tell the rate and what the columns mean
_NEW_CLOCK_S = 1.0  # another clock goes on so much after the one before
_TOUCHED_S = 0.02  # between two samples that are searched for a push
_FLANGE_APART = 0.02  # [m], between two arms of one kind


class LiveWeigher:
    """Weighs rows as they come.

    Attributes:
        view: looks at what was seen
        state: of the estimator
        row: the last one; None before the first

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
        self.view = View(model, columns, name=name, accuracy=accuracy)
        self.state = self.view.estimator.init()
        self._first: list[Row] = []
        self._path: _Path | None = None
        self._sample: OnlineSample | None = None
        self.row: Row | None = None
        self._events: list[Event] = []
        self._rows = self._missing = self._dropped = 0
        self._touch = TouchWatch(model.robot.joint_names)
        self._touched_s = -np.inf

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
        if item.waiting:
            return
        if self._path is not None:
            return self._weigh(self._path, item)
        self._first.append(item)
        if len(self._first) == _FIRST_ROWS:
            self._begin()

    def seen(self) -> Seen | None:
        """What has been seen, with the events since the last call; None before the first row."""
        if self.row is None:
            return None
        events = tuple(self._events)
        self._events = []
        counts = self._rows, self._missing, self._dropped
        return Seen(self.row, self.state, self._sample, events, *counts)

    def update(self) -> Update | None:
        """What is known now; None before the first row."""
        if (seen := self.seen()) is None:
            return None
        return self.view.update(seen)

    def payload(self) -> Payload | None:
        """The answer: the nearest real body, with all doubts; None where there was no sample."""
        if self.row is None:
            return None
        return self.view.answer(Seen(self.row, self.state, self._sample, (), 0, 0, 0))

    def _note_touch(self, sample: OnlineSample, t: float) -> None:
        """An event where something pushes the arm, once residuals show the noise."""
        if not self.state.settled:
            return
        residual, std = self.view.estimator.residual(self.state, sample)
        if words := self._touch.look(sample.t, residual, std):
            self._events.append(Event(EventKind.CONTACT, words, t))

    def _begin(self) -> None:
        """Finds out from the first rows what the columns mean, and weighs these rows."""
        rows = np.array([row.values for row in self._first], dtype=float)
        values = dict(zip(self.view.columns, rows.T, strict=True))
        view = self.view
        layout = view.layout
        robot = view.model.robot
        recording = recording_of(layout, layout.gather(values), view.name)
        if recording.n != robot.n:
            raise InvalidRobot(
                f"{view.name} sends {recording.n} joints, the model is of {robot.name} with"
                f" {robot.n}"
            )
        require_same_arm(robot, values, view.name)
        run = Run(view.name, recording)
        warm, doubts = with_temperature_drift(view.model, temperature_of([run]))
        if warm is not view.model or doubts:
            self.view = View(
                warm, view.columns, name=view.name, accuracy=view.accuracy, doubts=doubts
            )
            self.state = self.view.estimator.init()
        self._path = _Path(warm, run, view.columns, layout)
        for row in self._first:
            self._weigh(self._path, row)
        self._first = []

    def _weigh(self, path: _Path, row: Row) -> None:
        for sample in path.samples(row, self.state.last_s):
            self.state = self.view.estimator.step(self.state, sample)
            self._sample = sample
            if not (sample.fault or 0 <= sample.t - self._touched_s < _TOUCHED_S):
                self._touched_s = sample.t
                self._note_touch(sample, row.t)


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
    look: Callable[[bool], Iterable[U]] | None = None,
) -> Iterator[U]:
    """What is known, again and again while rows come, and at the end.

    Args:
        items: of a stream
        weigher: for its columns
        every_s: time between two updates, [s]
        recorder: that gets every row besides
        look: updates of somebody who looks at the weigher elsewhere; called with whether it is the
            last time
    """

    def own(last: bool) -> Iterable[U]:
        update = weigher.update()
        if update is None:
            return ()
        return (update,)

    updates = look or own
    due_s = time.monotonic() + every_s
    with one_blas_thread(), short_pauses(), real_time_priority():
        for item in items:
            if recorder is not None and isinstance(item, Row):
                recorder.add(item)
            weigher.take(item)
            if time.monotonic() >= due_s:
                due_s = time.monotonic() + every_s
                yield from updates(False)
        yield from updates(True)


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
            f"{1e3 * out:.0f} mm from the vertical axis and {1e3 * up:.0f} mm high"
            for out, up in places
        ]
        raise InvalidRobot(
            f"{name} is another arm than the model's: its flange is {words[0]}, that of"
            f" {robot.name} would be"
            f" {words[1]}"
        )


def _flange_of(values: dict[str, Array]) -> tuple[Array, Array] | None:
    """Where a controller says that its flange is, (4, 4), and the joints there; None where it does not."""

    def first(word: str, count: int) -> Array:
        return np.array([values.get(f"{word}_{k}", [np.nan])[0] for k in range(count)])

    pose = first("actual_TCP_pose", 6)
    offset = first("tcp_offset", 6)
    if np.isfinite([*pose, *offset]).all() and pose.any():
        return _transform(pose) @ np.linalg.inv(_transform(offset)), first("actual_q", 6)
    tool, tip = (first(word, 16).reshape(4, 4).T for word in ("O_T_EE", "F_T_EE"))
    if np.isfinite([*tool, *tip]).all() and tool.any():
        return tool @ np.linalg.inv(tip), first("q", 7)
    return None


class _Path:
    """The way of a row to samples, prepared as the model's recordings were."""

    def __init__(
        self, model: DynamicModel, run: Run, columns: tuple[str, ...], layout: Layout
    ) -> None:
        if run.recording is None:
            raise InvalidSamples(f"{run.name} has no rows")
        how = replace(preparation_for(model, None), trim_s=0.0, decimate=1)
        self._path = JointPath.of(run.recording, how, model.robot.limits.v_max)
        self._drive = run.drive_for(model)
        joint_torque(run.recording, self._drive)  # which refuses what it cannot use
        motion = ("q_commanded", "v_commanded", "a_commanded")[: self._path.channels]
        if how.kinematics == "measured":
            motion = ("q",)

        def places(*channels: str) -> list[int]:
            return [columns.index(name) for channel in channels for name in layout.columns[channel]]

        self._motion = places(*motion)
        self._effort = places("tau" if self._drive is None else "current")
        self._state = self._path.init()
        self._clock = -1
        self._start_s = 0.0
        self._later_s = 0.0

    def samples(self, row: Row, last_s: float) -> tuple[OnlineSample, ...]:
        """The samples that are ready with one more row.

        Args:
            row: fit for weighing
            last_s: time of the last sample that was weighed, [s]
        """
        if row.clock != self._clock:
            if self._clock >= 0 and np.isfinite(last_s):
                self._later_s = last_s + _NEW_CLOCK_S
            else:
                self._later_s = 0.0
            self._state = self._path.init()
            self._clock = row.clock
            self._start_s = row.t
        values = np.array(row.values, dtype=float)
        effort = values[self._effort]
        if self._drive is None:
            tau = effort
        else:
            tau = self._drive.torque_from_current(effort)
        t = row.t - self._start_s + self._later_s
        self._state, ready = self._path.step(self._state, RawRow(t, values[self._motion], tau))
        return ready


def _transform(pose: Array) -> Array:
    """Of a position [m] and a rotation vector, (4, 4)."""
    T = np.eye(4)
    T[:3, 3], T[:3, :3] = pose[:3], Rotation.from_rotvec(pose[3:]).as_matrix()
    return T
