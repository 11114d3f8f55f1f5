"""`steelyard record SOURCE -o FILE`: every row of a live source, on disk as it comes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import JsonFlag, file_to_write
from steelyard.cli.output import Output

if TYPE_CHECKING:
    from steelyard.live import Event

SourceArgument = Annotated[
    str, typer.Argument(help="Where rows come from: ur://HOST, ur://HOST:PORT or replay:FILE.")
]
SecondsOption = Annotated[
    float, typer.Option(help="How long [s]; until Ctrl-C by default.", show_default=False)
]


def command(
    source: SourceArgument,
    output: Annotated[
        Path,
        file_to_write(
            "Where the rows go: .parquet, or .arrows to keep the stream that is written meanwhile.",
            "--output",
            "-o",
        ),
    ],
    seconds: SecondsOption = float("inf"),
    as_json: JsonFlag = False,
) -> None:
    """Records every row under the sender's own names. What is on disk can be read whatever happens."""
    from steelyard.live import Recorder, Stream, record, source_of

    report = None
    with (
        Stream(source_of(source)) as stream,
        Recorder(output, stream.columns) as recorder,
        updating_line(quiet=as_json) as (show, tell),
        suppress(KeyboardInterrupt),
    ):
        for report in record(stream.items(seconds), recorder):
            for event in report.events:
                tell(event)
            state = f"waiting: {report.waiting}" if report.waiting else "the arm runs"
            rows = f"{report.rows} rows, {report.rate_hz:.0f} per second"
            show(f"{rows}, {report.missing} missing; {state}")
    files = [str(path) for path in recorder.files]
    missing = 0 if report is None else report.missing
    lost = f"{missing} missing, {stream.dropped} dropped here"
    facts = {"files": files, "rows": recorder.rows, "missing": missing, "dropped": stream.dropped}
    words = f"{', '.join(files) or 'No file'}: {recorder.rows} rows, {lost}"
    Output(as_json).emit(facts, lambda: print(words))


@contextmanager
def updating_line(*, quiet: bool) -> Iterator[tuple[Callable[[str], None], Callable[[Event], None]]]:
    """What shows a line, which updates in a terminal and comes once per second elsewhere; and an event."""
    if quiet:
        yield lambda words: None, lambda event: None
        return
    if not sys.stdout.isatty():
        due_s = 0.0

        def show(words: str) -> None:
            nonlocal due_s
            if time.monotonic() >= due_s:
                due_s = time.monotonic() + 1.0
                print(words, flush=True)

        yield show, lambda event: print(event.words, flush=True)
        return
    from rich.live import Live
    from rich.text import Text

    with Live(refresh_per_second=10) as live:
        yield (
            lambda words: live.update(Text(words, overflow="ellipsis", no_wrap=True)),
            lambda event: live.console.print(event.words, markup=False, highlight=False),
        )
