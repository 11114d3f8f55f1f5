"""The linear static stage as liu2025 prints it: least squares, and total least squares by the SVD.

    [f; tau] = [R' 1 0 0; 0 0 -f^ 1] (kappa, f0, c, iota),   iota = tau0 - c x f0        eq. (13)-(18)

(f^ is the matrix of the cross product with the measured force.) Total least squares takes the right singular
vector of the smallest singular value of [B F], eq. (27), (28). Mass, tilt and torque drift follow with the
signs of mechanics: m = |kappa| / g, tau0 = iota + c x f0. The covariance is that of the measured wrenches,
sent through the derivative of the whole calculation.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from steelyard.arrays import Array
from steelyard.wrist.gravity import inclination
from steelyard.wrist.rest import Postures

LinearMethod = Literal["ls", "tls"]


def solve_linear(wrench: Array, R_base_sensor: Array, nominal: Array, method: LinearMethod) -> Array:
    """The twelve numbers of the static stage, (12,).

    Args:
        wrench: what the load does to the sensor, (N, 6) [N, Nm], in the sensor frame
        R_base_sensor: (N, 3, 3)
        nominal: gravity without a tilt, (3,) [m/s^2], in the base frame
        method: 'ls' or 'tls'
    """
    B, F = _rows(wrench, R_base_sensor), wrench.ravel()
    if method == "ls":
        psi = np.linalg.lstsq(B, F, rcond=1e-12)[0]
    else:
        v = np.linalg.svd(np.column_stack([B, F]), full_matrices=False)[2][-1]
        psi = -v[:-1] / v[-1]
    kappa, f0, com, iota = psi.reshape(4, 3)
    mass = np.linalg.norm(kappa) / np.linalg.norm(nominal)
    torque = iota + np.cross(com, f0)
    return np.concatenate([[mass], mass * com, f0, torque, inclination(nominal, np.asarray(kappa))])


def spread_of_linear(postures: Postures, nominal: Array, method: LinearMethod, variance: Array) -> Array:
    """The covariance of the twelve numbers, (12, 12).

    Args:
        postures: at rest
        nominal: gravity without a tilt, (3,) [m/s^2], in the base frame
        method: 'ls' or 'tls'
        variance: of the wrenches, (N, 6)
    """
    total = np.zeros((12, 12))
    scale = np.maximum(np.abs(postures.wrench).max(), 1.0) * 1e-6
    for k, i in np.ndindex(postures.wrench.shape):
        ends = []
        for sign in (1, -1):
            moved = postures.wrench.copy()
            moved[k, i] += sign * scale
            ends.append(solve_linear(moved, postures.R_base_sensor, nominal, method))
        slope = (ends[0] - ends[1]) / (2 * scale)
        total += variance[k, i] * np.outer(slope, slope)
    return total


def _rows(wrench: Array, R_base_sensor: Array) -> Array:
    N = len(wrench)
    B = np.zeros((N, 6, 12))
    B[:, :3, :3] = R_base_sensor.transpose(0, 2, 1)
    B[:, :3, 3:6] = B[:, 3:, 9:] = np.eye(3)
    fx, fy, fz = wrench[:, :3].T
    B[:, 3, 7], B[:, 3, 8] = fz, -fy
    B[:, 4, 6], B[:, 4, 8] = -fz, fx
    B[:, 5, 6], B[:, 5, 7] = fy, -fx
    return B.reshape(-1, 12)
