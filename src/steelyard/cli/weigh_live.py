"""`steelyard weigh-live SOURCE --model MODEL`: moves the arm, weighs, offers to set the payload."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard._computing import interruptible
from steelyard.cli.live import (
    AccuracyOption,
    LiveModelOption,
    MotionLimitsOption,
    PageOption,
    RatingOption,
    ReplaceFlag,
    SerialOption,
    SourceArgument,
    SpeedOption,
    TrackerOption,
    TransitionOption,
    YesFlag,
    arm_and_motion,
    opened_page,
    stay,
    undo_file,
)
from steelyard.cli.options import JsonFlag, file_to_write, load_limits
from steelyard.cli.output import Output
from steelyard.cli.progress import snapshots_shown
from steelyard.cli.questions import motion_question, payload_question, show_setting, show_stop
from steelyard.cli.terminal import say

if TYPE_CHECKING:
    from steelyard.identification import DynamicModel
    from steelyard.live import (
        LivePage,
        LiveWeighing,
        MotionPlan,
        PayloadSetting,
        Snapshot,
        Source,
        WeighingRequest,
    )


@interruptible()
def command(
    source: SourceArgument,
    model: LiveModelOption,
    motion: Annotated[
        Path | None,
        typer.Option(
            help="The motion (.json, from steelyard design). Default: a short one around the"
            " present posture."
        ),
    ] = None,
    reach: Annotated[
        float | None,
        typer.Option(
            help="How far a joint may move away from the present posture [rad]. Default: 0.6, or"
            " as far as --motion goes.",
            show_default=False,
        ),
    ] = None,
    period: Annotated[
        float | None,
        typer.Option(
            help="Length of the motion [s]. Default: 6, or that of --motion.",
            show_default=False,
        ),
    ] = None,
    speed: SpeedOption = 0.25,
    limits: MotionLimitsOption = None,
    replace: ReplaceFlag = False,
    serial: SerialOption = "",
    accuracy: AccuracyOption = 1.0,
    tracker: TrackerOption = "direct",
    record: Annotated[
        Path | None,
        file_to_write(
            "A file for every row (.parquet or .arrows).",
            "--record",
            endings=(".parquet", ".arrows"),
        ),
    ] = None,
    output: Annotated[
        Path | None,
        file_to_write("The payload to write (.json).", "--output", "-o", endings=(".json",)),
    ] = None,
    set_it: Annotated[
        bool, typer.Option("--set", help="Set the payload on the controller without asking.")
    ] = False,
    transition: TransitionOption = 0.5,
    rating: RatingOption = None,
    yes: YesFlag = False,
    page: PageOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Moves the arm, weighs what it carries, and offers to set the payload on the controller.

    Exit code 1 when the answer is not to be trusted; then nothing is set.
    """
    from steelyard.live import TorqueSetup, WeighingRequest, set_payload, source_of
    from steelyard.workflow._data import identified_arm

    out = Output(as_json)
    known = identified_arm(model).with_known_serial(serial)
    controller = source_of(source)
    trajectory = None
    if motion is not None:
        trajectory = arm_and_motion(motion, known.robot)[1]
    bounds = None
    if limits is not None:
        bounds = load_limits(known.robot, known.robot.name, limits)
    request = WeighingRequest(
        motion=trajectory,
        period_s=period,
        reach=reach,
        tool_speed=speed,
        replace_program=replace,
        limits=bounds,
        serial=serial,
        accuracy=accuracy / 100,
        tracker=tracker,
    )
    with opened_page(
        page,
        controller,
        lambda stream: TorqueSetup(known, stream.columns, source, accuracy / 100, tracker=tracker),
        history_file=undo_file(output),
    ) as shown:
        found = _weighed(out, controller, known, request, record=record, page=shown, yes=yes)
        if output is not None:
            found.payload.save(output)
        _show(out, found)
        setting = None
        if found.payload.verdict.ok and (set_it or sys.stdin.isatty()):
            setting = set_payload(
                controller,
                found.payload,
                confirm=payload_question(out, yes=set_it),
                history_file=undo_file(output),
                rating_kg=rating,
                transition_s=transition,
                serial=serial,
            )
            show_setting(out, setting)
        stay(shown)
    facts = _facts(found, setting) | {"file": output}
    files = {"Payload": output, "Recording": record}
    out.emit(facts, lambda: None, files=files, verdict=found.payload.verdict)


def _weighed(
    out: Output,
    controller: Source,
    model: DynamicModel,
    request: WeighingRequest,
    *,
    record: Path | None,
    page: LivePage | None,
    yes: bool,
) -> LiveWeighing:
    """Weighs, with progress while a motion is designed and snapshots while the arm moves."""
    from steelyard.live import weigh_live

    ask = motion_question(out, yes=yes)
    with ExitStack() as designing, ExitStack() as moving:
        if request.motion is None:
            progress = out.progress("a short motion that shows a payload")
            designing.callback(designing.enter_context(progress), 1.0)

        @cache
        def show() -> Callable[[Snapshot], None]:
            return moving.enter_context(
                snapshots_shown(str(controller), request.accuracy, quiet=out.as_json)
            )

        def confirm(plan: MotionPlan) -> bool:
            designing.close()
            return ask(plan)

        return weigh_live(
            controller,
            model,
            confirm=confirm,
            request=request,
            output=record,
            page=page,
            on_snapshot=lambda snapshot: show()(snapshot),
            on_stop=show_stop,
        )


def _show(out: Output, found: LiveWeighing) -> None:
    """Prints the payload and its verdict, before the question whether to set it."""
    if out.as_json:
        return
    out.payload("What the arm carries", found.payload)
    say()
    out.verdict(found.payload.verdict)


def _facts(found: LiveWeighing, setting: PayloadSetting | None) -> dict[str, Any]:
    """The answer for programs."""
    return found.payload.to_dict() | {
        "rows": found.rows,
        "missing": found.missing,
        "set": setting is not None and setting.is_set,
    }
