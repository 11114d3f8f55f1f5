"""The linear static stage as liu2025 prints it: least squares, and total least squares by the SVD.

    [f; tau] = [R' 1 0 0; 0 0 -f^ 1] (kappa, f0, c, iota),   iota = tau0 - c x f0        eq. (13)-(18)

(f^ is the matrix of the cross product with the measured force.) Total least squares takes the right singular
vector of the smallest singular value of [B F], eq. (27), (28), which suspects the rotations and the identity
of the same errors as the forces. Mass, tilt and torque drift follow with the signs of mechanics:
m = |kappa| / g, tau0 = iota + c x f0. The covariance is that of the measured wrenches, sent through the
derivative of the whole calculation.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.arrays import Array
from steelyard.verdict import Verdict
from steelyard.wrist import Postures, StaticWeight
from steelyard.wrist.regressor import BaseGravity, wrench_regressor

LinearMethod = Literal["ls", "tls"]


def weigh_linear(
    postures: Postures, method: LinearMethod = "tls", *, gravity_base: ArrayLike = (0.0, 0.0, -9.81)
) -> StaticWeight:
    """Mass, centre of mass, zero drifts and tilt of the base, from postures at rest.

    Args:
        postures: at rest; those with the same gravity direction are left out
        method: 'ls' or 'tls'
        gravity_base: gravity without a tilt, (3,) [m/s^2], in the base frame
    """
    gravity = BaseGravity(np.array(gravity_base, dtype=float))
    nominal = gravity.nominal
    chosen = postures.distinct(nominal)
    chosen.require_plausible(nominal)
    value = _solution(chosen.wrench, chosen.R_base_sensor, nominal, method)
    u = np.einsum("nji,j->ni", chosen.R_base_sensor, gravity.tilted(value[10:]))
    Y = wrench_regressor(np.column_stack([u, np.zeros((len(u), 9))]))[:, :, :4]
    residual = chosen.wrench - Y @ value[:4] - value[4:10]
    freedom = 6 * len(chosen) - 12
    variance = chosen.variance + np.repeat(chosen.extra_variance(residual, freedom), 3)
    covariance = _covariance(chosen, nominal, method, variance)
    nothing = np.full(6, np.nan)
    verdict = Verdict(f"{len(chosen)} postures by {method}, for comparison")
    return StaticWeight(
        value, covariance, nominal, chosen, residual, freedom, nothing, nothing, 0.0, 0.0, verdict
    )  # fmt: skip


def _solution(wrench: Array, R_base_sensor: Array, nominal: Array, method: LinearMethod) -> Array:
    """The twelve numbers of the static stage, (12,)."""
    B, F = _design(wrench, R_base_sensor), wrench.ravel()
    if method == "ls":
        psi = np.linalg.lstsq(B, F, rcond=1e-12)[0]
    else:
        v = np.linalg.svd(np.column_stack([B, F]), full_matrices=False)[2][-1]
        psi = -v[:-1] / v[-1]
    kappa, f0, com, iota = psi.reshape(4, 3)
    mass = np.linalg.norm(kappa) / np.linalg.norm(nominal)
    torque = iota + np.cross(com, f0)
    return np.concatenate(
        [[mass], mass * com, f0, torque, BaseGravity(nominal).inclination(np.asarray(kappa))]
    )


def _covariance(postures: Postures, nominal: Array, method: LinearMethod, variance: Array) -> Array:
    """The covariance of the twelve numbers, (12, 12)."""
    total = np.zeros((12, 12))
    scale = np.maximum(np.abs(postures.wrench).max(), 1.0) * 1e-6
    for k, i in np.ndindex(postures.wrench.shape):
        ends = []
        for sign in (1, -1):
            moved = postures.wrench.copy()
            moved[k, i] += sign * scale
            ends.append(_solution(moved, postures.R_base_sensor, nominal, method))
        slope = (ends[0] - ends[1]) / (2 * scale)
        total += variance[k, i] * np.outer(slope, slope)
    return total


def _design(wrench: Array, R_base_sensor: Array) -> Array:
    N = len(wrench)
    B = np.zeros((N, 6, 12))
    B[:, :3, :3] = R_base_sensor.transpose(0, 2, 1)
    B[:, :3, 3:6] = B[:, 3:, 9:] = np.eye(3)
    fx, fy, fz = wrench[:, :3].T
    B[:, 3, 7], B[:, 3, 8] = fz, -fy
    B[:, 4, 6], B[:, 4, 8] = -fz, fx
    B[:, 5, 6], B[:, 5, 7] = fy, -fx
    return B.reshape(-1, 12)
