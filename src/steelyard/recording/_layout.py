"""Layouts of tables: which named columns of numbers make up which channel of a Recording.

Every format provides named columns: text tables and Parquet have them, and the six columns of an
NPZ array `q` are called `q[0]` to `q[5]`. A `Layout` assigns columns to channels and holds further
facts about the recording. A file that steelyard wrote contains its layout as JSON; for other files
`find_layout` derives it from the names.

The clock of libfranka counts whole milliseconds. `franka::logToCSV` writes them as they are
(`toMSec`), users often write seconds (`toSec`). Times in seconds of a log at 1 kHz are not whole
numbers; whole numbers are therefore milliseconds, unless the arm would then move impossibly fast. A
column called `time_s` or `time_ms` needs no such rule.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from steelyard._arrays import Array
from steelyard._codec import Value
from steelyard._kinds import Shape
from steelyard.errors import UnreadableFile
from steelyard.recording._arm import UNKNOWN_ARM, ArmIdentity

WrenchConvention = Literal["load_on_sensor", "sensor_on_load"]

_COMMANDED = ("q_commanded", "v_commanded", "a_commanded", "current_target", "tau_target")
CHANNELS = ("q", "v", "tau", "current", *_COMMANDED, "temperature")
"""The joint signals that a recording may hold, each (N, n)."""

AXES = ("fx", "fy", "fz", "tx", "ty", "tz")
"""The columns of a wrench."""

SINGLE_CHANNELS = ("gripper", "configured_mass")
"""The signals of one column, (N, 1)."""

OTHER_CHANNELS = ("wrench", *SINGLE_CHANNELS)
"""The signals that do not belong to joints: (N, 6) and (N, 1)."""

Piece = dict[str, Array]
"""Some rows: 't' (N,), and each channel (N, k)."""

_FORMAT = 1  # version of the layout that steelyard writes into files
_JointColumns = Annotated[tuple[str, ...], Shape("n")]
_ANGLES = ("q", "v", "q_commanded", "v_commanded", "a_commanded")
_UNIT_IN_NAME = ("_s", "_ms")
_MAX_FRANKA_SPEED = 20.0  # [rad/s]; the fastest joint of a Franka arm reaches 5.3


ARM_KEY = "steelyard_arm"
"""Of the recorded arm in the metadata of a table with the sender's own columns."""


def arm_to_json(arm: ArmIdentity) -> str:
    """The text that describes the recorded arm in a file."""
    return json.dumps(arm.to_dict())


def arm_from_json(text: str, place: str) -> ArmIdentity:
    """The arm that `arm_to_json` wrote into a file, which `place` names in messages."""
    try:
        return ArmIdentity.from_dict(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise UnreadableFile(
            f"{place}: the arm that steelyard wrote into the file is damaged: {error}"
        ) from error


@dataclass(frozen=True)
class _Facts(Value, error=UnreadableFile, partial=True):
    """The fields of a Recording that are not signals, in a file that steelyard wrote."""

    joint_names: Annotated[tuple[str, ...], Shape("n")]
    notes: tuple[str, ...]
    source: str
    epoch_s: float
    wrench_frame: str | None = None
    wrench_convention: str | None = None
    arm: ArmIdentity = UNKNOWN_ARM


@dataclass(frozen=True)
class _Columns(Value, error=UnreadableFile, partial=True):
    """The names of the columns of each channel, in a file that steelyard wrote."""

    t: Annotated[tuple[str, ...], Shape(1)]
    q: _JointColumns
    v: _JointColumns | None = None
    tau: _JointColumns | None = None
    current: _JointColumns | None = None
    q_commanded: _JointColumns | None = None
    v_commanded: _JointColumns | None = None
    a_commanded: _JointColumns | None = None
    current_target: _JointColumns | None = None
    tau_target: _JointColumns | None = None
    temperature: _JointColumns | None = None
    wrench: Annotated[tuple[str, ...] | None, Shape(6)] = None
    gripper: Annotated[tuple[str, ...] | None, Shape(1)] = None
    configured_mass: Annotated[tuple[str, ...] | None, Shape(1)] = None


@dataclass(frozen=True)
class _SavedLayout(Value, error=UnreadableFile):
    """What steelyard writes beside the numbers of a recording."""

    format: int
    columns: _Columns
    facts: _Facts


@dataclass(frozen=True)
class Layout:
    """The columns of each channel, and facts about the recording.

    Attributes:
        columns: names of the columns of 't' and of every channel
        facts: the fields of a Recording that are not signals
        degrees: whether angles are in degrees and are converted
        time_unit_s: unit of the time column, [s]
        rate_hz: rows per second where there is no time column, [Hz]
    """

    columns: Mapping[str, tuple[str, ...]]
    facts: Mapping[str, Any]
    degrees: bool = False
    time_unit_s: float = 1.0
    rate_hz: float | None = None

    @classmethod
    def from_json(cls, text: str, place: str) -> Layout:
        """The layout that `to_json` wrote into a file, which `place` names in messages."""
        try:
            content = json.loads(text)
            version = content["format"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise UnreadableFile(
                f"{place}: the description that steelyard wrote into the file is damaged; write it"
                " again"
            ) from error
        if version != _FORMAT:
            raise UnreadableFile(
                f"{place}: it has format {str(version)[:20]}, this version of steelyard reads"
                f" format {_FORMAT}; use the version that wrote it"
            )
        try:
            _SavedLayout.from_dict(content)
        except ValueError as error:
            raise UnreadableFile(
                f"{place}: the description that steelyard wrote into the file is damaged: {error};"
                " write it again"
            ) from error
        columns = {channel: tuple(names) for channel, names in content["columns"].items() if names}
        facts = dict(content["facts"])
        if "arm" in facts:
            facts["arm"] = ArmIdentity.from_dict(facts["arm"])
        return cls(columns, facts)

    def to_json(self) -> str:
        """Columns and facts, for a file that steelyard writes."""
        facts = {**self.facts, "arm": self.facts["arm"].to_dict()}
        return json.dumps({"format": _FORMAT, "columns": self.columns, "facts": facts})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all required columns."""
        return tuple(name for group in self.columns.values() for name in group)

    def noting(self, note: str) -> Layout:
        """The layout with one more note."""
        return replace(self, facts={**self.facts, "notes": (*self.facts["notes"], note)})

    def in_seconds(self, first_rows: Callable[[], Mapping[str, Array]], place: str) -> Layout:
        """The layout with the unit of time of a libfranka log; other layouts unchanged.

        Args:
            first_rows: returns the columns as written, or their first rows, (N,)
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
                "time was read as seconds: libfranka counts whole milliseconds, and these are not"
                " whole numbers"
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
        if fastest > _MAX_FRANKA_SPEED:
            raise UnreadableFile(
                f"{place}: '{self.columns['t'][0]}' holds whole numbers, like libfranka's"
                f" milliseconds, but then a joint would move at {fastest:.0f} rad/s; rename the"
                " column to time_s or time_ms"
            )

    def gather(self, values: Mapping[str, Array]) -> Piece:
        """The channels in SI units, from the values of each column, (N,) by name."""
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
