"""Rows of a wrist sensor become samples: motion by a Kalman smoother with a fixed delay.

    rows (jitter, holes, NaN) -> a uniform grid -> smoothed, differentiated -> WristSample,
    `delay_s` late

**The smoother.** A coordinate of the motion is taken for a chain of four integrators driven by
white noise of density q; a row measures the first one with the variance r, every T seconds. Its
spectrum is q / w^8, that of the noise r T, so that in the steady state the best estimate of the
coordinate and of its derivatives, from rows before *and* after it, is the measured signal behind

    q / w^8 / (q / w^8 + r T) = 1 / (1 + (w / w_c)^8),      w_c = (q / (r T))^(1/8)

which is a Butterworth low-pass of order four run forwards and backwards: the zero-phase filter of
the batch. The cut-off says how lively the motion is in units of its noise. What the rows after an
instant add is waited for (`steelyard.signals.FixedLag`), so the answer comes late, but has no lag:
a Kalman filter without the wait (liu2025, `wrist.kalman`) gives an acceleration that is some rows
old, beside a wrench that is not, and no noise model covers that. The wrench goes through the same
filter; a filter that acts alike on both sides of wrench = Y phi changes nothing in phi.

**The noise.** The covariance of acceleration, angular velocity and angular acceleration is r times
the sum of the squared response of filter and differences. r comes from the sensor's file, else from
a calibration rest: fourth differences of the first rows, which also forgive a motion.

Orientations of a pose are smoothed as rotation vectors seen from the one in the middle of the
window, where their derivatives are angular velocity and angular acceleration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array
from steelyard._kinds import INFINITE, Shape
from steelyard.errors import InvalidSamples
from steelyard.recording import DEFAULT_CUTOFF_HZ, default_gap_s
from steelyard.robot import RobotModel
from steelyard.signals import FixedLag, RawRow, noise_gains, noise_of_differences
from steelyard.wrist._recording import WristRecording, WristSensor
from steelyard.wrist._samples import (
    joint_noise,
    pose_motion,
    pose_noise,
    sensor_motion,
    smoothed,
)

CALIBRATION_S = 1.0
"""Length of the first part of a stream that gives its rate and noise, [s]."""

LARGEST_NUMBER = 1e6
"""A larger number of a row or sample is corrupt, [SI]."""

_ROUNDING = 1e-6  # of a step
_SAMPLES_PER_PERIOD = 4.0  # of the cut-off, as in the batch
_MIN_ROWS = 20  # to calibrate with
_LEAST_NOISE = 1e-9


class WristSample(NamedTuple):
    """Wrench and motion of the sensor at one instant, smoothed.

    Attributes:
        t: time, [s], on any clock that goes forwards
        wrench: what the load does to the sensor, (6,) [N, Nm], in the sensor frame
        R_base_sensor: orientation of the sensor, (3, 3)
        acceleration: of the sensor's origin, gravity not included, (3,) [m/s^2], in the sensor
            frame
        angular_velocity: (3,) [rad/s], in the sensor frame
        angular_acceleration: (3,) [rad/s^2], in the sensor frame
        covariance: of the noise of the three before, (9, 9)
        speed: of the sensor's origin, [m/s]; NaN where it is not known
    """

    t: float
    wrench: Annotated[Array, Shape(6)]
    R_base_sensor: Annotated[Array, Shape(3, 3)]
    acceleration: Annotated[Array, Shape(3)]
    angular_velocity: Annotated[Array, Shape(3)]
    angular_acceleration: Annotated[Array, Shape(3)]
    covariance: Annotated[Array, Shape(9, 9)]
    speed: Annotated[float, INFINITE]

    def checked(self) -> WristSample:
        """The sample as numbers and arrays of floats; refused where a shape is wrong."""
        try:
            arrays = [np.asarray(x, dtype=float) for x in self]
        except (TypeError, ValueError):
            arrays = []
        if [x.shape for x in arrays] != _SAMPLE_SHAPES:
            raise InvalidSamples(
                "a sample is a time, a wrench of 6, a rotation of 3 x 3, three times 3 numbers of"
                " motion with their covariance of 9 x 9, and a speed, got"
                f" {[np.shape(x) for x in self]}"
            )
        t, wrench, R, acceleration, velocity, turning, covariance, speed = arrays
        motion = (acceleration, velocity, turning)
        return WristSample(float(t), wrench, R, *motion, covariance, float(speed))

    @property
    def is_finite(self) -> bool:
        """Whether time, wrench and motion are numbers of a plausible size."""
        signals = np.concatenate([np.ravel(x) for x in self[1:-1]])
        return bool(np.isfinite(self.t) and np.abs(signals).max() < LARGEST_NUMBER)

    @property
    def motion(self) -> Array:
        """Acceleration, angular velocity and angular acceleration, (9,)."""
        return np.concatenate([self.acceleration, self.angular_velocity, self.angular_acceleration])


_SAMPLE_SHAPES = [(), (6,), (3, 3), (3,), (3,), (3,), (9, 9), ()]


class _Kinematics(ABC):
    """How the sensor moves, from a window of rows; a quaternion comes last."""

    has_quaternion = True

    @abstractmethod
    def moved(
        self, window: Array, lag: FixedLag
    ) -> tuple[Array, Array, Array, Array, Array, float]:
        """Orientation, accelerations and angular velocity, their noise, and the speed."""


@dataclass(frozen=True, eq=False)
class _Joints(_Kinematics):
    """From joint positions, (length, n), and the arm."""

    robot: RobotModel
    T_flange_sensor: Array
    std: Array
    gains: tuple[float, float, float]
    has_quaternion = False

    def moved(
        self, window: Array, lag: FixedLag
    ) -> tuple[Array, Array, Array, Array, Array, float]:
        q, v, a = smoothed(lag, window)[:, None]
        T = self.T_flange_sensor
        motion = (x[0] for x in sensor_motion(self.robot, q, v, a, T))
        flange = self.robot.frame_motion(q, v, np.zeros_like(v))
        speed = flange.linear_velocity[0] + np.cross(flange.angular_velocity[0], T[:3, 3])
        noise = joint_noise(self.robot, q, self.std, self.gains, T)[0]
        return *motion, noise, float(np.linalg.norm(speed))


@dataclass(frozen=True, eq=False)
class _Pose(_Kinematics):
    """From position and quaternion, (length, 7)."""

    covariance: Array

    def moved(
        self, window: Array, lag: FixedLag
    ) -> tuple[Array, Array, Array, Array, Array, float]:
        *motion, speed = pose_motion(lag, window[:, :3], window[:, 3:])
        R, acceleration, w, alpha = motion
        return R, acceleration, w, alpha, self.covariance, speed


@dataclass(frozen=True, eq=False)
class _InertialUnit(_Kinematics):
    """From acceleration, angular velocity and quaternion, (length, 10)."""

    covariance: Array

    def moved(
        self, window: Array, lag: FixedLag
    ) -> tuple[Array, Array, Array, Array, Array, float]:
        value, slope, _ = smoothed(lag, window)
        R = Rotation.from_quat(value[6:]).as_matrix()
        return R, value[:3], value[3:6], slope[3:6], self.covariance, float("nan")


class _WristPathState(NamedTuple):
    """The state of a path."""

    rows: Array  # the last rows [t, motion, wrench], at most four
    next_s: float  # the next instant of the grid, [s]
    window: Array  # of the smoother, (k, c + 6)
    instants: int  # of the grid since the window was full
    last_s: float  # time of the last sample that was made, [s]


@dataclass(frozen=True, eq=False)
class WristPath:
    """Makes samples of rows, one at a time. States are values; `step` changes none.

    The motion of a row holds joint positions, (n,) [rad or m]; or position and quaternion of the
    sensor, (7,); or its acceleration without gravity, its angular velocity, both in the sensor
    frame, and its quaternion, (10,). Quaternions are R_base_sensor as (x, y, z, w). The effort of a
    row is the wrench of the load on the sensor, (6,) [N, Nm], in the sensor frame.

    Attributes:
        rate_hz: of the grid, [Hz]
        cutoff_hz: of the smoother, [Hz]
        channels: numbers of motion in a row
        kinematics: how the sensor moves, from a window of them
        noise: standard deviation of a sample's wrench from the sensor's own noise, (6,) [N, Nm]
        reach: largest wrench of each axis, (6,) [N, Nm]; rows beyond are counted and not smoothed
    """

    rate_hz: float
    cutoff_hz: float
    channels: int
    kinematics: _Kinematics
    noise: Array
    reach: Array = field(default_factory=lambda: np.full(6, np.inf))
    _lag: FixedLag = field(init=False, repr=False)
    _every: int = field(init=False, repr=False)

    @property
    def differentiated(self) -> bool:
        """Whether accelerations are derivatives of positions, which depend on the clock."""
        return not isinstance(self.kinematics, _InertialUnit)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lag", FixedLag(self.cutoff_hz, self.rate_hz, points=5))
        object.__setattr__(
            self, "_every", max(1, int(self.rate_hz / (_SAMPLES_PER_PERIOD * self.cutoff_hz)))
        )

    @classmethod
    def calibrated(
        cls,
        rows: Sequence[RawRow],
        sensor: WristSensor,
        *,
        robot: RobotModel | None = None,
        cutoff_hz: float = DEFAULT_CUTOFF_HZ,
    ) -> WristPath:
        """The path for rows as noisy as these first ones; a sensor at rest shows noise best.

        Args:
            sensor: where it sits, and its noise where it is stated
            robot: the arm, where rows hold joint positions
            cutoff_hz: of the smoother, [Hz]
        """
        t = np.array([row.t for row in rows])
        motion = np.array([row.motion for row in rows], dtype=float)
        wrench = np.array([row.effort for row in rows], dtype=float)
        whole = np.isfinite(t) & np.isfinite(motion).all(axis=1) & np.isfinite(wrench).all(axis=1)
        t = t[whole]
        motion = motion[whole]
        wrench = wrench[whole]
        steps = np.diff(t)
        if len(t) < _MIN_ROWS or not (steps > 0).any():
            raise InvalidSamples(
                f"{len(t)} rows are too few to calibrate with; {_MIN_ROWS} are needed"
            )
        rate_hz = float(1 / np.median(steps[steps > 0]))
        gains = noise_gains(cutoff_hz, rate_hz)
        std = sensor.noise
        if std is None:
            std = np.maximum(noise_of_differences(wrench), 1e-5 * np.abs(wrench).max() + 1e-12)
        kinematics = _kinematics(motion, sensor, robot, gains)
        noise = std * np.sqrt(gains[0])
        return cls(rate_hz, cutoff_hz, motion.shape[1], kinematics, noise, sensor.reach)

    @property
    def delay_s(self) -> float:
        """Delay of a sample, [s]: that of the smoother and two rows to interpolate."""
        return self._lag.delay_s + 2 / self.rate_hz

    def init(self) -> _WristPathState:
        """The state before the first row."""
        return self._empty(-np.inf)

    def step(
        self, state: _WristPathState, row: RawRow
    ) -> tuple[_WristPathState, tuple[WristSample, ...]]:
        """The next state and the samples that are ready, in the order of time."""
        new = np.concatenate([[row.t], np.ravel(row.motion), np.ravel(row.effort)]).astype(float)
        if new.size != 7 + self.channels:
            raise InvalidSamples(
                f"a row is {self.channels} numbers of motion and a wrench of 6, got"
                f" {np.size(row.motion)} and {np.size(row.effort)}"
            )
        if not np.isfinite(new[0]) or not np.abs(new[1:]).max() < LARGEST_NUMBER:
            return state, (_bad(np.nan),)
        if len(state.rows):
            before = state.rows[-1, 0]
        else:
            before = -np.inf
        if row.t <= before:
            return state, (_bad(state.last_s if row.t == before else state.last_s - 1.0),)
        if (np.abs(new[-6:]) >= self.reach).any():
            return state, (_bad(row.t)._replace(wrench=new[-6:]),)
        if len(state.rows) and row.t - before > default_gap_s(1 / self.rate_hz):
            state = self._empty(state.last_s)
        if len(state.rows) and self.kinematics.has_quaternion:
            q = slice(self.channels - 3, self.channels + 1)
            new[q] *= 1.0 if new[q] @ state.rows[-1, q] >= 0 else -1.0
        state = state._replace(rows=np.concatenate([state.rows[-3:], new[None]]))
        if len(state.rows) == 4:
            return self._through(state)
        return (state, ())

    def _through(self, state: _WristPathState) -> tuple[_WristPathState, tuple[WristSample, ...]]:
        """The state and samples after the instants of the grid between the two middle rows."""
        start = state.rows[1, 0]
        end = state.rows[2, 0]
        if np.isinf(state.next_s):
            t = start
        else:
            t = state.next_s
        window = state.window
        count = state.instants
        last_s = state.last_s
        ready = []
        length = 2 * self._lag.lag + 1
        while t <= end + _ROUNDING / self.rate_hz:
            window = np.concatenate([window[-length + 1 :], self._between(state.rows, t)[None]])
            if len(window) == length:
                if count % self._every == 0:
                    last_s = t - self._lag.delay_s
                    ready.append(self._sample(last_s, window))
                count += 1
            t += 1.0 / self.rate_hz
        return _WristPathState(state.rows, t, window, count, last_s), tuple(ready)

    def _sample(self, t: float, window: Array) -> WristSample:
        motion = window[:, : self.channels]
        wrench = window[:, self.channels :]
        return WristSample(
            t, smoothed(self._lag, wrench)[0], *self.kinematics.moved(motion, self._lag)
        )

    def _between(self, rows: Array, t: float) -> Array:
        """Motion (cubic through four rows) and wrench (linear) between the middle two rows."""
        a, b, c, d = rows[:, 0].tolist()
        if abs(t - b) < _ROUNDING / self.rate_hz:
            return rows[1, 1:]
        weights = np.array(
            [
                (t - b) * (t - c) * (t - d) / ((a - b) * (a - c) * (a - d)),
                (t - a) * (t - c) * (t - d) / ((b - a) * (b - c) * (b - d)),
                (t - a) * (t - b) * (t - d) / ((c - a) * (c - b) * (c - d)),
                (t - a) * (t - b) * (t - c) / ((d - a) * (d - b) * (d - c)),
            ]
        )
        cut = 1 + self.channels
        share = (t - b) / (c - b)
        wrench = (1 - share) * rows[1, cut:] + share * rows[2, cut:]
        return np.concatenate([weights @ rows[:, 1:cut], wrench])

    def _empty(self, last_s: float) -> _WristPathState:
        c = self.channels + 6
        return _WristPathState(np.zeros((0, c + 1)), -np.inf, np.zeros((0, c)), 0, last_s)


def rows_of(recording: WristRecording) -> list[RawRow]:
    """The rows of a recording without joints, from its inertial unit or else from its pose."""
    recording.require_timed()
    q = Rotation.from_matrix(recording.R_base_sensor).as_quat()
    a = recording.acceleration
    w = recording.angular_velocity
    p = recording.position
    if a is not None and w is not None:
        motion = np.hstack([a, w, q])
    elif p is not None:
        motion = np.hstack([p, q])
    else:
        raise InvalidSamples(
            "the recording has neither position nor acceleration of the sensor; name the columns,"
            " or give"
            " a robot and joint positions"
        )
    return [
        RawRow(*row) for row in zip(recording.t.tolist(), motion, recording.wrench, strict=True)
    ]


def _kinematics(
    motion: Array, sensor: WristSensor, robot: RobotModel | None, gains: tuple[float, float, float]
) -> _Kinematics:
    """How rows of a motion, (N, c), say how the sensor moves, with their noise."""
    stated = sensor.motion_noise

    def noise(name: str, x: Array) -> Array:
        if name in stated:
            return np.full(x.shape[1], stated[name])
        return _noise(x)

    value, slope, _ = gains
    if robot is not None:
        if motion.shape[1] != robot.n:
            raise InvalidSamples(f"{robot.name} has {robot.n} joints, a row {motion.shape[1]}")
        return _Joints(robot, sensor.T_flange_sensor, noise("joints", motion), gains)
    if motion.shape[1] == 7:
        stds = (stated.get("position"), stated.get("rotation"))
        return _Pose(pose_noise(motion[:, :3], motion[:, 3:], gains, *stds))
    if motion.shape[1] == 10:
        linear = noise("acceleration", motion[:, :3])
        turning = noise("angular_velocity", motion[:, 3:6])
        variance = np.concatenate([linear**2 * value, turning**2 * value, turning**2 * slope])
        return _InertialUnit(np.diag(variance))
    raise InvalidSamples(
        f"a motion is 7 or 10 numbers, or joints of a robot, got {motion.shape[1]}"
    )


def _noise(x: Array) -> Array:
    return np.maximum(noise_of_differences(x), _LEAST_NOISE)


def _bad(t: float) -> WristSample:
    """A sample that is counted and skipped."""
    zero = np.zeros(3)
    return WristSample(t, np.zeros(6), np.eye(3), zero, zero, zero, np.zeros((9, 9)), 0.0)
