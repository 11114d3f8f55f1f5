"""`replay:FILE`: a recording as if it came from an arm now, row by row."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.errors import SourceFailed, SteelyardError
from steelyard.io import read_recording
from steelyard.live.source import Connection, EndOfSource, Source, Values
from steelyard.recording import Recording

_CHUNK = 100  # rows


@dataclass(frozen=True)
class ReplaySource(Source):
    """A recorded file; where it is over, the source ends.

    Attributes:
        path: of the recording
        speed: times as fast as it was recorded; None for as fast as it goes
    """

    path: str
    speed: float | None = 1.0

    def __str__(self) -> str:
        return f"replay:{self.path}"

    @cached_property
    def recording(self) -> Recording:
        """What is replayed."""
        try:
            return read_recording(self.path)
        except SteelyardError as error:
            raise SourceFailed(str(error)) from error

    def connect(self) -> Connection:
        """The recording from its beginning."""
        return _Replayed(self.recording, self.speed, str(self))


class _Replayed(Connection):
    """The rows of a recording, each not before its time."""

    def __init__(self, recording: Recording, speed: float | None, place: str) -> None:
        signals = {name: x for name, x in recording.signals.items() if name != "wrench"}
        piece = signals | {"t": recording.t[:, None] + recording.epoch_s}
        names = [["t"] if name == "t" else _names(name, x.shape[1]) for name, x in piece.items()]
        self.columns = tuple(name for group in names for name in group)
        self._rows = np.hstack(list(piece.values()))
        self._speed, self._next, self._place = speed, 0, place
        self._began_s, self._closed = time.monotonic(), False

    def read(self) -> Sequence[Values]:
        if self._next == len(self._rows) or self._closed:
            raise EndOfSource(f"{self._place} is over")
        start, end = self._next, min(self._next + _CHUNK, len(self._rows))
        if self._speed is not None:
            t = (self._rows[:, 0] - self._rows[0, 0]) / self._speed
            time.sleep(min(max(t[start] - (time.monotonic() - self._began_s), 0.0), 0.1))
            end = min(int(np.searchsorted(t, time.monotonic() - self._began_s, side="right")), end)
        self._next = max(start, end)
        return [tuple(row) for row in self._rows[start:end].tolist()]

    def close(self) -> None:
        self._closed = True


def _names(channel: str, count: int) -> list[str]:
    return [f"{channel}_{k}" for k in range(count)]
