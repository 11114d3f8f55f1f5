"""The real body nearest to an estimate.

An unconstrained estimate of a small inertia is often one that no body has, although real bodies lie well
inside its uncertainty. Among all physical bodies, phi(theta) with log-Cholesky parameters theta, the one that
the data like best has the smallest

    d^2 = (phi(theta) - phi)' Sigma^-1 (phi(theta) - phi)

and d says, in standard deviations, how far the estimate had to go. A body is at least a millimetre thick.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from steelyard.inertia import InertialParameters

__all__ = ["nearest_physical"]

Array = NDArray[np.float64]

_THINNEST = 1e-3
_LARGEST = 3.0
_FIRST_GUESS_RADIUS = 0.05


def nearest_physical(body: InertialParameters, covariance: Array) -> tuple[InertialParameters, float]:
    """The physical body nearest to an estimate, and its distance in standard deviations.

    Args:
        body: the estimate
        covariance: of its ten numbers, finite, (10, 10)
    """
    if body.is_physical:
        return body, 0.0
    whitening = np.linalg.inv(np.linalg.cholesky(covariance))

    def distance(theta: Array) -> Array:
        return np.asarray(whitening @ (InertialParameters.from_log_cholesky(theta).vector - body.vector))

    start = _first_guess(body).log_cholesky
    low, high = np.full(10, -np.inf), np.full(10, np.inf)
    low[1:4], high[1:4] = np.log(_THINNEST), np.log(_LARGEST)
    found = least_squares(distance, np.clip(start, low + 1e-6, high - 1e-6), bounds=(low, high), xtol=1e-12)
    return InertialParameters.from_log_cholesky(found.x, body.frame), float(np.sqrt(2 * found.cost))


def _first_guess(body: InertialParameters) -> InertialParameters:
    """A ball of the estimated mass at the estimated centre of mass."""
    mass = max(body.mass, 1e-3)
    com = np.clip(body.first_moment / mass, -_LARGEST, _LARGEST)
    inertia = 0.4 * mass * _FIRST_GUESS_RADIUS**2 * np.eye(3)
    return InertialParameters.from_com(mass, com, inertia, body.frame)
