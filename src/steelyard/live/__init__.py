"""On the robot, while it moves: sources of rows, and what is done with them.

Only this room opens sockets and knows the clocks of others.
"""

from collections.abc import Sequence

from steelyard.errors import UnknownName
from steelyard.live._franka import FrankaSource
from steelyard.live._recorder import Recorder, record
from steelyard.live._replay import ReplaySource
from steelyard.live._ros2 import PORT as ROS2_PORT
from steelyard.live._ros2 import Ros2Source
from steelyard.live._source import Event, EventKind, Row, Source, Stream
from steelyard.live._ur import UrSource
from steelyard.live._view import Update
from steelyard.live._weigher import LiveWeigher, watch
from steelyard.live._wrist import WristUpdate, WristWeigher

__all__ = [
    "Event",
    "EventKind",
    "FrankaSource",
    "LiveWeigher",
    "Recorder",
    "ReplaySource",
    "Ros2Source",
    "Row",
    "Source",
    "Stream",
    "Update",
    "UrSource",
    "WristUpdate",
    "WristWeigher",
    "record",
    "source_of",
    "watch",
]

ADDRESSES = (
    "ur://HOST",
    "ur://HOST:PORT",
    "ros2://HOST:PORT?tau=effort",
    "franka://HOST",
    "replay:FILE",
)
"""Forms of addresses, for messages."""


def source_of(address: str, *, joint_names: Sequence[str] = ()) -> Source:
    """The source that an address names, `ur://HOST[:PORT]`, `ros2://HOST[:PORT][?...]`, ...

    Args:
        address: as a user gives it
        joint_names: of the arm, in its order, where it is known; for sources that name joints
    """
    kind, _, rest = address.partition(":")
    if kind == "replay" and rest.removeprefix("//"):
        return ReplaySource(rest)
    place, _, query = rest.removeprefix("//").partition("?")
    if ":" in place:
        host, colon, port = place.rpartition(":")
    else:
        host, colon, port = (place, "", "")
    if host and (port.isdecimal() or not colon):
        if kind == "ur" and not query:
            if colon:
                return UrSource(host, int(port))
            return UrSource(host)
        if kind == "franka" and not query and not colon:
            return FrankaSource(host)
        if kind == "ros2":
            return Ros2Source.of(host, int(port or ROS2_PORT), query, joint_names=joint_names)
    raise UnknownName(
        f"a source is {', '.join(ADDRESSES[:-1])} or {ADDRESSES[-1]}, got '{address}'"
    )
