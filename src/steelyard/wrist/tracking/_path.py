"""Rows of a wrist sensor become samples: motion by a Kalman smoother with a fixed delay.

    rows (jitter, gaps, NaN) -> a uniform grid -> smoothed, differentiated -> Sample, `delay_s` late

**The smoother.** Each coordinate of the motion is modelled as a chain of four integrators driven by
white noise of density q. A row measures the coordinate itself with the variance r, every T seconds.
The spectrum of the coordinate is q / w^8, that of the measurement noise r T. In the steady state,
the best estimate of the coordinate and of its derivatives, from rows before *and* after an instant,
is the measured signal filtered by

    q / w^8 / (q / w^8 + r T) = 1 / (1 + (w / w_c)^8),      w_c = (q / (r T))^(1/8)

This is a Butterworth low-pass of order four that is run forwards and backwards: the zero-phase
filter of the batch. The cut-off w_c states how fast the motion changes relative to its noise. The
path waits for the rows after an instant (`steelyard.signals.FixedLag`); samples are therefore
delayed, but motion and wrench belong to the same instant. A Kalman filter that does not wait
(liu2025, `wrist._kalman`) gives an acceleration that is some rows older than the wrench beside it,
which no noise model covers. The wrench passes the same filter: a filter that acts alike on both
sides of wrench = Y phi leaves phi unchanged.

**The noise.** The covariance of acceleration, angular velocity and angular acceleration is r times
the sum of the squared impulse response of filter and differences. r is stated in the sensor's file,
or estimated from fourth differences of the first rows, which a slow motion hardly changes.

**Spikes.** A single row whose joint position is far from those of both its neighbours
(`wrist._spikes`) is left out and counted. A single wrench of this kind is replaced by the mean of
its neighbours and counted. The signals between two rows are used when the row after both has come,
so this costs no delay.

**Jumps.** Samples next to a jump of the wrench get a further variance (`wrist._jumps`). A spike may
also be true: friction that changes its sign in a joint that turns round shakes the load for one
row. Where the motion shows a pulse in the same row (`wrist._spikes.has_pulse`), the samples around
it therefore get a further variance, too. If a spike of size D was true, their sum misses D; single
rows of size D that are read add D^2 / 4 to it (`wrist._jumps`), so jumps are found in a spike of
twice its size.

Orientations of a pose are smoothed as rotation vectors relative to the orientation in the middle of
the window, where their derivatives are angular velocity and angular acceleration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array
from steelyard._kinds import INFINITE, Shape
from steelyard.errors import InvalidSamples
from steelyard.quality._position_jumps import MAX_ACCELERATION
from steelyard.recording import DEFAULT_CUTOFF_HZ, Sample, default_gap_s, median_rate_hz
from steelyard.robot import RobotModel
from steelyard.signals import (
    ROWS_TO_INTERPOLATE,
    FixedLag,
    UniformGrid,
    noise_gains,
    noise_of_differences,
)
from steelyard.wrist._jumps import Jumps
from steelyard.wrist._recording import WristRecording, WristSensor, require_motion_rate
from steelyard.wrist._samples import (
    joint_noise,
    noise_or,
    pose_motion,
    pose_noise,
    sensor_motion,
)
from steelyard.wrist._spikes import ROWS_OF_PULSE, ROWS_OF_SPIKE, has_pulse, spikes

CALIBRATION_S = 1.0
"""Length of the first part of a stream that gives its rate and noise, [s]."""

LARGEST_NUMBER = 1e6
"""A larger number of a row or sample is corrupt, [SI]."""

_SAMPLES_PER_PERIOD = 4.0  # of the cut-off, as in the batch
_MIN_ROWS = 20  # to calibrate with
_MISSING_SPIKE = 2.0  # of a spike that was replaced, where jumps are found
_MEASURED = slice(0, 6)  # of the motion of an inertial unit: acceleration and angular velocity
_SECOND_DIFFERENCE = float(np.sqrt(6.0))  # of white noise, over its standard deviation


class SensorMotion(NamedTuple):
    """How a wrist sensor moves at one instant, smoothed: the motion of a `Sample`.

    Attributes:
        R_base_sensor: orientation of the sensor, (3, 3)
        acceleration: of the sensor's origin, gravity not included, (3,) [m/s^2], in the sensor
            frame
        angular_velocity: (3,) [rad/s], in the sensor frame
        angular_acceleration: (3,) [rad/s^2], in the sensor frame
        covariance: of the noise of the three before, (9, 9)
        jump_variance: variance that jumps of the wrench between two rows add to a sum of samples,
            this sample's part, (6,) [N^2, Nm^2]
        speed: of the sensor's origin, [m/s]; NaN where it is not known
    """

    R_base_sensor: Annotated[Array, Shape(3, 3)]
    acceleration: Annotated[Array, Shape(3)]
    angular_velocity: Annotated[Array, Shape(3)]
    angular_acceleration: Annotated[Array, Shape(3)]
    covariance: Annotated[Array, Shape(9, 9)]
    jump_variance: Annotated[Array, Shape(6)]
    speed: Annotated[float, INFINITE]

    @property
    def derivatives(self) -> Array:
        """Acceleration, angular velocity and angular acceleration, (9,)."""
        return np.concatenate([self.acceleration, self.angular_velocity, self.angular_acceleration])


_SHAPES_OF_MOTION = [(3, 3), (3,), (3,), (3,), (9, 9), (6,), ()]
_NO_JUMP = np.zeros(6)


def checked_sample(sample: Sample[SensorMotion]) -> Sample[SensorMotion]:
    """The sample with arrays of floats; refused where a shape is wrong."""
    try:
        motion = [np.asarray(x, dtype=float) for x in sample.motion]
        wrench = np.asarray(sample.effort, dtype=float)
        t = float(sample.t)
    except (TypeError, ValueError):
        motion = []
    if [x.shape for x in motion] != _SHAPES_OF_MOTION or wrench.shape != (6,):
        raise InvalidSamples(
            "a sample is a time, a motion (a rotation of 3 x 3, three times 3 numbers with their"
            " covariance of 9 x 9, 6 variances of jumps, a speed) and a wrench of 6, got"
            f" {[np.shape(x) for x in (sample.t, *sample.motion, sample.effort)]}"
        )
    R, acceleration, velocity, turning, covariance, jumps, speed = motion
    moved = SensorMotion(R, acceleration, velocity, turning, covariance, jumps, float(speed))
    return Sample(t, moved, wrench)


def is_plausible(sample: Sample[SensorMotion]) -> bool:
    """Whether time, motion and wrench are finite numbers of a plausible size."""
    signals = np.concatenate([np.ravel(x) for x in (*sample.motion[:-1], sample.effort)])
    return bool(np.isfinite(sample.t) and np.abs(signals).max() < LARGEST_NUMBER)


class SensorKinematics(ABC):
    """How the sensor moves, from a window of rows; a quaternion comes last."""

    has_quaternion = True
    differentiated = True  # whether accelerations are derivatives of positions
    std: Array  # of the noise of what a row says about the motion, (c,)

    @abstractmethod
    def moved(self, window: Array, lag: FixedLag) -> SensorMotion:
        """The motion in the middle of the window."""

    def has_spike(self, rows: Array, rate_hz: float) -> bool:
        """Whether the last but one of a few rows is no motion; only joints can tell."""
        return False

    def has_pulse(self, rows: Array, before: Array) -> bool:
        """Whether the last but one of five rows is accelerated as those before are not.

        Args:
            rows: in the order of time; nothing is known with fewer, (5, c)
            before: rows before on a uniform grid, (N, c)
        """
        if len(rows) < ROWS_OF_PULSE:
            return False
        return has_pulse(*self._accelerations(rows, before))

    def _accelerations(self, rows: Array, before: Array) -> tuple[Array, Array, Array]:
        """In three rows, in those before, and the noise of one, in any unit."""
        noise = _SECOND_DIFFERENCE * self.std
        return np.diff(rows, 2, axis=0), np.diff(before, 2, axis=0), noise


@dataclass(frozen=True, eq=False)
class _Joints(SensorKinematics):
    """From joint positions, (length, n), and the arm."""

    robot: RobotModel
    T_flange_sensor: Array
    std: Array
    gains: tuple[float, float, float]
    has_quaternion = False

    def moved(self, window: Array, lag: FixedLag) -> SensorMotion:
        q, v, a = lag.smoothed(window)[:, None]
        T = self.T_flange_sensor
        moved = sensor_motion(self.robot, q, v, a, T)
        return SensorMotion(
            self.robot.forward_kinematics(q[0])[:3, :3] @ T[:3, :3],
            moved.linear_acceleration[0],
            moved.angular_velocity[0],
            moved.angular_acceleration[0],
            joint_noise(self.robot, q, self.std, self.gains, T)[0],
            _NO_JUMP,
            float(np.linalg.norm(moved.linear_velocity)),
        )

    def has_spike(self, rows: Array, rate_hz: float) -> bool:
        return bool(spikes(rows, self.std, MAX_ACCELERATION / rate_hz**2).any())


@dataclass(frozen=True, eq=False)
class _PoseKinematics(SensorKinematics):
    """From position and quaternion, (length, 7)."""

    std: Array
    covariance: Array

    def moved(self, window: Array, lag: FixedLag) -> SensorMotion:
        R, acceleration, w, alpha, speed = pose_motion(lag, window[:, :3], window[:, 3:])
        return SensorMotion(R, acceleration, w, alpha, self.covariance, _NO_JUMP, speed)


@dataclass(frozen=True, eq=False)
class _InertialUnitKinematics(SensorKinematics):
    """From acceleration, angular velocity and quaternion, (length, 10)."""

    std: Array
    covariance: Array
    differentiated = False

    def _accelerations(self, rows: Array, before: Array) -> tuple[Array, Array, Array]:
        return rows[1:-1, _MEASURED], before[:, _MEASURED], self.std

    def moved(self, window: Array, lag: FixedLag) -> SensorMotion:
        value, slope, _ = lag.smoothed(window)
        R = Rotation.from_quat(value[6:]).as_matrix()
        motion = (value[:3], value[3:6], slope[3:6])
        return SensorMotion(R, *motion, self.covariance, _NO_JUMP, speed=np.nan)


class WristPathState(NamedTuple):
    """The state of a `WristPath`."""

    rows: Array  # the last rows [t, motion, wrench, wrench to find jumps in], at most four
    next_s: float  # the next instant of the grid, [s]
    window: Array  # of the smoother, (k, c + 12)
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
    kinematics: SensorKinematics
    noise: Array
    reach: Array = field(default_factory=lambda: np.full(6, np.inf))
    _lag: FixedLag = field(init=False, repr=False)
    _grid: UniformGrid = field(init=False, repr=False)
    _every: int = field(init=False, repr=False)
    _jumps: Jumps = field(init=False, repr=False)

    @property
    def differentiated(self) -> bool:
        """Whether accelerations are derivatives of positions, which depend on the clock."""
        return self.kinematics.differentiated

    def __post_init__(self) -> None:
        grid = UniformGrid(self.rate_hz, self.channels)
        object.__setattr__(self, "_lag", FixedLag(self.cutoff_hz, self.rate_hz, points=5))
        object.__setattr__(self, "_grid", grid)
        of_rows = self.noise / np.sqrt(noise_gains(self.cutoff_hz, self.rate_hz)[0])
        every = max(1, int(self.rate_hz / (_SAMPLES_PER_PERIOD * self.cutoff_hz)))
        object.__setattr__(self, "_every", every)
        object.__setattr__(self, "_jumps", Jumps(self._lag, of_rows, every))

    @classmethod
    def calibrated(
        cls,
        t: Array,
        motion: Array,
        wrench: Array,
        sensor: WristSensor,
        *,
        robot: RobotModel | None = None,
        cutoff_hz: float = DEFAULT_CUTOFF_HZ,
    ) -> WristPath:
        """The path for rows as noisy as the first ones; a sensor at rest shows noise best.

        Args:
            t: times of the first rows, (N,) [s]
            motion: of the first rows, (N, c)
            wrench: of the first rows, (N, 6) [N, Nm], in the sensor frame
            sensor: where it sits, and its noise where it is stated
            robot: the arm, where rows hold joint positions
            cutoff_hz: of the smoother, [Hz]
        """
        whole = np.isfinite(t) & np.isfinite(motion).all(axis=1) & np.isfinite(wrench).all(axis=1)
        t = t[whole]
        motion = motion[whole]
        wrench = wrench[whole]
        steps = np.diff(t)
        require_motion_rate(median_rate_hz(t))
        if len(t) < _MIN_ROWS or not (steps > 0).any():
            raise InvalidSamples(
                f"{len(t)} rows are too few to calibrate with; {_MIN_ROWS} are needed"
            )
        rate_hz = float(1 / np.median(steps[steps > 0]))
        gains = noise_gains(cutoff_hz, rate_hz)
        std = sensor.noise
        if std is None:
            std = _wrench_noise(wrench)
        kinematics = _kinematics(motion, sensor, robot, gains)
        noise = std * np.sqrt(gains[0])
        return cls(rate_hz, cutoff_hz, motion.shape[1], kinematics, noise, sensor.reach)

    @property
    def delay_s(self) -> float:
        """Delay of a sample, [s]: that of the smoother and of the grid."""
        return self._lag.delay_s + self._grid.delay_s

    def init(self) -> WristPathState:
        """The state before the first row."""
        return self._empty(-np.inf)

    def step(
        self, state: WristPathState, t: float, motion: Array, effort: Array
    ) -> tuple[WristPathState, tuple[Sample[SensorMotion], ...]]:
        """The next state and the samples that are ready, in the order of time.

        Args:
            state: of `init` or `step`
            t: time of the next row, [s], on any clock
            motion: as the class describes it, (channels,)
            effort: wrench of the load on the sensor, (6,) [N, Nm], in the sensor frame
        """
        row = np.concatenate([[t], np.ravel(motion), np.ravel(effort)]).astype(float)
        if row.size != 7 + self.channels:
            raise InvalidSamples(
                f"a row is {self.channels} numbers of motion and a wrench of 6, got"
                f" {np.size(motion)} and {np.size(effort)}"
            )
        if fault := self._fault(state.rows, row):
            return state, (Sample.unusable(fault),)
        if len(state.rows) and t - state.rows[-1, 0] > default_gap_s(1 / self.rate_hz):
            state = self._empty(state.last_s)
        unusable: tuple[Sample[SensorMotion], ...] = ()
        if self._has_spike_of_motion(state, row):
            state = state._replace(rows=state.rows[:-1])
            unusable = (Sample.unusable("impossible"),)
        elif self._has_spike_of_wrench(state, row):
            state = state._replace(rows=self._replaced(state, row))
            unusable = (Sample.unusable("spikes"),)
        if len(state.rows) and self.kinematics.has_quaternion:
            quaternion = slice(self.channels - 3, self.channels + 1)
            if row[quaternion] @ state.rows[-1, quaternion] < 0:
                row[quaternion] *= -1.0  # the same rotation, nearer to the one before
        read = np.concatenate([row, row[-6:]])
        rows = np.concatenate([state.rows[1 - ROWS_TO_INTERPOLATE :], read[None]])
        state, ready = self._with_row(state._replace(rows=rows))
        return state, (*unusable, *ready)

    def _has_spike_of_motion(self, state: WristPathState, row: Array) -> bool:
        """Whether the last row of a state is no motion, as the row after it shows."""
        motion = slice(1, 1 + self.channels)
        rows = np.concatenate([state.rows[1 - ROWS_OF_SPIKE :, motion], row[None, motion]])
        return self.kinematics.has_spike(rows, self.rate_hz)

    def _has_spike_of_wrench(self, state: WristPathState, row: Array) -> bool:
        """Whether the last wrench of a state is a spike, as the row after it shows."""
        wrench = np.concatenate([state.rows[1 - ROWS_OF_SPIKE :, self._wrench], row[None, -6:]])
        noise = self._jumps.row_noise
        if not spikes(wrench, noise).any():
            return False
        usual = self._jumps.usual_noise(state.window[:, self.channels : -6])
        return bool(spikes(wrench, np.maximum(noise, usual)).any())

    @property
    def _wrench(self) -> slice:
        """Columns of the wrench, without spikes, in a row of the state."""
        return slice(1 + self.channels, 7 + self.channels)

    @property
    def _for_jumps(self) -> slice:
        """Columns of the wrench to find jumps in, in a row of the state or of its window."""
        return slice(-6, None)

    def _replaced(self, state: WristPathState, row: Array) -> Array:
        """Rows of a state with another wrench in the last: that between the ones around it."""
        motion = slice(1, 1 + self.channels)
        rows = state.rows.copy()
        share = (rows[-1, 0] - rows[-2, 0]) / (row[0] - rows[-2, 0])
        between = (1 - share) * rows[-2, self._wrench] + share * row[-6:]
        spike = rows[-1, self._wrench] - between
        rows[-1, self._wrench] = between
        rows[-1, self._for_jumps] = between
        moved = np.concatenate([rows[:, motion], row[None, motion]])
        if self.kinematics.has_pulse(moved, state.window[:, : self.channels]):
            rows[-1, self._for_jumps] += _MISSING_SPIKE * spike
        return rows

    def _fault(self, rows: Array, row: Array) -> str:
        """The reason why a row cannot follow others; empty if it can."""
        t = row[0]
        wrench = row[-6:]
        if not np.isfinite(t) or not np.abs(row[1:]).max() < LARGEST_NUMBER:
            return "corrupt"
        if len(rows) and t == rows[-1, 0]:
            return "repeated"
        if len(rows) and t < rows[-1, 0]:
            return "late"
        if (np.abs(wrench) >= self.reach).any():
            return "saturated"
        return ""

    def _with_row(
        self, state: WristPathState
    ) -> tuple[WristPathState, tuple[Sample[SensorMotion], ...]]:
        """The state, and the samples that the last row completes."""
        next_s, instants = self._grid.interpolated(state.rows, state.next_s)
        window = state.window
        count = state.instants
        last_s = state.last_s
        ready = []
        length = self._lag.length
        for t, newest in instants:
            window = np.concatenate([window[1 - length :], newest[None]])
            if len(window) == length:
                if count % self._every == 0:
                    last_s = t - self._lag.delay_s
                    ready.append(self._sample(last_s, window))
                count += 1
        return WristPathState(state.rows, next_s, window, count, last_s), tuple(ready)

    def _sample(self, t: float, window: Array) -> Sample[SensorMotion]:
        motion = window[:, : self.channels]
        wrench = window[:, self.channels : -6]
        jumps = self._jumps.variance(window[:, self._for_jumps])
        moved = self.kinematics.moved(motion, self._lag)._replace(jump_variance=jumps)
        return Sample(t, moved, self._lag.smoothed(wrench)[0])

    def _empty(self, last_s: float) -> WristPathState:
        numbers = self.channels + 12
        rows = np.zeros((0, 1 + numbers))
        return WristPathState(rows, -np.inf, np.zeros((0, numbers)), 0, last_s)


def _wrench_noise(wrench: Array) -> Array:
    """The standard deviation of the first readings, (N, 6), without spikes, (6,) [N, Nm]."""
    std = noise_of_differences(wrench)
    calm = wrench[~spikes(wrench, std)]
    return np.asarray(np.maximum(noise_of_differences(calm), 1e-5 * np.abs(calm).max() + 1e-12))


def motion_of(recording: WristRecording) -> Array:
    """The motion in the rows of a recording without joints, (N, 10) or (N, 7), see `WristPath`.

    It comes from the inertial unit, or else from the pose.
    """
    recording.require_timed()
    q = Rotation.from_matrix(recording.R_base_sensor).as_quat()
    a = recording.acceleration
    w = recording.angular_velocity
    p = recording.position
    if a is not None and w is not None:
        return np.hstack([a, w, q])
    if p is not None:
        return np.hstack([p, q])
    raise InvalidSamples(
        "the recording has neither position nor acceleration of the sensor; name the columns, or"
        " give a robot and joint positions"
    )


def _kinematics(
    motion: Array, sensor: WristSensor, robot: RobotModel | None, gains: tuple[float, float, float]
) -> SensorKinematics:
    """How rows of a motion, (N, c), say how the sensor moves, with their noise."""
    stated = sensor.motion_noise

    value, slope, _ = gains
    if robot is not None:
        if motion.shape[1] != robot.n:
            raise InvalidSamples(f"{robot.name} has {robot.n} joints, a row {motion.shape[1]}")
        return _Joints(robot, sensor.T_flange_sensor, noise_or(stated.get("joints"), motion), gains)
    if motion.shape[1] == 7:
        position = motion[:, :3]
        quaternion = motion[:, 3:]
        stds = (stated.get("position"), stated.get("rotation"))
        std = np.append(noise_or(stds[0], position), noise_or(_half(stds[1]), quaternion))
        return _PoseKinematics(std, pose_noise(position, quaternion, gains, *stds))
    if motion.shape[1] == 10:
        linear = noise_or(stated.get("acceleration"), motion[:, :3])
        turning = noise_or(stated.get("angular_velocity"), motion[:, 3:6])
        variance = np.concatenate([linear**2 * value, turning**2 * value, turning**2 * slope])
        return _InertialUnitKinematics(np.concatenate([linear, turning]), np.diag(variance))
    raise InvalidSamples(
        f"a motion is 7 or 10 numbers, or joints of a robot, got {motion.shape[1]}"
    )


def _half(std: float | None) -> float | None:
    """The noise of a quaternion with that of its rotation, where it is stated."""
    if std is None:
        return None
    return std / 2
