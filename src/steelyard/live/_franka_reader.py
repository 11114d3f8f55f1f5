"""A program of its own that reads a Franka arm by libfranka: `python franka_reader.py HOST`.

libfranka waits for ever where a server is mute, and keeps Python's other threads waiting meanwhile:
here it can be ended. It is started by `franka`, and imports nothing of steelyard.

Out: frames of a length (uint32), a kind (one byte) and a body: ROW, the numbers of `COLUMNS` as
doubles; DONE, a command was carried out; ERROR, words, after which the program ends; REFUSED, after
which it goes on.
In: lines `load MASS X Y Z I1 ... I9`, for `set_load`.
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
COLUMNS = (
    "time_s",
    *(f"{name}_{k}" for name in _JOINTS for k in range(7)),
    *(
        x
        for name, n in _LOADS.items()
        for x in ([name] if n == 1 else [f"{name}_{k}" for k in range(n)])
    ),
    "robot_mode",
)
"""What a row holds, under libfranka's names; matrices column by column."""

FRAME = struct.Struct("<Ic")
NUMBERS = struct.Struct(f"<{len(COLUMNS)}d")


def _sent(kind: bytes, body: bytes) -> None:
    os.write(sys.stdout.fileno(), FRAME.pack(len(body), kind) + body)


def _row(state: Any) -> bytes:
    numbers = [state.time.to_sec()]
    for name in _JOINTS:
        numbers += getattr(state, name)
    for name, count in _LOADS.items():
        numbers += [getattr(state, name)] if count == 1 else getattr(state, name)
    return NUMBERS.pack(*numbers, state.robot_mode.value)


def _commanded(robot: Any, line: str) -> None:
    """Carries a command out and answers."""
    mass, *rest = (float(x) for x in line.split()[1:])
    try:
        robot.set_load(mass, rest[:3], rest[3:])
    except Exception as error:  # whatever libfranka throws
        return _sent(REFUSED, str(error).encode())
    _sent(DONE, b"")


def _read(host: str, import_library: Callable[[], Any]) -> None:
    library = import_library()
    robot = library.Robot(host, library.RealtimeConfig.kIgnore)
    commands = sys.stdin.fileno()
    while True:
        _sent(ROW, _row(robot.read_once()))
        if select.select([commands], [], [], 0)[0]:
            if not (text := os.read(commands, 4096).decode()):
                return  # nobody is there any more
            for line in text.splitlines():
                _commanded(robot, line)


def _library() -> Any:
    import pylibfranka

    return pylibfranka


if __name__ == "__main__":
    try:
        _read(sys.argv[1], _library)
    except BrokenPipeError:
        sys.exit(1)
    except Exception as error:  # libfranka's own, of several kinds
        _sent(ERROR, str(error).encode())
        sys.exit(1)
