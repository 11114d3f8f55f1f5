"""`steelyard serve ROBOT`, `serve-recording ROBOT FILE`: a simulated UR controller."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard._computing import interruptible
from steelyard.cli import options
from steelyard.cli import simulate as simulated
from steelyard.errors import InvalidInertia, SourceFailed, UnknownName

if TYPE_CHECKING:
    from steelyard.twin._controller import SimulatedController

_DEFAULT_COM = "0,0,0.05"
_SERIAL_NUMBER = "20200000001"
_THIS_MACHINE = "127.0.0.1"
_MAX_PORT = 65535
_UNTIL_STOPPED = float("inf")
_LOAD = re.compile(r"([\d.]+)kg(?::([-\d.,e]+))?")


FaultOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="S=NAME",
        help="A fault at a time [s], as 12=skip:5 or 30=protective-stop. May be repeated.",
    ),
]
SerialOption = Annotated[
    str, typer.Option("--serial-number", help="Serial number that the dashboard gives.")
]
ModelOption = Annotated[
    str | None,
    typer.Option("--robot-model", help="Name of the arm that the dashboard gives, such as UR10."),
]
SecondsOption = Annotated[
    float,
    typer.Option(min=0.0, help="When to end [s]. Default: at Ctrl-C.", show_default=False),
]


@interruptible()
def command(
    robot: options.RobotArgument,
    rtde: Annotated[
        str,
        typer.Option(metavar="[HOST:]PORT", help="Address of RTDE. Port 0 takes any free port."),
    ] = "127.0.0.1:30004",
    trajectory: simulated.TrajectoryOption = None,
    mass: simulated.MassOption = 0.0,
    com: simulated.ComOption = _DEFAULT_COM,
    size: simulated.SizeOption = 0.1,
    payload_at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="S=KGkg:X,Y,Z",
            help="A payload that the arm carries from a time on [s], as 10=2.5kg:0,0,0.05 or"
            " 20=0kg. May be repeated.",
        ),
    ] = None,
    ideal: simulated.IdealFlag = False,
    fault: FaultOption = None,
    serial: SerialOption = _SERIAL_NUMBER,
    model: ModelOption = None,
    seconds: SecondsOption = _UNTIL_STOPPED,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    gravity: options.GravityOption = None,
) -> None:
    """Serves a simulated arm (MuJoCo) as a UR controller: RTDE, dashboard and script ports.

    The arm repeats --trajectory, or stands in its home posture without it.
    """
    from steelyard.trajectory import FourierTrajectory
    from steelyard.twin._backend import SimulatedArm
    from steelyard.twin._controller import SimulatedController

    arm = options.load_arm(robot, lock, flange, gravity)
    loads = {0.0: (mass, com)} | loads_at(payload_at or [])
    bodies = {
        at: simulated.payload_cube(kg, where, size, arm.flange) for at, (kg, where) in loads.items()
    }
    motion = None
    start = None
    if trajectory is not None:
        motion = FourierTrajectory.load(trajectory)
        start = motion.at([0.0])[0][0]
    sensors = simulated.sensor_model(ideal=ideal)
    simulated_arm = SimulatedArm(arm, bodies, sensors=sensors, start=start)
    controller = SimulatedController(simulated_arm, serial_number=serial, model=model)
    if motion is not None:
        controller.repeat(motion)
    _serve(controller, arm.name, rtde, faults=fault or [], seconds=seconds)


@interruptible()
def recording_command(
    robot: options.RobotArgument,
    recording: Annotated[Path, typer.Argument(help="A recording with motor currents.")],
    rtde: Annotated[
        str,
        typer.Option(metavar="[HOST:]PORT", help="Address of RTDE. Port 0 takes any free port."),
    ] = "127.0.0.1:30004",
    fault: FaultOption = None,
    serial: SerialOption = _SERIAL_NUMBER,
    model: ModelOption = None,
    seconds: SecondsOption = _UNTIL_STOPPED,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
) -> None:
    """Serves a recording as a UR controller that repeats it."""
    from steelyard.io import read
    from steelyard.twin._backend import RecordedArm
    from steelyard.twin._controller import SimulatedController

    arm = options.load_arm(robot, lock, flange)
    recorded = RecordedArm(read(recording), arm)
    controller = SimulatedController(recorded, serial_number=serial, model=model)
    _serve(controller, arm.name, rtde, faults=fault or [], seconds=seconds)


def _serve(
    controller: SimulatedController,
    robot_name: str,
    rtde: str,
    *,
    faults: list[str],
    seconds: float,
) -> None:
    """Serves a controller and prints its log, until the time is over or Ctrl-C."""
    from steelyard.twin._faults import checked_fault
    from steelyard.twin._server import ControllerServer

    host, colon, port = rtde.rpartition(":")
    if not colon:
        host = _THIS_MACHINE
    if not host or not port.isdecimal() or int(port) > _MAX_PORT:
        raise SourceFailed(f"--rtde is [HOST:]PORT, say 127.0.0.1:30004; got '{rtde}'")
    requests = [timed(each, "--fault is S=NAME, say 12=skip:5") for each in faults]
    due = sorted((at, request) for at, request in requests if checked_fault(request))

    def step(now: SimulatedController) -> None:
        while due and now.seconds >= due[0][0]:
            now.fault(due.pop(0)[1])

    with (
        ControllerServer(controller, host=host, port=int(port), on_step=step) as found,
        suppress(KeyboardInterrupt),
    ):
        ports = (
            f"RTDE {found.port}, dashboard {found.port - 5},"
            f" scripts {found.port - 3} to {found.port - 1}"
        )
        print(f"A simulated {robot_name} on {host}: {ports}. Ctrl-C ends it.", flush=True)
        shown = 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.1)
            for line in controller.log[shown:]:
                shown += 1
                print(f"{controller.seconds:8.2f} s  {line}", flush=True)


def timed(request: str, rule: str) -> tuple[float, str]:
    """The time and the words of `12=skip:5`."""
    at, equals, words = request.partition("=")
    with suppress(ValueError):
        if equals and words and 0 <= float(at) < _UNTIL_STOPPED:
            return float(at), words
    raise UnknownName(f"{rule}; got '{request}'")


def loads_at(requests: list[str]) -> dict[float, tuple[float, str]]:
    """Masses [kg] and centres [m] by time, of `10=2.5kg:0,0,0.05`."""
    rule = "--payload-at is S=KGkg:X,Y,Z, say 10=2.5kg:0,0,0.05"
    found = {}
    for request in requests:
        at, words = timed(request, rule)
        load = _LOAD.fullmatch(words)
        if load is None:
            raise InvalidInertia(f"{rule}; got '{request}'")
        found[at] = float(load[1]), load[2] or _DEFAULT_COM
    return found
