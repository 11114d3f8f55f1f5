"""`franka://HOST`: a Franka arm by libfranka (`pylibfranka`), 1,000 rows per second.

The library runs in a process of its own (`_franka_reader`) because its calls may never return. Rows
have libfranka's names: `q`, `dq`, `tau_J` (torque sensors behind the gears), the commanded motion,
and the loads set on the controller. Rows are fit for weighing while the arm is idle or moved by a
program: in a reflex, at a stop or in a hand the drives do not carry the load alone. The controller
serves one client at a time; where franka_ros2 runs, use a `ros2` address.
"""

from __future__ import annotations

import importlib.util
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from steelyard.errors import MissingExtra, SourceFailed
from steelyard.live._controller import (
    Capabilities,
    Controller,
    ControllerPayload,
    ControllerStatus,
    PayloadRequest,
    SettingOutcome,
    SettingState,
)
from steelyard.live._franka_reader import COLUMNS, ERROR, FRAME, NUMBERS, ROW
from steelyard.live._source import Connection, Event, EventKind, Judge, ModeJudge, Stream, Values

_RATING_KG = 3.0  # largest payload with the end effector, [kg]
_FIT_MODES = {1: "idle", 2: "moving"}
"""Modes in which rows are fit for weighing."""

_MODES = {
    **_FIT_MODES,
    0: "other",
    3: "a hand guides the arm",
    4: "reflex: the arm has stopped itself",
    5: "user stop",
    6: "the arm recovers from an error",
}

_ECHO_TIMEOUT_S = 1.0
_START_TIMEOUT_S = 10.0
_CHUNK = 1 << 16  # bytes
_PIPE_BYTES = 1 << 20  # a second of rows
_F_SETPIPE_SZ = 1031  # of Linux


@dataclass(frozen=True)
class FrankaController(Controller):
    """A Franka arm.

    It is moved by a program of its own: nothing here starts or stops a motion.

    Attributes:
        host: name or address
        timeout_s: longest time without any row, [s]; then the connection counts as lost
        pauses_s: pause before each attempt to connect again, [s]
    """

    host: str
    timeout_s: float = 2.0
    pauses_s: tuple[float, ...] = (1.0, 2.0, 5.0)

    capabilities: ClassVar[Capabilities] = Capabilities(reports_payload=True)
    export_format: ClassVar[str] = "franka-ros2"

    def __str__(self) -> str:
        return f"franka://{self.host}"

    def connect(self) -> FrankaConnection:
        """A connection that has received the first row."""
        return FrankaConnection(self)

    def judge(self, columns: Sequence[str]) -> Judge:
        """A judge that knows the modes of the arm."""
        return _FrankaJudge(columns)

    def joint_speeds(self, row: Mapping[str, float]) -> Sequence[float]:
        """Joint speeds, (7,) [rad/s]."""
        return [row[f"dq_{k}"] for k in range(7)]

    def payload_in(self, row: Mapping[str, float]) -> ControllerPayload | None:
        """The load in a row with libfranka's names."""
        return payload_in_row(row)

    def status(self) -> ControllerStatus:
        """Facts about an arm that is ready; raises `SourceFailed` where it is not."""
        with Stream(self) as stream:
            row = self.ready_row(stream)
            effector_kg = row["m_ee"]
            note = f"the controller adds its end effector of {effector_kg:.3f} kg to the payload"
            payload = self.payload(stream)
            return ControllerStatus(payload, rating_kg=_RATING_KG - effector_kg, note=note)

    def set_payload(self, request: PayloadRequest) -> SettingOutcome:
        """Sets a load by libfranka's `set_load`, without a transition, and waits for the echo."""
        payload = request.payload
        connection = self.connect()
        with Stream(self, connection=connection) as stream:
            self.ready_row(stream)
            self.require_unchanged(stream, request.before)
            inertia = payload.inertia_matrix.ravel().tolist()
            try:
                connection.set_load(payload.mass, payload.cog, inertia)
            except LoadRefused as error:
                return SettingOutcome(SettingState.NOT_SET, str(error), request.before)
            except SourceFailed as error:
                words = f"it is not known whether the payload was set: {error}"
                return SettingOutcome(SettingState.NOT_KNOWN, words)
            return self.setting_outcome(stream, request, timeout_s=_ECHO_TIMEOUT_S)


def payload_in_row(row: Mapping[str, float]) -> ControllerPayload | None:
    """The load in a row with libfranka's names; None where the row does not contain one.

    Args:
        row: values by the names of the columns
    """
    if "m_load" not in row:
        return None
    cog = tuple(row[f"F_x_Cload_{k}"] for k in range(3))
    inertia = tuple(row[f"I_load_{k}"] for k in (0, 4, 8, 1, 2, 5))
    return ControllerPayload(row["m_load"], cog, inertia)


def mode_in_row(row: Mapping[str, float]) -> str:
    """The mode in a row with libfranka's names; empty where the row does not tell it.

    Args:
        row: values by the names of the columns
    """
    if "m_load" not in row or "robot_mode" not in row:
        return ""
    return _mode_words(row["robot_mode"])


def _mode_words(mode: float) -> str:
    if mode in _MODES:
        return _MODES[int(mode)]
    return f"mode {mode:g}"


