"""Least squares: only the wrench is noisy, and all its axes alike. Biased where the motion is noisy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.wrist.estimators.ratio import fit_of_value
from steelyard.wrist.problem import WrenchFit, WrenchProblem


@dataclass(frozen=True)
class LeastSquares:
    """Ordinary least squares, newton and newton metre counted alike, as in the papers."""

    name: str = "LS"
    uses_prior: bool = False

    def estimate(self, problem: WrenchProblem) -> WrenchFit:
        """The unknowns with their covariance.

        Args:
            problem: rows and noise
        """
        rows = problem.regressor.reshape(-1, problem.p)
        theta = np.linalg.lstsq(rows, problem.wrench.ravel(), rcond=None)[0]
        return fit_of_value(problem, np.asarray(theta), np.eye(6), noise="wrench", mu=0.0)
