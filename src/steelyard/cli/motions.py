"""Options, files and printed output that `design` and `shortest-motion` share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from steelyard import _saved
from steelyard.cli import options
from steelyard.cli.output import Output, number
from steelyard.cli.terminal import INTERVAL, say
from steelyard.errors import InvalidTrajectory

if TYPE_CHECKING:
    from steelyard.excitation import Design, DesignLimits
    from steelyard.report import Page
    from steelyard.robot import RobotModel

_ENDINGS = (".json", ".csv", ".script", ".yaml", ".yml", ".py")
_FILES_READ = ("robot", "limits", "envelope", "model")
_ORIENTATION_SAMPLES = 500

HarmonicsOption = Annotated[int, typer.Option(max=100, help="Number of harmonics.")]
LimitsOption = Annotated[
    Path | None, typer.Option(help="Limits (.toml, see docs/howto/design.md).")
]
EnvelopeOption = Annotated[
    str | None,
    typer.Option(help="Stay within the peaks of another motion: xu2024 or a .json file."),
]
StartOption = Annotated[
    str | None,
    typer.Option(help="Posture at both ends, as q1,...,qn [rad], or 'home'. Default: any."),
]
PeriodicFlag = Annotated[
    bool, typer.Option("--periodic", help="The motion need not be at rest at its ends.")
]
StartsOption = Annotated[
    int,
    typer.Option(
        max=100_000,
        help="Random starts of the search; beyond 4, the best of a first descent are refined.",
    ),
]
DeviceOption = Annotated[str, typer.Option(help="Device of the first descent: cpu or gpu.")]
SeedOption = Annotated[
    int, typer.Option(min=0, help="Seed of the search; the same seed gives the same motion.")
]
TimeLimitOption = Annotated[
    float | None, typer.Option(help="End the search after this time and keep the best motion [s].")
]
OutputOption = Annotated[
    Path | None,
    options.file_to_write(
        "The motion to write: .json, .csv, .script (URScript), .yaml (ROS 2) or .py (Franka).",
        "--output",
        "-o",
        endings=_ENDINGS,
    ),
]
PictureOption = Annotated[
    Path | None,
    options.file_to_write(
        "The picture of the motion and its limits to write; with a workspace, a second one.",
        endings=options.PICTURES,
        beside=lambda picture: _axes_file(picture),
    ),
]


def start_posture(arm: RobotModel, text: str | None) -> Any:
    """The posture of --start, (n,) [rad or m]; None where both ends are free."""
    if text is None:
        return None
    if text == "home":
        return arm.home
    return options.numbers(text, "--start takes numbers as 1,2,3")


def narrowed(arm: RobotModel, limits: DesignLimits, envelope: str | None) -> DesignLimits:
    """The limits, narrowed to the peaks of another motion where one is named."""
    from steelyard.excitation import DesignLimits
    from steelyard.trajectory import FourierTrajectory

    if envelope is None:
        return limits
    other = FourierTrajectory.load(envelope)
    if other.n != arm.n:
        raise InvalidTrajectory(
            f"trajectory '{envelope}' has {other.n} joints, {arm.name} has {arm.n}"
        )
    peaks = DesignLimits.envelope(other, joint_names=arm.joint_names).joints
    return limits.narrowed(peaks, joint_names=arm.joint_names)


def emit_design(
    ctx: typer.Context,
    arm: RobotModel,
    limits: DesignLimits,
    design: Design,
    page: Callable[[], Page],
) -> None:
    """Writes the files that were requested and prints the design.

    Args:
        ctx: of the command, with its options
        arm: that moves
        limits: that the motion keeps
        design: the motion
        page: makes the report
    """
    given = ctx.params
    output = Output(given["as_json"])
    files = {name: given[name] for name in ("output", "picture", "report")}
    with _saved.together():
        _write_motion(files["output"], arm, design, given["rate"])
        read = [given.get(name) for name in _FILES_READ]
        output.report(ctx, page, read, report=files["report"], picture=files["picture"])
        _write_axes(files["picture"], arm, limits, design)
    written = {"file": files["output"], "picture": files["picture"], "report": files["report"]}
    facts = {
        "robot": arm.name,
        **design.to_dict(),
        **{name: path or "" for name, path in written.items()},
    }
    output.emit(
        facts,
        partial(_show, output, design),
        files=written,
        verdict=design.verdict,
        requested={"a motion": design.value},
    )


def _write_motion(
    path: Path | None, arm: RobotModel, design: Design, rate_hz: float | None
) -> None:
    from steelyard.io._motions import MOTION_TARGETS, write_motion

    if path is None:
        return
    if path.suffix == ".json":
        design.save(path)
        return
    remarks = [design.certificate.not_checked] if design.certificate.not_checked else []
    rate_hz = rate_hz or MOTION_TARGETS["csv"].rate_hz
    write_motion(path, design.trajectory, arm.joint_names, rate_hz, remarks=remarks)


def _write_axes(
    picture: Path | None, arm: RobotModel, limits: DesignLimits, design: Design
) -> None:
    """Draws the axes of the flange along the motion, where the limits have a workspace."""
    from steelyard.drawing import save_picture
    from steelyard.report._motion import orientation_plot

    if picture is None or limits.workspace is None:
        return
    t = np.linspace(0, design.trajectory.period_s, _ORIENTATION_SAMPLES)
    rotations = arm.forward_kinematics(design.trajectory.at(t)[0])[:, :3, :3]
    plot = orientation_plot(rotations, limits.workspace)
    save_picture([plot], _axes_file(picture), title=f"A motion for {arm.name}")


def _axes_file(picture: Path) -> Path:
    return picture.with_name(f"{picture.stem}_axes{picture.suffix}")


def _show(output: Output, design: Design) -> None:
    say(_headline(design))
    summary = design.verdict.summary
    say(f"{summary[0].upper()}{summary[1:]}; {design.seconds:.1f} s.\n")
    _show_certificate(output, design)
    if design.prediction is not None:
        output.table(*_predicted_table(design))
    elif design.std:
        rows = [(name, f"{std:.3g}") for name, std in design.std.items()]
        title = "\nPredicted standard deviations of a payload [SI]"
        output.table(title, ("parameter", "std"), rows)
    for doubt in design.verdict.doubts:
        say(f"warning: {doubt.words}")


def _headline(design: Design) -> str:
    prediction: Mapping[str, Any] | None = design.prediction
    if prediction is None:
        condition = f"condition number {design.condition_number:.4g}"
        return f"{design.objective}: {design.value:.6g} ({condition})"
    mass = prediction["payload"][0]
    percent = 100 * prediction["half_widths"][0] / mass
    return f"{design.trajectory.period_s:.3g} s weigh {mass:g} kg to {percent:.2g} % (95 %)."


def _show_certificate(output: Output, design: Design) -> None:
    certificate = design.certificate
    rows: list[tuple[str, ...]] = [
        (
            check.limit,
            check.where,
            "-" if check.at_s is None else f"{check.at_s:.3f}",
            number(check.value, 5),
            number(check.bound, 5),
            number(check.margin, 3),
            check.unit,
        )
        for check in certificate.checks
    ]
    headers = ("limit", "closest", "at_s", "value", "bound", "margin", "unit")
    output.table(f"Certificate ({certificate.rate_hz:g} Hz)", headers, rows)
    for title, listed in (
        ("Bodies that were checked", certificate.bodies),
        ("Pairs left out, as no joint can separate them", certificate.left_out),
    ):
        if listed:
            say(f"\n{title}:\n  " + "\n  ".join(listed))


def _predicted_table(design: Design) -> tuple[str, tuple[str, ...], list[tuple[str, ...]]]:
    """Title, headers and rows of the predicted half-widths, beside the requested ones."""
    from steelyard.torque._shortest import ShortestMotion

    motion = ShortestMotion.of(design)
    requested = motion.requested.half_widths * [1, 1e3, 1e3, 1e3, *[1] * 6]
    rows: list[tuple[str, ...]] = [
        (
            quantity.name,
            f"{quantity.half_width:.3g}" if np.isfinite(quantity.half_width) else "unknown",
            f"{half_width:.3g}" if np.isfinite(half_width) else "",
            quantity.unit,
        )
        for quantity, half_width in zip(motion.prediction.quantities, requested, strict=True)
    ]
    title = f"\nPredicted 95 % intervals of a payload of {motion.prediction.body.mass:g} kg"
    return title, ("", INTERVAL, "requested", "unit"), rows
