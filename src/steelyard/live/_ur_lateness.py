"""How late the rows of a Universal Robots controller come, by its own clock.

A row says when it was made, T, on a clock whose distance from ours is not known. A second
connection limits it: its first row, made at T_1, was made after this computer asked for it at the
time t_1. A row of the stream that is received at the time t is therefore late by at most

    (t - t_1) - (T - T_1).

The limit is above the true value by the time from the request to the row that answers it, a few
milliseconds unless this computer is busy. Where it is too large it is therefore determined again,
for a second, and the smallest one counts.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from steelyard.errors import SourceFailed
from steelyard.live._rtde import RtdeClient
from steelyard.live._source import Stream
from steelyard.live._tcp import open_connection

if TYPE_CHECKING:
    from steelyard.live._ur import UrController

MAX_LATE_S = 0.1
"""Rows that come later say too little about an arm that shall be commanded, [s]: with the silence
after which a motion brakes and the longest braking, its rest would be later than 0.5 s."""

_PATIENCE_S = 1.0  # in which rows must once come in time
_HANDSHAKE_TIMEOUTS = 2  # longest wait for the first row, in timeouts of the connection
_CHUNK = 1 << 16
_HINT = "is RTDE allowed in the controller's settings?"


class _FirstRow(NamedTuple):
    """The first row of a connection.

    Attributes:
        asked_s: when it was asked for (`time.monotonic`), [s]
        t: the controller's time in it, [s]
    """

    asked_s: float
    t: float


def require_prompt(controller: UrController, stream: Stream) -> None:
    """Raises `SourceFailed` where the rows of a controller come late.

    Args:
        controller: the controller
        stream: its rows
    """
    late_s = _late_s(_first_row(controller), stream)
    end_s = time.monotonic() + _PATIENCE_S
    while late_s > MAX_LATE_S and time.monotonic() < end_s:
        with suppress(SourceFailed):  # what was found before counts
            late_s = min(late_s, _late_s(_first_row(controller, end_s), stream))
    if late_s <= MAX_LATE_S:
        return
    raise SourceFailed(
        f"{controller} is not ready: its rows come {late_s:.2f} s late, at most"
        f" {MAX_LATE_S:g} s is safe; is the network overloaded, or this computer?"
    )


def _late_s(first: _FirstRow, stream: Stream) -> float:
    """Limit of how late the newest row comes, [s]; infinite where the clock has jumped."""
    row = stream.row()
    late_s = (row.received_s - first.asked_s) - (row.t - first.t)
    if late_s < -MAX_LATE_S:
        return math.inf
    return late_s


def _first_row(controller: UrController, latest_s: float = math.inf) -> _FirstRow:
    """The first row of another connection; raises `SourceFailed` where none comes in time."""
    client = RtdeClient(("timestamp",), (), rate_hz=controller.rate_hz)
    timeout_s = controller.timeout_s
    with open_connection(controller.host, controller.port, _HINT, timeout_s=timeout_s) as link:
        end_s = min(time.monotonic() + _HANDSHAKE_TIMEOUTS * timeout_s, latest_s)
        asked_s = time.monotonic()
        while time.monotonic() < end_s:
            try:
                if request := client.to_send():
                    asked_s = time.monotonic()
                    link.sendall(request)
                received = link.recv(_CHUNK)
            except OSError as error:
                raise SourceFailed(f"{controller}: a second connection failed: {error}") from error
            if not received:
                break
            if rows := client.receive(received):
                return _FirstRow(asked_s, rows[0][0])
    raise SourceFailed(
        f"{controller} is not ready: a second connection got no row within"
        f" {_HANDSHAKE_TIMEOUTS * timeout_s:g} s; is the network overloaded?"
    )
