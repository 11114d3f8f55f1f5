"""On the robot, while it moves: sources of rows, and what is done with them.

Only this room opens sockets and knows the clocks of others.
"""

from steelyard.errors import UnknownName
from steelyard.live.recorder import Recorder, record
from steelyard.live.replay import ReplaySource
from steelyard.live.source import Event, EventKind, Row, Source, Stream
from steelyard.live.ur import UrSource
from steelyard.live.weigher import LiveWeigher, Update, watch

__all__ = [
    "Event",
    "EventKind",
    "LiveWeigher",
    "Recorder",
    "ReplaySource",
    "Row",
    "Source",
    "Stream",
    "Update",
    "UrSource",
    "record",
    "source_of",
    "watch",
]


def source_of(address: str) -> Source:
    """The source that an address names: `ur://HOST[:PORT]` or `replay:FILE`.

    Args:
        address: as a user gives it
    """
    kind, _, rest = address.partition(":")
    place = rest.removeprefix("//")
    if kind == "replay" and place:
        return ReplaySource(rest)
    host, colon, port = place.rpartition(":") if ":" in place else (place, "", "")
    if kind == "ur" and host and (port.isdecimal() or not colon):
        return UrSource(host, int(port)) if colon else UrSource(host)
    raise UnknownName(f"a source is ur://HOST, ur://HOST:PORT or replay:FILE, got '{address}'")
