"""`steelyard run SOURCE MOTION`: a designed motion on the arm, and every row of it on disk."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import JsonFlag, file_to_write
from steelyard.cli.output import Output
from steelyard.cli.record import SourceArgument, updating_line
from steelyard.cli.set_payload import YesFlag

if TYPE_CHECKING:
    from steelyard.live.motion import Motion
    from steelyard.robot import RobotModel
    from steelyard.trajectory import FourierTrajectory


def command(
    source: SourceArgument,
    motion: Annotated[Path, typer.Argument(help="A design (.json, from steelyard design), or a trajectory.")],
    output: Annotated[
        Path | None, file_to_write("Where every row goes (.parquet or .arrows).", "--output", "-o")
    ] = None,
    robot: Annotated[
        str | None, typer.Option(help="The arm that the motion is for; as the design says by default.")
    ] = None,
    periods: Annotated[int, typer.Option(help="How often it runs.")] = 1,
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Moves the arm: from where it stands into the motion, and back. It replaces the program that runs.

    Nothing checks what stands around the arm: see the whole run slowly first, with a hand at the stop.
    """
    from contextlib import ExitStack

    from steelyard.live import Row, Stream, record, source_of
    from steelyard.live.motion import Motion
    from steelyard.live.recorder import Recorder

    arm, core = arm_and_motion(motion, robot)
    with ExitStack() as open_now:
        stream = open_now.enter_context(Stream(source_of(source)))
        plan = Motion.of(stream, arm, core, periods=periods)
        require_yes(plan, arm, yes=yes)
        show, tell = open_now.enter_context(updating_line(quiet=as_json))
        rows = 0
        if output is None:
            for item in plan.play(stream):
                rows += isinstance(item, Row)
                show(f"the arm moves: {rows} rows")
        else:
            recorder = open_now.enter_context(Recorder(output, stream.columns))
            for report in record(plan.play(stream), recorder):
                for event in report.events:
                    tell(event)
                rows = report.rows
                show(f"the arm moves: {rows} rows, {report.missing} missing")
    words = f"The arm moved for {plan.trajectory.duration_s:.1f} s, {rows} rows."
    facts = {"seconds": plan.trajectory.duration_s, "rows": rows, "file": output}
    Output(as_json).emit(facts, lambda: print(words), files={"Recording": output})


def arm_and_motion(path: Path, robot: str | None) -> tuple[RobotModel, FourierTrajectory]:
    """The motion in a file, and the arm that it is for."""
    from steelyard import saved
    from steelyard.errors import InvalidTrajectory
    from steelyard.robot import load_robot
    from steelyard.trajectory import load_trajectory

    core, content = load_trajectory(path), saved.read(path)
    named = str(content.get("robot") or "")
    if robot is None and not named:
        raise InvalidTrajectory(f"{path} does not say which arm it is for: give --robot")
    arm = load_robot(robot or named)
    if named and arm.name != named:
        raise InvalidTrajectory(f"{path} is a motion for {named}, not for {arm.name}")
    if core.n != arm.n:
        raise InvalidTrajectory(f"{path} moves {core.n} joints, {arm.name} has {arm.n}")
    return arm, core


def require_yes(plan: Motion, arm: RobotModel, *, yes: bool) -> None:
    """Asks before the arm moves; without a terminal, --yes is needed."""
    from steelyard.errors import InvalidTrajectory

    question = f"{arm.name} will move for {plan.trajectory.duration_s:.1f} s. Is the space around it free?"
    if not yes and not (sys.stdin.isatty() and typer.confirm(question)):
        raise InvalidTrajectory("nothing was moved: --yes moves the arm")
