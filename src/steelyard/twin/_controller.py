"""State of a simulated Universal Robots controller, step by step; no sockets and no clock.

The controller has modes, a payload, a program that moves the arm, a log, and the arm behind it: in
MuJoCo or from a recording (`_backend`). `RtdeServer` is its side of one RTDE connection. As on a
real controller, `timestamp` counts control steps since the start; it begins at 100 s because some
clients distrust a controller that has just started. Faults are switched on by name, see `fault`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, cycle
from typing import Any, NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import SourceFailed, UnknownName
from steelyard.live._controller import ControllerPayload
from steelyard.live._rtde import LONGEST_NAMES, NOT_FOUND, TYPES, Kind, Package, Recipe
from steelyard.live._ur_modes import ROBOT_MODES, SAFETY_MODES
from steelyard.trajectory import Trajectory
from steelyard.twin._backend import Backend, tool_pose
from steelyard.twin._program import Program

_FIRST_TIMESTAMP_S = 100.0
_REGISTERS = {"int": "INT32", "double": "DOUBLE", "bit": "BOOL"}
_OUTPUT_NAMES = {
    "DOUBLE": "timestamp payload speed_scaling target_speed_fraction actual_execution_time"
    " actual_momentum"
    " actual_main_voltage actual_robot_voltage actual_robot_current standard_analog_input0"
    " standard_analog_input1 standard_analog_output0 standard_analog_output1",
    "VECTOR3D": "payload_cog target_gravity actual_tool_accelerometer",
    "VECTOR6D": "target_q target_qd target_qdd target_current target_moment target_TCP_pose"
    " target_TCP_speed"
    " actual_q actual_qd actual_current actual_TCP_pose actual_TCP_speed actual_TCP_force"
    " joint_temperatures"
    " joint_control_output payload_inertia tcp_offset ft_raw_wrench actual_joint_voltage",
    "INT32": "robot_mode safety_mode safety_status",
    "UINT32": "robot_status_bits safety_status_bits runtime_state",
    "UINT64": "actual_digital_input_bits actual_digital_output_bits",
    "VECTOR6INT32": "joint_mode",
}
_OUTPUT_TYPES = {name: kind for kind, names in _OUTPUT_NAMES.items() for name in names.split()}
_OUTPUT_TYPES |= {
    f"output_{word}_register_{k}": kind for word, kind in _REGISTERS.items() for k in range(48)
}
_INPUT_TYPES = {
    f"input_{word}_register_{k}": kind for word, kind in _REGISTERS.items() for k in range(48)
}
_INPUT_TYPES |= {
    f"{x}_digital_output{y}": "UINT8" for x in ("standard", "tool") for y in ("", "_mask")
}
_INPUT_TYPES |= {f"configurable_digital_output{x}": "UINT8" for x in ("", "_mask")}
_INPUT_TYPES |= {f"standard_analog_output_{x}": "UINT8" for x in ("mask", "type")}
_INPUT_TYPES |= {f"standard_analog_output_{x}": "DOUBLE" for x in ("0", "1")}
_INPUT_TYPES |= {f"input_bit_registers{x}": "UINT32" for x in ("0_to_31", "32_to_63")}
_INPUT_TYPES |= {
    "speed_slider_mask": "UINT32",
    "speed_slider_fraction": "DOUBLE",
    "external_force_torque": "VECTOR6D",
}
_ZEROS = {kind: (0,) * int(form[:-1] or 1) for kind, form in TYPES.items()}
_ROBOT_OFF = 3
_ROBOT_RUNNING = 7
_SAFETY_OK = (1, 2)
_JOINT_OFF = 239
_JOINT_RUNNING = 253
_TEACH_BUTTON_BIT = 4  # of robot_status_bits


class _Modes(NamedTuple):
    """Modes of a controller.

    Attributes:
        robot: RTDE's `robot_mode`
        safety: RTDE's `safety_mode`
        hand: whether the teach button is pressed
        slider: speed slider, 0 to 1
        remote: whether it accepts scripts, as in Remote Control
        mute: whether it has stopped sending without closing the connection
    """

    robot: int = _ROBOT_RUNNING
    safety: int = 1
    hand: bool = False
    slider: float = 1.0
    remote: bool = True
    mute: bool = False

    @property
    def run(self) -> bool:
        """Whether the arm may move."""
        return self.robot == _ROBOT_RUNNING and self.safety in _SAFETY_OK


_FAULTS: Mapping[str, Mapping[str, Any]] = {
    "protective-stop": {"safety": 3},
    "emergency-stop": {"safety": 7, "robot": _ROBOT_OFF},
    "power-off": {"robot": _ROBOT_OFF},
    "hand": {"hand": True},
    "local": {"remote": False},
    "mute": {"mute": True},
    "normal": _Modes()._asdict(),
}
_FAULTS_WITH_NUMBER = ("skip", "slider", "payload")
_HANG_UPS = ("close", "reset", "reboot")


class SimulatedController:
    """A simulated controller.

    Args:
        backend: the arm behind it
        version: version of its software; major 3 is a CB3
    """

    def __init__(self, backend: Backend, *, version: Sequence[int] = (5, 12, 4, 1101661)) -> None:
        self.backend = backend
        self.version = tuple(version)
        self.modes = _Modes()
        self.log: list[str] = []
        self.payload = ControllerPayload()
        self.owners: dict[str, object] = {}  # the connection that writes each input
        self.outputs: dict[str, Sequence[float]] = {}
        self.skipping = 0  # number of rows that are not sent
        self.hang_up = ""  # "close" or "reset" to end all connections
        self._start_s = _FIRST_TIMESTAMP_S
        self._moves = False
        self._program: Iterator[Array] = iter(())
        self.step()

    def step(self) -> None:
        """Advances by one control step."""
        command = None
        if self.modes.run:
            command = next(self._program, None)
        self._moves = command is not None
        t, outputs = self.backend.step(command, self.payload)
        if self.backend.over and self.modes.robot == _ROBOT_RUNNING:
            self.modes = self.modes._replace(robot=_ROBOT_OFF)
            self.log.append("the recording has ended: the arm is switched off")
        self.skipping = max(self.skipping - 1, 0)
        modes = self.modes
        robot = self.backend.robot
        bits = (modes.robot > _ROBOT_OFF) + 2 * self._moves + _TEACH_BUTTON_BIT * modes.hand
        self.outputs = {
            **outputs,
            "timestamp": (self._start_s + t,),
            "robot_mode": (modes.robot,),
            "safety_mode": (modes.safety,),
            "safety_status": (modes.safety,),
            "joint_mode": (_JOINT_RUNNING if modes.robot == _ROBOT_RUNNING else _JOINT_OFF,) * 6,
            "runtime_state": (2 if self._moves else 1,),
            "robot_status_bits": (bits,),
            "safety_status_bits": (1 << (modes.safety - 1),),
            "speed_scaling": (modes.slider,),
            "target_speed_fraction": (modes.slider,),
            "joint_temperatures": (30.0,) * 6,
            "payload": (self.payload.mass,),
            "payload_cog": self.payload.cog,
            "payload_inertia": self.payload.inertia,
        }
        if robot is not None:
            self.outputs["actual_TCP_pose"] = tool_pose(robot, outputs["actual_q"])
            self.outputs["target_gravity"] = robot.gravity_base.tolist()

    def run(self, text: str) -> None:
        """Accepts a script; the only answer is the log.

        Args:
            text: text of a program
        """
        if not self.modes.remote:
            return self.log.append("a script was ignored: not in remote control")
        try:
            program = Program.parsed(text)
        except SourceFailed as error:
            return self.log.append(f"a script was refused: {error}")
        self.log.append(f"{program.kind} {program.name} runs")
        for payload in program.payloads():
            self.payload = payload
        if program.kind == "def":
            self._program = program.targets(self._commanded, 1 / self.backend.rate_hz)

    def repeat(self, trajectory: Trajectory) -> None:
        """Repeats a trajectory for ever, like a program that ran before.

        Args:
            trajectory: begins at the present posture
        """
        step_s = 1 / self.backend.rate_hz
        q, _, _ = trajectory.at(
            step_s * np.arange(round(trajectory.duration_s / step_s), dtype=float)
        )
        self._program = cycle(q)

    @property
    def seconds(self) -> float:
        """Time since it was switched on, [s]."""
        return self.outputs["timestamp"][0] - self._start_s

    @property
    def _commanded(self) -> Array:
        """Commanded joint positions, (6,) [rad]."""
        return np.array(self.outputs.get("target_q", self.outputs["actual_q"]))

    def fault(self, request: str) -> None:
        """Switches a fault on, or all faults off.

        Args:
            request: `skip:ROWS`, `mute`, `close`, `reset`, `reboot`, `protective-stop`,
                `emergency-stop`, `hand`, `power-off`, `slider:SHARE`, `payload:KG`, `local`, or
                `normal`
        """
        name, number = checked_fault(request)
        if name in _FAULTS:
            self.modes = self.modes._replace(**_FAULTS[name])
            if not self.modes.run:
                self._program = iter(())
        elif name in _HANG_UPS:
            self.hang_up = "close"
            if name == "reset":
                self.hang_up = "reset"
            if name == "reboot":
                self._start_s -= self.outputs["timestamp"][0]
                self._program = iter(())
                self.payload = ControllerPayload()
        elif name == "skip":
            self.skipping = int(number) + 1
        elif name == "slider":
            self.modes = self.modes._replace(slider=number)
        elif name == "payload":
            self.payload = ControllerPayload(number)
        self.log.append(f"fault: {request}")

    def dashboard(self, line: str) -> str:
        """The answer to a line on the dashboard's port; `fault NAME` is an addition of ours.

        Args:
            line: as received
        """
        words = line.strip()
        if words.startswith("fault "):
            try:
                self.fault(words.removeprefix("fault ").strip())
            except UnknownName as error:
                return str(error)
            return "Fault: on"
        if words == "stop":
            self._program = iter(())
        return self._answers().get(words.lower(), f"could not understand: '{words}'")

    def _answers(self) -> dict[str, str]:
        mode = ROBOT_MODES[self.modes.robot].split(",")[0].upper().replace(" ", "_")
        safety = SAFETY_MODES[self.modes.safety].upper().replace(" ", "_")
        robot = self.backend.robot
        return {
            "polyscopeversion": f"URSoftware {'.'.join(map(str, self.version))} (simulated)",
            "robotmode": f"Robotmode: {mode}",
            "safetystatus": f"Safetystatus: {safety}",
            "is in remote control": str(self.modes.remote).lower(),
            "get serial number": "20200000001",
            "get robot model": "" if robot is None else robot.name.upper().removesuffix("E"),
            "programstate": f"{'PLAYING' if self._moves else 'STOPPED'} steelyard",
            "running": f"Program running: {str(self._moves).lower()}",
            "stop": "Stopped",
            "quit": "Disconnected",
        }


def checked_fault(request: str) -> tuple[str, float]:
    """The name of a fault and its number, or a refusal that lists the known faults.

    Args:
        request: as for `SimulatedController.fault`
    """
    name, _, text = request.partition(":")
    with suppress(ValueError):
        if name in _FAULTS_WITH_NUMBER:
            return name, float(text)
        if name in (*_FAULTS, *_HANG_UPS):
            return name, 0.0
    known = [*_FAULTS, *_HANG_UPS, *(f"{x}:NUMBER" for x in _FAULTS_WITH_NUMBER)]
    raise UnknownName(f"there is no fault '{request}'; there are {', '.join(known)}")


class RtdeServer:
    """A controller's side of one RTDE connection: bytes in, bytes out.

    Args:
        controller: the controller whose outputs are sent
    """

    def __init__(self, controller: SimulatedController) -> None:
        self._controller = controller
        self._buffer = bytearray()
        self._version = 1
        self._recipe: Recipe | None = None
        self._steps_per_row = 1
        self._started = False
        self._input_recipes = 0
        self._step = -1

    def receive(self, data: bytes) -> bytes:
        """The answers to bytes of a client; raises `SourceFailed` where they are not RTDE.

        Args:
            data: bytes as received
        """
        self._buffer += data
        return b"".join(
            answer.encoded() for p in Package.cut(self._buffer) for answer in self._answers(p)
        )

    def row(self) -> bytes:
        """The data package of the present step; empty where no row is due."""
        self._step += 1
        recipe = self._recipe
        outputs = self._controller.outputs
        if recipe is None or not self._started or self._step % self._steps_per_row:
            return b""
        groups = (
            outputs.get(name, _ZEROS[kind])
            for name, kind in zip(recipe.names, recipe.types, strict=True)
        )
        return recipe.package(tuple(chain.from_iterable(groups))).encoded()

    def close(self) -> None:
        """Releases the inputs of this client."""
        owners = self._controller.owners
        for name in [name for name, owner in owners.items() if owner is self]:
            del owners[name]

    def _answers(self, package: Package) -> Iterator[Package]:
        kind, content = package
        if kind is Kind.VERSION:
            accepted = content in (b"\0\1", b"\0\2")
            yield Package(kind, bytes([accepted]))
            if accepted:
                self._version = content[1]
        elif kind is Kind.CONTROLLER:
            yield Package(kind, struct.pack(">4I", *self._controller.version))
        elif kind is Kind.OUTPUTS:
            yield from self._output_types(content)
        elif kind is Kind.INPUTS:
            yield self._input_types(_names(content))
        elif kind in (Kind.START, Kind.PAUSE):
            accepted = kind is Kind.PAUSE or self._recipe is not None
            self._started = kind is Kind.START and accepted
            yield Package(kind, bytes([accepted]))

    def _output_types(self, content: bytes) -> Iterator[Package]:
        """The types of the requested outputs; an unknown output makes the recipe invalid."""
        self._recipe = None
        self._started = False
        rate_hz = self._controller.backend.rate_hz
        if self._version > 1:
            (requested_hz,) = struct.unpack(">d", content[:8])
            self._steps_per_row = max(int(rate_hz // min(max(requested_hz, 1.0), rate_hz)), 1)
            content = content[8:]
        names = _names(content)
        types = tuple(_OUTPUT_TYPES.get(name, NOT_FOUND) for name in names)
        if len(content) > LONGEST_NAMES:
            words = f"the names of the outputs are longer than {LONGEST_NAMES} bytes"
            yield Package.text(words, version=self._version, level=1)
            types = (NOT_FOUND,) * len(names)
        number = None
        head = b""
        if self._version > 1:
            number = 1
            head = bytes([number])
        if NOT_FOUND not in types:
            self._recipe = Recipe(names, types, number)
        yield Package(Kind.OUTPUTS, head + ",".join(types).encode())

    def _input_types(self, names: Sequence[str]) -> Package:
        """The types of the inputs that a client wants to write."""
        owners = self._controller.owners
        types = []
        for name in names:
            free = owners.get(name, self) is self
            types.append(_INPUT_TYPES.get(name, NOT_FOUND) if free else "IN_USE")
        recipe_number = 0
        if not {NOT_FOUND, "IN_USE"} & set(types):
            owners.update(dict.fromkeys(names, self))
            self._input_recipes += 1
            recipe_number = self._input_recipes
        return Package(Kind.INPUTS, bytes([recipe_number]) + ",".join(types).encode())


def _names(content: bytes) -> tuple[str, ...]:
    """Names between commas; some clients add a comma at the end."""
    return tuple(name for name in content.decode("ascii", "replace").split(",") if name)
