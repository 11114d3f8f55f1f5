"""The real body nearest to an estimate.

An unconstrained estimate of a small inertia is often one that no body has, although real bodies lie well
inside its uncertainty. Among all bodies that are at least t = 1 mm thick, the one that the data like best has
the smallest

    d^2 = (x - phi)' Sigma^-1 (x - phi)      with      M(x) = J(x) - m t^2 diag(1, 1, 1, 0)  >=  0,

J(x) the pseudo-inertia, linear in the ten numbers x; M >= 0 says (Schur) that the second moment about the
centre of mass is at least m t^2 in every direction. This is convex, so there is one nearest body. It is
found along the central path: Newton's method on d^2 / 2 - mu log det M(x), mu falling until 4 mu, by which
d^2 / 2 can still be too large, is nothing. d says, in standard deviations, how far the estimate had to go.
"""

from __future__ import annotations

import numpy as np

from steelyard.arrays import Array
from steelyard.inertia import InertialParameters

_THINNEST = 1e-3
_FIRST_GUESS_RADIUS = 0.05
_LAST_MU = 1e-10
_MU_FACTOR = 0.2
_NEWTON_STEPS = 50
_HALVINGS = 60


def nearest_physical(body: InertialParameters, covariance: Array) -> tuple[InertialParameters, float]:
    """The physical body nearest to an estimate, and its distance in standard deviations.

    Args:
        covariance: of its ten numbers, finite, (10, 10)
    """
    if body.is_physical:
        return body, 0.0
    scale = np.sqrt(np.diag(covariance))
    whitening = np.linalg.inv(np.linalg.cholesky(covariance / np.outer(scale, scale)))
    A = _cone() * scale[:, None, None]
    x, wanted = _first_guess(body).vector / scale, body.vector / scale
    mu = max(1.0, float(np.sum((whitening @ (x - wanted)) ** 2)))
    while mu > _LAST_MU:
        mu *= _MU_FACTOR
        x = _centred(x, wanted, whitening, A, mu)
    nearest = InertialParameters.from_vector(x * scale, body.frame)
    return nearest, float(np.linalg.norm(whitening @ (x - wanted)))


def _centred(x: Array, wanted: Array, whitening: Array, A: Array, mu: float) -> Array:
    """The point of the central path at mu, by Newton's method from a point inside, (10,)."""

    def height(point: Array) -> float:
        try:
            L = np.linalg.cholesky(np.tensordot(point, A, axes=1))
        except np.linalg.LinAlgError:
            return np.inf
        log_det = 2 * float(np.log(np.diag(L)).sum())
        return float(np.sum((whitening @ (point - wanted)) ** 2)) / 2 - mu * log_det

    precision = whitening.T @ whitening
    here = height(x)
    for _ in range(_NEWTON_STEPS):
        inverse = np.linalg.inv(np.tensordot(x, A, axes=1))
        B = inverse @ A
        gradient = precision @ (x - wanted) - mu * np.trace(B, axis1=1, axis2=2)
        hessian = precision + mu * np.einsum("iab,jba->ij", B, B)
        step = np.linalg.solve(hessian, gradient)
        decrease = float(gradient @ step)
        if decrease < 1e-12 * mu:
            break
        share = 1.0
        for _ in range(_HALVINGS):
            if (there := height(x - share * step)) < here - 0.25 * share * decrease:
                x, here = x - share * step, there
                break
            share /= 2
        else:
            break
    return x


def _cone() -> Array:
    """How M changes with each of the ten numbers, (10, 4, 4)."""
    A = np.array([InertialParameters.from_vector(row).pseudo_inertia for row in np.eye(10)])
    A[0] -= _THINNEST**2 * np.diag([1.0, 1.0, 1.0, 0.0])
    return A


def _first_guess(body: InertialParameters) -> InertialParameters:
    """A ball of the estimated mass at the estimated centre of mass."""
    mass = max(body.mass, 1e-3)
    com = np.clip(body.first_moment / mass, -3.0, 3.0)
    return InertialParameters.from_com(mass, com, 0.4 * mass * _FIRST_GUESS_RADIUS**2 * np.eye(3), body.frame)
