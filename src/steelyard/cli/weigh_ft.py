"""`steelyard weigh-ft`: what an arm carries, from a wrist force/torque sensor."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from steelyard.cli.output import JsonFlag, print_json, print_table
from steelyard.cli.recordings import ColumnOption, ConventionOption, JointsOption, read_requested
from steelyard.cli.reporting import ReportOption, run_settings, write_report
from steelyard.recording import DEFAULT_CUTOFF_HZ

if TYPE_CHECKING:
    from steelyard.recording import Recording
    from steelyard.workflow.wrist import WristRig
    from steelyard.wrist import StaticWeight, WrenchPayload


def command(
    ctx: typer.Context,
    robot: Annotated[str | None, typer.Option(help="The arm, for recordings with joints.")] = None,
    static: Annotated[Path | None, typer.Option(help="A recording with postures at rest.")] = None,
    dynamic: Annotated[Path | None, typer.Option(help="A recording in motion.")] = None,
    sensor: Annotated[Path | None, typer.Option(help="What the sensor is (.toml).")] = None,
    estimator: Annotated[str, typer.Option(help="ml, restricted, rrtls, wls, ls, tls or rtls.")] = "ml",
    cutoff: Annotated[float, typer.Option(help="Low-pass on motion and wrench [Hz].")] = DEFAULT_CUTOFF_HZ,
    level: Annotated[bool, typer.Option("--level", help="The base is known to be level.")] = False,
    drift_again: Annotated[
        bool, typer.Option("--drift-again", help="The zero drift changed after the static recording.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where it goes (.json).")] = None,
    report: ReportOption = None,
    column: ColumnOption = None,
    joints: JointsOption = None,
    wrench_convention: ConventionOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Weighs a payload with a wrist sensor: at rest, in motion, or both. Exit code 1 when it is doubtful."""
    from steelyard.workflow.wrist import WristRig, wrist_weighing

    rig = WristRig.of(robot, sensor)
    read = partial(wrist_source, rig=rig, column=column, joints=joints, wrench_convention=wrench_convention)
    found = wrist_weighing(
        rig,
        static=None if static is None else read(static),
        dynamic=None if dynamic is None else read(dynamic),
        estimator=estimator,
        cutoff_hz=cutoff,
        level=level,
        drift_again=drift_again,
    )
    payload, at_rest = found.payload, found.static
    if output is not None:
        payload.save(output)
    if report is not None:
        from steelyard.report.payload import wrench_page

        settings = run_settings(ctx, [robot, static, dynamic, sensor])
        write_report(wrench_page(payload, found.samples, at_rest, settings=settings), report)
    if as_json:
        print_json(_facts(payload, at_rest, output) | {"report": None if report is None else str(report)})
    else:
        _show(payload, at_rest, {"Payload": output, "Report": report})
    if not payload.verdict.ok:
        raise typer.Exit(1)


def wrist_source(
    path: Path, rig: WristRig, column: list[str] | None, joints: str | None, wrench_convention: str | None
) -> Path | Recording:
    """A file of a wrist sensor: read as requested where it has joints, else as its description says."""
    if rig.robot is None:
        return path
    return read_requested(path, column, joints, robot=rig.robot, wrench_convention=wrench_convention)


def _show(payload: WrenchPayload, static: StaticWeight | None, files: dict[str, Path | None]) -> None:
    cells = [
        (x.name, f"{x.value:.4f}", f"{x.half_width:.4f}", x.unit)
        if np.isfinite(x.std)
        else (x.name, "unknown", "", x.unit)
        for x in payload.quantities
    ]
    print_table(
        "What the sensor carries, in the sensor frame (95 % intervals)", ("", "value", "+-", "unit"), cells
    )
    print()
    if static is not None:
        notes = "".join(f"; {note}" for note in static.postures.notes)
        print(f"At rest: {len(static.postures)} postures{notes}.")
        if payload.knows_inertia:
            print(static.verdict)
        if static.yaw_std > 0:
            turn, std = np.degrees([static.yaw, static.yaw_std])
            print(f"The sensor is turned about the flange axis by {turn:.2f} +- {1.96 * std:.2f} degrees.")
    print(payload.verdict)
    for what, path in files.items():
        if path is not None:
            print(f"{what}: {path}")


def _facts(payload: WrenchPayload, static: StaticWeight | None, output: Path | None) -> dict[str, Any]:
    facts = payload.to_dict() | {
        "drift_std": payload.drift_std,
        "inclination_degrees": np.degrees(payload.inclination),
        "inclination_std_degrees": np.degrees(payload.inclination_std),
        "residual_rms": payload.noise,
        "drift_trend": payload.trend,
        "drift_trend_std": payload.trend_std,
        "status": payload.status,
        "output": None if output is None else str(output),
    }
    if static is not None:
        facts["static"] = {
            "postures": len(static.postures),
            "notes": list(static.postures.notes),
            "status": static.status,
            "verdict": static.verdict.to_dict(),
            "mass": static.mass,
            "com": static.com,
            "yaw_degrees": np.degrees(static.yaw),
        }
    return facts
