"""`track`: the payload sample by sample, from a recording or from a live stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.io._wrist import SensorDescription
from steelyard.live._addresses import source_of
from steelyard.live._setup import TrackerSetup
from steelyard.live._source import Source, Stream
from steelyard.live._torque import TorqueSetup
from steelyard.live._view import Snapshot
from steelyard.live._weigher import LiveWeigher, snapshots_of
from steelyard.live._wrist import WristSetup
from steelyard.payload._tracking import Progress
from steelyard.robot import RobotModel, load_robot
from steelyard.workflow._track import track_recording
from steelyard.workflow._tracking import OnProgress, Tracking, TrackingOptions
from steelyard.wrist.tracking import WristTrackerOptions

_SCHEMES = ("ur:", "ros2:", "franka:", "replay:")
_MIN_POINT_STEP_S = 0.1  # between two points of a curve
_MAX_POINTS = 1200


def is_address(source: object) -> bool:
    """Whether a source is the address of a live stream, and not a file or a value."""
    text = str(source)
    return isinstance(source, str) and (text.startswith(_SCHEMES) or "://" in text)


def track(
    source: Any,
    *,
    model: DynamicModel | str | Path | None = None,
    robot: RobotModel | str | None = None,
    sensor: SensorDescription | str | Path | None = None,
    accuracy: float = 0.01,
    resume: str | Path | None = None,
    on_progress: OnProgress | None = None,
    options: TrackingOptions | None = None,
) -> Tracking:
    """What the arm carries, sample by sample, from a recording or a live stream.

    With a model alone, from joint torques or motor currents; else from a wrist sensor.

    Args:
        source: a file, a recording, samples, a table, or the address of a stream, say ur://HOST
        model: of the empty arm, or its file
        robot: the arm, or its name or file, for a wrist sensor on an arm with joints
        sensor: what the wrist sensor is, or the TOML file of it
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
        resume: a file that `Tracking.save_state` wrote, to continue from
        on_progress: called with the progress as it becomes known
        options: how samples are made and tracked, and how long a stream
    """
    options = options or TrackingOptions()
    if not is_address(source):
        return track_recording(
            source,
            model=model,
            robot=robot,
            sensor=sensor,
            accuracy=accuracy,
            resume=resume,
            on_progress=on_progress,
            options=options,
        )
    job = StreamJob.of(source, model, robot, sensor, accuracy=accuracy, options=options)
    with Stream(job.source) as stream:
        weigher = LiveWeigher(job.setup(stream), resume=resume)
        curve = ProgressCurve()
        for snapshot in curve.collected(snapshots_of(stream.items(options.seconds), weigher)):
            if snapshot.progress is not None and on_progress is not None:
                on_progress(snapshot.progress)
    return track_stream(weigher, curve.points)


class ProgressCurve:
    """Collects the progress in snapshots; a long curve is thinned out.

    Attributes:
        points: progress along the way
    """

    def __init__(self) -> None:
        self.points: list[Progress] = []
        self._step_s = _MIN_POINT_STEP_S

    def collected(self, snapshots: Iterable[Snapshot]) -> Iterator[Snapshot]:
        """The same snapshots, whose progress is collected."""
        for snapshot in snapshots:
            if snapshot.progress is not None:
                self._add(snapshot.progress)
            yield snapshot

    def _add(self, progress: Progress) -> None:
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


@dataclass(frozen=True, eq=False)
class StreamJob:
    """A source, and how its rows are tracked.

    Attributes:
        source: of the rows
        setup: makes the setup for a stream of the source
    """

    source: Source
    setup: Callable[[Stream], TrackerSetup]

    @classmethod
    def of(
        cls,
        address: str,
        model: DynamicModel | str | Path | None,
        robot: RobotModel | str | None,
        sensor: SensorDescription | str | Path | None,
        *,
        accuracy: float,
        options: TrackingOptions,
    ) -> StreamJob:
        """The job of `track` with the same arguments.

        Args:
            address: of the stream
            model: of the empty arm, or its file
            robot: the arm, or its name or file
            sensor: what the wrist sensor is, or the TOML file of it
            accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
            options: how samples are made and tracked
        """
        if isinstance(model, str | Path):
            model = DynamicModel.load(model)
        if isinstance(robot, str):
            robot = load_robot(robot)
        if isinstance(sensor, str | Path):
            sensor = SensorDescription.load(sensor)
        if robot is None and model is not None:
            robot = model.robot
        joint_names: tuple[str, ...] = ()
        if robot is not None:
            joint_names = robot.joint_names
        source = source_of(address, joint_names=joint_names)
        if sensor is not None:
            return cls(*_of_sensor(source, sensor, robot, accuracy, options))
        if model is None:
            raise InvalidSamples(
                "give `model` to weigh with joint torques, or `sensor` with a wrist sensor"
            )
        known = model
        how = options.preparation

        def setup(stream: Stream) -> TrackerSetup:
            return TorqueSetup(known, stream.columns, address, accuracy, how, options.tracker)

        return cls(source, setup)


def _of_sensor(
    source: Source,
    sensor: SensorDescription,
    robot: RobotModel | None,
    accuracy: float,
    options: TrackingOptions,
) -> tuple[Source, Callable[[Stream], TrackerSetup]]:
    """The source with what is known about its sensor, and the setup of its streams."""
    of_tracker = WristTrackerOptions(accuracy=accuracy, level=options.level)
    if robot is None:
        source = source.with_sensor(sensor)

    def setup(stream: Stream) -> TrackerSetup:
        return WristSetup.of(stream, sensor, robot, cutoff_hz=options.cutoff_hz, options=of_tracker)

    return source, setup
