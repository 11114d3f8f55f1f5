"""`steelyard weigh MODEL RECORDING --online`: the recording sample by sample, and the answer as it grows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from steelyard.cli.output import number, print_json, print_quantities, print_table, print_verdict
from steelyard.cli.reporting import online_report, run_settings, write_report

if TYPE_CHECKING:
    from steelyard.torque.online.curve import CurvePoint
    from steelyard.workflow.stream import OnlineWeighing, OnPoint


def replay_online(
    recording_path: Path, replayed: Callable[[OnPoint], OnlineWeighing], *, as_json: bool
) -> OnlineWeighing:
    """Replays a recording and shows how the payload becomes known.

    Args:
        recording_path: what is replayed
        replayed: replays it, and calls with each point of the curve
        as_json: show nothing
    """
    with _screen(f"{recording_path.name}, sample by sample", quiet=as_json) as show:
        return replayed(show)


def emit_online(
    ctx: typer.Context, found: OnlineWeighing, files: dict[str, Path | None], *, as_json: bool
) -> None:
    """Writes and prints what was weighed online. Exit code 1 when the answer is not to be used.

    Args:
        ctx: of the verb
        found: the payload and its run
        files: where things go
        as_json: print one JSON object
    """
    if (path := files["State"]) is not None:
        found.save_state(path)
    if (path := files["Payload"]) is not None:
        found.payload.save(path)
    if (path := files["Picture"]) is not None:
        from steelyard.drawing import save_picture
        from steelyard.report.online import online_plot

        plot = online_plot(found.points, accuracy=found.accuracy)
        save_picture([plot], path, title=Path(found.run.name).name)
    if files["Report"] is not None:
        settings = run_settings(ctx, [ctx.params["model"], found.run.name, ctx.params["resume"]])
        write_report(online_report(found, settings=settings), files["Report"])
    answer = _Answer(found, files["Payload"])
    if as_json:
        print_json(answer.facts())
    else:
        answer.show()
    if not found.payload.verdict.ok:
        raise typer.Exit(1)


@contextmanager
def _screen(title: str, *, quiet: bool) -> Iterator[Callable[[CurvePoint], None]]:
    """A function that shows a point: live in a terminal, elsewhere one line per second."""
    if quiet:
        yield lambda point: None
        return
    if not sys.stdout.isatty():
        print(f"{title}:")
        yield _Lines()
        return
    from rich.live import Live
    from rich.text import Text

    with Live(refresh_per_second=10) as live:
        yield lambda point: live.update(Text(f"{title}\n{_line(point)}\n{point.status}"))


class _Lines:
    """Prints one line per second of the recording."""

    def __init__(self) -> None:
        self.due_s = -np.inf

    def __call__(self, point: CurvePoint) -> None:
        if point.t >= self.due_s - 1e-9:
            print(f"{_line(point)}  {point.status}")
            self.due_s = point.t + 1.0


def _line(point: CurvePoint) -> str:
    """A point at a glance."""
    if not np.isfinite(point.mass_std):
        return f"{point.t:8.2f} s  mass unknown"
    words = f"{point.t:8.2f} s  mass {point.mass:7.3f} +- {1.96 * point.mass_std:6.3f} kg"
    if np.isfinite(point.com_std).all():
        words += "  com " + " ".join(f"{1e3 * x:6.1f}" for x in point.com)
        words += f" +- {1.96e3 * point.com_std.max():5.1f} mm"
    return words


class _Answer:
    """What is said at the end, as words or as one JSON object."""

    def __init__(self, found: OnlineWeighing, output: Path | None) -> None:
        self.found, self.output, self.converged = found, output, found.converged_s

    def facts(self) -> dict[str, Any]:
        """Everything, for programs."""
        points = [point for point in self.found.points if np.isfinite(point.mass_std)]
        names = ("t", "mass", "mass_std", "com", "com_std", "payload", "converged")
        return {
            **self.found.payload.to_dict(),
            "converged_s": self.converged.get(len(self.found.state.history) + 1),
            "accuracy": self.found.accuracy,
            "delay_s": self.found.delay_s,
            "samples": self.found.state.counts._asdict(),
            "history": self._episodes(),
            "curve": {name: [getattr(point, name) for point in points] for name in names},
            "file": None if self.output is None else str(self.output),
        }

    def _episodes(self) -> list[dict[str, Any]]:
        return [
            {
                "start_s": episode.start_s,
                "end_s": episode.end_s,
                "mass": episode.vector[0],
                "mass_std": np.sqrt(episode.covariance[0, 0]),
                "vector": episode.vector,
                "converged_s": self.converged.get(i + 1),
            }
            for i, episode in enumerate(self.found.state.history)
        ]

    def show(self) -> None:
        """The same at a glance, for people."""
        print()
        if self.found.payload.mass:
            print_quantities("What the arm carries (95 % intervals)", self.found.payload)
            print()
        print_verdict(self.found.payload.verdict)
        print(self._when())
        if self.found.state.history:
            rows = [
                (
                    f"{i + 1}",
                    f"{episode['start_s']:.2f}",
                    f"{episode['end_s']:.2f}",
                    number(episode["mass"]),
                    number(1.96 * episode["mass_std"], 2),
                )
                for i, episode in enumerate(self._episodes())
            ]
            print()
            print_table("Payloads before", ("", "from [s]", "to [s]", "mass [kg]", "+-"), rows)

    def _when(self) -> str:
        asked = f"{100 * self.found.accuracy:g} %"
        since = self.converged.get(len(self.found.state.history) + 1)
        late = f"samples come {self.found.delay_s:.2f} s after their instant, for the filter"
        if since is None:
            return f"The mass did not become known to {asked}; {late}."
        return f"The mass is known to {asked} since {since:.1f} s; {late}."
