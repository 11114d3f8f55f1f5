"""Connections to a simulated controller, one class for each port; no listening and no clock."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from steelyard.twin._controller import SimulatedController
from steelyard.twin._dashboard import GREETING
from steelyard.twin._rtde_server import RtdeServer
from steelyard.twin._state_messages import (
    real_time_state,
    robot_state,
    runtime_exception,
    text_message,
    version_message,
)

_MIN_BYTES_SENT = 79  # before a script counts


class Client:
    """One connection; the methods do nothing unless a subclass overrides them.

    Args:
        connection: the socket, which does not block
        controller: the controller behind it
        run_script: called with the text of a script
    """

    sends_rows = False

    def __init__(
        self,
        connection: socket.socket,
        controller: SimulatedController,
        run_script: Callable[[str], object],
    ) -> None:
        self._socket = connection
        self._controller = controller
        self._run_script = run_script
        self._rest = b""
        self._delayed: deque[tuple[float, bytes]] = deque()
        self.opened()

    def opened(self) -> None:
        """Called when the connection begins."""

    def receive(self, data: bytes) -> None:
        """Takes received bytes."""

    def step(self, *, silent: bool) -> int:
        """Sends the row of a step; gives the number of rows that had to be dropped."""
        return 0

    def state(self) -> int:
        """Sends the message that comes ten times per second; gives the number dropped."""
        return 0

    def announce(self, text: str, failed: bool) -> int:
        """Sends a message of the controller; gives the number dropped."""
        return 0

    def closed(self) -> None:
        """Called when the connection has ended."""

    def send_delayed(self) -> int:
        """Sends what is due of the faults `late` and `later`; gives the number dropped."""
        now = time.monotonic()
        dropped = 0
        while self._delayed and self._delayed[0][0] <= now:
            dropped += not self._send_now(self._delayed.popleft()[1])
        return dropped

    def _send(self, data: bytes) -> bool:
        """Sends all bytes or none; later where the faults `late` or `later` are on."""
        now = time.monotonic()
        late_s = self._controller.modes.delay_s(now)
        if late_s or self._delayed:
            self._delayed.append((now + late_s, data))
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


class RtdeConnection(Client):
    """Port 30004."""

    sends_rows = True

    def opened(self) -> None:
        """See `Client`."""
        self._rtde = RtdeServer(self._controller)

    def receive(self, data: bytes) -> None:
        """See `Client`."""
        if answer := self._rtde.receive(data):
            self._send(answer)

    def step(self, *, silent: bool) -> int:
        """See `Client`."""
        row = self._rtde.row()
        return int(bool(row) and not silent and not self._send(row))

    def closed(self) -> None:
        """See `Client`."""
        self._rtde.close()


class DashboardClient(Client):
    """Port 29999."""

    def opened(self) -> None:
        """See `Client`."""
        self._line = b""
        self._send(f"{GREETING}\n".encode())

    def receive(self, data: bytes) -> None:
        """See `Client`."""
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._send(self._controller.dashboard(line.decode(errors="replace")).encode() + b"\n")


class ScriptClient(Client):
    """A port that takes scripts; they count once enough bytes were sent to the client."""

    def opened(self) -> None:
        """See `Client`."""
        self._text = ""
        self._sent = 0

    def receive(self, data: bytes) -> None:
        """See `Client`."""
        self._text = (self._text + data.decode("ascii", "replace")).lstrip()
        self._run_complete()

    def closed(self) -> None:
        """See `Client`."""
        if self._text:
            self._controller.log.append(
                "a script was discarded: the connection was closed too early"
            )

    def _send_counted(self, data: bytes) -> int:
        """Sends a state; gives 1 where it had to be dropped."""
        if not self._send(data):
            return 1
        self._sent += len(data)
        self._run_complete()
        return 0

    def _run_complete(self) -> None:
        if self._sent >= _MIN_BYTES_SENT and _is_complete(self._text):
            self._run_script(self._text)
            self._text = ""


class SecondaryClient(ScriptClient):
    """Port 30002: the state of the robot ten times per second, and scripts."""

    def opened(self) -> None:
        """See `Client`."""
        super().opened()
        self._periods = 0
        self._send(version_message(self._controller))

    def state(self) -> int:
        """See `Client`; the first state comes a whole period after the connection."""
        self._periods += 1
        if self._periods == 1:
            return 0
        return self._send_counted(robot_state(self._controller))


class PrimaryClient(SecondaryClient):
    """Port 30001: as the secondary one, and messages of the controller."""

    def announce(self, text: str, failed: bool) -> int:
        """See `Client`."""
        if failed:
            return int(not self._send(runtime_exception(self._controller, text)))
        return int(not self._send(text_message(self._controller, text)))


class RealTimeClient(ScriptClient):
    """Port 30003: a package in every control step, and scripts."""

    def step(self, *, silent: bool) -> int:
        """See `Client`."""
        if silent:
            return 0
        return self._send_counted(real_time_state(self._controller))


def _is_complete(text: str) -> bool:
    """Whether a text is a whole program, or whole lines without a frame."""
    if not text.endswith("\n"):
        return False
    lines = text.strip("\n").splitlines()
    if lines[0].startswith(("def ", "sec ")):
        name = lines[0].split("(")[0].split()[-1]
        return lines[-1].rstrip() in ("end", f"{name}()")
    return True
