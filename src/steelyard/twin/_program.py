"""URScript as the simulated controller understands it.

A program starts with `def NAME():` or `sec NAME():` in column one and ends with `end` there. A
`sec` program runs within one control step beside the running program; a `def` program replaces it.
Only calls with numbers are understood: movej, servoj, stopj, sleep, set_target_payload and
set_payload. Everything else is refused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import SourceFailed
from steelyard.live._controller import ControllerPayload

LARGEST_INERTIA = 133.0
"""Largest entry of an inertia that a controller accepts, [kg m^2]."""

_HEADER = re.compile(r"(def|sec) (\w+)\(\):")
_MOTIONS = {"movej", "servoj", "stopj", "sleep"}
_PAYLOADS = {"set_target_payload", "set_payload"}
_MAX_POSITION = 1e3  # [rad]
_QUINTIC_SPEED = 1.875  # largest speed of a quintic move of 1 in 1 s
_QUINTIC_ACCELERATION = 5.7735  # its largest acceleration
_DEFAULT_SPEED = 1.05  # of movej, [rad/s]
_DEFAULT_ACCELERATION = 1.4  # of movej, [rad/s^2]

_Number: TypeAlias = float | tuple[float, ...]


class Call(NamedTuple):
    """A statement of a program.

    Attributes:
        name: name of the function
        args: positional arguments, numbers and lists of numbers
        named: arguments with a name (`a=`, `v=`)
    """

    name: str
    args: tuple[_Number, ...]
    named: dict[str, _Number]


class Program(NamedTuple):
    """A parsed program.

    Attributes:
        kind: 'def' replaces the running program, 'sec' runs beside it
        name: name of the program
        calls: its statements
    """

    kind: Literal["def", "sec"]
    name: str
    calls: tuple[Call, ...]

    @classmethod
    def parsed(cls, text: str) -> Program:
        """The program in a text, or a refusal that names the line.

        Args:
            text: from `def` or `sec` to `end`, optionally followed by a call of the program
        """
        lines = [
            (k, line.split("#")[0].rstrip()) for k, line in enumerate(text.splitlines(), start=1)
        ]
        lines = [(k, line) for k, line in lines if line]
        header = None
        if lines:
            header = _HEADER.fullmatch(lines[0][1])
        if header is None:
            raise SourceFailed("a program begins with 'def NAME():' or 'sec NAME():' in column one")
        kind, name = header.groups()
        end = next((i for i, (_, line) in enumerate(lines) if line == "end"), None)
        if end is None:
            raise SourceFailed("a program ends with 'end' in column one")
        if [line for _, line in lines[end + 1 :]] not in ([], [f"{name}()"]):
            raise SourceFailed(f"line {lines[end + 1][0]}: something follows the program")
        if kind == "sec":
            return cls("sec", name, tuple(_call(line, k, _PAYLOADS) for k, line in lines[1:end]))
        known = _MOTIONS | _PAYLOADS
        return cls("def", name, tuple(_call(line, k, known) for k, line in lines[1:end]))

    def targets(self, start: Array, step_s: float) -> Iterator[Array]:
        """The positions that the program commands, one per control step, (n,) [rad].

        Args:
            start: commanded joint positions before it, (n,) [rad]
            step_s: length of a control step, [s]
        """
        q = start
        for name, args, named in self.calls:
            if name == "movej":
                goal = np.array(args[0])
                speed = _one(named.get("v", _DEFAULT_SPEED))
                acceleration = _one(named.get("a", _DEFAULT_ACCELERATION))
                yield from _quintic(q, goal, speed, acceleration, step_s=step_s)
                q = goal
            elif name == "servoj":
                q = np.array(args[0])
                held_s = step_s
                if len(args) > 3:
                    held_s = _one(args[3])
                yield from (q for _ in range(max(round(held_s / step_s), 1)))
            elif name == "sleep":
                yield from (q for _ in range(round(_one(args[0]) / step_s)))

    def payloads(self) -> Iterator[ControllerPayload]:
        """The payloads that it sets."""
        for name, args, _ in self.calls:
            if name in _PAYLOADS:
                inertia: _Number = (0.0,) * 6
                if name == "set_target_payload" and len(args) > 2:
                    inertia = args[2]
                yield ControllerPayload(_one(args[0]), _many(args[1]), _many(inertia))


def _quintic(
    start: Array, goal: Array, speed: float, acceleration: float, *, step_s: float
) -> Iterator[Array]:
    """Joint positions of a smooth move within a largest speed and acceleration, (n,) [rad]."""
    distance = float(np.abs(goal - start).max())
    by_speed_s = _QUINTIC_SPEED * distance / speed
    by_acceleration_s = np.sqrt(_QUINTIC_ACCELERATION * distance / acceleration)
    time_s = max(by_speed_s, by_acceleration_s)
    for k in range(1, round(time_s / step_s) + 1):
        s = min(k * step_s / time_s, 1.0)
        yield start + (10 * s**3 - 15 * s**4 + 6 * s**5) * (goal - start)


def _one(value: _Number) -> float:
    return float(np.ravel(value)[0])


def _many(value: _Number) -> tuple[float, ...]:
    return tuple(float(x) for x in np.ravel(value))


def _call(line: str, k: int, known: set[str]) -> Call:
    """The call on an indented line."""
    refusal = SourceFailed(f"line {k}: '{line.strip()[:60]}' is not understood")
    try:
        node = None
        if line[0] in " \t":
            node = ast.parse(line.strip(), mode="eval").body
        if (
            not isinstance(node, ast.Call)
            or not isinstance(node.func, ast.Name)
            or node.func.id not in known
        ):
            raise refusal
        args = tuple(_literal(arg) for arg in node.args)
        named = {str(word.arg): _literal(word.value) for word in node.keywords}
    except (SyntaxError, ValueError) as error:
        raise refusal from error
    call = Call(node.func.id, args, named)
    if problem := _problem(call):
        raise SourceFailed(f"line {k}: {call.name}: {problem}")
    return call


def _literal(node: ast.expr) -> _Number:
    value = ast.literal_eval(node)
    if isinstance(value, list) and all(isinstance(x, int | float) for x in value):
        return tuple(float(x) for x in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise ValueError(value)


def _problem(call: Call) -> str:
    """Why the arguments of a call are refused; empty where they are accepted."""
    sizes = [len(x) if isinstance(x, tuple) else 0 for x in call.args]
    if call.name in ("movej", "servoj"):
        if sizes[:1] != [6] or max(map(abs, _many(call.args[0]))) > _MAX_POSITION:
            return "it takes a posture of six joints [rad]"
    elif call.name in _PAYLOADS:
        if sizes[:2] != [0, 3] or (
            len(sizes) > 2 and call.name == "set_target_payload" and sizes[2] != 6
        ):
            return "it takes a mass, a centre of gravity of three, and an inertia of six numbers"
        inertia: tuple[float, ...] = (0.0,)
        if len(sizes) > 2 and sizes[2]:
            inertia = _many(call.args[2])
        if (
            _one(call.args[0]) < 0
            or min(inertia[:3]) < 0
            or max(map(abs, inertia)) > LARGEST_INERTIA
        ):
            return f"no mass and no moment is negative, no inertia above {LARGEST_INERTIA:g} kg m^2"
    elif sizes != [0]:
        return "it takes one number"
    return ""
