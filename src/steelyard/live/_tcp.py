"""TCP connections with error messages that say what to check."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from steelyard.errors import SourceFailed

_CHUNK = 1 << 16  # bytes
_MAX_PORT = 65535


def open_connection(host: str, port: int, hint: str, *, timeout_s: float) -> socket.socket:
    """A connection by TCP; raises `SourceFailed` with one clear line.

    Args:
        host: name or address
        port: number of the port
        hint: question shown when the connection is refused
        timeout_s: longest time of every wait, [s]
    """
    place = f"{host}, port {port}"
    if not 0 < port <= _MAX_PORT:
        raise SourceFailed(f"{place}: there is no such port; check the address of the controller")
    try:
        connection = socket.create_connection((host, port), timeout=timeout_s)
    except (socket.gaierror, UnicodeError) as error:  # the second for an empty part of a name
        raise SourceFailed(
            f"there is no host '{host}': check the address of the controller"
        ) from error
    except TimeoutError as error:
        raise SourceFailed(
            f"{place} does not answer within {timeout_s:g} s: is the controller on, and in this"
            " network?"
        ) from error
    except ConnectionRefusedError as error:
        raise SourceFailed(f"{place}: the connection was refused: {hint}") from error
    except OSError as error:
        raise SourceFailed(f"{place} cannot be reached: {error.strerror or error}") from error
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def receive_until(
    connection: socket.socket, enough: Callable[[bytes], bool], end_s: float
) -> bytes:
    """The bytes that come until they are enough, or until the sender closes the connection.

    Args:
        connection: an open connection
        enough: whether the bytes so far suffice
        end_s: latest end (`time.monotonic`), [s]; then `TimeoutError` is raised
    """
    received = b""
    while not enough(received):
        left_s = end_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the answer took too long")
        connection.settimeout(left_s)
        data = connection.recv(_CHUNK)
        if not data:
            break
        received += data
    return received
