"""What the verbs share: tables, one JSON object, progress, complaints."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
import typer

from steelyard.errors import UnreadableFile
from steelyard.payload import Payload
from steelyard.verdict import Verdict

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of words.")]


def print_json(result: dict[str, Any]) -> None:
    """Prints one JSON object; numbers that are not finite become null."""
    print(json.dumps(_plain(result), indent=2, allow_nan=False))


def print_table(
    title: str, headers: Sequence[str], rows: Sequence[Sequence[str]], *, words: Sequence[int] = (0,)
) -> None:
    """Prints a table: words to the left, numbers to the right.

    Args:
        title: above it
        headers: of the columns
        rows: the cells
        words: which columns hold words
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title, style="bold"), title_justify="left", box=None, pad_edge=False)
    for i, header in enumerate(headers):
        table.add_column(header, justify="left" if i in words else "right", header_style="dim")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(soft_wrap=not sys.stdout.isatty()).print(table)


def print_quantities(title: str, payload: Payload) -> None:
    """Prints the numbers of a payload with their 95 % intervals.

    Args:
        title: above them
        payload: what was weighed
    """
    rows = [
        (x.name, f"{x.value:.4f}" if math.isfinite(x.std) else "unknown", f"{x.half_width:.4f}", x.unit)
        for x in payload.quantities
    ]
    print_table(title, ("", "weighed", "+-", "unit"), rows)


def print_verdict(verdict: Verdict, *, before: str = "") -> None:
    """Prints a verdict: what was found or forbids to use it, then a line for each doubt beside.

    Args:
        verdict: on an answer
        before: words in front of it
    """
    words = str(replace(verdict, doubts=verdict.blocking))
    print(f"{before}{words[0].lower()}{words[1:]}" if before else words)
    for doubt in verdict.doubts:
        if not doubt.blocks:
            print(f"Note: {doubt.words}.")


def number(value: float, digits: int = 4) -> str:
    """The number as a person reads it; a dash where it is not finite."""
    return f"{value:.{digits}g}" if math.isfinite(value) else "-"


def in_a_folder(path: Path | None) -> Path | None:
    """The path of a file to write, refused before any work is done where its folder does not exist.

    Args:
        path: of the file; None where none is asked for
    """
    if path is not None and not path.parent.is_dir():
        raise UnreadableFile(f"cannot write {path}: there is no folder {path.parent}")
    return path


class _Done(Protocol):
    """Called with the share of the work that is done, and with what goes on, in words."""

    def __call__(self, share: float, words: str = "") -> None:
        """Shows it."""


@contextmanager
def progress(what: str, *, quiet: bool) -> Iterator[_Done]:
    """A bar on stderr while work goes on, plain lines where stderr is no terminal.

    Args:
        what: the work, in words
        quiet: show nothing
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    if quiet or not sys.stderr.isatty():
        yield _silent if quiet else _plain_lines(what)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=1.0)

        def done(share: float, words: str = "") -> None:
            bar.update(task, completed=share, description=f"{what}: {words}" if words else what)

        yield done
        bar.update(task, completed=1.0)


def _silent(share: float, words: str = "") -> None: ...


def _plain_lines(what: str) -> _Done:
    """A line on stderr whenever the words change."""
    began, before = time.monotonic(), ""

    def done(share: float, words: str = "") -> None:
        nonlocal before
        if words and words != before:
            left = (time.monotonic() - began) * (1 / share - 1) if share > 0 else 0.0
            print(f"{what}: {words}" + (f", about {left:.0f} s left" if left >= 1 else ""), file=sys.stderr)
        before = words

    return done


def complain(message: str, *, as_json: bool) -> None:
    """One clear line on stderr; with `--json` an object with the key 'error' on stdout too.

    Args:
        message: what is wrong
        as_json: whether stdout shall hold one JSON object
    """
    if as_json:
        print_json({"error": message})
    print("error: " + " ".join(message.split()), file=sys.stderr)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
