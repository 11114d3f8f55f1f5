"""The regression of the dynamic stage: a wrench, a regressor with errors of known covariance, exact columns.

    wrench_k = Y(x_k) phi + E_k eta + e_k,      x_k = true features + d_k,   cov e = Sw,  cov d_k = Sx_k

Y is linear in x (`regressor`), so Y(x_k) has the errors T d_k, and the residual of the true parameters has
the covariance S_k(phi) = Sw + B Sx_k B', B = T phi. The columns E (zero drift, tilt) are known exactly.
What was known before, say from the static stage, is a prior: information L and value theta0 of theta =
(phi, eta).

All estimators share one interface: `estimate(problem) -> WrenchFit`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from steelyard.arrays import Array
from steelyard.wrist.regressor import wrench_regressor, wrench_tensor


@dataclass(frozen=True, eq=False)
class WrenchProblem:
    """Rows to fit, with the covariance of all their errors.

    Attributes:
        x: features of the motion, (N, 12)
        x_covariance: of their errors, (N, 12, 12)
        exact: columns beside the ten, known exactly, (N, 6, e)
        wrench: what the load does to the sensor, (N, 6) [N, Nm]
        wrench_covariance: of its errors, (6, 6)
        prior_value: of the p = 10 + e unknowns, (p,)
        prior_information: inverse covariance of the prior, (p, p); zeros for none
    """

    x: Array
    x_covariance: Array
    exact: Array
    wrench: Array
    wrench_covariance: Array
    prior_value: Array
    prior_information: Array

    def __len__(self) -> int:
        return len(self.x)

    @property
    def p(self) -> int:
        """Number of unknowns."""
        return 10 + int(self.exact.shape[2])

    @property
    def regressor(self) -> Array:
        """The matrix of the p unknowns, (N, 6, p)."""
        return np.concatenate([wrench_regressor(self.x), self.exact], axis=2)

    @property
    def has_prior(self) -> bool:
        """Whether anything was known before."""
        return bool(self.prior_information.any())

    def residual(self, theta: Array) -> Array:
        """Measured less modelled wrenches, (N, 6) [N, Nm].

        Args:
            theta: the unknowns, (p,)
        """
        return self.wrench - self.regressor @ theta

    def residual_covariance(self, phi: Array) -> Array:
        """The covariance S of each residual, from all errors, (N, 6, 6).

        Args:
            phi: ten inertial parameters, (10,)
        """
        B = row_slope(phi)
        return self.wrench_covariance + B @ self.x_covariance @ B.T


@dataclass(frozen=True, eq=False)
class WrenchFit:
    """What an estimator found.

    Attributes:
        value: the p unknowns, the ten inertial parameters first, (p,)
        covariance: theirs, correlation in time counted, (p, p)
        residual: measured less modelled wrenches, (N, 6) [N, Nm]
        scale: variance of the residuals beside what the sensors' noise would give; 1 is right
    """

    value: Array
    covariance: Array
    residual: Array
    scale: float


class WrenchEstimator(Protocol):
    """One way to solve a `WrenchProblem`."""

    @property
    def name(self) -> str:
        """In a word or two, for tables."""

    @property
    def uses_prior(self) -> bool:
        """Whether it weighs rows by their noise, so that a prior has a meaning."""

    def estimate(self, problem: WrenchProblem) -> WrenchFit:
        """The unknowns with their covariance.

        Args:
            problem: rows and noise
        """


def row_slope(phi: Array) -> Array:
    """The derivative B of a modelled wrench by the features, (6, 12).

    Args:
        phi: ten inertial parameters, (10,)
    """
    return np.asarray((wrench_tensor() @ phi).T)


def noise_of_rows(x_covariance: Array, weights: Array) -> Array:
    """The sum over all rows of E[dY' W dY], the covariance that noise adds to Y'WY, (10, 10).

    Args:
        x_covariance: of the features' errors, (N, 12, 12)
        weights: W of each sample, (N, 6, 6), or one for all, (6, 6)
    """
    T = wrench_tensor()
    if weights.ndim == 2:
        pair = x_covariance.sum(axis=0).reshape(144, 1) @ weights.reshape(1, 36)
    else:
        pair = x_covariance.reshape(-1, 144).T @ weights.reshape(-1, 36)
    return np.asarray(np.einsum("lmij,lia,mjb->ab", pair.reshape(12, 12, 6, 6), T, T, optimize=True))
