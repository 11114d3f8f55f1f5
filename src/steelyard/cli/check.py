"""`steelyard check FILE`: is this recording fit for use? With `-o`, written anew as every verb reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.output import JsonFlag, in_a_folder, print_json
from steelyard.cli.recordings import (
    ColumnOption,
    ConventionOption,
    JointsOption,
    WrenchFrameOption,
    read_requested,
)
from steelyard.errors import InvalidRecording


def command(
    file: Annotated[Path, typer.Argument(help="A recording: .parquet, .npz, .csv, or a ROS 2 bag.")],
    robot: Annotated[
        str | None, typer.Option(help="The arm it should be of: a name, .urdf or .toml.")
    ] = None,
    column: ColumnOption = None,
    joints: JointsOption = None,
    wrench_convention: ConventionOption = None,
    wrench_frame: WrenchFrameOption = None,
    degrees: Annotated[
        bool, typer.Option("--degrees", help="Angles of a foreign file are in degrees, not in radians.")
    ] = False,
    between: Annotated[
        str | None, typer.Option(metavar="FROM,TO", help="Only these times, from the first row on [s].")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", callback=in_a_folder, help="Write what was read (.parquet, .npz)."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Checks a recording: clock, gaps, repeats, saturation, units. Exit code 1 when it should not be used.

    With --output it is written anew with our names and units, whole or cut, for the other verbs.
    """
    from steelyard.quality import check_quality
    from steelyard.robot import load_robot

    times = None if between is None else _times(between)
    arm = None if robot is None else load_robot(robot)
    recording = read_requested(
        file,
        column,
        joints,
        robot=arm,
        wrench_convention=wrench_convention,
        wrench_frame=wrench_frame,
        degrees=degrees,
    )
    if times is not None:
        recording = recording.between(*times)
    if output is not None:
        from steelyard.io import write_recording

        write_recording(recording, output)
    report = check_quality(
        recording, limits=None if arm is None else arm.limits, expected_joints=None if arm is None else arm.n
    )
    if as_json:
        written = None if output is None else str(output)
        facts = {"file": str(file), **report.to_dict(), "notes": list(recording.notes), "written": written}
        print_json(facts)
    else:
        rate = f"{recording.rate_hz:.4g} Hz" if recording.rate_hz else "one time only"
        print(f"{file}: {len(recording)} rows, {recording.n} joints, {recording.duration_s:.3f} s, {rate}")
        print(f"signals: {', '.join(recording.channels)}")
        for finding in report.findings:
            print(f"{finding.severity:>8}  {finding.sentence}")
        for note in recording.notes:
            if note not in (finding.sentence for finding in report.findings):
                print(f"{'note':>8}  {note}")
        if output is not None:
            print(f"Written: {output}")
    if not report.ok:
        raise typer.Exit(1)


def _times(text: str) -> tuple[float, float]:
    first, _, last = text.partition(",")
    try:
        start_s, end_s = float(first), float(last)
    except ValueError:
        raise InvalidRecording(f"--between is FROM,TO [s], say 0,3.1; got '{text}'") from None
    if not start_s < end_s:
        raise InvalidRecording(f"--between {text}: the second time must be the later one")
    return start_s, end_s
