"""The dynamic stage: ten parameters from a moving arm, with what the static stage knows.

The unknowns are theta = (phi, drift, U, V). With a static stage, its twelve numbers and their whole
covariance are a prior, so that the uncertainty of drift and tilt is in the answer; estimators that
do not weigh samples take drift and tilt as they are. Without one, all are estimated together. The
tilt enters the wrench through u = R' g(U, V) - a; the columns of U and V are the derivatives there,
and the regression is set up anew at each tilt until it stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard._arrays import Array
from steelyard._units import GRAVITY_DOWN
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.inertia import InertialParameters
from steelyard.payload import Evidence, judge
from steelyard.verdict import Doubt, Verdict
from steelyard.wrist._payload import (
    StaticWeight,
    WristPayload,
    drift_doubt,
    tilt_doubt,
    weak_inertia_doubt,
)
from steelyard.wrist._regression import WrenchEstimator, WrenchFit, WrenchRegression
from steelyard.wrist._regressor import BaseGravity
from steelyard.wrist._samples import WrenchSamples
from steelyard.wrist.estimators import ESTIMATORS

_TILTS = 6
_STATIC = [
    0,
    1,
    2,
    3,
    *range(10, 18),
]  # where the twelve numbers of the static stage are among the eighteen


@dataclass(frozen=True, eq=False)
class _Setting:
    """What is unknown, and where the search stands."""

    samples: WrenchSamples
    gravity: BaseGravity
    value: Array  # of the eighteen numbers
    information: Array  # prior, (18, 18)
    prior: Array  # (18,)
    free: NDArray[np.int64]  # which of the eighteen are unknown
    drifting: bool = False  # whether the drift moves in time

    def regression(self) -> WrenchRegression:
        """The regression at the present tilt; the unknown tilt is what is to be added to it."""
        samples = self.samples
        angles = self.value[16:]
        N = len(samples)
        tilt = self.gravity.tilt_columns(self.value[:10], samples.R_base_sensor, angles)
        columns = np.concatenate([np.tile(np.eye(6), (N, 1, 1)), tilt], axis=2)
        chosen = self.free[self.free >= 10] - 10
        exact = [columns[:, :, chosen]]
        known = [k for k in range(6) if k not in chosen]
        wrench = samples.wrench - columns[:, :, known] @ self.value[10:][known]
        if self.drifting:
            exact.append((samples.t - samples.t.mean())[:, None, None] * np.eye(6))
        prior = self.prior.copy()
        L = self.information
        prior[16:] -= angles
        more = 6 * self.drifting
        p = len(self.free) + more
        value = np.zeros(p)
        information = np.zeros((p, p))
        value[: p - more] = prior[self.free]
        information[: p - more, : p - more] = L[np.ix_(self.free, self.free)]
        return WrenchRegression(
            samples.features(self.gravity.tilted(angles)),
            samples.feature_covariance,
            np.concatenate(exact, axis=2),
            wrench,
            samples.wrench_covariance,
            value,
            information,
        )

    def moved(self, fit: WrenchFit) -> tuple[_Setting, float]:
        """The setting at a solution, and how far the tilt went, [rad]."""
        value = self.value.copy()
        found = fit.value[: len(self.free)]
        tilt = self.free >= 16
        value[self.free[~tilt]] = found[~tilt]
        value[self.free[tilt]] += found[tilt]
        return replace(self, value=value), float(np.abs(found[tilt]).max(initial=0.0))


def weigh_dynamic(
    samples: WrenchSamples,
    static: StaticWeight | None = None,
    *,
    estimator: WrenchEstimator | None = None,
    gravity_base: ArrayLike | None = None,
    tilt: bool = True,
    drift_again: bool = False,
) -> WristPayload:
    """What the arm carries: ten parameters with covariance, from samples of a moving sensor.

    Args:
        static: what postures at rest say; None to estimate all at once
        estimator: one of `steelyard.wrist.estimators.ESTIMATORS`; maximum likelihood by default
        gravity_base: gravity without a tilt, (3,) [m/s^2], in the base frame; as in `static`, else
            upright
        tilt: whether the base may be tilted; with `static`, that stage decides
        drift_again: the zero drift has changed since the static stage: estimate it anew
    """
    estimator = estimator or ESTIMATORS["ml"]
    setting = _setting(
        samples, static, estimator, gravity_base=gravity_base, tilt=tilt, anew=drift_again
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
            f"the load weighs {setting.value[0]:.3f} kg: the wrench has the other sign than"
            " stated; say"
            " convention = 'sensor_on_load' instead of 'load_on_sensor' (or the reverse)"
        )
    full = np.zeros((18, 18))
    count = len(setting.free)
    full[np.ix_(setting.free, setting.free)] = fit.covariance[:count, :count]
    plain = InertialParameters.from_vector(setting.value[:10], "sensor")
    tilted = tilt_doubt(setting.value[16:], setting.gravity.nominal)
    doubts = [doubt for doubt in (moving_drift, tilted) if doubt is not None]
    body, verdict = _judged(plain, full[:10, :10], doubts)
    return WristPayload(
        body,
        plain,
        verdict=verdict,
        method=estimator.name,
        noise=np.sqrt((fit.residual**2).mean(axis=0)),
        full_covariance=full,
        drift=setting.value[10:16],
        inclination=setting.value[16:],
        nominal_gravity=setting.gravity.nominal,
        trend=trend,
        trend_std=trend_std,
        T_flange_sensor=samples.sensor.T_flange_sensor,
        made_by=samples.made_by,
    )


def _setting(
    samples: WrenchSamples,
    static: StaticWeight | None,
    estimator: WrenchEstimator,
    *,
    gravity_base: ArrayLike | None,
    tilt: bool,
    anew: bool,
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
            free = everything[:16]
        start = _Setting(samples, gravity, value, L, value, everything[:16])
        first, _ = start.moved(ESTIMATORS["ls"].estimate(start.regression()))
        return _Setting(samples, gravity, first.value, L, first.value, free)
    value[_STATIC] = static.value
    if not estimator.uses_prior:
        return _Setting(samples, gravity, value, L, value, everything[: 16 if anew else 10])
    finite = np.isfinite(static.std) & (static.std > 0)
    where = np.array(_STATIC)[finite]
    L[np.ix_(where, where)] = np.linalg.inv(static.covariance[np.ix_(finite, finite)])
    if anew:
        L = _without_drift(L)
    return _Setting(
        samples, gravity, value, L, value, everything if finite[10:].all() else everything[:16]
    )


def _without_drift(L: Array) -> Array:
    """The information of a prior that does not know the drift any more."""
    drift = np.arange(10, 16)
    others = np.array([*range(10), 16, 17])
    left = (
        L[np.ix_(others, others)]
        - L[np.ix_(others, drift)]
        @ np.linalg.pinv(L[np.ix_(drift, drift)])
        @ L[np.ix_(drift, others)]
    )
    out = np.zeros_like(L)
    out[np.ix_(others, others)] = left
    return out


def _solve(setting: _Setting, estimator: WrenchEstimator) -> tuple[_Setting, WrenchFit]:
    for _ in range(_TILTS):
        fit = estimator.estimate(setting.regression())
        setting, change = setting.moved(fit)
        if change < 1e-7:
            break
    return setting, fit


def _trend(setting: _Setting) -> tuple[Array, Array]:
    """How fast the drift moves and its standard deviation, by weighted least squares."""
    drift = np.arange(10, 16)
    free = np.union1d(setting.free, drift)
    here = replace(setting, free=free)
    if not set(drift) <= set(setting.free):
        here = replace(here, information=np.zeros((18, 18)))
    fit = ESTIMATORS["wls"].estimate(replace(here, drifting=True).regression())
    return fit.value[-6:], np.sqrt(np.diag(fit.covariance)[-6:])


def _judged(
    plain: InertialParameters, covariance: Array, doubts: Sequence[Doubt]
) -> tuple[InertialParameters, Verdict]:
    """The body to answer with, and the verdict on it."""
    unknown = ~np.isfinite(np.diag(covariance))
    body, verdict = judge(
        Evidence(plain, covariance, unknown, doubts=doubts, beyond_empty_arm=False)
    )
    weak = weak_inertia_doubt(body, covariance)
    if weak is not None:
        verdict = verdict.doubted(weak)
    return body, verdict
