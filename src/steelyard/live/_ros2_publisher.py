"""A weighed payload, or picks, as messages of ROS 2.

On one topic `geometry_msgs/InertiaStamped`: mass, centre of mass and the inertia about it, in the
frame of the payload. It is published only while the verdict lets the payload be used. An inertia
that no body has, as early estimates often are, is left out: all six numbers are 0. On another
one `diagnostic_msgs/DiagnosticArray`, always: its level says whether the numbers may be used.

| level | meaning |
|---|---|
| 0, OK | the mass is known as requested, and nothing blocks its use |
| 1, WARN | it may be used, but is not known as requested yet |
| 2, ERROR | do not use it |
| 3, STALE | nothing is weighed now |

A pick is a `std_msgs/String` with one JSON object, the row of a table of picks. Its status is OK
for a good one, ERROR for an alarm, and WARN where it is unclear or was not weighed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard._saved import plain
from steelyard._units import NORMAL_95
from steelyard.errors import SourceFailed
from steelyard.inertia import InertialParameters
from steelyard.live._foxglove import Bridge
from steelyard.live._ros2_connection import open_socket, typestore
from steelyard.live._view import Snapshot
from steelyard.payload import Payload
from steelyard.picking import Decision, Pick

if TYPE_CHECKING:
    from steelyard.live._ros2 import Ros2Controller

PAYLOAD_TOPIC = "/payload"
"""Topic that a weighed payload is published on."""

PICKS_TOPIC = "/picks"
"""Topic that picks are published on."""

STATUS_TOPIC = "/diagnostics"
"""Topic that its status is published on, as ROS 2 collects them."""

OK = 0
WARN = 1
ERROR = 2
STALE = 3
"""Levels of a diagnostic_msgs/DiagnosticStatus."""

_INERTIA = "geometry_msgs/msg/InertiaStamped"
_DIAGNOSTICS = "diagnostic_msgs/msg/DiagnosticArray"
_TEXT = "std_msgs/msg/String"
_STATUS_NAME = "steelyard: payload"
_PICK_STATUS_NAME = "steelyard: picks"


class Ros2Publisher:
    """Publishes a payload and its status; close it, or use it in a `with`.

    Args:
        controller: the arm behind a bridge that accepts messages, or a node of this process
        topic: of the payload, or of picks
        status_topic: of its status
    """

    def __init__(
        self,
        controller: Ros2Controller,
        *,
        topic: str = PAYLOAD_TOPIC,
        status_topic: str = STATUS_TOPIC,
    ) -> None:
        self._place = str(controller)
        self._topic = topic
        self._status_topic = status_topic
        self._bridge = Bridge()
        self._store = typestore()
        self._socket = open_socket(controller)
        try:
            self._await_permission(controller.timeout_s)
        except SourceFailed:
            self.close()
            raise

    def __enter__(self) -> Ros2Publisher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; a second call does nothing."""
        self._socket.close()

    def publish_snapshot(self, snapshot: Snapshot) -> None:
        """Publishes the status of a moment and, where it may be used, the payload.

        Args:
            snapshot: of a stream that is weighed
        """
        stamp_ns = round(snapshot.t * 1e9)
        level, words = status_of(snapshot)
        if snapshot.payload is not None and level in (OK, WARN):
            self._publish_body(snapshot.payload.body, stamp_ns)
        self._send(
            self._status_topic,
            _DIAGNOSTICS,
            self._diagnostics(level, words, facts_of(snapshot), stamp_ns),
        )

    def publish_payload(self, payload: Payload, *, stamp_ns: int | None = None) -> None:
        """Publishes a payload, whatever its verdict says.

        Args:
            payload: in the frame that the header names
            stamp_ns: of the header, [ns]; now by default
        """
        if stamp_ns is None:
            stamp_ns = time.time_ns()
        self._publish_body(payload.body, stamp_ns)

    def publish_pick(self, pick: Pick) -> None:
        """Publishes a pick and its status.

        Args:
            pick: that has just ended; the messages have the present time
        """
        row = plain(pick.row()._asdict(), not_finite=lambda number: None)
        text = json.dumps(row, allow_nan=False)
        self._send(self._topic, _TEXT, self._store.types[_TEXT](text))
        level = WARN
        if pick.is_alarm:
            level = ERROR
        elif pick.decision is Decision.GOOD:
            level = OK
        words = "; ".join((str(pick.decision), *pick.reasons))
        facts = {name: str(value) for name, value in row.items() if value not in (None, "")}
        status = self._diagnostics(level, words, facts, time.time_ns(), name=_PICK_STATUS_NAME)
        self._send(self._status_topic, _DIAGNOSTICS, status)

    def _publish_body(self, body: InertialParameters, stamp_ns: int) -> None:
        moments = body.inertia_com
        if not body.is_physical:
            moments = np.zeros((3, 3))
        xx, xy, xz, _, yy, yz, _, _, zz = moments.ravel().tolist()
        types = self._store.types
        centre = types["geometry_msgs/msg/Vector3"](*(float(x) for x in body.com))
        inertia = types["geometry_msgs/msg/Inertia"](
            float(body.mass), centre, xx, xy, xz, yy, yz, zz
        )
        message = types[_INERTIA](self._header(stamp_ns, body.frame), inertia)
        self._send(self._topic, _INERTIA, message)

    def _diagnostics(
        self,
        level: int,
        words: str,
        facts: Mapping[str, str],
        stamp_ns: int,
        *,
        name: str = _STATUS_NAME,
    ) -> Any:
        types = self._store.types
        pair = types["diagnostic_msgs/msg/KeyValue"]
        status = types["diagnostic_msgs/msg/DiagnosticStatus"](
            level=level,
            name=name,
            message=words,
            hardware_id=self._place,
            values=[pair(key, value) for key, value in facts.items()],
        )
        return types[_DIAGNOSTICS](self._header(stamp_ns, ""), [status])

    def _header(self, stamp_ns: int, frame: str) -> Any:
        types = self._store.types
        stamp = types["builtin_interfaces/msg/Time"](*divmod(stamp_ns, 10**9))
        return types["std_msgs/msg/Header"](stamp, frame)

    def _send(self, topic: str, kind: str, message: Any) -> None:
        data = bytes(self._store.serialize_cdr(message, kind))
        try:
            for part in self._bridge.publication(topic, kind, data):
                self._socket.send(part)
        except Exception as error:  # each kind of socket has errors of its own
            raise SourceFailed(f"{self._place} has closed the connection") from error

    def _await_permission(self, timeout_s: float) -> None:
        """Waits until the bridge has said whether it accepts messages."""
        end = time.monotonic() + timeout_s
        while not self._bridge.name and (left_s := end - time.monotonic()) > 0:
            try:
                self._bridge.receive(self._socket.recv(left_s))
            except TimeoutError:
                break
        if not self._bridge.accepts_messages:
            raise SourceFailed(
                f"{self._place} accepts no messages: start the bridge with the capability"
                " clientPublish"
            )


