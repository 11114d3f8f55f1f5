"""The linear static stage as liu2025 prints it: least squares, and total least squares by the SVD.

    [f; tau] = [R' 1 0 0; 0 0 -f^ 1] (kappa, f0, c, iota),   iota = tau0 - c x f0    eq. (13)-(18)

(f^ is the matrix of the cross product with the measured force.) Total least squares takes the right
singular vector of the smallest singular value of [B F], eq. (27), (28), which suspects the
rotations and the identity of the same errors as the forces. Mass, tilt and torque drift follow with
the signs of mechanics:
m = |kappa| / g, tau0 = iota + c x f0. The covariance of the measured wrenches is
propagated through the derivative of the whole calculation.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array
from steelyard._units import GRAVITY_DOWN
from steelyard.verdict import Verdict
from steelyard.wrist import Postures, StaticFit
from steelyard.wrist._regressor import BaseGravity, wrench_regressor

LinearMethod = Literal["ls", "tls"]


def weigh_linear(
    postures: Postures, method: LinearMethod = "tls", *, gravity_base: ArrayLike = GRAVITY_DOWN
) -> StaticFit:
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
    return StaticFit(
        value, covariance, nominal, chosen, residual, freedom, nothing, nothing, 0.0, 0.0, verdict
    )  # fmt: skip


def _solution(wrench: Array, R_base_sensor: Array, nominal: Array, method: LinearMethod) -> Array:
    """The twelve numbers of the static stage, (12,)."""
    return _numbers(_fitted(_augmented(wrench, R_base_sensor), method), nominal)


def _fitted(Z: Array, method: LinearMethod) -> Array:
    """kappa, f0, c, iota of rows [B F], (12,)."""
    if method == "ls":
        return np.asarray(np.linalg.lstsq(Z[:, :-1], Z[:, -1], rcond=1e-12)[0])
    v = np.linalg.svd(Z, full_matrices=False)[2][-1]
    return np.asarray(-v[:-1] / v[-1])


def _numbers(psi: Array, nominal: Array) -> Array:
    """The twelve numbers of the static stage from kappa, f0, c, iota, (12,)."""
    kappa, f0, com, iota = psi.reshape(4, 3)
    mass = np.linalg.norm(kappa) / np.linalg.norm(nominal)
    torque = iota + np.cross(com, f0)
    return np.concatenate(
        [[mass], mass * com, f0, torque, BaseGravity(nominal).inclination(np.asarray(kappa))]
    )


def _covariance(postures: Postures, nominal: Array, method: LinearMethod, variance: Array) -> Array:
    """The covariance of the twelve numbers, (12, 12)."""
    Z = _augmented(postures.wrench, postures.R_base_sensor)
    psi, slopes = _slopes(Z, method)
    step = 1e-6 * np.maximum(np.abs(psi), 1e-3)
    ends = [[_numbers(psi + sign * one, nominal) for sign in (1, -1)] for one in np.diag(step)]
    turn = np.array([(up - down) / (2 * h) for (up, down), h in zip(ends, step, strict=True)])
    moved = slopes.reshape(-1, 12) @ turn
    return np.asarray((moved * variance.reshape(-1, 1)).T @ moved)


def _slopes(Z: Array, method: LinearMethod) -> tuple[Array, Array]:
    """kappa, f0, c, iota of rows [B F], (12,), and their derivatives, (N, 6, 12).

    A component i of a wrench moves the six rows of its posture by a constant E_i. Of total least
    squares, v is an eigenvector of G = Z'Z to the eigenvalue s: dv = -(G - s)^+ dG v, and psi =
    -v_1..12 / v_13. Of least squares, B'B dpsi = dB' r + B' (dF - dB psi).
    """
    blocks = Z.reshape(-1, 6, 13)
    E = _augmented(np.eye(6), np.zeros((6, 3, 3))).reshape(6, 6, 13)
    E = E - _augmented(np.zeros((1, 6)), np.zeros((1, 3, 3))).reshape(6, 13)
    psi = _fitted(Z, method)
    v = np.append(-psi, 1.0)
    dG_v = np.einsum("irc,nr->nic", E, blocks @ v) + np.einsum("nrc,ir->nic", blocks, E @ v)
    if method == "ls":
        back = np.linalg.inv(Z[:, :-1].T @ Z[:, :-1])
        return psi, np.asarray(dG_v[:, :, :-1] @ back)
    s, V = np.linalg.svd(Z, full_matrices=False)[1:]
    inverse = V[:-1].T @ (V[:-1] / (s[:-1] ** 2 - s[-1] ** 2)[:, None])
    dv = -dG_v @ inverse
    return psi, np.asarray(-dv[:, :, :-1] - psi * dv[:, :, -1:])


def _augmented(wrench: Array, R_base_sensor: Array) -> Array:
    """Rows [B F] of postures, (6 N, 13)."""
    N = len(wrench)
    Z = np.zeros((N, 6, 13))
    Z[:, :3, :3] = R_base_sensor.transpose(0, 2, 1)
    Z[:, :3, 3:6] = Z[:, 3:, 9:12] = np.eye(3)
    fx, fy, fz = wrench[:, :3].T
    Z[:, 3, 7] = fz
    Z[:, 3, 8] = -fy
    Z[:, 4, 6] = -fz
    Z[:, 4, 8] = fx
    Z[:, 5, 6] = fy
    Z[:, 5, 7] = -fx
    Z[:, :, 12] = wrench
    return Z.reshape(-1, 13)
