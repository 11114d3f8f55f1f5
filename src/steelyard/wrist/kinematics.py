"""How the sensor moves, offline: from joints and the robot model, or from an inertial unit beside the sensor.

Both use zero-phase low-pass filters and central differences, and send the wrench through the same filter; a
linear filter that acts alike on both sides of wrench = Y phi changes nothing in phi. The noise is known: an
encoder's (or the unit's) noise of variance s^2 becomes s^2 times the sum of the squared impulse response of
filter and differences, and goes through the Jacobian into acceleration, angular velocity and angular
acceleration of the sensor,

    a = J_v qdd + ...,   w = J_w qd,   alpha = J_w qdd + ...

For a motion one sample at a time see `kalman`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steelyard.arrays import Array
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.recording import Recording
from steelyard.robot import RobotModel
from steelyard.signals import central_differences, low_pass
from steelyard.wrist.recording import WrenchRecording
from steelyard.wrist.samples import (
    WrenchSamples,
    noise_of_differences,
    on_uniform_clock,
    zero_phase_gain,
)
from steelyard.wrist.sensor import WristSensor

_EDGE_PERIODS = 3.0  # of the cut-off, left out at both ends, where the filter sees too little
_ROWS_PER_CUTOFF = 4.0  # rows that are kept for each period of the cut-off


@dataclass(frozen=True, eq=False)
class _Clocked:
    """Uniform signals and how they were made."""

    t: Array
    wrench: Array
    noise: Array
    steps: list[str]

    @property
    def rate_hz(self) -> float:
        return float((len(self.t) - 1) / (self.t[-1] - self.t[0]))


def samples_from_joints(
    robot: RobotModel,
    recording: Recording,
    sensor: WristSensor | None = None,
    *,
    cutoff_hz: float | None = 20.0,
    position_std: ArrayLike | None = None,
    decimate: bool = True,
) -> WrenchSamples:
    """The motion of the sensor from joint positions, and its wrench, ready to fit.

    Args:
        robot: the arm
        recording: with joint positions and a wrench
        sensor: where it sits; at the flange by default
        cutoff_hz: of the zero-phase low-pass on positions and wrench, [Hz]; None for none
        position_std: noise of the joint positions, () or (n,) [rad or m]; from their differences by default
        decimate: keep only as many rows as the filter leaves independent
    """
    measured = WrenchRecording.of_joints(recording, robot, sensor)
    whole = np.isfinite(np.hstack([recording.q, recording.wrench])).all(axis=1)  # type: ignore[list-item]
    t, (q, wrench), words = on_uniform_clock(measured.t, [recording.q[whole], measured.wrench])
    clocked = _Clocked(t, wrench, _wrench_noise(measured, wrench), [words])
    rate = clocked.rate_hz
    std = noise_of_differences(q) if position_std is None else _checked_std(position_std, robot.n)
    smooth = q if cutoff_hz is None else low_pass(q, cutoff_hz, rate)
    v, a = central_differences(smooth, rate)
    keep = _kept(len(t), cutoff_hz, rate, decimate=decimate)
    q, v, a = smooth[keep], v[keep], a[keep]
    motion = _sensor_motion(robot, q, v, a, measured.sensor.T_flange_sensor)
    gains = zero_phase_gain(cutoff_hz, rate)
    noise = _joint_noise(robot, q, std=std, gains=gains, T_flange_sensor=measured.sensor.T_flange_sensor)
    clocked.steps.append(f"motion from joints, noise {np.array2string(std, precision=2)} rad or m")
    return _made(clocked, measured, keep, cutoff_hz=cutoff_hz, motion=motion, noise=noise)


def samples_from_imu(
    recording: WrenchRecording,
    *,
    cutoff_hz: float | None = 20.0,
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
        decimate: keep only as many rows as the filter leaves independent
    """
    if recording.acceleration is None or recording.angular_velocity is None:
        raise InvalidRecording(
            "the recording has no acceleration and angular velocity of the sensor; name their columns,"
            " or take the motion from joints or from the pose"
        )
    t, (R, acceleration, velocity, wrench), words = on_uniform_clock(
        recording.t,
        [
            recording.R_base_sensor.reshape(-1, 9),
            recording.acceleration,
            recording.angular_velocity,
            recording.wrench,
        ],
    )
    clocked = _Clocked(t, wrench, _wrench_noise(recording, wrench), [words, "motion from an inertial unit"])
    rate = clocked.rate_hz
    stds = [
        noise_of_differences(x) if std is None else np.full(3, std)
        for x, std in ((acceleration, acceleration_std), (velocity, velocity_std))
    ]
    if cutoff_hz is not None:
        acceleration, velocity = (low_pass(x, cutoff_hz, rate) for x in (acceleration, velocity))
    turning = central_differences(velocity, rate)[0]
    keep = _kept(len(t), cutoff_hz, rate, decimate=decimate)
    value, slope, _ = zero_phase_gain(cutoff_hz, rate)
    variance = np.concatenate([stds[0] ** 2 * value, stds[1] ** 2 * value, stds[1] ** 2 * slope])
    noise = np.tile(np.diag(variance), (len(t[keep]), 1, 1))
    U, _, Vt = np.linalg.svd(R.reshape(-1, 3, 3)[keep])
    motion = (U @ Vt, acceleration[keep], velocity[keep], turning[keep])
    return _made(clocked, recording, keep, cutoff_hz=cutoff_hz, motion=motion, noise=noise)


