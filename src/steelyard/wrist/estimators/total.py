"""Total least squares: every entry of [Y wrench] is suspected of the same error, liu2025 eq. (26)-(28)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.wrist.estimators.ratio import augmented, fit_of_value
from steelyard.wrist.problem import WrenchFit, WrenchProblem


@dataclass(frozen=True)
class TotalLeastSquares:
    """The right singular vector of the smallest singular value of [Y wrench]."""

    name: str = "TLS"
    uses_prior: bool = False

    def estimate(self, problem: WrenchProblem) -> WrenchFit:
        """The unknowns with their covariance.

        Args:
            problem: rows and noise
        """
        Z = augmented(problem).reshape(-1, problem.p + 1)
        _, s, Vt = np.linalg.svd(Z, full_matrices=False)
        theta = -Vt[-1, :-1] / Vt[-1, -1]
        return fit_of_value(problem, theta, np.eye(6), noise="identity", mu=s[-1] ** 2 / (6 * len(problem)))
