"""`steelyard weigh MODEL RECORDING...`: what the arm carries."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard import _saved
from steelyard._units import NORMAL_95
from steelyard.cli import options
from steelyard.cli.output import Output
from steelyard.cli.terminal import INTERVAL, say

if TYPE_CHECKING:
    from steelyard.payload import Payload
    from steelyard.workflow._payload import Weighing

_TITLE = "What the arm carries"


def command(
    ctx: typer.Context,
    model: options.ModelArgument,
    recordings: Annotated[list[Path], typer.Argument(help="Recordings of the loaded arm.")],
    output: Annotated[
        Path | None,
        options.file_to_write(
            "The payload to write (.json).", "--output", "-o", endings=(".json",)
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="Method: auto, direct, difference, weighted-difference, torque-change,"
            " manufacturer, static, combined, pooled, or all to compare them. auto takes"
            " torque-change where --empty has the same motion and predicts better, else"
            " direct."
        ),
    ] = "auto",
    fix: Annotated[
        list[str] | None,
        typer.Option(help="A known number, as mass=2.8, cx=0 or inertia=0 [SI]. May be repeated."),
    ] = None,
    empty: Annotated[
        list[Path] | None,
        typer.Option(
            help="A recording of the empty arm: on the same motion for the methods auto and"
            " torque-change, on any for pooled. May be repeated."
        ),
    ] = None,
    tool: Annotated[
        Path | None,
        typer.Option(
            help="A tool that the arm carried when it was identified (.json). The result then"
            " includes both."
        ),
    ] = None,
    cutoff: Annotated[
        float | None,
        typer.Option(
            min=options.LOWEST_HZ,
            help="Cut-off of the filter on the motion [Hz]. Default: that of the model.",
        ),
    ] = None,
    kinematics: Annotated[
        str | None,
        typer.Option(help="The motion to use: measured or commanded. Default: that of the model."),
    ] = None,
    picture: options.PictureOption = None,
    report: options.ReportOption = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    rate: options.RateOption = None,
    degrees: options.DegreesFlag = False,
    trust: options.TrustOption = "",
    as_json: options.JsonFlag = False,
) -> None:
    """Weighs the payload of the arm. Exit code 1 when the result is not trustworthy."""
    from steelyard.payload import Payload
    from steelyard.workflow._data import identified_arm
    from steelyard.workflow._payload import Weighing

    out = Output(as_json)
    arm = identified_arm(model)
    asked = options.requested(column, joints, degrees=degrees, names=names, rate=rate, trust=trust)
    read = partial(options.read_requested, asked=asked, robot=arm.robot)
    how = options.preparation_as(arm, cutoff, kinematics)
    files = {"Payload": output, "Picture": picture, "Report": report}
    found = Weighing(
        arm,
        options.read_all(recordings, read),
        method=method,
        fixed=options.named_numbers(fix, "--fix is NAME=NUMBER, say mass=2.8"),
        empty=options.read_all(empty, read),
        tool=None if tool is None else Payload.load(tool),
        preparation=how,
    )
    read_files = [model, *recordings, *(empty or []), tool]
    with _saved.together():
        if output is not None:
            found.payload.save(output)
        out.report(ctx, found.page, read_files, report=report, picture=picture)
    facts = _facts(found) | {"file": output, "picture": picture, "report": report}
    words = partial(_show, out, found)
    requested = _mass(found.payload)
    verdict = found.payload.verdict
    then = "-o payload.json keeps it, --report page.html shows it"
    if output is not None:
        then = (
            f"steelyard export ur {output} (or abb, kuka, ...),"
            f" or steelyard patch payload ARM.urdf {output} -o NEW.urdf"
        )
    out.emit(facts, words, files=files, verdict=verdict, requested=requested, then=then)


def _mass(payload: Payload) -> dict[str, float]:
    return {"the mass": payload.mass + payload.std[0]}


def _show(output: Output, found: Weighing) -> None:
    if found.methods:
        output.table(
            "The methods beside each other (95 % intervals)",
            ("method", "mass [kg]", INTERVAL, "centre [mm]", INTERVAL, ""),
            [_method_row(name, answer) for name, answer in found.methods.items()],
            words=(0, 5),
        )
        say()
    output.payload(_TITLE, found.payload)
    say()
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
    cells = list(answer.quantities[0].rounded)
    com = answer.body.com if answer.body.mass else ()
    cells += [
        "  ".join(f"{1e3 * x:.0f}" for x in com),
        f"{1e3 * NORMAL_95 * answer.com_std.max():.0f}",
    ]
    return name, *cells, "" if answer.verdict.ok else answer.status
