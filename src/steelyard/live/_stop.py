"""Stopping an arm, and what is known about it afterwards.

An answer says what was seen, never what was sent: rows in which no joint moves and no program runs
mean that the arm is at rest. Without rows nothing is known.
"""

from __future__ import annotations

import time
from enum import StrEnum
from typing import NamedTuple

from steelyard.errors import SourceFailed
from steelyard.live._controller import MovableController, SeenMotion, movable_of
from steelyard.live._source import Row, Source, Stream

_REST_TIMEOUT_S = 3.0
_REST_S = 0.06  # without motion and program, by this machine's clock
_TAKE_S = 0.05
_MAX_ROW_AGE_S = 0.3  # an older row says nothing about the present


class RestState(StrEnum):
    """What is known about an arm after a stop."""

    AT_REST = "at rest"
    STILL_MOVING = "still moving"
    NOT_KNOWN = "not known"


class StopReport(NamedTuple):
    """What was seen after a stop was requested.

    Attributes:
        state: what is known about the arm
        seconds: from the request to the first row at rest, [s]; NaN in other states
        reason: why the arm is not known to be at rest; empty otherwise
    """

    state: RestState
    seconds: float = float("nan")
    reason: str = ""

    @property
    def at_rest(self) -> bool:
        """Whether the arm was seen at rest."""
        return self.state is RestState.AT_REST

    @property
    def sentence(self) -> str:
        """The report for people."""
        if self.state is RestState.AT_REST:
            return f"the arm is at rest, {self.seconds:.2f} s after the request"
        if self.state is RestState.STILL_MOVING:
            return f"the arm is still moving ({self.reason}): press the emergency stop"
        return f"it is not known whether the arm moves ({self.reason}): look at it"


def stop(source: Source, *, timeout_s: float = _REST_TIMEOUT_S) -> StopReport:
    """Stops whatever an arm does, and reports what its rows say afterwards.

    Args:
        source: the controller
        timeout_s: longest wait for rest, [s]

    Raises:
        SourceFailed: the source accepts no stop command
    """
    controller = movable_of(source)
    begin_s = time.monotonic()
    problem = ""
    try:
        controller.send_stop()
    except SourceFailed as error:
        problem = str(error)
    report = seen_at_rest(controller, begin_s=begin_s, timeout_s=timeout_s)
    if report.at_rest or not problem:
        return report
    return report._replace(reason=f"{report.reason}; {problem}")


def seen_at_rest(controller: MovableController, *, begin_s: float, timeout_s: float) -> StopReport:
    """What a new connection shows of an arm that should come to rest.

    Args:
        controller: the controller
        begin_s: when the stop was requested (`time.monotonic`), [s]
        timeout_s: longest wait for rest, [s]
    """
    try:
        with Stream(controller) as stream:
            return watch_rest(stream, begin_s=begin_s, timeout_s=timeout_s)
    except SourceFailed as error:
        return StopReport(RestState.NOT_KNOWN, reason=str(error))


def watch_rest(stream: Stream, *, begin_s: float, timeout_s: float) -> StopReport:
    """What the rows of a stream show of an arm that should come to rest.

    Args:
        stream: rows of the controller
        begin_s: when the stop was requested (`time.monotonic`), [s]
        timeout_s: longest wait for rest, [s]
    """
    try:
        motion_in = movable_of(stream.source).motion_in(stream.columns)
    except SourceFailed as error:
        return StopReport(RestState.NOT_KNOWN, reason=str(error))
    end_s = time.monotonic() + timeout_s
    rest_s: float | None = None  # of the first row at rest
    last_s = float("-inf")
    seen = SeenMotion("")
    while time.monotonic() < end_s and not stream.ended:
        for item in stream.take(_TAKE_S):
            if not isinstance(item, Row) or item.received_s < begin_s:
                continue
            last_s = item.received_s
            seen = motion_in(item.values)
            if seen.reason:
                rest_s = None
            elif rest_s is None:
                rest_s = item.received_s
            elif item.received_s - rest_s >= _REST_S:
                return StopReport(RestState.AT_REST, rest_s - begin_s)
    if time.monotonic() - last_s >= _MAX_ROW_AGE_S or not seen.reason:
        return StopReport(RestState.NOT_KNOWN, reason=f"{stream.source} sends no rows")
    if not seen.is_known:
        return StopReport(RestState.NOT_KNOWN, reason=seen.reason)
    return StopReport(RestState.STILL_MOVING, reason=seen.reason)
