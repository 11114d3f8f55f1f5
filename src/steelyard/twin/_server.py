"""Sockets of a simulated controller: RTDE, dashboard and script port, on one thread, in real time.

Each control step is computed once and sent to every client that has started. Rows that a client
does not read are dropped, never queued. A script counts only if the client keeps the connection
open until 79 bytes of state messages, which come ten times per second, were sent to it.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from steelyard.errors import SourceFailed
from steelyard.live._rtde import PORT
from steelyard.live._ur import DASHBOARD_PORT, SCRIPT_PORT
from steelyard.twin._controller import SimulatedController
from steelyard.twin._dashboard import GREETING
from steelyard.twin._rtde_server import RtdeServer

CLOCK_OUTPUT = "output_double_register_24"
"""Output with the time of sending on this machine's clock (`time.monotonic`), for delays."""

_STATE_PERIOD_S = 0.1
_STATE_MESSAGE = struct.pack(">IB", 100, 16) + bytes(95)
_CHUNK = 1 << 16
_SEND_BUFFER = 1 << 16
_MAX_PORT_ATTEMPTS = 50
_MAX_LAG_S = 1.0  # behind the clock by more, the schedule starts anew


class ControllerServer:
    """A simulated controller on the network, until it is closed; use it in a `with`.

    Args:
        controller: the controller behind the ports
        host: address to listen on
        port: port of RTDE; 0 for any free one. Dashboard and scripts are shifted by as much
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
        makers = (_RtdeClient, _DashboardClient, _ScriptClient)
        self._listeners = dict(zip(listeners, makers, strict=True))
        self.port = listeners[0].getsockname()[1]
        self._clients: dict[socket.socket, _Client] = {}
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
        ready, _, _ = select.select([*self._listeners, *self._clients], [], [], timeout_s)
        with self._lock:
            for ready_socket in ready:
                if (client_class := self._listeners.get(ready_socket)) is not None:
                    connection, _ = ready_socket.accept()
                    connection.setblocking(False)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
                    self._clients[connection] = client_class(connection, self.controller)
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
        self.controller.outputs[CLOCK_OUTPUT] = (time.monotonic(),)
        if self.controller.hang_up:
            self._hang_up(reset=self.controller.hang_up == "reset")
        self._for_each(lambda client: client.send_delayed())
        silent = self.controller.modes.mute or self.controller.skipping
        self._for_each(lambda client: client.step(silent=bool(silent)))
        self.sent += 1

    def _hang_up(self, *, reset: bool) -> None:
        self.controller.hang_up = ""
        for connection, client in list(self._clients.items()):
            if client.sends_rows:
                if reset:
                    linger = struct.pack("ii", 1, 0)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self._drop(connection)

    def _for_each(self, call: Callable[[_Client], int]) -> None:
        for connection, client in list(self._clients.items()):
            try:
                self.dropped += call(client)
            except OSError:
                self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        self._clients.pop(connection).closed()
        connection.close()


class _Client:
    """One connection; the methods do nothing unless a subclass overrides them."""

    sends_rows = False

    def __init__(self, connection: socket.socket, controller: SimulatedController) -> None:
        self._socket = connection
        self._controller = controller
        self._rest = b""
        self._delayed: deque[tuple[float, bytes]] = deque()

    def receive(self, data: bytes) -> None:
        """Takes received bytes."""

    def step(self, *, silent: bool) -> int:
        """Sends the row of a step; gives the number of rows that had to be dropped."""
        return 0

    def state(self) -> int:
        """Sends the message that comes ten times per second."""
        return 0

    def closed(self) -> None:
        """Called when the connection has ended."""

    def send_delayed(self) -> int:
        """Sends what is due of the fault `late`; gives the number of dropped packages."""
        now = time.monotonic()
        dropped = 0
        while self._delayed and self._delayed[0][0] <= now:
            dropped += not self._send_now(self._delayed.popleft()[1])
        return dropped

    def _send(self, data: bytes) -> bool:
        """Sends all bytes or none; later where the fault `late` is on."""
        late_s = self._controller.modes.late_s
        if late_s or self._delayed:
            self._delayed.append((time.monotonic() + late_s, data))
            return True
        return self._send_now(data)

    def _send_now(self, data: bytes) -> bool:
        """Sends all bytes or none; finishes a package that was begun first."""
        with suppress(BlockingIOError):
            if self._rest:
                self._rest = self._rest[self._socket.send(self._rest) :]
            if not self._rest:
                self._rest = data[self._socket.send(data) :]
                return True
        return False


class _RtdeClient(_Client):
    sends_rows = True

    def __init__(self, connection: socket.socket, controller: SimulatedController) -> None:
        super().__init__(connection, controller)
        self._rtde = RtdeServer(controller)

    def receive(self, data: bytes) -> None:
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
        self._send(f"{GREETING}\n".encode())

    def receive(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._send(self._controller.dashboard(line.decode(errors="replace")).encode() + b"\n")


class _ScriptClient(_Client):
    """The secondary port: a state message ten times per second, and scripts."""

    def __init__(self, connection: socket.socket, controller: SimulatedController) -> None:
        super().__init__(connection, controller)
        self._text = ""
        self._ticks = 0

    def receive(self, data: bytes) -> None:
        self._text = (self._text + data.decode("ascii", "replace")).lstrip()
        self._run_complete()

    def state(self) -> int:
        self._ticks += 1
        if self._ticks > 1:  # the first one comes a whole period after the connection
            self._send(_STATE_MESSAGE)
            self._run_complete()
        return 0

    def closed(self) -> None:
        if self._text:
            self._controller.log.append(
                "a script was discarded: the connection was closed too early"
            )

    def _run_complete(self) -> None:
        """Runs a complete script once the client can have read enough."""
        if self._ticks > 1 and _is_complete(self._text):
            self._controller.run(self._text)
            self._text = ""


def _is_complete(text: str) -> bool:
    """Whether a text is a whole program, or whole lines without a frame."""
    if not text.endswith("\n"):
        return False
    lines = text.strip("\n").splitlines()
    if lines[0].startswith(("def ", "sec ")):
        return lines[-1].rstrip() in ("end", f"{_program_name(lines[0])}()")
    return True


def _program_name(header: str) -> str:
    return header.split("(")[0].split()[-1]


def _listening(host: str, port: int) -> list[socket.socket]:
    """Sockets for RTDE, dashboard and scripts; any RTDE port with free neighbours for port 0."""
    for attempt in range(_MAX_PORT_ATTEMPTS):
        opened: list[socket.socket] = []
        try:
            for offset in (0, DASHBOARD_PORT - PORT, SCRIPT_PORT - PORT):
                number = port
                if opened:
                    number = opened[0].getsockname()[1] + offset
                opened.append(socket.create_server((host, number)))
            return opened
        except (OSError, OverflowError) as error:
            for listener in opened:
                listener.close()
            if port or attempt == _MAX_PORT_ATTEMPTS - 1:
                raise SourceFailed(f"cannot listen on {host}, port {number}: {error}") from error
    raise SourceFailed(f"no free ports on {host}")
