"""A wrist sensor and its recordings: wrench and orientation, with or without a robot.

Every wrench is converted to one frame and one convention: that of the load on the sensor, in the
sensor frame. `notes` state the conversions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array, Mask, freeze
from steelyard._codec import Value
from steelyard._kinds import INFINITE, POSITIVE, RIGID, Shape
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.quality import QualityReport, check_signals
from steelyard.quality._check import without_impossible
from steelyard.recording import AXES, Recording, WrenchConvention, checked_clock, median_rate_hz
from steelyard.robot import RobotModel
from steelyard.signals import noise_of_differences, resample, uniform_clock

WrenchFrame = Literal["sensor", "base"]

_MIN_MOTION_RATE_HZ = 1.0
_SATURATED_SHARE = 0.999  # of the range; larger readings are saturated
_MAX_READING = 1e6  # of a wrench, a motion or a temperature, in any unit
_MIN_ROWS = 9  # with different times, of a motion
_MIN_FLAT_ROWS = 20  # at the extreme value while other axes change, for a saturated sensor
_MOTION_NOISE = ("joints", "position", "rotation", "acceleration", "angular_velocity")
_MOTION = ("position", "acceleration", "angular_velocity")
_SIGNALS = ("t", "wrench", "R_base_sensor", *_MOTION, "temperature")


OTHER_CONVENTION = (
    "state the other convention, `wrench_convention='sensor_on_load'` where nothing or"
    " 'load_on_sensor' was stated, or as the key convention in the description of the sensor"
)
"""Advice for a wrench of the wrong sign."""


@dataclass(frozen=True, eq=False)
class WristSensor(Value, error=InvalidRecording):
    """A force/torque sensor at the wrist.

    Attributes:
        name: of the sensor
        convention: whether a wrench is that of the load on the sensor, or the reverse
        frame: 'sensor', or 'base' if the driver has rotated the wrench into the base frame
        T_flange_sensor: pose of the sensor in the flange frame, (4, 4)
        yaw_known: whether the rotation of the sensor about the flange's z axis is known
        reach: largest wrench of each axis, (6,) [N, Nm]; infinite if unknown
        noise: standard deviation of a reading, (6,) [N, Nm]; None to estimate it from the readings
        motion_noise: standard deviations of the motion's readings, by name: joints [rad or m],
            position [m], rotation [rad], acceleration [m/s^2], angular_velocity [rad/s]; missing
            ones are estimated
    """

    name: str = "sensor"
    convention: WrenchConvention = "load_on_sensor"
    frame: WrenchFrame = "sensor"
    T_flange_sensor: Annotated[Array, Shape(4, 4), RIGID] = field(default_factory=lambda: np.eye(4))
    yaw_known: bool = True
    reach: Annotated[Array, Shape(6), INFINITE, POSITIVE] = field(
        default_factory=lambda: np.full(6, np.inf)
    )
    noise: Annotated[Array | None, Shape(6), POSITIVE] = None
    motion_noise: Mapping[str, Annotated[float, POSITIVE]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.frame == "base" and not self.yaw_known:
            raise InvalidRecording(
                "the rotation of a sensor whose wrench is in the base frame must be known:"
                " yaw_known must be true"
            )
        for name in self.motion_noise:
            if name not in _MOTION_NOISE:
                raise InvalidRecording(
                    f"'motion_noise.{name}' is no signal; there are {', '.join(_MOTION_NOISE)}"
                )

    def turned(self, yaw: float) -> WristSensor:
        """The sensor turned about the flange's z axis, with a known yaw.

        Args:
            yaw: angle, [rad]
        """
        turn = np.eye(4)
        turn[:3, :3] = Rotation.from_euler("z", yaw).as_matrix()
        return replace(self, T_flange_sensor=turn @ self.T_flange_sensor, yaw_known=True)

    def require_in_reach(self, wrench: Array) -> None:
        """Raises an error for readings at the limit of the sensor's range.

        Args:
            wrench: (N, 6) [N, Nm], in the sensor frame
        """
        over = np.abs(wrench) >= _SATURATED_SHARE * self.reach
        if over.any():
            axis = int(over.sum(axis=0).argmax())
            rows = np.flatnonzero(over[:, axis])
            raise InvalidRecording(
                f"the sensor is saturated: {AXES[axis]} reaches its range of {self.reach[axis]:g}"
                f" in {len(rows)} of {len(wrench)} rows, first in row {rows[0] + 1};"
                " use a sensor with a larger range, or move more gently"
            )
        axis, count = _longest_flat_run(wrench)
        if count >= _MIN_FLAT_ROWS:
            raise InvalidRecording(
                f"the sensor looks saturated: {AXES[axis]} stays exactly at its extreme value"
                f" {wrench[np.abs(wrench[:, axis]).argmax(), axis]:g} for {count} consecutive"
                " rows while the other axes change; use a sensor with a larger range, or move more"
                " gently"
            )


def untimed_words(source: str) -> str:
    """The message for a table without time where a motion is needed.

    Args:
        source: name of the table
    """
    return (
        f"{source} has no time, so its rows are postures at rest: weigh it as such, or state"
        " rate_hz in the description of the sensor"
    )


def require_motion_rate(rate_hz: float) -> None:
    """Refuses rows that are too far apart to be those of a motion.

    Args:
        rate_hz: of the rows, [Hz]; 0 where it is not known
    """
    if 0 < rate_hz < _MIN_MOTION_RATE_HZ:
        raise InvalidSamples(
            f"the median step is {1 / rate_hz:.4g} s: single postures, or a clock in milliseconds?"
            " Give [scale] t = 0.001 in the description of the sensor, or for a recording with"
            " joints the column of the time as `columns={'t_ms': 't'}`"
        )


def complete_rows(recording: Recording) -> Mask:
    """Which rows have joint positions and a wrench that are possible, (N,).

    Args:
        recording: of an arm with a wrist sensor
    """
    possible = without_impossible(recording)
    finite = np.isfinite(np.hstack([possible.q, np.asarray(possible.wrench)]))
    return np.asarray(finite.all(axis=1))


@dataclass(frozen=True, eq=False)
class WristRecording:
    """Wrench and pose of a wrist sensor as measured, on one clock that starts at 0.

    Attributes:
        t: time since the first row, (N,) [s]
        wrench: of the load on the sensor, (N, 6) [N, Nm], in the sensor frame
        R_base_sensor: orientation of the sensor, (N, 3, 3)
        sensor: description of the sensor
        position: of the sensor's origin, (N, 3) [m], in the base frame
        acceleration: of the sensor's origin, without gravity, (N, 3) [m/s^2], in the sensor frame
        angular_velocity: of the sensor, (N, 3) [rad/s], in the sensor frame
        temperature: of the sensor, (N,) [K or degrees Celsius]
        timed: whether the rows follow each other in time; False for a table of postures
        source: origin of the data, in words
        notes: conversions of the data, in sentences
    """

    t: Array
    wrench: Array
    R_base_sensor: Array
    sensor: WristSensor
    position: Array | None = None
    acceleration: Array | None = None
    angular_velocity: Array | None = None
    temperature: Array | None = None
    timed: bool = True
    source: str = ""
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        t = checked_clock(self.t)
        object.__setattr__(self, "t", t - t[0])
        N = len(t)
        shapes = {"wrench": (N, 6), "R_base_sensor": (N, 3, 3), **dict.fromkeys(_MOTION, (N, 3))}
        for name, shape in (shapes | {"temperature": (N,)}).items():
            if getattr(self, name) is not None:
                _require_finite(name, np.array(getattr(self, name), dtype=float), shape)
        freeze(self, *_SIGNALS)
        R = self.R_base_sensor
        deviation = np.abs(R @ R.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
        wrong = np.flatnonzero((deviation > 1e-3) | (np.linalg.det(R) < 0))
        if wrong.size:
            raise InvalidRecording(
                f"R_base_sensor is not a rotation matrix in row {wrong[0] + 1}:\n{R[wrong[0]]}"
            )
        object.__setattr__(self, "notes", tuple(self.notes))

    @classmethod
    def of_measured(
        cls,
        t: Array,
        wrench: Array,
        R_base_sensor: Array | None,
        *,
        sensor: WristSensor,
        motion: dict[str, Array] | None = None,
        timed: bool = True,
        source: str = "",
    ) -> WristRecording:
        """The recording of a wrench in the sensor's own convention and frame.

        Args:
            t: time, (N,) [s]
            wrench: in the convention and frame of the sensor, (N, 6) [N, Nm]
            R_base_sensor: orientation of the sensor, (N, 3, 3)
            sensor: with its convention and frame
            motion: further signals by attribute: position, acceleration, ..., temperature
            timed: whether the rows follow each other in time; False for a table of postures
            source: origin of the data, in words
        """
        if R_base_sensor is None:
            raise InvalidRecording(
                "the orientation of the sensor is missing, without which gravity cannot be"
                " separated from drift: name its columns, or give a robot and joint positions"
            )
        notes = []
        w = np.array(wrench, dtype=float)
        R = np.asarray(R_base_sensor, dtype=float)
        if w.ndim != 2 or w.shape[1] != 6 or R.shape != (len(w), 3, 3):
            raise InvalidRecording(
                f"wrench must be (N, 6) and R_base_sensor (N, 3, 3), got {w.shape} and {R.shape}"
            )
        if len(w) > 1 and not np.ptp(w, axis=0).any() and np.ptp(R, axis=0).any():
            raise InvalidRecording(
                "the wrench never changes while the sensor turns: check that the sensor is"
                " connected and logged"
            )
        if sensor.frame == "base":
            w = np.einsum("nji,ncj->nci", R, w.reshape(-1, 2, 3)).reshape(-1, 6)
            notes.append("the wrench was rotated from the base frame into the sensor frame")
        sensor.require_in_reach(w)
        if sensor.convention == "sensor_on_load":
            w = -w
            notes.append("the wrench was that of the sensor on the load; its sign was reversed")
        return cls(t, w, R, sensor, **(motion or {}), timed=timed, source=source, notes=notes)

    @classmethod
    def of_joints(
        cls,
        recording: Recording,
        robot: RobotModel,
        sensor: WristSensor | None = None,
        *,
        timed: bool = True,
    ) -> WristRecording:
        """The wrench of an arm's recording, with the pose of the sensor from the joints.

        Args:
            recording: with a wrench, whose convention is that of the recording
            robot: the arm
            sensor: with its pose on the flange; at the flange by default
            timed: whether the rows follow each other in time; False for a table of postures
        """
        recording = recording.named(robot.joint_names)
        if recording.wrench is None or recording.wrench_convention is None:
            raise InvalidRecording(
                "the recording has no wrench: check that a wrist sensor is connected and logged"
            )
        if recording.n != robot.n:
            raise InvalidRecording(
                f"{robot.name} has {robot.n} joints, the recording {recording.n}"
            )
        sensor = sensor or WristSensor()
        convention = recording.wrench_convention
        wrench = np.asarray(recording.wrench)
        complete = complete_rows(recording)
        if not complete.any():
            raise InvalidRecording("no row has both joint positions and a wrench")
        T = robot.forward_kinematics(recording.q[complete]) @ sensor.T_flange_sensor
        made = cls.of_measured(
            recording.t[complete],
            wrench[complete],
            T[:, :3, :3],
            sensor=replace(sensor, convention=convention),
            motion={"position": T[:, :3, 3]},
            timed=timed,
            source=recording.source,
        )
        left = f"left out {np.sum(~complete)} rows with NaN"
        if complete.all():
            return made
        return replace(made, notes=(*made.notes, left))

    def __len__(self) -> int:
        return len(self.t)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems of clock and rows, one sentence for each; none for a table of postures."""
        return self.quality.warnings

    def require_timed(self) -> None:
        """Raises an error for a table of postures, and for a clock too slow for a motion."""
        if not self.timed:
            raise InvalidSamples(untimed_words(self.source or "the table"))
        require_motion_rate(median_rate_hz(self.t))

    @property
    def quality(self) -> QualityReport:
        """Findings about clock and rows; none for a table of postures."""
        signals = {"wrench": self.wrench, "R_base_sensor": self.R_base_sensor.reshape(-1, 9)}
        if not self.timed:
            return QualityReport(self.source, len(self), 0, np.nan, np.nan, ())
        found = check_signals(self.t, signals)
        duration_s = float(self.t[-1])
        return QualityReport(self.source, len(self), 0, duration_s, median_rate_hz(self.t), found)

    def on_uniform_clock(self, signals: Sequence[Array]) -> tuple[Array, list[Array], str]:
        """Uniform times, (M,) [s], the signals at these times, and a sentence about it.

        Args:
            signals: each (N, n); the first is resampled by a cubic spline, the others linearly
        """
        self.require_timed()
        increasing = np.concatenate([[True], np.diff(self.t) > 0])
        t = self.t[increasing]
        columns = [x[increasing] for x in signals]
        if len(t) < _MIN_ROWS:
            raise InvalidSamples(
                f"only {len(t)} rows with different times; a motion needs at least {_MIN_ROWS}"
            )
        grid = uniform_clock(t)
        if np.array_equal(grid, t):
            return t, columns, "uniform clock"
        moved = [resample(t, x, grid, smooth=k == 0) for k, x in enumerate(columns)]
        return grid, moved, f"resampled at {1 / (grid[1] - grid[0]):.6g} Hz"

    def wrench_std(self, wrench: Array) -> Array:
        """Standard deviation of a reading, (6,) [N, Nm], as stated or estimated.

        Args:
            wrench: on a uniform clock, (N, 6) [N, Nm]
        """
        if self.sensor.noise is not None:
            return self.sensor.noise
        least = 1e-5 * np.abs(wrench).max() + 1e-12
        return np.asarray(np.maximum(noise_of_differences(wrench), least))

    def rows(self, which: slice | Mask, note: str = "") -> WristRecording:
        """Some of the rows, with a clock that starts at 0.

        Args:
            which: the rows to keep
            note: reason, a sentence; none by default
        """
        if np.size(self.t[which]) == 0:
            raise InvalidRecording("the selection contains no rows")
        cut = {
            name: signal[which] for name in _SIGNALS if (signal := getattr(self, name)) is not None
        }
        return replace(self, **cut, notes=(*self.notes, note) if note else self.notes)

    def turned(self, yaw: float) -> WristRecording:
        """The readings of a sensor that is turned further about the flange's z axis.

        Args:
            yaw: angle, [rad]
        """
        sensor = self.sensor.turned(yaw)
        change = self.sensor.T_flange_sensor[:3, :3].T @ sensor.T_flange_sensor[:3, :3]
        note = f"the sensor is turned about the flange axis by {np.degrees(yaw):.2f} degrees"
        moved = {
            name: getattr(self, name) @ change
            for name in _MOTION[1:]
            if getattr(self, name) is not None
        }
        return replace(
            self,
            R_base_sensor=self.R_base_sensor @ change,
            sensor=sensor,
            notes=(*self.notes, note),
            **moved,
        )


def _require_finite(name: str, array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise InvalidRecording(f"{name} must have shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0][0])
        raise InvalidRecording(f"{name} is not finite in row {row + 1}; leave such rows out")
    if np.abs(array).max(initial=0.0) > _MAX_READING:
        row = int(np.unravel_index(np.abs(array).argmax(), shape)[0])
        raise InvalidRecording(
            f"{name} reaches an impossible {np.abs(array).max():.3g} in row {row + 1}; leave such"
            " rows out"
        )


def _longest_flat_run(wrench: Array) -> tuple[int, int]:
    """The axis with the longest run at its extreme while other axes change, and its rows."""
    best = (0, 0)
    moving = np.diff(wrench, axis=0) != 0
    for axis in range(6):
        extreme = np.abs(wrench[:, axis]).max()
        others = moving[:, np.arange(6) != axis].all(axis=1)
        held = (np.abs(wrench[:, axis]) == extreme)[1:] & ~moving[:, axis] & others
        edges = np.flatnonzero(np.diff(np.concatenate([[0], held.astype(int), [0]])))
        longest = int((edges[1::2] - edges[::2]).max(initial=0))
        if longest > best[1]:
            best = (axis, longest)
    return best