def _made(
    clocked: _Clocked,
    measured: WrenchRecording,
    keep: slice,
    *,
    cutoff_hz: float | None,
    motion: tuple[Array, Array, Array, Array],
    noise: Array,
) -> WrenchSamples:
    wrench, gain = clocked.wrench, 1.0
    steps = list(clocked.steps)
    if cutoff_hz is not None:
        wrench = low_pass(wrench, cutoff_hz, clocked.rate_hz)
        gain = zero_phase_gain(cutoff_hz, clocked.rate_hz)[0]
        steps.append(f"zero-phase low-pass at {cutoff_hz:g} Hz on motion and wrench")
    steps.append(f"every {keep.step}. row kept, {clocked.t[keep.start]:.2g} s left out at both ends")
    return WrenchSamples(
        clocked.t[keep],
        wrench[keep],
        np.diag(clocked.noise**2 * gain),
        motion[0],
        motion[1],
        motion[2],
        motion[3],
        noise,
        measured.sensor,
        (*measured.notes, *steps),
    )


def _wrench_noise(recording: WrenchRecording, wrench: Array) -> Array:
    """The standard deviation of a reading, (6,), never 0."""
    if recording.sensor.noise is not None:
        return recording.sensor.noise
    return np.asarray(np.maximum(noise_of_differences(wrench), 1e-5 * np.abs(wrench).max() + 1e-12))


def _kept(count: int, cutoff_hz: float | None, rate_hz: float, *, decimate: bool) -> slice:
    """The rows that stay: without the ends, and no more than the filter leaves independent."""
    if cutoff_hz is None:
        return slice(2, count - 2, 1)
    edge = int(np.ceil(_EDGE_PERIODS * rate_hz / cutoff_hz))
    every = max(1, int(rate_hz / (_ROWS_PER_CUTOFF * cutoff_hz))) if decimate else 1
    if count - 2 * edge < 20 * every:
        raise InvalidSamples(
            f"{count} rows at {rate_hz:g} Hz are too few for a low-pass at {cutoff_hz:g} Hz; raise cutoff_hz"
        )
    return slice(edge, count - edge, every)


def _sensor_motion(
    robot: RobotModel, q: Array, v: Array, a: Array, T_flange_sensor: Array
) -> tuple[Array, Array, Array, Array]:
    """Orientation, acceleration, angular velocity and acceleration of the sensor."""
    R, p = T_flange_sensor[:3, :3], T_flange_sensor[:3, 3]
    flange = robot.frame_motion(q, v, a)
    w, alpha = flange.angular_velocity, flange.angular_acceleration
    origin = flange.linear_acceleration + np.cross(alpha, p) + np.cross(w, np.cross(w, p))
    orientation = robot.forward_kinematics(q)[:, :3, :3] @ R
    return orientation, origin @ R, w @ R, alpha @ R


def _joint_noise(
    robot: RobotModel, q: Array, *, std: Array, gains: tuple[float, float, float], T_flange_sensor: Array
) -> Array:
    """The covariance of (acceleration, angular velocity, angular acceleration) of the sensor, (N, 9, 9)."""
    R, p = T_flange_sensor[:3, :3], T_flange_sensor[:3, 3]
    N, n = q.shape
    linear, angular = np.empty((N, 3, n)), np.empty((N, 3, n))
    for j in range(n):
        unit = np.tile(np.eye(n)[j], (N, 1))
        column = robot.frame_motion(q, unit, np.zeros((N, n)))
        angular[:, :, j] = column.angular_velocity @ R
        linear[:, :, j] = (column.linear_velocity + np.cross(column.angular_velocity, p)) @ R
    by_acceleration = np.concatenate([linear, np.zeros((N, 3, n)), angular], axis=1) * (
        std * np.sqrt(gains[2])
    )
    by_velocity = np.zeros((N, 9, n))
    by_velocity[:, 3:6] = angular * (std * np.sqrt(gains[1]))
    return np.asarray(
        by_acceleration @ by_acceleration.transpose(0, 2, 1) + by_velocity @ by_velocity.transpose(0, 2, 1)
    )


def _checked_std(std: ArrayLike, n: int) -> Array:
    array = np.array(std, dtype=float)
    if array.shape not in ((), (n,)) or not np.isfinite(array).all() or (array < 0).any():
        raise InvalidSamples(f"position_std must be one or {n} numbers, not negative, got {array}")
    return np.broadcast_to(array, (n,))
