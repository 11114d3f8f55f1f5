"""Time lives here: a Recording is what was measured, Samples are what can be fitted.

A `Recording` holds signals exactly as they came, in SI units, on one clock that starts at 0: jitter, repeated
rows and holes included. `steelyard.signals` turns it into `Samples`, which prove by their type that they are
uniform, finite and differentiated, and say how.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise, takewhile
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from steelyard.arrays import Array, Mask, finite, read_only
from steelyard.errors import InvalidRecording, InvalidSamples, MissingExtra
from steelyard.fields import PREPARATION, table

WrenchConvention = Literal["load_on_sensor", "sensor_on_load"]

_COMMANDED = ("q_commanded", "v_commanded", "a_commanded", "current_target", "tau_target")
CHANNELS = ("q", "v", "tau", "current", *_COMMANDED, "temperature")
"""The joint signals that a recording may hold, each (N, n)."""

_AXES = ("fx", "fy", "fz", "tx", "ty", "tz")

DEFAULT_CUTOFF_HZ = 20.0
"""The cut-off of the filter on the signals of a wrist sensor where none is given, [Hz]."""

_GAP_STEPS, _GAP_S = 5.0, 0.05  # what an interpolation may bridge


def arrow_table(columns: Mapping[str, Sequence[object] | Array]) -> Any:
    """A table of Arrow with these columns of one length, which pandas, Polars and DuckDB take."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtra("pyarrow", "io") from error
    return pa.table({name: pa.array(x) for name, x in columns.items()})


def checked_clock(t: ArrayLike) -> Array:
    """A copy of the times t of a table's rows, (N,) [s]; refused where they are not finite or go back."""
    clock = np.array(t, dtype=float)
    if clock.ndim != 1 or clock.size == 0:
        raise InvalidRecording(f"t must be a column of at least one time, got shape {clock.shape}")
    if not np.isfinite(clock).all():
        row = int(np.flatnonzero(~np.isfinite(clock))[0])
        raise InvalidRecording(f"time is {clock[row]} in row {row + 1}")
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
    """Rows per second by the median step of t, (N,) [s]: [Hz]; 0 for one row or a clock that stands."""
    steps = np.diff(t)
    moving = steps[steps > 0]
    return float(1.0 / np.median(moving)) if moving.size else 0.0


def default_gap_s(step_s: float) -> float:
    """The longest hole in a clock that is bridged by default, [s]: 5 steps, and 0.05 s at least."""
    return max(_GAP_STEPS * step_s, _GAP_S)


@dataclass(frozen=True, eq=False)
class Recording:
    """Signals of an arm as they were measured, on one clock that starts at 0.

    The clock given may start anywhere; its start is kept in `epoch_s`. Rows may be repeated, late or NaN;
    `steelyard.quality` says so. Time that goes back and signals that are NaN throughout are refused.

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
        wrench_convention: what the load does to the sensor, or the reverse; needed with a wrench
        source: where it comes from, in words
        epoch_s: what the clock showed at the first row, [s]
        notes: what happened to it on the way here, one sentence each
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
    source: str = ""
    epoch_s: float = 0.0
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        t = checked_clock(self.t)
        q = np.array(self.q, dtype=float)
        if q.ndim != 2 or q.shape[0] != len(t) or q.shape[1] == 0:
            raise InvalidRecording(f"q must be (N, n) with N = {len(t)} rows of time, got {q.shape}")
        n = q.shape[1]
        names = tuple(self.joint_names) or tuple(f"joint{i + 1}" for i in range(n))
        if len(names) != n:
            raise InvalidRecording(f"{n} joints, but {len(names)} joint names: {', '.join(names)}")
        for channel in CHANNELS:
            self._freeze(channel, (len(t), n))
        self._freeze("wrench", (len(t), 6))
        known = self.wrench_frame is not None and self.wrench_convention in get_args(WrenchConvention)
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
        if array.shape != shape:
            raise InvalidRecording(f"{channel} must have shape {shape}, got {array.shape}")
        dead = np.flatnonzero(np.isnan(array).all(axis=0))
        if dead.size:
            raise InvalidRecording(f"{channel}, column {dead[0] + 1} of {shape[1]}: every value is NaN")
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
        """Rows per second, from the median step, [Hz]; 0 for a single row or a clock that stands."""
        return median_rate_hz(self.t)

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the signals that it holds."""
        return tuple(name for name in (*CHANNELS, "wrench") if getattr(self, name) is not None)

    @property
    def signals(self) -> dict[str, Array]:
        """Time (N,) and every signal that it holds (N, k), by name."""
        return {name: getattr(self, name) for name in ("t", *self.channels)}

    def column_names(self, channel: str) -> tuple[str, ...]:
        """What the columns of a signal are called in a table: `q.<joint>`, `wrench.fx`, ..."""
        labels = {"t": (), "wrench": _AXES}.get(channel, self.joint_names)
        if len(set(labels)) < len(labels):
            return tuple(f"{channel}_{k + 1}" for k in range(self.n))
        return tuple(f"{channel}.{label}" for label in labels) or (channel,)

    def to_arrow(self) -> Any:
        """A table of Arrow with a column for each number, [SI]; `to_pandas()` of it is for pandas.

        Polars and DuckDB take the recording itself. Back: `steelyard.read_recording(table)`, without notes.
        """
        names = [name for channel in self.signals for name in self.column_names(channel)]
        columns = np.ascontiguousarray(np.column_stack(list(self.signals.values())).T)
        return arrow_table(dict(zip(names, columns, strict=True)))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def rows(self, which: slice | Mask, note: str = "") -> Recording:
        """Some of the rows, a slice or a mask (N,); their clock starts at 0 again, `epoch_s` remembers."""
        cut = {name: getattr(self, name)[which] for name in self.channels}
        notes = (*self.notes, note) if note else self.notes
        t = self.t[which]
        if t.size == 0:
            raise InvalidRecording("no rows are left")
        return replace(self, t=t, notes=notes, **cut)

    def between(self, start_s: float, end_s: float) -> Recording:
        """The rows from `start_s` to `end_s` [s] since the first row, both included."""
        return self.rows((self.t >= start_s) & (self.t <= end_s))

    def split_at_gaps(self, longest_s: float | None = None) -> tuple[Recording, ...]:
        """The parts between the gaps; parts shorter than 4 rows are left out.

        Args:
            longest_s: a longer step of time is a gap, [s]; by default 5 median steps or 0.05 s, if longer
        """
        if longest_s is None:
            longest_s = default_gap_s(1 / self.rate_hz) if self.rate_hz else np.inf
        edges = [0, *(np.flatnonzero(np.diff(self.t) > longest_s) + 1).tolist(), len(self)]
        spans = [slice(i, j) for i, j in pairwise(edges) if j - i >= 4]
        return tuple(self.rows(span, note=f"rows {span.start + 1} to {span.stop}") for span in spans)


