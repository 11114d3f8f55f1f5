"""The static stage: mass, centre of mass, six zero drifts and the tilt of the base, from postures at rest.

At rest the features of the motion are u = R' g alone (`regressor`), so the wrench is

    f = m R' g(U, V) + f0,      tau = h x R' g(U, V) + tau0                   liu2025 eq. (10)-(12)

with twelve unknowns theta = (m, h, f0, tau0, U, V). liu2025 makes this linear with kappa = m g_base and
with the *measured* force in the torque equation, eq. (13)-(18), and solves by least squares or by total
least squares, (26)-(28), which suspects the rotations and the identity of the same errors as the forces.
Here (`method='restricted'`) the columns that are known exactly stay exact: the forces in the torque
equation are the modelled ones, and every error is an error of a measured wrench, with its variance. That is
the maximum likelihood, solved by Gauss-Newton steps from the linear solution; the covariance is (J' S^-1
J)^-1.

The variance of a posture's wrench is that of its mean, plus what differs from posture to posture
(hysteresis, cross-talk, cables), chosen for force and for torque so that the residuals have the size that
they should have. A drift that moves in time is tried as six slopes; where they are significant they are
kept and told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import stdtrit

from steelyard.arrays import Array
from steelyard.errors import InvalidRecording
from steelyard.wrist.advice import advise, without_duplicates
from steelyard.wrist.doubts import require_plausible
from steelyard.wrist.gravity import checked_gravity, tilted_gravity
from steelyard.wrist.rest import Postures, RestRule
from steelyard.wrist.static_linear import LinearMethod, solve_linear, spread_of_linear
from steelyard.wrist.static_model import StaticModel

StaticMethod = Literal["restricted", "ls", "tls"]

STATIC_NAMES = ("m", "mx", "my", "mz", "fx0", "fy0", "fz0", "tx0", "ty0", "tz0", "U", "V")
"""The order of the twelve numbers of the static stage."""

_SIGNIFICANT = 4.5  # standard deviations of one of six slopes before a moving drift is believed
_ROUNDS = 30


@dataclass(frozen=True, eq=False)
class StaticWeight:
    """What postures at rest tell.

    Attributes:
        value: twelve numbers in the order of `STATIC_NAMES`, (12,) [kg, kg m, N, Nm, rad]
        covariance: theirs, (12, 12); infinite where the postures say nothing
        nominal_gravity: gravity without a tilt, (3,) [m/s^2], in the base frame
        postures: those used
        residual: of each, (N, 6) [N, Nm]
        freedom: equations less unknowns
        trend: how fast the zero drift moves, (6,) [N/s, Nm/s]; NaN where time is not known
        trend_std: its standard deviation, (6,)
        yaw: rotation of the sensor about the flange axis that was found, [rad]; 0 where it was known
        yaw_std: its standard deviation, [rad]
        status: how good it is, a sentence
    """

    value: Array
    covariance: Array
    nominal_gravity: Array
    postures: Postures
    residual: Array
    freedom: int
    trend: Array
    trend_std: Array
    yaw: float
    yaw_std: float
    status: str

    @property
    def mass(self) -> float:
        """[kg]."""
        return float(self.value[0])

    @property
    def com(self) -> Array:
        """Centre of mass, (3,) [m], in the sensor frame."""
        return np.asarray(self.value[1:4] / self.value[0])

    @property
    def com_std(self) -> Array:
        """Standard deviation of the centre of mass, (3,) [m]."""
        slope = np.column_stack([-self.com, np.eye(3)]) / self.mass
        return np.asarray(np.sqrt(np.diag(slope @ self.covariance[:4, :4] @ slope.T)))

    @property
    def drift(self) -> Array:
        """What the sensor shows without a load, (6,) [N, Nm], in the sensor frame."""
        return self.value[4:10]

    @property
    def inclination(self) -> Array:
        """The tilt U, V of the base, (2,) [rad]."""
        return self.value[10:]

    @property
    def gravity_base(self) -> Array:
        """Where things fall, tilt included, (3,) [m/s^2], in the base frame."""
        return tilted_gravity(self.nominal_gravity, self.inclination)

    @property
    def std(self) -> Array:
        """Standard deviation of the twelve numbers, (12,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def interval(self, level: float = 0.95) -> Array:
        """Lower and upper end of the interval of each number, (12, 2).

        Args:
            level: probability that it contains the truth
        """
        half = stdtrit(max(self.freedom, 1), 0.5 + level / 2) * self.std
        return np.column_stack([self.value - half, self.value + half])


def weigh_static(
    postures: Postures,
    *,
    method: StaticMethod = "restricted",
    gravity_base: ArrayLike = (0.0, 0.0, -9.81),
    tilt: bool = True,
    yaw_axis: ArrayLike | None = None,
) -> StaticWeight:
    """Mass, centre of mass, zero drifts and tilt of the base, from postures at rest.

    Args:
        postures: at rest; those with the same gravity direction are left out
        method: 'restricted', or the linear least squares 'ls' and total least squares 'tls' of liu2025
        gravity_base: gravity without a tilt, (3,) [m/s^2], in the base frame
        tilt: whether the base may be tilted
        yaw_axis: axis about which the sensor may be turned, (3,), in the sensor frame; None when it may not
    """
    nominal = checked_gravity(gravity_base)
    if method not in ("restricted", "ls", "tls"):
        raise InvalidRecording(f"method must be 'restricted', 'ls' or 'tls', got '{method}'")
    chosen = without_duplicates(postures, nominal)
    if len(chosen) < 3:
        raise InvalidRecording(
            f"only {len(chosen)} different postures at rest; at least 3 are needed, 6 or more are good."
            f" {_how_long(postures)}{advise(chosen, nominal)}"
        )
    model = StaticModel(chosen, nominal, tilt=tilt, yaw_axis=yaw_axis)
    if yaw_axis is None:
        require_plausible(chosen, nominal)
    if method != "restricted":
        return _linear(model, method)
    fit = _fit(model)
    moving = _moving_fit(model)
    use_moving = moving is not None and moving.z_of_slopes > _SIGNIFICANT
    best = moving if use_moving and moving is not None else fit
    told = fit if moving is None else moving
    return _answer(model, best, told, has_trend=moving is not None, moves=use_moving)


def _how_long(postures: Postures) -> str:
    """How long a rest must last to count; nothing where the postures come from a table."""
    if not postures.timed:
        return ""
    rule = RestRule()
    lasts = 2 * rule.settle_s + rule.window_s + rule.shortest_s
    return f"A rest counts when the arm stands still for {lasts:.2g} s or longer: stop for 2 s each time. "


@dataclass(frozen=True, eq=False)
class _Fit:
    """A solution of the static problem."""

    value: Array
    covariance: Array
    residual: Array
    freedom: int

    @property
    def z_of_slopes(self) -> float:
        """The largest slope in standard deviations."""
        return float(np.abs(self.value[-6:] / np.sqrt(np.diag(self.covariance)[-6:])).max())


def _fit(model: StaticModel) -> _Fit:
    """Value and variance in turns."""
    extra = np.zeros(2)
    for _ in range(_ROUNDS):
        variance = model.postures.variance + np.repeat(extra, 3) + 1e-24
        value, covariance = model.solve(variance)
        residual = model.residual(value)
        before, extra = extra, _extra_variance(model, residual)
        if np.allclose(before, extra, rtol=1e-3, atol=1e-20):
            break
    return _Fit(value, covariance, residual, model.freedom)


def _extra_variance(model: StaticModel, residual: Array) -> Array:
    """What force and torque differ from posture to posture beyond their scatter at rest, (2,)."""
    share = model.freedom / (6 * len(model.postures))
    extra = np.zeros(2)
    for k, axes in enumerate((slice(0, 3), slice(3, 6))):
        squares, within = residual[:, axes] ** 2, model.postures.variance[:, axes]
        wanted = max(share * squares.size, 1.0)
        high = float(squares.sum() / wanted)

        def excess(
            s: float, squares: Array = squares, within: Array = within, wanted: float = wanted
        ) -> float:
            return float((squares / (within + s + 1e-300)).sum() - wanted)

        extra[k] = 0.0 if high == 0.0 or excess(0.0) <= 0 else brentq(excess, 0.0, 2 * high, rtol=1e-6)
    return extra


def _moving_fit(model: StaticModel) -> _Fit | None:
    """The fit with a drift that moves in time; None where the postures cannot tell."""
    if not model.postures.timed or 6 * len(model.postures) - model.p - 6 < 6:
        return None
    return _fit(replace(model, slopes=True))


def _answer(model: StaticModel, best: _Fit, told: _Fit, *, has_trend: bool, moves: bool) -> StaticWeight:
    value, covariance = model.twelve(best.value, best.covariance)
    trend, trend_std = np.full(6, np.nan), np.full(6, np.nan)
    if has_trend:
        trend, trend_std = told.value[-6:], np.sqrt(np.diag(told.covariance)[-6:])
    yaw, yaw_std = model.yaw(best.value, best.covariance)
    return StaticWeight(
        value,
        covariance,
        model.nominal,
        model.postures,
        best.residual,
        best.freedom,
        trend,
        trend_std,
        yaw,
        yaw_std,
        _status(model, covariance, trend, moves=moves),
    )


def _status(model: StaticModel, covariance: Array, trend: Array, *, moves: bool) -> str:
    N = len(model.postures)
    words = advise(model.postures, model.nominal)
    if not np.isfinite(np.diag(covariance)).all():
        unknown = ", ".join(np.array(STATIC_NAMES)[~np.isfinite(np.diag(covariance))])
        return f"{N} postures say nothing about {unknown}. {words}"
    if moves:
        axis = int(np.abs(trend / np.sqrt(np.diag(covariance)[4:10])).argmax())
        return (
            f"the zero drift moves during the run, {STATIC_NAMES[4 + axis]} by {60 * trend[axis]:.3g} a"
            f" minute; the drift given is that in the middle of the run, measure it again before use. {words}"
        ).strip()
    return words or f"{N} postures, well spread; all twelve numbers are determined"


def _linear(model: StaticModel, method: LinearMethod) -> StaticWeight:
    value = solve_linear(model.postures.wrench, model.postures.R_base_sensor, model.nominal, method)
    residual = model.residual(value[: model.p] if model.tilt else np.delete(value, [10, 11]))
    variance = model.postures.variance + np.repeat(_extra_variance(model, residual), 3)
    covariance = spread_of_linear(model.postures, model.nominal, method, variance)
    nothing = np.full(6, np.nan)
    words = f"{len(model.postures)} postures by {method}, for comparison"
    return StaticWeight(
        value, covariance, model.nominal, model.postures, residual, model.freedom, nothing, nothing, 0.0, 0.0,
        words,
    )  # fmt: skip
