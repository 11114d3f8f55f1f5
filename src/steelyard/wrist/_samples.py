"""Wrench and motion of a sensor, ready to fit: uniform, finite, differentiated, with their noise.

The motion of the sensor comes from joints and the robot model, from an inertial unit beside the
sensor, or from its pose. All use zero-phase low-pass filters and central differences, and apply the
same filter to the wrench; the same linear filter on both sides of wrench = Y phi leaves phi
unchanged. `from_pose_causal` is the causal filter of liu2025 (`_kalman`), whose acceleration lags.
The noise follows: noise of variance s^2 of an encoder (or of the inertial unit) becomes s^2 times
the sum of the squared impulse response of filter and differences, and is propagated by the Jacobian
to acceleration, angular velocity and angular acceleration of the sensor,

    a = J_v qdd + ...,   w = J_w qd,   alpha = J_w qdd + ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array, freeze
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.inertia import skew
from steelyard.quality import check
from steelyard.quality._check import without_impossible
from steelyard.recording import Recording
from steelyard.robot import FrameMotion, RobotModel
from steelyard.signals import (
    DEFAULT_CUTOFF_HZ,
    FixedLag,
    central_differences,
    low_pass,
    moving_mean,
    noise_gains,
    noise_of_differences,
)
from steelyard.wrist._checks import reading_steps
from steelyard.wrist._jumps import Jumps
from steelyard.wrist._kalman import PoseKalmanFilter
from steelyard.wrist._recording import WristRecording, WristSensor
from steelyard.wrist._regressor import (
    ACCELERATION,
    ANGULAR_ACCELERATION,
    ANGULAR_VELOCITY,
    feature_covariance,
    features,
)

_EDGE_PERIODS = 3.0  # of the cut-off, left out at both ends, where the filter is inaccurate
_WRENCH_AFTER_MOTION = slice(9, 15)  # in rows of nine numbers of motion and a wrench
_ROWS_PER_CUTOFF = 4.0  # rows that are kept for each period of the cut-off
_LEAST_NOISE = 1e-9  # [SI], keeps covariances definite


@dataclass(frozen=True, eq=False)
class WrenchSamples:
    """Samples for the dynamic stage; wrench and motion have passed the same filter.

    Attributes:
        t: time, (N,) [s]
        wrench: of the load on the sensor, (N, 6) [N, Nm], in the sensor frame
        wrench_covariance: of its noise, (6, 6)
        R_base_sensor: orientation of the sensor, (N, 3, 3)
        acceleration: of the sensor's origin, without gravity, (N, 3) [m/s^2], in the sensor frame
        angular_velocity: (N, 3) [rad/s], in the sensor frame
        angular_acceleration: (N, 3) [rad/s^2], in the sensor frame
        covariance: noise of (acceleration, angular velocity, angular acceleration), (N, 9, 9)
        sensor: description of the sensor
        made_by: preparation, a sentence for each step
        warnings: problems of the recording, one sentence for each
        reading_step: of which all raw readings are multiples, (6,) [N, Nm]; 0 if there is none
        differentiated: whether accelerations are derivatives of positions, which depend on the
            clock
        jump_variance: that jumps of the wrench between two rows add to the noise of samples next to
            them, (N, 6) [N^2, Nm^2]; none by default
    """

    t: Array
    wrench: Array
    wrench_covariance: Array
    R_base_sensor: Array
    acceleration: Array
    angular_velocity: Array
    angular_acceleration: Array
    covariance: Array
    sensor: WristSensor
    made_by: Sequence[str] = ()
    warnings: Sequence[str] = ()
    reading_step: Array = field(default_factory=lambda: np.zeros(6))
    differentiated: bool = True
    jump_variance: Array = field(default_factory=lambda: np.zeros(6))

    def __post_init__(self) -> None:
        N = len(self.t)
        if np.shape(self.jump_variance) == (6,):
            object.__setattr__(self, "jump_variance", np.tile(self.jump_variance, (N, 1)))
        shapes = {
            "t": (N,), "wrench": (N, 6), "wrench_covariance": (6, 6), "R_base_sensor": (N, 3, 3),
            "acceleration": (N, 3), "angular_velocity": (N, 3), "angular_acceleration": (N, 3),
            "covariance": (N, 9, 9), "reading_step": (6,), "jump_variance": (N, 6),
        }  # fmt: skip
        freeze(self, *shapes)
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.shape != shape or N == 0 or not np.isfinite(array).all():
                raise InvalidSamples(
                    f"{name} must be {shape} finite numbers, got shape {array.shape}"
                )
        object.__setattr__(self, "made_by", tuple(self.made_by))
        object.__setattr__(self, "warnings", tuple(self.warnings))

    @classmethod
    def from_joints(
        cls,
        robot: RobotModel,
        recording: Recording,
        sensor: WristSensor | None = None,
        *,
        cutoff_hz: float | None = DEFAULT_CUTOFF_HZ,
        position_std: ArrayLike | None = None,
        decimate: bool = True,
    ) -> WrenchSamples:
        """The motion of the sensor from joint positions, and its wrench, ready to fit.

        A recording that is not fit for use raises an error, as for joint torques.

        Args:
            robot: the arm
            recording: with a wrench
            sensor: with its pose on the flange; at the flange by default
            cutoff_hz: of the zero-phase low-pass on positions and wrench, [Hz]; None for none
            position_std: noise of joint positions, () or (n,) [rad or m]; from differences by
                default
            decimate: whether to keep only as many rows as the filter leaves independent
        """
        recording = recording.named(robot.joint_names)
        measured = WristRecording.of_joints(recording, robot, sensor)
        quality = check(recording)
        quality.require_ok()
        clean = without_impossible(recording)
        signals = np.hstack([clean.q, np.asarray(clean.wrench)])
        complete = np.isfinite(signals).all(axis=1)
        t, (q, wrench), words = measured.on_uniform_clock([clean.q[complete], measured.wrench])
        stated = (
            measured.sensor.motion_noise.get("joints") if position_std is None else position_std
        )
        if stated is None:
            std = noise_of_differences(q)
        else:
            std = _checked_std(stated, robot.n)
        zero_phase = _ZeroPhase.on(t, cutoff_hz)
        smooth = zero_phase(q)
        v, a = central_differences(smooth, zero_phase.rate_hz)
        keep = zero_phase.kept(len(t), decimate=decimate)
        q = smooth[keep]
        v = v[keep]
        a = a[keep]
        T_flange_sensor = measured.sensor.T_flange_sensor
        moved = sensor_motion(robot, q, v, a, T_flange_sensor)
        made = f"motion from joints, noise {np.array2string(std, precision=2)} rad or m"
        row_noise = measured.wrench_std(wrench)
        return cls(
            t[keep],
            zero_phase(wrench)[keep],
            np.diag(row_noise**2 * zero_phase.gains[0]),
            robot.forward_kinematics(q)[:, :3, :3] @ T_flange_sensor[:3, :3],
            moved.linear_acceleration,
            moved.angular_velocity,
            moved.angular_acceleration,
            joint_noise(robot, q, std, zero_phase.gains, T_flange_sensor),
            measured.sensor,
            (*measured.notes, words, made, *zero_phase.steps(t, keep)),
            quality.warnings,
            reading_steps(measured.wrench),
            jump_variance=zero_phase.jump_variance(wrench, row_noise, keep),
        )

    @classmethod
    def from_imu(
        cls,
        recording: WristRecording,
        *,
        cutoff_hz: float | None = DEFAULT_CUTOFF_HZ,
        acceleration_std: float | None = None,
        velocity_std: float | None = None,
        decimate: bool = True,
    ) -> WrenchSamples:
        """The motion of the sensor from an inertial unit, and its wrench, ready to fit.

        Args:
            recording: with acceleration (gravity removed) and angular velocity
            cutoff_hz: of the zero-phase low-pass on every signal, [Hz]; None for none
            acceleration_std: noise of the acceleration, [m/s^2]; from its differences by default
            velocity_std: noise of the angular velocity, [rad/s]; from its differences by default
            decimate: whether to keep only as many rows as the filter leaves independent
        """
        if recording.acceleration is None or recording.angular_velocity is None:
            raise InvalidRecording(
                "the recording has no acceleration and angular velocity of the sensor; name their"
                " columns, or take the motion from joints or from the pose"
            )
        t, (R, acceleration, velocity, wrench), words = recording.on_uniform_clock(
            [
                recording.R_base_sensor.reshape(-1, 9),
                recording.acceleration,
                recording.angular_velocity,
                recording.wrench,
            ]
        )
        zero_phase = _ZeroPhase.on(t, cutoff_hz)
        stated = recording.sensor.motion_noise
        given = (
            stated.get("acceleration") if acceleration_std is None else acceleration_std,
            stated.get("angular_velocity") if velocity_std is None else velocity_std,
        )
        stds = [
            noise_of_differences(x) if std is None else np.full(3, std)
            for x, std in zip((acceleration, velocity), given, strict=True)
        ]
        acceleration = zero_phase(acceleration)
        velocity = zero_phase(velocity)
        keep = zero_phase.kept(len(t), decimate=decimate)
        value, slope, _ = zero_phase.gains
        variance = np.concatenate(
            [stds[0] ** 2 * value, stds[1] ** 2 * value, stds[1] ** 2 * slope]
        )
        U, _, Vt = np.linalg.svd(R.reshape(-1, 3, 3)[keep])
        row_noise = recording.wrench_std(wrench)
        return cls(
            t[keep],
            zero_phase(wrench)[keep],
            np.diag(row_noise**2 * value),
            U @ Vt,
            acceleration[keep],
            velocity[keep],
            central_differences(velocity, zero_phase.rate_hz)[0][keep],
            np.tile(np.diag(variance), (len(U), 1, 1)),
            recording.sensor,
            (*recording.notes, words, "motion from an inertial unit", *zero_phase.steps(t, keep)),
            recording.warnings,
            reading_steps(recording.wrench),
            differentiated=False,
            jump_variance=zero_phase.jump_variance(wrench, row_noise, keep),
        )

    @classmethod
    def from_pose(
        cls,
        recording: WristRecording,
        *,
        cutoff_hz: float = DEFAULT_CUTOFF_HZ,
        position_std: float | None = None,
        rotation_std: float | None = None,
        decimate: bool = True,
    ) -> WrenchSamples:
        """The motion of the sensor from its pose, and its wrench, both without lag.

        The zero-phase filter is that of tracking (`steelyard.wrist.tracking.WristPath`).

        Args:
            recording: with the position of the sensor
            cutoff_hz: of the zero-phase low-pass on pose and wrench, [Hz]
            position_std: noise of the position, [m]; from its differences by default
            rotation_std: noise of the orientation, [rad]; from its differences by default
            decimate: keep only as many rows as the filter leaves independent
        """
        t, position, quaternion, wrench, words = _pose_on_uniform_clock(recording)
        zero_phase = _ZeroPhase.on(t, cutoff_hz)
        lag = FixedLag(cutoff_hz, zero_phase.rate_hz, points=5)
        keep = zero_phase.kept(len(t), decimate=decimate)
        reach = range(-lag.lag, lag.lag + 1)
        windows = [slice(k + reach[0], k + reach[-1] + 1) for k in range(*keep.indices(len(t)))]
        moved = [pose_motion(lag, position[at], quaternion[at]) for at in windows]
        orientation, acceleration, velocity, turning, _ = zip(*moved, strict=True)
        stated = recording.sensor.motion_noise
        if position_std is None:
            position_std = stated.get("position")
        if rotation_std is None:
            rotation_std = stated.get("rotation")
        noise = pose_noise(position, quaternion, zero_phase.gains, position_std, rotation_std)
        row_noise = recording.wrench_std(wrench)
        return cls(
            t[keep],
            np.array([lag.smoothed(wrench[at])[0] for at in windows]),
            np.diag(row_noise**2 * zero_phase.gains[0]),
            np.array(orientation),
            np.array(acceleration),
            np.array(velocity),
            np.array(turning),
            np.tile(noise, (len(windows), 1, 1)),
            recording.sensor,
            (*recording.notes, words, "motion from the pose", *zero_phase.steps(t, keep)),
            recording.warnings,
            jump_variance=zero_phase.jump_variance(wrench, row_noise, keep),
        )

    @classmethod
    def from_pose_causal(
        cls,
        recording: WristRecording,
        *,
        mean_length: int = 10,
        position_std: float | None = None,
        rotation_std: float | None = None,
        settle_s: float = 0.5,
        decimate: bool = False,
        earlier: WristRecording | None = None,
    ) -> WrenchSamples:
        """The samples with the motion of the sensor by a causal Kalman filter, as in liu2025.

        The acceleration lags behind the wrench; `from_pose` has no lag.

        Args:
            recording: with the position of the sensor
            mean_length: of the causal moving mean on wrench and motion, in samples
            position_std: noise of the position, [m]; from its differences by default
            rotation_std: noise of the orientation, [rad]; from its differences by default
            settle_s: left out at the start, while the filter converges, [s]
            decimate: whether to keep only two rows for each length of the mean
            earlier: recording whose motion tunes the filter; the recording itself by default, which
                no filter can know while it runs
        """
        t, position, quaternion, wrench, words = _pose_on_uniform_clock(recording)
        step_s = float((t[-1] - t[0]) / (len(t) - 1))
        stated = recording.sensor.motion_noise
        tuning_position = position
        tuning_quaternion = quaternion
        if earlier is not None:
            _, tuning_position, tuning_quaternion, _, _ = _pose_on_uniform_clock(earlier)
        kalman = PoseKalmanFilter.tuned(
            step_s,
            tuning_position,
            tuning_quaternion,
            position_std=stated.get("position") if position_std is None else position_std,
            rotation_std=stated.get("rotation") if rotation_std is None else rotation_std,
        )
        turned, moved = kalman.along(position, quaternion)
        averaged, orientation = _causal_mean(np.hstack([moved, wrench]), turned, mean_length)
        start = max(int(settle_s / step_s), mean_length)
        if len(t) - start < 20:
            raise InvalidSamples(
                f"{len(t)} rows are too few: the filter needs {settle_s:g} s to settle"
            )
        steps = [
            words,
            "motion from the pose by a causal Kalman filter",
            f"causal mean of {mean_length} samples",
        ]
        keep = slice(start, None, max(1, mean_length // 2) if decimate else 1)
        if keep.step > 1:
            steps.append(f"every {keep.step}. row kept")
        return cls(
            t[keep],
            averaged[keep, _WRENCH_AFTER_MOTION],
            np.diag(recording.wrench_std(wrench) ** 2 / mean_length),
            orientation[keep],
            averaged[keep, ACCELERATION],
            averaged[keep, ANGULAR_VELOCITY],
            averaged[keep, ANGULAR_ACCELERATION],
            np.tile(kalman.noise(mean_length), (len(t[keep]), 1, 1)),
            recording.sensor,
            (*recording.notes, *steps),
            recording.warnings,
            reading_steps(recording.wrench),
        )

    def __len__(self) -> int:
        return len(self.t)

    def features(self, gravity_base: Array) -> Array:
        """The twelve features of the motion, (N, 12).

        Args:
            gravity_base: (3,) [m/s^2], in the base frame
        """
        return features(
            np.einsum("nji,j->ni", self.R_base_sensor, gravity_base),
            self.acceleration,
            self.angular_velocity,
            self.angular_acceleration,
            self.covariance[:, ANGULAR_VELOCITY, ANGULAR_VELOCITY],
        )

    @property
    def feature_covariance(self) -> Array:
        """The covariance of the errors of the features, (N, 12, 12)."""
        return feature_covariance(self.angular_velocity, self.covariance)


@dataclass(frozen=True)
class _ZeroPhase:
    """A zero-phase low-pass filter, or none."""

    cutoff_hz: float | None
    rate_hz: float

    @classmethod
    def on(cls, t: Array, cutoff_hz: float | None) -> _ZeroPhase:
        return cls(cutoff_hz, float((len(t) - 1) / (t[-1] - t[0])))

    def __call__(self, x: Array) -> Array:
        if self.cutoff_hz is None:
            return x
        return low_pass(x, self.cutoff_hz, self.rate_hz)

    @property
    def gains(self) -> tuple[float, float, float]:
        return noise_gains(self.cutoff_hz, self.rate_hz)

    def kept(self, count: int, *, decimate: bool) -> slice:
        """The rows to keep: without the ends, and no more than the filter leaves independent."""
        if self.cutoff_hz is None:
            return slice(2, count - 2, 1)
        edge = int(np.ceil(_EDGE_PERIODS * self.rate_hz / self.cutoff_hz))
        if decimate:
            every = max(1, int(self.rate_hz / (_ROWS_PER_CUTOFF * self.cutoff_hz)))
        else:
            every = 1
        if count - 2 * edge < 20 * every:
            raise InvalidSamples(
                f"{count} rows at {self.rate_hz:g} Hz are too few for a low-pass at"
                f" {self.cutoff_hz:g} Hz; increase `cutoff_hz`"
            )
        return slice(edge, count - edge, every)

    def jump_variance(self, wrench: Array, row_noise: Array, keep: slice) -> Array:
        """What jumps of the wrench add to the noise of the kept rows, (k, 6)."""
        jumps = Jumps(FixedLag(self.cutoff_hz, self.rate_hz), row_noise, keep.step)
        return jumps.along(wrench, keep)

    def steps(self, t: Array, keep: slice) -> list[str]:
        """The steps of the preparation, in sentences."""
        cut = f"every {keep.step}. row kept, {t[keep.start]:.2g} s left out at both ends"
        if self.cutoff_hz is None:
            return [cut]
        return [f"zero-phase low-pass at {self.cutoff_hz:g} Hz on motion and wrench", cut]


def pose_motion(
    lag: FixedLag, position: Array, quaternion: Array
) -> tuple[Array, Array, Array, Array, float]:
    """Orientation, accelerations, angular velocity and speed in the middle of a window.

    All but the orientation, (3, 3), and the speed, [m/s], in the sensor frame, (3,).

    Args:
        lag: the filter
        position: of the sensor, (2 lag + 1, 3) [m], in the base frame
        quaternion: R_base_sensor as (x, y, z, w), (2 lag + 1, 4)
    """
    _, v, a = lag.smoothed(position)
    middle = quaternion[lag.lag]
    turn, w, alpha = lag.smoothed(rotation_vectors(middle, quaternion))
    R = (Rotation.from_quat(middle) * Rotation.from_rotvec(turn)).as_matrix()
    return R, R.T @ a, w, alpha, float(np.linalg.norm(v))


def pose_noise(
    position: Array,
    quaternion: Array,
    gains: tuple[float, float, float],
    position_std: float | None = None,
    rotation_std: float | None = None,
) -> Array:
    """Covariance of acceleration, angular velocity and acceleration from a pose, (9, 9).

    Args:
        position: of the sensor, (N, 3) [m]
        quaternion: R_base_sensor as (x, y, z, w), (N, 4)
        gains: what the filter makes of white noise, see `noise_gains`
        position_std: noise of the position, [m]; from its differences by default
        rotation_std: noise of the orientation, [rad]; from its differences by default
    """
    _, slope, curvature = gains
    linear = noise_or(position_std, position) ** 2
    turn = noise_or(rotation_std, rotation_vectors(quaternion[0], quaternion)) ** 2
    acceleration = np.full(3, linear.mean() * curvature)
    return np.diag(np.concatenate([acceleration, turn * slope, turn * curvature]))


def rotation_vectors(middle: Array, quaternion: Array) -> Array:
    """Rotation vectors from one orientation to others, (N, 3) [rad].

    Args:
        middle: the one orientation, a quaternion, (4,)
        quaternion: the others, (N, 4)
    """
    turns = Rotation.from_quat(middle).inv() * Rotation.from_quat(quaternion)
    return np.asarray(turns.as_rotvec())


def noise_or(std: float | None, x: Array) -> Array:
    """The standard deviation of the noise of signals, above zero, (k,).

    Args:
        std: stated for each signal; None to take that of its differences
        x: signals, (N, k)
    """
    if std is not None:
        return np.full(x.shape[1], std)
    return np.maximum(noise_of_differences(x), _LEAST_NOISE)


def _pose_on_uniform_clock(
    recording: WristRecording,
) -> tuple[Array, Array, Array, Array, str]:
    """Time, position, quaternion and wrench on a uniform clock, and what was done for it."""
    if recording.position is None:
        raise InvalidRecording(
            "the recording has no position of the sensor: its acceleration cannot be found from"
            " orientation alone; name the columns, or take the motion from joints or an inertial"
            " unit"
        )
    flat = recording.R_base_sensor.reshape(-1, 9)
    t, (position, R, wrench), words = recording.on_uniform_clock(
        [recording.position, flat, recording.wrench]
    )
    quaternion = Rotation.from_matrix(R.reshape(-1, 3, 3)).as_quat()
    return t, position, quaternion, wrench, words


def sensor_motion(
    robot: RobotModel, q: Array, v: Array, a: Array, T_flange_sensor: Array
) -> FrameMotion:
    """How the sensor moves, in its own frame.

    Args:
        robot: the arm
        q: joint positions, (N, n) [rad or m]
        v: joint velocities, (N, n) [rad/s or m/s]
        a: joint accelerations, (N, n) [rad/s^2 or m/s^2]
        T_flange_sensor: pose of the sensor in the flange frame, (4, 4)
    """
    R = T_flange_sensor[:3, :3]
    p = T_flange_sensor[:3, 3]
    times_p = skew(p)  # x @ times_p is the cross product of x and p
    flange = robot.frame_motion(q, v, a)
    w = flange.angular_velocity
    alpha = flange.angular_acceleration
    towards_axis = w * (w @ p)[:, None] - p * (w**2).sum(axis=1, keepdims=True)
    acceleration = flange.linear_acceleration + alpha @ times_p + towards_axis
    velocity = flange.linear_velocity + w @ times_p
    return FrameMotion(velocity @ R, w @ R, acceleration @ R, alpha @ R)


def joint_noise(
    robot: RobotModel,
    q: Array,
    std: Array,
    gains: tuple[float, float, float],
    T_flange_sensor: Array,
) -> Array:
    """The covariance of acceleration, angular velocity and angular acceleration, (N, 9, 9).

    Args:
        robot: the arm
        q: joint positions, (N, n) [rad or m]
        std: of the noise of q, (n,) [rad or m]
        gains: of the filter for white noise, see `noise_gains`
        T_flange_sensor: pose of the sensor in the flange frame, (4, 4)
    """
    N, n = q.shape
    R_base_flange = robot.forward_kinematics(q)[:, :3, :3]
    R_sensor_base = T_flange_sensor[:3, :3].T @ R_base_flange.transpose(0, 2, 1)
    J = robot.frame_jacobian(q)
    lever = skew(R_base_flange @ T_flange_sensor[:3, 3])
    angular = R_sensor_base @ J[:, 3:]
    linear = R_sensor_base @ (J[:, :3] - lever @ J[:, 3:])
    by_acceleration = np.concatenate([linear, np.zeros((N, 3, n)), angular], axis=1) * (
        std * np.sqrt(gains[2])
    )
    by_velocity = np.zeros((N, 9, n))
    by_velocity[:, ANGULAR_VELOCITY] = angular * (std * np.sqrt(gains[1]))
    return np.asarray(
        by_acceleration @ by_acceleration.transpose(0, 2, 1)
        + by_velocity @ by_velocity.transpose(0, 2, 1)
    )


def _checked_std(std: ArrayLike, n: int) -> Array:
    array = np.array(std, dtype=float)
    if array.shape not in ((), (n,)) or not np.isfinite(array).all() or (array < 0).any():
        raise InvalidSamples(f"position_std must be one or {n} non-negative numbers, got {array}")
    return np.broadcast_to(array, (n,))


def _causal_mean(signals: Array, quaternion: Array, length: int) -> tuple[Array, Array]:
    """The causal mean of signals, (N, n), and of the orientation, (N, 3, 3)."""
    same = np.sign((quaternion[1:] * quaternion[:-1]).sum(axis=1))
    aligned = quaternion * np.concatenate([[1.0], np.cumprod(same)])[:, None]
    out = moving_mean(np.hstack([signals, aligned]), length, causal=True)
    return out[:, : signals.shape[1]], Rotation.from_quat(out[:, signals.shape[1] :]).as_matrix()
