"""`steelyard weigh-wrist`: what an arm carries, from a wrist force/torque sensor."""

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
from steelyard.recording import DEFAULT_CUTOFF_HZ

if TYPE_CHECKING:
    from steelyard.wrist import StaticWeight, WristPayload

_TITLE = "What the sensor carries, in the sensor frame"


def command(
    ctx: typer.Context,
    robot: options.ArmOption = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    static: Annotated[Path | None, typer.Option(help="A recording with postures at rest.")] = None,
    dynamic: Annotated[Path | None, typer.Option(help="A recording in motion.")] = None,
    sensor: options.SensorOption = None,
    method: Annotated[
        str, typer.Option(help="ml, restricted, rrtls, wls, ls, tls or rtls.")
    ] = "ml",
    cutoff: options.WrenchCutoffOption = DEFAULT_CUTOFF_HZ,
    gravity: options.GravityOption = None,
    level: Annotated[bool, typer.Option("--level", help="The base is known to be level.")] = False,
    drift_again: Annotated[
        bool,
        typer.Option("--drift-again", help="The zero drift changed after the static recording."),
    ] = False,
    output: Annotated[
        Path | None, options.file_to_write("Where it goes (.json).", "--output", "-o")
    ] = None,
    report: options.ReportOption = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    degrees: options.DegreesFlag = False,
    wrench_convention: options.ConventionOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Weighs with a wrist sensor: at rest, in motion, or both. Exit code 1: do not use it."""
    from steelyard.workflow._wrist import WristWeighing

    arm = options.load_arm_if_named(robot, lock, flange)
    tables = options.requested(column, joints, wrench_convention, degrees=degrees, names=names)
    about = options.described(sensor, tables, gravity)
    out = Output(as_json)
    kind: Any = {
        "method": method,
        "cutoff_hz": cutoff,
        "level": level,
        "drift_again": drift_again,
    }
    found = WristWeighing(static, dynamic, arm, about, **kind)
    stages = [
        name for name, path in (("at rest", static), ("in motion", dynamic)) if path is not None
    ]
    with out.progress(f"weighing {', then '.join(stages)}"):
        payload = found.payload
    with _saved.together():
        if output is not None:
            payload.save(output)
        out.report(ctx, found.page, [robot, static, dynamic, sensor], report=report)
    facts = _facts(payload, found.at_rest) | {"output": output, "report": report}
    files = {"Payload": output, "Report": report}
    show = partial(_show, out, payload, found.at_rest)
    requested = {"the mass": payload.mass + payload.std[0]}
    out.emit(facts, show, files=files, verdict=payload.verdict, requested=requested)


def _show(output: Output, payload: WristPayload, static: StaticWeight | None) -> None:
    output.payload(f"{_TITLE} (95 % intervals)", payload)
    print()
    if static is not None:
        notes = "".join(f"; {note}" for note in static.postures.notes)
        print(f"At rest: {len(static.postures)} postures{notes}.")
        if payload.knows_inertia:
            own = [doubt for doubt in static.verdict.doubts if not payload.verdict.has(doubt.kind)]
            output.verdict(replace(static.verdict, doubts=tuple(own)))
        if static.yaw_std > 0:
            turn, std = np.degrees([static.yaw, static.yaw_std])
            print(
                f"The sensor is turned about the flange axis by {turn:.2f} +- {NORMAL_95 * std:.2f}"
                " degrees."
            )
    output.verdict(payload.verdict)


def _facts(payload: WristPayload, static: StaticWeight | None) -> dict[str, Any]:
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
