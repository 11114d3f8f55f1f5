"""A Recording: signals as they were measured, on one clock; from arrays and data frames, and back.

    recording = Recording(t=t, q=q, tau=tau)
    recording = Recording.from_dataframe(frame, columns={"tau": "effort_"})
    recording.to_dataframe("polars")

A data frame is any object with named columns of numbers: of pandas, Polars or Arrow, anything with
Arrow's PyCapsule protocol or the DataFrame interchange protocol, or a mapping of arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard._arrays import Array, Mask, read_only
from steelyard.errors import InvalidRecording, MissingExtra, UnreadableFile
from steelyard.recording._arm import UNKNOWN_ARM, ArmIdentity
from steelyard.recording._columns import Requested, find_layout
from steelyard.recording._joints import joints_by_prefix
from steelyard.recording._layout import (
    AXES,
    CHANNELS,
    OTHER_CHANNELS,
    SINGLE_CHANNELS,
    Layout,
    Piece,
    WrenchConvention,
)

Library = Literal["pandas", "polars", "pyarrow"]
_CONSTRUCTORS: Mapping[Library, str] = {
    "pandas": "DataFrame",
    "polars": "DataFrame",
    "pyarrow": "table",
}
_ARROW = "__arrow_c_stream__"
_INTERCHANGE = "__dataframe__"
_MAX_COLUMNS = 1000  # of an array
_MAX_GAP_STEPS = 5.0  # that are interpolated by default, in median steps
_MIN_GAP_S = 0.05  # [s]; shorter gaps are interpolated in any case

_LATEST_S = 1e11  # [s] since any epoch, some thousand years


def checked_clock(t: ArrayLike) -> Array:
    """A copy of times, (N,) [s], which must be finite and must not decrease.

    Args:
        t: time of each row of a table, (N,) [s]
    """
    clock = np.array(t, dtype=float)
    if clock.ndim != 1 or clock.size == 0:
        raise InvalidRecording(f"t must have shape (N,) with at least one row, got {clock.shape}")
    if not np.isfinite(clock).all():
        row = int(np.flatnonzero(~np.isfinite(clock))[0])
        raise InvalidRecording(f"time is {clock[row]} in row {row + 1}")
    if not np.abs(clock).max() < _LATEST_S:
        raise InvalidRecording(
            f"the time column (t) reaches {clock[np.abs(clock).argmax()]:.3g} s, which no clock"
            " counts: check its unit, and whether it is the time"
        )
    back = np.flatnonzero(np.diff(clock) < 0)
    if back.size:
        row = int(back[0]) + 1
        raise InvalidRecording(
            f"time goes back in row {row + 1}: {clock[row]:.6f} s after {clock[row - 1]:.6f} s"
            f" ({back.size} such row{'s' if back.size > 1 else ''});"
            " sort the rows or split the recording there"
        )
    return clock


def median_rate_hz(t: Array) -> float:
    """Rows per second, from the median step, [Hz]; 0 for one row or a clock that does not advance.

    Args:
        t: times, (N,) [s]
    """
    steps = np.diff(t)
    moving = steps[steps > 0]
    if moving.size:
        return float(1.0 / np.median(moving))
    return 0.0


def default_gap_s(step_s: float) -> float:
    """The longest gap that is interpolated by default, [s]: 5 steps, but at least 0.05 s."""
    return max(_MAX_GAP_STEPS * step_s, _MIN_GAP_S)


_EFFORTS = ("tau", "current", "tau_target", "current_target")
"""Channels in which some joints may have no number at all."""


@dataclass(frozen=True, eq=False)
class Recording:
    """Signals of an arm as they were measured, on one clock that starts at 0.

    Times may start at any value, which is kept in `epoch_s`. Rows may be repeated, late or NaN;
    `steelyard.quality` reports them. Times that decrease and signals that are NaN throughout are
    refused.

    Attributes:
        t: time since the first row, (N,) [s]
        q: measured joint position, (N, n) [rad or m]
        joint_names: n names
        v: measured joint velocity, (N, n) [rad/s or m/s]
        tau: torque that the drive applies to the joint, positive along its axis, (N, n) [Nm or N]
        current: motor current, (N, n) [A]
        q_commanded: commanded joint position, (N, n) [rad or m]
        v_commanded: commanded joint velocity, (N, n) [rad/s or m/s]
        a_commanded: commanded joint acceleration, (N, n) [rad/s^2 or m/s^2]
        current_target: the controller's target current, (N, n) [A]
        tau_target: the controller's target torque, (N, n) [Nm or N]
        temperature: of the drives, (N, n) [K or degrees Celsius]
        wrench: force and torque of a wrist sensor, (N, 6) [N, Nm], in `wrench_frame`
        wrench_frame: frame of the wrench; needed with a wrench
        wrench_convention: 'load_on_sensor' or 'sensor_on_load'; needed with a wrench
        gripper: a digital output or the position of a gripper, (N, 1), in any unit
        configured_mass: of the payload that is set on the controller, (N, 1) [kg]
        source: description of the origin
        epoch_s: original time of the first row, [s]
        notes: remarks about its origin and conversion, one sentence each
        arm: the arm that was recorded, as far as it is known
    """

    t: Array
    q: Array
    joint_names: Sequence[str] = ()
    v: Array | None = None
    tau: Array | None = None
    current: Array | None = None
    q_commanded: Array | None = None
    v_commanded: Array | None = None
    a_commanded: Array | None = None
    current_target: Array | None = None
    tau_target: Array | None = None
    temperature: Array | None = None
    wrench: Array | None = None
    wrench_frame: str | None = None
    wrench_convention: WrenchConvention | None = None
    gripper: Array | None = None
    configured_mass: Array | None = None
    source: str = ""
    epoch_s: float = 0.0
    notes: Sequence[str] = ()
    arm: ArmIdentity = UNKNOWN_ARM

    def __post_init__(self) -> None:
        t = checked_clock(self.t)
        q = np.array(self.q, dtype=float)
        if q.ndim != 2 or q.shape[0] != len(t) or q.shape[1] == 0:
            raise InvalidRecording(
                f"q must be (N, n) with N = {len(t)} rows of time, got {q.shape}"
            )
        n = q.shape[1]
        names = tuple(self.joint_names) or _nameless(n)
        if len(names) != n:
            raise InvalidRecording(f"{n} joints, but {len(names)} joint names: {', '.join(names)}")
        for channel in CHANNELS:
            self._freeze(channel, (len(t), n))
        self._freeze("wrench", (len(t), 6))
        for channel in SINGLE_CHANNELS:
            self._freeze(channel, (len(t), 1))
        known = self.wrench_frame is not None and self.wrench_convention in get_args(
            WrenchConvention
        )
        if self.wrench is not None and not known:
            raise InvalidRecording(
                "a wrench needs its wrench_frame and its wrench_convention"
                f" ({' or '.join(map(repr, get_args(WrenchConvention)))})"
            )
        object.__setattr__(self, "epoch_s", float(self.epoch_s) + float(t[0]))
        object.__setattr__(self, "t", read_only(t - t[0]))
        object.__setattr__(self, "joint_names", names)
        object.__setattr__(self, "notes", tuple(self.notes))

    def _freeze(self, channel: str, shape: tuple[int, int]) -> None:
        values = getattr(self, channel)
        if values is None:
            return
        array = np.array(values, dtype=float)
        if channel == "configured_mass" and np.isnan(array).all():  # not sent
            object.__setattr__(self, channel, None)
            return
        if array.shape != shape:
            raise InvalidRecording(f"{channel} must have shape {shape}, got {array.shape}")
        dead = np.flatnonzero(np.isnan(array).all(axis=0))
        may_miss_joints = channel in _EFFORTS and dead.size < shape[1]
        if dead.size and not may_miss_joints:
            raise InvalidRecording(
                f"{channel}, column {dead[0] + 1} of {shape[1]}: every value is NaN"
            )
        object.__setattr__(self, channel, read_only(array))

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        return f"<Recording: {len(self)} rows, {self.duration_s:.6g} s, {', '.join(self.channels)}>"

    @property
    def n(self) -> int:
        """Number of joints."""
        return int(self.q.shape[1])

    @property
    def duration_s(self) -> float:
        """Time from the first to the last row, [s]."""
        return float(self.t[-1])

    @property
    def rate_hz(self) -> float:
        """Rows per second, from the median step, [Hz]; 0 if time does not advance."""
        return median_rate_hz(self.t)

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the recorded signals."""
        return tuple(
            name for name in (*CHANNELS, *OTHER_CHANNELS) if getattr(self, name) is not None
        )

    @property
    def signals(self) -> dict[str, Array]:
        """Time (N,) and each recorded signal (N, k), by name."""
        return {name: getattr(self, name) for name in ("t", *self.channels)}

    @property
    def facts(self) -> dict[str, Any]:
        """The fields that are not signals, by name."""
        names = (item.name for item in dataclass_fields(self))
        return {
            name: getattr(self, name)
            for name in names
            if name not in ("t", *CHANNELS, *OTHER_CHANNELS)
        }

    def column_names(self, channel: str) -> tuple[str, ...]:
        """Names of the columns of a signal in a table: `q.<joint>`, `wrench.fx`, ..."""
        if channel in ("t", *SINGLE_CHANNELS):
            return (channel,)
        labels = AXES if channel == "wrench" else self.joint_names
        if len(set(labels)) < len(labels):
            return tuple(f"{channel}_{k + 1}" for k in range(self.n))
        return tuple(f"{channel}.{label}" for label in labels)

    @classmethod
    def from_dataframe(
        cls,
        frame: Any,
        *,
        columns: Mapping[str, str | Sequence[str]] | None = None,
        joint_names: Sequence[str] = (),
        wrench_frame: str | None = None,
        wrench_convention: WrenchConvention | None = None,
        degrees: bool = False,
        rate_hz: float | None = None,
    ) -> Recording:
        """The recording in a data frame: of pandas or Polars, a table of Arrow, or arrays by name.

        Columns are found by name as in files (`q_0`, `actual_q_0`, `tau.elbow`, ...); columns that
        are not read are listed in the recording's `notes`.

        Args:
            frame: named columns of numbers; rows are times
            columns: for a channel or 't', its columns, as for `steelyard.read`
            joint_names: instead of those in the frame
            wrench_frame: needed where it has a wrench
            wrench_convention: 'load_on_sensor' or 'sensor_on_load'; needed where it has a wrench
            degrees: whether joint angles and their derivatives are in degrees
            rate_hz: rows per second of a frame without a column of time, [Hz]
        """
        arrays = _arrays(frame)
        shapes = {name: (array.shape, array.dtype.kind) for name, array in arrays.items()}
        requested = Requested(
            dict(columns or {}),
            tuple(joint_names),
            wrench_frame,
            wrench_convention,
            degrees,
            rate_hz=rate_hz,
        )
        return recording_of_arrays(shapes, lambda wanted: arrays, requested, "the data frame")

    def to_dataframe(self, library: Library = "pandas") -> Any:
        """A data frame of pandas or Polars, or a table of Arrow, with scalar columns in SI units.

        `from_dataframe` is the inverse, without notes. DuckDB and other users of Arrow accept the
        recording itself.
        """
        names = [name for channel in self.signals for name in self.column_names(channel)]
        columns = np.ascontiguousarray(np.column_stack(list(self.signals.values())).T)
        return data_frame(dict(zip(names, columns, strict=True)), library)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_dataframe("pyarrow").__arrow_c_stream__(requested_schema)

    def named(self, joint_names: Sequence[str]) -> Recording:
        """The recording with the joints of an arm, by their names and in the arm's order.

        A recording without names takes those of the arm if the numbers of joints agree. Names may
        differ by a prefix. Joints that the arm does not have are left out. The recording stays as
        it is where its names are others.

        Args:
            joint_names: of the arm
        """
        if self.joint_names == _nameless(self.n) and len(joint_names) == self.n:
            return replace(self, joint_names=tuple(joint_names))
        order = _order_of(joint_names, self.joint_names)
        if order is None:
            return self
        if order == list(range(self.n)):
            return replace(self, joint_names=tuple(joint_names))
        chosen = {name: getattr(self, name)[:, order] for name in self.channels if name in CHANNELS}
        left_out = [name for k, name in enumerate(self.joint_names) if k not in order]
        note = f"joints were put into the arm's order: {', '.join(joint_names)}"
        if left_out:
            note += f"; not joints of the arm: {', '.join(left_out)}"
        return replace(self, joint_names=tuple(joint_names), notes=(*self.notes, note), **chosen)

    def rows(self, which: slice | Mask, note: str = "") -> Recording:
        """Some of the rows, selected by a slice or mask (N,), on a clock that starts at 0 again."""
        cut = {name: getattr(self, name)[which] for name in self.channels}
        notes = (*self.notes, note) if note else self.notes
        t = self.t[which]
        if t.size == 0:
            raise InvalidRecording("the selection contains no rows")
        return replace(self, t=t, notes=notes, **cut)

    def between(self, start_s: float, end_s: float) -> Recording:
        """The rows from `start_s` to `end_s` [s] since the first row, both included."""
        return self.rows((self.t >= start_s) & (self.t <= end_s))

    def split_at_gaps(self, longest_s: float | None = None) -> tuple[Recording, ...]:
        """The parts between the gaps; parts shorter than 4 rows are left out.

        Args:
            longest_s: a longer step of time is a gap, [s]; by default 5 median steps or 0.05 s, if
                longer
        """
        if longest_s is None:
            if self.rate_hz:
                longest_s = default_gap_s(1 / self.rate_hz)
            else:
                longest_s = np.inf
        edges = [0, *(np.flatnonzero(np.diff(self.t) > longest_s) + 1).tolist(), len(self)]
        spans = [slice(i, j) for i, j in pairwise(edges) if j - i >= 4]
        return tuple(
            self.rows(span, note=f"rows {span.start + 1} to {span.stop}") for span in spans
        )


