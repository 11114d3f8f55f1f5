"""A planned motion while the arm moves: heartbeats, progress, and stops.

The reader thread of the stream sends a heartbeat every few rows, so the arm brakes at once if its
rows stop coming. Heartbeats also stop if the program has taken no rows for `_MAX_UNTAKEN_S`. Every
exception, Ctrl-C included, ends the motion: the robot receives the command to brake, and its rows
are watched until it stands.

The program confirms the beats in its rows (`Confirmation`). If the rows say that it moves and
confirm no beat, another program probably took its place: a program that receives no beats would
soon say that it brakes. Beats that it confirms late mean that rows come late, even though they come
regularly. The link sends the first beat only after the program has confirmed a probe in time.

`MotionProgress` follows the rows of the controller from the moment the program was sent:

    SENT ---program moves---> MOVING ---program ended---> FINISHED
     |                          |----ended too early,---> INTERRUPTED
     |                          |    mode not fit,
     |                          |    clock jumped,
     |                          |    beats not confirmed
     |                          `----too long-----------> OVERDUE
     `----no start in time,---> NOT_STARTED
          refused
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from steelyard.errors import SourceFailed
from steelyard.live._controller import (
    MAX_ANSWER_S,
    MotionLink,
    MovableController,
    Observation,
    ProgramState,
)
from steelyard.live._motion import MotionPlan
from steelyard.live._source import Event, EventKind, Row, Stream
from steelyard.live._stop import RestState, StopReport, seen_at_rest, watch_rest

_MAX_DELAY_S = 3.0  # of the start and of the end, by the controller's clock
_STALL_S = 0.2  # without rows while the arm moves, the stream counts as stalled
_START_STALL_S = 2.0  # without rows while the controller reads the program
_MAX_UNTAKEN_S = 0.3
"""Without a call of `take` for so long, the beats end, [s]. With four busy processes on two cores,
the longest time between two calls in `weigh-live` was 0.18 s: estimates have their own thread."""

_MAX_OTHER_ANSWER_S = 1.2  # of a program that brakes
_LATE_S = 0.06  # rows that confirm too late for so long count
_REPLACED = "its program no longer answers, probably because another program took its place"
_BEAT_STEP_S = 0.008  # shortest time between two beats
_MIN_SPEED = 0.02  # of a joint that moves, [rad/s]
_REST_MARGIN_S = 0.5  # beyond the braking time, for the arm to be seen at rest
_SECOND_STOP_S = 1.0  # for the arm to be seen at rest after the controller's own stop command


class MotionState(StrEnum):
    """States of a motion that was sent to a controller."""

    SENT = "sent"
    MOVING = "moving"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    NOT_STARTED = "not started"
    OVERDUE = "overdue"


class Moved(StrEnum):
    """Whether an arm has moved."""

    YES = "moved"
    NO = "did not move"
    NOT_KNOWN = "not known"


_MOVED_WORDS = {
    Moved.YES: "the arm has moved",
    Moved.NO: "the arm did not move",
    Moved.NOT_KNOWN: "it is not known whether the arm has moved",
}
_ONGOING = (MotionState.SENT, MotionState.MOVING)


class Confirmation(NamedTuple):
    """How soon a program confirms beats; `after` gives the next one.

    Attributes:
        in_time_s: when the last row came in which no beat was overdue (`time.monotonic`), [s]
        news_s: when the last row came that has confirmed another beat, [s]
        waits_since_s: when the first beat was sent that is not confirmed, [s]
    """

    in_time_s: float = math.inf
    news_s: float = math.inf
    waits_since_s: float = math.inf

    def after(self, row: Row, seen: Observation) -> Confirmation:
        """The confirmation after one more row.

        Args:
            row: the next row of the controller
            seen: what it says about the motion
        """
        longest_s = _MAX_OTHER_ANSWER_S
        if seen.program is ProgramState.MOVING:
            longest_s = MAX_ANSWER_S
        in_time_s = min(self.in_time_s, row.received_s)
        news_s = min(self.news_s, row.received_s)
        if row.received_s - seen.waits_since_s <= longest_s:
            in_time_s = row.received_s
        if seen.waits_since_s != self.waits_since_s:
            news_s = row.received_s
        return Confirmation(in_time_s, news_s, seen.waits_since_s)

    def problem(self, now_s: float) -> str:
        """Why the motion must not go on; empty where it may.

        Args:
            now_s: when the last row came, [s]
        """
        if now_s - self.in_time_s <= _LATE_S:
            return ""
        if now_s - self.news_s > _LATE_S:
            return _REPLACED
        return f"its rows come {now_s - self.waits_since_s:.2f} s late"


NOT_CONFIRMED = Confirmation()
"""Before the first row."""


@dataclass(frozen=True)
class MotionProgress:
    """Progress of a motion that was sent to a controller; `after` gives the next one.

    Attributes:
        duration_s: of the whole motion, [s]
        sent_s: when the program was sent (`time.monotonic`), [s]
        state: the present state
        start_s: the controller's time of the first row after that, [s]; None before it
        seen_moving: whether a row has shown a moving joint
        reason: why the motion did not start or was interrupted; empty otherwise
        last_s: the controller's time of the last row, [s]; None before the first one
        confirmation: of the beats
    """

    duration_s: float
    sent_s: float = float("-inf")
    state: MotionState = MotionState.SENT
    start_s: float | None = None
    seen_moving: bool = False
    reason: str = ""
    last_s: float | None = None
    confirmation: Confirmation = NOT_CONFIRMED

    @property
    def ongoing(self) -> bool:
        """Whether the motion has neither ended nor failed."""
        return self.state in _ONGOING

    @property
    def is_replaced(self) -> bool:
        """Whether another program took the place of the program of the motion."""
        return self.reason == _REPLACED

    @property
    def longest_pause_s(self) -> float:
        """Longest time without a row, [s]."""
        if self.state is MotionState.MOVING:
            return _STALL_S
        return _START_STALL_S

    @property
    def latest_end_s(self) -> float:
        """Latest regular end after the first row, [s]."""
        return self.duration_s + 2 * _MAX_DELAY_S

    @property
    def moved(self) -> Moved:
        """Whether the arm has moved, by the rows so far."""
        if self.seen_moving:
            return Moved.YES
        if self.state is MotionState.NOT_STARTED:
            return Moved.NO
        return Moved.NOT_KNOWN

    def after(self, row: Row, seen: Observation) -> MotionProgress:
        """The progress after one more row; rows from before the program was sent do not count.

        Args:
            row: the next row of the controller
            seen: what it says about the motion
        """
        if row.received_s < self.sent_s:
            return self
        if self.start_s is None:
            return replace(self, start_s=row.t).after(row, seen)
        if seen.speed > _MIN_SPEED and not self.seen_moving:
            return replace(self, seen_moving=True).after(row, seen)
        if problem := self._clock_problem(row.t):
            return self._ended(MotionState.INTERRUPTED, problem)
        confirmation = self.confirmation.after(row, seen)
        following = replace(self, last_s=row.t, confirmation=confirmation)
        return following._of_program(row, seen)

    def _clock_problem(self, t: float) -> str:
        """What is wrong with the controller's time of a row, [s]; empty for a right one."""
        step_s = 0.0
        if self.last_s is not None:
            step_s = t - self.last_s
        if step_s < 0:
            return f"the controller's clock went back by {-step_s:.1f} s"
        if step_s > self.longest_pause_s:
            return f"the controller's clock went on by {step_s:.1f} s without a row"
        return ""

    def _of_program(self, row: Row, seen: Observation) -> MotionProgress:
        """The progress after a row whose time is right, by the program and the modes."""
        elapsed_s = row.t - (self.start_s or 0.0)
        hindrance = seen.hindrance or row.waiting
        if self.state is MotionState.MOVING and hindrance:
            return self._ended(MotionState.INTERRUPTED, hindrance)
        if seen.program is ProgramState.FINISHED:
            return replace(self, state=MotionState.FINISHED)
        if seen.program is ProgramState.REFUSED:
            return self._ended(MotionState.NOT_STARTED, seen.reason)
        if seen.program is ProgramState.STOPPED:
            return self._ended(MotionState.INTERRUPTED, seen.reason)
        if problem := self.confirmation.problem(row.received_s):
            return self._ended(MotionState.INTERRUPTED, problem)
        if elapsed_s > self.latest_end_s:
            return replace(self, state=MotionState.OVERDUE)
        if seen.program in (ProgramState.MOVING, ProgramState.BRAKING):
            return replace(self, state=MotionState.MOVING)
        if self.state is MotionState.MOVING:
            return self._ended(MotionState.INTERRUPTED, _REPLACED)
        if elapsed_s > _MAX_DELAY_S:
            return self._ended(MotionState.NOT_STARTED, seen.reason or row.waiting)
        return self

    def _ended(self, state: MotionState, reason: str) -> MotionProgress:
        return replace(self, state=state, reason=reason)

    def failure(self, controller: MovableController) -> str:
        """Why the motion has failed, for people; empty where it has not.

        Args:
            controller: named in the message
        """
        if self.state is MotionState.INTERRUPTED:
            return f"the motion was interrupted: {self.reason}"
        if self.state is MotionState.OVERDUE:
            return f"the motion did not end within {self.latest_end_s:.0f} s"
        if self.state is not MotionState.NOT_STARTED:
            return ""
        if self.seen_moving:
            return (
                f"the motion did not start on {controller}, but the arm moves: check what else"
                " moves it"
            )
        reason = self.reason or "is it in remote control?"
        return f"{controller} did not start the motion: {reason}"


