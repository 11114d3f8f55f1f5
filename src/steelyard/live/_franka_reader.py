"""A program that reads a Franka arm by libfranka: `python _franka_reader.py HOST`.

libfranka waits for ever for a server that does not answer, and blocks Python's other threads
meanwhile; a process of its own can be ended. `_franka` starts it; it imports nothing of steelyard.

Output: frames of a length (uint32), a kind (one byte) and a body: ROW, the numbers of `COLUMNS` as
doubles; DONE, a command was carried out; ERROR, a text, after which the program ends; REFUSED, a
text, after which it goes on.
Input: lines `load MASS X Y Z I1 ... I9`, for `set_load`.
"""

from __future__ import annotations

import os
import select
import struct
import sys
from collections.abc import Callable
from typing import Any

ROW = b"r"
DONE = b"d"
REFUSED = b"f"
ERROR = b"e"
_JOINTS = ("q", "dq", "tau_J", "q_d", "dq_d", "ddq_d")
_LOADS = {
    "m_ee": 1,
    "F_x_Cee": 3,
    "m_load": 1,
    "F_x_Cload": 3,
    "I_load": 9,
    "O_T_EE": 16,
    "F_T_EE": 16,
}


def _columns(name: str, count: int) -> list[str]:
    if count == 1:
        return [name]
    return [f"{name}_{k}" for k in range(count)]


COLUMNS = (
    "time_s",
    *(column for name in _JOINTS for column in _columns(name, 7)),
    *(column for name, count in _LOADS.items() for column in _columns(name, count)),
    "robot_mode",
)
"""Names of the numbers in a row, as in libfranka; matrices column by column."""

FRAME = struct.Struct("<Ic")
NUMBERS = struct.Struct(f"<{len(COLUMNS)}d")


def _send(kind: bytes, body: bytes) -> None:
    os.write(sys.stdout.fileno(), FRAME.pack(len(body), kind) + body)


def _row(state: Any) -> bytes:
    numbers = [state.time.to_sec()]
    for name in _JOINTS:
        numbers += getattr(state, name)
    for name, count in _LOADS.items():
        value = getattr(state, name)
        if count == 1:
            numbers.append(value)
        else:
            numbers += value
    return NUMBERS.pack(*numbers, state.robot_mode.value)


def _carry_out(robot: Any, line: str) -> None:
    """Carries a command out and answers."""
    mass, *rest = (float(x) for x in line.split()[1:])
    try:
        robot.set_load(mass, rest[:3], rest[3:])
    except Exception as error:  # libfranka throws several kinds
        return _send(REFUSED, str(error).encode())
    _send(DONE, b"")


def _read(host: str, import_library: Callable[[], Any]) -> None:
    library = import_library()
    robot = library.Robot(host, library.RealtimeConfig.kIgnore)
    commands = sys.stdin.fileno()
    while True:
        _send(ROW, _row(robot.read_once()))
        if select.select([commands], [], [], 0)[0]:
            if not (text := os.read(commands, 4096).decode()):
                return  # the parent process has closed the pipe
            for line in text.splitlines():
                _carry_out(robot, line)


def _library() -> Any:
    import pylibfranka

    return pylibfranka


if __name__ == "__main__":
    try:
        _read(sys.argv[1], _library)
    except BrokenPipeError:
        sys.exit(1)
    except Exception as error:  # libfranka throws several kinds
        _send(ERROR, str(error).encode())
        sys.exit(1)
