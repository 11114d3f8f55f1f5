"""The dynamic stage: ten parameters from a moving arm, with the static stage as a prior.

The unknowns are the eighteen numbers theta = (phi, drift, U, V). With a static stage, its twelve
numbers and their covariance are a prior, so that the answer includes the uncertainty of drift and
tilt; estimators that do not weight samples take drift and tilt as known. Without a static stage,
all are estimated together. The tilt enters the wrench through u = R' g(U, V) - a, which is
linearised; the regression is repeated at each new tilt until it converges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard._arrays import Array
from steelyard._units import GRAVITY_DOWN
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.identification._cause_columns import in_parts
from steelyard.inertia import InertialParameters
from steelyard.payload import Evidence, judge
from steelyard.verdict import Doubt, Verdict
from steelyard.wrist._checks import (
    CAUSE_STD,
    CauseColumn,
    ForceScales,
    biased_steps,
    coarse_reading_doubt,
    force_scale_doubts,
    load_change_doubts,
    truncation_doubts,
    unexplained_wrench_doubts,
    weight_doubts,
)
from steelyard.wrist._payload import (
    STATIC_INDICES,
    STATIC_TILT,
    StaticFit,
    WristPayload,
    drift_doubt,
    tilt_doubt,
    weak_inertia_doubt,
)
from steelyard.wrist._recording import OTHER_CONVENTION
from steelyard.wrist._regression import WrenchEstimator, WrenchFit, WrenchRegression
from steelyard.wrist._regressor import (
    BODY,
    DRIFT,
    TILT,
    BaseGravity,
    wrench_regressor,
    wrench_slope,
)
from steelyard.wrist._samples import WrenchSamples
from steelyard.wrist.estimators import ESTIMATORS

_LEAST_TURN = 1e-9  # [rad]; measured orientations have more noise
_MAX_ITERATIONS = 6  # of the tilt
_FORCES = slice(0, 3)
_TORQUES = slice(3, 6)
_TILT_TOLERANCE = 1e-7  # [rad]; smaller steps end the iteration


@dataclass(frozen=True, eq=False)
class _Setting:
    """The unknowns, their prior, and their current values."""

    samples: WrenchSamples
    gravity: BaseGravity
    value: Array  # of the eighteen numbers, (18,)
    information: Array  # inverse covariance of the prior, (18, 18)
    prior: Array  # values of the prior, (18,)
    free: NDArray[np.int64]  # indices of those that are estimated
    drifting: bool = False  # whether the drift changes linearly in time

    def regression(self) -> WrenchRegression:
        """The regression at the current tilt; its unknown tilt is the step from there."""
        samples = self.samples
        angles = self.value[TILT]
        N = len(samples)
        tilt = self.gravity.tilt_columns(self.value[BODY], samples.R_base_sensor, angles)
        columns = np.concatenate([np.tile(np.eye(6), (N, 1, 1)), tilt], axis=2)
        chosen = self.free[self.free >= BODY.stop] - BODY.stop
        exact = [columns[:, :, chosen]]
        known = [k for k in range(6) if k not in chosen]
        wrench = samples.wrench - columns[:, :, known] @ self.value[DRIFT][known]
        if self.drifting:
            exact.append((samples.t - samples.t.mean())[:, None, None] * np.eye(6))
        prior = self.prior.copy()
        L = self.information
        prior[TILT] -= angles
        count = len(self.free)
        p = count + 6 * self.drifting
        value = np.zeros(p)
        information = np.zeros((p, p))
        value[:count] = prior[self.free]
        information[:count, :count] = L[np.ix_(self.free, self.free)]
        return WrenchRegression(
            samples.features(self.gravity.tilted(angles)),
            samples.feature_covariance,
            np.concatenate(exact, axis=2),
            wrench,
            samples.wrench_covariance,
            value,
            information,
            samples.jump_variance,
        )

    def moved(self, fit: WrenchFit) -> tuple[_Setting, float]:
        """The setting at a solution, and the largest step of the tilt, [rad]."""
        value = self.value.copy()
        found = fit.value[: len(self.free)]
        tilt = self.free >= TILT.start
        value[self.free[~tilt]] = found[~tilt]
        value[self.free[tilt]] += found[tilt]
        return replace(self, value=value), float(np.abs(found[tilt]).max(initial=0.0))


def weigh_dynamic(
    samples: WrenchSamples,
    static: StaticFit | None = None,
    *,
    estimator: WrenchEstimator | None = None,
    gravity_base: ArrayLike | None = None,
    tilt: bool = True,
    drift_again: bool = False,
) -> WristPayload:
    """The payload on a sensor, ten parameters with covariance, from samples in motion.

    Args:
        samples: of the moving sensor
        static: result of the static stage; None to estimate all numbers together
        estimator: one of `steelyard.wrist.estimators.ESTIMATORS`; maximum likelihood by default
        gravity_base: gravity without a tilt, (3,) [m/s^2], in the base frame; by default that of
            `static`, else that of an upright base
        tilt: whether to estimate the tilt of the base; with `static`, that stage decides
        drift_again: whether to estimate the zero drift again, if it has changed since the static
            stage
    """
    _require_turns(samples)
    estimator = estimator or ESTIMATORS["ml"]
    setting = _setting(
        samples, static, estimator, gravity_base=gravity_base, tilt=tilt, drift_again=drift_again
    )
    if 6 * len(samples) <= len(setting.free) + 6:
        raise InvalidSamples(f"{len(samples)} samples are too few for {len(setting.free)} unknowns")
    trend, trend_std = _trend(setting)
    moving_drift = drift_doubt(trend, trend_std)
    setting = replace(setting, drifting=moving_drift is not None)
    regression = setting.regression()
    noise = regression.calibrated_covariance(ESTIMATORS["wls"].estimate(regression).value)
    setting = replace(setting, samples=replace(samples, wrench_covariance=noise))
    setting, fit = _solve(setting, estimator)
    if setting.value[0] < 0 and setting.value[0] < -3 * np.sqrt(fit.covariance[0, 0]):
        raise InvalidRecording(
            f"the load weighs {setting.value[0]:.3f} kg: the sign of the wrench is not as stated;"
            f" {OTHER_CONVENTION}"
        )
    full = np.zeros((18, 18))
    count = len(setting.free)
    full[np.ix_(setting.free, setting.free)] = fit.covariance[:count, :count]
    scales = _force_scales(setting)
    full[0, 0] += (scales.mass_std * setting.value[0]) ** 2
    plain = InertialParameters.from_vector(setting.value[BODY], "sensor")
    tilted = tilt_doubt(setting.value[TILT], setting.gravity.nominal)
    doubts = [doubt for doubt in (moving_drift, tilted) if doubt is not None]
    doubts += _unexplained_doubts(setting, fit, samples.wrench_covariance)
    doubts += force_scale_doubts(scales)
    doubts += load_change_doubts(_load_changes(setting))
    doubts += _cause_doubts(setting, float(np.sqrt(full[0, 0])))
    body, verdict = _judged(plain, full[BODY, BODY], doubts)
    return WristPayload(
        body,
        plain,
        verdict=verdict,
        method=estimator.name,
        noise=np.sqrt((fit.residual**2).mean(axis=0)),
        full_covariance=full,
        drift=setting.value[DRIFT],
        inclination=setting.value[TILT],
        nominal_gravity=setting.gravity.nominal,
        trend=trend,
        trend_std=trend_std,
        T_flange_sensor=samples.sensor.T_flange_sensor,
        made_by=samples.made_by,
    )


def _setting(
    samples: WrenchSamples,
    static: StaticFit | None,
    estimator: WrenchEstimator,
    *,
    gravity_base: ArrayLike | None,
    tilt: bool,
    drift_again: bool,
) -> _Setting:
    value = np.zeros(18)
    L = np.zeros((18, 18))
    everything = np.arange(18)
    given = gravity_base
    if given is None:
        if static is None:
            given = GRAVITY_DOWN
        else:
            given = static.nominal_gravity
    gravity = BaseGravity(np.array(given, dtype=float))
    if static is None:
        if tilt:
            free = everything
        else:
            free = everything[: TILT.start]
        start = _Setting(samples, gravity, value, L, value, everything[: TILT.start])
        first, _ = start.moved(ESTIMATORS["ls"].estimate(start.regression()))
        return _Setting(samples, gravity, first.value, L, first.value, free)
    value[STATIC_INDICES] = static.value
    if not estimator.uses_prior:
        count = DRIFT.stop if drift_again else BODY.stop
        return _Setting(samples, gravity, value, L, value, everything[:count])
    finite = np.isfinite(static.std) & (static.std > 0)
    where = np.array(STATIC_INDICES)[finite]
    L[np.ix_(where, where)] = np.linalg.inv(static.covariance[np.ix_(finite, finite)])
    if drift_again:
        L = _without_drift(L)
    if finite[STATIC_TILT].all():
        free = everything
    else:
        free = everything[: TILT.start]
    return _Setting(samples, gravity, value, L, value, free)


def _require_turns(samples: WrenchSamples) -> None:
    """Refuses samples without any turn, by which most of the numbers cannot be solved for."""
    if np.ptp(samples.R_base_sensor, axis=0).max() < _LEAST_TURN:
        raise InvalidSamples(
            "the orientation of the sensor never changes, so its load cannot be separated from its"
            " zero: turn the sensor while it records, and check the columns of its orientation"
        )


def _without_drift(L: Array) -> Array:
    """The information of a prior after elimination of the drift."""
    everything = np.arange(len(L))
    drift = everything[DRIFT]
    others = np.delete(everything, DRIFT)
    across = L[np.ix_(others, drift)]
    inverse = np.linalg.pinv(L[np.ix_(drift, drift)])
    out = np.zeros_like(L)
    out[np.ix_(others, others)] = L[np.ix_(others, others)] - across @ inverse @ across.T
    return out


def _solve(setting: _Setting, estimator: WrenchEstimator) -> tuple[_Setting, WrenchFit]:
    for _ in range(_MAX_ITERATIONS):
        fit = estimator.estimate(setting.regression())
        setting, change = setting.moved(fit)
        if change < _TILT_TOLERANCE:
            break
    return setting, fit


def _trend(setting: _Setting) -> tuple[Array, Array]:
    """The rate of the drift and its standard deviation, (6,) each, by weighted least squares."""
    drift = np.arange(DRIFT.start, DRIFT.stop)
    free = np.union1d(setting.free, drift)
    extended = replace(setting, free=free)
    if not set(drift) <= set(setting.free):
        extended = replace(extended, information=np.zeros((18, 18)))
    fit = ESTIMATORS["wls"].estimate(replace(extended, drifting=True).regression())
    return fit.value[-6:], np.sqrt(np.diag(fit.covariance)[-6:])


def _unexplained_doubts(
    setting: _Setting, fit: WrenchFit, sensor_covariance: Array
) -> Iterable[Doubt]:
    """Doubts about residuals beyond the noise of the sensor itself and of the motion."""
    samples = setting.samples
    B = wrench_slope(setting.value[BODY])
    motion = B @ samples.feature_covariance.mean(axis=0) @ B.T
    return unexplained_wrench_doubts(
        (fit.residual**2).mean(axis=0),
        np.diag(sensor_covariance + motion) + samples.jump_variance.mean(axis=0),
        samples.wrench.var(axis=0),
    )


def _cause_doubts(setting: _Setting, mass_std: float) -> Iterable[Doubt]:
    """Doubts about the clock and about truncated readings, from further columns.

    Args:
        mass_std: standard deviation of the mass, [kg]
    """
    samples = setting.samples
    columns = []
    if samples.differentiated:
        gravity = setting.gravity.tilted(setting.value[TILT])
        u = np.einsum("nji,j->ni", samples.R_base_sensor, gravity)
        at_rest = np.column_stack([u, np.zeros((len(u), 9))])
        columns.append(wrench_regressor(at_rest) @ setting.value[BODY])
    truncated = [axes for axes in (_FORCES, _TORQUES) if samples.reading_step[axes].all()]
    for axes in truncated:
        bias = np.zeros_like(samples.wrench)
        bias[:, axes] = -0.5 * samples.reading_step[axes] * np.sign(samples.wrench[:, axes])
        columns.append(bias)
    if not columns:
        return
    causes = _single_causes(setting.regression(), np.stack(columns, axis=2))
    if samples.differentiated:
        yield from weight_doubts(causes.pop(0))
    for axes, cause in zip(truncated, causes, strict=True):
        unit = "N" if axes == _FORCES else "Nm"
        found = [*truncation_doubts(cause, float(samples.reading_step[axes].max()), unit)]
        yield from found
        surely_rounded = cause.excludes(1.0) and (cause.value < 0 or not cause.excludes(0.0))
        if axes == _FORCES and not found and not surely_rounded:
            size = float(np.linalg.norm(setting.gravity.nominal))
            steps = biased_steps(samples.reading_step, samples.wrench)
            coarse = coarse_reading_doubt(steps, mass_std, size)
            yield from () if coarse is None else (coarse,)


def _force_scales(setting: _Setting) -> ForceScales:
    """The scales of the three forces, by the force of the load along each axis."""
    regression = setting.regression()
    load = _load(setting, regression)
    return ForceScales(*_causes(regression, load[:, :, None] * np.eye(6, 3)))


def _load_changes(setting: _Setting) -> list[CauseColumn]:
    """The relative change of the load in each part of the time after the first."""
    regression = setting.regression()
    (columns,) = in_parts([_load(setting, regression)])
    return _single_causes(regression, columns)


def _load(setting: _Setting, regression: WrenchRegression) -> Array:
    """The wrench of the load alone, (N, 6) [N, Nm]."""
    return wrench_regressor(regression.x) @ setting.value[BODY]


def _single_causes(regression: WrenchRegression, columns: Array) -> list[CauseColumn]:
    """Each factor of further columns, (N, 6, c), with its own standard deviation."""
    value, covariance = _causes(regression, columns)
    return [CauseColumn(*each) for each in zip(value, np.sqrt(np.diag(covariance)), strict=True)]


def _causes(regression: WrenchRegression, columns: Array) -> tuple[Array, Array]:
    """The factors of further columns and their covariance, without prior knowledge of the body.

    Args:
        columns: (N, 6, c)
    """
    p = regression.p
    more = columns.shape[2]
    information = np.zeros((p + more, p + more))
    information[BODY.stop : p, BODY.stop : p] = _without_body(regression.prior_information)
    information[range(p, p + more), range(p, p + more)] = CAUSE_STD**-2
    extended = replace(
        regression,
        exact=np.concatenate([regression.exact, columns], axis=2),
        prior_value=np.append(regression.prior_value, np.zeros(more)),
        prior_information=information,
    )
    fit = ESTIMATORS["wls"].estimate(extended)
    return fit.value[p:], fit.covariance[p:, p:]


def _without_body(L: Array) -> Array:
    """The information of a prior about drift and tilt, after elimination of the body."""
    across = L[BODY.stop :, BODY]
    return np.asarray(
        L[BODY.stop :, BODY.stop :] - across @ np.linalg.pinv(L[BODY, BODY]) @ across.T
    )


def _judged(
    plain: InertialParameters, covariance: Array, doubts: Sequence[Doubt]
) -> tuple[InertialParameters, Verdict]:
    """The body of the answer, and the verdict on it."""
    unknown = ~np.isfinite(np.diag(covariance))
    body, verdict = judge(
        Evidence(plain, covariance, unknown, doubts=doubts, beyond_empty_arm=False)
    )
    weak = weak_inertia_doubt(body, covariance)
    if weak is not None:
        verdict = verdict.doubted(weak)
    return body, verdict
