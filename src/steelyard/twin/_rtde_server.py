"""A simulated controller's side of one RTDE connection: bytes in, bytes out."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import chain

from steelyard.errors import SourceFailed
from steelyard.live._rtde import LONGEST_NAMES, NOT_FOUND, TYPES, Package, PackageKind, Recipe
from steelyard.twin._controller import SimulatedController
from steelyard.twin._registers import register_types

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
_OUTPUT_TYPES |= register_types("output")
_INPUT_TYPES = register_types("input")
_INPUT_TYPES |= {
    f"{x}_digital_output{y}": "UINT8" for x in ("standard", "tool") for y in ("", "_mask")
}
_INPUT_TYPES |= {f"configurable_digital_output{x}": "UINT8" for x in ("", "_mask")}
_INPUT_TYPES |= {f"standard_analog_output_{x}": "UINT8" for x in ("mask", "type")}
_INPUT_TYPES |= {f"standard_analog_output_{x}": "DOUBLE" for x in ("0", "1")}
_INPUT_TYPES |= {
    "speed_slider_mask": "UINT32",
    "speed_slider_fraction": "DOUBLE",
    "external_force_torque": "VECTOR6D",
}
_ZEROS = {kind: (0,) * int(form[:-1] or 1) for kind, form in TYPES.items()}


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
        self._input_recipes: list[Recipe] = []
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
        if kind is PackageKind.VERSION:
            accepted = content in (b"\0\1", b"\0\2")
            yield Package(kind, bytes([accepted]))
            if accepted:
                self._version = content[1]
        elif kind is PackageKind.CONTROLLER:
            yield Package(kind, struct.pack(">4I", *self._controller.version))
        elif kind is PackageKind.OUTPUTS:
            yield from self._output_types(content)
        elif kind is PackageKind.INPUTS:
            yield self._input_types(_names(content))
        elif kind is PackageKind.DATA:
            self._take_inputs(content)
        elif kind in (PackageKind.START, PackageKind.PAUSE):
            accepted = kind is PackageKind.PAUSE or self._recipe is not None
            self._started = kind is PackageKind.START and accepted
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
        missing = self._controller.missing_outputs
        types = tuple(
            NOT_FOUND if name in missing else _OUTPUT_TYPES.get(name, NOT_FOUND) for name in names
        )
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
        yield Package(PackageKind.OUTPUTS, head + ",".join(types).encode())

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
            recipe_number = len(self._input_recipes) + 1
            self._input_recipes.append(Recipe(tuple(names), tuple(types), recipe_number))
        return Package(PackageKind.INPUTS, bytes([recipe_number]) + ",".join(types).encode())

    def _take_inputs(self, content: bytes) -> None:
        """Hands the inputs that a client has written to the controller."""
        number = content[0] if content else 0
        if not 1 <= number <= len(self._input_recipes):
            raise SourceFailed(f"there is no input recipe {number}")
        recipe = self._input_recipes[number - 1]
        values = recipe.values(content)
        if values is not None and len(recipe.columns) == len(recipe.names):
            self._controller.receive_inputs(dict(zip(recipe.names, values, strict=True)))
        elif values is not None:
            self._controller.receive_inputs(dict(zip(recipe.columns, values, strict=True)))


def _names(content: bytes) -> tuple[str, ...]:
    """Names between commas; some clients add a comma at the end."""
    return tuple(name for name in content.decode("ascii", "replace").split(",") if name)
