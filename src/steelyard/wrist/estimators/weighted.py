"""Weighted least squares: each axis of the wrench counts by the size of its own residuals, found in turns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.wrist.estimators.ratio import fit_of_value
from steelyard.wrist.problem import WrenchFit, WrenchProblem

_ROUNDS = 20


@dataclass(frozen=True)
class WeightedLeastSquares:
    """Least squares weighted by the noise of each axis; errors of the motion are not suspected."""

    name: str = "WLS"
    uses_prior: bool = True

    def estimate(self, problem: WrenchProblem) -> WrenchFit:
        """The unknowns with their covariance.

        Args:
            problem: rows and noise
        """
        Y, L = problem.regressor, problem.prior_information
        variance = np.diag(problem.wrench_covariance).copy()
        for _ in range(_ROUNDS):
            rows = Y / np.sqrt(variance)[:, None]
            right = problem.wrench / np.sqrt(variance)
            H = np.tensordot(rows, rows, axes=([0, 1], [0, 1])) + L
            theta = np.linalg.solve(
                H, np.tensordot(rows, right, axes=2 * ([0, 1],)) + L @ problem.prior_value
            )
            before = variance
            variance = np.maximum(((problem.wrench - Y @ theta) ** 2).mean(axis=0), 1e-24)
            if np.allclose(before, variance, rtol=1e-6):
                break
        return fit_of_value(
            problem, np.asarray(theta), np.asarray(np.diag(1 / variance)), noise="wrench", mu=0.0
        )
