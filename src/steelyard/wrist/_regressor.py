"""The wrench of a moving load on its sensor: Newton-Euler, bilinear in body and motion.

The sensor's origin has the acceleration a, the sensor the angular velocity w and the angular
acceleration alpha (all in the sensor frame); gravity is g. The force and torque that move a load
with mass m, first moment h and inertia I (about the sensor's origin) are m (a - g) + alpha x h + w
x (w x h) and h x (a - g) + I alpha + w x (I w). The load exerts the negative of both on the sensor.
With u = g - a, b = -alpha and Q = -w w'

    f   = m u + b x h + (Q - tr Q 1) h
    tau = h x u + I b + [e_ijk (Q I)_jk]

(liu2025 eq. (2) and (5), with the signs of mechanics and ten parameters instead of eleven.) So the
wrench is bilinear: linear in the ten numbers phi of `steelyard.inertia`, and linear in the twelve
*features* x = (u, b, Qxx, Qxy, Qyy, Qxz, Qyz, Qzz) of the motion,

    wrench_i = sum_lj  x_l  T_lij  phi_j,       T constant, (12, 6, 10).

Two properties follow. The same linear filter on features and wrench leaves phi unchanged. And
errors of the motion enter linearly: with a covariance Sx of the features, the modelled wrench has
the error covariance B Sx B' with B = T phi, the same matrix at every sample. Only w enters as a
product, with the derivative dQ = -(w dw' + dw w') and the mean error -E[dw dw'], which is
subtracted.

The direction of gravity in the base frame depends on the mounting. An upright arm has gravity_base
= (0, 0, -g). Tilted by U about x and V about y (liu2025 eq. (6)),

    gravity_base = g (cos U sin V, -sin U, -cos U cos V)                               liu2025 eq.
    (10)

and inversely, with corrected signs in eq. (19),

    U = arcsin(-y / g),   V = arctan2(x, -z).

For an arm on a wall or a ceiling the same two angles are taken in the frame whose -z is its nominal
gravity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array, freeze, gravity_vector
from steelyard.errors import InvalidRobot
from steelyard.inertia import InertialParameters

FEATURES = ("ux", "uy", "uz", "bx", "by", "bz", "Qxx", "Qxy", "Qyy", "Qxz", "Qyz", "Qzz")
"""The twelve numbers of a motion in which the wrench is linear."""

BODY = slice(0, 10)
"""The inertial parameters among the eighteen unknowns of a wrist sensor."""

DRIFT = slice(10, 16)
"""The zero drifts of force and torque among the eighteen unknowns."""

TILT = slice(16, 18)
"""The tilt U and V of the base among the eighteen unknowns."""

ACCELERATION = slice(0, 3)
ANGULAR_VELOCITY = slice(3, 6)
ANGULAR_ACCELERATION = slice(6, 9)
"""Places among the nine numbers of a motion of the sensor, and in their covariance."""

_U = slice(0, 3)  # gravity less acceleration, among the features
_B = slice(3, 6)  # angular acceleration with the opposite sign
_Q_ENTRIES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
_ROWS_OF_Q, _COLUMNS_OF_Q = np.array(_Q_ENTRIES).T


def features(
    gravity_sensor: Array,
    acceleration: Array,
    angular_velocity: Array,
    angular_acceleration: Array,
    velocity_covariance: Array | None = None,
) -> Array:
    """The twelve features of each sample, (N, 12), all arguments in the sensor frame.

    Args:
        gravity_sensor: gravity, (N, 3) [m/s^2]
        acceleration: of the sensor's origin, gravity not included, (N, 3) [m/s^2]
        angular_velocity: (N, 3) [rad/s]
        angular_acceleration: (N, 3) [rad/s^2]
        velocity_covariance: of the errors of the angular velocity, (N, 3, 3); none by default
    """
    products = -angular_velocity[:, _ROWS_OF_Q] * angular_velocity[:, _COLUMNS_OF_Q]
    if velocity_covariance is not None:
        products = products + velocity_covariance[:, _ROWS_OF_Q, _COLUMNS_OF_Q]
    return np.column_stack([gravity_sensor - acceleration, -angular_acceleration, products])


def feature_covariance(angular_velocity: Array, covariance: Array) -> Array:
    """The covariance of the errors of the features, (N, 12, 12).

    Args:
        angular_velocity: (N, 3) [rad/s], in the sensor frame
        covariance: of (acceleration, angular velocity, angular acceleration), (N, 9, 9)
    """
    slope = _feature_slope(angular_velocity)
    return np.asarray(slope @ covariance @ slope.transpose(0, 2, 1))


def wrench_regressor(x: Array) -> Array:
    """The matrix Y, (N, 6, 10), with which Y @ body.vector is the wrench of a load on the sensor.

    Args:
        x: features of the motion, (N, 12)
    """
    return np.tensordot(x, wrench_tensor(), axes=(1, 0))


def wrench_slope(phi: Array) -> Array:
    """The derivative B of a wrench by the features, (6, 12).

    Args:
        phi: ten inertial parameters, (10,)
    """
    return np.asarray((wrench_tensor() @ phi).T)


@cache
def wrench_tensor() -> Array:
    """The constant T of `wrench_i = x_l T_lij phi_j`, (12, 6, 10)."""
    T = np.empty((12, 6, 10))
    for j, unit in enumerate(np.eye(10)):
        body = InertialParameters.from_vector(unit)
        for k, x in enumerate(np.eye(12)):
            T[k, :, j] = _wrench(body, x)
    T.setflags(write=False)
    return T


@dataclass(frozen=True, eq=False)
class BaseGravity:
    """Gravity in the base frame, and its change with the tilt U and V of the base.

    Attributes:
        nominal: gravity without a tilt, (3,) [m/s^2], in the base frame
    """

    nominal: Array

    def __post_init__(self) -> None:
        freeze(self, "nominal")
        g = self.nominal
        if g.shape != (3,) or not np.isfinite(g).all() or not np.linalg.norm(g) > 0:
            raise InvalidRobot(
                f"gravity_base must be three finite numbers, not all zero [m/s^2], got {g}"
            )
        gravity_vector(g, InvalidRobot)

    def tilted(self, angles: ArrayLike) -> Array:
        """Gravity in the frame of a tilted base, (3,) [m/s^2].

        Args:
            angles: U and V, (2,) [rad]
        """
        U, V = np.asarray(angles, dtype=float)
        direction = [np.cos(U) * np.sin(V), -np.sin(U), -np.cos(U) * np.cos(V)]
        return np.asarray(self._upright @ direction * np.linalg.norm(self.nominal))

    def tilt_columns(self, phi: Array, R_base_sensor: Array, angles: ArrayLike) -> Array:
        """The derivative of the wrench of a load by the angles U and V of the base, (N, 6, 2).

        Args:
            phi: ten inertial parameters, (10,)
            R_base_sensor: orientation of the sensor, (N, 3, 3)
            angles: U and V, (2,) [rad]
        """
        slope = self.slope(angles)
        return np.asarray(wrench_slope(phi)[:, :3] @ (R_base_sensor.transpose(0, 2, 1) @ slope))

    def slope(self, angles: ArrayLike) -> Array:
        """The derivative of `tilted` by U and V, (3, 2) [m/s^2].

        Args:
            angles: U and V, (2,) [rad]
        """
        U, V = np.asarray(angles, dtype=float)
        by_U = [-np.sin(U) * np.sin(V), -np.cos(U), np.sin(U) * np.cos(V)]
        by_V = [np.cos(U) * np.cos(V), 0.0, np.cos(U) * np.sin(V)]
        return np.asarray(
            self._upright @ np.column_stack([by_U, by_V]) * np.linalg.norm(self.nominal)
        )

    def inclination(self, gravity_base: Array) -> Array:
        """The angles U and V, (2,) [rad], of a direction of gravity.

        Args:
            gravity_base: of any length, (3,), in the base frame
        """
        x, y, z = self._upright.T @ gravity_base / np.linalg.norm(gravity_base)
        return np.array([np.arcsin(np.clip(-y, -1.0, 1.0)), np.arctan2(x, -z)])

    @cached_property
    def _upright(self) -> Array:
        """Rotation of the frame with -z along nominal gravity, in the base frame, (3, 3)."""
        up = -self.nominal / np.linalg.norm(self.nominal)
        axis = np.cross([0.0, 0.0, 1.0], up)
        cosine = up[2]
        if cosine < -1 + 1e-12:
            return np.diag([1.0, -1.0, -1.0])
        S = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
        return np.asarray(np.eye(3) + S + S @ S / (1 + cosine))


def _feature_slope(angular_velocity: Array) -> Array:
    """The derivative of the features by acceleration and angular motion, (N, 12, 9)."""
    slope = np.zeros((len(angular_velocity), 12, 9))
    slope[:, _U, ACCELERATION] = -np.eye(3)
    slope[:, _B, ANGULAR_ACCELERATION] = -np.eye(3)
    for row, (i, j) in enumerate(_Q_ENTRIES):
        slope[:, 6 + row, 3 + j] -= angular_velocity[:, i]
        slope[:, 6 + row, 3 + i] -= angular_velocity[:, j]
    return slope


def _wrench(body: InertialParameters, x: Array) -> Array:
    u = x[_U]
    b = x[_B]
    Q = np.zeros((3, 3))
    Q[_ROWS_OF_Q, _COLUMNS_OF_Q] = Q[_COLUMNS_OF_Q, _ROWS_OF_Q] = x[6:]
    h = body.first_moment
    QI = Q @ body.inertia
    force = body.mass * u + np.cross(b, h) + (Q - np.trace(Q) * np.eye(3)) @ h
    gyroscopic = [QI[1, 2] - QI[2, 1], QI[2, 0] - QI[0, 2], QI[0, 1] - QI[1, 0]]
    return np.concatenate([force, np.cross(h, u) + body.inertia @ b + gyroscopic])
