"""Sockets for a simulated controller: RTDE, dashboard and script port, on one thread, at the pace of a clock.

Each control step is made once and sent to every client that has started. A client that does not
read loses
rows: they are dropped, never queued. A script counts when the connection stays until 79 bytes of
state messages, which come ten times per second, have been sent to it.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from steelyard.errors import SourceFailed
from steelyard.live._rtde import PORT
from steelyard.live._ur import DASHBOARD_PORT, SCRIPT_PORT
from steelyard.twin._controller import RtdeServer, SimulatedController

CLOCK_OUTPUT = "output_double_register_24"
"""Where the clock of this machine (`time.monotonic`) stands when a row is sent, to measure delays with."""

_STATE_S = 0.1
_STATE_MESSAGE = struct.pack(">IB", 100, 16) + bytes(95)
_GREETING = b"Connected: Universal Robots Dashboard Server\n"
_CHUNK = 1 << 16
_SEND_BUFFER = 1 << 16
_ATTEMPTS = 50
_LATEST_S = 1.0  # behind the clock by more: the clock is set anew


class ControllerServer:
    """A simulated controller on the network, until it is closed; use it in a `with`.

    Args:
        controller: what is behind the ports
        host: address to listen on
        port: of RTDE; 0 for any that is free. Dashboard and scripts lie beside it as on a real one
        speed: times as fast as a real one; 0 to send a row only when `send` is called
        on_step: called before each step with the controller, on the thread that sends
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
        makers = (_RtdeClient, _DashboardClient, _ScriptClient)
        self._listeners = dict(zip(listeners, makers, strict=True))
        self.port = listeners[0].getsockname()[1]
        self._clients: dict[socket.socket, _Client] = {}
        self._closed, self._lock = threading.Event(), threading.RLock()
        self._thread = threading.Thread(target=self._run, name="simulated controller", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all connections and the thread."""
        self._closed.set()
        self._thread.join(timeout=5.0)
        for found in (*self._listeners, *self._clients):
            found.close()

    def send(self, steps: int = 1) -> None:
        """Goes some control steps on and sends their rows; for tests that are the clock.

        Args:
            steps: how many
        """
        for _ in range(steps):
            with self._lock:
                self._step()

    # --- on the thread of the server

    def _run(self) -> None:
        if self._speed:
            step_s = 1 / (self.controller.backend.rate_hz * self._speed)
        else:
            step_s = _STATE_S
        due_s = time.monotonic() + step_s
        state_s = 0.0
        while not self._closed.is_set():
            now = time.monotonic()
            self._listen(max(due_s - now, 0.0))
            with self._lock:
                if (now := time.monotonic()) >= due_s:
                    if self._speed:
                        self._step()
                    if now - due_s < _LATEST_S:
                        due_s = due_s + step_s
                    else:
                        due_s = now + step_s
                if now >= state_s:
                    state_s = now + _STATE_S
                    self._for_each(lambda client: client.state())

    def _listen(self, timeout_s: float) -> None:
        """Takes connections and what clients say."""
        ready, _, _ = select.select([*self._listeners, *self._clients], [], [], timeout_s)
        with self._lock:
            for found in ready:
                if (maker := self._listeners.get(found)) is not None:
                    client, _ = found.accept()
                    client.setblocking(False)
                    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
                    self._clients[client] = maker(client, self.controller)
                elif found in self._clients:
                    self._hear(found)

    def _hear(self, found: socket.socket) -> None:
        client = self._clients[found]
        try:
            if data := found.recv(_CHUNK):
                return client.heard(data)
        except (OSError, SourceFailed):  # it was reset, or says what it should not
            pass
        self._drop(found)

    def _step(self) -> None:
        if self._on_step is not None:
            self._on_step(self.controller)
        self.controller.step()
        self.controller.outputs[CLOCK_OUTPUT] = (time.monotonic(),)
        if how := self.controller.hang_up:
            self._hang_up(reset=how == "reset")
        silent = self.controller.modes.mute or self.controller.skipping
        self._for_each(lambda client: client.step(silent=bool(silent)))
        self.sent += 1

    def _hang_up(self, *, reset: bool) -> None:
        self.controller.hang_up = ""
        for found, client in list(self._clients.items()):
            if isinstance(client, _RtdeClient):
                if reset:
                    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self._drop(found)

    def _for_each(self, call: Callable[[_Client], int]) -> None:
        for found, client in list(self._clients.items()):
            try:
                self.dropped += call(client)
            except OSError:
                self._drop(found)

    def _drop(self, found: socket.socket) -> None:
        self._clients.pop(found).closed()
        found.close()


class _Client:
    """One connection; what it does not want to know it passes over."""

    def __init__(self, connection: socket.socket, controller: SimulatedController) -> None:
        self._socket = connection
        self._controller = controller
        self._rest = b""

    def heard(self, data: bytes) -> None:
        """Takes what came in."""

    def step(self, *, silent: bool) -> int:
        """Sends the row of a step; gives how many were dropped, for they could not be sent."""
        return 0

    def state(self) -> int:
        """Sends what comes ten times per second."""
        return 0

    def closed(self) -> None:
        """It is over."""

    def _send(self, data: bytes) -> bool:
        """Sends all of it or nothing; a package that was begun is finished first."""
        with suppress(BlockingIOError):
            if self._rest:
                self._rest = self._rest[self._socket.send(self._rest) :]
            if not self._rest:
                self._rest = data[self._socket.send(data) :]
                return True
        return False


class _RtdeClient(_Client):
    def __init__(self, connection: socket.socket, controller: SimulatedController) -> None:
        super().__init__(connection, controller)
        self._rtde = RtdeServer(controller)

    def heard(self, data: bytes) -> None:
        if answer := self._rtde.receive(data):
            self._send(answer)

    def step(self, *, silent: bool) -> int:
        row = self._rtde.row()
        return int(bool(row) and not silent and not self._send(row))

    def closed(self) -> None:
        self._rtde.close()


class _DashboardClient(_Client):
    def __init__(self, connection: socket.socket, controller: SimulatedController) -> None:
        super().__init__(connection, controller)
        self._line = b""
        self._send(_GREETING)

    def heard(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._send(self._controller.dashboard(line.decode(errors="replace")).encode() + b"\n")


class _ScriptClient(_Client):
    """The secondary port: a state message ten times per second, and scripts."""

    def __init__(self, connection: socket.socket, controller: SimulatedController) -> None:
        super().__init__(connection, controller)
        self._text = ""
        self._ticks = 0

    def heard(self, data: bytes) -> None:
        self._text += data.decode("ascii", "replace")
        self._taken()

    def state(self) -> int:
        self._ticks += 1
        if self._ticks > 1:  # the first one comes a whole period after the connection
            self._send(_STATE_MESSAGE)
            self._taken()
        return 0

    def closed(self) -> None:
        if self._text:
            self._controller.log.append(
                "a script was thrown away: the connection was closed too early"
            )

    def _taken(self) -> None:
        """Runs a script that is whole, once the client can have read enough."""
        last = self._text.rstrip().splitlines()[-1:]
        if self._ticks > 1 and (last == ["end"] or "".join(last).endswith("()")):
            self._controller.run(self._text)
            self._text = ""


def _listening(host: str, port: int) -> list[socket.socket]:
    """Sockets for RTDE, dashboard and scripts; where any port will do, one with free neighbours."""
    for attempt in range(_ATTEMPTS):
        opened: list[socket.socket] = []
        try:
            for offset in (0, DASHBOARD_PORT - PORT, SCRIPT_PORT - PORT):
                if not opened:
                    at = port
                else:
                    at = opened[0].getsockname()[1] + offset
                opened.append(socket.create_server((host, at)))
            return opened
        except (OSError, OverflowError) as error:
            for found in opened:
                found.close()
            if port or attempt == _ATTEMPTS - 1:
                raise SourceFailed(f"cannot listen on {host}, port {at}: {error}") from error
    raise SourceFailed(f"no free ports on {host}")
