"""`franka://HOST`: a Franka arm by its own library, libfranka (`pylibfranka`), 1,000 rows per second.

The library runs in a process of its own (`franka_reader`), for it may wait for ever. Rows have
libfranka's
names: `q`, `dq`, `tau_J` (torque sensors behind the gears), what was commanded, and the loads that
the controller believes in. Rows are fit for weighing while the arm is idle or moves by a program:
in a reflex, at a stop or in a hand it is not the drives alone that carry the load. The controller
serves one client at a time; where franka_ros2 runs, come by `ros2`.
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
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from steelyard.errors import MissingExtra, SourceFailed
from steelyard.live._franka_reader import COLUMNS, ERROR, FRAME, NUMBERS, ROW
from steelyard.live._source import Connection, Event, EventKind, Judge, ModeJudge, Source, Values

RATING_KG = 3.0
"""What a Franka arm may carry, its end effector included, [kg]."""

_MODES = {
    0: "other",
    3: "a hand guides the arm",
    4: "reflex: the arm has stopped itself",
    5: "user stop",
    6: "the arm recovers from an error",
}  # those in which nothing can be weighed; 1 is idle and 2 moving
_STARTING_S = 10.0
_CHUNK = 1 << 16
_PIPE = 1 << 20  # bytes, a second of rows
_SET_PIPE_SIZE = 1031  # Linux's F_SETPIPE_SZ


@dataclass(frozen=True)
class FrankaSource(Source):
    """A Franka arm.

    Attributes:
        host: its name or address
        timeout_s: without any row, until it counts as lost, [s]
        pauses_s: before each attempt to connect again, [s]
    """

    host: str
    timeout_s: float = 2.0
    pauses_s: tuple[float, ...] = (1.0, 2.0, 5.0)

    def __str__(self) -> str:
        return f"franka://{self.host}"

    def connect(self) -> Connection:
        """A connection by which the first row has come."""
        return FrankaConnection(self)

    def judge(self, columns: Sequence[str]) -> Judge:
        """A judge that knows the modes of the arm."""
        return _FrankaJudge(columns)


class FrankaConnection(Connection):
    """A process that reads the arm.

    Args:
        source: the arm
    """

    columns = COLUMNS

    def __init__(self, source: FrankaSource) -> None:
        self._place = str(source)
        self._timeout_s = source.timeout_s
        _require(source.host)
        words = [
            sys.executable,
            "-P",
            str(Path(__file__).with_name("_franka_reader.py")),
            source.host,
        ]
        self._child = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        if self._child.stdout is not None:
            self._out = self._child.stdout.fileno()
        else:
            self._out = -1
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.fcntl(self._out, _SET_PIPE_SIZE, _PIPE)
        self._unread, self._answers, self._reading = bytearray(), deque[str](), threading.Lock()
        try:
            self._received(_STARTING_S)
        except SourceFailed:
            self.close()
            raise

    def read(self) -> Sequence[Values]:
        """The rows since the last call."""
        return self._received(self._timeout_s)

    def close(self) -> None:
        """Ends the process; a second time does nothing."""
        self._child.kill()  # which ends a wait for rows
        self._child.wait()
        with self._reading:
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe is not None:
                    pipe.close()

    def set_load(self, mass: float, com: Sequence[float], inertia: Sequence[float]) -> None:
        """Sets the load that the controller believes in, while others read; a refusal is an error.

        Args:
            mass: [kg]
            com: centre of mass, (3,) [m], in the frame of the flange
            inertia: about the centre of mass, (9,) [kg m^2], column by column, axes of the flange
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
            raise SourceFailed(f"{self._place} refuses the load: {refusal}")

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
        """What the process has sent; None where it is silent, empty where it has ended."""
        if self._child.stdout is None or self._child.stdout.closed:
            return b""
        if not select.select([self._out], [], [], timeout_s)[0]:
            return None
        return os.read(self._out, _CHUNK)

    def _rows(self) -> list[Values]:
        """The rows in what is unread; answers are kept, an error ends it."""
        rows = []
        at = 0
        head = FRAME.size
        while len(self._unread) - at >= head:
            length, kind = FRAME.unpack_from(self._unread, at)
            if len(self._unread) - at < head + length:
                break
            body = self._unread[at + head : at + head + length]
            at += head + length
            if kind == ROW:
                *values, mode = NUMBERS.unpack(body)
                rows.append((*values, int(mode)))
            elif kind == ERROR:
                raise SourceFailed(f"{self._place}: {' '.join(body.decode().split())}")
            else:
                self._answers.append(body.decode())
        del self._unread[:at]
        return rows


class _FrankaJudge(ModeJudge):
    """Knows the modes of an arm, and watches the load that it believes in."""

    def __init__(self, columns: Sequence[str]) -> None:
        super().__init__()
        self._mode, self._mass = columns.index("robot_mode"), columns.index("m_load")
        self._load: Values = ()

    def fault(self, values: Values) -> str:
        """Why the arm cannot be weighed with in its mode."""
        load = values[self._mass : self._mass + 4]
        if load != self._load:
            self._load = load
            centre = " ".join(f"{1e3 * x:.1f}" for x in load[1:])
            words = f"the controller believes in a load of {load[0]:.3f} kg at {centre} mm"
            self._news.append(Event(EventKind.PAYLOAD, words, values[0]))
        return _MODES.get(int(values[self._mode]), "")


def _require(host: str) -> None:
    """The library, and a host of that name; before a process is started for them."""
    if importlib.util.find_spec("pylibfranka") is None:
        raise MissingExtra("pylibfranka (Linux with glibc 2.34 or newer)", "franka")
    try:
        socket.getaddrinfo(host, None)
    except OSError as error:
        raise SourceFailed(f"there is no host '{host}': check the address of the arm") from error
