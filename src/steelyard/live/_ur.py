"""`ur://HOST[:PORT]`: a Universal Robots controller, by RTDE, its script port and its dashboard.

Rows come by RTDE (`_rtde` is the protocol itself). Payloads, motions and stop are URScript programs
(`_ur_programs`) for the script port, which gives no answer: the echo in the rows is awaited. An
e-Series controller accepts programs in remote control only.
"""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from typing import ClassVar

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import SourceFailed
from steelyard.live._controller import (
    MAX_SPEED_AT_REST,
    Capabilities,
    ControllerPayload,
    ControllerStatus,
    MotionLink,
    MovableController,
    PathCommand,
    PayloadRequest,
    SeenMotion,
    SettingOutcome,
    largest_speed,
)
from steelyard.live._rtde import PORT, RtdeClient
from steelyard.live._source import Connection, Judge, Stream, Values
from steelyard.live._tcp import open_connection, receive_until
from steelyard.live._ur_lateness import require_prompt
from steelyard.live._ur_modes import MODE_OUTPUTS, UrJudge, command_obstacle
from steelyard.live._ur_motion import STAGE_OUTPUT, UrMotionLink
from steelyard.live._ur_programs import STOP_PROGRAM, payload_program
from steelyard.recording import ArmIdentity

DASHBOARD_PORT = 29999
SCRIPT_PORT = 30002
"""The other ports of a controller. Where RTDE has another port, these are shifted by as much."""

_REQUIRED = ("timestamp", "actual_q", "actual_current")
_OPTIONAL = (
    "actual_qd",
    "target_q",
    "target_qd",
    "target_qdd",
    "target_current",
    "target_moment",
    "joint_temperatures",
    "payload",
    "payload_cog",
    "payload_inertia",
    "actual_TCP_pose",
    "tcp_offset",
    "robot_mode",
    "safety_mode",
    "joint_mode",
    "runtime_state",
    "robot_status_bits",
    "speed_scaling",
    "actual_execution_time",
    "actual_digital_input_bits",
    "actual_digital_output_bits",
    "output_int_register_24",
    "output_double_register_24",
    STAGE_OUTPUT,
)
_NEEDED_FOR_COMMANDS = (
    *MODE_OUTPUTS,
    "runtime_state",
    *(f"actual_qd_{k}" for k in range(6)),
)
_PAYLOAD = ("payload", *(f"payload_cog_{k}" for k in range(3)))
_PAYLOAD_INERTIA = tuple(f"payload_inertia_{k}" for k in range(6))
_RATINGS_KG = {
    "ur3": 3.0,
    "ur3e": 3.0,
    "ur5": 5.0,
    "ur5e": 5.0,
    "ur7e": 7.5,
    "ur8": 8.0,
    "ur10": 10.0,
    "ur10e": 12.5,
    "ur12e": 12.5,
    "ur15": 15.0,
    "ur16e": 16.0,
    "ur18": 18.0,
    "ur20": 20.0,
    "ur30": 30.0,
}
"""Largest payload by the kind of arm, [kg]."""
_E_SERIES_NUMBERS = ("3", "5", "7", "10", "12", "16")  # arms that are called e from software 5 on

_E_SERIES = 5  # major version of the software
_TAKES_INERTIA_FROM = (5, 10)  # version of the software
_HANDSHAKE_TIMEOUTS = 2  # longest handshake, in timeouts of the connection
_ECHO_TIMEOUT_S = 1.0
_PROGRAM_ENDED = (0, 1)  # values of `runtime_state`: stopping, stopped
_STOPPED_ANSWER = "Stopped"  # of the dashboard to `stop`
_MIN_BYTES_READ = 79  # or a controller may discard the script
_CHUNK = 1 << 16  # bytes


