"""`ur://HOST[:PORT]`: a Universal Robots arm by RTDE. Socket and modes; the protocol itself is in `rtde`.

Rows are fit for weighing when the arm runs (`robot_mode` 7), its safety is normal or reduced, every
joint runs, nobody presses the teach button, and half a second has passed since one of these
changed: elsewhere brakes or hands carry the load.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter

from steelyard.errors import SourceFailed
from steelyard.live._rtde import PORT, RtdeClient
from steelyard.live._source import (
    SETTLING_S,
    Connection,
    Event,
    EventKind,
    Judge,
    Source,
    Stream,
    Values,
)

_REQUIRED = ("timestamp", "actual_q", "actual_current")
_OPTIONAL = (
    *("actual_qd", "target_q", "target_qd", "target_qdd", "target_current", "target_moment"),
    *(
        "joint_temperatures",
        "payload",
        "payload_cog",
        "payload_inertia",
        "actual_TCP_pose",
        "tcp_offset",
    ),
    *(
        "robot_mode",
        "safety_mode",
        "joint_mode",
        "runtime_state",
        "robot_status_bits",
        "speed_scaling",
    ),
    *("actual_execution_time", "actual_digital_input_bits", "actual_digital_output_bits"),
    *("output_int_register_24", "output_double_register_24"),
)
ROBOT_MODES = {
    -1: "no controller",
    0: "disconnected",
    1: "safety not confirmed",
    2: "booting",
    3: "power off",
    4: "power on, not started",
    5: "idle, brakes on",
    6: "backdrive",
    7: "running",
    8: "updating firmware",
}
SAFETY_MODES = {
    1: "normal",
    2: "reduced",
    3: "protective stop",
    4: "recovery",
    5: "safeguard stop",
    6: "system emergency stop",
    7: "robot emergency stop",
    8: "safety violation",
    9: "safety fault",
    10: "joint validation",
    12: "safeguard stop in automatic mode",
    13: "three-position switch: stop",
    14: "three-position switch: stop",
}
DASHBOARD = 29999
SCRIPTS = 30002
"""The other ports of a controller. Where RTDE has another port than usual, these lie as far from it."""

AT_REST = 0.01
"""Slower than this an arm stands, [rad/s]."""

_JOINTS = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
_RUNNING = 7
_NORMAL = (1, 2)
_JOINT_RUNNING = 253
_TEACH_BUTTON = 4
_JOINT_MODES = {236: "shutting down", 238: "backdrive", 239: "power off", 252: "fault", 255: "idle"}
_READ_BEFORE_CLOSING = 79  # bytes, or a controller may throw the script away
_WARMER = 2.0  # [deg C], worth an event
_CHUNK = 1 << 16


@dataclass(frozen=True)
class UrSource(Source):
    """A Universal Robots controller.

    Attributes:
        host: its name or address
        port: of RTDE
        rate_hz: rows per second to ask for, [Hz]; the controller may send more
        more: names of outputs to read besides, where the controller knows them
        timeout_s: without any bytes, until it counts as lost, [s]
        pauses_s: before each attempt to connect again, [s]
    """

    host: str
    port: int = PORT
    rate_hz: float = 500.0
    more: tuple[str, ...] = ()
    timeout_s: float = 2.0
    pauses_s: tuple[float, ...] = (1.0, 2.0, 5.0)

    def __str__(self) -> str:
        return f"ur://{self.host}" + ("" if self.port == PORT else f":{self.port}")

    def other_port(self, usual: int) -> int:
        """The number of another port of this controller, `DASHBOARD` or `SCRIPTS`."""
        return usual + self.port - PORT

    def connect(self) -> Connection:
        """A connection whose outputs are agreed on and started."""
        return _UrConnection(self)

    def judge(self, columns: Sequence[str]) -> Judge:
        """A judge that knows the modes of a controller."""
        return _UrJudge(columns)


def connected(host: str, port: int, ask: str, *, timeout_s: float) -> socket.socket:
    """A connection by TCP, or one clear line.

    Args:
        host: name or address
        port: number
        ask: the question to ask oneself where nobody listens
        timeout_s: of every wait, [s]
    """
    place = f"{host}, port {port}"
    try:
        found = socket.create_connection((host, port), timeout=timeout_s)
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
        raise SourceFailed(f"{place}: nobody listens there: {ask}") from error
    except OSError as error:
        raise SourceFailed(f"{place} cannot be reached: {error.strerror or error}") from error
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def send_script(source: UrSource, text: str) -> None:
    """Sends a program to the script port; there is no answer.

    Args:
        source: the controller
        text: of the program
    """
    port = source.other_port(SCRIPTS)
    with connected(
        source.host, port, _ask("remote control"), timeout_s=source.timeout_s
    ) as connection:
        try:
            connection.sendall(text.encode("ascii"))
            unread = _READ_BEFORE_CLOSING
            while unread > 0 and (data := connection.recv(_CHUNK)):
                unread -= len(data)
        except OSError as error:
            raise SourceFailed(f"{source}: the script was not taken: {error}") from error


def ask_dashboard(source: UrSource, line: str) -> str:
    """The answer of the dashboard to a line; empty where there is no dashboard, as on PolyScope X.

    Args:
        source: the controller
        line: a command
    """
    try:
        port = source.other_port(DASHBOARD)
        with connected(
            source.host, port, _ask("the dashboard"), timeout_s=source.timeout_s
        ) as connection:
            lines = connection.makefile("rw")
            lines.readline()
            lines.write(f"{line}\n")
            lines.flush()
            return lines.readline().strip()
    except (SourceFailed, OSError):
        return ""


def controller_of(source: Source) -> UrSource:
    """The controller behind a source, or a refusal where there is none to command."""
    if isinstance(source, UrSource):
        return source
    raise SourceFailed(
        f"{source} cannot be commanded: give ur://HOST; an arm that its own program moves is"
        " weighed by watch"
    )


def ready_row(stream: Stream) -> dict[str, float]:
    """What a controller that may be commanded says now, by RTDE's names; or a refusal.

    Args:
        stream: of its rows
    """
    source = controller_of(stream.source)
    row = stream.row()
    said = dict(zip(stream.columns, row.values, strict=True))
    safety = int(said.get("safety_mode", 1))
    if row.waiting or safety != 1:
        why = row.waiting or f"its safety mode is {SAFETY_MODES.get(safety, safety)}, not normal"
        raise SourceFailed(f"{source} is not ready: {why}")
    speed = max(abs(said.get(f"actual_qd_{k}", 0.0)) for k in range(6))
    if speed > AT_REST:
        raise SourceFailed(f"{source} moves ({speed:.2g} rad/s): stop the arm first")
    if ask_dashboard(source, "is in remote control") == "false":
        raise SourceFailed(
            f"{source} is not in remote control: it ignores what is sent; switch it over"
        )
    return said


def fault_of(robot: int, safety: int, joints: Sequence[float] = (), *, hand: bool = False) -> str:
    """Why an arm in these modes cannot be weighed with, in words; empty where it can.

    Args:
        robot: RTDE's `robot_mode`
        safety: RTDE's `safety_mode`
        joints: RTDE's `joint_mode` of each joint
        hand: whether the teach button is pressed
    """
    if safety not in _NORMAL:
        return SAFETY_MODES.get(safety, f"safety mode {safety}")
    if robot != _RUNNING:
        return (
            "the arm is not powered or not released"
            f" ({ROBOT_MODES.get(robot, f'robot mode {robot}')})"
        )
    for name, mode in zip(_JOINTS, joints, strict=False):
        if mode != _JOINT_RUNNING:
            return f"{name}_joint does not run ({_JOINT_MODES.get(int(mode), f'mode {int(mode)}')})"
    if hand:
        return "a hand guides the arm (teach button)"
    return ""


def _ask(what: str) -> str:
    return f"is the controller on, and is {what} allowed in its settings?"


class _UrConnection(Connection):
    """A socket with an RTDE client behind it; it negotiates before it is there."""

    def __init__(self, source: UrSource) -> None:
        self._place = str(source)
        self._timeout_s = source.timeout_s
        self._client = RtdeClient(_REQUIRED, (*_OPTIONAL, *source.more), rate_hz=source.rate_hz)
        self._socket = connected(source.host, source.port, _ask("RTDE"), timeout_s=source.timeout_s)
        self._early: list[Values] = []
        try:
            while not (self._client.recipe and self._client.started):
                self._early += self._received()
            self.columns = self._client.recipe.columns
            self.version = self._client.controller
        except SourceFailed:
            self._socket.close()
            raise

    def read(self) -> Sequence[Values]:
        if self._early:
            rows = self._early
            self._early = []
            return rows
        return self._received()

    def texts(self) -> Sequence[str]:
        texts, self._client.texts = self._client.texts, []
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
            if self._client.texts:
                said = f" (it says: {self._client.texts[-1]})"
            else:
                said = ""
            raise SourceFailed(
                f"{self._place} is connected, but nothing came for {self._timeout_s:g} s{said}"
            ) from error
        except OSError as error:
            raise SourceFailed(f"{self._place} was lost: {error.strerror or error}") from error
        if not received:
            raise SourceFailed(f"{self._place} has closed the connection")
        try:
            return self._client.receive(received)
        except SourceFailed as error:
            raise SourceFailed(f"{self._place}: {error}") from error


class _UrJudge(Judge):
    """Watches the modes of a controller, the payload that it believes in, temperatures and marks."""

    def __init__(self, columns: Sequence[str]) -> None:
        def view(*names: str) -> Callable[[Values], object]:
            at = [columns.index(name) for name in names if name in columns]
            if len(at) == len(names):
                return itemgetter(*at)
            return lambda values: None

        six = [[f"{name}_{k}" for k in range(6)] for name in ("joint_mode", "joint_temperatures")]
        self._modes = view("robot_mode", "safety_mode", *six[0], "robot_status_bits")
        self._payload = view("payload", *(f"payload_cog_{k}" for k in range(3)))
        self._temperatures = view(*six[1])
        self._marks = view("output_int_register_24", "actual_digital_output_bits")
        self._last_modes: object = None
        self._last_payload: object = None
        self._last_marks: object = None
        self._warm: tuple[float, ...] | None = None
        self._fault = ""
        self._settled_s = float("-inf")
        self._news: list[Event] = []

    def judged(self, values: Values) -> str:
        t = values[0]
        modes = self._modes(values)
        if isinstance(modes, tuple):
            modes = *modes[:-1], int(modes[-1]) & _TEACH_BUTTON
            if modes != self._last_modes:
                before = self._last_modes
                self._last_modes = modes
                self._changed(modes, t, first=before is None)
        self._note(values, t)
        if self._fault:
            return self._fault
        if self._settled_s - SETTLING_S <= t < self._settled_s:
            return "just started again"
        return ""

    def events(self) -> Iterator[Event]:
        news = self._news
        self._news = []
        yield from news

    def _changed(self, modes: Values, t: float, *, first: bool) -> None:
        robot, safety, *joints, hand = modes
        was = self._fault
        self._fault = fault_of(int(robot), int(safety), joints, hand=bool(hand))
        if not first:
            self._settled_s = t + SETTLING_S
        if self._fault != was:
            self._news.append(Event(EventKind.MODE, self._fault or "the arm runs", t))

    def _note(self, values: Values, t: float) -> None:
        if (payload := self._payload(values)) != self._last_payload and isinstance(payload, tuple):
            self._last_payload = payload
            centre = " ".join(f"{1e3 * x:.1f}" for x in payload[1:])
            words = f"the controller believes in {payload[0]:.3f} kg at {centre} mm"
            self._news.append(Event(EventKind.PAYLOAD, words, t))
        if (marks := self._marks(values)) != self._last_marks and isinstance(marks, tuple):
            if self._last_marks is not None:
                words = f"register 24 is {marks[0]}, digital outputs are {int(marks[1]):#x}"
                self._news.append(Event(EventKind.MARK, words, t))
            self._last_marks = marks
        warm = self._temperatures(values)
        if isinstance(warm, tuple) and (
            self._warm is None
            or max(abs(x - y) for x, y in zip(warm, self._warm, strict=True)) >= _WARMER
        ):
            self._warm = warm
            words = f"the joints have {', '.join(f'{x:.0f}' for x in warm)} degrees Celsius"
            self._news.append(Event(EventKind.TEMPERATURE, words, t))
