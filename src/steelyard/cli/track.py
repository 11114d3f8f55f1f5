"""`steelyard track SOURCE`: weighs sample by sample, from a recording or a stream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from steelyard import _saved
from steelyard._computing import interruptible
from steelyard._units import NORMAL_95
from steelyard.cli import options
from steelyard.cli.live import (
    AccuracyOption,
    PageOption,
    SecondsOption,
    opened_page,
    snapshots_shown,
    stay,
    undo_file,
)
from steelyard.cli.output import Output, number
from steelyard.recording import DEFAULT_CUTOFF_HZ
from steelyard.verdict import DoubtKind

if TYPE_CHECKING:
    from steelyard.identification import DynamicModel
    from steelyard.io._wrist import SensorDescription
    from steelyard.live import LiveWeigher
    from steelyard.payload._tracking import Progress
    from steelyard.robot import RobotModel
    from steelyard.workflow import Tracking, TrackingOptions

_FOR_SENSORS = ("robot", "lock", "flange", "gravity", "level", "wrench_convention")
_FOR_TORQUES = ("kinematics", "tracker")
_FOR_FILES = (
    "column", "joints", "names", "degrees", "wrench_convention", "real_time", "report", "picture",
)  # fmt: skip
_FOR_STREAMS = ("record", "seconds", "page")


@interruptible()
def command(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            help="A recording, or a stream: ur://HOST, ros2://HOST?tau=effort, franka://HOST or"
            " replay:FILE."
        ),
    ],
    model: Annotated[
        Path | None,
        typer.Option(
            help="The identified empty arm (.json, from steelyard identify): weigh with joint"
            " torques or motor currents."
        ),
    ] = None,
    sensor: Annotated[
        Path | None, typer.Option(help="A wrist sensor (.toml): weigh with its wrench.")
    ] = None,
    robot: Annotated[
        str | None,
        typer.Option(
            help="The arm, for a wrist sensor on rows with joints; that of --model by default."
        ),
    ] = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    gravity: options.GravityOption = None,
    level: Annotated[
        bool, typer.Option("--level", help="The base below a wrist sensor is known to be level.")
    ] = False,
    cutoff: Annotated[
        float | None,
        typer.Option(
            min=options.LOWEST_HZ,
            help="Of the low-pass filter [Hz]; as the model's by default,"
            f" {DEFAULT_CUTOFF_HZ:g} for a wrist sensor.",
        ),
    ] = None,
    kinematics: Annotated[
        str | None, typer.Option(help="measured or commanded motion; as the model's by default.")
    ] = None,
    tracker: Annotated[
        str,
        typer.Option(
            help="direct, or xu2024 (with the package papers): on unfiltered rows, no intervals."
        ),
    ] = "direct",
    accuracy: AccuracyOption = 1.0,
    real_time: Annotated[
        bool, typer.Option("--real-time", help="No faster than the recording's clock.")
    ] = False,
    save_state: Annotated[
        Path | None, options.file_to_write("File for the state, to resume (.json).", "--save-state")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="A saved state to continue from.")] = None,
    output: Annotated[
        Path | None, options.file_to_write("File for the payload (.json).", "--output", "-o")
    ] = None,
    picture: options.PictureOption = None,
    report: options.ReportOption = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    degrees: options.DegreesFlag = False,
    wrench_convention: options.ConventionOption = None,
    record: Annotated[
        Path | None,
        options.file_to_write("File for every row (.parquet or .arrows).", "--record"),
    ] = None,
    seconds: SecondsOption = float("inf"),
    page: PageOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Weighs sample by sample, from a recording or a stream. Exit code 1: do not use the result.

    With --model alone from joint torques or motor currents, else from a wrist sensor: then with the
    force of a contact. A stream is tracked until Ctrl-C.
    """
    from steelyard.identification import DynamicModel
    from steelyard.live._track import is_address
    from steelyard.workflow import TrackingOptions

    _refuse_without_effect(ctx, of_sensor=model is None or sensor is not None)
    is_stream = is_address(source)
    if is_stream:
        options.refuse_without_effect(ctx, "on a stream", *_FOR_FILES)
    else:
        options.refuse_without_effect(ctx, "on a recording", *_FOR_STREAMS)
    known = None
    preparation = None
    if model is not None:
        known = DynamicModel.load(model)
        preparation = options.preparation_as(known, cutoff, kinematics)
        _refuse_cutoff_of_raw_rows(ctx, tracker, known)
    about = None
    if sensor is not None or (known is None and robot is not None):
        tables = options.requested(column, joints, wrench_convention, degrees=degrees, names=names)
        about = options.described(sensor, tables, gravity)
    job = _Job(
        source=source,
        model=known,
        robot=options.load_arm_if_named(robot, lock, flange),
        sensor=about,
        accuracy=accuracy / 100,
        resume=resume,
        options=TrackingOptions(
            tracker=tracker,
            preparation=preparation,
            cutoff_hz=cutoff or DEFAULT_CUTOFF_HZ,
            level=level,
            real_time=real_time,
            seconds=seconds,
        ),
    )
    out = Output(as_json)
    facts: dict[str, Any] = {}
    if is_stream:
        found, facts = job.track_stream(page, record, history_file=undo_file(output), quiet=as_json)
    else:
        data = job.read(column, joints, names, degrees=degrees)
        found = job.track_recording(data, quiet=as_json)
    with _saved.together():
        if save_state is not None:
            found.save_state(save_state)
        if output is not None:
            found.payload.save(output)
        read = [model, sensor, robot, resume, source]
        out.report(ctx, found.page, read, report=report, picture=picture)
    files = {
        "Payload": output, "Picture": picture, "Report": report, "State": save_state,
        "Recording": record,
    }  # fmt: skip
    facts = found.to_dict() | facts | {"file": output, "record": record}
    requested = {"the mass": _requested_mass(found)}
    verdict = found.payload.verdict
    out.emit(facts, lambda: _show(out, found), files=files, verdict=verdict, requested=requested)


