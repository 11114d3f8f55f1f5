"""`steelyard collisions MODEL RECORDING`: contacts, from joint torques and the model alone."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import typer

from steelyard.cli.output import JsonFlag, in_a_folder, print_json, print_table
from steelyard.cli.recordings import ColumnOption, JointsOption, read_requested
from steelyard.cli.reporting import ReportOption, run_settings, write_report
from steelyard.errors import InvalidSamples

if TYPE_CHECKING:
    from steelyard.control.collision import Detections, Detector, Observer
    from steelyard.control.collision.observer import ObserverKind
    from steelyard.recording import Recording
    from steelyard.robot import DriveModel


_FIXED, _FIXED_UNIT = 6.0, "Nm"  # gaz2017


def command(
    ctx: typer.Context,
    model: Annotated[Path, typer.Argument(help="The identified empty arm (.json, from steelyard identify).")],
    recording: Annotated[Path, typer.Argument(help="The recording to search.")],
    payload: Annotated[
        Path | None, typer.Option(help="What the arm carries (.json, from steelyard weigh).")
    ] = None,
    learn: Annotated[
        Path | None, typer.Option(help="A recording without contact: thresholds and friction of the day.")
    ] = None,
    false_alarms: Annotated[float, typer.Option(help="With --learn: how many are allowed [1/h].")] = 1.0,
    threshold: Annotated[
        float | None,
        typer.Option(help="Without --learn: for all joints [Nm], 6 by default; energy: [W], no default."),
    ] = None,
    observer: Annotated[str, typer.Option(help="momentum, inverse-dynamics or energy.")] = "momentum",
    bandwidth: Annotated[float, typer.Option(help="Of the observer's filter [Hz].")] = 5.0,
    picture: Annotated[
        Path | None, typer.Option(callback=in_a_folder, help="Where the picture goes (.png).")
    ] = None,
    report: ReportOption = None,
    column: ColumnOption = None,
    joints: JointsOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Lists contacts: when, at which joint, in which direction, and from which link outwards.

    Exit code 1 when the thresholds or the model do not fit the recording.
    """
    from steelyard.control.collision import detect, make_observer
    from steelyard.identification import DynamicModel
    from steelyard.payload import Payload
    from steelyard.workflow import Run, drive_for

    if learn is not None and threshold is not None:
        raise InvalidSamples("thresholds are learned (--learn) or fixed (--threshold), not both")
    arm = DynamicModel.load(model)
    load = None if payload is None else Payload.load(payload)
    kind = cast("ObserverKind", observer)
    watcher = make_observer(arm, load, kind=kind, gain_hz=bandwidth)
    if learn is None and threshold is None and watcher.unit != _FIXED_UNIT:
        raise InvalidSamples(
            f"the {observer} observer judges {watcher.unit}, for which there is no usual limit: give"
            f" --threshold in {watcher.unit}, or --learn"
        )
    read = partial(read_requested, column=column, joints=joints, robot=arm.robot)
    free = None if learn is None else read(learn)
    source = None if free is None else drive_for(arm, Run(str(learn), free))
    detector = _detector(watcher, free, source, false_alarms, _FIXED if threshold is None else threshold)
    watched = read(recording)
    found = detect(detector, watched, drive=drive_for(arm, Run(str(recording), watched)))
    if picture is not None or report is not None:
        from steelyard.report.control import collisions_page

        settings = run_settings(ctx, [model, recording, payload, learn])
        page = collisions_page(found, title=f"Contacts: {recording.name}", settings=settings)
        write_report(page, report, picture)
    if as_json:
        print_json({**_facts(found, detector, picture), "report": None if report is None else str(report)})
    else:
        _speak(found, detector, picture)
        if report is not None:
            print(f"report: {report}")
    if not found.verdict.ok:
        raise typer.Exit(1)


def _detector(
    watcher: Observer, free: Recording | None, drive: DriveModel | None, false_alarms: float, threshold: float
) -> Detector:
    from steelyard.control.collision import Detector, Thresholds
    from steelyard.control.collision import learn as learned_detector

    if free is None:
        return Detector(watcher, Thresholds.fixed(watcher, threshold))
    return learned_detector(watcher, free, drive=drive, false_alarms_per_hour=false_alarms)


def _speak(found: Detections, detector: Detector, picture: Path | None) -> None:
    unit = detector.observer.unit
    rows = [
        (
            f"{contact.start_s:.2f}",
            f"{contact.end_s:.2f}",
            contact.joint,
            "along" if contact.direction > 0 else "against",
            f"{contact.peak:.1f}",
            f"{contact.ratio:.1f}",
            contact.link or "-",
        )
        for contact in found.contacts
    ]
    if rows:
        headers = ("from (s)", "to (s)", "joint", "its axis", f"peak ({unit})", "x limit", "link or beyond")
        print_table("Contacts", headers, rows, words=(2, 3, 6))
        print()
    print(f"{found.status[0].upper()}{found.status[1:]}.")
    for words in found.doubts:
        print(f"Doubt: {words}.")
    if picture is not None:
        print(f"picture: {picture}")


def _facts(found: Detections, detector: Detector, picture: Path | None) -> dict[str, Any]:
    learned = detector.thresholds.learned
    return {
        "contacts": [asdict(contact) for contact in found.contacts],
        "residuals": list(detector.observer.names),
        "unit": detector.observer.unit,
        "typical_threshold": np.median(found.threshold, axis=0),
        "largest_residual": np.abs(found.residuals.residual).max(axis=0),
        "friction_change": None if learned is None else learned.friction_change,
        "false_alarms_per_hour": None if learned is None else learned.false_alarms_per_hour,
        "doubts": list(found.doubts),
        "verdict": found.verdict.to_dict(),
        "status": found.status,
        "picture": None if picture is None else str(picture),
    }
