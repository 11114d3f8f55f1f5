"""RTDE, the protocol of Universal Robots' controllers: bytes, packages, rows; no sockets.

Every package is a big-endian uint16 with its size, these three bytes included, a letter for its
kind, and its content. A connection starts in version 1 of the protocol; version 2 numbers the
recipes and takes a rate. The client asks for outputs by name, learns their types from the answer,
starts, and gets one data package per control step, or per several of them. Texts may come at any
time.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from steelyard.errors import SourceFailed
from steelyard.live._source import Values

PORT = 30004
NOT_FOUND = "NOT_FOUND"
LONGEST_NAMES = 2048  # bytes
TYPES = {
    "BOOL": "?",
    "UINT8": "B",
    "UINT32": "I",
    "INT32": "i",
    "UINT64": "Q",
    "DOUBLE": "d",
    "VECTOR3D": "3d",
    "VECTOR6D": "6d",
    "VECTOR6INT32": "6i",
    "VECTOR6UINT32": "6I",
}
"""How each type of a value lies on the wire, for `struct`."""

_HEADER = struct.Struct(">HB")
_RATE = struct.Struct(">d")
_BUILD = struct.Struct(">4I")


class PackageKind(IntEnum):
    """What a package is: the letter on the wire."""

    VERSION = ord("V")
    CONTROLLER = ord("v")
    TEXT = ord("M")
    DATA = ord("U")
    OUTPUTS = ord("O")
    INPUTS = ord("I")
    START = ord("S")
    PAUSE = ord("P")


class Package(NamedTuple):
    """One package.

    Attributes:
        kind: what it is
        content: behind the header
    """

    kind: PackageKind
    content: bytes

    def encoded(self) -> bytes:
        """The package as it is sent."""
        return _HEADER.pack(_HEADER.size + len(self.content), self.kind) + self.content

    @staticmethod
    def cut(buffer: bytearray) -> list[Package]:
        """The whole packages at the beginning of a buffer, which are taken out of it.

        Args:
            buffer: bytes that were received and not used yet
        """
        found = []
        at = 0
        while len(buffer) - at >= _HEADER.size:
            size, letter = _HEADER.unpack_from(buffer, at)
            if size < _HEADER.size or letter not in _LETTERS:
                begin = bytes(buffer[at : at + 20])
                raise SourceFailed(f"this is not RTDE: {begin!r}")
            if len(buffer) - at < size:
                break
            found.append(Package(PackageKind(letter), bytes(buffer[at + _HEADER.size : at + size])))
            at += size
        del buffer[:at]
        return found

    @staticmethod
    def text(words: str, *, version: int, level: int = 3, source: str = "controller") -> Package:
        """A message of a controller.

        Args:
            words: of the message, at most 255 bytes
            version: of the protocol
            level: 0 exception, 1 error, 2 warning, 3 information
            source: who says it
        """
        message = words.encode()[:255]
        by = source.encode()[:255]
        if version == 1:
            return Package(PackageKind.TEXT, bytes([level]) + message)
        return Package(
            PackageKind.TEXT,
            bytes([len(message)]) + message + bytes([len(by)]) + by + bytes([level]),
        )


_LETTERS = {kind.value for kind in PackageKind}


@dataclass(frozen=True)
class Recipe:
    """Which values a data package holds.

    Attributes:
        names: of the variables
        types: of them, as the controller names them
        number: of the recipe, before the values from version 2 on; None in version 1
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    number: int | None = None
    _struct: struct.Struct = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.number is None:
            number = ""
        else:
            number = "B"
        form = ">" + number + "".join(TYPES[kind] for kind in self.types)
        object.__setattr__(self, "_struct", struct.Struct(form))

    @property
    def columns(self) -> tuple[str, ...]:
        """A name for every number: `actual_q_0` to `actual_q_5`."""
        found: list[str] = []
        for name, kind in zip(self.names, self.types, strict=True):
            size = re.match(r"\d*", TYPES[kind])
            found += [f"{name}_{k}" for k in range(int(size[0]))] if size and size[0] else [name]
        return tuple(found)

    def values(self, content: bytes) -> Values | None:
        """The numbers of a data package; None where it belongs to another recipe.

        Args:
            content: of the package
        """
        if self.number is not None and content[:1] != bytes([self.number]):
            return None
        if len(content) != self._struct.size:
            raise SourceFailed(
                f"a data package has {len(content)} bytes, its recipe {self._struct.size}: this is"
                " not RTDE"
            )
        numbers = self._struct.unpack(content)
        if self.number is None:
            return numbers
        return numbers[1:]

    def package(self, values: Sequence[float]) -> Package:
        """The data package of some numbers.

        Args:
            values: as the columns name them
        """
        head = () if self.number is None else (self.number,)
        return Package(PackageKind.DATA, self._struct.pack(*head, *values))


