"""Faults of a simulated controller, switched on by name: `controller.fault("stall:0.3")`.

`FAULTS` lists them. Most last until `normal`; those that happen once say so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from steelyard.errors import UnknownName
from steelyard.live._controller import ControllerPayload

if TYPE_CHECKING:
    from steelyard.twin._controller import SimulatedController

_OTHER_PROGRAM = "def other_program():\n while True:\n  sleep(0.1)\n end\nend\n"
_EMERGENCY_DECELERATION = 10.0  # [rad/s^2]


class Fault(NamedTuple):
    """A kind of fault.

    Attributes:
        argument: what follows the name and a colon: '' for nothing, 'number' or 'word'
        effect: what it does, in words
        apply: switches it on, with the number or word
    """

    argument: str
    effect: str
    apply: Callable[[SimulatedController, float, str], None]


def checked_fault(request: str) -> tuple[str, float, str]:
    """The name of a fault, its number and its word; a refusal lists the known faults.

    Args:
        request: `NAME`, `NAME:NUMBER` or `NAME:WORD`
    """
    name, colon, word = request.partition(":")
    fault = FAULTS.get(name)
    with suppress(ValueError):
        if fault is not None and fault.argument == "number":
            if math.isfinite(float(word)):
                return name, float(word), word
        elif fault is not None and bool(colon and word) == bool(fault.argument):
            return name, 0.0, word
    raise UnknownName(f"there is no fault '{request}'; there are {', '.join(_spelled())}")


def _spelled() -> list[str]:
    """Every fault with the kind of its argument."""
    return [
        f"{name}:{fault.argument.upper()}" if fault.argument else name
        for name, fault in FAULTS.items()
    ]


def _modes(changes: Mapping[str, Any]) -> Callable[[SimulatedController, float, str], None]:
    """Changes modes of the controller."""

    def apply(controller: SimulatedController, number: float, word: str) -> None:
        controller.change_modes(controller.modes._replace(**changes))

    return apply


def _normal(controller: SimulatedController, number: float, word: str) -> None:
    controller.change_modes(type(controller.modes)())
    controller.missing_outputs.clear()
    controller.registers.slider = 1.0
    controller.skipping = 0


def _emergency_stop(controller: SimulatedController, number: float, word: str) -> None:
    controller.change_modes(controller.modes._replace(safety=7, robot=3))
    controller.arm.stop(_EMERGENCY_DECELERATION)


def _skip(controller: SimulatedController, number: float, word: str) -> None:
    controller.skipping = int(number) + 1


def _stall(controller: SimulatedController, number: float, word: str) -> None:
    controller.skipping = round(number * controller.backend.rate_hz) + 1


def _late(controller: SimulatedController, number: float, word: str) -> None:
    controller.modes = controller.modes._replace(late_s=number)


def _later(controller: SimulatedController, number: float, word: str) -> None:
    now = time.monotonic()
    controller.modes = controller.modes._replace(late_rate=number, late_from_s=now)


def _clock(controller: SimulatedController, number: float, word: str) -> None:
    controller.shift_clock(number)


def _close(controller: SimulatedController, number: float, word: str) -> None:
    controller.hang_up = "close"


def _reset(controller: SimulatedController, number: float, word: str) -> None:
    controller.hang_up = "reset"


def _reboot(controller: SimulatedController, number: float, word: str) -> None:
    controller.hang_up = "close"
    controller.reboot()


def _moved(controller: SimulatedController, number: float, word: str) -> None:
    controller.place(np.array(controller.outputs["actual_q"]) + number)


def _slider(controller: SimulatedController, number: float, word: str) -> None:
    controller.registers.slider = number


def _payload(controller: SimulatedController, number: float, word: str) -> None:
    controller.payload = ControllerPayload(number)


def _wrong_echo(controller: SimulatedController, number: float, word: str) -> None:
    controller.modes = controller.modes._replace(payload_error=number)


def _busy(controller: SimulatedController, number: float, word: str) -> None:
    controller.run(_OTHER_PROGRAM, by_operator=True)


def _missing(controller: SimulatedController, number: float, word: str) -> None:
    controller.missing_outputs.add(word)


def _serial(controller: SimulatedController, number: float, word: str) -> None:
    controller.serial_number = word


def _model(controller: SimulatedController, number: float, word: str) -> None:
    controller.model = word


FAULTS: dict[str, Fault] = {
    "skip": Fault("number", "this number of rows is never sent; once", _skip),
    "stall": Fault("number", "no rows for this time [s]; once", _stall),
    "mute": Fault("", "no rows any more, the connections stay open", _modes({"mute": True})),
    "late": Fault("number", "rows and answers come late by this time [s]", _late),
    "later": Fault("number", "rows and answers come ever later, by this time per second", _later),
    "clock": Fault("number", "the clock jumps by this time [s]; once", _clock),
    "close": Fault("", "closes all RTDE connections; once", _close),
    "reset": Fault("", "resets all RTDE connections; once", _reset),
    "reboot": Fault(
        "",
        "closes all connections; clock, program, payload and registers start anew; once",
        _reboot,
    ),
    "moved": Fault("number", "a hand moves every joint by this angle [rad]; once", _moved),
    "protective-stop": Fault("", "stops the arm and the program", _modes({"safety": 3})),
    "emergency-stop": Fault("", "stops the arm and switches it off", _emergency_stop),
    "power-off": Fault("", "switches the arm off", _modes({"robot": 3})),
    "reduced": Fault("", "safety mode reduced", _modes({"safety": 2})),
    "hand": Fault("", "the teach button is pressed", _modes({"hand": True})),
    "local": Fault("", "local control: scripts are ignored", _modes({"remote": False})),
    "busy": Fault("", "another program, `other_program`, is started; once", _busy),
    "slider": Fault("number", "the operator sets the speed, 0 to 1", _slider),
    "payload": Fault("number", "another client sets the payload, [kg]; once", _payload),
    "wrong-echo": Fault(
        "number", "every payload that is set becomes heavier by this mass [kg]", _wrong_echo
    ),
    "missing": Fault("word", "an output that new connections cannot get, by its name", _missing),
    "serial": Fault("word", "another serial number", _serial),
    "model": Fault("word", "another arm, such as UR5", _model),
    "normal": Fault("", "ends all faults that last, except serial and model", _normal),
}
"""Every fault by its name."""
