"""`steelyard weigh MODEL RECORDING...`: what the arm carries."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from steelyard import saved
from steelyard.cli import options
from steelyard.cli.output import Output, number
from steelyard.errors import InvalidSamples

if TYPE_CHECKING:
    from steelyard.payload import Payload
    from steelyard.torque.online.curve import CurvePoint
    from steelyard.workflow.payload import Weighing
    from steelyard.workflow.stream import OnlineWeighing


def command(
    ctx: typer.Context,
    model: options.ModelArgument,
    recordings: Annotated[list[Path], typer.Argument(help="Recordings of the loaded arm.")],
    output: Annotated[
        Path | None, options.file_to_write("Where the payload goes (.json).", "--output", "-o")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="direct, difference, weighted-difference, torque-change, manufacturer, static, combined,"
            " pooled; all to see them beside each other."
        ),
    ] = "direct",
    fix: Annotated[
        list[str] | None,
        typer.Option(help="A number that is known, as mass=2.8, cx=0 or inertia=0; may be repeated."),
    ] = None,
    empty: Annotated[
        list[Path] | None,
        typer.Option(help="Empty runs, for torque-change (the same motions) and pooled."),
    ] = None,
    tool: Annotated[
        Path | None,
        typer.Option(help="A tool the arm carried when it was identified (.json): answer with both."),
    ] = None,
    cutoff: Annotated[
        float | None, typer.Option(help="Of the filter on the motion [Hz]; as the model's, by default.")
    ] = None,
    online: Annotated[
        bool, typer.Option("--online", help="Sample by sample, showing how the answer becomes known.")
    ] = False,
    accuracy: Annotated[
        float, typer.Option(help="Online: 95 % half-width of the mass at which it has converged [%].")
    ] = 1.0,
    real_time: Annotated[
        bool, typer.Option("--real-time", help="Online: not faster than the recording's clock.")
    ] = False,
    save_state: Annotated[
        Path | None, options.file_to_write("Online: where the state goes, to resume.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Online: a saved state to go on from.")] = None,
    picture: options.PictureOption = None,
    report: options.ReportOption = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    degrees: options.DegreesFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Weighs what the arm carries beyond the model. Exit code 1 when the answer is not to be trusted."""
    from steelyard.identification import DynamicModel
    from steelyard.payload import Payload
    from steelyard.workflow.data import preparation_for
    from steelyard.workflow.payload import Weighing

    out, arm = Output(as_json), DynamicModel.load(model)
    read = partial(
        options.read_requested, column=column, joints=joints, robot=arm.robot, degrees=degrees, names=names
    )
    how = None if cutoff is None else replace(preparation_for(arm, None), cutoff_hz=cutoff)
    files = {"Payload": output, "Picture": picture, "Report": report}
    if online:
        from steelyard.workflow.stream import weigh_online

        if len(recordings) != 1:
            raise InvalidSamples(f"--online replays one recording, got {len(recordings)}")
        if method != "direct" or fix or empty or tool:
            raise InvalidSamples("--online is direct: leave --method, --fix, --empty and --tool out")
        with _screen(f"{recordings[0].name}, sample by sample", quiet=as_json) as show:
            replayed = weigh_online(
                arm,
                {str(recordings[0]): read(recordings[0])},
                accuracy=accuracy / 100,
                resume=resume,
                preparation=how,
                real_time=real_time,
                on_point=show,
            )
        read_files = [model, recordings[0], resume]
        with saved.together():
            if save_state is not None:
                replayed.save_state(save_state)
            if output is not None:
                replayed.payload.save(output)
            out.report(ctx, replayed.page, read_files, report=report, picture=picture)
        facts = replayed.to_dict() | {"file": output}
        return out.emit(facts, lambda: _show_online(out, replayed), verdict=replayed.payload.verdict)
    found = Weighing(
        arm,
        {str(path): read(path) for path in recordings},
        method=method,
        fixed=options.named_numbers(fix, "--fix is NAME=NUMBER, say mass=2.8"),
        empty={str(path): read(path) for path in empty or []},
        tool=None if tool is None else Payload.load(tool),
        preparation=how,
    )
    read_files = [model, *recordings, *(empty or []), tool]
    with saved.together():
        if output is not None:
            found.payload.save(output)
        out.report(ctx, found.page, read_files, report=report, picture=picture)
    facts = _facts(found) | {"file": output, "picture": picture, "report": report}
    out.emit(facts, lambda: _show(out, found), files=files, verdict=found.payload.verdict)


def _show(output: Output, found: Weighing) -> None:
    if found.methods:
        output.table(
            "The methods beside each other (95 % intervals)",
            ("method", "mass, kg", "+-", "centre, mm", "+-", ""),
            [_method_row(name, answer) for name, answer in found.methods.items()],
            words=(0, 5),
        )
        print()
    output.payload("What the arm carries (95 % intervals)", found.payload)
    print()
    output.verdict(found.payload.verdict)


def _facts(found: Weighing) -> dict[str, Any]:
    methods = {
        name: answer if isinstance(answer, str) else answer.to_dict()
        for name, answer in found.methods.items()
    }
    return found.payload.to_dict() | ({"methods": methods} if methods else {})


def _method_row(name: str, answer: Payload | str) -> tuple[str, ...]:
    if isinstance(answer, str):
        return name, "", "", "", "", answer
    cells = [f"{answer.body.mass:.3f}", f"{1.96 * answer.std[0]:.3f}"]
    com = answer.body.com if answer.body.mass else ()
    cells += ["  ".join(f"{1e3 * x:.0f}" for x in com), f"{1.96e3 * answer.com_std.max():.0f}"]
    return name, *cells, "" if answer.verdict.ok else answer.status


# --- sample by sample ---------------------------------------------------------------------------------------


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


def _show_online(output: Output, found: OnlineWeighing) -> None:
    print()
    if found.payload.mass:
        output.payload("What the arm carries (95 % intervals)", found.payload)
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
                number(1.96 * episode["mass_std"], 2),
            )
            for i, episode in enumerate(found.to_dict()["history"])
        ]
        print()
        output.table("Payloads before", ("", "from [s]", "to [s]", "mass [kg]", "+-"), rows)
