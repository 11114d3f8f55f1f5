"""A feasible interior-point method: every iterate satisfies every limit.

Minimise f(u) subject to s(u) > 0, from a start inside. With the barrier weight mu, J the
derivatives of s and z > 0 the multipliers, the conditions

    grad f - J' z = 0,      z_i s_i = mu

are solved by steps of Newton's method with the multipliers' part eliminated,

    (B + J' diag(z / s) J) du = -(grad f - J' (mu / s)),      dz = mu / s - z - (z / s) J du

where B approximates the curvature of f - z's (BFGS with Powell's damping). A step is shortened
until s stays positive and f - mu sum log s decreases (Armijo). The multipliers z have a step length
of their own and carry over from stage to stage: if every stage started with z = mu / s, it would
not know which limits are active, and most of its steps would end at a limit after a small part of
their length. Thousands of limits are cheap, because they enter through sums over their gradients
and not through an active set. A run that is stopped early ends at a feasible point. (Nocedal and
Wright, Numerical Optimization, chapter 19.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from steelyard._arrays import Array

_MAX_BOUNDARY_SHARE = 0.9  # largest share of the distance to a limit that one step covers
_ARMIJO_SHARE = 1e-4  # share of the predicted decrease that a step must reach
_MAX_STEP_HALVINGS = 25
_MAX_CENTRALITY = 1e8  # z s stays within this factor of mu
_MIN_DECREASE = 1e-5  # a smaller decrease of the barrier function counts towards the end
_MAX_SMALL_DECREASES = 3  # consecutive small decreases that end a stage


class _Linearised(Protocol):
    """Slacks s at a point, and products with their derivatives J."""

    @property
    def slack(self) -> Array: ...

    def along(self, du: Array) -> Array:
        """J du."""

    def pull(self, z: Array) -> Array:
        """J' z."""

    def curvature(self, d: Array) -> Array:
        """J' diag(d) J, (size, size)."""


class Constraint(Protocol):
    """A family of limits."""

    linear: bool

    def slack(self, u: Array) -> Array:
        """The slack of each limit at a point u, (size,); positive inside."""

    def linearised(self, u: Array) -> _Linearised:
        """The slacks at a point u, (size,), with their derivatives."""


