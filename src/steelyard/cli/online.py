"""What the verbs that weigh sample by sample share: options, the screen, the answer at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from steelyard._units import NORMAL_95
from steelyard.cli.options import file_to_write
from steelyard.cli.output import Output, number

if TYPE_CHECKING:
    from steelyard.payload._tracking import Progress
    from steelyard.workflow._stream import OnlineCurve

OnlineFlag = Annotated[
    bool, typer.Option("--online", help="Sample by sample, showing how the answer becomes known.")
]
OnlineAccuracyOption = Annotated[
    float,
    typer.Option(
        "--accuracy", help="Online: 95 % half-width of the mass at which it has converged [%]."
    ),
]
RealTimeFlag = Annotated[
    bool, typer.Option("--real-time", help="Online: not faster than the recording's clock.")
]
SaveStateOption = Annotated[
    Path | None, file_to_write("Online: where the state goes, to resume.", "--save-state")
]
ResumeOption = Annotated[
    Path | None, typer.Option("--resume", help="Online: a saved state to go on from.")
]


@contextmanager
def screen(
    title: str, *, quiet: bool, intervals: bool = True
) -> Iterator[Callable[[Progress], None]]:
    """A function that shows a point: live in a terminal, elsewhere one line per second.

    Args:
        title: what is weighed
        quiet: nothing is shown
        intervals: whether the estimator gives any
    """
    if quiet:
        yield lambda point: None
        return
    if not sys.stdout.isatty():
        print(f"{title}:")
        yield _Lines(intervals)
        return
    from rich.live import Live
    from rich.text import Text

    with Live(refresh_per_second=10) as live:
        yield lambda point: live.update(Text(f"{title}\n{_line(point, intervals)}\n{point.status}"))


class _Lines:
    """Prints one line per second of the recording."""

    def __init__(self, intervals: bool) -> None:
        self.due_s = -np.inf
        self.intervals = intervals

    def __call__(self, point: Progress) -> None:
        if point.t >= self.due_s - 1e-9:
            print(f"{_line(point, self.intervals)}  {point.status}")
            self.due_s = point.t + 1.0


def _line(point: Progress, intervals: bool) -> str:
    """A point at a glance."""
    if not intervals:
        return f"{point.t:8.2f} s  mass {point.mass:7.3f} kg, no interval"
    if not np.isfinite(point.mass_std):
        return f"{point.t:8.2f} s  mass unknown"
    words = f"{point.t:8.2f} s  mass {point.mass:7.3f} +- {NORMAL_95 * point.mass_std:6.3f} kg"
    if np.isfinite(point.com_std).all():
        words += "  com " + " ".join(f"{1e3 * x:6.1f}" for x in point.com)
        words += f" +- {1e3 * NORMAL_95 * point.com_std.max():5.1f} mm"
    return words


def show_online(output: Output, found: OnlineCurve, title: str, *, intervals: bool = True) -> None:
    """Prints the answer of an online weighing, with intervals or not, and the payloads before it."""
    print()
    if not intervals:
        cells = [(x.name, number(x.value), x.unit) for x in found.payload.quantities]
        output.table(f"{title} (no intervals)", ("", "weighed", "unit"), cells, words=(0, 2))
        print()
    elif found.payload.mass:
        output.payload(f"{title} (95 % intervals)", found.payload)
        print()
    output.verdict(found.payload.verdict)
    print(found.when)
    if found.state.history:
        rows = [
            (
                f"{i + 1}",
                f"{episode['start_s']:.2f}",
                f"{episode['end_s']:.2f}",
                number(episode["mass"]),
                number(NORMAL_95 * episode["mass_std"], 2),
            )
            for i, episode in enumerate(found.to_dict()["history"])
        ]
        print()
        output.table("Payloads before", ("", "from [s]", "to [s]", "mass [kg]", "+-"), rows)