@dataclass(frozen=True)
class UrController(MovableController):
    """A Universal Robots controller.

    Attributes:
        host: name or address
        port: port of RTDE
        rate_hz: rows per second to ask for, [Hz]; the controller may send more
        more: names of further outputs to read, where the controller knows them
        timeout_s: longest time without any bytes, [s]; then the connection counts as lost
        pauses_s: pause before each attempt to connect again, [s]
    """

    host: str
    port: int = PORT
    rate_hz: float = 500.0
    more: tuple[str, ...] = ()
    timeout_s: float = 2.0
    pauses_s: tuple[float, ...] = (1.0, 2.0, 5.0)

    capabilities: ClassVar[Capabilities] = Capabilities(
        reports_payload=True, sets_payload_while_streaming=True, moves=True, stops=True
    )
    export_format: ClassVar[str] = "ur"

    def __str__(self) -> str:
        if self.port == PORT:
            return f"ur://{self.host}"
        return f"ur://{self.host}:{self.port}"

    # --- rows

    def connect(self) -> Connection:
        """A connection whose outputs are negotiated and started."""
        return _UrConnection(self)

    def judge(self, columns: Sequence[str]) -> Judge:
        """A judge that knows the modes of a controller."""
        return UrJudge(columns)

    def joint_speeds(self, row: Mapping[str, float]) -> Sequence[float]:
        """Joint speeds, (6,) [rad/s]; empty where the controller does not send them."""
        return [value for name, value in row.items() if name.startswith("actual_qd_")]

    def posture(self, row: Mapping[str, float]) -> Array:
        """Joint positions, (6,) [rad]."""
        return np.array([row[f"actual_q_{k}"] for k in range(6)])

    def obstacle(self, row: Mapping[str, float]) -> str:
        """Outputs that are missing, modes that are not fit, and any but the normal safety mode."""
        return command_obstacle(row, _NEEDED_FOR_COMMANDS)

    def ready_row(self, stream: Stream) -> dict[str, float]:
        """The newest row of a prompt controller, ready, in remote control, whose arm stands."""
        super().ready_row(stream)
        if self.ask_dashboard("is in remote control") == "false":
            raise SourceFailed(
                f"{self} is not in remote control and ignores commands: switch it over"
            )
        require_prompt(self, stream)
        return super().ready_row(stream)

    # --- payload

    def payload_in(self, row: Mapping[str, float]) -> ControllerPayload | None:
        """The payload in a row with RTDE's names; None where the controller does not send it."""
        return payload_in_row(row)

    def status(self) -> ControllerStatus:
        """Facts about a controller that is ready; raises `SourceFailed` where it is not."""
        with Stream(self) as stream:
            row = self.ready_row(stream)
            version = stream.version
            arm = self.identity(version)
            has_echo = set(_PAYLOAD_INERTIA) <= set(row)
            return ControllerStatus(
                payload=self.payload(stream),
                rating_kg=_RATINGS_KG.get(arm.kind, 0.0),
                takes_inertia=version >= _TAKES_INERTIA_FROM and has_echo,
                arm=arm,
                version=version,
            )

    def identity(self, version: tuple[int, ...]) -> ArmIdentity:
        """Kind and serial number as the dashboard gives them."""
        model = self.ask_dashboard("get robot model").lower()
        number = model.removeprefix("ur")
        if number in _E_SERIES_NUMBERS and version and version[0] >= _E_SERIES:
            model = f"{model}e"
        serial = self.ask_dashboard("get serial number")
        if not serial.isalnum():
            serial = ""
        return ArmIdentity.named(model, serial)

    def set_payload(self, request: PayloadRequest) -> SettingOutcome:
        """Sets a payload by a program beside the running one, and waits for the echo."""
        program = payload_program(
            request.payload,
            transition_s=request.transition_s,
            with_inertia=request.with_inertia,
        )
        with Stream(self) as stream:
            if request.arm is not None:
                self.require_arm(stream, request.arm)
            self.ready_row(stream)
            self.require_unchanged(stream, request.before)
            with suppress(_Unanswered):  # the echo decides
                self.send_script(program)
            timeout_s = _ECHO_TIMEOUT_S + request.transition_s
            return self.setting_outcome(stream, request, timeout_s=timeout_s)

    # --- motion

    def command_rate_hz(self, version: tuple[int, ...]) -> float:
        """Commands per second, [Hz]: 125 before software 5, 500 from then on."""
        if version and version[0] < _E_SERIES:
            return 125.0
        return 500.0

    def motion_link(self, path: PathCommand) -> MotionLink:
        """A program of `servoj` steps with a heartbeat."""
        return UrMotionLink(self, path)

    def running_program(self, row: Mapping[str, float]) -> str:
        """The program that the dashboard names while `runtime_state` is not stopped."""
        if row["runtime_state"] in _PROGRAM_ENDED:
            return ""
        _, _, name = self.ask_dashboard("programState").partition(" ")
        if name:
            return f"the program {name}"
        return "a program"

    def motion_in(self, columns: Sequence[str]) -> Callable[[Values], SeenMotion]:
        """Looks at `actual_qd` and `runtime_state`."""
        names = ("runtime_state", *(f"actual_qd_{k}" for k in range(6)))
        missing = [name for name in names if name not in columns]
        if missing:
            raise SourceFailed(f"{self} does not send {missing[0]}")
        pick = itemgetter(*map(columns.index, names))

        def motion(values: Values) -> SeenMotion:
            runtime_state, *speeds = pick(values)
            speed = largest_speed(speeds)
            if math.isnan(speed):
                return SeenMotion("a joint speed is no number", is_known=False)
            if speed > MAX_SPEED_AT_REST:
                return SeenMotion(f"{speed:.2g} rad/s")
            if runtime_state not in _PROGRAM_ENDED:
                return SeenMotion("a program runs")
            return SeenMotion("")

        return motion

    def tool_offset(self, row: Mapping[str, float]) -> Array:
        """The position in `tcp_offset`; refused where the controller does not send it."""
        offset = np.array([row.get(f"tcp_offset_{k}", np.nan) for k in range(3)])
        if not np.isfinite(offset).all():
            raise SourceFailed(
                f"nothing was moved: {self} does not send tcp_offset, so the speed of the tool is"
                " not known"
            )
        return offset

    def send_stop(self) -> None:
        """Stops the program that runs by a program and by the dashboard, at the same time.

        A dashboard that does not answer delays nothing. Its answer counts only where the program
        could not be sent.
        """
        answers: list[str] = []
        dashboard = threading.Thread(
            target=lambda: answers.append(self.ask_dashboard("stop")),
            name="steelyard dashboard",
            daemon=True,
        )
        dashboard.start()
        try:
            self.send_script(STOP_PROGRAM)
        except SourceFailed:
            dashboard.join()
            if answers != [_STOPPED_ANSWER]:
                raise

    # --- the other ports

    def shifted_port(self, usual: int) -> int:
        """The number of another port of this controller, by its usual number."""
        return usual + self.port - PORT

    def send_script(self, program: str) -> None:
        """Sends a program to the script port, which gives no answer.

        Raises:
            SourceFailed: it was not sent, or it is not known whether it runs; the message says so
        """
        port = self.shifted_port(SCRIPT_PORT)
        hint = _hint("remote control")
        with open_connection(self.host, port, hint, timeout_s=self.timeout_s) as connection:
            end_s = time.monotonic() + self.timeout_s
            try:
                connection.sendall(program.encode("ascii"))
            except OSError as error:
                raise SourceFailed(f"{self}: the script was not sent: {error}") from error
            try:
                receive_until(connection, lambda data: len(data) >= _MIN_BYTES_READ, end_s)
            except OSError as error:
                raise _Unanswered(
                    f"{self} received a script and sent nothing back, so it is not known whether"
                    f" it runs: {error}"
                ) from error

    def ask_dashboard(self, command: str) -> str:
        """The dashboard's answer; empty where there is no dashboard, as on PolyScope X."""
        port = self.shifted_port(DASHBOARD_PORT)
        hint = _hint("the dashboard")
        try:
            with open_connection(self.host, port, hint, timeout_s=self.timeout_s) as connection:
                end_s = time.monotonic() + self.timeout_s
                receive_until(connection, _has_line, end_s)  # the greeting
                connection.sendall(f"{command}\n".encode())
                answer = receive_until(connection, _has_line, end_s)
                return answer.decode(errors="replace").strip()
        except (SourceFailed, OSError):
            return ""


