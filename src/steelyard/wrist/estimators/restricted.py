"""Restricted total least squares in one piece: the generalised eigenproblem, liu2025 eq. (33).

M v = mu P v with P propagated from the noise of acceleration, angular velocity, angular acceleration and
wrench through the regressor. The weights W are the inverse mean covariance of the residuals, which depends
on the parameters; three rounds settle it. Whatever W is, the answer is consistent; W makes it efficient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.wrist.estimators.ratio import (
    augmented,
    fit_of_value,
    propagated_noise,
    smallest_ratio,
    with_prior,
)
from steelyard.wrist.estimators.weighted import WeightedLeastSquares
from steelyard.wrist.problem import WrenchFit, WrenchProblem

_ROUNDS = 4


@dataclass(frozen=True)
class RestrictedTotalLeastSquares:
    """Batch restricted total least squares."""

    name: str = "restricted TLS"
    uses_prior: bool = True

    def estimate(self, problem: WrenchProblem) -> WrenchFit:
        """The unknowns with their covariance.

        Args:
            problem: rows and noise
        """
        theta = WeightedLeastSquares().estimate(problem).value
        Z = augmented(problem)
        for _ in range(_ROUNDS):
            W = np.linalg.inv(problem.residual_covariance(theta[:10]).mean(axis=0))
            M = np.einsum("nia,ij,njb->ab", Z, W, Z, optimize=True)
            P = propagated_noise(problem, W)
            theta, mu = smallest_ratio(*with_prior(M, P, problem))
        return fit_of_value(problem, theta, W, noise="propagated", mu=mu)
