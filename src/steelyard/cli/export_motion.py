"""`steelyard export-motion MOTION --to ur,csv`: a designed motion for controllers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from steelyard import _saved
from steelyard.cli import motions, options
from steelyard.cli.live import arm_and_motion
from steelyard.cli.output import Output
from steelyard.errors import UnknownName

if TYPE_CHECKING:
    from steelyard._arrays import Array
    from steelyard.robot import RobotModel

_HOME = "home"


def command(
    file: Annotated[Path, typer.Argument(help="A motion (.json, from design).")],
    to: Annotated[
        str, typer.Option(help="Target: ur, ros2, csv or franka, or several, as ur,csv.")
    ],
    posture: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="q1,...,qn",
            help="Posture before and after the motion [rad], or 'home': the way from there and"
            " back is added. Default: the first posture of the motion.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=1e5,
            help="Rate of the rows [Hz]. Default: ur 500, ros2 100, csv 125, franka 1000.",
        ),
    ] = None,
    robot: Annotated[
        str | None,
        typer.Option(help="The arm that moves. Default: the arm of the design."),
    ] = None,
    limits: motions.LimitsOption = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    output: Annotated[
        Path | None,
        options.file_to_write(
            "The file to write; with several targets, each adds its ending. Default: print.",
            "--output",
            "-o",
        ),
    ] = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Writes a motion for controllers, with the way from the present posture and back.

    The whole motion is certified against the limits again, and refused where it breaks one.
    """
    from steelyard.io._motions import MOTION_TARGETS, approached, motion_text

    targets = _targets(to, file)
    if output is None and len(targets) > 1:
        raise UnknownName("several targets need -o, a name to which each adds its ending")
    arm, core = arm_and_motion(file, robot, lock, flange)
    standing = _standing(arm, posture)
    whole = approached(arm, core, standing, options.load_limits(arm, robot or "", limits))
    remarks = []
    if standing is not None:
        remarks.append(f"with the way from {standing.round(4).tolist()} rad, and back")
    texts = {}
    for target in targets:
        rate_hz = rate or MOTION_TARGETS[target].rate_hz
        texts[target] = motion_text(target, whole, arm.joint_names, rate_hz, remarks=remarks)
    files = _write(texts, output)
    facts = {
        "robot": arm.name,
        "seconds": whole.duration_s,
        "files": {target: str(path) for target, path in files.items()},
        "text": None if files else texts[targets[0]],
    }
    written = [f"Written: {path}, {MOTION_TARGETS[target].words}" for target, path in files.items()]
    Output(as_json).emit(facts, lambda: print("\n".join(written) or texts[targets[0]]))


def _targets(text: str, file: Path) -> list[str]:
    from steelyard.io._motions import MOTION_TARGETS

    targets = text.split(",")
    for target in targets:
        if target not in MOTION_TARGETS:
            known = ", ".join(MOTION_TARGETS)
            raise UnknownName(
                f"{file} is a motion, which is exported to {known}, not to '{target}'"
            )
    return targets


def _standing(arm: RobotModel, text: str | None) -> Array | None:
    """The posture of --from, (n,) [rad or m]; None for the first posture of the motion."""
    if text is None:
        return None
    if text == _HOME:
        return arm.home
    return np.array(options.numbers(text, "--from is q1,...,qn [rad], or 'home'", count=arm.n))


def _write(texts: dict[str, str], output: Path | None) -> dict[str, Path]:
    """Writes the text of each target; several files differ in their endings."""
    from steelyard.io._motions import MOTION_TARGETS

    if output is None:
        return {}
    files = {}
    with _saved.together():
        for target, text in texts.items():
            path = output
            if len(texts) > 1:
                path = output.with_suffix(MOTION_TARGETS[target].ending)
            _saved.write_text(path, text)
            files[target] = path
    return files
