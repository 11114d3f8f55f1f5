"""`steelyard contact PAYLOAD RECORDING`: the external force, without load and zero drift."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from steelyard.cli.output import JsonFlag, print_json
from steelyard.cli.recordings import ColumnOption, ConventionOption, JointsOption
from steelyard.cli.reporting import ReportOption, run_settings, write_report
from steelyard.cli.weigh_ft import Rig, moving_samples, read

if TYPE_CHECKING:
    from steelyard.control.contact_force import ContactForce


def command(
    ctx: typer.Context,
    payload: Annotated[Path, typer.Argument(help="What steelyard weigh-ft -o wrote (.json).")],
    recording: Annotated[Path, typer.Argument(help="A recording with a wrench.")],
    robot: Annotated[str | None, typer.Option(help="The arm, for recordings with joints.")] = None,
    sensor: Annotated[Path | None, typer.Option(help="What the sensor is (.toml).")] = None,
    frame: Annotated[str, typer.Option(help="sensor or base.")] = "sensor",
    rezero: Annotated[str, typer.Option(help="Second zero: none, start or rest.")] = "none",
    cutoff: Annotated[float, typer.Option(help="Low-pass on motion and wrench [Hz].")] = 20.0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where it goes (.parquet).")] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Where the picture goes (.png); beside the output by default.")
    ] = None,
    report: ReportOption = None,
    column: ColumnOption = None,
    joints: JointsOption = None,
    wrench_convention: ConventionOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Takes load and zero drift off a recording: what is left is contact. Writes a table and a picture."""
    from steelyard.control.contact_force import contact_force
    from steelyard.io.wrench import (
        SensorDescription,
        read_sensor,
        write_contact_force,
    )
    from steelyard.robot import load_robot
    from steelyard.wrist import WrenchPayload

    load = WrenchPayload.load(payload)
    about = SensorDescription() if sensor is None else read_sensor(sensor)
    arm = None if robot is None else load_robot(robot)
    yaw = _yaw(load.T_flange_sensor, about.sensor.T_flange_sensor)
    rig = Rig(arm, about, column, joints, wrench_convention)
    samples = moving_samples(recording, rig, yaw=yaw, cutoff_hz=cutoff, decimate=False)
    table = None if arm is not None else read(recording, rig)
    warmth = None
    if table is not None and table.temperature is not None:
        warmth = np.interp(samples.t, table.t, table.temperature)
    options: dict[str, Any] = {"frame": frame, "rezero": rezero, "temperature": warmth}
    contact = contact_force(load, samples, **options)
    if output is not None:
        write_contact_force(contact, output)
        picture = picture or output.with_suffix(".png")
    if picture is not None or report is not None:
        from steelyard.report.control import contact_page

        settings = run_settings(ctx, [payload, recording, robot, sensor])
        title = f"External force: {recording.name}, {load.body.mass:.3f} kg taken off"
        write_report(contact_page(contact, title=title, settings=settings), report, picture)
    files = {"output": output, "picture": picture, "report": report}
    if as_json:
        print_json(_facts(contact, files))
        return
    print(f"{recording}: {len(contact.t)} samples; {contact.status}")
    print(f"force  {_words(contact.force, 'N')}")
    print(f"torque {_words(contact.torque, 'Nm')}")
    if np.isfinite(contact.temperature_trend).all():
        slopes = " ".join(f"{x:.3g}" for x in contact.temperature_trend)
        print(f"zero drift with temperature: {slopes} (N, Nm for each kelvin)")
    for what, path in files.items():
        if path is not None:
            print(f"{'table' if what == 'output' else what}: {path}")


def _yaw(T_payload: Any, T_described: Any) -> float:
    """How far the sensor was found turned about the flange axis, [rad]."""
    R = T_payload[:3, :3] @ T_described[:3, :3].T
    return float(np.arctan2(R[1, 0], R[0, 0]))


def _words(size: Any, unit: str) -> str:
    return (
        f"mean {size.mean():.3f} {unit}, deviation {size.std():.3f} {unit}, largest {size.max():.3f} {unit}"
    )


def _facts(contact: ContactForce, files: dict[str, Path | None]) -> dict[str, Any]:
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
        "status": contact.status,
        **{name: None if path is None else str(path) for name, path in files.items()},
    }
