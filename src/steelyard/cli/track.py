"""`steelyard track` and `track-wrist`: weigh sample by sample, from a recording or a stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    LiveModelOption,
    PageOption,
    SecondsOption,
    TrackerOption,
    opened_page,
    stay,
    undo_file,
)
from steelyard.cli.output import Output, number
from steelyard.cli.progress import progress_shown, snapshots_shown
from steelyard.cli.terminal import INTERVAL, say
from steelyard.errors import UnknownName
from steelyard.recording import DEFAULT_CUTOFF_HZ

if TYPE_CHECKING:
    from steelyard.identification import DynamicModel
    from steelyard.live import Snapshot, Source, StreamOptions
    from steelyard.live._track import StreamJob
    from steelyard.recording._columns import Requested
    from steelyard.workflow import Tracking
    from steelyard.workflow._tracking import OnProgress

SourceArgument = Annotated[
    str,
    typer.Argument(
        help="A recording, or a stream: ur://HOST, ros2://HOST?tau=effort, franka://HOST or"
        " replay:FILE."
    ),
]
SaveStateOption = Annotated[
    Path | None,
    options.file_to_write(
        "File for the state, to resume (.json).", "--save-state", endings=(".json",)
    ),
]
ResumeOption = Annotated[Path | None, typer.Option(help="A saved state to continue from.")]
OutputOption = Annotated[
    Path | None,
    options.file_to_write("The payload to write (.json).", "--output", "-o", endings=(".json",)),
]
RecordOption = Annotated[
    Path | None,
    options.file_to_write(
        "A file for every row (.parquet or .arrows). A recording is replayed for it.",
        "--record",
        endings=(".parquet", ".arrows"),
    ),
]

PublishOption = Annotated[
    str | None,
    typer.Option(
        "--publish",
        metavar="TOPIC",
        help="Publish the payload on this topic of the ROS 2 stream"
        " (geometry_msgs/InertiaStamped), and its status on /diagnostics.",
    ),
]


@interruptible()
def command(
    ctx: typer.Context,
    source: SourceArgument,
    model: LiveModelOption,
    cutoff: Annotated[
        float | None,
        typer.Option(
            min=options.LOWEST_HZ,
            help="Cut-off of the low-pass filter [Hz]. Default: that of the model.",
        ),
    ] = None,
    kinematics: Annotated[
        str | None,
        typer.Option(help="The motion to use: measured or commanded. Default: that of the model."),
    ] = None,
    tracker: TrackerOption = "direct",
    accuracy: AccuracyOption = 1.0,
    save_state: SaveStateOption = None,
    resume: ResumeOption = None,
    output: OutputOption = None,
    picture: options.PictureOption = None,
    report: options.ReportOption = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    rate: options.RateOption = None,
    degrees: options.DegreesFlag = False,
    record: RecordOption = None,
    publish: PublishOption = None,
    seconds: SecondsOption = math.inf,
    page: PageOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Weighs sample by sample with joint torques or motor currents, from a recording or a stream.

    A stream is tracked until Ctrl-C. A recording is replayed as a stream for --seconds, --record
    and --page. Exit code 1: do not use the result.
    """
    from steelyard.live import track
    from steelyard.live._track import torque_job
    from steelyard.workflow import TrackingOptions
    from steelyard.workflow._data import identified_arm

    known = identified_arm(model)
    preparation = options.preparation_as(known, cutoff, kinematics)
    if cutoff is not None:
        _require_filter(tracker, known)
    how = TrackingOptions(tracker=tracker, preparation=preparation)
    tables = options.requested(column, joints, degrees=degrees, names=names, rate=rate)
    request = _Request(
        source=source,
        accuracy=accuracy / 100,
        seconds=seconds,
        record=record,
        publish=publish,
        page=page,
        history_file=undo_file(output),
        as_json=as_json,
    )

    def tracked(
        data: Any, on_progress: OnProgress | None, stream: StreamOptions | None
    ) -> Tracking:
        return track(
            data,
            known,
            accuracy=request.accuracy,
            resume=resume,
            on_progress=on_progress,
            options=how,
            stream=stream,
        )

    facts: dict[str, Any] = {}
    if request.is_stream:
        rows = request.stream_source(tables, known.robot.joint_names)
        job = torque_job(rows, known, request.accuracy, how)
        found, facts = request.track_stream(job, tracked)
    else:
        recording = options.read_requested(Path(source), tables, robot=known.robot)
        found = request.track_recording({source: recording}, tracked)
    files = _Files(output, save_state, picture, report, record)
    _finish(ctx, found, facts, files, [model, resume, source])


