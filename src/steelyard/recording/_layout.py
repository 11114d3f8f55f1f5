"""Where the signals lie in a table: named columns of numbers, gathered into the channels of a Recording.

Every format comes down to columns with names: a text table has them, Parquet has them, and of an
NPZ array `q` of six columns they are `q[0]` to `q[5]`. A `Layout` says which of them make up which
channel, and carries what is known beside the numbers. A file that steelyard wrote holds its own
layout as JSON; for others `columns` finds it.

The clock of libfranka counts whole milliseconds. `franka::logToCSV` writes them as they are
(`toMSec`), users often write seconds (`toSec`). In seconds a log at 1 kHz cannot be whole numbers;
whole numbers are therefore milliseconds, unless the arm would have to move faster than any does. A
column called `time_s` or `time_ms` needs no such rule.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from steelyard import fields
from steelyard._arrays import Array
from steelyard.errors import UnreadableFile

WrenchConvention = Literal["load_on_sensor", "sensor_on_load"]

_COMMANDED = ("q_commanded", "v_commanded", "a_commanded", "current_target", "tau_target")
CHANNELS = ("q", "v", "tau", "current", *_COMMANDED, "temperature")
"""The joint signals that a recording may hold, each (N, n)."""

AXES = ("fx", "fy", "fz", "tx", "ty", "tz")
"""The columns of a wrench."""

Piece = dict[str, Array]
"""Some rows: 't' (N,), and every channel that there is (N, k)."""

_FORMAT = 1  # version of what steelyard writes beside the numbers
_ARRAYS = ("t", *CHANNELS, "wrench")
_SIZES = {"t": 1, "wrench": 6}
_COLUMNS = {
    name: fields.optional(fields.each(fields.TEXT, _SIZES.get(name, "n"))) for name in _ARRAYS
}
_COLUMNS |= {"t": fields.each(fields.TEXT, 1), "q": fields.each(fields.TEXT, "n")}
_BESIDE = {
    "format": fields.count(1),
    "columns": fields.table(_COLUMNS),
    "facts": fields.table(
        {
            "joint_names": fields.each(fields.TEXT, "n"),
            "notes": fields.each(fields.TEXT),
            **{
                name: fields.optional(fields.TEXT) for name in ("wrench_frame", "wrench_convention")
            },
            "source": fields.TEXT,
            "epoch_s": fields.number(),
        }
    ),
}
_ANGLES = ("q", "v", "q_commanded", "v_commanded", "a_commanded")
_UNIT_IN_NAME = ("_s", "_ms")
_IMPOSSIBLE_SPEED = 20.0  # [rad/s]; the quickest joint of a Franka arm reaches 5.3


@dataclass(frozen=True)
class Layout:
    """Which columns make up which channel, and what is known beside the numbers.

    Attributes:
        columns: names of the columns of 't' and of every channel
        facts: the fields of a Recording that are not signals
        degrees: whether angles are to be converted
        time_unit_s: what time is multiplied with, [s]
        rate_hz: rows per second where there is no column of time, [Hz]
    """

    columns: Mapping[str, tuple[str, ...]]
    facts: Mapping[str, Any]
    degrees: bool = False
    time_unit_s: float = 1.0
    rate_hz: float | None = None

    @classmethod
    def from_json(cls, text: str, place: str) -> Layout:
        """The layout that `to_json` wrote into a file, the place."""
        try:
            content = json.loads(text)
            version = content["format"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise UnreadableFile(
                f"{place}: what steelyard wrote beside the numbers is damaged; write it again"
            ) from error
        if version != _FORMAT:
            raise UnreadableFile(
                f"{place}: it has format {str(version)[:20]}, this steelyard reads format"
                f" {_FORMAT};"
                " use the one that wrote it"
            )
        try:
            fields.check(content, _BESIDE)
        except ValueError as error:
            raise UnreadableFile(
                f"{place}: what steelyard wrote beside the numbers is damaged: {error}; write it"
                " again"
            ) from error
        columns = {channel: tuple(names) for channel, names in content["columns"].items() if names}
        return cls(columns, content["facts"])

    def to_json(self) -> str:
        """Columns and facts, for a file that steelyard writes."""
        return json.dumps({"format": _FORMAT, "columns": self.columns, "facts": self.facts})

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is needed."""
        return tuple(name for group in self.columns.values() for name in group)

    def noting(self, note: str) -> Layout:
        """The same with one more note."""
        return replace(self, facts={**self.facts, "notes": (*self.facts["notes"], note)})

    def in_seconds(self, first_rows: Callable[[], Mapping[str, Array]], place: str) -> Layout:
        """The layout with the unit of a libfranka clock; any other layout as it is.

        Args:
            first_rows: gives the columns as they are written, or the first rows of them, (N,)
            place: the file, for messages
        """
        measured = (*self.columns["q"], *self.columns.get("tau", ()))
        is_franka = any(name.startswith(("state.", "tau_J")) for name in measured)
        if not is_franka or "t" not in self.columns or self.columns["t"][0].endswith(_UNIT_IN_NAME):
            return self
        piece = self.gather(first_rows())
        t = piece["t"]
        if len(t) < 2 or not np.isfinite(t).all():
            return self
        if (t % 1 != 0).any() or t[-1] == t[0]:
            return self.noting(
                "time was read as seconds: libfranka's clock counts in ms, and these are no whole"
                " ms"
            )
        self._require_possible_speed(piece["q"], t, place)
        return replace(self, time_unit_s=1e-3).noting(
            "time was in milliseconds, as libfranka writes it"
        )

    def _require_possible_speed(self, q: Array, t: Array, place: str) -> None:
        steps = np.diff(t)
        moving = steps > 0
        speed = np.abs(np.diff(q, axis=0)[moving]).max(axis=1) / (1e-3 * steps[moving])
        if np.isfinite(speed).any():
            fastest = float(np.nanpercentile(speed, 99))
        else:
            fastest = 0.0
        if fastest > _IMPOSSIBLE_SPEED:
            raise UnreadableFile(
                f"{place}: '{self.columns['t'][0]}' holds whole numbers, as libfranka's"
                " milliseconds are, but"
                f" then a joint would move with {fastest:.0f} rad/s; call the column time_s or"
                " time_ms"
            )

    def gather(self, values: Mapping[str, Array]) -> Piece:
        """The channels in SI, of values that are a column of numbers (N,) for each name."""
        piece = {
            channel: np.column_stack([values[name] for name in group])
            for channel, group in self.columns.items()
        }
        counted = np.arange(len(piece["q"])) / (self.rate_hz or 1.0)
        if "t" in piece:
            piece["t"] = piece["t"][:, 0] * self.time_unit_s
        else:
            piece["t"] = counted
        for channel in _ANGLES if self.degrees else ():
            if channel in piece:
                piece[channel] = np.deg2rad(piece[channel])
        return piece
