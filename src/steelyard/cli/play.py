"""`steelyard run SOURCE MOTION`: a designed motion on the arm, and every row of it on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard._computing import interruptible
from steelyard.cli.live import SourceArgument, YesFlag, arm_and_motion, require_yes, updating_line
from steelyard.cli.options import FlangeOption, JsonFlag, LockOption, file_to_write
from steelyard.cli.output import Output


@interruptible()
def command(
    source: SourceArgument,
    motion: Annotated[
        Path, typer.Argument(help="A design (.json, from steelyard design), or a trajectory.")
    ],
    output: Annotated[
        Path | None, file_to_write("Where every row goes (.parquet or .arrows).", "--output", "-o")
    ] = None,
    robot: Annotated[
        str | None,
        typer.Option(help="The arm that the motion is for; as the design says by default."),
    ] = None,
    lock: LockOption = None,
    flange: FlangeOption = None,
    periods: Annotated[int, typer.Option(help="How often it runs.")] = 1,
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Moves the arm: from where it stands into the motion, and back. It replaces the program that runs.

    Nothing checks what stands around the arm: see the whole run slowly first, with a hand at the
    stop.
    """
    from contextlib import ExitStack

    from steelyard.live import Row, Stream, record, source_of
    from steelyard.live._controller import movable_of
    from steelyard.live._motion import MotionPlan
    from steelyard.live._recorder import Recorder

    arm, core = arm_and_motion(motion, robot, lock, flange)
    with ExitStack() as open_now:
        stream = open_now.enter_context(Stream(movable_of(source_of(source))))
        plan = MotionPlan.of(stream, arm, core, periods=periods)
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
