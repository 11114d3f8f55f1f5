"""`steelyard record SOURCE -o FILE`: every row of a live source, on disk as it comes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

from steelyard._computing import interruptible
from steelyard.cli.live import SecondsOption, SourceArgument, updating_line
from steelyard.cli.options import JsonFlag, file_to_write
from steelyard.cli.output import Output
from steelyard.cli.terminal import say


@interruptible()
def command(
    source: SourceArgument,
    output: Annotated[
        Path,
        file_to_write(
            "The file to write: .parquet, or .arrows, which other programs can read while it"
            " grows.",
            "--output",
            "-o",
            endings=(".parquet", ".arrows"),
        ),
    ],
    seconds: SecondsOption = float("inf"),
    as_json: JsonFlag = False,
) -> None:
    """Records every row under the sender's names. The file is readable even after a crash."""
    from steelyard.live import Recorder, Stream, record, source_of

    report = None
    with (
        Stream(source_of(source)) as stream,
        Recorder(output, stream.columns, stream.identity()) as recorder,
        updating_line(quiet=as_json) as (show, tell),
        suppress(KeyboardInterrupt),
    ):
        for report in record(stream.items(seconds), recorder):
            for event in report.events:
                tell(event)
            if report.waiting:
                state = f"waiting: {report.waiting}"
            else:
                state = "the arm runs"
            rows = f"{report.rows} rows, {report.rate_hz:.0f} per second"
            show(f"{rows}, {report.missing} missing; {state}")
    files = [str(path) for path in recorder.files]
    if report is None:
        missing = 0
    else:
        missing = report.missing
    dropped = stream.dropped + recorder.dropped
    lost = f"{missing} missing, {dropped} dropped here"
    facts = {"files": files, "rows": recorder.rows, "missing": missing, "dropped": dropped}
    words = f"{', '.join(files) or 'No file'}: {recorder.rows} rows, {lost}"
    Output(as_json).emit(facts, lambda: say(words))
