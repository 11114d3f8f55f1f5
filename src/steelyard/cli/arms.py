"""The arm as verbs take it: a name or file, joints to lock, a flange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.errors import InvalidRobot

if TYPE_CHECKING:
    from steelyard.robot import RobotModel

__all__ = ["FlangeOption", "LockOption", "RobotArgument", "load_arm"]

RobotArgument = Annotated[str, typer.Argument(help="A bundled arm, or a .urdf or .toml file.")]
LockOption = Annotated[
    list[str] | None,
    typer.Option(help="A joint that shall not move, as finger=0.02 [rad or m]; may be repeated."),
]
FlangeOption = Annotated[str | None, typer.Option(help="The frame for payloads, of a URDF.")]


def load_arm(name: str, lock: list[str] | None, flange: str | None) -> RobotModel:
    """The arm that a user named.

    Args:
        name: of a bundled arm, or a path
        lock: joints and their positions as NAME=NUMBER [rad or m]
        flange: name of the frame for payloads
    """
    from steelyard.robot import load_robot

    locked = {}
    for wish in lock or []:
        joint, _, position = wish.partition("=")
        try:
            locked[joint] = float(position)
        except ValueError:
            raise InvalidRobot(f"--lock is JOINT=NUMBER, say finger=0.02; got '{wish}'") from None
    return load_robot(name, locked=locked, flange=flange)
