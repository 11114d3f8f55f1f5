"""Many motions lowered at once, in one program of JAX: on the cores, or on a GPU.

Each start minimises its merit f(u) plus a barrier -mu sum log s(u) over its limits. Slacks of
position, velocity and acceleration on a grid are s = 1 - y and 1 + y with y linear in u, so that
their derivatives J are known; with multipliers z > 0, as in `solver`,

    (B + J' diag(z / s) J) du = -grad f + mu J' (1 / s),      dz = mu / s - z - (z / s) J du

with B the curvature of f (BFGS, damped as Powell does). One evaluation of f and its gradient is one
iteration for every start: the trial point is taken where the barrier function falls (Armijo), and
from there the next direction follows; elsewhere the step is shortened. So all starts do the same
work; none waits for another.

The best of a first descent are then changed and lowered again, time after time: of a copy, one
joint gets another random motion, the others stay, and so does the curvature that its parent has
learned, without which a descent would take twice as long. The best of parents and children go on.

The rows are thinned, the barrier stays far from the limits, and what Coal says is left out: this is
for finding good starts. `solver` refines the best of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard.excitation._compiling import compiled, jax_numpy
from steelyard.excitation._gradients import WIDE_SIGN_WIDTH, MotionSlacks
from steelyard.excitation._limits import DesignLimits
from steelyard.excitation._objective import Criterion
from steelyard.excitation._space import MotionSpace

_SAMPLES_PER_HARMONIC = 10
_GRID = 16  # points per harmonic
_TO_BOUNDARY = 0.9
_SUFFICIENT = 1e-4
_SHORTER = 0.4
_CENTRAL = 1e8
_SMALLEST = 1e-12  # z s stays within this factor of mu; in place of 0
_SLICE = 25  # iterations between two questions whether to go on
_EXACT = 1e3  # a sharpness at which the smooth merit is the exact one
_STAGES = ((0.0, 1.0, 1e-2, 0.2), (1.0, 2.0, 3e-3, 0.4), (1.0, 8.0, 5e-4, 0.4))
"""1 for the own merit, 0 for log det; sharpness, barrier, share of the iterations."""
_CHANGED_STAGES = ((1.0, 8.0, 5e-4, 0.5), (1.0, 32.0, 1e-4, 0.5))
_KEPT = 4
_CHANGED = 2  # one in so many starts is kept, and one in so many is changed
_STAY = 0.02  # how far the joints move that are not changed, of their own size
_SHRINK = 0.97
_MOST_SHRINKS = 100
_INSIDE = 1e-4


class _Given(NamedTuple):
    """The numbers of a problem, which a compiled program does not know: it serves other limits as well.

    The centre, (n,), and scale, (m,), of the motions; the signals at the samples and at the grid of
    the limits, each (3, N, r); P, factor and offset of the joints' limits; offset and factor of the
    others.
    """

    centre: Array
    scale: Array
    at: Array
    motion_at: Array
    families: list[tuple[Array, Array, Array]]
    scales: tuple[Array, Array]


class Batch:
    """Many motions of one arm, lowered together.

    Args:
        criterion: the objective for this arm
        space: the motions
        limits: of the joints
        slacks: limits on torque and flange; None where there are none
        device: 'cpu' or 'gpu'
        samples: for each harmonic
        grid: points of the limits' grid for each harmonic
    """

    def __init__(
        self,
        criterion: Criterion,
        space: MotionSpace,
        limits: DesignLimits,
        slacks: MotionSlacks | None,
        device: str,
        *,
        samples: int = _SAMPLES_PER_HARMONIC,
        grid: int = _GRID,
    ) -> None:
        self.jax, self.jnp = jax_numpy()
        self._criterion = criterion
        self._slacks = slacks
        self._group = 0
        self._joints = space.joints
        self._shape = (len(space.joints), space.size // len(space.joints))
        count = samples * space.harmonics
        points = grid * space.harmonics
        self._given = _Given(
            space.centre,
            space.scale,
            space.signals((np.arange(count) + 0.5) * space.period_s / count) @ space.free,
            space.signals(np.arange(points) * space.period_s / points) @ space.free,
            [(each.P, each.factor, each.offset) for each in space.joint_families(limits, grid)],
            (np.zeros(0), np.zeros(0)) if slacks is None else slacks.scales,
        )
        self._gram = criterion.rows.compiled(criterion.robot, WIDE_SIGN_WIDTH).traced
        self._room = compiled(self.jax.vmap(self._least_slack, (None, 0)), device)
        each = (None, 0, 0, 0, None, None, None, None)
        self._program = compiled(self.jax.vmap(self._stage, each), device)

    def searched(
        self,
        u: Array,
        *,
        rounds: int,
        iterations: Sequence[int],
        rng: np.random.Generator,
        go_on: Callable[[float], bool],
    ) -> tuple[Array, Array]:
        """The merits and places, (K,) and (K, size), of the best that starts lead to, best first.

        Args:
            u: the starts, points inside, (B, size)
            rounds: of changes after the first descent
            iterations: of each start in the first descent, and of each changed one in a round
            rng: for the changes
            go_on: called with the share that is done; where it says no, the rest is left out
        """
        kept = max(1, len(u) // _KEPT)
        changed = max(1, len(u) // _CHANGED)
        first, later = iterations
        self._group = changed  # so that one program serves all
        work = np.cumsum([len(u) * first] + rounds * [changed * later])
        ends = work / work[-1]

        def part(k: int) -> Callable[[float], bool]:
            if k:
                begin = float(ends[k - 1])
            else:
                begin = 0.0
            return lambda share: go_on(begin + share * (float(ends[k]) - begin))

        score, u, B = self._through(_STAGES, u, _unit(u), first, part(0))
        for k in range(1, rounds + 2):
            best = np.argsort(score, kind="stable")[:kept]
            score = score[best]
            u = u[best]
            B = B[best]
            if k > rounds or not part(k)(0.0):
                break
            parent = np.arange(changed) % kept
            child, inside = self._shrunk(self._changed(u[parent], rng))
            reached, child, learned = self._through(
                _CHANGED_STAGES, child, B[parent], later, part(k)
            )
            score = np.concatenate([score, np.where(inside, reached, np.inf)])
            u = np.concatenate([u, child])
            B = np.concatenate([B, learned])
        return score, u

    def _changed(self, u: Array, rng: np.random.Generator) -> Array:
        """Motions, (B, size), of which one joint each gets another one of the same size."""
        U = u.reshape(len(u), *self._shape)
        size = np.sqrt((U**2).mean(axis=2, keepdims=True))
        other = rng.integers(0, self._shape[0], len(u))[:, None] == np.arange(self._shape[0])
        noise = size * rng.normal(size=U.shape)
        return np.asarray(np.where(other[:, :, None], noise, U + _STAY * noise).reshape(u.shape))

    def _shrunk(self, u: Array) -> tuple[Array, Array]:
        """Motions, (B, size), made smaller until they are inside all limits, and whether they are, (B,)."""
        u = u.copy()
        for _ in range(_MOST_SHRINKS):
            outside = ~(self._room(self._given, u) > _INSIDE)
            if not outside.any():
                break
            u[outside] *= _SHRINK
        return u, self._room(self._given, u) > _INSIDE

    def _through(
        self,
        stages: Sequence[tuple[float, ...]],
        u: Array,
        B: Array,
        iterations: int,
        go_on: Callable[[float], bool],
    ) -> tuple[Array, Array, Array]:
        done = 0
        z = [np.zeros((len(u), 2, len(self._joints), len(P))) for P, *_ in self._given.families]
        for own, sharpness, mu, share in stages:
            left = max(1, round(share * iterations))
            while left > 0 and go_on(done / iterations):
                count = min(left, _SLICE)
                u, B, z, _ = self._descend(u, B, z, own, sharpness, mu, np.int32(count + 1))
                left = left - count
                done = done + count
        *_, score = self._descend(u, B, z, 1.0, _EXACT, 0.0, np.int32(1))
        return np.where(np.isfinite(score), score, np.inf), u, B

    def _descend(
        self, u: Array, B: Array, z: list[Array], *rest: Any
    ) -> tuple[Array, Array, list[Array], Array]:
        """Every start through one stage, by groups of one size: where, curvature, multipliers, and f."""
        size = self._group or len(u)
        groups = [slice(k, k + size) for k in range(0, len(u), size)]
        found = [self._program(self._given, u[k], B[k], [x[k] for x in z], *rest) for k in groups]
        us, Bs, zs, fs = zip(*found, strict=True)
        z = [np.concatenate(parts) for parts in zip(*zs, strict=True)]
        return np.concatenate(us), np.concatenate(Bs), z, np.concatenate(fs)

    def _least_slack(self, given: _Given, u: Any) -> Any:
        """How far the closest limit is away, 0 or less outside."""
        jnp = self.jnp
        least = 1.0
        for relative, (_, _, offset) in zip(self._relative(given, u), given.families, strict=True):
            least = jnp.minimum(least, (1 - jnp.abs(relative + offset[:, None])).min())
        return jnp.minimum(least, self._slack(given, u).min(initial=1.0))

    def _slack(self, given: _Given, u: Any) -> Any:
        """Slacks of torque and flange, (N, k)."""
        if self._slacks is None:
            return self.jnp.zeros((1, 0))
        offset, factor = given.scales
        return offset + factor * self._slacks.traced(*self._motion(given, u, given.motion_at))

    def _motion(self, given: _Given, u: Any, at: Any) -> tuple[Any, Any, Any]:
        """Position, velocity and acceleration of all joints, each (N, n)."""
        moved = at @ (u.reshape(self._shape) * given.scale[:, None]).T
        still = self.jnp.zeros((at.shape[1], len(given.centre)))
        q, v, a = (still.at[:, self._joints].set(x) for x in moved)
        return q + given.centre, v, a

    def _value(self, given: _Given, u: Any, own: Any, sharpness: Any, mu: Any) -> tuple[Any, Any]:
        """f, with a barrier of torque and flange, and its gradient."""
        jax = self.jax
        jnp = self.jnp
        G, pull = jax.vjp(lambda x: self._gram(*self._motion(given, x, given.at)), u)
        merits = self._criterion.merit, self._criterion.log_det_merit
        f, change = jax.lax.cond(
            own > 0, *(partial(merit, xp=jnp) for merit in merits), G, sharpness
        )
        (slope,) = pull(change)
        if self._slacks is None:
            return f, slope

        def barrier(x: Any) -> Any:
            s = self._slack(given, x)
            return -mu * jnp.where(s > 0, jnp.log(jnp.maximum(s, 1e-300)), -jnp.inf).sum()

        above, change = jax.value_and_grad(barrier)(u)
        return f + above, slope + change

    def _relative(self, given: _Given, u: Any) -> list[Any]:
        U = u.reshape(self._shape)
        return [(U * factor[:, None]) @ P.T for P, factor, _ in given.families]

    def _barrier(self, given: _Given, u: Any) -> tuple[Any, Any, list[Any]]:
        """-sum log s of the joints' limits, infinite outside, its gradient, and s, each (2, joints, M)."""
        jnp = self.jnp
        total = 0.0
        grad = jnp.zeros(self._shape)
        slacks = []
        for relative, (P, factor, offset) in zip(
            self._relative(given, u), given.families, strict=True
        ):
            y = relative + offset[:, None]
            inside = (jnp.abs(y) < 1).all()
            total += jnp.where(
                inside, -jnp.log(jnp.maximum((1 - y) * (1 + y), 1e-300)).sum(), jnp.inf
            )
            grad += (1 / (1 - y) - 1 / (1 + y)) @ P * factor[:, None]
            slacks.append(jnp.maximum(jnp.stack([1 - y, 1 + y]), _SMALLEST))
        return total, grad.ravel(), slacks

    def _curvature(self, given: _Given, weights: list[Any]) -> Any:
        """J' diag(weights) J of the joints' limits, (size, size)."""
        jnp = self.jnp
        (joints, free) = self._shape
        blocks = jnp.zeros((joints, free, free))
        for (down, up), (P, factor, _) in zip(weights, given.families, strict=True):
            blocks += jnp.einsum("jm,mr,ms->jrs", (down + up) * factor[:, None] ** 2, P, P)
        return jnp.einsum("jrs,jk->jrks", blocks, jnp.eye(joints)).reshape(
            joints * free, joints * free
        )

    def _stage(
        self,
        given: _Given,
        u: Any,
        B: Any,
        z: Any,
        own: Any,
        sharpness: Any,
        mu: Any,
        iterations: Any,
    ) -> tuple[Any, ...]:
        """One start through one stage: where it ends, the curvature and multipliers learned, and f there.

        Multipliers of 0 are not known yet.
        """
        jnp = self.jnp
        each = self.jax.tree_util.tree_map

        def longest(x: Any, dx: Any) -> Any:
            """How far x may go on, at most 1, so that it stays positive."""
            falls = [(-change / now).max() for now, change in zip(x, dx, strict=True)]
            return jnp.minimum(1.0, _TO_BOUNDARY / jnp.maximum(jnp.stack(falls).max(), _SMALLEST))

        def step(_: Any, state: Any) -> Any:
            u, f, slope, B, z, du, dz, length, falls = state
            there = u + length * du
            f_next, slope_next = self._value(given, there, own, sharpness, mu)
            barrier, grad, s = self._barrier(given, there)
            f_next = f_next + mu * barrier
            downhill = slope_next + mu * grad
            good = f_next <= f + _SUFFICIENT * length * falls
            learned = self._learned(B, length * du, slope_next - slope)
            onward = longest(z, dz)
            z_next = each(
                lambda z, dz, s: jnp.clip(z + onward * dz, mu / s / _CENTRAL, mu / s * _CENTRAL),
                z,
                dz,
                s,
            )
            H = learned + self._curvature(given, each(lambda z, s: z / s, z_next, s))
            H = H + 1e-10 * jnp.trace(H) / len(H) * jnp.eye(len(H))
            du_next = -jnp.linalg.solve(H, downhill)
            ds = [jnp.stack([-dy, dy]) for dy in self._relative(given, du_next)]
            dz_next = each(lambda z, s, ds: mu / s - z - z / s * ds, z_next, s, ds)
            here = (there, f_next, slope_next, learned, z_next, du_next, dz_next)
            taken = (*here, longest(s, ds), downhill @ du_next)
            kept = (u, f, slope, B, z, du, dz, _SHORTER * length, falls)
            return each(lambda x, y: jnp.where(good, x, y), taken, kept)

        s = self._barrier(given, u)[2]
        z = each(lambda z, s: jnp.where(z > 0, z, mu / s), z, s)
        still = jnp.zeros_like(u)
        state = (u, jnp.inf, still, B, z, still, each(jnp.zeros_like, z), 0.0, 0.0)
        u, f, _, B, z, *_ = self.jax.lax.fori_loop(0, iterations, step, state)
        return u, B, z, f

    def _learned(self, B: Any, du: Any, change: Any) -> Any:
        """Powell's damped BFGS update; a unit matrix is scaled first. Nothing is learned from no step."""
        jnp = self.jnp
        along = du @ change
        moved = du @ du > 0
        fresh = (jnp.eye(len(B)) == B).all() & (along > 0) & moved
        B = B * jnp.where(fresh, change @ change / jnp.where(fresh, along, 1.0), 1.0)
        Bdu = B @ du
        curved = jnp.where(moved, du @ Bdu, 1.0)
        share = jnp.where(along < 0.2 * curved, 0.8 * curved / (curved - along), 1.0)
        y = share * change + (1 - share) * Bdu
        update = jnp.outer(y, y) / jnp.where(moved, du @ y, 1.0) - jnp.outer(Bdu, Bdu) / curved
        return B + jnp.where(moved, update, 0.0)


def _unit(u: Array) -> Array:
    """A unit matrix for each start of u, (B, size)."""
    return np.tile(np.eye(u.shape[1]), (len(u), 1, 1))
