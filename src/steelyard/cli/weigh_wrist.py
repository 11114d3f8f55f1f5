"""`steelyard weigh-wrist at-rest|in-motion|both`: the payload from a wrist force/torque sensor."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from steelyard import _saved
from steelyard._units import NORMAL_95
from steelyard.cli import options
from steelyard.cli.output import Output
from steelyard.cli.terminal import say
from steelyard.recording import DEFAULT_CUTOFF_HZ

if TYPE_CHECKING:
    from steelyard.wrist import StaticFit, WristPayload

_TITLE = "What the sensor carries, in the sensor frame"


app = typer.Typer(
    help="Weighs with a wrist sensor, from postures at rest, from a motion, or from both.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

RestArgument = Annotated[Path, typer.Argument(help="A recording with postures at rest.")]
MotionArgument = Annotated[Path, typer.Argument(help="A recording in motion.")]
MethodOption = Annotated[
    str, typer.Option(help="Method: ml, restricted, rrtls, wls, ls, tls or rtls.")
]
BothMethodOption = Annotated[
    str,
    typer.Option(
        help="Method: ml, restricted, rrtls, wls, ls, tls or rtls; or liu2025, as printed (with"
        " the package papers)."
    ),
]
LevelFlag = Annotated[bool, typer.Option("--level", help="The base is known to be level.")]
OutputOption = Annotated[
    Path | None,
    options.file_to_write("The payload to write (.json).", "--output", "-o", endings=(".json",)),
]


@app.command(name="at-rest", cls=options.Verb)
def at_rest_command(
    ctx: typer.Context,
    static: RestArgument,
    robot: options.ArmOption = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    sensor: options.SensorOption = None,
    gravity: options.GravityOption = None,
    level: LevelFlag = False,
    output: OutputOption = None,
    report: options.ReportOption = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    degrees: options.DegreesFlag = False,
    wrench_convention: options.ConventionOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Finds mass, centre of mass and zero drift from postures at rest.

    Exit code 1 when the result is not trustworthy.
    """
    _weigh(ctx)


@app.command(name="in-motion", cls=options.Verb)
def in_motion_command(
    ctx: typer.Context,
    dynamic: MotionArgument,
    robot: options.ArmOption = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    sensor: options.SensorOption = None,
    method: MethodOption = "ml",
    cutoff: options.WrenchCutoffOption = DEFAULT_CUTOFF_HZ,
    gravity: options.GravityOption = None,
    level: LevelFlag = False,
    output: OutputOption = None,
    report: options.ReportOption = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    degrees: options.DegreesFlag = False,
    wrench_convention: options.ConventionOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Finds the payload and the zero drift from a motion.

    Exit code 1 when the result is not trustworthy.
    """
    _weigh(ctx)


@app.command(name="both", cls=options.Verb)
def both_command(
    ctx: typer.Context,
    static: RestArgument,
    dynamic: MotionArgument,
    robot: options.ArmOption = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    sensor: options.SensorOption = None,
    method: BothMethodOption = "ml",
    cutoff: options.WrenchCutoffOption = DEFAULT_CUTOFF_HZ,
    gravity: options.GravityOption = None,
    level: LevelFlag = False,
    drift_again: Annotated[
        bool,
        typer.Option("--drift-again", help="The zero drift changed after the static recording."),
    ] = False,
    output: OutputOption = None,
    report: options.ReportOption = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    degrees: options.DegreesFlag = False,
    wrench_convention: options.ConventionOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Finds the payload and the zero drift from postures at rest, then from a motion.

    Exit code 1 when the result is not trustworthy.
    """
    _weigh(ctx)


def _weigh(ctx: typer.Context) -> None:
    """Runs the weighing that the words of the command describe."""
    from steelyard.workflow._wrist import WristWeighing

    given = ctx.params
    static = given.get("static")
    dynamic = given.get("dynamic")
    arm = options.load_arm_if_named(given["robot"], given["lock"], given["flange"])
    tables = options.requested(
        given["column"],
        given["joints"],
        given["wrench_convention"],
        degrees=given["degrees"],
        names=given["names"],
    )
    about = options.described(given["sensor"], tables, given["gravity"])
    out = Output(given["as_json"])
    found = WristWeighing(
        static,
        dynamic,
        arm,
        about,
        method=given.get("method", "ml"),
        cutoff_hz=given.get("cutoff", DEFAULT_CUTOFF_HZ),
        level=given["level"],
        drift_again=given.get("drift_again", False),
    )
    stages = [
        name for name, path in (("at rest", static), ("in motion", dynamic)) if path is not None
    ]
    with out.progress(f"weighing {', then '.join(stages)}"):
        payload = found.payload
    output = given["output"]
    report = given["report"]
    read_files = [given["robot"], static, dynamic, given["sensor"]]
    with _saved.together():
        if output is not None:
            payload.save(output)
        out.report(ctx, found.page, read_files, report=report)
    facts = _facts(payload, found.at_rest) | {"output": output, "report": report}
    files = {"Payload": output, "Report": report}
    show = partial(_show, out, payload, found.at_rest)
    requested = {"the mass": payload.mass}
    if payload.gives_intervals:
        requested["the mass"] += payload.std[0]
    out.emit(facts, show, files=files, verdict=payload.verdict, requested=requested)


def _show(output: Output, payload: WristPayload, static: StaticFit | None) -> None:
    output.payload(_TITLE, payload)
    say()
    if static is not None:
        notes = "".join(f"; {note}" for note in static.postures.notes)
        say(f"At rest: {len(static.postures)} postures{notes}.")
        if payload.knows_inertia:
            own = [doubt for doubt in static.verdict.doubts if not payload.verdict.has(doubt.kind)]
            output.verdict(replace(static.verdict, doubts=tuple(own)))
        if static.yaw_std > 0:
            turn, std = np.degrees([static.yaw, static.yaw_std])
            say(
                f"The sensor is turned about the flange axis by {turn:.2f} +- {NORMAL_95 * std:.2f}"
                " degrees (95 %)."
            )
    output.verdict(payload.verdict)


def _facts(payload: WristPayload, static: StaticFit | None) -> dict[str, Any]:
    facts = payload.to_dict() | {
        "drift_std": payload.drift_std,
        "inclination_degrees": np.degrees(payload.inclination),
        "inclination_std_degrees": np.degrees(payload.inclination_std),
    }
    if static is not None:
        facts["static"] = {
            "postures": len(static.postures),
            "notes": list(static.postures.notes),
            "verdict": static.verdict.to_dict(),
            "mass": static.mass,
            "com": static.com,
            "yaw_degrees": np.degrees(static.yaw),
        }
    return facts
