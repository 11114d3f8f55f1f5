"""`steelyard stop SOURCE`: stops whatever an arm does, and reports what was seen afterwards."""

from __future__ import annotations

import math

import typer

from steelyard._computing import interruptible
from steelyard.cli.live import SourceArgument
from steelyard.cli.options import JsonFlag
from steelyard.cli.output import Output

_NOT_AT_REST = 1


@interruptible()
def command(source: SourceArgument, as_json: JsonFlag = False) -> None:
    """Stops the arm: any motion, by any program.

    Exit code 0 when the arm was seen at rest afterwards, 1 when it still moves or nothing is known.
    This is no emergency stop: it needs the network and a controller that listens.
    """
    from steelyard.live import source_of, stop

    report = stop(source_of(source))
    seconds = None if math.isnan(report.seconds) else report.seconds
    facts = {"state": report.state, "seconds": seconds, "reason": report.reason}
    sentence = f"{report.sentence[0].upper()}{report.sentence[1:]}."
    Output(as_json).emit(facts, lambda: print(sentence))
    if not report.at_rest:
        raise typer.Exit(_NOT_AT_REST)
