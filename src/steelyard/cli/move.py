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
    MotionLimitsOption,
    ReplaceFlag,
    SerialOption,
    SourceArgument,
    SpeedOption,
    YesFlag,
    arm_and_motion,
    updating_line,
)
from steelyard.cli.options import FlangeOption, JsonFlag, LockOption, file_to_write, load_limits
from steelyard.cli.output import Output
from steelyard.cli.questions import motion_question, show_stop
from steelyard.cli.terminal import say

if TYPE_CHECKING:
    from steelyard.live import Event, MotionReport, Recorded

_NOT_SEEN_MOVING = 1


@interruptible()
def command(
    source: SourceArgument,
    motion: Annotated[
        Path, typer.Argument(help="A design (.json, from steelyard design), or a trajectory.")
    ],
    output: Annotated[
        Path | None,
        file_to_write(
            "A file for every row (.parquet or .arrows).",
            "--output",
            "-o",
            endings=(".parquet", ".arrows"),
        ),
    ] = None,
    robot: Annotated[
        str | None,
        typer.Option(help="The arm that the motion is for. Default: that of the design."),
    ] = None,
    lock: LockOption = None,
    flange: FlangeOption = None,
    periods: Annotated[int, typer.Option(help="How many periods of the motion are run.")] = 1,
    speed: SpeedOption = 0.25,
    limits: MotionLimitsOption = None,
    replace: ReplaceFlag = False,
    serial: SerialOption = "",
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Moves the arm from its present posture into the motion and back.

    The arm moves only while this computer answers: Ctrl-C, a lost connection and a stalled stream
    stop it. The surroundings of the arm are checked with --limits only, and what it carries never:
    watch the whole motion at low speed first, with a hand at the emergency stop. Exit code 1 when
    it is not known whether the arm has moved.
    """
    from steelyard.live import MotionRequest, move, source_of

    out = Output(as_json)
    arm, trajectory = arm_and_motion(motion, robot, lock, flange)
    bounds = None
    if limits is not None:
        bounds = load_limits(arm, robot or arm.name, limits)
    with ExitStack() as resources:

        @cache
        def line() -> tuple[Callable[[str], None], Callable[[Event], None]]:
            return resources.enter_context(updating_line(quiet=as_json))

        def on_report(report: Recorded) -> None:
            show, show_event = line()
            for event in report.events:
                show_event(event)
            show(f"the motion: {report.rows} rows, {report.missing} missing")

        report = move(
            source_of(source),
            arm,
            trajectory,
            confirm=motion_question(out, yes=yes),
            request=MotionRequest(
                periods=periods,
                tool_speed=speed,
                limits=bounds,
                replace_program=replace,
                serial=serial,
            ),
            output=output,
            on_report=on_report,
            on_stop=show_stop,
        )
    facts = {
        "seconds": report.plan.trajectory.duration_s,
        "moved": report.moved,
        "tool_speed": report.plan.extent.tool_speed,
        "obstacles": report.plan.obstacles,
        "rows": report.rows,
        "file": output,
    }
    out.emit(facts, lambda: say(moved_words(report)), files={"Recording": output})
    if report.moved != "moved":
        raise typer.Exit(_NOT_SEEN_MOVING)


def moved_words(report: MotionReport) -> str:
    """What was seen of a motion that has ended.

    Args:
        report: of the motion
    """
    duration_s = report.plan.trajectory.duration_s
    if report.moved == "moved":
        return f"The arm moved for {duration_s:.1f} s, {report.rows} rows."
    return (
        f"The program of the motion ({duration_s:.1f} s) has ended; whether the arm has moved:"
        f" {report.moved}, {report.rows} rows."
    )