def _requested_mass(found: Tracking) -> float:
    """The mass, not finite where it has no interval though the tracker gives some."""
    if found.tracker.gives_intervals:
        return float(found.payload.mass + found.payload.std[0])
    return found.payload.mass


def _refuse_without_effect(ctx: typer.Context, *, of_sensor: bool) -> None:
    if of_sensor:
        options.refuse_without_effect(ctx, "with a wrist sensor", *_FOR_TORQUES)
    else:
        options.refuse_without_effect(ctx, "without --sensor", *_FOR_SENSORS)


def _refuse_cutoff_of_raw_rows(ctx: typer.Context, name: str, model: DynamicModel) -> None:
    """Refuses --cutoff where the tracker takes rows as they come."""
    from steelyard.workflow._torque_tracking import tracker_named
    from steelyard.workflow._tracking import DIRECT

    if name != DIRECT and tracker_named(name, model, 1.0).takes_raw_rows:
        options.refuse_without_effect(ctx, f"with --tracker {name}", "cutoff")


@dataclass(frozen=True)
class _Job:
    """What is tracked, and how."""

    source: str
    model: DynamicModel | None
    robot: RobotModel | None
    sensor: SensorDescription | None
    accuracy: float
    resume: Path | None
    options: TrackingOptions

    def read(
        self, column: list[str] | None, joints: str | None, names: str | None, *, degrees: bool
    ) -> Any:
        """The recording; that of a wrist sensor is read by its description."""
        if self.model is None or self.sensor is not None:
            return self.source
        recording = options.read_requested(
            Path(self.source),
            column,
            joints,
            robot=self.model.robot,
            degrees=degrees,
            names=names,
        )
        return {self.source: recording}

    def track_recording(self, data: Any, *, quiet: bool) -> Tracking:
        """Tracks a recording to its end, and shows how the payload becomes known."""
        from steelyard.workflow._track import track_recording

        with _screen(f"{Path(self.source).name}, sample by sample", quiet=quiet) as show:
            return track_recording(
                data,
                model=self.model,
                robot=self.robot,
                sensor=self.sensor,
                accuracy=self.accuracy,
                resume=self.resume,
                on_progress=show,
                options=self.options,
            )

    def track_stream(
        self, page: str | None, record: Path | None, *, history_file: Path | None, quiet: bool
    ) -> tuple[Tracking, dict[str, Any]]:
        """Tracks a stream until it ends or Ctrl-C, and what to say about its rows."""
        from steelyard.live import Recorder, Stream, snapshots_of
        from steelyard.live._track import ProgressCurve, StreamJob, track_stream
        from steelyard.live._weigher import LiveWeigher

        job = StreamJob.of(
            self.source,
            self.model,
            self.robot,
            self.sensor,
            accuracy=self.accuracy,
            options=self.options,
        )
        curve = ProgressCurve()
        with opened_page(page, job.source, job.setup, history_file=history_file) as shown:
            with ExitStack() as open_now:
                stream = open_now.enter_context(Stream(job.source))
                recorder = None
                if record is not None:
                    recorder = open_now.enter_context(Recorder(record, stream.columns))
                weigher = LiveWeigher(job.setup(stream), resume=self.resume)
                rows = stream.items(self.options.seconds)
                snapshots = snapshots_of(rows, weigher, recorder=recorder, page=shown)
                show = open_now.enter_context(snapshots_shown(self.accuracy, quiet=quiet))
                is_over = False
                with suppress(KeyboardInterrupt):
                    for snapshot in curve.collected(snapshots):
                        show(snapshot)
                    is_over = True
            if is_over:
                stay(shown)
        return track_stream(weigher, curve.points), _rows_of(weigher)


