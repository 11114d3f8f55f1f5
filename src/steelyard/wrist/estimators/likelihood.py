"""Maximum likelihood with errors in the motion, sample by sample: the default.

Each sample has its own error covariance Sx_k, because the same joint noise becomes another acceleration in
another posture. With normal errors the true features are profiled out, and what is left to minimise is

    sum_k r_k' S_k(phi)^-1 r_k,     r_k = wrench_k - Y(x_k) phi - E_k eta,    S_k = Sw + B(phi) Sx_k B(phi)'

whose expectation has its minimum at the truth, however large Sx is. With u_k = S_k^-1 r_k the best guess of
the true features is x_k + Sx_k B' u_k, the gradient (envelope theorem) is -2 sum Y(that guess)' u_k, and
the expected curvature 2 sum (Y' S^-1 Y - E[dY' S^-1 dY]): steps of Fisher's scoring, halved where they go
too far. It starts from restricted total least squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.arrays import Array
from steelyard.wrist.estimators.batch import RESTRICTED
from steelyard.wrist.regression import WrenchEstimator, WrenchFit, WrenchRegression
from steelyard.wrist.regressor import wrench_regressor, wrench_slope

_STEPS = 50
_HALVINGS = 12


def _maximum_likelihood(regression: WrenchRegression) -> WrenchFit:
    theta = RESTRICTED.estimate(regression).value
    here = _Point.at(regression, theta, 1.0)
    freedom = regression.wrench.size - regression.p
    for _ in range(_STEPS):
        here = _Point.at(regression, here.theta, max(here.chi2 / freedom, 1e-12))
        step = np.asarray(np.linalg.solve(here.information, here.gradient))
        better = _downhill(regression, here, step)
        if better is None:
            break
        here, small = better, np.abs(step) @ np.abs(here.gradient)
        if small < 1e-10:
            break
    return regression.fit(here.theta, here.slope / here.scale, here.scores / here.scale, here.chi2 / freedom)


MAXIMUM_LIKELIHOOD = WrenchEstimator("maximum likelihood", uses_prior=True, estimate=_maximum_likelihood)


@dataclass(frozen=True, eq=False)
class _Point:
    """The likelihood at some parameters."""

    theta: Array
    scale: float
    chi2: float
    cost: float
    scores: Array
    slope: Array
    information: Array
    gradient: Array

    @classmethod
    def at(cls, regression: WrenchRegression, theta: Array, scale: float) -> _Point:
        B = wrench_slope(theta[:10])
        S = regression.residual_covariance(theta[:10])
        inverse = np.asarray(np.linalg.inv(S))
        Y = regression.regressor
        residual = regression.wrench - Y @ theta
        u = (inverse @ residual[:, :, None])[:, :, 0]
        guess = regression.x + np.einsum("nlm,nm->nl", regression.x_covariance, u @ B)
        Y_guess = np.concatenate([wrench_regressor(guess), regression.exact], axis=2)
        scores = np.einsum("nia,ni->na", Y_guess, u)
        slope = np.tensordot(Y, inverse @ Y, axes=([0, 1], [0, 1]))
        slope[:10, :10] -= regression.regressor_noise(inverse)
        L, away = regression.prior_information, regression.prior_value - theta
        chi2 = float((u * residual).sum())
        return cls(
            theta,
            scale,
            chi2,
            chi2 / scale + float(away @ L @ away),
            scores,
            slope,
            _positive(slope) / scale + L,
            scores.sum(axis=0) / scale + L @ away,
        )


def _downhill(regression: WrenchRegression, here: _Point, step: Array) -> _Point | None:
    """The point after the longest of ever shorter steps that lowers the cost; None when none does."""
    for k in range(_HALVINGS):
        there = _Point.at(regression, here.theta + step / 2**k, here.scale)
        if there.cost <= here.cost:
            return there
    return None


def _positive(slope: Array) -> Array:
    """The curvature with its negative part turned round, so that steps go downhill."""
    scale = np.sqrt(np.maximum(np.abs(np.diag(slope)), 1e-300))
    values, vectors = np.linalg.eigh(slope / np.outer(scale, scale))
    values = np.maximum(np.abs(values), 1e-12)
    return np.asarray((vectors * values) @ vectors.T * np.outer(scale, scale))
