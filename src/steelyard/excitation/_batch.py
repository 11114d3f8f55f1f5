"""Minimisation of many motions at once, in one JAX program on the cores or on a GPU.

Each start minimises its merit f(u) plus a barrier -mu sum log s(u) over its limits. Slacks of
position, velocity and acceleration on a grid are s = 1 - y and 1 + y with y linear in u, so their
derivatives J are constant. With multipliers z > 0, as in `_solver`,

    (B + J' diag(z / s) J) du = -grad f + mu J' (1 / s),      dz = mu / s - z - (z / s) J du

with B the curvature of f (BFGS with Powell's damping). One evaluation of f and its gradient is one
iteration of every start: if the barrier function decreases enough (Armijo), the trial point is
accepted and gives the next direction; otherwise the step is shortened. All starts therefore do the
same work, and none waits for another.

The best motions of a first descent are then mutated and minimised again, in several rounds. A
mutation gives one joint of a copy another random motion; the copy keeps the curvature of its
parent, without which its descent would take twice as long. The best of parents and children
survive.

The rows are thinned, the barrier keeps the motions far from their limits, and clearances are left
out: the batch search only finds good starts. `_solver` refines the best of them.
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
_GRID_POINTS_PER_HARMONIC = 16
_MAX_BOUNDARY_SHARE = 0.9  # largest share of the distance to a limit that one step covers
_ARMIJO_SHARE = 1e-4  # share of the predicted decrease that a step must reach
_STEP_REDUCTION = 0.4  # factor of a step that was not accepted
_MAX_CENTRALITY = 1e8  # z s stays within this factor of mu
_MIN_SLACK = 1e-12
_ITERATIONS_PER_CALL = 25  # between two questions whether to continue
_EXACT_SHARPNESS = 1e3  # the smooth merit equals the exact one
_STAGES = ((0.0, 1.0, 1e-2, 0.2), (1.0, 2.0, 3e-3, 0.4), (1.0, 8.0, 5e-4, 0.4))
"""1 for the objective's merit, 0 for log det; sharpness; barrier weight; share of iterations."""
_MUTATION_STAGES = ((1.0, 8.0, 5e-4, 0.5), (1.0, 32.0, 1e-4, 0.5))
_STARTS_PER_SURVIVOR = 4
_STARTS_PER_MUTATION = 2
_MUTATION_NOISE = 0.02  # of the joints that keep their motion, relative to it
_SHRINK_FACTOR = 0.97
_MAX_SHRINKS = 100
_MIN_INITIAL_SLACK = 1e-4


class _ProblemData(NamedTuple):
    """The numbers of a problem; a compiled program takes them as arguments and fits other limits.

    Attributes:
        centre: centre posture of the motions, (n,) [rad or m]
        scale: expected size of the coefficients, (m,) [rad/s or m/s]
        at: signals at the samples, (3, N, r)
        motion_at: signals at the grid of the limits on torque and flange, (3, N, r)
        families: P, factor and offset of the joints' limits
        scales: offset and factor of the slacks of torque and flange
    """

    centre: Array
    scale: Array
    at: Array
    motion_at: Array
    families: list[tuple[Array, Array, Array]]
    scales: tuple[Array, Array]