class RtdeClient:
    """The client's side of a connection: bytes in, rows out, and what to send.

    Args:
        required: names of outputs without which there is no sense in reading
        optional: names of outputs that are left out where the controller does not know them
        rate_hz: rows per second to ask for, [Hz]; the controller may send more
        inputs: names of inputs of which the first that is free is taken; none by default

    Attributes:
        input: recipe of the input that was taken; None where none was free
    """

    def __init__(
        self,
        required: Sequence[str],
        optional: Sequence[str],
        *,
        rate_hz: float = 500.0,
        inputs: Sequence[str] = (),
    ) -> None:
        self._required = tuple(required)
        self._names = (*required, *optional)
        self._rate_hz = rate_hz
        self._buffer, self._to_send = bytearray(), bytearray()
        self._version = 2
        self._agreed = 1  # asked for; in use
        self.texts: list[str] = []
        self.controller: tuple[int, ...] = ()
        self.recipe: Recipe | None = None
        self.input: Recipe | None = None
        self._inputs = list(inputs)
        self.started = False
        self._ask(PackageKind.VERSION, struct.pack(">H", 2))

    def to_send(self) -> bytes:
        """What has to be sent now; it is given once."""
        data = bytes(self._to_send)
        self._to_send.clear()
        return data

    def receive(self, data: bytes) -> list[Values]:
        """The rows that have become whole with some more bytes.

        Args:
            data: as they came in
        """
        self._buffer += data
        rows = []
        for package in Package.cut(self._buffer):
            if package.kind is not PackageKind.DATA:
                self._answered(package)
            elif (
                self.recipe is not None
                and (values := self.recipe.values(package.content)) is not None
            ):
                rows.append(values)
        return rows

    def pause(self) -> None:
        """Asks the controller to send no more rows."""
        self._ask(PackageKind.PAUSE)

    def _ask(self, kind: PackageKind, content: bytes = b"") -> None:
        self._to_send += Package(kind, content).encoded()

    def _answered(self, package: Package) -> None:
        kind, content = package
        if kind is PackageKind.TEXT:
            self.texts.append(_message(content, self._agreed))
        elif kind is PackageKind.VERSION:
            self._versioned(bool(content and content[0]))
        elif kind is PackageKind.CONTROLLER:
            if len(content) != _BUILD.size:
                raise SourceFailed(
                    f"the controller's version has {len(content)} bytes: this is not RTDE"
                )
            self.controller = _BUILD.unpack(content)
            self._ask_for_outputs()
        elif kind is PackageKind.OUTPUTS:
            self._offered(content)
        elif kind is PackageKind.INPUTS:
            self._offered_input(content)
        elif kind is PackageKind.START:
            if not (content and content[0]):
                raise SourceFailed("the controller refuses to start sending")
            self.started = True

    def _versioned(self, accepted: bool) -> None:
        if accepted:
            self._agreed = self._version
            return self._ask(PackageKind.CONTROLLER)
        if self._version == 1:
            raise SourceFailed("the controller refuses versions 2 and 1 of RTDE")
        self._version = 1
        self._ask(PackageKind.VERSION, struct.pack(">H", 1))

    def _ask_for_outputs(self) -> None:
        if self._version > 1:
            rate = _RATE.pack(self._rate_hz)
        else:
            rate = b""
        self._ask(PackageKind.OUTPUTS, rate + ",".join(self._names).encode())

    def _offered(self, content: bytes) -> None:
        if self._version > 1 and content:
            number = content[0]
        else:
            number = None
        types = (
            (content if number is None else content[1:])
            .decode("ascii", "replace")
            .strip(",")
            .split(",")
        )
        if len(types) != len(self._names):
            raise SourceFailed(
                f"{len(self._names)} outputs were asked for, {len(types)} types came back"
            )
        unknown = [name for name, kind in zip(self._names, types, strict=True) if kind not in TYPES]
        if missing := [name for name in unknown if name in self._required]:
            raise SourceFailed(
                f"the controller does not send {', '.join(missing)}: its software is too old"
            )
        if unknown:
            self._names = tuple(name for name in self._names if name not in unknown)
            return self._ask_for_outputs()
        self.recipe = Recipe(self._names, tuple(types), number)
        self._ask_for_input()

    def _ask_for_input(self) -> None:
        """Asks for the next input, or starts where there is none left."""
        if self._inputs:
            self._ask(PackageKind.INPUTS, self._inputs[0].encode())
        else:
            self._ask(PackageKind.START)

    def _offered_input(self, content: bytes) -> None:
        """Takes the input that was asked for, or asks for the next one."""
        name = self._inputs.pop(0)
        kind = content[1:].decode("ascii", "replace").strip(",")
        if kind in TYPES:
            self.input = Recipe((name,), (kind,), content[0])
            self._inputs.clear()
        self._ask_for_input()


def _message(content: bytes, version: int) -> str:
    if version == 1:
        return content[1:].decode(errors="replace")
    if content:
        size = content[0]
    else:
        size = 0
    return content[1 : 1 + size].decode(errors="replace")
