"""A motion on a Universal Robots controller: its program, and the beats that keep it going.

Beats go to an input integer register by an RTDE connection of their own. Where another client has
taken all registers that are tried, the program opens a socket to this computer and reads the beats
from there. Nothing is written after `close`: the program then brakes the arm by itself.
"""

from __future__ import annotations

import math
import random
import socket
import struct
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING

from steelyard.errors import SourceFailed
from steelyard.live._controller import (
    MAX_ANSWER_S,
    MotionLink,
    Observation,
    PathCommand,
    ProgramState,
)
from steelyard.live._rtde import RtdeClient
from steelyard.live._source import Values
from steelyard.live._tcp import open_connection
from steelyard.live._ur_modes import safety_obstacle
from steelyard.live._ur_programs import (
    LAST_BEAT,
    MAX_PROGRAM_NUMBER,
    MAX_SILENCE_S,
    PROBES,
    STAGE_REGISTER,
    BeatScript,
    MotionStage,
    motion_program,
    register_beat,
    report_in,
    socket_beat,
)

if TYPE_CHECKING:
    from steelyard.live._ur import UrController

STAGE_OUTPUT = f"output_int_register_{STAGE_REGISTER}"
"""Output in which the program of a motion reports its stage."""

_REGISTERS = tuple(range(47, 39, -1))  # input registers that are tried, in this order
_PROBE_STEP_S = 0.05  # between two probes
_BEAT_RATE_HZ = 10.0  # of the rows on the connection of the beats
_STOP_BEAT = -1
_PLAYING = 2  # of `runtime_state`
_PAUSED = (3, 4)  # the same: pausing, paused
_CHUNK = 1 << 16
_HEADER_HINT = "is RTDE allowed in the controller's settings?"

_PROGRAM_STATES = {
    MotionStage.WAITING: ProgramState.WAITING,
    MotionStage.MOVING: ProgramState.MOVING,
    MotionStage.BRAKING: ProgramState.BRAKING,
    MotionStage.FINISHED: ProgramState.FINISHED,
    MotionStage.SILENCE: ProgramState.STOPPED,
    MotionStage.STOPPED: ProgramState.STOPPED,
    MotionStage.ELSEWHERE: ProgramState.REFUSED,
}
_RUNNING = (ProgramState.WAITING, ProgramState.MOVING, ProgramState.BRAKING)
_REASONS = {
    MotionStage.SILENCE: (
        f"the robot heard nothing from this computer for {1e3 * MAX_SILENCE_S:.0f} ms"
    ),
    MotionStage.STOPPED: "a stop was requested",
    MotionStage.ELSEWHERE: "the arm was no longer where the motion begins",
}


class UrMotionLink(MotionLink):
    """A motion on a Universal Robots controller; the constructor opens the way for the beats.

    Args:
        controller: the controller
        path: what the arm shall do
    """

    def __init__(self, controller: UrController, path: PathCommand) -> None:
        self._controller = controller
        self._path = path
        self._number = random.randint(1, MAX_PROGRAM_NUMBER)
        self._lock = threading.Lock()
        self._count = 0
        self._sent_s = [math.inf] * PROBES.stop  # of each beat and probe, by its number
        self._probe = PROBES[-1]
        self._probed_s = -math.inf
        self._confirmed = 0  # the last probe that rows have confirmed
        self._is_prompt = False  # whether rows have confirmed a probe in time
        self._lateness = ""
        self._ended = False
        self._channel = _open_channel(controller)

    def start(self) -> None:
        """Sends the program."""
        program = motion_program(self._path, self._channel.script, number=self._number)
        self._controller.send_script(program)

    def beat(self) -> None:
        """Sends the next number; nothing after a stop was requested.

        Until the program has confirmed a probe in time, these are probes, and it does not start.
        """
        with self._lock:
            if self._ended:
                return
            if not self._is_prompt:
                return self._send_probe(time.monotonic())
            self._count = self._count % LAST_BEAT + 1
            self._sent_s[self._count % LAST_BEAT + 1] = math.inf  # the next one
            self._sent_s[self._count] = time.monotonic()
            self._channel.send(self._count)

    def _send_probe(self, now_s: float) -> None:
        """Sends another probe when it is time for one."""
        if now_s - self._probed_s < _PROBE_STEP_S:
            return
        self._probed_s = now_s
        self._probe = PROBES[(PROBES.index(self._probe) + 1) % len(PROBES)]
        self._sent_s[self._probe] = now_s
        self._channel.send(self._probe)

    def _judge_probe(self, number: int) -> str:
        """Judges how late the rows are by a probe that they confirm; why not to start yet."""
        if number in PROBES and number != self._confirmed:
            self._confirmed = number
            late_s = time.monotonic() - self._sent_s[number]
            self._lateness = f"its rows come {late_s:.2f} s late"
            self._is_prompt = self._is_prompt or late_s <= MAX_ANSWER_S
        return self._lateness

    def _waits_since_s(self, number: int) -> float:
        """When the beat was sent that follows the last confirmed one, [s]."""
        if number in PROBES:
            return self._sent_s[1]
        return self._sent_s[number % LAST_BEAT + 1]

    def request_stop(self) -> None:
        """Sends the number that asks for a stop."""
        with self._lock:
            self._ended = True
            self._channel.send(_STOP_BEAT)

    def close(self) -> None:
        """Ends the beats."""
        with self._lock:
            self._ended = True
            self._channel.close()

    def observer(self, columns: Sequence[str]) -> Callable[[Values], Observation]:
        """Reads the report of the program, the modes, positions and speeds in a row."""
        modes = (STAGE_OUTPUT, "runtime_state", "safety_mode")
        missing = [name for name in modes if name not in columns]
        if missing:
            raise SourceFailed(
                f"{self._controller} does not send {missing[0]}: its software is too old"
            )
        report_and_modes = itemgetter(*map(columns.index, modes))
        positions = itemgetter(*(columns.index(f"actual_q_{k}") for k in range(6)))
        speeds = itemgetter(*(columns.index(f"actual_qd_{k}") for k in range(6)))

        def observed(values: Values) -> Observation:
            register, runtime_state, safety = report_and_modes(values)
            report = report_in(register, self._number)
            speed = max(map(abs, speeds(values)))
            if report is None:
                return Observation(ProgramState.UNSEEN, speed, positions(values))
            program, reason = _program(report.stage, runtime_state)
            if program is ProgramState.WAITING:
                reason = self._judge_probe(report.beat)
                return Observation(program, speed, positions(values), reason)
            waits_since_s = self._waits_since_s(report.beat)
            hindrance = safety_obstacle(safety)
            return Observation(program, speed, positions(values), reason, waits_since_s, hindrance)

        return observed