def status_of(snapshot: Snapshot) -> tuple[int, str]:
    """Level and message of a DiagnosticStatus.

    Args:
        snapshot: of a stream that is weighed
    """
    payload = snapshot.payload
    if snapshot.waiting or payload is None:
        return STALE, f"nothing is weighed: {snapshot.waiting or snapshot.next_step}"
    if not payload.verdict.ok:
        doubts = "; ".join(doubt.words for doubt in payload.verdict.blocking)
        return ERROR, f"do not use the payload: {doubts}"
    if snapshot.converged:
        return OK, "the payload is known as requested"
    return WARN, "the payload is not known as requested yet"


def facts_of(snapshot: Snapshot) -> dict[str, str]:
    """Numbers of a snapshot by name, as a DiagnosticStatus lists them.

    Args:
        snapshot: of a stream that is weighed
    """
    facts = {
        "rows": str(snapshot.rows),
        "missing": str(snapshot.missing),
        "dropped": str(snapshot.dropped),
    }
    payload = snapshot.payload
    if payload is None:
        return facts
    half_width = NORMAL_95 * payload.std[0]
    inertia = "published"
    if not payload.body.is_physical:
        inertia = "left out: no body has these numbers"
    facts["mass [kg]"] = f"{payload.body.mass:.4f}"
    facts["95 % half-width [kg]"] = f"{half_width:.4f}"
    facts["inertia"] = inertia
    facts["doubts"] = ", ".join(str(doubt.kind) for doubt in payload.verdict.doubts)
    facts["next"] = snapshot.next_step
    return facts
