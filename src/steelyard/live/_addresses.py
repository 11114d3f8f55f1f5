"""The makers of controllers in one table: addresses of sources, and payloads in their rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from steelyard.errors import UnknownName
from steelyard.live._controller import ControllerPayload
from steelyard.live._franka import FrankaController
from steelyard.live._franka import mode_in_row as franka_mode
from steelyard.live._franka import payload_in_row as franka_payload
from steelyard.live._replay import ReplaySource
from steelyard.live._ros2 import PORT as ROS2_PORT
from steelyard.live._ros2 import Ros2Controller
from steelyard.live._source import Source
from steelyard.live._ur import UrController
from steelyard.live._ur import payload_in_row as ur_payload
from steelyard.live._ur_modes import mode_in_row as ur_mode

ADDRESSES = (
    "ur://HOST",
    "ur://HOST:PORT",
    "ros2://HOST:PORT?tau=effort",
    "ros2-node:?tau=effort",
    "franka://HOST",
    "replay:FILE",
)
"""Forms of addresses, for messages."""

_HOST = re.compile(r"[^\s.:/?#@]+(\.[^\s.:/?#@]+)*\.?|\[[0-9A-Fa-f:.]+\]")
_MAX_PORT = 65535
_PAYLOAD_READERS = (ur_payload, franka_payload)
_MODE_READERS = (franka_mode, ur_mode)


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
    if kind == "ros2-node" and not place:
        return Ros2Controller.of("", 0, query, joint_names=joint_names)
    host, colon, port = place.rpartition(":")
    if not colon:
        host = place
        port = ""
    if _HOST.fullmatch(host) and (not colon or _is_port(port)):
        if kind == "ur" and not query:
            if port:
                return UrController(host, int(port))
            return UrController(host)
        if kind == "franka" and not query and not colon:
            return FrankaController(host)
        if kind == "ros2":
            return Ros2Controller.of(host, int(port or ROS2_PORT), query, joint_names=joint_names)
    raise UnknownName(
        f"a source is {', '.join(ADDRESSES[:-1])} or {ADDRESSES[-1]}, got '{address}'"
    )


def _is_port(text: str) -> bool:
    return text.isdecimal() and 0 < int(text) <= _MAX_PORT


def payload_in_row(row: Mapping[str, float]) -> ControllerPayload | None:
    """The payload that a row of any maker's controller reports; None where there is none.

    Args:
        row: values by the names of the columns
    """
    for payload_in in _PAYLOAD_READERS:
        if (payload := payload_in(row)) is not None:
            return payload
    return None


def mode_in_row(row: Mapping[str, float]) -> str:
    """The modes that a row of any maker's controller reports, in words; empty where none.

    Args:
        row: values by the names of the columns
    """
    for mode_in in _MODE_READERS:
        if mode := mode_in(row):
            return mode
    return ""