@dataclass(frozen=True)
class Preparation:
    """How Samples shall be made.

    Attributes:
        rate_hz: of the samples before decimation, [Hz]; None for the recording's own mean rate
        cutoff_hz: of the zero-phase low-pass filter on the motion, [Hz]; 'auto' for the one that the motion
            itself asks for (`steelyard.signals.cutoff`); None for no filter
        torque_cutoff_hz: of the same filter on the torques, [Hz]; None, because friction jumps where a joint
            turns round, and a filter smears the jump in the torques but not in the regressor
        order: of both filters
        mean_length: length of a moving mean on motion and torques, odd [samples]; 1 for none
        kinematics: fit the motion 'measured' or the one 'commanded'
        fourier_period_s: period of a Fourier series fitted to the positions, whose derivatives are used, [s];
            None for central differences
        fourier_harmonics: how many it has
        lowest_speed: torques of a joint that is slower do not count, because friction at rest is anything
            up to its limit, [rad/s]; 0 to count all, say with torque sensors behind the gear or at rest
        decimate: keep every k-th sample
        trim_s: leave out so much at both ends, where filters see too little, [s]
        longest_gap_s: a longer hole in the recording is refused, not filled, [s]; None for
            5 median steps or 0.05 s, whichever is longer
        lag_s: how much later the torques of each joint come than its motion, n numbers [s]; None where that
            is not known: nothing is shifted, and `steelyard.identify` estimates it
    """

    rate_hz: float | None = None
    cutoff_hz: float | Literal["auto"] | None = "auto"
    torque_cutoff_hz: float | None = None
    order: int = 4
    mean_length: int = 1
    kinematics: Literal["measured", "commanded"] = "measured"
    fourier_period_s: float | None = None
    fourier_harmonics: int = 5
    lowest_speed: float = 0.01
    decimate: int = 1
    trim_s: float = 0.0
    longest_gap_s: float | None = None
    lag_s: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.lag_s is not None:
            object.__setattr__(self, "lag_s", tuple(float(lag) for lag in self.lag_s))
            if not np.isfinite(self.lag_s).all():
                raise InvalidSamples(f"lag_s must be finite numbers [s], got {self.lag_s}")
        if self.kinematics not in ("measured", "commanded"):
            raise InvalidSamples(f"kinematics must be 'measured' or 'commanded', got '{self.kinematics}'")
        if isinstance(self.cutoff_hz, str) and self.cutoff_hz != "auto":
            raise InvalidSamples(f"cutoff_hz is a number [Hz], 'auto' or None, got '{self.cutoff_hz}'")
        if self.decimate < 1 or self.lowest_speed < 0 or self.trim_s < 0:
            raise InvalidSamples("decimate must be at least 1, lowest_speed and trim_s not negative")

    def to_dict(self) -> dict[str, Any]:
        """Every field as a plain value, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Preparation:
        """The preparation that `to_dict` wrote; fields that it lacks have their defaults."""
        if unknown := sorted(set(content) - set(PREPARATION)):
            raise InvalidSamples(f"a preparation has no '{unknown[0]}'; it has {', '.join(PREPARATION)}")
        table(PREPARATION, partial=True)(content, "preparation", {})
        return cls(**content)

    def motion_of(self, recording: Recording) -> tuple[Array, ...]:
        """Position, and velocity and acceleration where they are commanded, each (N, n)."""
        if self.kinematics == "measured":
            return (recording.q,)
        if recording.q_commanded is None:
            raise InvalidRecording(
                "the recording has no commanded positions; use kinematics='measured' and a model fitted to it"
            )
        derived = takewhile(lambda x: x is not None, (recording.v_commanded, recording.a_commanded))
        return (recording.q_commanded, *(x for x in derived if x is not None))


@dataclass(frozen=True, eq=False)
class Samples:
    """Signals ready to fit: uniform in time, finite, differentiated.

    Attributes:
        q: joint position, (N, n) [rad or m]
        v: joint velocity, (N, n) [rad/s or m/s]
        a: joint acceleration, (N, n) [rad/s^2 or m/s^2]
        tau: torque that the drive applies to the joint, (N, n) [Nm or N]
        rate_hz: samples per second, [Hz]
        joint_names: n names
        kinematics: whether q, v, a are those 'measured' or those 'commanded'
        usable: which torques count in a fit (low speeds may be left out), (N, n); all when None
        made_by: how it was made, one sentence for each step
        start_s: time of the first sample on the recording's clock, [s]
        warnings: what is wrong with the recording they come from, one sentence each
        gain: of the drives that made torques of motor currents, (n,) [Nm/A]; None where torques were measured
        preparation: how they were made of a recording, its cut-off as a number; None where they were made
            otherwise
        a_noise: standard deviation of the noise of a, (n,) [rad/s^2 or m/s^2]; None where it is not known
    """

    q: Array
    v: Array
    a: Array
    tau: Array
    rate_hz: float
    joint_names: Sequence[str]
    kinematics: Literal["measured", "commanded"]
    usable: Mask | None = None
    made_by: Sequence[str] = ()
    start_s: float = 0.0
    warnings: Sequence[str] = ()
    gain: Array | None = None
    preparation: Preparation | None = None
    a_noise: Array | None = None

    def __post_init__(self) -> None:
        shape = np.shape(self.q)
        if len(shape) != 2 or shape[0] == 0 or len(tuple(self.joint_names)) != shape[1]:
            raise InvalidSamples(
                f"samples are (N, n) with n = {len(tuple(self.joint_names))} names, got {shape}"
            )
        if not (np.isfinite(self.rate_hz) and self.rate_hz > 0):
            raise InvalidSamples(f"rate_hz must be positive, got {self.rate_hz}")
        if self.kinematics not in ("measured", "commanded"):
            raise InvalidSamples(f"kinematics must be 'measured' or 'commanded', got '{self.kinematics}'")
        for name in ("q", "v", "a", "tau"):
            object.__setattr__(self, name, finite(getattr(self, name), shape, name, InvalidSamples))
        if self.gain is not None:
            object.__setattr__(self, "gain", finite(self.gain, shape[1:], "gain", InvalidSamples))
        usable = np.ones(shape, bool) if self.usable is None else np.array(self.usable, dtype=bool)
        if usable.shape != shape:
            raise InvalidSamples(f"usable must be {shape}, got {usable.shape}")
        usable.setflags(write=False)
        object.__setattr__(self, "usable", usable)
        object.__setattr__(self, "joint_names", tuple(self.joint_names))
        object.__setattr__(self, "made_by", tuple(self.made_by))
        object.__setattr__(self, "warnings", tuple(self.warnings))

    def __len__(self) -> int:
        return len(self.q)

    def __repr__(self) -> str:
        return f"<Samples: {len(self)} at {self.rate_hz:g} Hz, {self.n} joints, {self.kinematics} motion>"

    @property
    def n(self) -> int:
        """Number of joints."""
        return int(self.q.shape[1])

    @property
    def t(self) -> Array:
        """Time of each sample on the recording's clock, (N,) [s]."""
        return self.start_s + np.arange(len(self)) / self.rate_hz

    @property
    def mask(self) -> Mask:
        """Which torques count in a fit, (N, n)."""
        assert self.usable is not None  # noqa: S101 - filled at the door
        return self.usable

    def rows(self, which: slice) -> Samples:
        """A contiguous part: a slice without a step."""
        if which.step not in (None, 1):
            raise InvalidSamples("samples stay uniform: take a slice without a step, or decimate")
        start = which.indices(len(self))[0]
        cut = {name: getattr(self, name)[which] for name in ("q", "v", "a", "tau", "usable")}
        return replace(self, start_s=self.start_s + start / self.rate_hz, **cut)
