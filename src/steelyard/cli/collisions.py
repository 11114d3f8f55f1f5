"""`steelyard collisions MODEL RECORDING`: contacts, from joint torques and the model alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from steelyard.cli import options
from steelyard.cli.output import Output
from steelyard.cli.terminal import say
from steelyard.errors import UnknownName

if TYPE_CHECKING:
    from steelyard.control.collision import Detections
    from steelyard.control.collision._observer import ObserverKind
    from steelyard.report import Page


def command(
    ctx: typer.Context,
    model: options.ModelArgument,
    recording: Annotated[Path, typer.Argument(help="The recording to search.")],
    payload: Annotated[
        Path | None, typer.Option(help="The payload of the arm (.json, from steelyard weigh).")
    ] = None,
    learn: Annotated[
        Path | None,
        typer.Option(
            help="A recording without contact, to learn thresholds and today's friction from."
        ),
    ] = None,
    false_alarms: Annotated[
        float | None,
        typer.Option(help="False alarms per hour that the learned thresholds allow. Default: 1."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Threshold of all joints [Nm], in place of --learn. Default: five times the noise"
            " of each joint in the model. The observer energy needs it, in [W]."
        ),
    ] = None,
    observer: Annotated[
        str, typer.Option(help="Observer: momentum, inverse-dynamics or energy.")
    ] = "momentum",
    bandwidth: Annotated[
        float, typer.Option(help="Bandwidth of the observer's filter [Hz].")
    ] = 5.0,
    picture: options.PictureOption = None,
    report: options.ReportOption = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    rate: options.RateOption = None,
    degrees: options.DegreesFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Lists contacts with time, joint, direction and the links that may have been touched.

    Exit code 1 when the thresholds or the model do not fit the recording.
    """
    from steelyard.report._control import collisions_page
    from steelyard.workflow._contacts import collisions
    from steelyard.workflow._data import arm_words, identified_arm

    if false_alarms is not None and learn is None:
        raise UnknownName("--false-alarms sets thresholds with --learn: give a recording there")
    arm = identified_arm(model)
    kind = cast("ObserverKind", observer)
    asked = options.requested(column, joints, degrees=degrees, names=names, rate=rate)
    read = partial(options.read_requested, asked=asked, robot=arm.robot)
    found = collisions(
        arm,
        {str(recording): read(recording)},
        payload=payload,
        learn=None if learn is None else {str(learn): read(learn)},
        false_alarms_per_hour=1.0 if false_alarms is None else false_alarms,
        threshold=threshold,
        observer=kind,
        bandwidth_hz=bandwidth,
    )
    output = Output(as_json)
    title = f"Contacts: {recording.name}"

    def page() -> Page:
        about = collisions_page(found, title=title)
        return about.with_subject(arm_words(arm.robot), [recording.name])

    output.report(ctx, page, [model, recording, payload, learn], report=report, picture=picture)
    files = {"picture": picture, "report": report}
    output.emit(
        found.to_dict() | files, lambda: _show(output, found), files=files, verdict=found.verdict
    )


def _show(output: Output, found: Detections) -> None:
    if found.contacts:
        output.table("Contacts", *found.table, words=(2, 3, 6))
        say()
    output.verdict(found.verdict)
