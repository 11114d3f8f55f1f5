"""The static stage: mass, centre of mass, zero drifts and tilt, from postures at rest.

At rest the features of the motion are u = R' g alone (`regressor`), so the wrench is

    f = m R' g(U, V) + f0,      tau = h x R' g(U, V) + tau0                   liu2025 eq. (10)-(12)

with twelve unknowns theta = (m, h, f0, tau0, U, V), and optionally the rotation of the sensor about
the flange axis. Only the measured wrenches have errors; rotations are exact. The maximum-likelihood
estimate is found by Gauss-Newton steps; its covariance is (J' S^-1 J)^-1. The steps start from
linear least squares, liu2025 eq. (13)-(18), with kappa = m g_base and the *measured* force in the
torque equation (f^ the matrix of the cross product with it),

    [f; tau] = [R' 1 0 0; 0 0 -f^ 1] (kappa, f0, c, iota),   iota = tau0 - c x f0.

The variance of a posture's wrench is that of its mean plus the variance between postures
(hysteresis, cross-talk, cables), which is chosen for force and torque so that the residuals have
their expected size. A drift that changes in time is tested as six trends, which are kept and
reported if they are significant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array
from steelyard._units import GRAVITY_DOWN
from steelyard.errors import InvalidRecording
from steelyard.inertia import skew
from steelyard.verdict import Doubt, DoubtKind, Verdict
from steelyard.wrist._checks import unexplained_wrench_doubts
from steelyard.wrist._payload import (
    STATIC_NAMES,
    STATIC_TILT,
    StaticFit,
    drift_doubt,
    tilt_doubt,
)
from steelyard.wrist._regressor import BaseGravity, wrench_regressor, wrench_slope
from steelyard.wrist._rest import Postures, RestRule

_MAX_ITERATIONS = 30  # of unknowns and variance
_MAX_GAUSS_NEWTON_STEPS = 50
_RELATIVE_RANK = 1e-8  # smaller singular values, over the largest, count as zero
_MIN_FREEDOM = 6  # spare equations, for a doubt about residuals
_INITIAL_YAWS = 72  # over a full turn


def weigh_static(
    postures: Postures,
    *,
    gravity_base: ArrayLike = GRAVITY_DOWN,
    tilt: bool = True,
    yaw_axis: ArrayLike | None = None,
) -> StaticFit:
    """Mass, centre of mass, zero drifts and tilt of the base, from postures at rest.

    Args:
        postures: at rest; those with the same gravity direction are left out
        gravity_base: gravity without a tilt, (3,) [m/s^2], in the base frame
        tilt: whether to estimate the tilt of the base
        yaw_axis: axis of an unknown rotation of the sensor, (3,), in the sensor frame; None if it
            is known
    """
    gravity = BaseGravity(np.array(gravity_base, dtype=float))
    nominal = gravity.nominal
    chosen = postures.distinct(nominal)
    if len(chosen) < 3:
        raise InvalidRecording(
            f"only {len(chosen)} different postures at rest; at least 3 are needed, 6 or more are"
            f" good. {_rest_advice(postures)}{chosen.advice(nominal)}"
        )
    model = _Model(chosen, gravity, tilt=tilt, yaw_axis=yaw_axis)
    if yaw_axis is None:
        chosen.require_plausible(nominal)
    best = _fit(model)
    trend = trend_std = np.full(6, np.nan)
    moving_drift = None
    if postures.timed and 6 * len(chosen) - model.p - 6 >= 6:
        moving = _fit(replace(model, drifting=True))
        trend = moving.value[-6:]
        trend_std = np.sqrt(np.diag(moving.covariance)[-6:])
        moving_drift = drift_doubt(trend, trend_std)
        if moving_drift is not None:
            best = moving
    value, covariance = model.twelve(best)
    yaw, yaw_std = model.yaw(best)
    return StaticFit(
        value,
        covariance,
        nominal,
        chosen,
        best.residual,
        best.freedom,
        trend,
        trend_std,
        yaw,
        yaw_std,
        _verdict(
            chosen, nominal, covariance, moving_drift, tilt_doubt(value[STATIC_TILT], nominal)
        ).doubted(*_unexplained_doubts(chosen, best)),
    )


def _unexplained_doubts(postures: Postures, fit: _StaticSolution) -> Iterable[Doubt]:
    """Doubts about residuals beyond the noise of the means; none without spare equations."""
    if fit.freedom < _MIN_FREEDOM:
        return ()
    return unexplained_wrench_doubts(
        (fit.residual**2).sum(axis=0) * (6 / fit.freedom),
        postures.variance.mean(axis=0),
        postures.wrench.var(axis=0),
    )


def _rest_advice(postures: Postures) -> str:
    """How long a rest must last, a sentence; empty for postures from a table."""
    if not postures.timed:
        return ""
    rule = RestRule()
    shortest_s = 2 * rule.settle_s + rule.window_s + rule.shortest_s
    return f"A rest must last at least {shortest_s:.2g} s: stop for 2 s at each posture. "


def _verdict(
    postures: Postures,
    nominal: Array,
    covariance: Array,
    moving_drift: Doubt | None,
    tilted: Doubt | None,
) -> Verdict:
    if tilted is None:
        doubts = []
    else:
        doubts = [tilted]
    unknown = ~np.isfinite(np.diag(covariance))
    if unknown.any():
        names = ", ".join(np.array(STATIC_NAMES)[unknown])
        doubts.append(
            Doubt(DoubtKind.NOT_EXCITED, f"{len(postures)} postures do not determine {names}")
        )
    elif moving_drift is not None:
        doubts.append(moving_drift)
    if advice := postures.advice(nominal):
        doubts.append(Doubt(DoubtKind.POSTURES_TOO_ALIKE, advice))
    if doubts:
        return Verdict(doubts=tuple(doubts))
    return Verdict(f"{len(postures)} postures, well spread; all twelve numbers are determined")


@dataclass(frozen=True, eq=False)
class _StaticSolution:
    """A solution of the static stage."""

    value: Array
    covariance: Array
    residual: Array
    freedom: int


@dataclass(frozen=True, eq=False)
class _Model:
    """Postures and the unknowns: (m, h, f0, tau0), U, V, yaw, six trends of the drift."""

    postures: Postures
    gravity: BaseGravity
    tilt: bool = True
    yaw_axis: ArrayLike | None = None
    drifting: bool = False

    @property
    def p(self) -> int:
        """Number of unknowns."""
        return 10 + 2 * self.tilt + (self.yaw_axis is not None) + 6 * self.drifting

    def design(self, value: Array) -> tuple[Array, Array]:
        """The modelled wrenches, (N, 6), and their derivative by the unknowns, (N, 6, p)."""
        if self.tilt:
            angles = value[STATIC_TILT]
        else:
            angles = np.zeros(2)
        R = self._turned(self._yaw_of(value))
        u = np.einsum("nji,j->ni", R, self.gravity.tilted(angles))
        body = np.concatenate([value[:4], np.zeros(6)])
        N = len(u)
        at_rest = wrench_regressor(np.column_stack([u, np.zeros((N, 9))]))
        columns = [at_rest[:, :, :4], np.tile(np.eye(6), (N, 1, 1))]
        if self.tilt:
            columns.append(self.gravity.tilt_columns(body, R, angles))
        if self.yaw_axis is not None:
            turning = -np.cross(np.asarray(self.yaw_axis, dtype=float), u)
            columns.append((turning @ wrench_slope(body)[:, :3].T)[:, :, None])
        if self.drifting:
            t = self.postures.t - self.postures.t.mean()
            columns.append(t[:, None, None] * np.eye(6))
        J = np.concatenate(columns, axis=2)
        linear = value.copy()
        linear[10 : self.p - 6 * self.drifting] = 0.0
        return J @ linear, J

    def solve(self, variance: Array) -> tuple[Array, Array]:
        """The unknowns and their covariance for given variances; infinite where undetermined."""
        value = self._start()
        weights = 1.0 / np.sqrt(variance).ravel()
        for _ in range(_MAX_GAUSS_NEWTON_STEPS):
            predicted, J = self.design(value)
            residual = (self.postures.wrench - predicted).ravel() * weights
            step, covariance = _weighted_solution(
                J.reshape(-1, self.p) * weights[:, None], residual
            )
            value = value + step
            finite = np.isfinite(np.diag(covariance))
            if (np.abs(step[finite]) <= 1e-6 * np.sqrt(np.diag(covariance)[finite]) + 1e-13).all():
                break
        return value, covariance

    def twelve(self, fit: _StaticSolution) -> tuple[Array, Array]:
        """The twelve numbers and their covariance; zero for a tilt that is not estimated."""
        if self.tilt:
            return fit.value[:12], fit.covariance[:12, :12]
        full = np.zeros((12, 12))
        full[:10, :10] = fit.covariance[:10, :10]
        return np.append(fit.value[:10], [0.0, 0.0]), full

    def yaw(self, fit: _StaticSolution) -> tuple[float, float]:
        """The yaw and its standard deviation, [rad]; 0 if it is known."""
        if self.yaw_axis is None:
            return 0.0, 0.0
        k = 10 + 2 * self.tilt
        return self._yaw_of(fit.value), float(np.sqrt(fit.covariance[k, k]))

    def _yaw_of(self, value: Array) -> float:
        if self.yaw_axis is None:
            return 0.0
        return float((value[10 + 2 * self.tilt] + np.pi) % (2 * np.pi) - np.pi)

    def _turned(self, yaw: float) -> Array:
        """The orientations with the sensor turned about its yaw axis, (N, 3, 3)."""
        if self.yaw_axis is None:
            return self.postures.R_base_sensor
        axis = np.asarray(self.yaw_axis, dtype=float)
        turn = Rotation.from_rotvec(yaw * axis / np.linalg.norm(axis)).as_matrix()
        return np.asarray(self.postures.R_base_sensor @ turn)

    def _start(self) -> Array:
        """The linear solution at the best of several yaws."""
        wrench = self.postures.wrench
        k = 10 + 2 * self.tilt
        yaws = np.zeros(1)
        if self.yaw_axis is not None:
            yaws = np.linspace(-np.pi, np.pi, _INITIAL_YAWS, endpoint=False)
        best = np.zeros(self.p)
        least = np.inf
        for yaw in yaws:
            value = np.zeros(self.p)
            twelve = _linear_solution(wrench, self._turned(float(yaw)), self.gravity)
            value[:k] = twelve[:k]
            if self.yaw_axis is not None:
                value[k] = yaw
            residual = wrench - self.design(value)[0]
            cost = (
                float((residual[:, :3] ** 2).sum())
                + float(np.abs(twelve[STATIC_TILT]).sum()) * 1e-9
            )
            if cost < least:
                best = value
                least = cost
        return best


def _fit(model: _Model) -> _StaticSolution:
    """The solution, with unknowns and variance found alternately."""
    freedom = 6 * len(model.postures) - model.p
    within = model.postures.variance
    extra = np.zeros(2)
    for _ in range(_MAX_ITERATIONS):
        value, covariance = model.solve(within + np.repeat(extra, 3) + 1e-24)
        residual = model.postures.wrench - model.design(value)[0]
        previous = extra
        extra = model.postures.extra_variance(residual, freedom)
        if np.allclose(previous, extra, rtol=1e-3, atol=1e-20):
            break
    return _StaticSolution(value, covariance, residual, freedom)


def _weighted_solution(J: Array, residual: Array) -> tuple[Array, Array]:
    """The least-squares step and its covariance, infinite on the diagonal where undetermined."""
    length = np.linalg.norm(J, axis=0)
    scale = np.where(length > 0, length, 1.0)
    U, s, Vt = np.linalg.svd(J / scale, full_matrices=False)
    known = s > _RELATIVE_RANK * s[0]
    half = Vt[known].T / s[known] / scale[:, None]
    covariance = half @ half.T
    unknown = (np.abs(Vt[~known]) > 1e-6).any(axis=0) | (length == 0)
    covariance[unknown, unknown] = np.inf
    return half @ (U[:, known].T @ residual), covariance


def _linear_solution(wrench: Array, R_base_sensor: Array, gravity: BaseGravity) -> Array:
    """The twelve numbers by linear least squares, (12,)."""
    N = len(wrench)
    B = np.zeros((N, 6, 12))
    force = slice(0, 3)  # rows
    torque = slice(3, 6)
    weight = slice(0, 3)  # columns
    force_drift = slice(3, 6)
    com = slice(6, 9)
    torque_at_com = slice(9, 12)
    B[:, force, weight] = R_base_sensor.transpose(0, 2, 1)
    B[:, force, force_drift] = np.eye(3)
    B[:, torque, com] = -skew(wrench[:, force])
    B[:, torque, torque_at_com] = np.eye(3)
    psi = np.linalg.lstsq(B.reshape(-1, 12), wrench.ravel(), rcond=1e-12)[0]
    kappa, f0, c, iota = psi.reshape(4, 3)
    mass = np.linalg.norm(kappa) / np.linalg.norm(gravity.nominal)
    drift = np.concatenate([f0, iota + np.cross(c, f0)])
    return np.concatenate([[mass], mass * c, drift, gravity.inclination(np.asarray(kappa))])
