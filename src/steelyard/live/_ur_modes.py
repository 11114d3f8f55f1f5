"""Modes of a Universal Robots controller, and which of its rows are fit for weighing.

A row is fit for weighing when the arm runs (`robot_mode` 7), its safety mode is normal or reduced,
every joint runs, the teach button is not pressed, and half a second has passed since one of these
changed. Otherwise brakes or hands may carry part of the load. Each mode that a controller sends is
judged by itself; a command needs all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter

from steelyard.live._source import SETTLING_S, Event, EventKind, Judge, Values

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
_JOINT_MODES = {236: "shutting down", 238: "backdrive", 239: "power off", 252: "fault", 255: "idle"}
_JOINTS = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
_ROBOT_RUNNING = 7
_SAFETY_NORMAL = 1
_SAFETY_REDUCED = 2
_JOINT_RUNNING = 253
_TEACH_BUTTON_BIT = 4  # of robot_status_bits
_STATUS_BITS = "robot_status_bits"
_JOINT_OUTPUTS = tuple(f"joint_mode_{k}" for k in range(6))

MODE_OUTPUTS = ("robot_mode", "safety_mode", *_JOINT_OUTPUTS, _STATUS_BITS)
"""Outputs of RTDE that decide which rows are fit for weighing, as columns of a row."""

_TEMPERATURE_EVENT = 2.0  # change of a joint's temperature that is reported, [deg C]


def fault_in(row: Mapping[str, float]) -> str:
    """Why an arm in the modes of a row is not fit for weighing; empty where it is fit.

    Each mode is judged by itself; those that the row does not contain are not judged.

    Args:
        row: values by RTDE's names
    """
    safety = row.get("safety_mode", _SAFETY_NORMAL)
    if safety not in (_SAFETY_NORMAL, _SAFETY_REDUCED):
        return _safety_words(safety)
    robot = row.get("robot_mode", _ROBOT_RUNNING)
    if robot != _ROBOT_RUNNING:
        return f"the arm is not powered or not released ({_robot_words(robot)})"
    for name, output in zip(_JOINTS, _JOINT_OUTPUTS, strict=True):
        joint = row.get(output, _JOINT_RUNNING)
        if joint != _JOINT_RUNNING:
            mode = _JOINT_MODES.get(int(joint), f"mode {joint:g}")
            return f"{name}_joint does not run ({mode})"
    if int(row.get(_STATUS_BITS, 0)) & _TEACH_BUTTON_BIT:
        return "a hand guides the arm (teach button)"
    return ""


def command_obstacle(row: Mapping[str, float], needed: Sequence[str]) -> str:
    """Why a controller must not be commanded in the modes of a row; empty where it may be.

    Args:
        row: values by RTDE's names
        needed: values that must be known; a value that is not a number is not known
    """
    unknown = [name for name in needed if not math.isfinite(row.get(name, math.nan))]
    if unknown:
        return f"it does not send {', '.join(unknown)}"
    if fault := fault_in(row):
        return fault
    return safety_obstacle(row["safety_mode"])


def safety_obstacle(safety: float) -> str:
    """Why an arm must not be commanded in a safety mode; empty where it may be.

    Args:
        safety: RTDE's `safety_mode`
    """
    if safety == _SAFETY_NORMAL:
        return ""
    if safety == _SAFETY_REDUCED:
        return "its safety mode is reduced, not normal"
    return _safety_words(safety)


def mode_in_row(row: Mapping[str, float]) -> str:
    """Robot and safety mode in a row with RTDE's names; empty where the row has neither.

    Args:
        row: values by the names of the columns
    """
    words = []
    if "robot_mode" in row:
        words.append(_robot_words(row["robot_mode"]))
    if "safety_mode" in row:
        words.append(f"safety {_safety_words(row['safety_mode'])}")
    return ", ".join(words)


def _robot_words(robot: float) -> str:
    if robot in ROBOT_MODES:
        return ROBOT_MODES[int(robot)]
    return f"robot mode {robot:g}"


def _safety_words(safety: float) -> str:
    if safety in SAFETY_MODES:
        return SAFETY_MODES[int(safety)]
    return f"safety mode {safety:g}"


class UrJudge(Judge):
    """Follows the modes of a controller, the payload set on it, temperatures and marks.

    Args:
        columns: names of the values in a row, as RTDE names them
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self._mode_places = {name: columns.index(name) for name in MODE_OUTPUTS if name in columns}
        self._payload = _picker(columns, "payload", *(f"payload_cog_{k}" for k in range(3)))
        self._temperatures = _picker(columns, *(f"joint_temperatures_{k}" for k in range(6)))
        self._marks = _picker(columns, "output_int_register_24", "actual_digital_output_bits")
        self._last_modes: dict[str, float] | None = None
        self._last_payload: Values | None = None
        self._last_marks: Values | None = None
        self._last_temperatures: Values | None = None
        self._fault = ""
        self._settled_s = float("-inf")
        self._pending: list[Event] = []

    def judged(self, values: Values) -> str:
        """Why a row is not fit for weighing; empty where it is fit."""
        t = values[0]
        modes = {name: values[place] for name, place in self._mode_places.items()}
        if _STATUS_BITS in modes:
            modes[_STATUS_BITS] = int(modes[_STATUS_BITS]) & _TEACH_BUTTON_BIT
        if modes != self._last_modes:
            self._change_modes(modes, t)
        self._note_payload(self._payload(values), t)
        self._note_marks(self._marks(values), t)
        self._note_temperatures(self._temperatures(values), t)
        if self._fault:
            return self._fault
        if self._settled_s - SETTLING_S <= t < self._settled_s:
            return "just started again"
        return ""

    def events(self) -> Iterator[Event]:
        """Changes since the last call."""
        pending = self._pending
        self._pending = []
        yield from pending

    def _change_modes(self, modes: dict[str, float], t: float) -> None:
        is_first = self._last_modes is None
        self._last_modes = modes
        before = self._fault
        self._fault = fault_in(modes)
        if not is_first:
            self._settled_s = t + SETTLING_S
        if self._fault != before:
            self._pending.append(Event(EventKind.MODE, self._fault or "the arm runs", t))

    def _note_payload(self, payload: Values | None, t: float) -> None:
        if payload is None or payload == self._last_payload:
            return
        self._last_payload = payload
        mass, *centre = payload
        place = " ".join(f"{1e3 * x:.1f}" for x in centre)
        words = f"the controller's payload is {mass:.3f} kg at {place} mm"
        self._pending.append(Event(EventKind.PAYLOAD, words, t))

    def _note_marks(self, marks: Values | None, t: float) -> None:
        if marks is None or marks == self._last_marks:
            return
        if self._last_marks is not None:
            register, outputs = marks
            words = f"register 24 is {register}, digital outputs are {int(outputs):#x}"
            self._pending.append(Event(EventKind.MARK, words, t))
        self._last_marks = marks

    def _note_temperatures(self, temperatures: Values | None, t: float) -> None:
        if temperatures is None:
            return
        if self._last_temperatures is not None:
            pairs = zip(temperatures, self._last_temperatures, strict=True)
            if max(abs(now - before) for now, before in pairs) < _TEMPERATURE_EVENT:
                return
        self._last_temperatures = temperatures
        degrees = ", ".join(f"{x:.0f}" for x in temperatures)
        words = f"the joints have {degrees} degrees Celsius"
        self._pending.append(Event(EventKind.TEMPERATURE, words, t))


def _picker(columns: Sequence[str], *names: str) -> Callable[[Values], Values | None]:
    """A function that picks some values of a row; it gives None where a column is missing."""
    if not set(names) <= set(columns):
        return lambda values: None
    return itemgetter(*(columns.index(name) for name in names))
