"""`steelyard demo` and `demo-live`: a simulated arm weighs a payload.

`steelyard example` writes recordings to try the other commands with.
"""

from __future__ import annotations

import time
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from steelyard import _saved
from steelyard.cli import options
from steelyard.cli.output import Output
from steelyard.cli.terminal import INTERVAL, say
from steelyard.errors import UnknownName

if TYPE_CHECKING:
    from steelyard.inertia import InertialParameters
    from steelyard.payload import Payload
    from steelyard.workflow._payload import Weighing


_EXAMPLES = {
    "ur10": "a UR10 in MuJoCo on xu2024's motion, 10 s at 125 Hz, empty and with 2.5 kg at -10,"
    " 20, 60 mm"
}
_TORQUE_NOISE = [
    1.3102,
    2.5186,
    1.1437,
    0.3914,
    0.2793,
    0.3325,
]  # xu2024 Table VIII: nonlinear, empty
_MOTIONS = ("ur10_payload", "xu2024")
_WORDS = (
    "The motion ur10_payload was designed for weighing with this arm (objective 'payload'), with"
    " higher"
    " accelerations of the wrist; xu2024 is that of the paper. Arm, friction, noise and length are"
    " the same.",
)
_MASS = 3.5256
_COM = [0.0, 0.0, 0.0296]
_MOMENTS = [0.0064, 0.0064, 0.0045]  # xu2024 Table VII


def command(
    ctx: typer.Context,
    picture: Annotated[Path, typer.Option("--picture", "-o", help="The picture to write.")] = Path(
        "out/demo.png"
    ),
    report: options.ReportOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated noise.")] = 0,
    as_json: options.JsonFlag = False,
) -> None:
    """Weighs a payload on a simulated UR10 and shows the result beside the truth."""
    from steelyard.inertia import InertialParameters
    from steelyard.report._payload import motions_section

    picture.parent.mkdir(parents=True, exist_ok=True)
    report = report or picture.with_suffix(".html")
    options.require_targets([picture, report], [])
    output = Output(as_json)
    began = time.perf_counter()
    truth = InertialParameters.from_com(_MASS, _COM, np.diag(_MOMENTS))
    weighed = {motion: _weighed(output, motion, truth, 2 * seed) for motion in _MOTIONS}
    found = weighed[_MOTIONS[0]]
    (payload, other) = (each.payload for each in weighed.values())
    beside = motions_section({_MOTIONS[0]: payload, _MOTIONS[1]: other}, truth, words=_WORDS)
    output.report(
        ctx, lambda: found.page(truth=truth, extra=[beside]), [], report=report, picture=picture
    )
    seconds = time.perf_counter() - began
    known = {"mass_truth": truth.mass, "com_truth": truth.com, "vector_truth": truth.vector}
    known |= {"xu2024": other.to_dict()}
    written = {"picture": picture, "report": report, "seconds": seconds}

    def show() -> None:
        title = "What the arm carries (simulated UR10, 125 Hz, 10 s; 95 % intervals)"
        head = ("", "weighed", INTERVAL, "truth", "xu2024", INTERVAL, "unit")
        output.table(title, head, _rows(payload, truth, other))
        say(f"\n{payload.verdict}")
        say(f"Picture: {picture} ({seconds:.1f} s in all)")
        say(f"Report: {report} (open it in a browser)")

    output.emit(payload.to_dict() | known | written, show)


def live_command(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the model and the payload.")
    ] = Path("out"),
    as_json: options.JsonFlag = False,
) -> None:
    """Moves an arm on a simulated controller, weighs its payload meanwhile, and sets it."""
    from steelyard.cli.demo_live import show_live

    show_live(output, as_json=as_json)


def _weighed(output: Output, motion: str, truth: InertialParameters, seed: int) -> Weighing:
    """A payload on a simulated UR10 that was identified on the same motion."""
    from steelyard.identification import identify
    from steelyard.robot import load_robot
    from steelyard.signals import prepare
    from steelyard.simulation import SensorModel, SimulationOptions, simulate
    from steelyard.trajectory import FourierTrajectory
    from steelyard.workflow._payload import Weighing

    robot = load_robot("ur10")
    trajectory = FourierTrajectory.load(motion)
    robot = robot.with_drive(
        replace(robot.drive, gain_std=np.zeros(robot.n))
    )  # exact: it is simulated
    sensors = SensorModel(torque_std=np.array(_TORQUE_NOISE))
    recordings = {}
    for k, (name, load) in enumerate((("empty", None), ("loaded", truth))):
        with output.progress(f"MuJoCo: the {name} arm runs the motion {motion}") as done:
            how = SimulationOptions(progress=done)
            run = simulate(
                robot, trajectory, payload=load, sensors=sensors, seed=seed + k, options=how
            )
            recordings[name] = run.recording
    model = identify(robot, prepare(recordings["empty"], drive=robot.drive))
    return Weighing(model, {"loaded": recordings["loaded"]})


def _rows(payload: Payload, truth: InertialParameters, other: Payload) -> list[tuple[str, ...]]:
    known = [truth.mass, *(1e3 * truth.com), *truth.vector[4:]]
    rows: list[tuple[str, ...]] = []
    for x, t, y in zip(payload.quantities, known, other.quantities, strict=True):
        decimals = len(x.rounded[0].partition(".")[2])
        rows.append((x.name, *x.rounded[:2], f"{t:.{decimals}f}", *y.rounded[:2], x.unit))
    return rows


def example_command(
    name: Annotated[
        str, typer.Argument(help=f"Name of the example: {', '.join(_EXAMPLES)}.")
    ] = "ur10",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the recordings.")
    ] = Path("."),
    as_json: options.JsonFlag = False,
) -> None:
    """Writes two small recordings, of an empty and of a loaded arm, to try the other commands."""
    if name not in _EXAMPLES:
        raise UnknownName(f"no example '{name}'; there are {', '.join(_EXAMPLES)}")
    assets = resources.files("steelyard.cli") / "assets"
    files = {case: output / f"{case}.npz" for case in ("empty", "loaded")}
    options.require_targets(files.values(), [])
    with _saved.together():
        for case, path in files.items():
            with _saved.replacing(path) as part:
                part.write_bytes((assets / f"{name}_{case}.npz").read_bytes())

    def show() -> None:
        say(f"{files['empty']} and {files['loaded']}: {_EXAMPLES[name]}. Next:\n")
        print(f"    steelyard identify {name} {files['empty']} -o model.json")
        print(f"    steelyard weigh model.json {files['loaded']} --report page.html")

    Output(as_json).emit({"robot": name, "what": _EXAMPLES[name], **files}, show)