def payload_in_row(row: Mapping[str, float]) -> ControllerPayload | None:
    """The payload in a row with RTDE's names; None where the row does not contain one.

    Args:
        row: values by the names of the columns
    """
    mass, *cog = (row.get(name, math.nan) for name in _PAYLOAD)
    if not math.isfinite(mass + sum(cog)):
        return None
    inertia = tuple(row.get(name, 0.0) for name in _PAYLOAD_INERTIA)
    return ControllerPayload(mass, tuple(cog), inertia)


def _has_line(data: bytes) -> bool:
    return b"\n" in data


def _hint(service: str) -> str:
    return f"is the controller on, and is {service} allowed in its settings?"


class _Unanswered(SourceFailed):
    """A script was sent, and it is not known whether it runs."""


class _UrConnection(Connection):
    """A socket with an RTDE client; the constructor negotiates the outputs."""

    def __init__(self, controller: UrController) -> None:
        self._place = str(controller)
        self._timeout_s = controller.timeout_s
        outputs = (*_OPTIONAL, *controller.more)
        self._client = RtdeClient(_REQUIRED, outputs, rate_hz=controller.rate_hz)
        self._socket = open_connection(
            controller.host, controller.port, _hint("RTDE"), timeout_s=controller.timeout_s
        )
        self._early_rows: list[Values] = []
        end_s = time.monotonic() + _HANDSHAKE_TIMEOUTS * controller.timeout_s
        try:
            while not (self._client.recipe and self._client.started):
                self._early_rows += self._received()
                if time.monotonic() > end_s:
                    raise SourceFailed(
                        f"{self._place} answers, but starts to send no rows{self._last_text()}"
                    )
            self._last_row_s = time.monotonic()
            self.columns = self._client.recipe.columns
            self.version = self._client.controller
        except BaseException:
            self._socket.close()
            raise

    def read(self) -> Sequence[Values]:
        if self._early_rows:
            rows = self._early_rows
            self._early_rows = []
            return rows
        rows = self._received()
        now = time.monotonic()
        if rows:
            self._last_row_s = now
        elif now - self._last_row_s > self._timeout_s:
            raise SourceFailed(
                f"{self._place} sends no rows for {self._timeout_s:g} s{self._last_text()}"
            )
        return rows

    def texts(self) -> Sequence[str]:
        texts = self._client.texts
        self._client.texts = []
        return texts

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _received(self) -> list[Values]:
        try:
            if data := self._client.to_send():
                self._socket.sendall(data)
            received = self._socket.recv(_CHUNK)
        except TimeoutError as error:
            raise SourceFailed(
                f"{self._place} is connected, but nothing came for {self._timeout_s:g} s"
                f"{self._last_text()}"
            ) from error
        except OSError as error:
            raise SourceFailed(f"{self._place} was lost: {error.strerror or error}") from error
        if not received:
            raise SourceFailed(f"{self._place} has closed the connection")
        try:
            return self._client.receive(received)
        except SourceFailed as error:
            raise SourceFailed(f"{self._place}: {error}") from error

    def _last_text(self) -> str:
        """The last message of the controller, for an error; empty without one."""
        if not self._client.texts:
            return ""
        return f" (its last message: {self._client.texts[-1]})"