class BatchSearch:
    """Minimises many motions of one arm together.

    Args:
        criterion: the objective for this arm
        space: space of the motions
        limits: limits of the joints
        slacks: limits on torque and flange; None if there are none
        device: 'cpu' or 'gpu'
        samples: samples per harmonic
        grid: points of the limits' grid per harmonic
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
        grid: int = _GRID_POINTS_PER_HARMONIC,
    ) -> None:
        self.jax, self.jnp = jax_numpy()
        self._criterion = criterion
        self._slacks = slacks
        self._group_size = 0
        self._joints = space.joints
        self._shape = (len(space.joints), space.size // len(space.joints))
        count = samples * space.harmonics
        points = grid * space.harmonics
        self._problem = _ProblemData(
            space.centre,
            space.scale,
            space.signals((np.arange(count) + 0.5) * space.period_s / count) @ space.free,
            space.signals(np.arange(points) * space.period_s / points) @ space.free,
            [(each.P, each.factor, each.offset) for each in space.joint_families(limits, grid)],
            (np.zeros(0), np.zeros(0)) if slacks is None else slacks.scales,
        )
        self._gram = criterion.rows.compiled(criterion.robot, WIDE_SIGN_WIDTH).traced
        self._smallest_slacks = compiled(self.jax.vmap(self._smallest_slack, (None, 0)), device)
        axes = (None, 0, 0, 0, None, None, None, None)
        self._program = compiled(self.jax.vmap(self._stage, axes), device)

    def searched(
        self,
        u: Array,
        *,
        rounds: int,
        iterations: Sequence[int],
        rng: np.random.Generator,
        go_on: Callable[[float], bool],
    ) -> tuple[Array, Array]:
        """The merits, (K,), and variables, (K, size), of the best motions found, best first.

        Args:
            u: starts inside the limits, (B, size)
            rounds: mutation rounds after the first descent
            iterations: iterations of the first descent and of each mutation round
            rng: random generator of the mutations
            go_on: called with the completed fraction; False ends the search
        """
        survivors = max(1, len(u) // _STARTS_PER_SURVIVOR)
        mutations = max(1, len(u) // _STARTS_PER_MUTATION)
        first, later = iterations
        self._group_size = mutations  # one compiled program then serves all stages
        work = np.cumsum([len(u) * first] + rounds * [mutations * later])
        ends = work / work[-1]

        def progress_of(k: int) -> Callable[[float], bool]:
            begin = float(ends[k - 1]) if k else 0.0
            return lambda fraction: go_on(begin + fraction * (float(ends[k]) - begin))

        merit, u, B = self._minimised(_STAGES, u, _identities(u), first, progress_of(0))
        for k in range(1, rounds + 2):
            best = np.argsort(merit, kind="stable")[:survivors]
            merit = merit[best]
            u = u[best]
            B = B[best]
            if k > rounds or not progress_of(k)(0.0):
                break
            parent = np.arange(mutations) % survivors
            child, inside = self._shrunk(self._mutated(u[parent], rng))
            child_merit, child, child_B = self._minimised(
                _MUTATION_STAGES, child, B[parent], later, progress_of(k)
            )
            merit = np.concatenate([merit, np.where(inside, child_merit, np.inf)])
            u = np.concatenate([u, child])
            B = np.concatenate([B, child_B])
        return merit, u

    def _mutated(self, u: Array, rng: np.random.Generator) -> Array:
        """Motions, (B, size), in which one joint has a new random motion of the same size."""
        U = u.reshape(len(u), *self._shape)
        size = np.sqrt((U**2).mean(axis=2, keepdims=True))
        mutated = rng.integers(0, self._shape[0], len(u))[:, None] == np.arange(self._shape[0])
        noise = size * rng.normal(size=U.shape)
        U = np.where(mutated[:, :, None], noise, U + _MUTATION_NOISE * noise)
        return np.asarray(U.reshape(u.shape))

    def _shrunk(self, u: Array) -> tuple[Array, Array]:
        """Motions, (B, size), scaled down until inside the limits, and a mask of success, (B,)."""
        u = u.copy()
        for _ in range(_MAX_SHRINKS):
            outside = ~(self._smallest_slacks(self._problem, u) > _MIN_INITIAL_SLACK)
            if not outside.any():
                break
            u[outside] *= _SHRINK_FACTOR
        return u, self._smallest_slacks(self._problem, u) > _MIN_INITIAL_SLACK

    def _minimised(
        self,
        stages: Sequence[tuple[float, ...]],
        u: Array,
        B: Array,
        iterations: int,
        go_on: Callable[[float], bool],
    ) -> tuple[Array, Array, Array]:
        """Merit, variables and curvature of every start after all stages."""
        done = 0
        z = [np.zeros((len(u), 2, len(self._joints), len(P))) for P, *_ in self._problem.families]
        for own_merit, sharpness, mu, share in stages:
            remaining = max(1, round(share * iterations))
            while remaining > 0 and go_on(done / iterations):
                count = min(remaining, _ITERATIONS_PER_CALL)
                u, B, z, _ = self._descend(u, B, z, own_merit, sharpness, mu, np.int32(count + 1))
                remaining -= count
                done += count
        *_, merit = self._descend(u, B, z, 1.0, _EXACT_SHARPNESS, 0.0, np.int32(1))
        return np.where(np.isfinite(merit), merit, np.inf), u, B

    def _descend(
        self, u: Array, B: Array, z: list[Array], *rest: Any
    ) -> tuple[Array, Array, list[Array], Array]:
        """Variables, curvature, multipliers and f of every start after one stage.

        The starts run in groups of one size.
        """
        size = self._group_size or len(u)
        groups = [slice(k, k + size) for k in range(0, len(u), size)]
        results = [
            self._program(self._problem, u[k], B[k], [x[k] for x in z], *rest) for k in groups
        ]
        us, Bs, zs, fs = zip(*results, strict=True)
        z = [np.concatenate(parts) for parts in zip(*zs, strict=True)]
        return np.concatenate(us), np.concatenate(Bs), z, np.concatenate(fs)

    def _smallest_slack(self, problem: _ProblemData, u: Any) -> Any:
        """The slack of the closest limit; negative outside."""
        jnp = self.jnp
        smallest = 1.0
        for relative, (_, _, offset) in zip(
            self._relative(problem, u), problem.families, strict=True
        ):
            smallest = jnp.minimum(smallest, (1 - jnp.abs(relative + offset[:, None])).min())
        return jnp.minimum(smallest, self._slack(problem, u).min(initial=1.0))

    def _slack(self, problem: _ProblemData, u: Any) -> Any:
        """Slacks of torque and flange, (N, k)."""
        if self._slacks is None:
            return self.jnp.zeros((1, 0))
        offset, factor = problem.scales
        return offset + factor * self._slacks.traced(*self._motion(problem, u, problem.motion_at))

    def _motion(self, problem: _ProblemData, u: Any, at: Any) -> tuple[Any, Any, Any]:
        """Position, velocity and acceleration of all joints, each (N, n)."""
        moved = at @ (u.reshape(self._shape) * problem.scale[:, None]).T
        still = self.jnp.zeros((at.shape[1], len(problem.centre)))
        q, v, a = (still.at[:, self._joints].set(x) for x in moved)
        return q + problem.centre, v, a

    def _value(
        self, problem: _ProblemData, u: Any, own_merit: Any, sharpness: Any, mu: Any
    ) -> tuple[Any, Any]:
        """The value f with the barrier of torque and flange, and its gradient."""
        jax = self.jax
        jnp = self.jnp
        G, pull = jax.vjp(lambda x: self._gram(*self._motion(problem, x, problem.at)), u)
        merits = self._criterion.merit, self._criterion.log_det_merit
        f, change = jax.lax.cond(
            own_merit > 0, *(partial(merit, xp=jnp) for merit in merits), G, sharpness
        )
        (slope,) = pull(change)
        if self._slacks is None:
            return f, slope

        def barrier(x: Any) -> Any:
            s = self._slack(problem, x)
            return -mu * jnp.where(s > 0, jnp.log(jnp.maximum(s, 1e-300)), -jnp.inf).sum()

        above, change = jax.value_and_grad(barrier)(u)
        return f + above, slope + change

    def _relative(self, problem: _ProblemData, u: Any) -> list[Any]:
        U = u.reshape(self._shape)
        return [(U * factor[:, None]) @ P.T for P, factor, _ in problem.families]

    def _barrier(self, problem: _ProblemData, u: Any) -> tuple[Any, Any, list[Any]]:
        """-sum log s of the joints' limits, infinite outside; its gradient; s, (2, joints, M)."""
        jnp = self.jnp
        total = 0.0
        grad = jnp.zeros(self._shape)
        slacks = []
        for relative, (P, factor, offset) in zip(
            self._relative(problem, u), problem.families, strict=True
        ):
            y = relative + offset[:, None]
            inside = (jnp.abs(y) < 1).all()
            total += jnp.where(
                inside, -jnp.log(jnp.maximum((1 - y) * (1 + y), 1e-300)).sum(), jnp.inf
            )
            grad += (1 / (1 - y) - 1 / (1 + y)) @ P * factor[:, None]
            slacks.append(jnp.maximum(jnp.stack([1 - y, 1 + y]), _MIN_SLACK))
        return total, grad.ravel(), slacks

    def _curvature(self, problem: _ProblemData, weights: list[Any]) -> Any:
        """J' diag(weights) J of the joints' limits, (size, size)."""
        jnp = self.jnp
        joints, free = self._shape
        blocks = jnp.zeros((joints, free, free))
        for (down, up), (P, factor, _) in zip(weights, problem.families, strict=True):
            blocks += jnp.einsum("jm,mr,ms->jrs", (down + up) * factor[:, None] ** 2, P, P)
        return jnp.einsum("jrs,jk->jrks", blocks, jnp.eye(joints)).reshape(
            joints * free, joints * free
        )

    def _stage(
        self,
        problem: _ProblemData,
        u: Any,
        B: Any,
        z: Any,
        own_merit: Any,
        sharpness: Any,
        mu: Any,
        iterations: Any,
    ) -> tuple[Any, ...]:
        """Variables, curvature, multipliers and f of one start after one stage.

        A multiplier of 0 is unknown and starts at mu / s.
        """
        jnp = self.jnp
        tree_map = self.jax.tree_util.tree_map

        def longest_step(x: Any, dx: Any) -> Any:
            """The length of a step dx, at most 1, that keeps x positive."""
            falls = [(-change / now).max() for now, change in zip(x, dx, strict=True)]
            fall = jnp.maximum(jnp.stack(falls).max(), _MIN_SLACK)
            return jnp.minimum(1.0, _MAX_BOUNDARY_SHARE / fall)

        def step(_: Any, state: Any) -> Any:
            u, f, grad, B, z, du, dz, length, slope = state
            u_next = u + length * du
            f_next, grad_next = self._value(problem, u_next, own_merit, sharpness, mu)
            barrier, barrier_grad, s = self._barrier(problem, u_next)
            f_next = f_next + mu * barrier
            total_grad = grad_next + mu * barrier_grad
            accepted = f_next <= f + _ARMIJO_SHARE * length * slope
            B_next = self._updated_curvature(B, length * du, grad_next - grad)
            z_length = longest_step(z, dz)

            def clipped(z: Any, dz: Any, s: Any) -> Any:
                central = mu / s
                return jnp.clip(
                    z + z_length * dz, central / _MAX_CENTRALITY, central * _MAX_CENTRALITY
                )

            z_next = tree_map(clipped, z, dz, s)
            H = B_next + self._curvature(problem, tree_map(lambda z, s: z / s, z_next, s))
            H = H + 1e-10 * jnp.trace(H) / len(H) * jnp.eye(len(H))
            du_next = -jnp.linalg.solve(H, total_grad)
            ds = [jnp.stack([-dy, dy]) for dy in self._relative(problem, du_next)]
            dz_next = tree_map(lambda z, s, ds: mu / s - z - z / s * ds, z_next, s, ds)
            point = (u_next, f_next, grad_next, B_next, z_next, du_next, dz_next)
            taken = (*point, longest_step(s, ds), total_grad @ du_next)
            shortened = (u, f, grad, B, z, du, dz, _STEP_REDUCTION * length, slope)
            return tree_map(lambda x, y: jnp.where(accepted, x, y), taken, shortened)

        s = self._barrier(problem, u)[2]
        z = tree_map(lambda z, s: jnp.where(z > 0, z, mu / s), z, s)
        zero = jnp.zeros_like(u)
        state = (u, jnp.inf, zero, B, z, zero, tree_map(jnp.zeros_like, z), 0.0, 0.0)
        u, f, _, B, z, *_ = self.jax.lax.fori_loop(0, iterations, step, state)
        return u, B, z, f

    def _updated_curvature(self, B: Any, du: Any, change: Any) -> Any:
        """B after a damped BFGS update (Powell); scales an identity first, ignores du = 0."""
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


def _identities(u: Array) -> Array:
    """An identity matrix for each start of u, (B, size)."""
    return np.tile(np.eye(u.shape[1]), (len(u), 1, 1))
