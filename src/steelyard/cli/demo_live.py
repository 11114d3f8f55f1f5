"""`steelyard demo-live`: the whole way of `weigh-live` on a simulated controller."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from steelyard._computing import interruptible
from steelyard.cli import weigh_live
from steelyard.cli.output import Output
from steelyard.errors import SourceFailed

_ROBOT = "ur10e"
_MASS = "2.5"
_COM = "0.01,0.02,0.05"


@interruptible()
def show_live(folder: Path, *, as_json: bool) -> None:
    """Identifies an empty arm, then moves and weighs a loaded one and sets its payload."""
    out = Output(as_json)
    folder.mkdir(parents=True, exist_ok=True)
    model = _identified(out, folder / "live_model.json")
    with _controller(_ROBOT, "--rtde", "127.0.0.1:0", "--mass", _MASS, "--com", _COM) as address:
        if not as_json:
            print(
                f"A simulated {_ROBOT} at {address} carries {_MASS} kg; no payload is set in its"
                " controller."
            )
        weigh_live.command(
            address,
            model,
            output=folder / "live_payload.json",
            yes=True,
            set_it=True,
            as_json=as_json,
        )


def _identified(out: Output, path: Path) -> Path:
    """The model of the empty arm, from a simulated run of currents."""
    from steelyard.identification import identify
    from steelyard.robot import load_robot
    from steelyard.signals import prepare
    from steelyard.simulation import SimulationOptions, simulate
    from steelyard.trajectory import FourierTrajectory
    from steelyard.twin._backend import NOMINAL_GAINS
    from steelyard.twin._controller import SERIAL_NUMBER

    robot = load_robot(_ROBOT).with_serial(SERIAL_NUMBER)
    exact = replace(robot.drive, gain=np.array(NOMINAL_GAINS), gain_std=np.zeros(6))
    robot = robot.with_drive(exact)  # of a simulated arm
    with out.progress(f"MuJoCo: the empty {_ROBOT} runs the trajectory of xu2024") as done:
        run = simulate(
            robot, FourierTrajectory.load("xu2024"), options=SimulationOptions(progress=done)
        )
    identify(robot, prepare(run.recording, drive=robot.drive)).save(path)
    return path


@contextmanager
def _controller(*options: str) -> Iterator[str]:
    """The address of a simulated controller that runs meanwhile."""
    words = [sys.executable, "-m", "steelyard", "serve", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=sys.stderr, text=True) as child:
        try:
            if child.stdout is not None:
                line = child.stdout.readline()
            else:
                line = ""
            port = re.search(r"RTDE (\d+)", line)
            if port is None:
                raise SourceFailed(f"the simulated controller did not start: {line}")
            yield f"ur://127.0.0.1:{port[1]}"
        finally:
            child.terminate()
