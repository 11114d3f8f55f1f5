"""A feasible interior-point method: every point that it visits keeps every limit.

Minimise f(u) subject to s(u) > 0, from a start inside. With the barrier weight mu, J the
derivatives of s and z > 0 the multipliers, the conditions

    grad f - J' z = 0,      z_i s_i = mu

are solved by steps of Newton's method with the multipliers' part eliminated,

    (B + J' diag(z / s) J) du = -(grad f - J' (mu / s)),      dz = mu / s - z - (z / s) J du

where B approximates the curvature of f - z's (BFGS, damped as Powell does). A step is cut so that s
stays positive, and then until f - mu sum log s falls (Armijo); z has a length of its own, and goes
on from stage to
stage: with mu / s instead, as if nothing was known of which limits matter, most steps of the next
stage end at a limit after a small part of their way. Thousands of limits cost little: they enter
through sums over their gradients, not through an active set; and whoever stops it early has a
feasible motion. (Nocedal and Wright, Numerical Optimization, chapter 19.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from steelyard._arrays import Array

_TO_BOUNDARY = 0.9  # share of the way to a limit that one step may go
_SUFFICIENT = 1e-4
_LARGEST_STEP_HALVINGS = 25
_CENTRAL = 1e8  # z s stays within this factor of mu
_TOLERANCE = 1e-5  # change of the barrier function below which a stage ends


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
        """How far each limit is away at a point u, (size,); positive inside."""

    def linearised(self, u: Array) -> _Linearised:
        """The slacks at a point u, (size,), with their derivatives."""


class Minimiser:
    """Goes downhill from a feasible point u, (size,), stage by stage; calls `visit` with accepted points."""

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
        """One stage, from where the last one ended.

        Args:
            value: f, of u
            value_and_gradient: f and its gradient, of u
            barrier: mu
        """
        now = [part.linearised(self.u) for part in self.constraints]
        f, grad = value_and_gradient(self.u)
        z = self._z or [barrier / part.slack for part in now]
        small_changes = 0
        for _ in range(iterations):
            du, dz = self._direction(grad, now, z, barrier)
            length, fall = self._step(value, f, grad, now, du, barrier)
            if length == 0.0:
                break
            falls = max((-dzi / zi).max(initial=0.0) for zi, dzi in zip(z, dz, strict=True))
            if falls > 0:
                onward = min(1.0, _TO_BOUNDARY / falls)
            else:
                onward = 1.0
            z = [zi + onward * dzi for zi, dzi in zip(z, dz, strict=True)]
            u_next = self.u + length * du
            after = [part.linearised(u_next) for part in self.constraints]
            f, grad_next = value_and_gradient(u_next)
            self._learn(length * du, grad_next - grad, now, after, z)
            bounds = [
                (barrier / part.slack / _CENTRAL, _CENTRAL * barrier / part.slack) for part in after
            ]
            z = [np.clip(zi, low, high) for zi, (low, high) in zip(z, bounds, strict=True)]
            self.u = u_next
            now = after
            grad = grad_next
            self._z = z
            self.visit(self.u)
            if fall < _TOLERANCE:
                small_changes = small_changes + 1
            else:
                small_changes = 0
            if small_changes >= 3:
                break

    def _direction(
        self, grad: Array, now: list[_Linearised], z: list[Array], mu: float
    ) -> tuple[Array, list[Array]]:
        H = self._B.copy()
        right = -grad
        for part, zi in zip(now, z, strict=True):
            H += part.curvature(zi / part.slack)
            right = right + part.pull(mu / part.slack)
        ridge = 1e-12 * np.trace(H) / len(H)
        while True:
            try:
                du = cho_solve(cho_factor(H + ridge * np.eye(len(H))), right)
                break
            except LinAlgError:
                ridge *= 100
        dz = [mu / p.slack - zi - zi / p.slack * p.along(du) for p, zi in zip(now, z, strict=True)]
        return np.asarray(du), dz

    def _step(
        self,
        value: Callable[[Array], float],
        f: float,
        grad: Array,
        now: list[_Linearised],
        du: Array,
        mu: float,
    ) -> tuple[float, float]:
        """Length of the step, and by how much the barrier function falls."""
        length = 1.0
        for constraint, part in zip(self.constraints, now, strict=True):
            if constraint.linear and part.slack.size:
                fall = (-part.along(du) / part.slack).max()
                if fall > 0:
                    length = min(length, _TO_BOUNDARY / fall)
        before = f - mu * sum(np.log(part.slack).sum() for part in now)
        slope = float(grad @ du) - mu * sum((part.along(du) / part.slack).sum() for part in now)
        leasts = [0.999 * (1 - _TO_BOUNDARY) * part.slack for part in now]
        for _ in range(_LARGEST_STEP_HALVINGS):
            u = self.u + length * du
            slacks = [constraint.slack(u) for constraint in self.constraints]
            if all((s >= least).all() for s, least in zip(slacks, leasts, strict=True)):
                after = value(u) - mu * sum(np.log(s).sum() for s in slacks)
                if after <= before + _SUFFICIENT * length * slope:
                    return length, before - after
            length *= 0.5
        return 0.0, 0.0

    def _learn(
        self,
        du: Array,
        y: Array,
        before: list[_Linearised],
        after: list[_Linearised],
        z: list[Array],
    ) -> None:
        """Powell's damped BFGS update of B; y is the change of the gradient of f."""
        for constraint, old, new, zi in zip(self.constraints, before, after, z, strict=True):
            if not constraint.linear:
                y = y - (new.pull(zi) - old.pull(zi))
        if not self._scaled and du @ y > 0:
            self._B *= (y @ y) / (du @ y)
            self._scaled = True
        Bdu = self._B @ du
        curved = float(du @ Bdu)
        if du @ y < 0.2 * curved:
            share = 0.8 * curved / (curved - du @ y)
            y = share * y + (1 - share) * Bdu
        self._B += np.outer(y, y) / (du @ y) - np.outer(Bdu, Bdu) / curved
