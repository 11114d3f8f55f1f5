"""All samples in motion, condensed to triangles of lifted rows whose size stays the same.

**Lifted rows.** A wrench is linear in the ten numbers phi, the drift and its trend for a known
direction of gravity. With a tilt, gravity_base = g_0 + d, it is linear in products as well, and
nothing else:

    f_i   = Y_i (m, h)  + R'_i (m d)       + f0_i   + t f1_i       9 numbers per force axis
    tau_i = Y_i (h, I)  + [e_j x R' e_c]_i (h_j d_c) + tau0_i + t tau1_i    20 per torque axis

so six triangles of these rows beside the wrench, one for each axis, updated by QR, hold
*all* that the samples say: nothing linearised is remembered, and weights are chosen afterwards.

A sample next to a jump of the wrench has an error of its own, of the variance v beside the noise's
n^2 (`_path`). Its rows count with the weight n^2 / (n^2 + v), of the worst axis: multiplied by its
root, all residuals have the variance n^2.

Residuals are correlated in time. Sums of the lifted rows over up to 64 blocks of equal length give
the residuals' sums for any theta; when there are more blocks, neighbours are joined.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard._kinds import NOT_NEGATIVE, Shape
from steelyard.inertia import FIRST_MOMENT, MASS
from steelyard.wrist._regressor import BaseGravity, features, wrench_tensor

UNKNOWNS = 24
"""In this order: ten numbers of the load, six zero drifts, tilt U and V, six drift trends."""

LOAD = slice(0, 10)
DRIFT = slice(10, 16)
TILT = slice(16, 18)
TREND = slice(18, 24)
REPORTED = slice(0, 18)
"""The unknowns that a `WristPayload` reports with their covariance: load, drift and tilt."""

_MAX_BLOCKS = 64
_WIDTH = 21  # numbers in a lifted row, with the wrench; those of a force begin with eleven zeros
_FORCES = slice(0, 3)  # axes of the wrench
_TORQUES = slice(3, 6)
_MASS_AND_MOMENT = slice(11, 15)  # columns of a force's row: m, h
_WEIGHT_OF_TILT = slice(15, 18)  # m d
_MOMENT_AND_INERTIA = slice(0, 9)  # columns of a torque's row: h, I
_MOMENT_OF_TILT = slice(9, 18)  # h_j d_c, row by row
_DRIFT_COLUMN = 18
_TREND_COLUMN = 19
_WRENCH_COLUMN = 20


def lifted_rows(
    t: Array, wrench: Array, R: Array, motion: Array, g: Array, w_noise: Array
) -> Array:
    """The lifted rows of N samples beside their wrench, (6, N, 21).

    Args:
        t: since the drift counts, (N,) [s]
        wrench: (N, 6) [N, Nm]
        R: orientation R_base_sensor, (N, 3, 3)
        motion: acceleration, angular velocity, angular acceleration, (N, 9)
        g: nominal gravity, (3,) [m/s^2], in the base frame
        w_noise: covariance of the angular velocity's errors, (N, 3, 3)
    """
    N = len(t)
    T = wrench_tensor()
    u = np.einsum("nji,j->ni", R, g)
    acceleration, velocity, angular_acceleration = np.split(motion, 3, axis=1)
    x = features(u, acceleration, velocity, angular_acceleration, w_noise)
    Y = np.tensordot(x, T, axes=(1, 0)).transpose(1, 0, 2)
    rows = np.zeros((6, N, _WIDTH))
    rows[_FORCES, :, _MASS_AND_MOMENT] = Y[_FORCES, :, :4]
    rows[_TORQUES, :, _MOMENT_AND_INERTIA] = Y[_TORQUES, :, 1:]
    by_weight = np.einsum("ncl,li->inc", R, T[:3, _FORCES, 0])
    by_moment = np.einsum("ncl,lij->injc", R, T[:3, _TORQUES, FIRST_MOMENT])
    rows[_FORCES, :, _WEIGHT_OF_TILT] = by_weight
    rows[_TORQUES, :, _MOMENT_OF_TILT] = by_moment.reshape(3, N, 9)
    rows[:, :, _DRIFT_COLUMN] = 1.0
    rows[:, :, _TREND_COLUMN] = t
    rows[:, :, _WRENCH_COLUMN] = wrench.T
    return rows


def lifted_numbers(gravity: BaseGravity, value: Array) -> tuple[Array, Array]:
    """The lifted numbers of the 24 unknowns, (6, 20), and their derivative, (6, 20, 24).

    Args:
        gravity: where things fall without a tilt
        value: of the unknowns, (24,)
    """
    d = gravity.tilted(value[TILT]) - gravity.nominal
    slope = gravity.slope(value[TILT])
    L = np.zeros((6, _WIDTH - 1))
    G = np.zeros((6, _WIDTH - 1, UNKNOWNS))
    load = value[LOAD]
    m = load[MASS]
    h = load[FIRST_MOMENT]
    L[_FORCES, _MASS_AND_MOMENT] = load[:4]
    L[_FORCES, _WEIGHT_OF_TILT] = m * d
    L[_TORQUES, _MOMENT_AND_INERTIA] = load[1:]
    L[_TORQUES, _MOMENT_OF_TILT] = np.outer(h, d).ravel()
    G[_FORCES, _MASS_AND_MOMENT, :4] = np.eye(4)
    G[_TORQUES, _MOMENT_AND_INERTIA, 1:10] = np.eye(9)
    G[_FORCES, _WEIGHT_OF_TILT, 0] = d
    G[_FORCES, _WEIGHT_OF_TILT, TILT] = m * slope
    for j in range(3):
        first = _MOMENT_OF_TILT.start + 3 * j
        columns = slice(first, first + 3)
        G[_TORQUES, columns, 1 + j] = d
        G[_TORQUES, columns, TILT] = h[j] * slope
    L[:, _DRIFT_COLUMN] = value[DRIFT]
    L[:, _TREND_COLUMN] = value[TREND]
    G[:, _DRIFT_COLUMN, DRIFT] = np.eye(6)
    G[:, _TREND_COLUMN, TREND] = np.eye(6)
    return L, G


def weight_numbers(gravity: BaseGravity, value: Array) -> Array:
    """The lifted numbers of the weight alone, (6, 20): the wrench of the load at rest, no drift.

    Args:
        gravity: where things fall without a tilt
        value: of the unknowns, (24,)
    """
    g = gravity.tilted(value[TILT])
    L = np.zeros((6, _WIDTH - 1))
    L[_FORCES, _WEIGHT_OF_TILT] = value[LOAD][MASS] * g
    L[_TORQUES, _MOMENT_OF_TILT] = np.outer(value[LOAD][FIRST_MOMENT], g).ravel()
    return L


def load_numbers(gravity: BaseGravity, value: Array) -> Array:
    """The lifted numbers of the load, (6, 20): its wrench in motion, without drift.

    Args:
        gravity: where things fall without a tilt
        value: of the unknowns, (24,)
    """
    L, _ = lifted_numbers(gravity, value)
    L[:, [_DRIFT_COLUMN, _TREND_COLUMN]] = 0.0
    return L


class Sums(NamedTuple):
    """Sums over the samples in motion, each weighted.

    Attributes:
        rows: number of samples
        triangles: of the lifted rows of each axis, (6, 21, 21)
        features: sum of the covariances of the features, (12, 12)
        blocks: sums of lifted rows over blocks of time, (K, 6, 21)
        length: windows in a block
        filled: windows in the last block
    """

    rows: Annotated[int, NOT_NEGATIVE]
    triangles: Annotated[Array, Shape(6, _WIDTH, _WIDTH)]
    features: Annotated[Array, Shape(12, 12)]
    blocks: Annotated[Array, Shape("*", 6, _WIDTH)]
    length: Annotated[int, NOT_NEGATIVE]
    filled: Annotated[int, NOT_NEGATIVE]

    @classmethod
    def nothing(cls) -> Sums:
        """Before the first sample."""
        triangles = np.zeros((6, _WIDTH, _WIDTH))
        blocks = np.zeros((0, 6, _WIDTH))
        return cls(0, triangles, np.zeros((12, 12)), blocks, 1, 1)

    @property
    def wrench_variance(self) -> Array:
        """The variance of the measured wrench, (6,) [N^2, Nm^2]; there must be samples."""
        ones = self.triangles[:, :, _DRIFT_COLUMN]
        wrench = self.triangles[:, :, _WRENCH_COLUMN]
        weight = (ones**2).sum(axis=1)
        mean = (ones * wrench).sum(axis=1) / weight
        return np.asarray((wrench**2).sum(axis=1) / weight - mean**2)

    def plus(self, rows: Array, features: Array) -> Sums:
        """The sums with one more window.

        Args:
            rows: lifted, times the roots of their weights, (6, N, 21)
            features: weighted sum of the covariances of their features, (12, 12)
        """
        count = self.rows + rows.shape[1]
        features = self.features + features
        stacked = np.concatenate([self.triangles, rows], axis=1)
        triangles = np.asarray(np.linalg.qr(stacked, mode="r"))
        if triangles.shape[1] < _WIDTH:
            missing = _WIDTH - triangles.shape[1]
            triangles = np.concatenate([triangles, np.zeros((6, missing, _WIDTH))], axis=1)
        blocks = self.blocks
        length = self.length
        total = rows.sum(axis=1)
        if len(blocks) and self.filled < length:
            blocks = np.concatenate([blocks[:-1], (blocks[-1] + total)[None]])
            return Sums(count, triangles, features, blocks, length, self.filled + 1)
        if len(blocks) == _MAX_BLOCKS:
            blocks = blocks.reshape(-1, 2, 6, _WIDTH).sum(axis=1)
            length = 2 * length
        blocks = np.concatenate([blocks, total[None]])
        return Sums(count, triangles, features, blocks, length, 1)
