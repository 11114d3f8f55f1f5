"""A feasible interior-point method: every point that it visits keeps every limit.

Minimise f(u) subject to s(u) > 0, from a start inside. With the barrier weight mu, J the derivatives of s and
z > 0 the multipliers, the conditions

    grad f - J' z = 0,      z_i s_i = mu

are solved by steps of Newton's method with the multipliers' part eliminated,

    (B + J' diag(z / s) J) du = -(grad f - J' (mu / s)),      dz = mu / s - z - (z / s) J du

where B approximates the curvature of f - z's (BFGS, damped as Powell does). A step is cut so that s stays
positive, and then until f - mu sum log s falls (Armijo). Thousands of limits cost little: they enter through
sums over their gradients, not through an active set; and whoever stops it early has a feasible motion.
(Nocedal and Wright, Numerical Optimization, chapter 19.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from steelyard.arrays import Array

_TO_BOUNDARY = 0.9  # share of the way to a limit that one step may go
_SUFFICIENT = 1e-4
_LARGEST_STEP_HALVINGS = 25


class LinearisedBlock(Protocol):
    """Slacks at a point and their derivatives J, as products only."""

    @property
    def slack(self) -> Array:
        """How far each limit is away."""

    def along(self, du: Array) -> Array:
        """J du.

        Args:
            du: a direction, (size,)
        """

    def pull(self, z: Array) -> Array:
        """J' z.

        Args:
            z: one number for each slack
        """

    def curvature(self, d: Array) -> Array:
        """J' diag(d) J, (size, size).

        Args:
            d: one number for each slack
        """


class LinearBlock(Protocol):
    """A family of limits: slacks anywhere, and their derivatives."""

    linear: bool

    def slack(self, u: Array) -> Array:
        """How far each limit is away, positive inside.

        Args:
            u: the point, (size,)
        """

    def linearised(self, u: Array) -> LinearisedBlock:
        """Slacks and derivatives at a point.

        Args:
            u: the point, (size,)
        """


@dataclass(frozen=True, eq=False)
class DenseBlock:
    """Slacks with a matrix of derivatives.

    Attributes:
        slack: (k,)
        J: derivatives, (k, size)
    """

    slack: Array
    J: Array

    def along(self, du: Array) -> Array:
        """J du.

        Args:
            du: a direction, (size,)
        """
        return np.asarray(self.J @ du)

    def pull(self, z: Array) -> Array:
        """J' z.

        Args:
            z: one number for each slack
        """
        return np.asarray(z @ self.J)

    def curvature(self, d: Array) -> Array:
        """J' diag(d) J, (size, size).

        Args:
            d: one number for each slack
        """
        return np.asarray((self.J * d[:, None]).T @ self.J)


@dataclass(frozen=True)
class Stage:
    """One part of a run: what is minimised, how close to the limits, how long.

    Attributes:
        value: f, of u
        value_and_gradient: f and its gradient, of u
        barrier: mu
        iterations: at most
        tolerance: change of the barrier function below which the stage ends
    """

    value: Callable[[Array], float]
    value_and_gradient: Callable[[Array], tuple[float, Array]]
    barrier: float
    iterations: int
    tolerance: float = 1e-5


class Minimiser:
    """Runs stages one after the other from a feasible point.

    Args:
        blocks: the limits
        u: a point with all slacks positive, (size,)
        visit: called with every accepted point; raise `StopIteration` in it to end the run
    """

    def __init__(self, blocks: Sequence[LinearBlock], u: Array, visit: Callable[[Array], None]) -> None:
        self.blocks = tuple(blocks)
        self.u = u
        self.visit = visit
        self._B = np.eye(len(u))
        self._scaled = False
        self._multipliers: list[Array] | None = None

    def run(self, stages: Sequence[Stage]) -> Array:
        """The point after all stages, (size,).

        Args:
            stages: in their order
        """
        try:
            for stage in stages:
                self._stage(stage)
        except StopIteration:
            pass
        return self.u

    def _stage(self, stage: Stage) -> None:
        mu = stage.barrier
        now = [block.linearised(self.u) for block in self.blocks]
        f, grad = stage.value_and_gradient(self.u)
        z = [mu / part.slack for part in now]
        small_changes = 0
        for _ in range(stage.iterations):
            du, dz = self._direction(grad, now, z, mu)
            length, phi_before, phi_after = self._step(stage, f, grad, now, du)
            if length == 0.0:
                break
            z = [np.clip(zi + length * dzi, 0.02 * zi, None) for zi, dzi in zip(z, dz, strict=True)]
            u_next = self.u + length * du
            after = [block.linearised(u_next) for block in self.blocks]
            f, grad_next = stage.value_and_gradient(u_next)
            self._learn(length * du, grad, grad_next, (now, after, z))
            z = [np.clip(zi, 0.1 * mu / p.slack, 10 * mu / p.slack) for zi, p in zip(z, after, strict=True)]
            self.u, now, grad = u_next, after, grad_next
            self.visit(self.u)
            small_changes = small_changes + 1 if phi_before - phi_after < stage.tolerance else 0
            if small_changes >= 3:
                break

    def _direction(
        self, grad: Array, now: list[LinearisedBlock], z: list[Array], mu: float
    ) -> tuple[Array, list[Array]]:
        H, right = self._B.copy(), -grad
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
        self, stage: Stage, f: float, grad: Array, now: list[LinearisedBlock], du: Array
    ) -> tuple[float, float, float]:
        """Length of the step, and the barrier function before and after it."""
        mu, length = stage.barrier, 1.0
        for block, part in zip(self.blocks, now, strict=True):
            if block.linear and part.slack.size:
                fall = (-part.along(du) / part.slack).max()
                length = min(length, _TO_BOUNDARY / fall) if fall > 0 else length
        before = f - mu * sum(np.log(part.slack).sum() for part in now)
        slope = float(grad @ du) - mu * sum((part.along(du) / part.slack).sum() for part in now)
        leasts = [0.999 * (1 - _TO_BOUNDARY) * part.slack for part in now]
        for _ in range(_LARGEST_STEP_HALVINGS):
            u = self.u + length * du
            slacks = [block.slack(u) for block in self.blocks]
            if all((s >= least).all() for s, least in zip(slacks, leasts, strict=True)):
                after = stage.value(u) - mu * sum(np.log(s).sum() for s in slacks)
                if after <= before + _SUFFICIENT * length * slope:
                    return length, before, after
            length *= 0.5
        return 0.0, before, before

    def _learn(
        self,
        du: Array,
        grad: Array,
        grad_next: Array,
        limits: tuple[list[LinearisedBlock], list[LinearisedBlock], list[Array]],
    ) -> None:
        """Powell's damped BFGS update of B by the change of the Lagrangian's gradient."""
        y = grad_next - grad
        for block, before, after, z in zip(self.blocks, *limits, strict=True):
            if not block.linear:
                y = y - (after.pull(z) - before.pull(z))
        if not self._scaled and du @ y > 0:
            self._B *= (y @ y) / (du @ y)
            self._scaled = True
        Bdu = self._B @ du
        curved = float(du @ Bdu)
        if du @ y < 0.2 * curved:
            share = 0.8 * curved / (curved - du @ y)
            y = share * y + (1 - share) * Bdu
        self._B += np.outer(y, y) / (du @ y) - np.outer(Bdu, Bdu) / curved
