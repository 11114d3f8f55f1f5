"""A wrist sensor and what it records: wrench and orientation, with or without a robot.

At the door the wrench is brought into one frame and one convention: the sensor frame, and what the
load does to the sensor. How it came is kept in `notes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array, Mask, freeze
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.inertia import checked_transform
from steelyard.quality import QualityReport, check_signals
from steelyard.quality._check import without_impossible
from steelyard.recording import AXES, Recording, WrenchConvention, checked_clock, median_rate_hz
from steelyard.robot import RobotModel
from steelyard.signals import noise_of_differences, resample, uniform_clock

WrenchFrame = Literal["sensor", "base"]

_ALMOST = 0.999  # of the range: a reading there is not a measurement
_MOST = 1e6  # of a wrench, a motion or a temperature, in any unit
_FEWEST_ROWS = 9  # with different times, of a motion
_FEWEST_FLAT = 20  # rows at one extreme value, the other axes moving: a sensor that has hit its end
_MOTION_NOISE = ("joints", "position", "rotation", "acceleration", "angular_velocity")
_MOTION = ("position", "acceleration", "angular_velocity")
_SIGNALS = ("t", "wrench", "R_base_sensor", *_MOTION, "temperature")


@dataclass(frozen=True, eq=False)
class WristSensor:
    """A force/torque sensor at the wrist.

    Attributes:
        name: of the sensor
        convention: what the load does to the sensor, or the reverse
        frame: 'sensor', or 'base' where the driver has rotated the wrench already
        T_flange_sensor: the sensor in the flange frame, (4, 4)
        yaw_known: False when the sensor may be turned about the flange's z axis by an unknown angle
        reach: largest wrench of each axis, (6,) [N, Nm]; infinite where unknown
        noise: standard deviation of a reading, (6,) [N, Nm]; None to estimate it from the readings
        motion_noise: standard deviations of the motion's readings, by name: joints [rad or m],
            position [m], rotation [rad], acceleration [m/s^2], angular_velocity [rad/s]; those left
            out are estimated
    """

    name: str = "sensor"
    convention: WrenchConvention = "load_on_sensor"
    frame: WrenchFrame = "sensor"
    T_flange_sensor: Array = field(default_factory=lambda: np.eye(4))
    yaw_known: bool = True
    reach: Array = field(default_factory=lambda: np.full(6, np.inf))
    noise: Array | None = None
    motion_noise: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.convention not in get_args(WrenchConvention):
            raise InvalidRecording(
                f"convention must be {' or '.join(map(repr, get_args(WrenchConvention)))},"
                f" got '{self.convention}'"
            )
        if self.frame not in get_args(WrenchFrame):
            raise InvalidRecording(f"a wrench is in frame 'sensor' or 'base', got '{self.frame}'")
        if self.frame == "base" and not self.yaw_known:
            raise InvalidRecording(
                "a wrench that was rotated into the base frame has its sensor's rotation in it;"
                " it cannot be unknown"
            )
        checked_transform(self.T_flange_sensor)
        _require_six(self.reach, "reach")
        if self.noise is not None:
            _require_six(self.noise, "noise")
        for name, std in self.motion_noise.items():
            if name not in _MOTION_NOISE or not 0 < std < np.inf:
                raise InvalidRecording(
                    f"motion_noise is a positive number for {', '.join(_MOTION_NOISE)}, got {name}"
                    f" = {std}"
                )
        freeze(self, "T_flange_sensor", "reach", "noise")

    def turned(self, yaw: float) -> WristSensor:
        """The same sensor, turned about the flange's z axis by a yaw, [rad], which is known then."""
        turn = np.eye(4)
        turn[:3, :3] = Rotation.from_euler("z", yaw).as_matrix()
        return replace(self, T_flange_sensor=turn @ self.T_flange_sensor, yaw_known=True)

    def require_in_reach(self, wrench: Array) -> None:
        """Refuses readings of the wrench, (N, 6) [N, Nm], sensor frame, at the end of the sensor's range."""
        over = np.abs(wrench) >= _ALMOST * self.reach
        if over.any():
            axis = int(over.sum(axis=0).argmax())
            rows = np.flatnonzero(over[:, axis])
            raise InvalidRecording(
                f"the sensor is saturated: {AXES[axis]} reaches its range of {self.reach[axis]:g}"
                " in"
                f" {len(rows)} of {len(wrench)} rows, first in row {rows[0] + 1};"
                " take a sensor with a larger range, or move more gently"
            )
        axis, count = _flattest(wrench)
        if count >= _FEWEST_FLAT:
            raise InvalidRecording(
                f"the sensor looks saturated: {AXES[axis]} stays exactly at its extreme value"
                f" {wrench[np.abs(wrench[:, axis]).argmax(), axis]:g} for {count} rows in a row"
                " while the"
                " other axes move; take a sensor with a larger range, or move more gently"
            )