def _program(stage: MotionStage, runtime_state: float) -> tuple[ProgramState, str]:
    """The state of a program, and why it was refused or stopped."""
    state = _PROGRAM_STATES[stage]
    if state not in _RUNNING or runtime_state == _PLAYING:
        return state, _REASONS.get(stage, "")
    if runtime_state in _PAUSED:
        return ProgramState.STOPPED, "its program was paused on the controller"
    return ProgramState.STOPPED, "its program was ended on the controller"


class _NumberChannel(ABC):
    """A way for numbers to a program.

    Attributes:
        script: how the program receives them
    """

    script: BeatScript

    @abstractmethod
    def send(self, number: int) -> None:
        """Sends a number; raises `SourceFailed` where it cannot."""

    @abstractmethod
    def close(self) -> None:
        """Ends the way; a second call does nothing."""


def _open_channel(controller: UrController) -> _NumberChannel:
    try:
        return _RegisterChannel(controller)
    except _RegistersTaken:
        return _SocketChannel(controller)


class _RegistersTaken(SourceFailed):
    """The controller offers no input register to this client."""


class _RegisterChannel(_NumberChannel):
    """Numbers in an input register, by RTDE."""

    def __init__(self, controller: UrController) -> None:
        self._place = str(controller)
        registers = tuple(f"input_int_register_{k}" for k in _REGISTERS)
        self._client = RtdeClient(("timestamp",), (), rate_hz=_BEAT_RATE_HZ, inputs=registers)
        self._socket = open_connection(
            controller.host, controller.port, _HEADER_HINT, timeout_s=controller.timeout_s
        )
        try:
            self._negotiate(time.monotonic() + controller.timeout_s)
        except BaseException:
            self._socket.close()
            raise
        self._socket.setblocking(False)

    def _negotiate(self, end_s: float) -> None:
        while not self._client.started:
            try:
                self._socket.sendall(self._client.to_send())
                self._socket.settimeout(max(end_s - time.monotonic(), 1e-3))
                received = self._socket.recv(_CHUNK)
            except OSError as error:
                raise SourceFailed(f"{self._place} does not take a heartbeat: {error}") from error
            if not received or time.monotonic() > end_s:
                raise SourceFailed(f"{self._place} does not take a heartbeat by RTDE")
            self._client.receive(received)
        if self._client.input is None:
            raise _RegistersTaken(f"{self._place}: all input registers are taken")
        number = int(self._client.input.names[0].rpartition("_")[2])
        self.script = register_beat(number)

    def send(self, number: int) -> None:
        recipe = self._client.input
        if recipe is None:
            return
        try:
            self._socket.sendall(recipe.package((number,)).encoded())
            with suppress(BlockingIOError):
                self._socket.recv(_CHUNK)  # rows that are not needed
        except OSError as error:
            raise SourceFailed(f"{self._place}: the heartbeat was lost: {error}") from error

    def close(self) -> None:
        self._socket.close()


class _SocketChannel(_NumberChannel):
    """Numbers on a socket that the program opens."""

    def __init__(self, controller: UrController) -> None:
        self._place = str(controller)
        self._listener = socket.create_server(("", 0))
        self._listener.setblocking(False)
        self._socket: socket.socket | None = None
        with open_connection(
            controller.host, controller.port, _HEADER_HINT, timeout_s=controller.timeout_s
        ) as probe:
            host = probe.getsockname()[0]
        self.script = socket_beat(host, self._listener.getsockname()[1])

    def send(self, number: int) -> None:
        try:
            connection = self._accepted()
            if connection is not None:
                connection.sendall(struct.pack(">i", number))
        except OSError as error:
            raise SourceFailed(f"{self._place}: the heartbeat was lost: {error}") from error

    def _accepted(self) -> socket.socket | None:
        """The connection of the program; None where it has not opened one yet."""
        if self._socket is None:
            try:
                self._socket, _ = self._listener.accept()
            except BlockingIOError:
                return None
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setblocking(False)
        return self._socket

    def close(self) -> None:
        self._listener.close()
        if self._socket is not None:
            self._socket.close()
