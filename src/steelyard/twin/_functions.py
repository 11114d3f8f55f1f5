"""Functions of URScript that the simulated controller knows, by their names.

They are grouped by what they act on: motion, payload, state, registers and outputs, messages and
mathematics; those for sockets are in `_sockets`. A function that waits is a generator, see
`_interpreter`. Arguments have the names of URScript, so that a program can name them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from steelyard._arrays import Array
from steelyard.live._controller import ControllerPayload
from steelyard.twin._interpreter import Function, Pose, Value, Waiting
from steelyard.twin._kinematics import ToolKinematics, pose_of, transform
from steelyard.twin._motion import (
    DEFAULT_LOOKAHEAD_S,
    Motion,
    MoveJoints,
    MoveTool,
    Servo,
    SpeedJoints,
    SpeedTool,
    Stop,
    ToolStop,
)

if TYPE_CHECKING:
    from steelyard.twin._controller import SimulatedController

LARGEST_INERTIA = 133.0
"""Largest entry of an inertia that a controller accepts, [kg m^2]."""

WAITING = frozenset(
    [
        "movej",
        "movel",
        "movep",
        "servoj",
        "servoc",
        "speedj",
        "speedl",
        "stopj",
        "stopl",
        "sleep",
        "sync",
        "socket_open",
        "socket_read_ascii_float",
        "socket_read_binary_integer",
        "socket_read_byte_list",
        "socket_read_string",
        "socket_read_line",
    ]
)
"""Functions that take time; a `sec` program must not call them."""

_MAX_POSITION = 1e3  # of a joint, [rad]
_STEADY_SPEED = 0.01  # [rad/s]


def controller_functions(controller: SimulatedController) -> dict[str, Function]:
    """All functions that a program on this controller can call."""
    return {
        **_MATHEMATICS,
        **_Motions(controller).functions(),
        **_Payloads(controller).functions(),
        **_State(controller).functions(),
        **_RegisterFunctions(controller).functions(),
        **_LogFunctions(controller).functions(),
        **controller.sockets.functions(),
        **_accepted(),
    }


class _Motions:
    """Functions that move the arm; they return when the motion has come to its end."""

    def __init__(self, controller: SimulatedController) -> None:
        self._controller = controller
        self._arm = controller.arm

    def functions(self) -> dict[str, Function]:
        return {
            "movej": self._movej,
            "movel": self._movel,
            "movep": self._movel,
            "servoj": self._servoj,
            "servoc": self._movel,
            "speedj": self._speedj,
            "speedl": self._speedl,
            "stopj": self._stopj,
            "stopl": self._stopl,
            "sleep": self._sleep,
            "sync": self._sync,
        }

    @property
    def _kinematics(self) -> ToolKinematics:
        return self._controller.kinematics

    def _perform(self, motion: Motion) -> Waiting:
        """Waits until a motion has ended; a killed thread releases the arm, too."""
        if self._arm.busy:
            raise ValueError("another thread moves the arm already")
        self._arm.start(motion)
        try:
            while not motion.finished:
                yield
        finally:
            self._arm.release(motion)

    def _posture(self, goal: Sequence[float]) -> Array:
        """Joint positions, (6,) [rad], of joint positions or a pose."""
        if isinstance(goal, Pose):
            return self._kinematics.inverse(np.array(goal, dtype=float), self._arm.target.q)
        return _joints(goal)

    def _movej(
        self, q: Value, a: float = 1.4, v: float = 1.05, t: float = 0.0, r: float = 0.0
    ) -> Waiting:
        _require_positive(a, v)
        yield from self._perform(MoveJoints(self._posture(q), v, a, t))

    def _movel(
        self, pose: Value, a: float = 1.2, v: float = 0.25, t: float = 0.0, r: float = 0.0
    ) -> Waiting:
        _require_positive(a, v)
        goal = np.array(pose, dtype=float)
        if not isinstance(pose, Pose):
            goal = self._kinematics.pose(_joints(pose))
        yield from self._perform(MoveTool(goal, v, a, t, kinematics=self._kinematics))

    def _servoj(
        self,
        q: Value,
        a: float = 0.0,
        v: float = 0.0,
        t: float = 0.002,
        lookahead_time: float = DEFAULT_LOOKAHEAD_S,
        gain: float = 300,
    ) -> Waiting:
        lookahead_s = min(max(lookahead_time, 0.03), 0.2)
        yield from self._perform(Servo(self._posture(q), t, lookahead_s))

    def _speedj(self, qd: Value, a: float = 1.4, t: float = 0.0) -> Waiting:
        _require_positive(a)
        yield from self._perform(SpeedJoints(_joints(qd), a, t))

    def _speedl(self, xd: Value, a: float = 1.2, t: float = 0.0, aRot: float = 0.0) -> Waiting:
        _require_positive(a)
        yield from self._perform(SpeedTool(_joints(xd), a, t, self._kinematics))

    def _stopj(self, a: float = 2.0) -> Waiting:
        _require_positive(a)
        yield from self._perform(Stop(a))

    def _stopl(self, a: float = 3.0, aRot: float = 0.0) -> Waiting:
        _require_positive(a)
        yield from self._perform(ToolStop(a, self._kinematics))

    def _sleep(self, t: float) -> Waiting:
        for _ in range(max(round(float(t) / self._arm.step_s), 1)):
            yield

    def _sync(self) -> Waiting:
        yield


class _Payloads:
    """Functions that set and read the payload that is set in the controller."""

    def __init__(self, controller: SimulatedController) -> None:
        self._controller = controller

    def functions(self) -> dict[str, Function]:
        return {
            "set_payload": self._set_payload,
            "set_payload_mass": lambda m: self._change(mass=m),
            "set_payload_cog": lambda CoG: self._change(cog=CoG),
            "set_target_payload": self._set_target_payload,
            "get_target_payload": lambda: self._controller.payload.mass,
            "get_target_payload_cog": lambda: list(self._controller.payload.cog),
            "get_target_payload_inertia": lambda: list(self._controller.payload.inertia),
        }

    def _set_payload(self, m: float, cog: Value = (0.0, 0.0, 0.0)) -> None:
        self._set(m, cog, (0.0,) * 6)

    def _set_target_payload(
        self,
        m: float,
        cog: Value = (0.0, 0.0, 0.0),
        inertia: Value = (0.0,) * 6,
        transition_time: float = 0.0,
    ) -> None:
        self._set(m, cog, inertia, float(transition_time))

    def _change(self, mass: float | None = None, cog: Value = None) -> None:
        """Changes one of the two and keeps the other."""
        payload = self._controller.payload
        if mass is None:
            mass = payload.mass
        if cog is None:
            cog = payload.cog
        self._set(mass, cog, payload.inertia)

    def _set(self, mass: float, cog: Value, inertia: Value, transition_s: float = 0.0) -> None:
        cog = tuple(float(x) for x in cog)
        inertia = tuple(float(x) for x in inertia)
        if len(cog) != 3 or len(inertia) != 6:
            raise ValueError(
                "it takes a mass, a centre of gravity of three, and an inertia of six numbers"
            )
        if mass < 0 or min(inertia[:3]) < 0 or max(map(abs, inertia)) > LARGEST_INERTIA:
            raise ValueError(
                f"no mass and no moment is negative, no inertia above {LARGEST_INERTIA:g} kg m^2"
            )
        payload = ControllerPayload(float(mass), cog, inertia)
        self._controller.set_payload(payload, transition_s)


class _State:
    """Functions that read the state of the arm."""

    def __init__(self, controller: SimulatedController) -> None:
        self._controller = controller

    def functions(self) -> dict[str, Function]:
        return {
            "get_actual_joint_positions": lambda: self._output("actual_q"),
            "get_actual_joint_positions_history": self._history,
            "get_actual_joint_speeds": lambda: self._output("actual_qd"),
            "get_target_joint_positions": lambda: self._controller.arm.target.q.tolist(),
            "get_target_joint_speeds": lambda: self._controller.arm.target.v.tolist(),
            "get_target_joint_accelerations": lambda: self._controller.arm.target.a.tolist(),
            "get_joint_torques": lambda: self._output("target_moment"),
            "get_joint_temp": lambda j: self._output("joint_temperatures")[int(j)],
            "get_actual_tcp_pose": self._tool_pose,
            "get_target_tcp_pose": lambda: self._pose(self._controller.arm.target.q),
            "get_actual_tcp_speed": lambda: [0.0] * 6,
            "get_target_tcp_speed": self._target_tool_speed,
            "get_actual_tool_flange_pose": self._flange_pose,
            "get_target_waypoint": lambda: self._pose(self._controller.arm.target.q),
            "get_forward_kin": self._forward,
            "get_inverse_kin": self._inverse,
            "get_inverse_kin_has_solution": self._has_solution,
            "get_tcp_offset": lambda: Pose(self._controller.tcp),
            "set_tcp": self._set_tcp,
            "is_steady": self._is_steady,
            "is_within_safety_limits": lambda q: True,
            "get_steptime": lambda: self._controller.arm.step_s,
            "get_speed_scaling": lambda: self._controller.arm.scaling,
            "force": lambda: 0.0,
            "get_tcp_force": lambda: [0.0] * 6,
            "get_controller_temp": lambda: 35.0,
            "get_freedrive_status": lambda: 0,
            "tool_contact": lambda direction=None: 0,
            "get_robot_mode": lambda: self._controller.modes.robot,
            "get_safety_mode": lambda: self._controller.modes.safety,
        }

    def _output(self, name: str) -> list[float]:
        return list(self._controller.outputs.get(name, (0.0,) * 6))

    def _history(self, steps: int = 0) -> list[float]:
        return self._output("actual_q")

    def _pose(self, q: Array) -> Pose:
        return Pose(self._controller.kinematics.pose(q).tolist())

    def _tool_pose(self) -> Pose:
        return self._pose(np.array(self._output("actual_q")))

    def _flange_pose(self) -> Pose:
        kinematics = ToolKinematics(self._controller.robot)
        return Pose(kinematics.pose(np.array(self._output("actual_q"))).tolist())

    def _target_tool_speed(self) -> list[float]:
        target = self._controller.arm.target
        velocity: list[float] = (self._controller.kinematics.jacobian(target.q) @ target.v).tolist()
        return velocity

    def _forward(self, q: Value = None, tcp: Value = None) -> Pose:
        if q is None:
            return self._tool_pose()
        if tcp is None:
            return self._pose(_joints(q))
        kinematics = ToolKinematics(self._controller.robot, [float(x) for x in tcp])
        return Pose(kinematics.pose(_joints(q)).tolist())

    def _inverse(
        self, x: Value, qnear: Value = None, maxPositionError: float = 1e-10, *_: Value
    ) -> list[float]:
        near = self._controller.arm.target.q if qnear is None else _joints(qnear)
        q: list[float] = self._controller.kinematics.inverse(np.array(x), near).tolist()
        return q

    def _has_solution(self, x: Value, qnear: Value = None, *_: Value) -> bool:
        try:
            self._inverse(x, qnear)
        except ValueError:
            return False
        return True

    def _set_tcp(self, pose: Value, tcp_name: str = "") -> None:
        self._controller.tcp = tuple(float(x) for x in pose)

    def _is_steady(self) -> bool:
        return max(map(abs, self._output("actual_qd"))) < _STEADY_SPEED


class _RegisterFunctions:
    """Functions for registers, digital and analogue outputs."""

    def __init__(self, controller: SimulatedController) -> None:
        self._registers = controller.registers

    def functions(self) -> dict[str, Function]:
        registers = self._registers
        return {
            "read_input_integer_register": lambda address: registers.input("int", address),
            "read_input_float_register": lambda address: registers.input("double", address),
            "read_input_boolean_register": lambda address: registers.input("bit", address),
            "read_output_integer_register": lambda address: registers.output("int", address),
            "read_output_float_register": lambda address: registers.output("double", address),
            "read_output_boolean_register": lambda address: registers.output("bit", address),
            "write_output_integer_register": self._writer("int"),
            "write_output_float_register": self._writer("double"),
            "write_output_boolean_register": self._writer("bit"),
            "set_digital_out": lambda n, b: registers.set_digital(int(n), bool(b)),
            "set_standard_digital_out": lambda n, b: registers.set_digital(int(n), bool(b)),
            "set_configurable_digital_out": lambda n, b: registers.set_digital(int(n) + 8, bool(b)),
            "set_tool_digital_out": lambda n, b: registers.set_digital(int(n) + 16, bool(b)),
            "get_digital_out": lambda n: registers.digital(int(n)),
            "get_standard_digital_out": lambda n: registers.digital(int(n)),
            "get_configurable_digital_out": lambda n: registers.digital(int(n) + 8),
            "get_digital_in": lambda n: False,
            "get_standard_digital_in": lambda n: False,
            "set_analog_out": lambda n, f: registers.set_analog(int(n), float(f)),
            "set_standard_analog_out": lambda n, f: registers.set_analog(int(n), float(f)),
            "get_analog_out": lambda n: registers.analog[int(n)],
            "get_standard_analog_in": lambda n: 0.0,
        }

    def _writer(self, kind: str) -> Function:
        return lambda address, value: self._registers.write_output(kind, address, value)


class _LogFunctions:
    """Functions whose effect is a line of the log."""

    def __init__(self, controller: SimulatedController) -> None:
        self._controller = controller

    def functions(self) -> dict[str, Function]:
        return {
            "textmsg": self._textmsg,
            "popup": self._popup,
            "protective_stop": lambda: self._controller.fault("protective-stop"),
            "rtde_set_watchdog": self._controller.set_watchdog,
        }

    def _textmsg(self, s1: Value, s2: Value = "") -> None:
        self._controller.say(f"{_text(s1)}{_text(s2)}")

    def _popup(
        self,
        s: Value,
        title: str = "Popup",
        warning: bool = False,
        error: bool = False,
        blocking: bool = False,
    ) -> None:
        self._controller.popup = _text(s)
        self._controller.log.append(f"popup: {_text(s)}")


def _accepted() -> dict[str, Function]:
    """Functions that are accepted and have no effect on this arm."""
    names = (
        "force_mode end_force_mode force_mode_set_damping force_mode_set_gain_scaling"
        " freedrive_mode end_freedrive_mode teach_mode end_teach_mode zero_ftsensor set_gravity"
        " ft_rtde_input_enable enable_external_ft_sensor set_safety_mode_transition_hardness"
        " set_standard_analog_input_domain set_tool_voltage set_input_actions_to_default"
        " reset_revolution_counter step_back"
    )
    return dict.fromkeys(names.split(), lambda *args, **named: None)


def _joints(values: Value) -> Array:
    """Six numbers, such as joint positions [rad]."""
    found = np.array(values, dtype=float)
    if found.shape != (6,) or not np.abs(found).max() <= _MAX_POSITION:
        raise ValueError("it takes six numbers, one for each joint")
    return found


def _require_positive(*values: float) -> None:
    if min(values) <= 0:
        raise ValueError("speed and acceleration must be positive")


def _text(value: Value) -> str:
    if isinstance(value, Pose):
        return f"p{list(value)}"
    return str(value)


def _norm(a: Value) -> float:
    if isinstance(a, list):
        return math.hypot(*a)
    return abs(float(a))


def _pose_trans(p_from: Value, p_from_to: Value) -> Pose:
    return Pose(pose_of(transform(p_from) @ transform(p_from_to)).tolist())


def _pose_inv(p_from: Value) -> Pose:
    return Pose(pose_of(np.asarray(np.linalg.inv(transform(p_from)), dtype=float)).tolist())


def _pose_sub(p_to: Value, p_from: Value) -> Pose:
    turned = transform(p_to)[:3, :3] @ transform(p_from)[:3, :3].T
    T = np.eye(4)
    T[:3, :3] = turned
    T[:3, 3] = np.array(p_to[:3]) - np.array(p_from[:3])
    return Pose(pose_of(T).tolist())


def _pose_add(p_1: Value, p_2: Value) -> Pose:
    T = np.eye(4)
    T[:3, :3] = transform(p_1)[:3, :3] @ transform(p_2)[:3, :3]
    T[:3, 3] = np.array(p_1[:3]) + np.array(p_2[:3])
    return Pose(pose_of(T).tolist())


def _integer(s: Value) -> int:
    return int(float(s))


_MATHEMATICS: dict[str, Function] = {
    "norm": _norm,
    "length": len,
    "abs": abs,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "atan2": math.atan2,
    "sqrt": math.sqrt,
    "pow": pow,
    "log": lambda b, f: math.log(f, b),
    "ceil": math.ceil,
    "floor": math.floor,
    "d2r": math.radians,
    "r2d": math.degrees,
    "pose_trans": _pose_trans,
    "pose_inv": _pose_inv,
    "pose_sub": _pose_sub,
    "pose_add": _pose_add,
    "to_num": float,
    "to_str": lambda val: _text(val),
    "str_cat": lambda op1, op2: f"{_text(op1)}{_text(op2)}",
    "str_len": len,
    "get_list_length": len,
    "integer_to_binary_list": lambda x: [bool(_integer(x) >> k & 1) for k in range(32)],
    "binary_list_to_integer": lambda values: sum(1 << k for k, x in enumerate(values) if x),
}
