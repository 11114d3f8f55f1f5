"""Recordings as verbs take them: what a foreign file or a ROS bag leaves open is said with options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.errors import UnknownName

if TYPE_CHECKING:
    from steelyard.recording import Recording
    from steelyard.robot import RobotModel


ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="SIGNAL=NAME",
        help="Where a signal is in a foreign file, as tau=effort_; in a ROS bag q=/topic, tau=effort or "
        "current=effort, wrench=/topic; tau= leaves it out. May be repeated.",
    ),
]
JointsOption = Annotated[
    str | None,
    typer.Option(
        "--joints",
        metavar="A,B,...",
        help="Joints of a ROS bag in the arm's order; the arm's names by default.",
    ),
]
ConventionOption = Annotated[
    str | None,
    typer.Option(
        "--wrench-convention", help="load_on_sensor or sensor_on_load, for a wrench in a foreign file or bag."
    ),
]
WrenchFrameOption = Annotated[
    str | None,
    typer.Option("--wrench-frame", help="Frame of that wrench; a bag says it itself."),
]


def read_requested(
    path: Path,
    column: list[str] | None,
    joints: str | None,
    *,
    robot: RobotModel | None = None,
    wrench_convention: str | None = None,
    wrench_frame: str | None = None,
    degrees: bool = False,
) -> Recording:
    """The recording in a file, with what the user says about it.

    Args:
        path: the file, or the folder of a bag
        column: requests as SIGNAL=NAME, SIGNAL=NAME,NAME,... or SIGNAL=
        joints: names with commas
        robot: the arm, whose joints are read from a bag, in its order
        wrench_convention: who pushes whom
        wrench_frame: frame of the wrench
        degrees: whether angles are in degrees
    """
    from steelyard.io import read_recording
    from steelyard.io.recordings import file_kind

    names = tuple(name.strip() for name in joints.split(",")) if joints else ()
    if not names and robot is not None and file_kind(path) == "bag":
        names = robot.joint_names
    convention: Any = wrench_convention
    return read_recording(
        path,
        columns=_columns(column or []),
        joint_names=names,
        wrench_frame=wrench_frame,
        wrench_convention=convention,
        degrees=degrees,
    )


def _columns(requests: list[str]) -> dict[str, str | list[str]]:
    columns: dict[str, str | list[str]] = {}
    for request in requests:
        signal, equals, names = request.partition("=")
        if not signal or not equals:
            raise UnknownName(f"--column is SIGNAL=NAME, say tau=effort; got '{request}'")
        listed = [name.strip() for name in names.split(",") if name.strip()]
        columns[signal] = listed[0] if len(listed) == 1 else listed
    return columns