class LoadRefused(SourceFailed):
    """The controller has refused a load."""


class FrankaConnection(Connection):
    """A process that reads the arm.

    Args:
        controller: the arm
    """

    columns = COLUMNS

    def __init__(self, controller: FrankaController) -> None:
        self._place = str(controller)
        self._timeout_s = controller.timeout_s
        _require(controller.host)
        program = str(Path(__file__).with_name("_franka_reader.py"))
        self._child = subprocess.Popen(
            [sys.executable, "-P", program, controller.host],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._output = -1
        if self._child.stdout is not None:
            self._output = self._child.stdout.fileno()
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.fcntl(self._output, _F_SETPIPE_SZ, _PIPE_BYTES)
        self._unread = bytearray()
        self._answers = deque[str]()
        self._reading = threading.Lock()
        try:
            self._received(_START_TIMEOUT_S)
        except SourceFailed:
            self.close()
            raise

    def read(self) -> Sequence[Values]:
        """The rows since the last call."""
        return self._received(self._timeout_s)

    def close(self) -> None:
        """Ends the process; a second call does nothing."""
        self._child.kill()  # which ends a wait for rows
        self._child.wait()
        with self._reading:
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe is not None:
                    pipe.close()

    def set_load(self, mass: float, com: Sequence[float], inertia: Sequence[float]) -> None:
        """Sets the load on the controller while another thread reads rows.

        Args:
            mass: [kg]
            com: centre of mass, (3,) [m], in the frame of the flange
            inertia: about the centre of mass, (9,) [kg m^2], column by column, axes of the flange

        Raises:
            LoadRefused: the controller refuses the load
            SourceFailed: it does not answer, and what it did is not known
        """
        line = " ".join(["load", *(repr(float(x)) for x in (mass, *com, *inertia))])
        pipe = self._child.stdin
        try:
            if pipe is not None:
                pipe.write(f"{line}\n".encode())
        except (OSError, ValueError) as error:  # a broken pipe, a closed one
            raise SourceFailed(f"{self._place} was lost: {error}") from error
        end = time.monotonic() + self._timeout_s
        while not self._answers:
            if time.monotonic() > end:
                raise SourceFailed(f"{self._place} did not answer within {self._timeout_s:g} s")
            time.sleep(0.01)
        if refusal := self._answers.popleft():
            raise LoadRefused(f"{self._place} refuses the load: {refusal}")

    def _received(self, timeout_s: float) -> list[Values]:
        end = time.monotonic() + timeout_s
        while True:
            with self._reading:
                data = self._data(max(end - time.monotonic(), 0.0))
            if data is None:
                raise SourceFailed(
                    f"{self._place}: no state came for {timeout_s:g} s: is it a Franka arm, with"
                    " FCI active?"
                )
            if not data:
                raise SourceFailed(f"{self._place} was lost: the program that reads it has ended")
            self._unread += data
            if rows := self._rows():
                return rows

    def _data(self, timeout_s: float) -> bytes | None:
        """Bytes from the process; None where it sends nothing, empty where it has ended."""
        if self._child.stdout is None or self._child.stdout.closed:
            return b""
        if not select.select([self._output], [], [], timeout_s)[0]:
            return None
        return os.read(self._output, _CHUNK)

    def _rows(self) -> list[Values]:
        """The rows in the unread bytes; answers are kept, an error is raised."""
        rows = []
        start = 0
        while len(self._unread) - start >= FRAME.size:
            length, kind = FRAME.unpack_from(self._unread, start)
            end = start + FRAME.size + length
            if len(self._unread) < end:
                break
            body = self._unread[start + FRAME.size : end]
            start = end
            if kind == ROW:
                *values, mode = NUMBERS.unpack(body)
                rows.append((*values, int(mode)))
            elif kind == ERROR:
                raise SourceFailed(f"{self._place}: {' '.join(body.decode().split())}")
            else:
                self._answers.append(body.decode())
        del self._unread[:start]
        return rows


class _FrankaJudge(ModeJudge):
    """Knows the modes of an arm, and follows the load set on it."""

    def __init__(self, columns: Sequence[str]) -> None:
        super().__init__()
        self._mode = columns.index("robot_mode")
        mass = columns.index("m_load")
        self._load_slice = slice(mass, mass + 4)  # mass and centre
        self._load: Values = ()

    def fault(self, values: Values) -> str:
        """Why rows in the arm's present mode are not fit for weighing."""
        load = values[self._load_slice]
        if load != self._load:
            self._load = load
            mass, *centre = load
            place = " ".join(f"{1e3 * x:.1f}" for x in centre)
            words = f"the controller's payload is {mass:.3f} kg at {place} mm"
            self._pending.append(Event(EventKind.PAYLOAD, words, values[0]))
        mode = values[self._mode]
        if mode in _FIT_MODES:
            return ""
        return _mode_words(mode)


def _require(host: str) -> None:
    """Checks the library and the host name before a process is started for them."""
    if importlib.util.find_spec("pylibfranka") is None:
        raise MissingExtra.of("pylibfranka (Linux with glibc 2.34 or newer)", "franka")
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError) as error:  # the second for an empty part of a name
        raise SourceFailed(f"there is no host '{host}': check the address of the arm") from error