def _rows_of(weigher: LiveWeigher) -> dict[str, Any]:
    """What to say about the rows of a stream."""
    snapshot = weigher.snapshot()
    if snapshot is None:
        return {}
    return {
        "rows": snapshot.rows,
        "missing": snapshot.missing,
        "dropped": snapshot.dropped,
        "converged": snapshot.converged,
    }


@contextmanager
def _screen(title: str, *, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A function that shows progress: live in a terminal, elsewhere one line per second."""
    if quiet:
        yield lambda progress: None
        return
    if not sys.stdout.isatty():
        print(f"{title}:")
        yield _Lines()
        return
    from rich.live import Live
    from rich.text import Text

    with Live(refresh_per_second=10) as live:
        yield lambda progress: live.update(
            Text(f"{title}\n{_line(progress)}\n{_state(progress)}\n{_next(progress)}")
        )


class _Lines:
    """Prints one line per second of the recording."""

    def __init__(self) -> None:
        self._due_s = -np.inf

    def __call__(self, progress: Progress) -> None:
        if progress.t >= self._due_s - 1e-9:
            print("  ".join(x for x in (_line(progress), _state(progress)) if x))
            self._due_s = progress.t + 1.0


def _line(progress: Progress) -> str:
    """Time, mass and centre of mass."""
    if progress.payload.verdict.has(DoubtKind.NOT_EXCITED) and not np.isfinite(progress.mass_std):
        return f"{progress.t:8.2f} s  mass not known yet"
    if not np.isfinite(progress.mass_std):
        return f"{progress.t:8.2f} s  mass {progress.mass:7.3f} kg, no interval"
    half_width = NORMAL_95 * progress.mass_std
    words = f"{progress.t:8.2f} s  mass {progress.mass:7.3f} +- {half_width:6.3f} kg"
    if np.isfinite(progress.com_std).all():
        words += "  com " + " ".join(f"{1e3 * x:6.1f}" for x in progress.com)
        words += f" +- {1e3 * NORMAL_95 * progress.com_std.max():5.1f} mm"
    return words


def _state(progress: Progress) -> str:
    """Whether the payload may be used, in a few words."""
    kinds = ", ".join(doubt.kind for doubt in progress.payload.verdict.blocking)
    if kinds:
        return f"do not use yet ({kinds})"
    if progress.converged:
        return "converged"
    return "not yet as accurate as requested"


def _next(progress: Progress) -> str:
    if not progress.next_step:
        return ""
    return f"Next: {progress.next_step}"


def _show(out: Output, found: Tracking) -> None:
    """Prints the payload at the end, the verdict, and the payloads before it."""
    title = "What the arm carries"
    if found.payload.T_flange_frame is not None:
        title = "What the sensor carries, in the sensor frame"
    print()
    if not found.tracker.gives_intervals:
        cells = [(x.name, number(x.value), x.unit) for x in found.payload.quantities]
        out.table(f"{title} (no intervals)", ("", "weighed", "unit"), cells, words=(0, 2))
        print()
    elif found.payload.mass:
        out.payload(f"{title} (95 % intervals)", found.payload)
        print()
    out.verdict(found.payload.verdict)
    print(found.when)
    if found.contact is not None:
        force = np.linalg.norm(found.contact.wrench[:3])
        torque = np.linalg.norm(found.contact.wrench[3:])
        print(f"Contact at the end: {force:.3g} N, {torque:.3g} Nm.")
    if found.state.history:
        rows = [
            (
                f"{i + 1}",
                f"{episode.start_s:.2f}",
                f"{episode.end_s:.2f}",
                number(episode.vector[0]),
                number(NORMAL_95 * np.sqrt(episode.covariance[0, 0]), 2),
            )
            for i, episode in enumerate(found.state.history)
        ]
        print()
        out.table("Payloads before", ("", "from [s]", "to [s]", "mass [kg]", "+-"), rows)
