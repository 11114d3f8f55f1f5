"""`steelyard simulate --serve ROBOT`: a simulated UR controller, until somebody ends it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard._computing import interruptible
from steelyard.errors import InvalidInertia, SourceFailed, UnknownName

if TYPE_CHECKING:
    from steelyard.inertia import InertialParameters
    from steelyard.robot import RobotModel
    from steelyard.simulation import SensorModel
    from steelyard.trajectory import FourierTrajectory

_LOAD = re.compile(r"([\d.]+)kg(?::([-\d.,e]+))?")


@interruptible()
def serve_arm(
    robot: RobotModel,
    rtde: str,
    *,
    payloads: Mapping[float, InertialParameters | None],
    played: Path | None,
    trajectory: FourierTrajectory | None,
    faults: Mapping[float, str],
    seconds: float,
    sensors: SensorModel,
) -> None:
    """Serves an arm in MuJoCo, or a recording, and prints the controller's log."""
    from steelyard.io import read
    from steelyard.twin._backend import RecordedArm, SimulatedArm
    from steelyard.twin._controller import SimulatedController, checked_fault
    from steelyard.twin._server import ControllerServer

    host, _, port = rtde.rpartition(":")
    if not host or not port.isdecimal():
        raise SourceFailed(f"--rtde is HOST:PORT, say 127.0.0.1:30004; got '{rtde}'")
    world: SimulatedArm | RecordedArm
    if played is not None:
        world = RecordedArm(read(played), robot)
    else:
        if trajectory is None:
            start = None
        else:
            start = trajectory.at([0.0])[0][0]
        world = SimulatedArm(robot, payloads, sensors=sensors, start=start)
    controller = SimulatedController(world)
    if trajectory is not None and played is None:
        controller.repeat(trajectory)
    due = sorted((at, request) for at, request in faults.items() if checked_fault(request))

    def step(now: SimulatedController) -> None:
        while due and now.seconds >= due[0][0]:
            now.fault(due.pop(0)[1])

    with (
        ControllerServer(controller, host=host, port=int(port), on_step=step) as found,
        suppress(KeyboardInterrupt),
    ):
        ports = f"RTDE {found.port}, dashboard {found.port - 5}, scripts {found.port - 2}"
        print(f"A simulated {robot.name} on {host}: {ports}. Ctrl-C ends it.", flush=True)
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
        if equals and words and float(at) >= 0:
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
        found[at] = float(load[1]), load[2] or "0,0,0.05"
    return found
