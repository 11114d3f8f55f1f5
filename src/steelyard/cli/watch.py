"""`steelyard watch SOURCE --model MODEL`: what the arm carries, while it moves."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated

from steelyard.cli.live import (
    UPDATES_S,
    AccuracyOption,
    DarkFlag,
    HostOption,
    LiveModelOption,
    PageFlag,
    PortOption,
    SecondsOption,
    SourceArgument,
    UrdfOption,
    opened_page,
    show_updates,
    stay,
)
from steelyard.cli.options import JsonFlag, file_to_write
from steelyard.cli.output import Output
from steelyard.computing import interruptible


@interruptible()
def command(
    source: SourceArgument,
    model: LiveModelOption,
    accuracy: AccuracyOption = 1.0,
    record: Annotated[
        Path | None, file_to_write("Where every row goes besides (.parquet or .arrows).", "--record")
    ] = None,
    output: Annotated[Path | None, file_to_write("Where the payload goes (.json).", "--output", "-o")] = None,
    seconds: SecondsOption = float("inf"),
    page: PageFlag = False,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8080,
    urdf: UrdfOption = None,
    dark: DarkFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Weighs what the arm carries while it moves, until Ctrl-C. Exit code 1 when it is not to be trusted."""
    from steelyard.errors import InvalidSamples
    from steelyard.identification import DynamicModel
    from steelyard.live import LiveWeigher, Recorder, Stream, source_of, watch

    out, arm = Output(as_json), DynamicModel.load(model)
    with ExitStack() as pages:
        with ExitStack() as open_now:
            stream = open_now.enter_context(Stream(source_of(source, joint_names=arm.robot.joint_names)))
            recorder = None if record is None else open_now.enter_context(Recorder(record, stream.columns))
            weigher = LiveWeigher(arm, stream.columns, name=source, accuracy=accuracy / 100)
            kept = None if output is None else output.with_suffix(".undo.json")
            place = opened_page(
                weigher, stream.source, asked=page, host=host, port=port, urdf=urdf, dark=dark, kept=kept
            )
            served, over = pages.enter_context(place), False
            updates = watch(stream.items(seconds), weigher, every_s=UPDATES_S[page], recorder=recorder)
            with suppress(KeyboardInterrupt):
                show_updates(updates, accuracy / 100, quiet=as_json, page=served)
                over = True
        if over:
            stay(served)
    payload, update = weigher.payload(), weigher.update()
    if payload is None or update is None:
        why = "" if update is None else f" ({update.waiting})"
        raise InvalidSamples(f"{source}: nothing could be weighed{why}")
    if output is not None:
        payload.save(output)
    counts = {"rows": update.rows, "missing": update.missing, "dropped": update.dropped}
    facts = payload.to_dict() | counts | {"converged": update.converged, "file": output, "record": record}

    def answer() -> None:
        out.payload("What the arm carries (95 % intervals)", payload)
        print()
        out.verdict(payload.verdict)

    files = {"Payload": output, "Recording": record}
    out.emit(facts, answer, files=files, verdict=payload.verdict)
