"""The addresses of sources. Each maker's module is imported when an address names it.

`steelyard stop` therefore loads the interface of its own controller only. Other packages add makers
by entry points in the group `steelyard.makers`: the name is the beginning of their addresses,
`NAME://...`, and the value a function that makes a `Source` of an address.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import entry_points

from steelyard.errors import SourceFailed, SteelyardError, UnknownName
from steelyard.live._source import Source

ADDRESSES = (
    "ur://HOST",
    "ur://HOST:PORT",
    "ros2://HOST:PORT?tau=effort",
    "ros2-node:?tau=effort",
    "franka://HOST",
    "replay:FILE",
)
"""Forms of addresses, for messages."""

MAKER_GROUP = "steelyard.makers"
"""Entry points of other packages that make sources."""

_HOST = re.compile(r"[^\s.:/?#@]+(\.[^\s.:/?#@]+)*\.?|\[[0-9A-Fa-f:.]+\]")
_MAX_PORT = 65535


def source_of(address: str, *, joint_names: Sequence[str] = ()) -> Source:
    """The source that an address names, `ur://HOST[:PORT]`, `ros2://HOST[:PORT][?...]`, ...

    Installed packages add makers: their addresses are `NAME://...`.

    Args:
        address: as a user gives it
        joint_names: of the arm, in its order, where it is known; for sources that can name joints
    """
    kind, _, rest = address.partition(":")
    if kind == "replay" and rest.removeprefix("//"):
        return _replay(rest, joint_names)
    place, _, query = rest.removeprefix("//").partition("?")
    if kind == "ros2-node" and not place:
        return _ros2("", "0", query, joint_names)
    host, colon, port = place.rpartition(":")
    if not colon:
        host = place
        port = ""
    if _HOST.fullmatch(host) and (not colon or _is_port(port)):
        if kind == "ur" and not query:
            return _ur(host, port)
        if kind == "franka" and not query and not colon:
            return _franka(host)
        if kind == "ros2":
            return _ros2(host, port, query, joint_names)
    made = _of_plug_in(address)
    if made is not None:
        return made.with_joints(tuple(joint_names))
    others = [f"{entry.name}://..." for entry in entry_points(group=MAKER_GROUP)]
    *forms, last = (*ADDRESSES, *sorted(others))
    raise UnknownName(f"a source is {', '.join(forms)} or {last}, got '{address}'")


def _of_plug_in(address: str) -> Source | None:
    """The source that another package makes of an address; None where none knows it."""
    scheme, separator, _ = address.partition("://")
    known = {entry.name: entry for entry in entry_points(group=MAKER_GROUP)}
    if not separator or scheme not in known:
        return None
    entry = known[scheme]
    plug_in = f"the plug-in '{entry.name}' ({entry.value})"
    try:
        made = entry.load()(address)
    except SteelyardError:
        raise
    except Exception as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise SourceFailed(
            f"{plug_in} failed for '{address}' ({first}); check the address, or tell the author of"
            " the plug-in"
        ) from error
    if not isinstance(made, Source):
        raise SourceFailed(
            f"{plug_in} must make a steelyard.live.Source, got {type(made).__name__}; tell its"
            " author"
        )
    return made


def _ur(host: str, port: str) -> Source:
    from steelyard.live._ur import UrController

    if port:
        return UrController(host, int(port))
    return UrController(host)


def _franka(host: str) -> Source:
    from steelyard.live._franka import FrankaController

    return FrankaController(host)


def _ros2(host: str, port: str, query: str, joint_names: Sequence[str]) -> Source:
    from steelyard.live._ros2 import PORT, Ros2Controller

    return Ros2Controller.of(host, int(port or PORT), query, joint_names=joint_names)


def _replay(file: str, joint_names: Sequence[str]) -> Source:
    from steelyard.live._replay import ReplaySource

    return ReplaySource(file, joint_names=tuple(joint_names))


def _is_port(text: str) -> bool:
    return text.isdecimal() and 0 < int(text) <= _MAX_PORT
