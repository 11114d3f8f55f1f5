"""Sockets of a simulated controller: all its ports on one thread, in real time.

Each control step is computed once and sent to every client that has started. Rows that a client
does not read are dropped, never queued. A script counts only if the client keeps the connection
open until 79 bytes of state messages were sent to it. Scripts are parsed on a thread of their own,
so that a long one does not delay the rows.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import methodcaller
from typing import Self

from steelyard.errors import SourceFailed
from steelyard.live._rtde import PORT
from steelyard.live._ur import DASHBOARD_PORT, SCRIPT_PORT
from steelyard.twin._clients import (
    Client,
    DashboardClient,
    PrimaryClient,
    RealTimeClient,
    RtdeConnection,
    SecondaryClient,
)
from steelyard.twin._controller import SimulatedController

CLOCK_OUTPUT = "output_double_register_24"
"""Output with the time of sending on this machine's clock (`time.monotonic`), for delays; a program
that writes this register replaces it."""

PRIMARY_PORT = 30001
"""Port of the state of the robot, of messages, and for scripts."""

REAL_TIME_PORT = 30003
"""Port of one package per control step, and for scripts."""

_PORTS: tuple[tuple[int, type[Client]], ...] = (
    (PORT, RtdeConnection),
    (DASHBOARD_PORT, DashboardClient),
    (PRIMARY_PORT, PrimaryClient),
    (SCRIPT_PORT, SecondaryClient),
    (REAL_TIME_PORT, RealTimeClient),
)
_STATE_PERIOD_S = 0.1
_CHUNK = 1 << 16
_SEND_BUFFER = 1 << 16
_MAX_PORT_ATTEMPTS = 50
_MAX_LAG_S = 1.0  # behind the clock by more, the schedule starts anew


class ControllerServer:
    """A simulated controller on the network, until it is closed; use it in a `with`.

    Args:
        controller: the controller behind the ports
        host: address to listen on
        port: port of RTDE; 0 for any free one. The other ports are shifted by as much
        speed: multiple of real time; 0 to send a row only when `send` is called
        on_step: called with the controller before each step, on the thread that sends
    """

    def __init__(
        self,
        controller: SimulatedController,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        speed: float = 1.0,
        on_step: Callable[[SimulatedController], None] | None = None,
    ) -> None:
        self.controller = controller
        self.host = host
        self.sent = 0
        self.dropped = 0
        self._speed = speed
        self._on_step = on_step
        listeners = _listening(host, port)
        self._listeners = {
            listener: client_class
            for listener, (_, client_class) in zip(listeners, _PORTS, strict=True)
        }
        self.port = listeners[0].getsockname()[1]
        self._clients: dict[socket.socket, Client] = {}
        self._scripts = ThreadPoolExecutor(1, thread_name_prefix="scripts")
        self._closed = threading.Event()
        self._lock = threading.RLock()
        self._thread = threading.Thread(target=self._run, name="simulated controller", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections and ends the thread."""
        self._closed.set()
        self._thread.join(timeout=5.0)
        self._scripts.shutdown(wait=False)
        for listener_or_client in (*self._listeners, *self._clients):
            listener_or_client.close()

    def send(self, steps: int = 1) -> None:
        """Advances by control steps and sends their rows, for tests that replace the clock.

        Args:
            steps: number of steps
        """
        for _ in range(steps):
            with self._lock:
                self._step()

    def has_unread(self) -> bool:
        """Whether a client has sent something that was not read yet, for tests as above."""
        with self._lock:
            sockets = [*self._listeners, *self._clients]
        return bool(_ready(sockets))

    # --- on the server thread

    def _run(self) -> None:
        step_s = _STATE_PERIOD_S
        if self._speed:
            step_s = 1 / (self.controller.backend.rate_hz * self._speed)
        due_s = time.monotonic() + step_s
        state_s = 0.0
        while not self._closed.is_set():
            now = time.monotonic()
            self._listen(max(due_s - now, 0.0))
            with self._lock:
                if (now := time.monotonic()) >= due_s:
                    if self._speed:
                        self._step()
                    if now - due_s > _MAX_LAG_S:
                        due_s = now
                    due_s += step_s
                if now >= state_s:
                    state_s = now + _STATE_PERIOD_S
                    self._for_each(lambda client: client.state())

    def _listen(self, timeout_s: float) -> None:
        """Accepts connections and reads from clients."""
        try:
            ready, _, _ = select.select([*self._listeners, *self._clients], [], [], timeout_s)
        except (OSError, ValueError):  # `send` has closed one of them on another thread
            return
        with self._lock:
            for ready_socket in ready:
                if (client_class := self._listeners.get(ready_socket)) is not None:
                    connection, _ = ready_socket.accept()
                    connection.setblocking(False)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
                    self._clients[connection] = client_class(
                        connection, self.controller, self._run_script
                    )
                elif ready_socket in self._clients:
                    self._receive(ready_socket)

    def _receive(self, connection: socket.socket) -> None:
        try:
            if data := connection.recv(_CHUNK):
                return self._clients[connection].receive(data)
        except (OSError, SourceFailed):  # it was reset, or violates the protocol
            pass
        self._drop(connection)

    def _step(self) -> None:
        if self._on_step is not None:
            self._on_step(self.controller)
        self.controller.step()
        self.controller.outputs.setdefault(CLOCK_OUTPUT, (time.monotonic(),))
        if self.controller.hang_up:
            self._hang_up(reset=self.controller.hang_up == "reset")
        self._for_each(lambda client: client.send_delayed())
        silent = self.controller.modes.mute or self.controller.skipping
        self._for_each(lambda client: client.step(silent=bool(silent)))
        self._announce()
        self.sent += 1

    def _run_script(self, text: str) -> None:
        self._scripts.submit(self.controller.run, text)

    def _announce(self) -> None:
        """Sends the new messages of the controller to the primary clients."""
        announcements = self.controller.announcements
        while announcements:
            announcement = announcements.popleft()
            self._for_each(methodcaller("announce", *announcement))

    def _hang_up(self, *, reset: bool) -> None:
        self.controller.hang_up = ""
        for connection, client in list(self._clients.items()):
            if client.sends_rows:
                if reset:
                    linger = struct.pack("ii", 1, 0)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self._drop(connection)

    def _for_each(self, call: Callable[[Client], int]) -> None:
        for connection, client in list(self._clients.items()):
            try:
                self.dropped += call(client)
            except OSError:
                self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        self._clients.pop(connection).closed()
        connection.close()


