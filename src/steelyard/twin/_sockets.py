"""Sockets of a URScript program: the controller connects to a server on the network.

Nothing blocks: a function that waits for bytes yields once for each control step.
"""

from __future__ import annotations

import errno
import re
import socket
import struct
from collections.abc import Callable

from steelyard.twin._interpreter import Function, Value, Waiting

_CONNECT_TIMEOUT_S = 2.0
_DEFAULT_TIMEOUT_S = 2.0
_CHUNK = 1 << 16
_IN_PROGRESS = (errno.EINPROGRESS, errno.EALREADY, errno.EWOULDBLOCK)
_FLOATS = re.compile(rb"\(([^)]*)\)")


class ScriptSockets:
    """The open sockets of a program, by their names.

    Args:
        step_s: length of a control step, [s]
    """

    def __init__(self, step_s: float) -> None:
        self._step_s = step_s
        self._open: dict[str, socket.socket] = {}
        self._received: dict[str, bytearray] = {}

    def functions(self) -> dict[str, Function]:
        """The functions of URScript, by their names."""
        return {
            "socket_open": self._socket_open,
            "socket_close": self._socket_close,
            "socket_send_string": self._send_string,
            "socket_send_line": self._send_line,
            "socket_send_byte": self._send_byte,
            "socket_send_int": self._send_int,
            "socket_read_ascii_float": self._read_floats,
            "socket_read_binary_integer": self._read_integers,
            "socket_read_byte_list": self._read_bytes,
            "socket_read_string": self._read_string,
            "socket_read_line": self._read_line,
        }

    def close(self) -> None:
        """Closes all sockets, as at the end of a program."""
        for name in list(self._open):
            self._socket_close(name)

    def _socket_open(self, address: str, port: int, socket_name: str = "socket_0") -> Waiting:
        self._socket_close(socket_name)
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)
        for _ in range(round(_CONNECT_TIMEOUT_S / self._step_s)):
            state = connection.connect_ex((str(address), int(port)))
            if state in (0, errno.EISCONN):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open[socket_name] = connection
                self._received[socket_name] = bytearray()
                return True
            if state not in _IN_PROGRESS:
                break
            yield
        connection.close()
        return False

    def _socket_close(self, socket_name: str = "socket_0") -> None:
        connection = self._open.pop(socket_name, None)
        if connection is not None:
            connection.close()

    # --- sending

    def _send(self, data: bytes, socket_name: str) -> bool:
        connection = self._open.get(socket_name)
        if connection is None:
            return False
        try:
            return connection.send(data) == len(data)
        except OSError:
            return False

    def _send_string(self, str: Value, socket_name: str = "socket_0") -> bool:  # noqa: A002
        return self._send(f"{str}".encode(), socket_name)

    def _send_line(self, str: Value, socket_name: str = "socket_0") -> bool:  # noqa: A002
        return self._send(f"{str}\n".encode(), socket_name)

    def _send_byte(self, value: int, socket_name: str = "socket_0") -> bool:
        return self._send(bytes([int(value) & 0xFF]), socket_name)

    def _send_int(self, value: int, socket_name: str = "socket_0") -> bool:
        return self._send(struct.pack(">i", int(value)), socket_name)

    # --- receiving

    def _await(
        self, socket_name: str, timeout_s: float, complete: Callable[[bytearray], int]
    ) -> Waiting:
        """The first bytes of a socket, as many as `complete` tells; none after the timeout."""
        steps = round(timeout_s / self._step_s) or 1 << 60  # a timeout of 0 waits for ever
        for _ in range(steps):
            connection = self._open.get(socket_name)
            if connection is None:
                return b""
            buffer = self._received[socket_name]
            if not self._receive(connection, buffer):
                self._socket_close(socket_name)
            if size := complete(buffer):
                found = bytes(buffer[:size])
                del buffer[:size]
                return found
            yield
        return b""

    def _receive(self, connection: socket.socket, buffer: bytearray) -> bool:
        """Takes what has come; False where the other side has closed the connection."""
        try:
            data = connection.recv(_CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        buffer += data
        return bool(data)

    def _read_floats(
        self, number: int, socket_name: str = "socket_0", timeout: float = _DEFAULT_TIMEOUT_S
    ) -> Waiting:
        found = yield from self._await(socket_name, timeout, lambda b: b.find(b")") + 1)
        match = _FLOATS.search(found)
        if match is None:
            return [0, *[float("nan")] * int(number)]
        values = [float(x) for x in match[1].split(b",")][: int(number)]
        return [len(values), *values, *[float("nan")] * (int(number) - len(values))]

    def _read_integers(
        self, number: int, socket_name: str = "socket_0", timeout: float = _DEFAULT_TIMEOUT_S
    ) -> Waiting:
        size = 4 * int(number)
        found = yield from self._await(socket_name, timeout, lambda b: size * (len(b) >= size))
        if not found:
            return [0, *[-1] * int(number)]
        return [int(number), *struct.unpack(f">{int(number)}i", found)]

    def _read_bytes(
        self, number: int, socket_name: str = "socket_0", timeout: float = _DEFAULT_TIMEOUT_S
    ) -> Waiting:
        size = int(number)
        found = yield from self._await(socket_name, timeout, lambda b: size * (len(b) >= size))
        if not found:
            return [0, *[-1] * size]
        return [size, *found]

    def _read_string(
        self,
        socket_name: str = "socket_0",
        prefix: str = "",
        suffix: str = "",
        interpret_escape: bool = False,
        timeout: float = _DEFAULT_TIMEOUT_S,
    ) -> Waiting:
        end = suffix.encode()
        if end:
            found = yield from self._await(
                socket_name, timeout, lambda b: (b.find(end) + len(end)) * (end in b)
            )
        else:
            found = yield from self._await(socket_name, timeout, len)
        text: str = found.decode(errors="replace")
        return text.removesuffix(suffix).removeprefix(prefix)

    def _read_line(
        self, socket_name: str = "socket_0", timeout: float = _DEFAULT_TIMEOUT_S
    ) -> Waiting:
        found = yield from self._await(socket_name, timeout, lambda b: b.find(b"\n") + 1)
        text: str = found.decode(errors="replace")
        return text.rstrip("\r\n")
