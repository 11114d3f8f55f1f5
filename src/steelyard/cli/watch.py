"""`steelyard watch SOURCE --model MODEL` or `--sensor SENSOR`: what the arm carries, while it moves."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.live import (
    UPDATES_S,
    AccuracyOption,
    DarkFlag,
    HostOption,
    PageFlag,
    PortOption,
    SecondsOption,
    SourceArgument,
    UrdfOption,
    opened_page,
    show_updates,
    stay,
)
from steelyard.cli.options import JsonFlag, WrenchCutoffOption, file_to_write
from steelyard.cli.output import Output
from steelyard.computing import interruptible
from steelyard.errors import InvalidSamples
from steelyard.recording import DEFAULT_CUTOFF_HZ

if TYPE_CHECKING:
    from steelyard.live import LiveWeigher, WristWeigher
    from steelyard.robot import RobotModel


@interruptible()
def command(
    source: SourceArgument,
    model: Annotated[
        Path | None, typer.Option(help="The identified empty arm (.json, from steelyard identify).")
    ] = None,
    sensor: Annotated[
        Path | None, typer.Option(help="Weigh with a wrist sensor: what it is (.toml).")
    ] = None,
    robot: Annotated[
        str | None, typer.Option(help="With --sensor: the arm, where rows hold joints and no model is given.")
    ] = None,
    cutoff: WrenchCutoffOption = DEFAULT_CUTOFF_HZ,
    accuracy: AccuracyOption = 1.0,
    record: Annotated[
        Path | None, file_to_write("Where every row goes besides (.parquet or .arrows).", "--record")
    ] = None,
    output: Annotated[Path | None, file_to_write("Where the payload goes (.json).", "--output", "-o")] = None,
    seconds: SecondsOption = float("inf"),
    page: PageFlag = False,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8080,
    urdf: UrdfOption = None,
    dark: DarkFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Weighs what the arm carries while it moves, until Ctrl-C. Exit code 1 when it is not to be trusted.

    By joint torques with --model, by a wrist sensor with --sensor: then with the force of a contact.
    """
    from steelyard.identification import DynamicModel
    from steelyard.live import LiveWeigher, Recorder, Stream, source_of, watch
    from steelyard.robot import load_robot

    out, known = Output(as_json), None if model is None else DynamicModel.load(model)
    if sensor is not None:
        if page:
            raise InvalidSamples("the page shows joint torques: leave --page out with --sensor")
        arm = load_robot(robot) if robot is not None else None if known is None else known.robot
        weigher = _watched(
            source, sensor, arm, cutoff_hz=cutoff, accuracy=accuracy / 100, record=record, seconds=seconds,
            quiet=as_json,
        )  # fmt: skip
        return _emit(out, source, weigher, output=output, record=record)
    if known is None:
        raise InvalidSamples("say how to weigh: --model for joint torques, --sensor for a wrist sensor")
    with ExitStack() as pages:
        with ExitStack() as open_now:
            stream = open_now.enter_context(Stream(source_of(source, joint_names=known.robot.joint_names)))
            recorder = None if record is None else open_now.enter_context(Recorder(record, stream.columns))
            torques = LiveWeigher(known, stream.columns, name=source, accuracy=accuracy / 100)
            kept = None if output is None else output.with_suffix(".undo.json")
            place = opened_page(
                torques, stream.source, asked=page, host=host, port=port, urdf=urdf, dark=dark, kept=kept
            )
            served, over = pages.enter_context(place), False
            look = None if served is None else served.look
            items = stream.items(seconds)
            updates = watch(items, torques, every_s=UPDATES_S[page], recorder=recorder, look=look)
            with suppress(KeyboardInterrupt):
                show_updates(updates, accuracy / 100, quiet=as_json)
                over = True
        if over:
            stay(served)
    _emit(out, source, torques, output=output, record=record)


def _emit(
    out: Output, source: str, weigher: LiveWeigher | WristWeigher, *, output: Path | None, record: Path | None
) -> None:
    """Saves and shows the answer."""
    from steelyard.live import WristUpdate

    payload, update = weigher.payload(), weigher.update()
    if payload is None or update is None:
        why = "" if update is None else f" ({update.waiting})"
        raise InvalidSamples(f"{source}: nothing could be weighed{why}")
    if output is not None:
        payload.save(output)
    counts: dict[str, Any] = {"rows": update.rows, "missing": update.missing, "dropped": update.dropped}
    if isinstance(update, WristUpdate):
        counts |= {"contact": update.contact, "contact_std": update.contact_std}
    facts = payload.to_dict() | counts | {"converged": update.converged, "file": output, "record": record}

    def answer() -> None:
        out.payload("What the arm carries (95 % intervals)", payload)
        print()
        out.verdict(payload.verdict)

    files = {"Payload": output, "Recording": record}
    out.emit(facts, answer, files=files, verdict=payload.verdict)


def _watched(
    source: str,
    sensor: Path,
    arm: RobotModel | None,
    *,
    cutoff_hz: float,
    accuracy: float,
    record: Path | None,
    seconds: float,
    quiet: bool,
) -> WristWeigher:
    """Weighs the rows of a source with a wrist sensor while they come."""
    from steelyard.io.wrench import SensorDescription
    from steelyard.live import Recorder, ReplaySource, Stream, WristWeigher, source_of, watch
    from steelyard.wrist.online import WristOptions

    about = SensorDescription.load(sensor)
    rows_from = source_of(source, joint_names=() if arm is None else arm.joint_names)
    if isinstance(rows_from, ReplaySource) and arm is None:
        rows_from = replace(rows_from, sensor=about)
    with ExitStack() as open_now:
        stream = open_now.enter_context(Stream(rows_from))
        recorder = None if record is None else open_now.enter_context(Recorder(record, stream.columns))
        options = WristOptions(accuracy=accuracy)
        weigher = WristWeigher(stream, about, arm, cutoff_hz=cutoff_hz, options=options)
        updates = watch(stream.items(seconds), weigher, recorder=recorder)
        with suppress(KeyboardInterrupt):
            show_updates(updates, accuracy, quiet=quiet)
    return weigher
