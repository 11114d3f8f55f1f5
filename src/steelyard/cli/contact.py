"""`steelyard contact PAYLOAD RECORDING`: the external force, without load and zero drift."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from steelyard import _saved
from steelyard.cli import options
from steelyard.cli.output import Output
from steelyard.cli.terminal import say
from steelyard.recording import DEFAULT_CUTOFF_HZ

if TYPE_CHECKING:
    from steelyard.control._contact_force import ContactForce


_TABLE = options.file_to_write(
    "The table of contact forces to write (.parquet), with a picture beside it.",
    "--output",
    "-o",
    endings=(".parquet",),
    beside=lambda output: output.with_suffix(".png"),
)


def command(
    ctx: typer.Context,
    payload: Annotated[Path, typer.Argument(help="A payload (.json, from steelyard weigh-wrist).")],
    recording: Annotated[Path, typer.Argument(help="A recording with a wrench.")],
    robot: options.ArmOption = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    sensor: options.SensorOption = None,
    frame: Annotated[str, typer.Option(help="Frame of the force: sensor or base.")] = "sensor",
    rezero: Annotated[
        str, typer.Option(help="Zero the sensor again: none, start or rest.")
    ] = "none",
    cutoff: options.WrenchCutoffOption = DEFAULT_CUTOFF_HZ,
    output: Annotated[Path | None, _TABLE] = None,
    picture: Annotated[
        Path | None,
        options.file_to_write(
            "The picture to write (.png). Default: beside the output.", endings=options.PICTURES
        ),
    ] = None,
    report: options.ReportOption = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    degrees: options.DegreesFlag = False,
    wrench_convention: options.ConventionOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Finds the contact force: removes the load and the zero drift from a wrist recording."""
    from steelyard.io._wrist import write_contact_force
    from steelyard.report._control import contact_page
    from steelyard.workflow._wrist import contact as contact_of
    from steelyard.wrist import WristPayload

    load = WristPayload.load(payload)
    arm = options.load_arm_if_named(robot, lock, flange)
    tables = options.requested(column, joints, wrench_convention, degrees=degrees, names=names)
    about = options.described(sensor, tables)
    how: dict[str, Any] = {"frame": frame, "rezero": rezero}  # checked where they are used
    contact = contact_of(load, recording, robot=arm, sensor=about, cutoff_hz=cutoff, **how)
    if output is not None:
        picture = picture or output.with_suffix(".png")
    out = Output(as_json)
    title = f"External force: {recording.name}, {load.body.mass:.3f} kg taken off"
    read_files = [payload, recording, robot, sensor]
    page = partial(contact_page, contact, title=title)
    with _saved.together():
        if output is not None:
            write_contact_force(contact, output)
        out.report(ctx, page, read_files, report=report, picture=picture)
    facts = _facts(contact) | {"output": output, "picture": picture, "report": report}
    requested = {"the force": contact.force.mean(), "the torque": contact.torque.mean()}
    files = {"table": output, "picture": picture, "report": report}
    out.emit(
        facts,
        partial(_show, contact, recording),
        files=files,
        verdict=contact.verdict,
        requested=requested,
    )


def _show(contact: ContactForce, recording: Path) -> None:
    say(f"{recording}: {len(contact.t)} samples; {contact.verdict.sentence}")
    say(f"force  {_words(contact.force, 'N')}")
    say(f"torque {_words(contact.torque, 'Nm')}")
    if np.isfinite(contact.temperature_trend).all():
        slopes = " ".join(f"{x:.3g}" for x in contact.temperature_trend)
        say(f"zero drift with temperature: {slopes} (N, Nm for each kelvin)")


def _words(size: Any, unit: str) -> str:
    return (
        f"mean {size.mean():.3f} {unit}, deviation {size.std():.3f} {unit}, largest"
        f" {size.max():.3f} {unit}"
    )


def _facts(contact: ContactForce) -> dict[str, Any]:
    return {
        "samples": len(contact.t),
        "frame": contact.frame,
        "force_mean": contact.force.mean(),
        "force_std": contact.force.std(),
        "force_max": contact.force.max(),
        "torque_mean": contact.torque.mean(),
        "torque_std": contact.torque.std(),
        "torque_max": contact.torque.max(),
        "typical_std": np.median(contact.std, axis=0),
        "zeroed_at": list(contact.zeroed_at),
        "drift_trend": contact.trend,
        "drift_trend_std": contact.trend_std,
        "temperature_trend": contact.temperature_trend,
        "temperature_trend_std": contact.temperature_trend_std,
        "verdict": contact.verdict.to_dict(),
    }
