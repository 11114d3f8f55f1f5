"""Commands that read from a controller whose answers are broken.

One forked process listens on a port for each way to answer. It begins as an RTDE server does; from
some answer on it sends noise, texts without end, sizes that do not fit, impossible numbers, or
nothing.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator

from breaking import Case

from steelyard.live._rtde import Package, PackageKind, Recipe
from steelyard.twin._rtde_server import _OUTPUT_TYPES

WAYS = (
    *("closes", "noise", "silent", "http", "texts", "no size", "huge size", "no types"),
    *("wrong types", "refuses", "not started", "nan time", "huge time", "back in time", "nan rows"),
    *("huge rows", "short rows", "another recipe", "cut rows"),
)
COMMANDS = (
    "record ur://127.0.0.1:{} -o out.parquet --seconds 1 --json",
    "track ur://127.0.0.1:{} --model model.json --seconds 1",
    "track-wrist ur://127.0.0.1:{} --robot ur10 --seconds 1",
    "record ros2://127.0.0.1:{} -o out.parquet --seconds 1",
    "stop ur://127.0.0.1:{}",
    "set-payload ur://127.0.0.1:{} payload.json --yes",
)
ROWS_S = 0.01  # between two rows


def stream_case(rng: random.Random, ports: dict[str, int]) -> Case:
    """A command, and a controller that answers in one of the ways."""
    way = rng.choice(WAYS)
    words = rng.choice(COMMANDS).format(ports[way]).split()
    return Case(f"stream: {way}: {' '.join(words)}", {}, words)


@contextlib.contextmanager
def broken_controllers() -> Iterator[dict[str, int]]:
    """Ports of controllers by their way to answer, as long as the context lasts."""
    sockets = {way: socket.create_server(("127.0.0.1", 0)) for way in WAYS}
    ports = {way: listener.getsockname()[1] for way, listener in sockets.items()}
    child = os.fork()
    if child == 0:
        _serve(sockets)
    for listener in sockets.values():
        listener.close()
    try:
        yield ports
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _serve(sockets: dict[str, socket.socket]) -> None:
    parent = os.getppid()
    for way, listener in sockets.items():
        threading.Thread(target=_accept, args=(way, listener), daemon=True).start()
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(0)


def _accept(way: str, listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_answer, args=(way, connection), daemon=True).start()


def _answer(way: str, connection: socket.socket) -> None:
    with contextlib.suppress(OSError), connection:
        if way == "closes":
            return
        if way == "noise":
            connection.sendall(random.Random(0).randbytes(400))
            time.sleep(1)
        elif way == "http":
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        elif way == "silent":
            time.sleep(60)
        elif way == "texts":
            while True:
                connection.sendall(Package.text("be patient", version=2).encoded())
                time.sleep(0.05)
        elif way == "no size":
            connection.sendall(b"\0\0V")
        elif way == "huge size":
            while True:
                connection.sendall(b"\xff\xffV" + bytes(1000))
                time.sleep(0.2)
        else:
            _rtde(way, connection)


def _rtde(way: str, connection: socket.socket) -> None:
    """Answers as RTDE does, up to the broken one."""
    buffer = bytearray()
    while True:
        received = connection.recv(4096)
        if not received:
            return
        buffer += received
        for kind, content in Package.cut(buffer):
            if kind is PackageKind.VERSION:
                connection.sendall(Package(kind, bytes([way != "refuses"])).encoded())
            elif kind is PackageKind.CONTROLLER:
                connection.sendall(Package(kind, struct.pack(">4I", 5, 11, 0, 0)).encoded())
            elif kind is PackageKind.OUTPUTS:
                names = tuple(content[8:].decode("ascii", "replace").split(","))
                types = _types(way, names)
                connection.sendall(Package(kind, b"\1" + ",".join(types).encode()).encoded())
            elif kind is PackageKind.INPUTS:
                connection.sendall(Package(kind, b"\1DOUBLE").encoded())
            elif kind is PackageKind.START:
                connection.sendall(Package(kind, bytes([way != "not started"])).encoded())
                _send_rows(way, connection, Recipe(names, types, 1))
                return


def _types(way: str, names: tuple[str, ...]) -> tuple[str, ...]:
    if way == "no types":
        return ()
    if way == "wrong types":
        return tuple("COMPLEX" for _ in names)
    return tuple(_OUTPUT_TYPES.get(name, "NOT_FOUND") for name in names)


def _send_rows(way: str, connection: socket.socket, recipe: Recipe) -> None:
    count = len(recipe.columns)
    for k in range(2000):
        values = [0.0] * count
        values[0] = k * ROWS_S
        if way == "nan time" and k % 20 == 10:
            values[0] = float("nan")
        elif way == "huge time" and k % 20 == 10:
            values[0] = 1e300
        elif way == "back in time":
            values[0] = -k * ROWS_S
        elif way == "nan rows":
            values[1:] = [float("nan")] * (count - 1)
        elif way == "huge rows":
            values[1:] = [1e308] * (count - 1)
        try:
            package = recipe.package(values)
        except (struct.error, OverflowError, ValueError):
            package = Package(PackageKind.DATA, bytes(8))
        encoded = package.encoded()
        if way == "short rows":
            encoded = Package(PackageKind.DATA, package.content[:-3]).encoded()
        elif way == "another recipe":
            encoded = Package(PackageKind.DATA, b"\7" + package.content[1:]).encoded()
        elif way == "cut rows":
            encoded = encoded[:-1]
        connection.sendall(encoded)
        time.sleep(ROWS_S)