def _order_of(wanted: Sequence[str], names: Sequence[str]) -> list[int] | None:
    """Where the wanted joints are among the names of a recording; None where one is missing."""
    own = list(names)
    if set(wanted) <= set(own):
        return [own.index(name) for name in wanted]
    same = joints_by_prefix(own, wanted)
    if same is None:
        return None
    return [own.index(same[name]) for name in wanted]


def same_joints(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether names of joints are those of an arm, in any order, or mere numbers of its joints.

    Args:
        names: of the joints in a recording
        wanted: of the arm
    """
    numbered = tuple(names) == _nameless(len(wanted))
    return numbered or _order_of(wanted, names) is not None


def _nameless(n: int) -> tuple[str, ...]:
    """Default names of n joints."""
    return tuple(f"joint{i + 1}" for i in range(n))


def recording_of(layout: Layout, piece: Piece, place: str) -> Recording:
    """The recording of some rows; errors name the place."""
    arguments: dict[str, Any] = {**piece, **layout.facts}
    try:
        return Recording(**arguments)
    except InvalidRecording as error:
        raise UnreadableFile(f"{place}: {error}") from error


def recording_of_arrays(
    shapes: Mapping[str, tuple[tuple[int, ...], str]],
    read: Callable[[Collection[str]], Mapping[str, NDArray[np.generic]]],
    requested: Requested,
    place: str,
    own: str | None = None,
) -> Recording:
    """The recording in arrays, (N,) or (N, k), by name; arrays without numbers are noted.

    Args:
        shapes: shape and kind of number of every array
        read: returns the arrays with given names
        requested: statements of the caller about them
        place: name of their origin in messages
        own: the layout that steelyard wrote beside them, as JSON
    """
    where: dict[str, tuple[str, int | None]] = {}
    not_numbers = []
    for name, (shape, kind) in shapes.items():
        if len(shape) not in (1, 2) or kind not in "fiu":
            not_numbers.append(name)
        elif len(shape) == 1:
            where[name] = name, None
        elif shape[1] > _MAX_COLUMNS:
            raise UnreadableFile(
                f"{place}: '{name}' has {shape[1]} columns, more than any arm has joints"
            )
        else:
            where |= {f"{name}[{k}]": (name, k) for k in range(shape[1])}
    layout = find_layout(list(where), requested, place, own=own)
    if not_numbers and own is None:
        layout = layout.noting(f"not read, not columns of numbers: {', '.join(not_numbers)}")
    arrays = read({where[name][0] for name in layout.names})
    columns: dict[str, Array] = {}
    for name in layout.names:
        source, k = where[name]
        columns[name] = (arrays[source] if k is None else arrays[source][:, k]).astype(float)
    _require_one_length(columns, place)
    layout = layout.in_seconds(lambda: columns, place)
    return recording_of(layout, layout.gather(columns), place)


def _require_one_length(columns: dict[str, Array], place: str) -> None:
    rows = {name: len(column) for name, column in columns.items()}
    first = next(iter(rows))
    for name, count in rows.items():
        if count != rows[first]:
            raise UnreadableFile(
                f"{place}: {first} has {rows[first]} rows, but {name} has {count};"
                " every signal needs one row for each time (transpose it if rows are joints)"
            )
    if rows[first] == 0:
        raise UnreadableFile(f"{place}: the arrays have no rows; nothing was recorded")


def is_data_frame(source: object) -> bool:
    """Whether an object has named columns; mappings do not count, which may hold anything."""
    return any(hasattr(source, name) for name in ("columns", "column_names", _ARROW, _INTERCHANGE))


def data_frame(columns: Mapping[str, Sequence[object] | Array], library: Library) -> Any:
    """A data frame of pandas or Polars, or a table of Arrow, with these columns of one length."""
    if library not in _CONSTRUCTORS:
        raise InvalidRecording(
            f"there are data frames of {', '.join(_CONSTRUCTORS)}, not of '{library}'"
        )
    return getattr(imported(library), _CONSTRUCTORS[library])(dict(columns))


def _arrays(frame: Any) -> dict[str, NDArray[np.generic]]:
    """The columns of a data frame by name."""
    if isinstance(frame, str) or not (isinstance(frame, Mapping) or is_data_frame(frame)):
        raise InvalidRecording(
            f"a data frame has named columns, {type(frame).__name__} has none; to read a file use"
            " steelyard.read"
        )
    if not hasattr(frame, "__array__"):  # NumPy cannot convert its columns
        if hasattr(frame, _ARROW):
            frame = imported("pyarrow").table(frame)
        elif hasattr(frame, _INTERCHANGE):
            frame = imported("pyarrow.interchange").from_dataframe(frame)
    if getattr(getattr(frame, "index", None), "name", None) is not None:  # of pandas, usually time
        frame = frame.reset_index()
    names = getattr(frame, "column_names", None) or list(getattr(frame, "columns", frame))
    return {str(name): _numbers(frame[name]) for name in names}


def _numbers(column: Any) -> NDArray[np.generic]:
    """A column as an array; dates in seconds, missing numbers of pandas as NaN."""
    array = np.asarray(column)
    if array.dtype.kind in "mM":
        return 1e-9 * array.astype(f"{array.dtype.kind}8[ns]").astype(np.int64)
    if (
        array.dtype.kind == "O"
        and hasattr(column, "to_numpy")
        and hasattr(column.dtype, "na_value")
    ):
        try:
            return np.asarray(column.to_numpy(dtype=float, na_value=math.nan))
        except (TypeError, ValueError):  # texts
            return array
    return array


def imported(module: str) -> Any:
    """A module of pandas, Polars or pyarrow, which are optional dependencies."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtra.of(package, "io" if package == "pyarrow" else "") from error
