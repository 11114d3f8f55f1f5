"""What a moving load does to the sensor that carries it: Newton-Euler, linear in ten numbers and in twelve.

The sensor's origin accelerates with a, turns with w and alpha (all in the sensor frame); gravity is g. The
force and torque that make a load with mass m, first moment h and inertia I (about the sensor's origin) move
so are m (a - g) + alpha x h + w x (w x h) and h x (a - g) + I alpha + w x (I w). What the load does to the
sensor is the negative of that. With u = g - a, b = -alpha and Q = -w w'

    f   = m u + b x h + (Q - tr Q 1) h
    tau = h x u + I b + [e_ijk (Q I)_jk]

(liu2025 eq. (2) and (5), with the signs of mechanics and ten parameters instead of eleven.) So the wrench
is bilinear: linear in the ten numbers phi of `steelyard.inertia`, and linear in the twelve *features* x =
(u, b, Qxx, Qxy, Qyy, Qxz, Qyz, Qzz) of the motion,

    wrench_i = sum_lj  x_l  T_lij  phi_j,       T constant, (12, 6, 10).

Two things follow. A linear filter that acts alike on the features and on the wrench changes nothing in phi.
And errors of the motion enter linearly: with a covariance Sx of the features, the error of the model wrench
is B Sx B' with B = T phi, the same matrix at every sample; only w enters as a product, with the slope dQ =
-(w dw' + dw w') and the mean error -E[dw dw'], which is taken off.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from steelyard.arrays import Array
from steelyard.inertia import InertialParameters

FEATURES = ("ux", "uy", "uz", "bx", "by", "bz", "Qxx", "Qxy", "Qyy", "Qxz", "Qyz", "Qzz")
"""The twelve numbers of a motion that the wrench is linear in."""

_PAIRS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
_I, _J = np.array(_PAIRS).T


def features(
    gravity_sensor: Array,
    acceleration: Array,
    angular_velocity: Array,
    angular_acceleration: Array,
    velocity_covariance: Array | None = None,
) -> Array:
    """The twelve features of each sample, (N, 12), all arguments in the sensor frame.

    Args:
        gravity_sensor: where things fall, (N, 3) [m/s^2]
        acceleration: of the sensor's origin, gravity not included, (N, 3) [m/s^2]
        angular_velocity: (N, 3) [rad/s]
        angular_acceleration: (N, 3) [rad/s^2]
        velocity_covariance: of the errors of the angular velocity, (N, 3, 3); none by default
    """
    products = -angular_velocity[:, _I] * angular_velocity[:, _J]
    if velocity_covariance is not None:
        products = products + velocity_covariance[:, _I, _J]
    return np.column_stack([gravity_sensor - acceleration, -angular_acceleration, products])


def feature_slope(angular_velocity: Array) -> Array:
    """The derivative of the features by (acceleration, angular velocity, angular acceleration), (N, 12, 9).

    Args:
        angular_velocity: (N, 3) [rad/s], in the sensor frame
    """
    slope = np.zeros((len(angular_velocity), 12, 9))
    slope[:, :3, :3] = slope[:, 3:6, 6:9] = -np.eye(3)
    for row, (i, j) in enumerate(_PAIRS):
        slope[:, 6 + row, 3 + j] -= angular_velocity[:, i]
        slope[:, 6 + row, 3 + i] -= angular_velocity[:, j]
    return slope


def feature_covariance(angular_velocity: Array, covariance: Array) -> Array:
    """The covariance of the errors of the features, (N, 12, 12).

    Args:
        angular_velocity: (N, 3) [rad/s], in the sensor frame
        covariance: of (acceleration, angular velocity, angular acceleration), (N, 9, 9)
    """
    slope = feature_slope(angular_velocity)
    return np.asarray(slope @ covariance @ slope.transpose(0, 2, 1))


def wrench_regressor(x: Array) -> Array:
    """The matrix Y with `wrench = Y @ body.vector`, what the load does to the sensor, (N, 6, 10).

    Args:
        x: features, (N, 12)
    """
    return np.tensordot(x, wrench_tensor(), axes=(1, 0))


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


def _wrench(body: InertialParameters, x: Array) -> Array:
    u, b = x[:3], x[3:6]
    Q = np.zeros((3, 3))
    Q[_I, _J] = Q[_J, _I] = x[6:]
    h, QI = body.first_moment, Q @ body.inertia
    force = body.mass * u + np.cross(b, h) + (Q - np.trace(Q) * np.eye(3)) @ h
    gyroscopic = [QI[1, 2] - QI[2, 1], QI[2, 0] - QI[0, 2], QI[0, 1] - QI[1, 0]]
    return np.concatenate([force, np.cross(h, u) + body.inertia @ b + gyroscopic])
