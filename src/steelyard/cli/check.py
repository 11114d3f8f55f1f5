"""`steelyard check FILE`: is this recording fit for use?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.output import JsonFlag, print_json
from steelyard.cli.recordings import (
    ColumnOption,
    ConventionOption,
    JointsOption,
    WrenchFrameOption,
    read_wished,
)

__all__ = ["command"]


def command(
    file: Annotated[Path, typer.Argument(help="A recording: .parquet, .npz, .csv, or a ROS 2 bag.")],
    robot: Annotated[
        str | None, typer.Option(help="The arm it should be of: a name, .urdf or .toml.")
    ] = None,
    column: ColumnOption = None,
    joints: JointsOption = None,
    wrench_convention: ConventionOption = None,
    wrench_frame: WrenchFrameOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Checks a recording: clock, gaps, repeats, saturation, units. Exit code 1 when it should not be used."""
    from steelyard.quality import DAMAGED_END, check_quality
    from steelyard.robot import load_robot

    arm = None if robot is None else load_robot(robot)
    recording = read_wished(
        file,
        column,
        joints,
        robot=arm,
        wrench_convention=wrench_convention,
        wrench_frame=wrench_frame,
    )
    report = check_quality(
        recording, limits=None if arm is None else arm.limits, expected_joints=None if arm is None else arm.n
    )
    if as_json:
        print_json({"file": str(file), **report.to_dict(), "notes": list(recording.notes)})
    else:
        rate = f"{recording.rate_hz:.4g} Hz" if recording.rate_hz else "one time only"
        print(f"{file}: {len(recording)} rows, {recording.n} joints, {recording.duration_s:.3f} s, {rate}")
        print(f"signals: {', '.join(recording.channels)}")
        for finding in report.findings:
            print(f"{finding.severity:>8}  {finding.sentence}")
        for note in recording.notes:
            if not note.startswith(DAMAGED_END):  # a finding already
                print(f"{'note':>8}  {note}")
    if not report.ok:
        raise typer.Exit(1)
