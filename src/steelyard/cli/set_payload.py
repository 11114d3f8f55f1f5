"""`steelyard set-payload SOURCE PAYLOAD`: what was weighed, into the controller; asked for, and echoed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.options import JsonFlag
from steelyard.cli.output import Output
from steelyard.cli.record import SourceArgument

if TYPE_CHECKING:
    from steelyard.live.setting import Proposal

YesFlag = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
TransitionOption = Annotated[float, typer.Option(help="In which the controller changes over [s].")]
RatingOption = Annotated[
    float | None,
    typer.Option(help="What the arm may carry [kg]; by the kind of arm by default."),
]


def command(
    source: SourceArgument,
    payload: Annotated[Path, typer.Argument(help="What was weighed (.json, from steelyard weigh or watch).")],
    yes: YesFlag = False,
    undo: Annotated[bool, typer.Option("--undo", help="Put back what it believed in before.")] = False,
    transition: TransitionOption = 0.5,
    rating: RatingOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Sets the payload that a controller believes in, and waits until it says so.

    What it believed in before is kept beside the payload's file, for --undo. Let nothing touch the tool.
    """
    from steelyard.live import source_of
    from steelyard.live.setting import Proposal
    from steelyard.live.ur import controller_of
    from steelyard.payload import Payload

    out, arm = Output(as_json), controller_of(source_of(source))
    kept = payload.with_suffix(".undo.json")
    if not undo:
        proposal = Proposal.of(arm, Payload.load(payload), rating_kg=rating)
        sent = settled(out, proposal, kept, yes=yes, transition_s=transition)
    else:
        proposal = Proposal.undo(arm, kept)
        sent = settled(out, proposal, None, yes=yes, transition_s=transition)
    facts = {"source": source, "old": proposal.old._asdict(), "new": proposal.new._asdict(), "sent": sent}
    out.emit(facts, lambda: None)


def settled(out: Output, proposal: Proposal, kept: Path | None, *, yes: bool, transition_s: float) -> bool:
    """Shows old beside new, asks, sends and waits for the echo; whether it was sent."""
    if not out.as_json:
        title = f"What {proposal.source} believes in (inertia about the centre of gravity)"
        out.table(title, ("", "now", "new", "unit"), _rows(proposal))
    if not yes and not (sys.stdin.isatty() and not out.as_json and typer.confirm("Set it?")):
        _say(out, "Nothing was sent; --yes sends it.")
        return False
    if kept is not None:
        proposal.save(kept)
    proposal.send(transition_s=transition_s)
    _say(out, f"Done: the controller says that it believes in {proposal.new.mass:.3f} kg.")
    if kept is not None:
        _say(out, f"What it believed in before: {kept} (--undo puts it back)")
    return True


def _say(out: Output, words: str) -> None:
    if not out.as_json:
        print(words)


def _rows(proposal: Proposal) -> list[tuple[str, str, str, str]]:
    def numbers(believed: Any) -> list[float]:
        return [believed.mass, *(1e3 * x for x in believed.cog), *believed.inertia]

    names = ["mass", *(f"centre of gravity {x}" for x in "xyz"), "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz"]
    units = ["kg", *["mm"] * 3, *["kg m^2"] * 6]
    cells = zip(names, numbers(proposal.old), numbers(proposal.new), units, strict=True)
    return [(name, f"{old:.4f}", f"{new:.4f}", unit) for name, old, new, unit in cells]
