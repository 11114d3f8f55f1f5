"""The arm as verbs take it: a name or file, joints to lock, a flange, and where things fall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.errors import InvalidRobot

if TYPE_CHECKING:
    from steelyard.robot import RobotModel


RobotArgument = Annotated[str, typer.Argument(help="A bundled arm, or a .urdf or .toml file.")]
LockOption = Annotated[
    list[str] | None,
    typer.Option(help="A joint that shall not move, as finger=0.02 [rad or m]; may be repeated."),
]
FlangeOption = Annotated[str | None, typer.Option(help="The frame for payloads, of a URDF.")]
GravityOption = Annotated[
    str | None,
    typer.Option(
        "--gravity",
        metavar="X,Y,Z",
        help="Where things fall in the base frame [m/s^2], for a tilted base, a wall (say 0,9.81,0) or a "
        "ceiling (0,0,9.81); the arm's own by default, 0,0,-9.81 of a URDF.",
    ),
]


def load_arm(name: str, lock: list[str] | None, flange: str | None, gravity: str | None = None) -> RobotModel:
    """The arm that a user named.

    Args:
        name: of a bundled arm, or a path
        lock: joints and their positions as NAME=NUMBER [rad or m]
        flange: name of the frame for payloads
        gravity: where things fall in the base frame, as X,Y,Z [m/s^2]; the arm's own by default
    """
    from steelyard.robot import load_robot

    locked = {}
    for request in lock or []:
        joint, _, position = request.partition("=")
        try:
            locked[joint] = float(position)
        except ValueError:
            raise InvalidRobot(f"--lock is JOINT=NUMBER, say finger=0.02; got '{request}'") from None
    robot = load_robot(name, locked=locked, flange=flange)
    return robot if gravity is None else robot.with_gravity(_vector(gravity))


def _vector(text: str) -> list[float]:
    try:
        numbers = [float(x) for x in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 3:
        raise InvalidRobot(f"--gravity is X,Y,Z [m/s^2], say 0,9.81,0; got '{text}'")
    return numbers
