"""Recursive total least squares (Kubus, Kroeger, Wahl 2008): the triangular factor of [Y wrench], row by row.

The factor R of all rows (with forgetting, sqrt(lambda) R above the new rows) has the right singular vectors
of the rows themselves, so after every step the smallest one gives the total least squares solution of the
rows so far: at every step recursive equals batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.arrays import Array
from steelyard.wrist.estimators.ratio import augmented, fit_of_value
from steelyard.wrist.problem import WrenchFit, WrenchProblem


@dataclass(frozen=True)
class RecursiveTotalLeastSquares:
    """Total least squares one sample at a time; the state is the triangular factor.

    Attributes:
        name: for tables
        uses_prior: all entries count alike, so it has no use for one
        forgetting: weight of a sample after the next one came, 0 < lambda <= 1
    """

    name: str = "recursive TLS"
    uses_prior: bool = False
    forgetting: float = 1.0

    def init(self, p: int) -> Array:
        """The state before the first sample, (p + 1, p + 1).

        Args:
            p: number of unknowns
        """
        return np.zeros((p + 1, p + 1))

    def step(self, state: Array, rows: Array) -> Array:
        """The next state.

        Args:
            state: as `init` or `step` gave it
            rows: [Y wrench] of a sample, (6, p + 1)
        """
        return np.asarray(np.linalg.qr(np.vstack([np.sqrt(self.forgetting) * state, rows]), mode="r"))

    def value(self, state: Array) -> Array:
        """The unknowns that the rows so far give, (p,).

        Args:
            state: as `init` or `step` gave it
        """
        v = np.linalg.svd(state)[2][-1]
        return np.asarray(-v[:-1] / v[-1])

    def estimate(self, problem: WrenchProblem) -> WrenchFit:
        """The unknowns after all samples, with their covariance.

        Args:
            problem: rows and noise
        """
        state = self.init(problem.p)
        for rows in augmented(problem):
            state = self.step(state, rows)
        smallest = np.linalg.svd(state, compute_uv=False)[-1]
        mu = smallest**2 / (6 * len(problem))
        return fit_of_value(problem, self.value(state), np.eye(6), noise="identity", mu=mu)
