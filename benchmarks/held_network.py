"""A network between a simulated controller and its clients that can be lost for a while.

Every connection to one of the ports of a `HeldNetwork` goes on to the same port of the controller.
While the network is held, nothing passes in either direction; afterwards everything arrives, as TCP
delivers it after a loss of packets.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

from steelyard.twin._server import ControllerServer, port_shifts

_CHUNK = 1 << 16


class HeldNetwork:
    """Ports that pass everything on to those of a simulated controller.

    Args:
        server: the controller

    Attributes:
        port: of RTDE; the other ports are shifted as those of the controller
    """

    def __init__(self, server: ControllerServer) -> None:
        self._host = server.host
        self._held_until_s = 0.0
        listeners = _listeners(server.host)
        self.port = listeners[0].getsockname()[1]
        for listener, shift in zip(listeners, port_shifts(), strict=True):
            _start(self._accept, listener, server.port + shift)

    def hold(self, seconds: float) -> None:
        """Lets nothing pass for a time, [s]."""
        self._held_until_s = time.monotonic() + seconds

    def _accept(self, listener: socket.socket, port: int) -> None:
        while True:
            near, _ = listener.accept()
            far = socket.create_connection((self._host, port))
            for one, other in ((near, far), (far, near)):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _start(self._pass_on, one, other)

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(_CHUNK):
                while time.monotonic() < self._held_until_s:
                    time.sleep(0.002)
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def _start(target: object, *args: object) -> None:
    threading.Thread(target=target, args=args, daemon=True).start()  # type: ignore[arg-type]


def _listeners(host: str) -> list[socket.socket]:
    """A listening socket for every port, with the same distances as those of a controller."""
    while True:
        opened = [socket.create_server((host, 0))]
        first = opened[0].getsockname()[1]
        try:
            for shift in port_shifts()[1:]:
                opened.append(socket.create_server((host, first + shift)))
        except (OSError, OverflowError):
            for listener in opened:
                listener.close()
        else:
            return opened
