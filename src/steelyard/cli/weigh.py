"""`steelyard weigh MODEL RECORDING...`: what the arm carries."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.output import (
    JsonFlag,
    in_a_folder,
    print_json,
    print_quantities,
    print_table,
    print_verdict,
)
from steelyard.cli.recordings import ColumnOption, JointsOption, read_requested
from steelyard.cli.reporting import ReportOption, payload_report, run_settings, write_report

if TYPE_CHECKING:
    from steelyard.identification import DynamicModel
    from steelyard.payload import Payload
    from steelyard.recording import Preparation
    from steelyard.workflow.payload import Weighing


def command(
    ctx: typer.Context,
    model: Annotated[Path, typer.Argument(help="The identified empty arm (.json, from steelyard identify).")],
    recordings: Annotated[list[Path], typer.Argument(help="Recordings of the loaded arm.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", callback=in_a_folder, help="Where the payload goes (.json)."),
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
    save_state: Annotated[Path | None, typer.Option(help="Online: where the state goes, to resume.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Online: a saved state to go on from.")] = None,
    picture: Annotated[
        Path | None, typer.Option(callback=in_a_folder, help="Where a picture goes (.png).")
    ] = None,
    report: ReportOption = None,
    column: ColumnOption = None,
    joints: JointsOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Weighs what the arm carries beyond the model. Exit code 1 when the answer is not to be trusted."""
    from steelyard.identification import DynamicModel
    from steelyard.payload import Payload
    from steelyard.workflow.payload import weighing

    arm = DynamicModel.load(model)
    read = partial(read_requested, column=column, joints=joints, robot=arm.robot)
    if online:
        from steelyard.cli.weigh_online import emit_online, replay_online
        from steelyard.workflow.stream import weigh_online

        _require_online(recordings, method, fix, empty, tool)
        replayed = partial(
            weigh_online,
            arm,
            {str(recordings[0]): read(recordings[0])},
            accuracy=accuracy / 100,
            resume=resume,
            preparation=with_cutoff(arm, cutoff),
            real_time=real_time,
        )
        weighed = replay_online(recordings[0], lambda show: replayed(on_point=show), as_json=as_json)
        files = {"Payload": output, "Picture": picture, "Report": report, "State": save_state}
        return emit_online(ctx, weighed, files, as_json=as_json)
    found = weighing(
        arm,
        {str(path): read(path) for path in recordings},
        method=method,
        fixed=_fixed(fix or []),
        empty={str(path): read(path) for path in empty or []},
        tool=None if tool is None else Payload.load(tool),
        preparation=with_cutoff(arm, cutoff),
    )
    if output is not None:
        found.payload.save(output)
    if picture is not None or report is not None:
        settings = run_settings(ctx, [model, *recordings, *(empty or []), tool])
        write_report(payload_report(found, settings=settings), report, picture)
    files = {"Payload": output, "Picture": picture, "Report": report}
    if as_json:
        print_json(_facts(found, files))
    else:
        _show(found, files)
    if not found.payload.verdict.ok:
        raise typer.Exit(1)


def with_cutoff(model: DynamicModel, cutoff_hz: float | None) -> Preparation | None:
    """The preparation of a model with another cut-off, [Hz]; None where none is given."""
    from steelyard.workflow.data import preparation_for

    if cutoff_hz is None:
        return None
    return replace(preparation_for(model, None), cutoff_hz=cutoff_hz)


def _require_online(
    recordings: list[Path], method: str, fix: list[str] | None, empty: list[Path] | None, tool: Path | None
) -> None:
    from steelyard.errors import InvalidSamples

    if len(recordings) != 1:
        raise InvalidSamples(f"--online replays one recording, got {len(recordings)}")
    if method != "direct" or fix or empty or tool:
        raise InvalidSamples("--online is direct: leave --method, --fix, --empty and --tool out")


def _show(found: Weighing, files: dict[str, Path | None]) -> None:
    if found.methods:
        print_table(
            "The methods beside each other (95 % intervals)",
            ("method", "mass, kg", "+-", "centre, mm", "+-", ""),
            [_method_row(name, answer) for name, answer in found.methods.items()],
            words=(0, 5),
        )
        print()
    print_quantities("What the arm carries (95 % intervals)", found.payload)
    print()
    print_verdict(found.payload.verdict)
    for what, path in files.items():
        if path is not None:
            print(f"{what}: {path}")


def _facts(found: Weighing, files: dict[str, Path | None]) -> dict[str, Any]:
    methods = {
        name: answer if isinstance(answer, str) else answer.to_dict()
        for name, answer in found.methods.items()
    }
    written = {name.lower(): None if path is None else str(path) for name, path in files.items()}
    return {
        **found.payload.to_dict(),
        **({"methods": methods} if methods else {}),
        "file": written.pop("payload"),
        **written,
    }


def _method_row(name: str, answer: Payload | str) -> tuple[str, ...]:
    if isinstance(answer, str):
        return name, "", "", "", "", answer
    cells = [f"{answer.body.mass:.3f}", f"{1.96 * answer.std[0]:.3f}"]
    com = answer.body.com if answer.body.mass else ()
    cells += ["  ".join(f"{1e3 * x:.0f}" for x in com), f"{1.96e3 * answer.com_std.max():.0f}"]
    return name, *cells, "" if answer.verdict.ok else answer.status


def _fixed(requests: list[str]) -> dict[str, float]:
    from steelyard.errors import InvalidSamples

    fixed = {}
    for request in requests:
        name, _, value = request.partition("=")
        try:
            fixed["m" if name == "mass" else name] = float(value)
        except ValueError:
            raise InvalidSamples(f"--fix is NAME=NUMBER, say mass=2.8; got '{request}'") from None
    return fixed
