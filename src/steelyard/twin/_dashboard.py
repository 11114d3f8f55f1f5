"""The dashboard of a simulated controller: one line of text in, one line out.

Outside remote control it answers questions, and refuses the commands that act on the arm.
`fault NAME` is an addition of ours, for tests and demonstrations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from steelyard.errors import UnknownName
from steelyard.live._ur_modes import ROBOT_MODES, SAFETY_MODES

if TYPE_CHECKING:
    from steelyard.twin._controller import SimulatedController

GREETING = "Connected: Universal Robots Dashboard Server"
"""First line of every connection."""

_PROTECTIVE_STOP = 3
_ACTING = frozenset(
    ("stop", "play", "pause", "power on", "brake release", "power off", "unlock protective stop")
)


def answer(controller: SimulatedController, line: str) -> str:
    """The answer to a line.

    Args:
        controller: the controller that is asked
        line: as received
    """
    words = line.strip()
    command, _, argument = words.partition(" ")
    if command == "fault":
        return _fault(controller, argument.strip())
    if command == "popup":
        controller.popup = argument
        return "showing popup"
    if command == "addToLog":
        controller.log.append(argument)
        return "Added log message"
    known = _COMMANDS.get(words.lower())
    if known is None:
        return f"could not understand: '{words}'"
    if words.lower() in _ACTING and not controller.modes.remote:
        return f"Failed to execute: {words}"
    return known(controller)


def _fault(controller: SimulatedController, request: str) -> str:
    try:
        controller.fault(request)
    except UnknownName as error:
        return str(error)
    return "Fault: on"


def _robot_mode(controller: SimulatedController) -> str:
    mode = ROBOT_MODES[controller.modes.robot].split(",")[0].upper().replace(" ", "_")
    return f"Robotmode: {mode}"


def _safety(controller: SimulatedController) -> str:
    return SAFETY_MODES[controller.modes.safety].upper().replace(" ", "_")


def _version(controller: SimulatedController) -> str:
    return f"URSoftware {'.'.join(map(str, controller.version))} (simulated)"


def _loaded_program(controller: SimulatedController) -> str:
    if not controller.program_name:
        return "No program loaded"
    return f"Loaded program: {controller.program_name}"


def _stop(controller: SimulatedController) -> str:
    controller.stop_program()
    return "Stopped"


def _play(controller: SimulatedController) -> str:
    if controller.play():
        return "Starting program"
    return "Failed to execute: play"


def _pause(controller: SimulatedController) -> str:
    if controller.pause():
        return "Pausing program"
    return "Failed to execute: pause"


def _close_popup(controller: SimulatedController) -> str:
    controller.popup = ""
    return "closing popup"


def _unlock(controller: SimulatedController) -> str:
    if controller.modes.safety == _PROTECTIVE_STOP:
        controller.change_modes(controller.modes._replace(safety=1))
    return "Protective stop releasing"


def _power_on(controller: SimulatedController) -> str:
    controller.change_modes(controller.modes._replace(robot=7))
    return "Powering on"


def _power_off(controller: SimulatedController) -> str:
    controller.change_modes(controller.modes._replace(robot=3))
    return "Powering off"


_COMMANDS: dict[str, Callable[[SimulatedController], str]] = {
    "polyscopeversion": _version,
    "version": lambda controller: ".".join(map(str, controller.version)),
    "robotmode": _robot_mode,
    "safetymode": lambda controller: f"Safetymode: {_safety(controller)}",
    "safetystatus": lambda controller: f"Safetystatus: {_safety(controller)}",
    "is in remote control": lambda controller: str(controller.modes.remote).lower(),
    "get operational mode": lambda controller: "NONE",
    "get serial number": lambda controller: controller.serial_number,
    "get robot model": lambda controller: controller.model,
    "get loaded program": _loaded_program,
    "programstate": lambda controller: f"{controller.program_state} {controller.program_name}",
    "running": lambda controller: (
        f"Program running: {str(controller.program_state == 'PLAYING').lower()}"
    ),
    "isprogramsaved": lambda controller: f"true {controller.program_name}",
    "stop": _stop,
    "play": _play,
    "pause": _pause,
    "close popup": _close_popup,
    "close safety popup": _close_popup,
    "unlock protective stop": _unlock,
    "power on": _power_on,
    "brake release": lambda controller: "Brake releasing",
    "power off": _power_off,
    "quit": lambda controller: "Disconnected",
}