class MotionFailed(SourceFailed):
    """A motion did not start, was interrupted, or got lost.

    Attributes:
        moved: whether the arm has moved
        report: what was seen of the arm afterwards
    """

    def __init__(self, message: str, *, moved: Moved, report: StopReport) -> None:
        super().__init__(f"{message}; {_MOVED_WORDS[moved]}; {report.sentence}")
        self.moved = moved
        self.report = report


class MotionRun:
    """One run of a plan; iterate over it once, inside a `with`.

    Leaving the `with` before the motion has ended stops the arm.

    Args:
        plan: the motion
        stream: rows of the controller
        on_stop: called with what was seen after a stop that leaving the `with` has caused

    Attributes:
        progress: of the motion; None before it was sent
    """

    def __init__(
        self,
        plan: MotionPlan,
        stream: Stream,
        *,
        on_stop: Callable[[StopReport], None] | None = None,
    ) -> None:
        self._plan = plan
        self._stream = stream
        self._on_stop = on_stop
        self._taken_s = 0.0
        self._beaten_s = 0.0
        self._ended = False
        self._link: MotionLink | None = None
        self.progress: MotionProgress | None = None

    def __enter__(self) -> MotionRun:
        return self

    def __exit__(self, *_: object) -> None:
        report = self._end()
        if report is not None and self._on_stop is not None:
            self._on_stop(report)

    def __iter__(self) -> Iterator[Row | Event]:
        """Moves the arm; gives the rows and events until it has stopped.

        Raises:
            MotionFailed: the motion does not start, is interrupted, or does not end in time
        """
        plan = self._plan
        link = plan.controller.motion_link(plan.path)
        self._link = link  # closed by `_end`, which asks for a stop first
        observed = link.observer(self._stream.columns)
        self._start(link)
        while (progress := self.progress) is not None and progress.ongoing:
            yield from self._taken(progress, observed)
        self._end()

    def _start(self, link: MotionLink) -> None:
        """Sends the program and begins the beats, for the first of which it waits.

        Raises:
            MotionFailed: it was not sent, or it is not known whether it runs
        """
        sent_s = time.monotonic()
        self.progress = MotionProgress(self._plan.trajectory.duration_s, sent_s)
        try:
            link.start()
        except SourceFailed as error:
            raise self._failed(str(error)) from error
        self._taken_s = time.monotonic()
        self.progress = replace(self.progress, sent_s=self._taken_s)
        self._stream.on_rows = self._beat

    def _taken(
        self, progress: MotionProgress, observed: Callable[[tuple[float, ...]], Observation]
    ) -> Iterator[Row | Event]:
        """The next rows and events; raises `MotionFailed` where the motion must not go on."""
        self._taken_s = time.monotonic()
        longest_s = progress.longest_pause_s
        items = self._stream.take(longest_s)
        if not items:
            raise self._failed(f"no rows came for {longest_s:g} s")
        for item in items:
            yield item
            if isinstance(item, Row):
                progress = progress.after(item, observed(item.values))
                self.progress = progress
                if failure := progress.failure(self._plan.controller):
                    raise self._failed(failure)
            elif item.kind in (EventKind.LOST, EventKind.ENDED):
                raise self._failed(item.words)
            if not progress.ongoing:
                return

    def _failed(self, message: str) -> MotionFailed:
        """Stops the arm; the error with what was seen of it."""
        moved = Moved.NOT_KNOWN
        if self.progress is not None:
            moved = self.progress.moved
        report = self._end() or StopReport(RestState.NOT_KNOWN, reason="nothing was sent")
        return MotionFailed(message, moved=moved, report=report)

    # --- on the reader thread of the stream

    def _beat(self) -> None:
        """Sends a beat for rows that have come, while they are taken."""
        now = time.monotonic()
        link = self._link
        if link is None or now - self._beaten_s < _BEAT_STEP_S:
            return
        if now - self._taken_s > _MAX_UNTAKEN_S:
            return
        self._beaten_s = now
        try:
            link.beat()
        except SourceFailed:
            self._link = None  # the program stops by itself
            link.close()

    # --- stopping

    def _end(self) -> StopReport | None:
        """Stops an arm whose motion has not finished; None where there is nothing to stop."""
        self._stream.on_rows = None
        progress = self.progress
        link = self._link
        self._link = None
        if progress is None or progress.state is MotionState.FINISHED or self._ended:
            if link is not None:
                link.close()
            return None
        self._ended = True
        begin_s = time.monotonic()
        try:
            if link is not None:
                _ask_to_brake(link)
            return self._seen_at_rest(begin_s)
        except KeyboardInterrupt:  # Ctrl-C again: without a beat the program stops by itself
            return StopReport(RestState.NOT_KNOWN, reason="the wait for its rest was interrupted")
        finally:
            if link is not None:
                link.close()

    def _seen_at_rest(self, begin_s: float) -> StopReport:
        """What the rows show; the controller's own stop command follows where they show no rest."""
        controller = self._plan.controller
        if self.progress is None or not self.progress.is_replaced:
            timeout_s = self._plan.braking_s + _REST_MARGIN_S
            report = watch_rest(self._stream, begin_s=begin_s, timeout_s=timeout_s)
            if report.at_rest:
                return report
        problem = ""
        try:
            controller.send_stop()
        except SourceFailed as error:
            problem = f"; {error}"
        report = seen_at_rest(controller, begin_s=begin_s, timeout_s=_SECOND_STOP_S)
        if report.at_rest:
            return report
        return report._replace(reason=f"{report.reason}{problem}")


def _ask_to_brake(link: MotionLink) -> None:
    """Asks for a stop; without a way to the robot, the program stops by itself."""
    try:
        link.request_stop()
    except SourceFailed:
        link.close()
