"""Messages of the primary, secondary and real-time ports, in the layouts that UR publishes.

A message of the primary port is a big-endian int32 with its size, these five bytes included, a byte
for its type, and its content. Type 16 is the state of the robot, ten times per second: sub-packages
with headers of the same form. Type 20 is a message: a time stamp, a source, a kind, and more. The
real-time port sends one package per control step: an int32 with its size and doubles in fixed
places, 1,220 bytes from software 5.10 on, 1,116 on a CB3.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain

from steelyard.twin._controller import SimulatedController

REAL_TIME_SIZE = 1220
"""Bytes of a package of the real-time port, software 5.10 and later."""

REAL_TIME_SIZE_CB3 = 1116
"""The same, for a CB3 (software 3.10 and later)."""

_E_SERIES = 5  # major version of the software
_STATE = 16
_MESSAGE = 20
_MODE_DATA = 0
_JOINT_DATA = 1
_TOOL_DATA = 2
_MASTERBOARD_DATA = 3
_CARTESIAN_INFO = 4
_FORCE_MODE_DATA = 7
_ADDITIONAL_INFO = 8
_TEXT = 0
_VERSION = 3
_RUNTIME_EXCEPTION = 10
_SOURCE_CONTROLLER = -2
_BUILD_DATE = b"simulated"
_ROBOT_VOLTAGE = 48.0  # [V]
_TEMPERATURE = 30.0  # of motors and boards, [deg C]
_SIX_ZEROS = (0.0,) * 6
_THREE_ZEROS = (0.0,) * 3


def robot_state(controller: SimulatedController) -> bytes:
    """The state of the robot, as the primary and secondary ports send it."""
    parts = (
        _mode_data(controller),
        _joint_data(controller),
        _tool_data(),
        _masterboard_data(controller),
        _cartesian_info(controller),
        _package(_FORCE_MODE_DATA, struct.pack(">7d", *_SIX_ZEROS, 0.0)),
        _package(_ADDITIONAL_INFO, struct.pack(">???B", controller.modes.hand, True, False, 0)),
    )
    return _package(_STATE, b"".join(parts))


def version_message(controller: SimulatedController) -> bytes:
    """The first message of a connection to the primary or secondary port."""
    major, minor, bugfix, build = controller.version
    name = b"URControl"
    content = struct.pack(">b", len(name)) + name
    content += struct.pack(">BBii", major, minor, bugfix, build) + _BUILD_DATE
    return _message(controller, _VERSION, content)


def text_message(controller: SimulatedController, words: str) -> bytes:
    """A text that a program sends."""
    return _message(controller, _TEXT, words.encode())


def runtime_exception(controller: SimulatedController, words: str) -> bytes:
    """The message about a program that was refused or has failed."""
    return _message(controller, _RUNTIME_EXCEPTION, struct.pack(">ii", 0, 0) + words.encode())


def real_time_state(controller: SimulatedController) -> bytes:
    """The package of the real-time port."""
    e_series = controller.version[0] >= _E_SERIES
    values = [*_motion_values(controller), *_machine_values(controller)]
    if e_series:
        payload = controller.payload
        values += [*_THREE_ZEROS, payload.mass, *payload.cog, *payload.inertia]
    size = REAL_TIME_SIZE if e_series else REAL_TIME_SIZE_CB3
    return struct.pack(f">i{len(values)}d", size, *values)


def _motion_values(controller: SimulatedController) -> list[float]:
    """Time, and fourteen vectors of six."""
    outputs = controller.outputs
    vectors = (
        "target_q target_qd target_qdd target_current target_moment actual_q actual_qd"
        " actual_current joint_control_output actual_TCP_pose actual_TCP_speed actual_TCP_force"
        " target_TCP_pose target_TCP_speed"
    )
    found = chain.from_iterable(outputs.get(name, _SIX_ZEROS) for name in vectors.split())
    return [outputs["timestamp"][0], *found]


def _machine_values(controller: SimulatedController) -> list[float]:
    """Inputs and outputs, temperatures, modes, voltages and the elbow."""
    outputs = controller.outputs
    reserved = (0.0, 0.0)
    return [
        0.0,  # digital inputs
        *outputs["joint_temperatures"],
        0.0,  # controller timer
        0.0,  # test value
        *outputs["robot_mode"],
        *outputs["joint_mode"],
        *outputs["safety_mode"],
        *_SIX_ZEROS,
        *_THREE_ZEROS,  # accelerometer of the tool
        *_SIX_ZEROS,
        *outputs["speed_scaling"],
        0.0,  # norm of the momentum
        *reserved,
        _ROBOT_VOLTAGE,  # main board
        _ROBOT_VOLTAGE,
        0.0,  # current of the robot
        *(_ROBOT_VOLTAGE,) * 6,
        *outputs["actual_digital_output_bits"],
        *outputs["runtime_state"],
        *_THREE_ZEROS,  # position of the elbow
        *_THREE_ZEROS,  # velocity of the elbow
        *outputs["safety_status"],
    ]


def _mode_data(controller: SimulatedController) -> bytes:
    modes = controller.modes
    slider = controller.registers.slider
    content = struct.pack(
        ">Q???????BBddd",
        _microseconds(controller),
        True,  # a robot is connected
        True,  # and enabled
        modes.robot > 3,
        modes.safety in (6, 7),
        modes.safety == 3,
        controller.program_state == "PLAYING",
        controller.program_state == "PAUSED",
        modes.robot,
        0,  # control mode: position
        slider,
        slider,
        1.0,  # limit of the speed fraction
    )
    if controller.version[0] >= _E_SERIES:
        content += b"\0"
    return _package(_MODE_DATA, content)


def _joint_data(controller: SimulatedController) -> bytes:
    outputs = controller.outputs
    q = outputs["actual_q"]
    target = outputs.get("target_q", q)
    v = outputs.get("actual_qd", _SIX_ZEROS)
    current = outputs.get("actual_current", _SIX_ZEROS)
    modes = outputs["joint_mode"]
    rows = zip(q, target, v, current, modes, strict=True)
    return _package(_JOINT_DATA, b"".join(_joint(*row) for row in rows))


def _joint(q: float, target: float, v: float, current: float, mode: float) -> bytes:
    electric = (current, _ROBOT_VOLTAGE, _TEMPERATURE, _TEMPERATURE)
    return struct.pack(">3d4fB", q, target, v, *electric, int(mode))


def _tool_data() -> bytes:
    content = struct.pack(">bbddfBffB", 0, 0, 0.0, 0.0, _ROBOT_VOLTAGE, 0, 0.0, _TEMPERATURE, 253)
    return _package(_TOOL_DATA, content)


def _masterboard_data(controller: SimulatedController) -> bytes:
    registers = controller.registers
    content = struct.pack(
        ">iibbddbbddffffBBbIBB",
        0,  # digital inputs
        int(controller.outputs["actual_digital_output_bits"][0]),
        *(0, 0, 0.0, 0.0),  # analogue inputs
        *(0, 0, *registers.analog),
        *(_TEMPERATURE, _ROBOT_VOLTAGE, 0.0, 0.0),
        controller.modes.safety,
        controller.modes.safety == 2,
        0,  # no Euromap67 interface
        0,
        0,
        0,
    )
    return _package(_MASTERBOARD_DATA, content)


def _cartesian_info(controller: SimulatedController) -> bytes:
    pose = controller.outputs.get("actual_TCP_pose", _SIX_ZEROS)
    return _package(_CARTESIAN_INFO, _doubles([*pose, *controller.tcp]))


def _doubles(values: Sequence[float]) -> bytes:
    return struct.pack(f">{len(values)}d", *values)


def _package(kind: int, content: bytes) -> bytes:
    return struct.pack(">iB", 5 + len(content), kind) + content


def _message(controller: SimulatedController, kind: int, content: bytes) -> bytes:
    head = struct.pack(">Qbb", _microseconds(controller), _SOURCE_CONTROLLER, kind)
    return _package(_MESSAGE, head + content)


def _microseconds(controller: SimulatedController) -> int:
    return int(1e6 * controller.outputs["timestamp"][0])
