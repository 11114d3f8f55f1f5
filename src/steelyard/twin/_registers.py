"""Registers, digital and analogue outputs of a controller: written by clients and by programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_BITS_PER_WORD = 32
_WORD_BITS = 64  # bits 0 to 63 are sent in two words, the others one by one
_SETS = {"int": 48, "double": 48, "bit": 128}
_DIGITAL_GROUPS = {"standard": (0, 8), "configurable": (8, 8), "tool": (16, 2)}

REGISTER_TYPES = {"int": "INT32", "double": "DOUBLE", "bit": "BOOL"}
"""RTDE's type of each kind of register."""


def register_types(direction: str) -> dict[str, str]:
    """RTDE's type of each register, by its name; the direction is 'input' or 'output'."""
    found = {
        f"{direction}_{kind}_register_{k}": REGISTER_TYPES[kind]
        for kind, count in _SETS.items()
        for k in range(count)
    }
    found[f"{direction}_bit_registers0_to_31"] = "UINT32"
    found[f"{direction}_bit_registers32_to_63"] = "UINT32"
    return found


class Registers:
    """Registers and outputs with their present values."""

    def __init__(self) -> None:
        self.analog = [0.0, 0.0]
        self.slider = 1.0  # speed that the operator or a client asks for, 0 to 1
        self.written: set[str] = set()  # inputs that came since the last control step
        self._inputs: dict[str, list[Any]] = _empty()
        self._outputs: dict[str, list[Any]] = _empty()
        self._digital = 0
        self._client: dict[str, float] = {}  # the other inputs, by RTDE's names
        self._published: dict[str, Sequence[Any]] = {}

    # --- registers

    def input(self, kind: str, address: int) -> Any:
        """An input register: 'int', 'double' or 'bit', by its address."""
        return self._inputs[kind][_checked(kind, address)]

    def output(self, kind: str, address: int) -> Any:
        """An output register: 'int', 'double' or 'bit', by its address."""
        return self._outputs[kind][_checked(kind, address)]

    def write_output(self, kind: str, address: int, value: Any) -> None:
        """Sets an output register: 'int', 'double' or 'bit', by its address."""
        convert = {"int": int, "double": float, "bit": bool}[kind]
        values = self._outputs[kind]
        values[_checked(kind, address)] = convert(value)
        self._published[f"output_{kind}_register_{int(address)}"] = (convert(value),)
        if kind == "bit" and address < _WORD_BITS:
            first = int(address) // _BITS_PER_WORD * _BITS_PER_WORD
            last = first + _BITS_PER_WORD - 1
            word = sum(1 << k for k, on in enumerate(values[first : last + 1]) if on)
            self._published[f"output_bit_registers{first}_to_{last}"] = (word,)

    # --- digital and analogue outputs

    def digital(self, number: int) -> bool:
        """A digital output: 0 to 7 standard, 8 to 15 configurable, 16 and 17 tool."""
        return bool(self._digital >> number & 1)

    def set_digital(self, number: int, on: bool) -> None:
        """Switches a digital output, numbered as for `digital`."""
        if not 0 <= number < 18:
            raise ValueError(f"there is no digital output {number}")
        self._digital = self._digital & ~(1 << number) | int(on) << number

    def set_analog(self, number: int, level: float) -> None:
        """Sets an analogue output to a level, 0 to 1."""
        self.analog[number] = level

    # --- clients

    def receive(self, values: Mapping[str, float]) -> None:
        """Takes the inputs that a client has written, `values` by RTDE's names."""
        self.written.update(values)
        others = {}
        for name, value in values.items():
            if not self._take_register(name, value):
                others[name] = value
        if others:
            self._client.update(others)
            self._act(others)

    def _take_register(self, name: str, value: float) -> bool:
        if name.startswith("input_bit_registers"):
            first = int(name.removeprefix("input_bit_registers").split("_")[0])
            for k in range(_BITS_PER_WORD):
                self._inputs["bit"][first + k] = bool(int(value) >> k & 1)
            return True
        if not name.startswith("input_"):
            return False
        _, kind, _, address = name.split("_")
        self._inputs[kind][int(address)] = value
        return True

    def _act(self, given: Mapping[str, float]) -> None:
        client = self._client
        if "speed_slider_fraction" in given and client.get("speed_slider_mask"):
            self.slider = min(max(client["speed_slider_fraction"], 0.0), 1.0)
        for group, (first, count) in _DIGITAL_GROUPS.items():
            mask = int(client.get(f"{group}_digital_output_mask", 0))
            if f"{group}_digital_output" in given:
                for k in range(count):
                    if mask >> k & 1:
                        on = int(client[f"{group}_digital_output"]) >> k & 1
                        self.set_digital(first + k, bool(on))
        for k in range(2):
            name = f"standard_analog_output_{k}"
            if name in given and int(client.get("standard_analog_output_mask", 0)) >> k & 1:
                self.set_analog(k, client[name])

    def rtde_outputs(self) -> dict[str, Sequence[Any]]:
        """Those that are not zero, by RTDE's names of outputs."""
        return {
            **self._published,
            "actual_digital_output_bits": (self._digital,),
            "standard_analog_output0": (self.analog[0],),
            "standard_analog_output1": (self.analog[1],),
        }


def _empty() -> dict[str, list[Any]]:
    zeros = {"int": 0, "double": 0.0, "bit": False}
    return {kind: [zeros[kind]] * count for kind, count in _SETS.items()}


def _checked(kind: str, address: int) -> int:
    if not 0 <= int(address) < _SETS[kind]:
        raise ValueError(f"there is no {kind} register {address}")
    return int(address)
