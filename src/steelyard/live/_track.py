"""`track` and `track_wrist`: the payload sample by sample, from a recording or a live stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard._computing import one_blas_thread
from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.io._wrist import SensorDescription
from steelyard.live._addresses import source_of
from steelyard.live._page_process import LivePage
from steelyard.live._recorder import Recorder
from steelyard.live._replay import ReplaySource
from steelyard.live._setup import TrackerSetup
from steelyard.live._source import Source, Stream
from steelyard.live._torque import TorqueSetup
from steelyard.live._view import Snapshot
from steelyard.live._weigher import LiveWeigher, snapshots_of
from steelyard.live._wrist import WristSetup
from steelyard.payload._tracking import Progress
from steelyard.robot import RobotModel, load_robot
from steelyard.workflow._torque_tracking import TorqueReplay
from steelyard.workflow._tracking import (
    OnProgress,
    Tracking,
    TrackingOptions,
    WristTrackingOptions,
    tracked,
)
from steelyard.workflow._wrist_tracking import WristReplay
from steelyard.wrist.tracking import WristTrackerOptions

_SCHEMES = ("ur:", "ros2:", "ros2-node:", "franka:", "replay:")
_MIN_POINT_STEP_S = 0.1  # between two points of a curve
_MAX_POINTS = 1200


@dataclass(frozen=True, eq=False)
class StreamOptions:
    """What happens with a stream while it is tracked.

    Attributes:
        seconds: how long it is tracked, [s]
        record: file for every row (.parquet or .arrows); None to record nothing
        page: shows the snapshots; it stays open
        on_snapshot: called several times per second
        ends_at_interrupt: whether Ctrl-C ends the stream instead of raising `KeyboardInterrupt`
    """

    seconds: float = float("inf")
    record: Path | None = None
    page: LivePage | None = None
    on_snapshot: Callable[[Snapshot], None] | None = None
    ends_at_interrupt: bool = False


def is_address(source: object) -> bool:
    """Whether a source is the address of a live stream, and not a file or a value."""
    text = str(source)
    return isinstance(source, str) and (text.startswith(_SCHEMES) or "://" in text)


def track(
    source: Any,
    model: DynamicModel | str | Path,
    *,
    accuracy: float = 0.01,
    resume: str | Path | None = None,
    on_progress: OnProgress | None = None,
    options: TrackingOptions | None = None,
    stream: StreamOptions | None = None,
) -> Tracking:
    """What the arm carries, sample by sample, from joint torques or motor currents.

    Args:
        source: a file, a recording, samples, a table, or a stream: a `Source` or its address, say
            ur://HOST
        model: of the empty arm, or its file
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
        resume: a file that `Tracking.save_state` wrote, to continue from
        on_progress: called with the progress as it becomes known
        options: how samples are made and tracked
        stream: what happens with a stream meanwhile; with it, a file is replayed as a stream
    """
    if isinstance(source, DynamicModel):
        raise InvalidSamples(
            "the first argument is what to track, the second the model of the empty arm:"
            " track(recording, model)"
        )
    options = options or TrackingOptions()
    if _is_stream(source, stream):
        job = torque_job(source, model, accuracy, options)
        return _track_stream(job, resume, on_progress, stream or StreamOptions())
    with one_blas_thread():
        replay = TorqueReplay.of(source, model, accuracy, options)
        return tracked(replay, resume=resume, on_progress=on_progress)


def track_wrist(
    source: Any,
    robot: RobotModel | str | None = None,
    *,
    sensor: SensorDescription | str | Path | None = None,
    accuracy: float = 0.01,
    resume: str | Path | None = None,
    on_progress: OnProgress | None = None,
    options: WristTrackingOptions | None = None,
    stream: StreamOptions | None = None,
) -> Tracking:
    """What a wrist sensor carries, sample by sample, with the force of a contact.

    Args:
        source: a file, a recording, or a stream: a `Source` or its address, say ros2://HOST
        robot: the arm, or its name or file, where rows hold joints
        sensor: what the sensor is, or the TOML file of it
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
        resume: a file that `Tracking.save_state` wrote, to continue from
        on_progress: called with the progress as it becomes known
        options: how samples are made and tracked
        stream: what happens with a stream meanwhile; with it, a file is replayed as a stream
    """
    options = options or WristTrackingOptions()
    if _is_stream(source, stream):
        job = wrist_job(source, robot, sensor, accuracy, options)
        return _track_stream(job, resume, on_progress, stream or StreamOptions())
    with one_blas_thread():
        replay = WristReplay.of(source, robot, sensor, accuracy, options)
        return tracked(replay, resume=resume, on_progress=on_progress)


def _is_stream(source: Any, stream: StreamOptions | None) -> bool:
    return stream is not None or isinstance(source, Source) or is_address(source)


def _source_of(source: Any, joint_names: tuple[str, ...]) -> Source:
    """The source of a stream; a file is replayed."""
    if isinstance(source, Source):
        return source.with_joints(joint_names)
    if is_address(source):
        return source_of(source, joint_names=joint_names)
    if isinstance(source, str | Path):
        return ReplaySource(str(source), joint_names=joint_names)
    raise InvalidSamples(
        f"a stream is a source, an address or a file to replay, got {type(source).__name__}"
    )


@dataclass(frozen=True, eq=False)
class StreamJob:
    """A source, and how its rows are tracked.

    Attributes:
        source: of the rows
        setup: makes the setup for a stream of the source
    """

    source: Source
    setup: Callable[[Stream], TrackerSetup]


def torque_job(
    source: Any, model: DynamicModel | str | Path, accuracy: float, options: TrackingOptions
) -> StreamJob:
    """How `track` tracks a stream.

    Args:
        source: a `Source`, its address, or a file to replay
        model: of the empty arm, or its file
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
        options: how samples are made and tracked
    """
    if isinstance(model, str | Path):
        model = DynamicModel.load(model)
    known = model
    rows = _source_of(source, known.robot.joint_names)

    def setup(stream: Stream) -> TrackerSetup:
        how = options.preparation
        return TorqueSetup(known, stream.columns, str(rows), accuracy, how, options.tracker)

    return StreamJob(rows, setup)


def wrist_job(
    source: Any,
    robot: RobotModel | str | None,
    sensor: SensorDescription | str | Path | None,
    accuracy: float,
    options: WristTrackingOptions,
) -> StreamJob:
    """How `track_wrist` tracks a stream.

    Args:
        source: a `Source`, its address, or a file to replay
        robot: the arm, or its name or file, where rows hold joints
        sensor: what the sensor is, or the TOML file of it
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
        options: how samples are made and tracked
    """
    if isinstance(sensor, str | Path):
        sensor = SensorDescription.load(sensor)
    known = sensor or SensorDescription()
    arm: RobotModel | None = None
    joint_names: tuple[str, ...] = ()
    if robot is not None:
        arm = load_robot(robot) if isinstance(robot, str) else robot
        joint_names = arm.joint_names
    rows = _source_of(source, joint_names)
    if arm is None:
        rows = rows.with_sensor(known)
    of_tracker = WristTrackerOptions(accuracy=accuracy, level=options.level)

    def setup(stream: Stream) -> TrackerSetup:
        return WristSetup.of(stream, known, arm, cutoff_hz=options.cutoff_hz, options=of_tracker)

    return StreamJob(rows, setup)


def _track_stream(
    job: StreamJob,
    resume: str | Path | None,
    on_progress: OnProgress | None,
    options: StreamOptions,
) -> Tracking:
    """Tracks a stream until its end, and what was found."""
    curve = ProgressCurve()
    with ExitStack() as resources:
        stream = resources.enter_context(Stream(job.source))
        recorder = None
        if options.record is not None:
            arm = stream.identity()
            recorder = resources.enter_context(Recorder(options.record, stream.columns, arm))
        weigher = LiveWeigher(job.setup(stream), resume=resume)
        rows = stream.items(options.seconds)
        try:
            for snapshot in snapshots_of(rows, weigher, recorder=recorder, page=options.page):
                curve.add(snapshot.progress)
                if snapshot.progress is not None and on_progress is not None:
                    on_progress(snapshot.progress)
                if options.on_snapshot is not None:
                    options.on_snapshot(snapshot)
        except KeyboardInterrupt:
            if not options.ends_at_interrupt:
                raise
    return track_stream(weigher, curve.points)


class ProgressCurve:
    """Collects progress; a long curve is thinned out.

    Attributes:
        points: progress along the way
    """

    def __init__(self) -> None:
        self.points: list[Progress] = []
        self._step_s = _MIN_POINT_STEP_S

    def add(self, progress: Progress | None) -> None:
        """Adds a point where the last one is old enough.

        Args:
            progress: of a snapshot
        """
        if progress is None:
            return
        if self.points and progress.t - self.points[-1].t < self._step_s:
            return
        self.points.append(progress)
        if len(self.points) > _MAX_POINTS:
            self.points = self.points[::2]
            self._step_s = 2 * self._step_s


def track_stream(weigher: LiveWeigher, points: Iterable[Progress]) -> Tracking:
    """The result of a stream that was weighed.

    Args:
        weigher: that took its rows
        points: progress along the way
    """
    payload = weigher.payload()
    if payload is None or weigher.calibration is None:
        snapshot = weigher.snapshot()
        reason = ""
        if snapshot is not None:
            reason = f" ({snapshot.waiting})"
        raise InvalidSamples(f"{weigher.setup.name}: nothing could be weighed{reason}")
    calibration = weigher.calibration
    last = calibration.tracker.progress(weigher.state)
    delay_s = calibration.path.delay_s
    return Tracking(payload, calibration.tracker, weigher.state, (*points, last), delay_s)
