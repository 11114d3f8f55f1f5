"""The payload while it is tracked: one table that updates in a terminal, short lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from steelyard._units import NORMAL_95, printable, with_interval
from steelyard.cli.terminal import say
from steelyard.verdict import DoubtKind

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

    from steelyard.live import Event, Snapshot
    from steelyard.payload._tracking import Progress

_LINE_STEP_S = 1.0  # between two lines outside a terminal
_TABLE_HZ = 10.0


@dataclass(frozen=True, eq=False)
class Status:
    """What is shown of a payload at one moment.

    Attributes:
        progress: of the tracker; None before the first sample
        state: whether it may be used, or how long that takes
        next_step: what to do to learn more; may be empty
        rows: number of rows that came, were missing and were dropped; empty for a recording
    """

    progress: Progress | None
    state: str
    next_step: str = ""
    rows: str = ""

    @classmethod
    def of_progress(cls, progress: Progress) -> Status:
        """The status of a recording that is tracked."""
        return cls(progress, _state(progress), progress.next_step)

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot, accuracy: float) -> Status:
        """The status of a stream that is tracked.

        Args:
            snapshot: with its estimate
            accuracy: requested 95 % half-width of the mass, over the mass
        """
        from steelyard.live._words import progress_words

        rows = f"{snapshot.rows} rows, {snapshot.missing} missing, {snapshot.dropped} dropped"
        step = snapshot.next_step
        if snapshot.progress is None:
            return cls(None, f"waiting: {snapshot.waiting}", "", rows)
        state = progress_words(snapshot, accuracy)
        if snapshot.waiting:
            state = f"waiting: {snapshot.waiting}"
            step = ""
        elif not snapshot.progress.payload.verdict.ok:
            state = f"do not use it yet; {state}"
        return cls(snapshot.progress, state, step, rows)

    @property
    def line(self) -> str:
        """One line: time, mass with its interval, and state."""
        if self.progress is None:
            return "  ".join(x for x in (self.state, self.rows) if x)
        return f"{self.progress.t:8.2f} s  {_mass(self.progress)}  {self.state}"

    @property
    def t(self) -> float:
        """Time of the last sample, [s]; 0 before the first."""
        if self.progress is None:
            return 0.0
        return self.progress.t


@contextmanager
def progress_shown(title: str, *, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A function that shows the progress of a recording.

    Args:
        title: above the table or the lines
        quiet: whether nothing is shown
    """
    if quiet:
        yield lambda progress: None
        return
    if not sys.stdout.isatty():
        lines = _Lines(lambda status: status.t)
        say(f"{title} (+- is half of the 95 % interval):")
        yield lambda progress: lines.show(Status.of_progress(progress))
        return
    with _table_shown(title) as (show, _):
        yield lambda progress: show(Status.of_progress(progress))


@contextmanager
def snapshots_shown(
    title: str, accuracy: float, *, quiet: bool
) -> Iterator[Callable[[Snapshot], None]]:
    """A function that shows a snapshot of a stream, and the events before it.

    Args:
        title: above the table
        accuracy: requested 95 % half-width of the mass, over the mass
        quiet: whether nothing is shown
    """
    if quiet:
        yield lambda snapshot: None
        return
    if sys.stdout.isatty():
        with _table_shown(title) as (show, tell):
            yield lambda snapshot: _show_snapshot(snapshot, accuracy, show, tell)
        return
    lines = _Lines(lambda status: time.monotonic())
    yield lambda snapshot: _show_snapshot(snapshot, accuracy, lines.show, lines.tell)


def _show_snapshot(
    snapshot: Snapshot,
    accuracy: float,
    show: Callable[[Status], None],
    tell: Callable[[Event], None],
) -> None:
    for event in snapshot.events:
        tell(event)
    show(Status.of_snapshot(snapshot, accuracy))


class _Lines:
    """Prints a short line, at most one per second.

    Args:
        clock: time of a status, [s]
    """

    def __init__(self, clock: Callable[[Status], float]) -> None:
        self._clock = clock
        self._due_s = -np.inf

    def show(self, status: Status) -> None:
        now_s = self._clock(status)
        if now_s >= self._due_s - 1e-9:
            say(status.line, flush=True)
            self._due_s = now_s + _LINE_STEP_S

    def tell(self, event: Event) -> None:
        say(event.words, flush=True)


@contextmanager
def _table_shown(
    title: str,
) -> Iterator[tuple[Callable[[Status], None], Callable[[Event], None]]]:
    """Functions that update one table in a terminal, and that print an event above it."""
    from rich.live import Live

    with Live(refresh_per_second=_TABLE_HZ) as live:
        yield (
            lambda status: live.update(status_table(title, status)),
            lambda event: print_above(live, event.words),
        )


def print_above(live: Live, words: str) -> None:
    """Prints a line above a table that updates.

    Args:
        live: of the table
        words: the line
    """
    live.console.print(printable(words), markup=False, highlight=False)


def status_table(title: str, status: Status) -> Group:
    """A table of the ten numbers with their intervals, and below it what to know about them.

    Args:
        title: above the table
        status: to show
    """
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"{title}, {status.t:.1f} s", box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("")
    for name in ("weighed", "± (95 %)", "unit"):
        table.add_column(name, justify="left" if name == "unit" else "right")
    if status.progress is not None:
        for quantity in status.progress.payload.quantities:
            table.add_row(*(Text(cell) for cell in quantity.cells))
    words = [status.state]
    if status.next_step:
        words.append(f"Next: {status.next_step}")
    if status.rows:
        words.append(status.rows)
    return Group(table, Text(printable("\n".join(words))))


def _mass(progress: Progress) -> str:
    """The mass and the centre of mass with their intervals, in a few words."""
    is_known = np.isfinite(progress.mass_std)
    if progress.payload.verdict.has(DoubtKind.NOT_EXCITED) and not is_known:
        return "mass not known yet"
    if not is_known:
        return f"mass {progress.mass:7.3f} kg, no interval"
    words = f"mass {with_interval(progress.mass, NORMAL_95 * progress.mass_std):>16} kg"
    if np.isfinite(progress.com_std).all():
        words += "  com " + " ".join(f"{1e3 * x:6.1f}" for x in progress.com)
        words += f" +- {1e3 * NORMAL_95 * progress.com_std.max():5.1f} mm"
    return words


def _state(progress: Progress) -> str:
    """Whether the payload may be used, in a few words."""
    kinds = ", ".join(doubt.kind for doubt in progress.payload.verdict.blocking)
    if kinds:
        return f"do not use yet ({kinds})"
    if progress.converged:
        return "converged"
    return "not yet as accurate as requested"
