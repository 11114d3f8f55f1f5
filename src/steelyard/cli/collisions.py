"""`steelyard collisions MODEL RECORDING`: contacts, from joint torques and the model alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from steelyard.cli import options
from steelyard.cli.output import Output

if TYPE_CHECKING:
    from steelyard.control.collision import Detections
    from steelyard.control.collision._observer import ObserverKind


def command(
    ctx: typer.Context,
    model: options.ModelArgument,
    recording: Annotated[Path, typer.Argument(help="The recording to search.")],
    payload: Annotated[
        Path | None, typer.Option(help="What the arm carries (.json, from steelyard weigh).")
    ] = None,
    learn: Annotated[
        Path | None,
        typer.Option(help="A recording without contact: thresholds and friction of the day."),
    ] = None,
    false_alarms: Annotated[
        float, typer.Option(help="With --learn: how many are allowed [1/h].")
    ] = 1.0,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Without --learn: for all joints [Nm], 6 by default; energy: [W], no default."
        ),
    ] = None,
    observer: Annotated[
        str, typer.Option(help="momentum, inverse-dynamics or energy.")
    ] = "momentum",
    bandwidth: Annotated[float, typer.Option(help="Of the observer's filter [Hz].")] = 5.0,
    picture: options.PictureOption = None,
    report: options.ReportOption = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    degrees: options.DegreesFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Lists contacts: when, at which joint, in which direction, and from which link outwards.

    Exit code 1 when the thresholds or the model do not fit the recording.
    """
    from steelyard.identification import DynamicModel
    from steelyard.report._control import collisions_page
    from steelyard.workflow._contacts import collisions

    if learn is None:
        options.refuse_without_effect(ctx, "without --learn", "false_alarms")
    arm = DynamicModel.load(model)
    kind = cast("ObserverKind", observer)
    read = partial(
        options.read_requested,
        column=column,
        joints=joints,
        robot=arm.robot,
        degrees=degrees,
        names=names,
    )
    found = collisions(
        arm,
        {str(recording): read(recording)},
        payload=payload,
        learn=None if learn is None else {str(learn): read(learn)},
        false_alarms_per_hour=false_alarms,
        threshold=threshold,
        observer=kind,
        bandwidth_hz=bandwidth,
    )
    output = Output(as_json)
    title = f"Contacts: {recording.name}"
    page = partial(collisions_page, found, title=title)
    output.report(ctx, page, [model, recording, payload, learn], report=report, picture=picture)
    files = {"picture": picture, "report": report}
    output.emit(
        found.to_dict() | files, lambda: _show(output, found), files=files, verdict=found.verdict
    )


def _show(output: Output, found: Detections) -> None:
    if found.contacts:
        output.table("Contacts", *found.table, words=(2, 3, 6))
        print()
    output.verdict(found.verdict)
