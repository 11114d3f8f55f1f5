"""What comes out of a verb: words or one JSON object, a page, a picture, and the exit code."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import typer

from steelyard import _saved
from steelyard._units import printable
from steelyard.cli.options import with_options
from steelyard.cli.terminal import INTERVAL, say
from steelyard.inertia import INERTIA
from steelyard.verdict import Aspect, DoubtKind, Fitness, Verdict

if TYPE_CHECKING:
    from steelyard.payload import Payload
    from steelyard.report import Page

_STYLES = {
    Fitness.USE: "bold green",
    Fitness.CARE: "bold yellow",
    Fitness.DO_NOT_USE: "bold red",
}
_LONGEST_LINE = 1000  # of a complaint, which may quote a file
_WIDEST_TABLE = 10_000  # characters
_OF_THE_SCREEN = ("as_json", "report", "picture")
_PACKAGES = ("steelyard", "numpy", "scipy", "pin", "mujoco", "plotly")


class _Done(Protocol):
    """Called with the share of the work that is done, and with what goes on, in words."""

    def __call__(self, share: float, words: str = "") -> None:
        """Shows it."""


_WIDER_MOTION = (
    "record a faster, wider motion: steelyard design ROBOT --objective payload -o motion.csv"
)
NEXT_ACTIONS = {
    "noise": _WIDER_MOTION,
    "friction": "record the empty arm on the same day, and identify with both runs:"
    " steelyard identify ROBOT EMPTY SAME_DAY -o model.json",
    "gains": "calibrate the gains with a known mass:"
    " steelyard identify ROBOT EMPTY --gains mass=KG:LOADED -o model.json",
    "drift": "record the empty arm right before or after, and identify with it:"
    " steelyard identify ROBOT EMPTY -o model.json",
    "motion": "choose the cut-off automatically:"
    " steelyard identify ROBOT EMPTY --cutoff auto -o model.json",
    "gravity": "give the gravity of your place, such as 9.8127 m/s^2:"
    " steelyard identify ROBOT EMPTY --gravity 0,0,-9.8127 -o model.json",
    "scale": _WIDER_MOTION,
    "force": _WIDER_MOTION,
}
"""What narrows the interval of a mass most, by the largest cause of its width."""


class Output:
    """Prints and writes what a verb has found: words, or one JSON object."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def emit(
        self,
        facts: Mapping[str, Any],
        show: Callable[[], None],
        *,
        files: Mapping[str, Path | None] | None = None,
        verdict: Verdict | None = None,
        requested: Mapping[str, Any] | None = None,
        then: str = "",
    ) -> None:
        """Prints the result; exit code 1 for an unusable one, 130 for an interrupted one.

        Args:
            facts: the answer for programs; arrays are welcome, numbers that are not finite become
                null
            show: prints it for people
            files: that were written, by what they are, for people; those that are None were not
            requested: numbers that the verb is there for, by name; one that is not finite is bad
                news
            then: what people may do next with a good answer
        """
        with suppress(BrokenPipeError):  # `| head` has read enough; the exit code stays true
            if self.as_json:
                self._print_json(facts)
            else:
                show()
                for what, path in (files or {}).items():
                    if path is not None:
                        say(f"{what[0].upper()}{what[1:]}: {path}")
                if then and (verdict is None or verdict.ok):
                    say(f"Next: {then}")
        if verdict is not None and any(doubt.kind is DoubtKind.STOPPED for doubt in verdict.doubts):
            print("error: interrupted; this is the best result so far", file=sys.stderr)
            raise typer.Exit(130)
        unknown = [
            name for name, value in (requested or {}).items() if not np.isfinite(value).all()
        ]
        if unknown and not self.as_json:
            say(f"Do not use this: {', '.join(unknown)} could not be found.")
        if unknown or (verdict is not None and not verdict.ok):
            raise typer.Exit(1)

    def report(
        self,
        ctx: typer.Context,
        page: Callable[[], Page],
        read: Iterable[Path | str | None],
        *,
        report: Path | None,
        picture: Path | None = None,
    ) -> None:
        """Writes the page, with every setting of the run, and the picture that were requested.

        Args:
            page: makes it
            read: files that were read; names of bundled arms and None are passed over
            report: where the page goes
            picture: where the picture goes
        """
        if report is None and picture is None:
            return
        from steelyard.drawing import save_picture

        made = page()
        if picture is not None:
            save_picture(made.picture, picture, title=made.title, words=made.answer)
        if report is not None:
            if not made.about:
                made = made.with_subject("", ())  # the date
            replace(made, settings=_settings(ctx, read)).write(report)

    def table(
        self,
        title: str,
        headers: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        words: Sequence[int] = (0,),
    ) -> None:
        """Prints a table: columns of words to the left, numbers to the right; no word is cut."""
        from rich.console import Console
        from rich.measure import Measurement
        from rich.table import Table
        from rich.text import Text

        headers = [printable(header) for header in headers]
        table = Table(
            title=Text(title, style="bold"), title_justify="left", box=None, pad_edge=False
        )
        for i, header in enumerate(headers):
            table.add_column(
                Text(header),  # [kg] is a unit, not a style
                justify="left" if i in words else "right",
                header_style="dim",
                overflow="fold",
            )
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        unbounded = Console(width=_WIDEST_TABLE)
        wanted = Measurement.get(unbounded, unbounded.options, table)
        if sys.stdout.isatty():
            width = max(Console().width, wanted.minimum)
        else:
            width = wanted.maximum
        Console(width=width, soft_wrap=not sys.stdout.isatty()).print(table)

    def payload(self, title: str, payload: Payload) -> None:
        """Prints the numbers of a payload, with their 95 % intervals if it has any."""
        self.headline(payload)
        say()
        quantities = list(payload.table_quantities)
        if not any(x.is_known for x in quantities[INERTIA]):
            quantities[INERTIA] = []  # nothing is known about it, as the headline says
        if payload.gives_intervals:
            cells = [x.cells for x in quantities]
            self.table(f"{title} (95 % intervals)", ("", "weighed", INTERVAL, "unit"), cells)
        else:
            plain = [(x.name, x.rounded[0], x.unit) for x in quantities]
            self.table(f"{title} (no intervals)", ("", "weighed", "unit"), plain, words=(0, 2))

    def headline(self, payload: Payload) -> None:
        """Prints the headline, coloured if possible, shares of the variance, and the next step."""
        from rich.console import Console
        from rich.text import Text

        from steelyard.payload._headline import limiting_cause, variance_bars

        style = _STYLES[payload.verdict.fitness(Aspect.MASS)]
        headline = Text(printable(payload.headline), style=style)
        Console(soft_wrap=True, highlight=False).print(headline)
        bars = variance_bars(payload.shares)
        if bars:
            say("What limits the accuracy of the mass:")
            for bar in bars:
                say(f"  {bar}")
        if cause := limiting_cause(payload):
            say(f"To improve it, {NEXT_ACTIONS[cause]}")

    def verdict(self, verdict: Verdict, *, before: str = "") -> None:
        """Prints a verdict, then a line for each doubt that does not forbid its use."""
        words = with_options(str(replace(verdict, doubts=verdict.blocking)))
        say(f"{before}{words[0].lower()}{words[1:]}" if before else words)
        for doubt in verdict.doubts:
            if doubt not in verdict.blocking:
                say(f"Note: {with_options(doubt.words)}.")

    def complain(self, message: str) -> None:
        """One clear line on stderr; with `--json` an object with the key 'error' on stdout too."""
        if self.as_json:
            self._print_json({"error": message})
        line = "".join(x if x.isprintable() else "?" for x in " ".join(message.split()))
        if len(line) > _LONGEST_LINE:
            more = " ..."
        else:
            more = ""
        words = f"error: {line[:_LONGEST_LINE]}{more}"
        print(printable(words, sys.stderr), file=sys.stderr)

    @contextmanager
    def progress(self, what: str) -> Iterator[_Done]:
        """Shows progress on stderr: a bar in a terminal, lines elsewhere, nothing with JSON."""
        if self.as_json or not sys.stderr.isatty():
            yield _silent if self.as_json else _plain_lines(what)
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (
            TextColumn("{task.description}"),
            BarColumn(20),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(what, total=1.0)

            def done(share: float, words: str = "") -> None:
                bar.update(task, completed=share, description=words or what)

            yield done
            bar.update(task, completed=1.0)

    def _print_json(self, facts: Mapping[str, Any]) -> None:
        content = _saved.plain(facts, not_finite=lambda number: None)
        print(json.dumps(content, indent=2, allow_nan=False))


def json_line(facts: Mapping[str, Any]) -> str:
    """Facts as JSON in one line; numbers that are not finite become null.

    Args:
        facts: by name; arrays are welcome
    """
    return json.dumps(_saved.plain(facts, not_finite=lambda number: None), allow_nan=False)


def number(value: float, digits: int = 4) -> str:
    """The value with that many significant digits; a dash where it is not finite."""
    if math.isfinite(value):
        return f"{value:.{digits}g}"
    return "-"


def _silent(share: float, words: str = "") -> None: ...


def _plain_lines(what: str) -> _Done:
    """A line on stderr whenever the words change."""
    began = time.monotonic()
    before = ""

    def done(share: float, words: str = "") -> None:
        nonlocal before
        if words and words != before:
            if share > 0:
                left = (time.monotonic() - began) * (1 / share - 1)
            else:
                left = 0.0
            print(
                f"{what}: {words}" + (f", about {left:.0f} s left" if left >= 1 else ""),
                file=sys.stderr,
            )
        before = words

    return done


def _settings(ctx: typer.Context, files: Iterable[Path | str | None]) -> dict[str, str]:
    """Every setting of a run, versions of packages, and digests of the files that were read."""
    settings = {"command": shlex.join(["steelyard", *sys.argv[1:]])}
    for parameter in ctx.command.params:
        name = str(parameter.name)
        value = ctx.params.get(name)
        given = value is not None and value not in ([], (), "")
        if given and name not in _OF_THE_SCREEN:
            settings[_setting_name(parameter)] = _words(value)
    settings |= _versions()
    for file in dict.fromkeys(str(file) for file in files if file is not None):
        if Path(file).is_file():
            with open(file, "rb") as content:
                settings[f"sha256 of {file}"] = hashlib.file_digest(content, "sha256").hexdigest()
    settings["written"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return settings


def _setting_name(parameter: Any) -> str:
    """The name of a setting: MODEL for an argument, --column for an option."""
    name = str(parameter.name)
    if parameter.param_type_name == "argument":
        return name.upper()
    return f"--{name.replace('_', '-')}"


def _words(value: object) -> str:
    if isinstance(value, list | tuple):
        return " ".join(str(item) for item in value)
    return str(value)


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