def port_shifts() -> tuple[int, ...]:
    """Distance of every port of a controller from that of RTDE, which comes first."""
    return tuple(usual - PORT for usual, _ in _PORTS)


def _ready(sockets: Sequence[socket.socket]) -> list[socket.socket]:
    poll = select.poll()
    for waiting in sockets:
        if waiting.fileno() >= 0:
            poll.register(waiting, select.POLLIN)
    numbers = {number for number, _ in poll.poll(0)}
    return [waiting for waiting in sockets if waiting.fileno() in numbers]


def _listening(host: str, port: int) -> list[socket.socket]:
    """A socket for each of `_PORTS`; any RTDE port with free neighbours for port 0."""
    for attempt in range(_MAX_PORT_ATTEMPTS):
        opened: list[socket.socket] = []
        try:
            for usual, _ in _PORTS:
                number = port
                if opened:
                    number = opened[0].getsockname()[1] + usual - PORT
                opened.append(socket.create_server((host, number)))
            return opened
        except (OSError, OverflowError) as error:
            for listener in opened:
                listener.close()
            if port or attempt == _MAX_PORT_ATTEMPTS - 1:
                raise SourceFailed(f"cannot listen on {host}, port {number}: {error}") from error
    raise SourceFailed(f"no free ports on {host}")