class Minimiser:
    """Minimises from a feasible point, stage by stage.

    Args:
        constraints: limits that every iterate satisfies
        u: feasible start, (size,)
        visit: called with every accepted point
    """

    def __init__(
        self, constraints: Sequence[Constraint], u: Array, visit: Callable[[Array], None]
    ) -> None:
        self.constraints = tuple(constraints)
        self.u = u
        self.visit = visit
        self._B = np.eye(len(u))
        self._z: list[Array] = []
        self._scaled = False

    def descend(
        self,
        value: Callable[[Array], float],
        value_and_gradient: Callable[[Array], tuple[float, Array]],
        *,
        barrier: float,
        iterations: int,
    ) -> None:
        """One stage, which continues from the end of the previous one.

        Args:
            value: f as a function of u
            value_and_gradient: f and its gradient as a function of u
            barrier: mu
            iterations: largest number of steps
        """
        parts = [part.linearised(self.u) for part in self.constraints]
        f, grad = value_and_gradient(self.u)
        z = self._z or [barrier / part.slack for part in parts]
        small_decreases = 0
        for _ in range(iterations):
            du, dz = self._direction(grad, parts, z, barrier)
            length, decrease = self._step(value, f, grad, parts, du, barrier)
            if length == 0.0:
                break
            z_length = _multiplier_step(z, dz)
            z = [zi + z_length * dzi for zi, dzi in zip(z, dz, strict=True)]
            u_next = self.u + length * du
            parts_next = [part.linearised(u_next) for part in self.constraints]
            f, grad_next = value_and_gradient(u_next)
            self._update_curvature(length * du, grad_next - grad, parts, parts_next, z)
            self.u = u_next
            parts = parts_next
            grad = grad_next
            z = [_clipped(zi, barrier / p.slack) for zi, p in zip(z, parts, strict=True)]
            self._z = z
            self.visit(self.u)
            if decrease < _MIN_DECREASE:
                small_decreases += 1
            else:
                small_decreases = 0
            if small_decreases >= _MAX_SMALL_DECREASES:
                break

    def _direction(
        self, grad: Array, parts: list[_Linearised], z: list[Array], mu: float
    ) -> tuple[Array, list[Array]]:
        """Newton's step du of the point and dz of the multipliers."""
        H = self._B.copy()
        right = -grad
        for part, zi in zip(parts, z, strict=True):
            H += part.curvature(zi / part.slack)
            right = right + part.pull(mu / part.slack)
        ridge = 1e-12 * np.trace(H) / len(H)
        while True:
            try:
                du = cho_solve(cho_factor(H + ridge * np.eye(len(H))), right)
                break
            except LinAlgError:
                ridge *= 100
        dz = [
            mu / part.slack - zi - zi / part.slack * part.along(du)
            for part, zi in zip(parts, z, strict=True)
        ]
        return np.asarray(du), dz

    def _step(
        self,
        value: Callable[[Array], float],
        f: float,
        grad: Array,
        parts: list[_Linearised],
        du: Array,
        mu: float,
    ) -> tuple[float, float]:
        """Length of the step and decrease of the barrier function; 0, 0 if none is found."""
        length = 1.0
        for constraint, part in zip(self.constraints, parts, strict=True):
            if constraint.linear and part.slack.size:
                fall = (-part.along(du) / part.slack).max()
                if fall > 0:
                    length = min(length, _MAX_BOUNDARY_SHARE / fall)
        before = f - mu * sum(np.log(part.slack).sum() for part in parts)
        slope = float(grad @ du) - mu * sum((part.along(du) / part.slack).sum() for part in parts)
        min_slacks = [0.999 * (1 - _MAX_BOUNDARY_SHARE) * part.slack for part in parts]
        for _ in range(_MAX_STEP_HALVINGS):
            u = self.u + length * du
            slacks = [constraint.slack(u) for constraint in self.constraints]
            if all((s >= least).all() for s, least in zip(slacks, min_slacks, strict=True)):
                after = value(u) - mu * sum(np.log(s).sum() for s in slacks)
                if after <= before + _ARMIJO_SHARE * length * slope:
                    return length, before - after
            length *= 0.5
        return 0.0, 0.0

    def _update_curvature(
        self,
        du: Array,
        y: Array,
        before: list[_Linearised],
        after: list[_Linearised],
        z: list[Array],
    ) -> None:
        """Updates B by damped BFGS (Powell); y is the change of the gradient of f."""
        for constraint, old, new, zi in zip(self.constraints, before, after, z, strict=True):
            if not constraint.linear:
                y = y - (new.pull(zi) - old.pull(zi))
        if not self._scaled and du @ y > 0:
            self._B *= (y @ y) / (du @ y)
            self._scaled = True
        Bdu = self._B @ du
        curvature = float(du @ Bdu)
        if du @ y < 0.2 * curvature:
            share = 0.8 * curvature / (curvature - du @ y)
            y = share * y + (1 - share) * Bdu
        self._B += np.outer(y, y) / (du @ y) - np.outer(Bdu, Bdu) / curvature


def _multiplier_step(z: list[Array], dz: list[Array]) -> float:
    """The length of a step dz, at most 1, that keeps all multipliers z positive."""
    fall = max((-dzi / zi).max(initial=0.0) for zi, dzi in zip(z, dz, strict=True))
    if fall <= 0:
        return 1.0
    return float(min(1.0, _MAX_BOUNDARY_SHARE / fall))


def _clipped(z: Array, central: Array) -> Array:
    """Multipliers within a factor of their central values mu / s."""
    return np.clip(z, central / _MAX_CENTRALITY, _MAX_CENTRALITY * central)