@dataclass(frozen=True, eq=False)
class WristRecording:
    """Wrench and pose of a wrist sensor as they were measured, on one clock that starts at 0.

    Attributes:
        t: time since the first row, (N,) [s]
        wrench: what the load does to the sensor, (N, 6) [N, Nm], in the sensor frame
        R_base_sensor: orientation of the sensor, (N, 3, 3)
        sensor: what is known about the sensor
        position: of the sensor's origin, (N, 3) [m], in the base frame
        acceleration: of the sensor's origin, gravity not included, (N, 3) [m/s^2], in the sensor
            frame
        angular_velocity: (N, 3) [rad/s], in the sensor frame
        temperature: of the sensor, (N,) [K or degrees Celsius]
        timed: whether the rows follow each other in time; False for a table of postures
        source: where it comes from, in words
        notes: what happened to it on the way here, in sentences
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
        off = np.abs(R @ R.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
        wrong = np.flatnonzero((off > 1e-3) | (np.linalg.det(R) < 0))
        if wrong.size:
            raise InvalidRecording(
                f"R_base_sensor is no rotation in row {wrong[0] + 1}:\n{R[wrong[0]]}"
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
        """The recording of a wrench in the sensor's own convention and frame, both turned to ours.

        Args:
            t: time, (N,) [s]
            wrench: as the sensor gives it, (N, 6) [N, Nm]
            R_base_sensor: orientation of the sensor, (N, 3, 3)
            sensor: its convention and frame
            motion: what else is measured, by attribute: position, acceleration, ..., temperature
        """
        if R_base_sensor is None:
            raise InvalidRecording(
                "the orientation of the sensor is missing, and without it gravity looks like drift:"
                " name its columns, or give a robot and joint positions"
            )
        notes = []
        w = np.array(wrench, dtype=float)
        R = np.asarray(R_base_sensor, dtype=float)
        if w.ndim != 2 or w.shape[1] != 6 or R.shape != (len(w), 3, 3):
            raise InvalidRecording(
                f"wrench must be (N, 6) and R_base_sensor (N, 3, 3), got {w.shape} and {R.shape}"
            )
        if sensor.frame == "base":
            w = np.einsum("nji,ncj->nci", R, w.reshape(-1, 2, 3)).reshape(-1, 6)
            notes.append("the wrench was in the base frame; rotated back into the sensor frame")
        sensor.require_in_reach(w)
        if sensor.convention == "sensor_on_load":
            w = -w
            notes.append("the wrench was what the sensor does to the load; its sign was turned")
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
        """The wrench of an arm's recording with the sensor's pose from its joints.

        Args:
            recording: with a wrench; its own convention counts
            sensor: where it sits; at the flange by default
            timed: whether the rows follow each other in time; False for a table of postures
        """
        if recording.wrench is None or recording.wrench_convention is None:
            raise InvalidRecording(
                "the recording has no wrench; is a wrist sensor connected and logged?"
            )
        if recording.n != robot.n:
            raise InvalidRecording(
                f"{robot.name} has {robot.n} joints, the recording {recording.n}"
            )
        sensor = sensor or WristSensor()
        convention = recording.wrench_convention
        recording = without_impossible(recording)
        wrench = np.asarray(recording.wrench)
        whole = np.isfinite(np.hstack([recording.q, wrench])).all(axis=1)
        if not whole.any():
            raise InvalidRecording("no row has both joint positions and a wrench")
        T = robot.forward_kinematics(recording.q[whole]) @ sensor.T_flange_sensor
        made = cls.of_measured(
            recording.t[whole],
            wrench[whole],
            T[:, :3, :3],
            sensor=replace(sensor, convention=convention),
            motion={"position": T[:, :3, 3]},
            timed=timed,
            source=recording.source,
        )
        left = f"left out {np.sum(~whole)} rows with NaN"
        if whole.all():
            return made
        return replace(made, notes=(*made.notes, left))

    def __len__(self) -> int:
        return len(self.t)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with its clock and rows, one sentence each; nothing for a table of postures."""
        return self.quality.warnings

    def require_timed(self) -> None:
        """Refuses a table of postures where a motion is needed."""
        if not self.timed:
            raise InvalidSamples(
                f"{self.source or 'the table'} has no time and counts as postures at rest: weigh"
                " it with"
                " --static, or say rate_hz in the description of the sensor"
            )

    @property
    def quality(self) -> QualityReport:
        """What was found in its clock and rows; nothing in a table of postures."""
        signals = {"wrench": self.wrench, "R_base_sensor": self.R_base_sensor.reshape(-1, 9)}
        if self.timed:
            found = check_signals(self.t, signals)
        else:
            found = ()
        if self.timed:
            span, rate_hz = (float(self.t[-1]), median_rate_hz(self.t))
        else:
            span, rate_hz = (np.nan, np.nan)
        return QualityReport(self.source, len(self), 0, span, rate_hz, found)

    def on_uniform_clock(self, signals: Sequence[Array]) -> tuple[Array, list[Array], str]:
        """Uniform times, the signals there, and a sentence about it.

        Args:
            signals: each (N, n); the first is resampled by a cubic spline, the others linearly
        """
        self.require_timed()
        fresh = np.concatenate([[True], np.diff(self.t) > 0])
        t = self.t[fresh]
        columns = [x[fresh] for x in signals]
        if len(t) < _FEWEST_ROWS:
            raise InvalidSamples(f"only {len(t)} rows with different times; a motion needs more")
        grid = uniform_clock(t)
        if np.array_equal(grid, t):
            return t, columns, "uniform clock"
        moved = [resample(t, x, grid, smooth=k == 0) for k, x in enumerate(columns)]
        return grid, moved, f"resampled at {1 / (grid[1] - grid[0]):.6g} Hz"

    def wrench_std(self, wrench: Array) -> Array:
        """Standard deviation of a reading, (6,) [N, Nm]: as stated, else from a wrench on a uniform clock."""
        if self.sensor.noise is not None:
            return self.sensor.noise
        least = 1e-5 * np.abs(wrench).max() + 1e-12
        return np.asarray(np.maximum(noise_of_differences(wrench), least))

    def rows(self, which: slice | Mask, note: str = "") -> WristRecording:
        """Some of the rows; their clock starts at 0 again; a note may say why."""
        if np.size(self.t[which]) == 0:
            raise InvalidRecording("the selection contains no rows")
        cut = {
            name: signal[which] for name in _SIGNALS if (signal := getattr(self, name)) is not None
        }
        return replace(self, **cut, notes=(*self.notes, note) if note else self.notes)

    def turned(self, yaw: float) -> WristRecording:
        """The same readings of a sensor that is turned about the flange's z axis by a yaw more, [rad]."""
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
    if np.abs(array).max(initial=0.0) > _MOST:
        row = int(np.unravel_index(np.abs(array).argmax(), shape)[0])
        raise InvalidRecording(
            f"{name} reaches {np.abs(array).max():.3g} in row {row + 1}: impossible for an arm; leave such"
            " rows out"
        )


def _flattest(wrench: Array) -> tuple[int, int]:
    """The axis with the longest run of rows at its extreme while all other axes move, and how long."""
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


def _require_six(values: object, name: str) -> None:
    array = np.array(values, dtype=float)
    if array.shape != (6,) or np.isnan(array).any() or (array <= 0).any():
        raise InvalidRecording(
            f"{name} of a wrist sensor is six positive numbers [N, Nm], got {array}"
        )
