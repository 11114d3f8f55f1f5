"""`steelyard set-payload SOURCE PAYLOAD`: sets a weighed payload on a controller."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard._computing import interruptible
from steelyard.cli.live import RatingOption, SerialOption, SourceArgument, TransitionOption, YesFlag
from steelyard.cli.options import JsonFlag
from steelyard.cli.output import Output
from steelyard.cli.questions import payload_question, show_setting

_NOT_SET = 1


@interruptible()
def command(
    source: SourceArgument,
    payload: Annotated[
        Path, typer.Argument(help="A weighed payload (.json, from steelyard weigh or track).")
    ],
    yes: YesFlag = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Restore the payload that was set before.")
    ] = False,
    transition: TransitionOption = 0.5,
    rating: RatingOption = None,
    serial: SerialOption = "",
    as_json: JsonFlag = False,
) -> None:
    """Sets the payload of a controller and waits for its confirmation.

    The payload before is added to the history beside the payload's file, for --undo. Let nothing
    touch the tool. Exit code 1 when the payload was sent and is not set, or this is not known.
    """
    from steelyard.live import restore_payload, set_payload, source_of
    from steelyard.payload import Payload

    out = Output(as_json)
    controller = source_of(source)
    history = payload.with_suffix(".undo.json")
    confirm = payload_question(out, yes=yes)
    if undo:
        setting = restore_payload(
            controller, history, confirm=confirm, transition_s=transition, serial=serial
        )
    else:
        setting = set_payload(
            controller,
            Payload.load(payload),
            confirm=confirm,
            history_file=history,
            rating_kg=rating,
            transition_s=transition,
            serial=serial,
        )
    show_setting(out, setting)
    old = None
    if setting.proposal.old is not None:
        old = setting.proposal.old._asdict()
    new = setting.proposal.new._asdict()
    facts = {"source": source, "old": old, "new": new, "sent": setting.sent}
    if setting.outcome is not None:
        reported = setting.outcome.reported
        facts["state"] = setting.outcome.state
        facts["reported"] = None if reported is None else reported._asdict()
    out.emit(facts, lambda: None)
    if setting.sent and not setting.is_set:
        raise typer.Exit(_NOT_SET)
