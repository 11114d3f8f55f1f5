"""`steelyard check FILE`: checks a recording; `-o` converts it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options
from steelyard.cli.output import Output
from steelyard.cli.terminal import say
from steelyard.errors import InvalidRecording

if TYPE_CHECKING:
    from steelyard.quality import QualityReport
    from steelyard.recording import Recording


def command(
    file: Annotated[
        Path, typer.Argument(help="A recording: .parquet, .npz, .csv, .mat, or a ROS bag.")
    ],
    robot: Annotated[
        str | None, typer.Option(help="The arm of the recording: a bundled name, .urdf or .toml.")
    ] = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    wrench_convention: options.ConventionOption = None,
    wrench_frame: Annotated[
        str | None, typer.Option(help="Frame of the wrench. A bag states its own.")
    ] = None,
    names: options.NamesOption = None,
    rate: options.RateOption = None,
    degrees: options.DegreesFlag = False,
    trust: options.TrustOption = "",
    between: Annotated[
        str | None,
        typer.Option(
            metavar="FROM,TO", help="Use these times only, counted from the first row [s]."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        options.file_to_write(
            "The converted recording to write (.parquet, .npz).",
            "--output",
            "-o",
            endings=(".parquet", ".npz"),
        ),
    ] = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Checks a recording: clock, gaps, repeats, saturation, units.

    Exit code 1 when it should not be used. --output converts it to standard names and units.
    """
    from steelyard.quality import check

    arm = options.load_arm_if_named(robot, lock, flange)
    asked = options.requested(
        column,
        joints,
        wrench_convention,
        wrench_frame=wrench_frame,
        degrees=degrees,
        names=names,
        rate=rate,
        trust=trust,
    )
    recording = options.read_requested(file, asked, robot=arm)
    if arm is not None:
        recording = recording.named(arm.joint_names)
    if between is not None:
        start_s, end_s = options.numbers(between, "--between is FROM,TO [s], say 0,3.1", count=2)
        if not start_s < end_s:
            raise InvalidRecording(f"--between {between}: the second time must be the later one")
        recording = recording.between(start_s, end_s)
    if output is not None:
        from steelyard.io import write

        write(recording, output)
    report = check(recording)
    if arm is not None:
        report = check(recording, limits=arm.limits, gain=arm.drive.gain)
    facts = {"file": file, **report.to_dict(), "notes": list(recording.notes), "written": output}
    show = partial(_show, file, recording, report)
    Output(as_json).emit(facts, show, files={"Written": output}, verdict=report.verdict)


def _show(file: Path, recording: Recording, report: QualityReport) -> None:
    if recording.rate_hz:
        rate = f"{recording.rate_hz:.4g} Hz"
    else:
        rate = "one time only"
    say(
        f"{file}: {len(recording)} rows, {recording.n} joints, {recording.duration_s:.3f} s, {rate}"
    )
    say(f"signals: {', '.join(recording.channels)}")
    for finding in report.findings:
        say(f"{finding.severity:>8}  {options.with_options(finding.sentence)}")
    for note in recording.notes:
        if note not in (finding.sentence for finding in report.findings):
            say(f"{'note':>8}  {options.with_options(note)}")
