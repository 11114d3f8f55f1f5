"""`steelyard watch SOURCE --model MODEL` or `--sensor SENSOR`: what the arm carries, while it moves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard._computing import interruptible
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
from steelyard.cli.options import (
    FlangeOption,
    GravityOption,
    JsonFlag,
    LockOption,
    WrenchCutoffOption,
    described,
    file_to_write,
    load_arm_if_named,
    refuse_without_effect,
    requested,
)
from steelyard.cli.output import Output
from steelyard.errors import InvalidSamples
from steelyard.recording import DEFAULT_CUTOFF_HZ

if TYPE_CHECKING:
    from steelyard.identification import DynamicModel
    from steelyard.io._wrist import SensorDescription
    from steelyard.live import LiveWeigher, Source, Stream, Update, WristUpdate, WristWeigher
    from steelyard.robot import RobotModel

_OF_THE_ARM = ("robot", "lock", "flange", "gravity")


@interruptible()
def command(
    ctx: typer.Context,
    source: SourceArgument,
    model: Annotated[
        Path | None, typer.Option(help="The identified empty arm (.json, from steelyard identify).")
    ] = None,
    sensor: Annotated[
        Path | None, typer.Option(help="Weigh with a wrist sensor: what it is (.toml).")
    ] = None,
    robot: Annotated[
        str | None,
        typer.Option(help="With --sensor: the arm, where rows hold joints and no model is given."),
    ] = None,
    lock: LockOption = None,
    flange: FlangeOption = None,
    gravity: GravityOption = None,
    cutoff: WrenchCutoffOption = DEFAULT_CUTOFF_HZ,
    accuracy: AccuracyOption = 1.0,
    record: Annotated[
        Path | None,
        file_to_write("Where every row goes besides (.parquet or .arrows).", "--record"),
    ] = None,
    output: Annotated[
        Path | None, file_to_write("Where the payload goes (.json).", "--output", "-o")
    ] = None,
    seconds: SecondsOption = float("inf"),
    page: PageFlag = False,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8080,
    urdf: UrdfOption = None,
    dark: DarkFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Weighs what the arm carries while it moves, until Ctrl-C. Exit code 1 when it is not to be trusted.

    By joint torques with --model, by a wrist sensor with --sensor: then with the force of a
    contact.
    """
    from steelyard.identification import DynamicModel
    from steelyard.live import Recorder, Stream, watch

    out = Output(as_json)
    if model is None:
        known = None
    else:
        known = DynamicModel.load(model)
    if sensor is None and known is not None:
        refuse_without_effect(ctx, "without --sensor, the model knows its arm", *_OF_THE_ARM)
    if sensor is None:
        about = None
    else:
        about = described(sensor, requested(None, None), gravity)
    arm = load_arm_if_named(robot, lock, flange)
    how = _Weighing(known, about, arm, cutoff_hz=cutoff, accuracy=accuracy / 100)
    with ExitStack() as pages:
        with ExitStack() as open_now:
            stream = open_now.enter_context(Stream(how.source(source)))
            if record is None:
                recorder = None
            else:
                recorder = open_now.enter_context(Recorder(record, stream.columns))
            weigher = how.weigher(stream, source)
            if output is None:
                kept = None
            else:
                kept = output.with_suffix(".undo.json")
            place = opened_page(
                weigher,
                stream.source,
                asked=page,
                host=host,
                port=port,
                urdf=urdf,
                dark=dark,
                kept=kept,
            )
            served = pages.enter_context(place)
            over = False
            if served is None:
                look = None
            else:
                look = served.look
            updates: Iterator[Update | WristUpdate] = watch(
                stream.items(seconds),
                weigher,
                every_s=UPDATES_S[page],
                recorder=recorder,
                look=look,
            )
            with suppress(KeyboardInterrupt):
                show_updates(updates, accuracy / 100, quiet=as_json)
                over = True
        if over:
            stay(served)
    _emit(out, source, weigher, output=output, record=record)


def _emit(
    out: Output,
    source: str,
    weigher: LiveWeigher | WristWeigher,
    *,
    output: Path | None,
    record: Path | None,
) -> None:
    """Saves and shows the answer."""
    from steelyard.live import WristUpdate

    payload = weigher.payload()
    update = weigher.update()
    if payload is None or update is None:
        if update is None:
            why = ""
        else:
            why = f" ({update.waiting})"
        raise InvalidSamples(f"{source}: nothing could be weighed{why}")
    if output is not None:
        payload.save(output)
    counts: dict[str, Any] = {
        "rows": update.rows,
        "missing": update.missing,
        "dropped": update.dropped,
    }
    if isinstance(update, WristUpdate):
        counts |= {"contact": update.contact, "contact_std": update.contact_std}
    facts = (
        payload.to_dict()
        | counts
        | {"converged": update.converged, "file": output, "record": record}
    )

    def answer() -> None:
        out.payload("What the arm carries (95 % intervals)", payload)
        print()
        out.verdict(payload.verdict)

    files = {"Payload": output, "Recording": record}
    out.emit(facts, answer, files=files, verdict=payload.verdict)


class _Weighing:
    """How to weigh: by joint torques with a model, by a wrist sensor where one is given."""

    def __init__(
        self,
        known: DynamicModel | None,
        about: SensorDescription | None,
        arm: RobotModel | None,
        *,
        cutoff_hz: float,
        accuracy: float,
    ) -> None:
        if known is None and about is None:
            raise InvalidSamples(
                "say how to weigh: --model for joint torques, --sensor for a wrist sensor"
            )
        self._known = known
        self._cutoff_hz = cutoff_hz
        self._accuracy = accuracy
        self._about = about
        self._arm = known.robot if arm is None and known is not None else arm

    def source(self, address: str) -> Source:
        """Where rows come from."""
        from steelyard.live import ReplaySource, source_of

        found = source_of(address, joint_names=() if self._arm is None else self._arm.joint_names)
        if isinstance(found, ReplaySource) and self._arm is None and self._about is not None:
            return replace(found, sensor=self._about)
        return found

    def weigher(self, stream: Stream, address: str) -> LiveWeigher | WristWeigher:
        """What takes the rows of a stream."""
        from steelyard.live import LiveWeigher, WristWeigher
        from steelyard.wrist.tracking import WristTrackerOptions

        if self._about is not None:
            options = WristTrackerOptions(accuracy=self._accuracy)
            return WristWeigher(
                stream, self._about, self._arm, cutoff_hz=self._cutoff_hz, options=options
            )
        if self._known is None:
            raise InvalidSamples("a model is needed")
        return LiveWeigher(self._known, stream.columns, name=address, accuracy=self._accuracy)