@interruptible()
def wrist_command(
    ctx: typer.Context,
    source: SourceArgument,
    sensor: options.SensorOption = None,
    robot: options.ArmOption = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    gravity: options.GravityOption = None,
    level: Annotated[bool, typer.Option("--level", help="The base is known to be level.")] = False,
    cutoff: options.WrenchCutoffOption = DEFAULT_CUTOFF_HZ,
    accuracy: AccuracyOption = 1.0,
    save_state: SaveStateOption = None,
    resume: ResumeOption = None,
    output: OutputOption = None,
    picture: options.PictureOption = None,
    report: options.ReportOption = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    degrees: options.DegreesFlag = False,
    wrench_convention: options.ConventionOption = None,
    record: RecordOption = None,
    publish: PublishOption = None,
    seconds: SecondsOption = math.inf,
    page: PageOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Weighs sample by sample with a wrist sensor, and shows the force of a contact.

    A stream is tracked until Ctrl-C. A recording is replayed as a stream for --seconds, --record
    and --page. Exit code 1: do not use the result.
    """
    from steelyard.live import track_wrist
    from steelyard.live._track import wrist_job
    from steelyard.workflow import WristTrackingOptions

    arm = options.load_arm_if_named(robot, lock, flange)
    tables = options.requested(column, joints, wrench_convention, degrees=degrees, names=names)
    about = options.described(sensor, tables, gravity)
    how = WristTrackingOptions(cutoff_hz=cutoff, level=level)
    request = _Request(
        source=source,
        accuracy=accuracy / 100,
        seconds=seconds,
        record=record,
        publish=publish,
        page=page,
        history_file=undo_file(output),
        as_json=as_json,
    )

    def tracked(
        data: Any, on_progress: OnProgress | None, stream: StreamOptions | None
    ) -> Tracking:
        return track_wrist(
            data,
            arm,
            sensor=about,
            accuracy=request.accuracy,
            resume=resume,
            on_progress=on_progress,
            options=how,
            stream=stream,
        )

    facts: dict[str, Any] = {}
    if request.is_stream:
        joint_names: tuple[str, ...] = ()
        if arm is not None:
            joint_names = arm.joint_names
        rows = request.stream_source(tables, joint_names)
        job = wrist_job(rows, arm, about, request.accuracy, how)
        found, facts = request.track_stream(job, tracked)
    else:
        found = request.track_recording(source, tracked)
    files = _Files(output, save_state, picture, report, record)
    _finish(ctx, found, facts, files, [sensor, robot, resume, source])


def _require_filter(name: str, model: DynamicModel) -> None:
    """Refuses a cut-off where the tracker takes rows as they come."""
    from steelyard.workflow._torque_tracking import tracker_named
    from steelyard.workflow._tracking import DIRECT

    if name != DIRECT and tracker_named(name, model, 1.0).takes_raw_rows:
        raise UnknownName(
            f"the tracker {name} takes rows as they come, without a filter: leave --cutoff out"
        )


@dataclass(frozen=True)
class _Request:
    """What is tracked, and what happens meanwhile."""

    source: str
    accuracy: float
    seconds: float
    record: Path | None
    publish: str | None
    page: str | None
    history_file: Path | None
    as_json: bool

    @property
    def is_stream(self) -> bool:
        """Whether rows are taken as they come; a recording is then replayed."""
        from steelyard.live._track import is_address

        given = (self.record, self.publish, self.page)
        only_streams = given != (None,) * 3 or math.isfinite(self.seconds)
        return only_streams or is_address(self.source)

    def stream_source(self, tables: Requested, joint_names: tuple[str, ...]) -> Source:
        """The source of the rows, with the user's statements about them."""
        from steelyard.live import ReplaySource, source_of
        from steelyard.live._track import is_address

        source: Source = ReplaySource(self.source, joint_names=joint_names)
        if is_address(self.source):
            source = source_of(self.source, joint_names=joint_names)
        return source.read_with(tables)

    def track_recording(self, data: Any, tracked: _Tracked) -> Tracking:
        """Tracks a recording to its end, and shows how the payload becomes known."""
        title = f"{Path(self.source).name}, sample by sample"
        with progress_shown(title, quiet=self.as_json) as show:
            return tracked(data, show, None)

    def track_stream(self, job: StreamJob, tracked: _Tracked) -> tuple[Tracking, dict[str, Any]]:
        """Tracks a stream until it ends or Ctrl-C, and what to say about its rows."""
        from steelyard.live import StreamOptions

        last: list[Snapshot] = []
        with opened_page(self.page, job.source, job.setup, history_file=self.history_file) as page:
            with (
                snapshots_shown(str(job.source), self.accuracy, quiet=self.as_json) as show,
                self._publisher(job.source) as publish,
            ):

                def on_snapshot(snapshot: Snapshot) -> None:
                    last[:] = [snapshot]
                    publish(snapshot)
                    show(snapshot)

                stream = StreamOptions(
                    seconds=self.seconds,
                    record=self.record,
                    page=page,
                    on_snapshot=on_snapshot,
                    ends_at_interrupt=True,
                )
                found = tracked(job.source, None, stream)
            stay(page)
        return found, _facts_of_rows(last)

    @contextmanager
    def _publisher(self, source: Source) -> Iterator[Callable[[Snapshot], None]]:
        """A function that publishes a snapshot, where that is requested."""
        if self.publish is None:
            yield lambda snapshot: None
            return
        with source.publisher(self.publish) as publisher:
            yield publisher.publish_snapshot


_Tracked = Callable[[Any, "OnProgress | None", "StreamOptions | None"], "Tracking"]


@dataclass(frozen=True)
class _Files:
    """Files to write."""

    output: Path | None
    save_state: Path | None
    picture: Path | None
    report: Path | None
    record: Path | None


def _facts_of_rows(last: list[Snapshot]) -> dict[str, Any]:
    """What to say about the rows of a stream, by its last snapshot."""
    if not last:
        return {}
    return {
        "rows": last[0].rows,
        "missing": last[0].missing,
        "dropped": last[0].dropped,
        "converged": last[0].converged,
    }


def _finish(
    ctx: typer.Context,
    found: Tracking,
    facts: dict[str, Any],
    files: _Files,
    read: list[Path | str | None],
) -> None:
    """Writes the files and prints the result."""
    out = Output(ctx.params["as_json"])
    with _saved.together():
        if files.save_state is not None:
            found.save_state(files.save_state)
        if files.output is not None:
            found.payload.save(files.output)
        out.report(ctx, found.page, read, report=files.report, picture=files.picture)
    written = {
        "Payload": files.output,
        "Picture": files.picture,
        "Report": files.report,
        "State": files.save_state,
        "Recording": files.record,
    }
    answer = found.to_dict() | facts | {"file": files.output, "record": files.record}
    requested = {"the mass": _requested_mass(found)}
    verdict = found.payload.verdict
    out.emit(answer, lambda: _show(out, found), files=written, verdict=verdict, requested=requested)


def _requested_mass(found: Tracking) -> float:
    """The mass, not finite where it has no interval though the tracker gives some."""
    if found.tracker.gives_intervals:
        return float(found.payload.mass + found.payload.std[0])
    return found.payload.mass


def _show(out: Output, found: Tracking) -> None:
    """Prints the payload at the end, the verdict, and the payloads before it."""
    title = "What the arm carries"
    if found.payload.T_flange_frame is not None:
        title = "What the sensor carries, in the sensor frame"
    say()
    if found.payload.mass:
        out.payload(title, found.payload)
        say()
    out.verdict(found.payload.verdict)
    say(found.when)
    if found.contact is not None:
        force = np.linalg.norm(found.contact.wrench[:3])
        torque = np.linalg.norm(found.contact.wrench[3:])
        say(f"Contact at the end: {force:.3g} N, {torque:.3g} Nm.")
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
        say()
        out.table("Payloads before", ("", "from [s]", "to [s]", "mass [kg]", INTERVAL), rows)
