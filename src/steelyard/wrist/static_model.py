"""The equations of the static stage: prediction, slope, and Gauss-Newton steps from the linear solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from steelyard.arrays import Array
from steelyard.wrist.gravity import tilted_gravity, tilted_gravity_slope
from steelyard.wrist.regressor import wrench_regressor
from steelyard.wrist.rest import Postures
from steelyard.wrist.static_linear import solve_linear

_STEPS = 50
_RELATIVE_RANK = 1e-8
_YAWS = 72


@dataclass(frozen=True, eq=False)
class StaticModel:
    """Postures and what is unknown about them: (m, h, f0, tau0), U, V, yaw, six slopes of the drift.

    Attributes:
        postures: at rest
        nominal: gravity without a tilt, (3,) [m/s^2], in the base frame
        tilt: whether U and V are unknown
        yaw_axis: axis of an unknown rotation of the sensor, (3,), in the sensor frame; None for none
        slopes: whether the drift moves in time
    """

    postures: Postures
    nominal: Array
    tilt: bool = True
    yaw_axis: ArrayLike | None = None
    slopes: bool = False

    @property
    def p(self) -> int:
        """Number of unknowns."""
        return 10 + 2 * self.tilt + (self.yaw_axis is not None) + 6 * self.slopes

    @property
    def freedom(self) -> int:
        """Equations less unknowns."""
        return 6 * len(self.postures) - self.p

    def design(self, value: Array) -> tuple[Array, Array]:
        """The modelled wrenches, (N, 6), and their derivative by the unknowns, (N, 6, p).

        Args:
            value: the unknowns, (p,)
        """
        angles = value[10:12] if self.tilt else np.zeros(2)
        R = self.turned(self._yaw_of(value))
        u = np.einsum("nji,j->ni", R, tilted_gravity(self.nominal, angles))
        body = np.concatenate([value[:4], np.zeros(6)])
        N = len(u)
        columns = [_regressor(u)[:, :, :4], np.tile(np.eye(6), (N, 1, 1))]
        if self.tilt:
            slope = np.einsum("nji,jk->nik", R, tilted_gravity_slope(self.nominal, angles))
            columns.append(np.stack([_regressor(slope[:, :, k]) @ body for k in range(2)], axis=2))
        if self.yaw_axis is not None:
            columns.append(
                (_regressor(-np.cross(np.asarray(self.yaw_axis, dtype=float), u)) @ body)[:, :, None]
            )
        if self.slopes:
            t = self.postures.t - self.postures.t.mean()
            columns.append(t[:, None, None] * np.eye(6))
        J = np.concatenate(columns, axis=2)
        linear = value.copy()
        linear[10 : self.p - 6 * self.slopes] = 0.0
        return J @ linear, J

    def residual(self, value: Array) -> Array:
        """Measured less modelled wrenches, (N, 6) [N, Nm].

        Args:
            value: the unknowns, (p,)
        """
        return self.postures.wrench - self.design(value)[0]

    def solve(self, variance: Array) -> tuple[Array, Array]:
        """The unknowns and their covariance for given variances; infinite where nothing is told.

        Args:
            variance: of the wrenches, (N, 6)
        """
        value = self._start()
        weights = 1.0 / np.sqrt(variance).ravel()
        for _ in range(_STEPS):
            predicted, J = self.design(value)
            residual = (self.postures.wrench - predicted).ravel() * weights
            step, covariance = weighted_solution(J.reshape(-1, self.p) * weights[:, None], residual)
            value = value + step
            finite = np.isfinite(np.diag(covariance))
            if (np.abs(step[finite]) <= 1e-6 * np.sqrt(np.diag(covariance)[finite]) + 1e-13).all():
                break
        return value, covariance

    def turned(self, yaw: float) -> Array:
        """The orientations with the sensor turned about its yaw axis, (N, 3, 3).

        Args:
            yaw: [rad]
        """
        if self.yaw_axis is None:
            return self.postures.R_base_sensor
        axis = np.asarray(self.yaw_axis, dtype=float)
        turn = Rotation.from_rotvec(yaw * axis / np.linalg.norm(axis)).as_matrix()
        return np.asarray(self.postures.R_base_sensor @ turn)

    def twelve(self, value: Array, covariance: Array) -> tuple[Array, Array]:
        """The twelve numbers of the static stage and their covariance; a base that may not tilt has no error.

        Args:
            value: the unknowns, (p,)
            covariance: theirs, (p, p)
        """
        if self.tilt:
            return value[:12], covariance[:12, :12]
        full = np.zeros((12, 12))
        full[:10, :10] = covariance[:10, :10]
        return np.append(value[:10], [0.0, 0.0]), full

    def yaw(self, value: Array, covariance: Array) -> tuple[float, float]:
        """The yaw and its standard deviation, [rad].

        Args:
            value: the unknowns, (p,)
            covariance: theirs, (p, p)
        """
        if self.yaw_axis is None:
            return 0.0, 0.0
        k = 10 + 2 * self.tilt
        return self._yaw_of(value), float(np.sqrt(covariance[k, k]))

    def _yaw_of(self, value: Array) -> float:
        if self.yaw_axis is None:
            return 0.0
        return float((value[10 + 2 * self.tilt] + np.pi) % (2 * np.pi) - np.pi)

    def _start(self) -> Array:
        """The linear solution, with the best of many yaws."""
        wrench = self.postures.wrench
        yaws = [0.0] if self.yaw_axis is None else np.linspace(-np.pi, np.pi, _YAWS, endpoint=False)
        best, least = np.zeros(self.p), np.inf
        for yaw in yaws:
            value = np.zeros(self.p)
            twelve = solve_linear(wrench, self.turned(float(yaw)), self.nominal, "ls")
            value[: 10 + 2 * self.tilt] = twelve[: 10 + 2 * self.tilt]
            if self.yaw_axis is not None:
                value[10 + 2 * self.tilt] = yaw
            if not self.tilt:
                value[0] = abs(value[0])
            cost = float((self.residual(value)[:, :3] ** 2).sum()) + float(np.abs(twelve[10:]).sum()) * 1e-9
            if cost < least:
                best, least = value, cost
        return best


def weighted_solution(J: Array, residual: Array) -> tuple[Array, Array]:
    """The least-squares step and its covariance, columns scaled; infinite on the diagonal where unknown.

    Args:
        J: weighted slopes, (M, p)
        residual: weighted residuals, (M,)
    """
    length = np.linalg.norm(J, axis=0)
    scale = np.where(length > 0, length, 1.0)
    U, s, Vt = np.linalg.svd(J / scale, full_matrices=False)
    told = s > _RELATIVE_RANK * s[0]
    half = Vt[told].T / s[told] / scale[:, None]
    covariance = half @ half.T
    unknown = (np.abs(Vt[~told]) > 1e-6).any(axis=0) | (length == 0)
    covariance[unknown, unknown] = np.inf
    return half @ (U[:, told].T @ residual), covariance


def _regressor(u: Array) -> Array:
    return wrench_regressor(np.column_stack([u, np.zeros((len(u), 9))]))
