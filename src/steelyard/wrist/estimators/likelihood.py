"""Maximum likelihood with errors in the motion, sample by sample: our best.

Each sample has its own error covariance Sx_k, because the same joint noise becomes another acceleration in
another posture. With normal errors the true features are profiled out, and what is left to minimise is

    sum_k r_k' S_k(phi)^-1 r_k,     r_k = wrench_k - Y(x_k) phi - E_k eta,    S_k = Sw + B(phi) Sx_k B(phi)'

whose expectation has its minimum at the truth, however large Sx is. With u_k = S_k^-1 r_k the best guess of
the true features is x_k + Sx_k B' u_k, the gradient (envelope theorem) is -2 sum Y(that guess)' u_k, and
the expected curvature 2 sum (Y' S^-1 Y - E[dY' S^-1 dY]): steps of Fisher's scoring, halved where they go
too far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.arrays import Array
from steelyard.wrist.covariance import sandwich
from steelyard.wrist.estimators.restricted import RestrictedTotalLeastSquares
from steelyard.wrist.problem import WrenchFit, WrenchProblem, noise_of_rows, row_slope
from steelyard.wrist.regressor import wrench_regressor

_STEPS = 50
_HALVINGS = 12


@dataclass(frozen=True)
class MaximumLikelihood:
    """Errors in variables with a covariance for each sample; starts from restricted total least squares."""

    name: str = "maximum likelihood"
    uses_prior: bool = True

    def estimate(self, problem: WrenchProblem) -> WrenchFit:
        """The unknowns with their covariance.

        Args:
            problem: rows and noise
        """
        theta = RestrictedTotalLeastSquares().estimate(problem).value
        here = _Point.at(problem, theta, 1.0)
        freedom = here.residual.size - problem.p
        for _ in range(_STEPS):
            here = _Point.at(problem, here.theta, max(here.chi2 / freedom, 1e-12))
            step = np.asarray(np.linalg.solve(here.information, here.gradient))
            better = _downhill(problem, here, step)
            if better is None:
                break
            here, small = better, np.abs(step) @ np.abs(here.gradient)
            if small < 1e-10:
                break
        covariance = sandwich(here.slope / here.scale, here.scores / here.scale, problem.prior_information)
        return WrenchFit(here.theta, covariance, here.residual, here.chi2 / freedom)


@dataclass(frozen=True, eq=False)
class _Point:
    """The likelihood at some parameters."""

    theta: Array
    scale: float
    chi2: float
    cost: float
    residual: Array
    scores: Array
    slope: Array
    information: Array
    gradient: Array

    @classmethod
    def at(cls, problem: WrenchProblem, theta: Array, scale: float) -> _Point:
        B = row_slope(theta[:10])
        S = problem.residual_covariance(theta[:10])
        inverse = np.asarray(np.linalg.inv(S))
        Y = problem.regressor
        residual = problem.wrench - Y @ theta
        u = (inverse @ residual[:, :, None])[:, :, 0]
        guess = problem.x + np.einsum("nlm,nm->nl", problem.x_covariance, u @ B)
        Y_guess = np.concatenate([wrench_regressor(guess), problem.exact], axis=2)
        scores = np.einsum("nia,ni->na", Y_guess, u)
        slope = np.tensordot(Y, inverse @ Y, axes=([0, 1], [0, 1]))
        slope[:10, :10] -= noise_of_rows(problem.x_covariance, inverse)
        L, away = problem.prior_information, problem.prior_value - theta
        chi2 = float((u * residual).sum())
        return cls(
            theta,
            scale,
            chi2,
            chi2 / scale + float(away @ L @ away),
            residual,
            scores,
            slope,
            _positive(slope) / scale + L,
            scores.sum(axis=0) / scale + L @ away,
        )


def _downhill(problem: WrenchProblem, here: _Point, step: Array) -> _Point | None:
    """The point after the longest of ever shorter steps that lowers the cost; None when none does."""
    for k in range(_HALVINGS):
        there = _Point.at(problem, here.theta + step / 2**k, here.scale)
        if there.cost <= here.cost:
            return there
    return None


def _positive(slope: Array) -> Array:
    """The curvature with its negative part turned round, so that steps go downhill."""
    scale = np.sqrt(np.maximum(np.abs(np.diag(slope)), 1e-300))
    values, vectors = np.linalg.eigh(slope / np.outer(scale, scale))
    values = np.maximum(np.abs(values), 1e-12)
    return np.asarray((vectors * values) @ vectors.T * np.outer(scale, scale))
