"""TCP connections with error messages that say what to check."""

from __future__ import annotations

import socket

from steelyard.errors import SourceFailed


def open_connection(host: str, port: int, hint: str, *, timeout_s: float) -> socket.socket:
    """A connection by TCP; raises `SourceFailed` with one clear line.

    Args:
        host: name or address
        port: number of the port
        hint: question shown when the connection is refused
        timeout_s: longest time of every wait, [s]
    """
    place = f"{host}, port {port}"
    try:
        connection = socket.create_connection((host, port), timeout=timeout_s)
    except socket.gaierror as error:
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
