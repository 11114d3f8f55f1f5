"""`steelyard set-payload SOURCE PAYLOAD`: what was weighed, into the controller; asked for, and echoed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard._computing import interruptible
from steelyard.cli.live import RatingOption, SourceArgument, TransitionOption, YesFlag, settled
from steelyard.cli.options import JsonFlag
from steelyard.cli.output import Output


@interruptible()
def command(
    source: SourceArgument,
    payload: Annotated[
        Path, typer.Argument(help="What was weighed (.json, from steelyard weigh or watch).")
    ],
    yes: YesFlag = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Put back what it believed in before.")
    ] = False,
    transition: TransitionOption = 0.5,
    rating: RatingOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Sets the payload that a controller believes in, and waits until it says so.

    What it believed in before is kept beside the payload's file, for --undo. Let nothing touch the
    tool.
    """
    from steelyard.live import source_of
    from steelyard.live._setting import Proposal
    from steelyard.payload import Payload

    out = Output(as_json)
    arm = source_of(source)
    kept = payload.with_suffix(".undo.json")
    if not undo:
        proposal = Proposal.of(arm, Payload.load(payload), rating_kg=rating)
        sent = settled(out, proposal, kept, yes=yes, transition_s=transition)
    else:
        proposal = Proposal.undo(arm, kept)
        sent = settled(out, proposal, None, yes=yes, transition_s=transition)
    if proposal.old is None:
        old = None
    else:
        old = proposal.old._asdict()
    facts = {"source": source, "old": old, "new": proposal.new._asdict(), "sent": sent}
    out.emit(facts, lambda: None)
