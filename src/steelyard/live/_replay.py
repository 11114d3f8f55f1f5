"""`replay:FILE`: a recording as if it came from an arm now, row by row."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import SourceFailed, SteelyardError
from steelyard.io._recordings import read_with_joints
from steelyard.io._wrist import SensorDescription
from steelyard.live._source import MOTION_COLUMN, Connection, EndOfSource, Source, Values
from steelyard.recording import AXES, Recording, WrenchConvention
from steelyard.recording._columns import Requested
from steelyard.recording._layout import SINGLE_CHANNELS
from steelyard.wrist.tracking import motion_of

_CHUNK = 100  # rows


@dataclass(frozen=True)
class ReplaySource(Source):
    """A recorded file; where it is over, the source ends.

    Attributes:
        path: of the recording
        speed: times as fast as it was recorded; None for as fast as rows are taken, without a loss
        sensor: what a wrist sensor is, whose file has no joints; its wrench is turned to our
            convention
        tables: the user's statements about the columns and units of the file
        joint_names: of the arm, into whose order joints are put; empty where it is not known
    """

    path: str
    speed: float | None = 1.0
    sensor: SensorDescription | None = None
    tables: Requested = field(default_factory=Requested)
    joint_names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"replay:{self.path}"

    @property
    def waits_for_reader(self) -> bool:  # type: ignore[override]
        """Whether rows wait until they are taken: there is no clock to follow."""
        return self.speed is None

    @cached_property
    def recording(self) -> Recording:
        """What is replayed."""
        try:
            return read_with_joints(self.path, self.tables, self.joint_names)
        except SteelyardError as error:
            raise SourceFailed(str(error)) from error

    def with_sensor(self, sensor: SensorDescription) -> ReplaySource:
        """The same file, read as the table of a wrist sensor.

        Args:
            sensor: what it is
        """
        return replace(self, sensor=sensor)

    def with_joints(self, joint_names: tuple[str, ...]) -> ReplaySource:
        """The same file, with the joints in the order of an arm, unless one is known already.

        Args:
            joint_names: of the arm; empty where it is not known
        """
        return replace(self, joint_names=self.joint_names or joint_names)

    def read_with(self, tables: Requested) -> ReplaySource:
        """The same file, read with a user's statements about it.

        Args:
            tables: the statements
        """
        return replace(self, tables=tables)

    def connect(self) -> Connection:
        """The recording from its beginning."""
        if self.sensor is not None:
            return _Replayed(
                _wrist_signals(self.path, self.sensor), "load_on_sensor", self.speed, str(self)
            )
        recording = self.recording
        signals = recording.signals | {"t": recording.t[:, None] + recording.epoch_s}
        return _Replayed(signals, recording.wrench_convention, self.speed, str(self))


def _wrist_signals(path: str, sensor: SensorDescription) -> dict[str, Array]:
    """Time, wrench and motion of a table without joints."""
    try:
        recording = sensor.recording(path)
        motion = motion_of(recording)
    except SteelyardError as error:
        raise SourceFailed(str(error)) from error
    return {"t": recording.t[:, None], "wrench": recording.wrench, MOTION_COLUMN: motion}


class _Replayed(Connection):
    """The rows of a recording, each not before its time."""

    def __init__(
        self,
        signals: dict[str, Array],
        wrench_convention: WrenchConvention | None,
        speed: float | None,
        place: str,
    ) -> None:
        self.columns = tuple(
            each for name, x in signals.items() for each in _names(name, x.shape[1])
        )
        self.wrench_convention = wrench_convention
        self._rows = np.hstack(list(signals.values()))
        self._speed = speed
        self._next = 0
        self._place = place
        self._began_s = time.monotonic()
        self._closed = False

    def read(self) -> Sequence[Values]:
        if self._next == len(self._rows) or self._closed:
            raise EndOfSource(f"{self._place} is over")
        start = self._next
        end = min(self._next + _CHUNK, len(self._rows))
        if self._speed is not None:
            t = (self._rows[:, 0] - self._rows[0, 0]) / self._speed
            time.sleep(min(max(t[start] - (time.monotonic() - self._began_s), 0.0), 0.1))
            end = min(int(np.searchsorted(t, time.monotonic() - self._began_s, side="right")), end)
        self._next = max(start, end)
        return [tuple(row) for row in self._rows[start:end].tolist()]

    def close(self) -> None:
        self._closed = True


def _names(channel: str, count: int) -> list[str]:
    if channel in ("t", *SINGLE_CHANNELS):
        return [channel]
    if channel == "wrench":
        return [f"wrench_stamped.{axis}" for axis in AXES]
    return [f"{channel}_{k}" for k in range(count)]
