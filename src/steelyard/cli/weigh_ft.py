"""`steelyard weigh-ft`: what an arm carries, from a wrist force/torque sensor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from steelyard.cli.output import JsonFlag, print_json, print_table
from steelyard.cli.recordings import ColumnOption, ConventionOption, JointsOption, read_wished
from steelyard.cli.reporting import ReportOption, run_settings, write_report
from steelyard.errors import InvalidRecording, InvalidSamples, UnknownName

if TYPE_CHECKING:
    from steelyard.io.wrench import SensorDescription
    from steelyard.robot import RobotModel
    from steelyard.wrist import StaticWeight, WrenchPayload, WrenchRecording, WrenchSamples


class Rig(NamedTuple):
    """What stands behind a recording: the arm, the sensor, and what the user says of a foreign file."""

    arm: RobotModel | None
    about: SensorDescription
    column: list[str] | None = None
    joints: str | None = None
    wrench_convention: str | None = None


def command(
    ctx: typer.Context,
    robot: Annotated[str | None, typer.Option(help="The arm, for recordings with joints.")] = None,
    static: Annotated[Path | None, typer.Option(help="A recording with postures at rest.")] = None,
    dynamic: Annotated[Path | None, typer.Option(help="A recording in motion.")] = None,
    sensor: Annotated[Path | None, typer.Option(help="What the sensor is (.toml).")] = None,
    estimator: Annotated[str, typer.Option(help="ml, restricted, rrtls, wls, ls, tls or rtls.")] = "ml",
    cutoff: Annotated[float, typer.Option(help="Low-pass on motion and wrench [Hz].")] = 20.0,
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
    from steelyard.io.wrench import SensorDescription, read_sensor
    from steelyard.robot import load_robot
    from steelyard.wrist import weigh_dynamic
    from steelyard.wrist.estimators import ESTIMATORS

    if static is None and dynamic is None:
        raise InvalidSamples("there is nothing to weigh: give --static, --dynamic or both")
    if estimator not in ESTIMATORS:
        raise UnknownName(f"no estimator '{estimator}'; there are {', '.join(ESTIMATORS)}")
    about = SensorDescription() if sensor is None else read_sensor(sensor)
    arm = None if robot is None else load_robot(robot)
    rig = Rig(arm, about, column, joints, wrench_convention)
    gravity = _gravity(arm, about)
    samples = None
    at_rest, turned = (None, 0.0) if static is None else _at_rest(static, rig, gravity, level=level)
    if dynamic is not None:
        samples = moving_samples(dynamic, rig, yaw=turned, cutoff_hz=cutoff, decimate=True)
        payload = weigh_dynamic(
            samples,
            at_rest,
            estimator=ESTIMATORS[estimator],
            gravity_base=gravity,
            tilt=not level,
            drift_again=drift_again,
        )
    elif at_rest is not None:
        payload = at_rest.payload(turned_frame(about, turned))
    if output is not None:
        payload.save(output)
    if report is not None:
        from steelyard.report.payload import wrench_page

        settings = run_settings(ctx, [robot, static, dynamic, sensor])
        write_report(wrench_page(payload, samples, at_rest, settings=settings), report)
    if as_json:
        print_json(_facts(payload, at_rest, output) | {"report": None if report is None else str(report)})
    else:
        _show(payload, at_rest, {"Payload": output, "Report": report})
    if not payload.verdict.ok:
        raise typer.Exit(1)


def moving_samples(path: Path, rig: Rig, *, yaw: float, cutoff_hz: float, decimate: bool) -> WrenchSamples:
    """The samples of a recording in motion, from joints, an inertial unit or the pose."""
    from dataclasses import replace

    from steelyard.wrist import samples_from_imu, samples_from_joints, samples_from_pose

    if rig.arm is not None:
        T = turned_frame(rig.about, yaw)
        sensor = replace(rig.about.sensor, T_flange_sensor=T, yaw_known=True)
        recording = _recording(path, rig)
        return samples_from_joints(rig.arm, recording, sensor, cutoff_hz=cutoff_hz, decimate=decimate)
    table = read(path, rig).turned(yaw) if yaw else read(path, rig)
    if table.acceleration is not None and table.angular_velocity is not None:
        return samples_from_imu(table, cutoff_hz=cutoff_hz, decimate=decimate)
    return samples_from_pose(table)


def read(path: Path, rig: Rig) -> WrenchRecording:
    """The wrench and pose in a file."""
    from steelyard.io.wrench import read_wrench_recording
    from steelyard.wrist import WrenchRecording

    if rig.arm is None:
        return read_wrench_recording(path, rig.about)
    return WrenchRecording.of_joints(_recording(path, rig), rig.arm, rig.about.sensor)


def turned_frame(about: SensorDescription, yaw: float) -> Any:
    """T_flange_sensor with a yaw that was found."""
    T = np.eye(4)
    T[:2, :2] = [[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]]
    return T @ about.sensor.T_flange_sensor


def _recording(path: Path, rig: Rig) -> Any:
    recording = read_wished(
        path, rig.column, rig.joints, robot=rig.arm, wrench_convention=rig.wrench_convention
    )
    if recording.wrench is None:
        raise InvalidRecording(f"{path} has no wrench; is a wrist sensor connected and logged?")
    return recording


def _gravity(arm: RobotModel | None, about: SensorDescription) -> Any:
    if about.gravity_base is not None:
        return about.gravity_base
    return np.array([0.0, 0.0, -9.81]) if arm is None else arm.gravity_base


def _at_rest(path: Path, rig: Rig, gravity: Any, *, level: bool) -> tuple[StaticWeight, float]:
    """What the postures say, and the yaw of the sensor that they showed."""
    from steelyard.wrist import find_postures, weigh_static

    sensor = rig.about.sensor
    axis = None if sensor.yaw_known else sensor.T_flange_sensor[2, :3]
    postures = find_postures(read(path, rig))
    found = weigh_static(postures, gravity_base=gravity, tilt=not level, yaw_axis=axis)
    return found, found.yaw


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
