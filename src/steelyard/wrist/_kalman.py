"""The motion of the sensor from its pose, by a Kalman filter (Farsoni 2017).

The only input is the pose of the sensor. The state is position, velocity and
acceleration in the base, orientation, angular velocity and angular acceleration in the sensor
frame; the third derivatives are white noise. Over a step T

    p <- p + T v + T^2/2 a,   v <- v + T a;        R <- R exp(T w + T^2/2 alpha),   w <- w + T alpha

and a measured pose corrects with the gains K = (K0, K1, K2) of the same chain of three integrators,

    y = p_measured - p,                    p <- p + K0 y,  v <- v + K1 y,  a <- a + K2 y
    y = log(R' R_measured),                R <- R exp(K0 y),  w <- w + K1 y,  alpha <- alpha + K2 y

with log the rotation vector. The rotation is kept as a unit quaternion. Noise and jerk are the same
for the three axes, so the covariance is that of one axis. It does not depend on the data, so the
gains are computed before the first sample. The intensity of the jerk is chosen by maximum
likelihood of the innovations.

Restricted total least squares needs only the part of the filter's error that comes from noise of
the pose: noise through the filter's impulse response. The lag of the filter is not noise and not in
the covariance. Wrench and motion pass through the same moving mean (liu2025: 10 samples), which
delays both equally.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_discrete_are
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array
from steelyard.signals import noise_of_differences
from steelyard.wrist._regressor import ACCELERATION, ANGULAR_ACCELERATION, ANGULAR_VELOCITY

_JERK_GRID = 10.0 ** np.arange(-3, 7.01, 0.5)  # intensities to choose from
_MIN_NOISE = 1e-9  # [m or rad]
_CONJUGATE = np.array([-1.0, -1.0, -1.0, 1.0])  # times a quaternion (x, y, z, w)


class PoseFilterState(NamedTuple):
    """The state of a `PoseKalmanFilter`."""

    linear: Array  # position, velocity, acceleration, (3, 3) [m, m/s, m/s^2], in the base frame
    quaternion: Array  # R_base_sensor as (x, y, z, w), (4,)
    angular: Array  # angular velocity, acceleration, (2, 3) [rad/s, rad/s^2], in the sensor frame
    k: int  # number of samples


@dataclass(frozen=True, eq=False)
class _IntegratorFilter:
    """The Kalman filter of one axis: three integrators driven by white jerk; position measured."""

    step_s: float  # time between two samples, [s]
    noise: float  # standard deviation of a measurement, [m or rad]
    jerk: float  # intensity of the jerk, [unit^2/s^5]

    @property
    def transition(self) -> Array:
        """The matrix of the transition to the next sample, (3, 3)."""
        T = self.step_s
        return np.array([[1.0, T, T**2 / 2], [0.0, 1.0, T], [0.0, 0.0, 1.0]])

    @property
    def process(self) -> Array:
        """The covariance that jerk adds in one step, (3, 3)."""
        T = self.step_s
        rows = [
            [T**5 / 20, T**4 / 8, T**3 / 6],
            [T**4 / 8, T**3 / 3, T**2 / 2],
            [T**3 / 6, T**2 / 2, T],
        ]
        return self.jerk * np.array(rows)

    def steady(self) -> tuple[Array, float]:
        """The gains after many samples, (3,), and the variance of the innovations."""
        unit = np.array([1.0, 1 / self.step_s, 1 / self.step_s**2]) * self.noise
        F = self.transition / np.outer(unit, 1 / unit)
        Q = self.process / np.outer(unit, unit)
        predicted = solve_discrete_are(F.T, np.eye(3)[:, :1], Q, np.eye(1))
        gain = predicted[:, 0] / (predicted[0, 0] + 1.0)
        return gain * unit / self.noise, float((predicted[0, 0] + 1.0) * self.noise**2)

    def gains(self, count: int) -> Array:
        """The gains from the first sample on, (count, 3), with an uninformative initial state."""
        F = self.transition
        Q = self.process
        R = self.noise**2
        P = np.diag([R, 1.0, 100.0])
        K = np.empty((count, 3))
        for k in range(count):
            P = F @ P @ F.T + Q
            K[k] = P[:, 0] / (P[0, 0] + R)
            P = P - np.outer(K[k], P[0])
            P = (P + P.T) / 2
        return K

    def likelihood(self, positions: Array) -> float:
        """The logarithm of the likelihood of measured positions, (N, n), steady gains assumed."""
        from scipy.signal import lfilter, ss2tf  # slow to import

        gain, variance = self.steady()
        F = self.transition
        b, a = ss2tf(
            F @ (np.eye(3) - np.outer(gain, [1, 0, 0])),
            (F @ gain)[:, None],
            -np.eye(3)[:1],
            [[1.0]],
        )
        innovations = lfilter(b[0], a, positions - positions[0], axis=0)
        late = innovations[len(innovations) // 10 :]
        return float(-0.5 * (late**2 / variance + np.log(variance)).sum())

    def noise_through(self, mean_length: int) -> Array:
        """The covariance of (position, velocity, acceleration) by noise after a mean, (3, 3)."""
        gain, _ = self.steady()
        F = self.transition
        closed = (np.eye(3) - np.outer(gain, [1, 0, 0])) @ F
        radius = max(np.abs(np.linalg.eigvals(closed)).max(), 0.1)
        count = min(
            int(np.ceil(np.log(1e-8) / np.log(min(radius, 1 - 1e-6)))) + mean_length, 200_000
        )
        response = np.empty((count, 3))
        x = gain.copy()
        for k in range(count):
            response[k] = x
            x = closed @ x
        window = np.ones(mean_length) / mean_length
        smooth = np.column_stack([np.convolve(response[:, i], window) for i in range(3)])
        return np.asarray(self.noise**2 * smooth.T @ smooth)

    @classmethod
    def tuned(cls, step_s: float, noise: float, positions: Array) -> _IntegratorFilter:
        """The filter with the most likely jerk for measured positions, (N, n)."""
        made = [cls(step_s, noise, float(jerk)) for jerk in _JERK_GRID]
        return max(made, key=lambda one: one.likelihood(positions))


@dataclass(frozen=True, eq=False)
class PoseKalmanFilter:
    """The causal filter on poses: `init`, `step`; the state is a value.

    Attributes:
        step_s: time between two samples, [s]
        position_std: standard deviation of a measured position, [m]
        rotation_std: standard deviation of a measured orientation, [rad]
        position_jerk: intensity of the jerk of the position, [m^2/s^5]
        rotation_jerk: intensity of the jerk of the orientation, [rad^2/s^5]
        settle: number of samples after which the gains are constant
    """

    step_s: float
    position_std: float
    rotation_std: float
    position_jerk: float = 1.0
    rotation_jerk: float = 1.0
    settle: int = 500
    _linear: _IntegratorFilter = field(init=False, repr=False)
    _angular: _IntegratorFilter = field(init=False, repr=False)
    _gains: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        linear = _IntegratorFilter(self.step_s, self.position_std, self.position_jerk)
        angular = _IntegratorFilter(self.step_s, self.rotation_std, self.rotation_jerk)
        object.__setattr__(self, "_linear", linear)
        object.__setattr__(self, "_angular", angular)
        both = np.array([linear.gains(self.settle), angular.gains(self.settle)])
        object.__setattr__(self, "_gains", both)

    @classmethod
    def tuned(
        cls,
        step_s: float,
        position: Array,
        quaternion: Array,
        *,
        position_std: float | None = None,
        rotation_std: float | None = None,
    ) -> PoseKalmanFilter:
        """The filter with the most likely jerk for a measured motion.

        Args:
            step_s: time between two samples, [s]
            position: measured, (N, 3) [m], in the base frame
            quaternion: R_base_sensor as (x, y, z, w), measured, (N, 4)
            position_std: noise of the position, [m]; from its differences by default
            rotation_std: noise of the orientation, [rad]; from its differences by default
        """
        R = Rotation.from_quat(quaternion)
        turns = (R[:-1].inv() * R[1:]).as_rotvec()
        path = np.concatenate([np.zeros((1, 3)), np.cumsum(turns, axis=0)])
        parts = []
        for x, std in ((position, position_std), (path, rotation_std)):
            if std is None:
                noise = float(np.sqrt((noise_of_differences(x) ** 2).mean()))
            else:
                noise = std
            parts.append(_IntegratorFilter.tuned(step_s, max(noise, _MIN_NOISE), x))
        linear, angular = parts
        return cls(step_s, linear.noise, angular.noise, linear.jerk, angular.jerk)

    def noise(self, mean_length: int = 1) -> Array:
        """The covariance of acceleration, angular velocity and acceleration by noise, (9, 9).

        Args:
            mean_length: of the moving mean that follows the filter, in samples
        """
        linear, angular = (one.noise_through(mean_length) for one in (self._linear, self._angular))
        covariance = np.zeros((9, 9))
        covariance[:3, :3] = linear[2, 2] * np.eye(3)
        covariance[3:, 3:] = np.kron(angular[1:, 1:], np.eye(3))
        return covariance

    def init(self, position: Array, quaternion: Array) -> PoseFilterState:
        """The state of a sensor at rest.

        Args:
            position: (3,) [m], in the base frame
            quaternion: R_base_sensor as (x, y, z, w), (4,)
        """
        linear = np.zeros((3, 3))
        linear[0] = position
        return PoseFilterState(linear, np.array(quaternion, dtype=float), np.zeros((2, 3)), 0)

    def step(self, state: PoseFilterState, position: Array, quaternion: Array) -> PoseFilterState:
        """The next state.

        Args:
            state: after the previous sample
            position: measured, (3,) [m], in the base frame
            quaternion: R_base_sensor as (x, y, z, w), measured, (4,)
        """
        K, G = self._gains[:, min(state.k, self.settle - 1)]
        T = self.step_s
        linear = self._linear.transition @ state.linear
        linear = linear + K[:, None] * (position - linear[0])
        w, alpha = state.angular
        predicted = _product(state.quaternion, _exponential(T * w + T**2 / 2 * alpha))
        y = _logarithm(_product(predicted * _CONJUGATE, quaternion))
        turned = _product(predicted, _exponential(G[0] * y))
        angular = np.array([w + T * alpha + G[1] * y, alpha + G[2] * y])
        return PoseFilterState(linear, turned / np.sqrt(turned @ turned), angular, state.k + 1)

    def along(self, position: Array, quaternion: Array) -> tuple[Array, Array]:
        """Orientation as a quaternion, (N, 4), and the motion, (N, 9), of a measured pose.

        The motion is acceleration, angular velocity and angular acceleration, in the sensor frame.

        Args:
            position: (N, 3) [m], in the base frame
            quaternion: R_base_sensor as (x, y, z, w), (N, 4)
        """
        state = self.init(position[0], quaternion[0])
        orientation = np.empty((len(position), 4))
        moved = np.empty((len(position), 9))
        for k in range(len(position)):
            state = self.step(state, position[k], quaternion[k])
            orientation[k] = state.quaternion
            moved[k, ACCELERATION] = state.linear[2]
            moved[k, ANGULAR_VELOCITY] = state.angular[0]
            moved[k, ANGULAR_ACCELERATION] = state.angular[1]
        to_sensor = Rotation.from_quat(orientation).inv()
        moved[:, ACCELERATION] = to_sensor.apply(moved[:, ACCELERATION])
        return orientation, moved


def _product(a: Array, b: Array) -> Array:
    """The product of two quaternions (x, y, z, w)."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return np.array(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ]
    )


def _exponential(turn: Array) -> Array:
    """The quaternion of a rotation vector, (3,) [rad]."""
    angle = float(np.sqrt(turn @ turn))
    if angle < 1e-9:
        share = 0.5
    else:
        share = np.sin(angle / 2) / angle
    return np.append(share * turn, np.cos(angle / 2))


def _logarithm(a: Array) -> Array:
    """The rotation vector of a quaternion, (3,) [rad]."""
    if a[3] < 0:
        a = -a
    sine = float(np.sqrt(a[:3] @ a[:3]))
    if sine < 1e-9:
        return np.asarray(2.0 * a[:3])
    return np.asarray(2 * np.arctan2(sine, a[3]) / sine * a[:3])
