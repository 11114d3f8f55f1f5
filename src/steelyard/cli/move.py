"""`steelyard move SOURCE MOTION`: a designed motion on the arm, with a recording of every row."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard._computing import interruptible
from steelyard.cli.live import (
    ReplaceFlag,
    SerialOption,
    SourceArgument,
    SpeedOption,
    YesFlag,
    arm_and_motion,
    updating_line,
)
from steelyard.cli.options import FlangeOption, JsonFlag, LockOption, file_to_write
from steelyard.cli.output import Output
from steelyard.cli.questions import motion_question, show_stop

if TYPE_CHECKING:
    from steelyard.live import Event, Recorded


@interruptible()
def command(
    source: SourceArgument,
    motion: Annotated[
        Path, typer.Argument(help="A design (.json, from steelyard design), or a trajectory.")
    ],
    output: Annotated[
        Path | None, file_to_write("File for every row (.parquet or .arrows).", "--output", "-o")
    ] = None,
    robot: Annotated[
        str | None,
        typer.Option(help="The arm that the motion is for; the one in the design by default."),
    ] = None,
    lock: LockOption = None,
    flange: FlangeOption = None,
    periods: Annotated[int, typer.Option(help="How often the motion runs.")] = 1,
    speed: SpeedOption = 0.25,
    replace: ReplaceFlag = False,
    serial: SerialOption = "",
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Moves the arm from its present posture into the motion and back.

    The arm moves only while this computer answers: Ctrl-C, a lost connection and a stalled stream
    stop it. Nothing checks the surroundings of the arm: watch the whole motion at low speed first,
    with a hand at the emergency stop.
    """
    from steelyard.live import MotionRequest, move, source_of

    out = Output(as_json)
    arm, trajectory = arm_and_motion(motion, robot, lock, flange)
    with ExitStack() as resources:

        @cache
        def line() -> tuple[Callable[[str], None], Callable[[Event], None]]:
            return resources.enter_context(updating_line(quiet=as_json))

        def on_report(report: Recorded) -> None:
            show, show_event = line()
            for event in report.events:
                show_event(event)
            show(f"the arm moves: {report.rows} rows, {report.missing} missing")

        report = move(
            source_of(source),
            arm,
            trajectory,
            confirm=motion_question(out, yes=yes),
            request=MotionRequest(
                periods=periods, tool_speed=speed, replace_program=replace, serial=serial
            ),
            output=output,
            on_report=on_report,
            on_stop=show_stop,
        )
    duration_s = report.plan.trajectory.duration_s
    words = f"The arm moved for {duration_s:.1f} s, {report.rows} rows."
    facts = {
        "seconds": duration_s,
        "moved": report.moved,
        "tool_speed": report.plan.extent.tool_speed,
        "rows": report.rows,
        "file": output,
    }
    out.emit(facts, lambda: print(words), files={"Recording": output})
