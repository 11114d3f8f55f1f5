"""The direction of gravity in the base frame that explains torques best.

An arm on a wall, a ceiling or a torso is often described as if it stood upright. Torques are linear
in the parameters phi for a given gravity g, and the regressor is linear in g,

    tau = (Y_0 + g_x Y_x + g_y Y_y + g_z Y_z) phi + friction,

with Y_0 that of the motion without gravity, and Y_x, Y_y, Y_z those of a unit of gravity at rest.
For each g on the sphere of the stated size, phi and Coulomb, viscous and constant friction are
solved for; joints are weighted by their residuals. From the stated direction and the best of the
axes, edges and diagonals of the base, searches on the sphere minimise

    L(g) = sum_j N_j log(s_j^2) / sum_j N_j,    s_j the RMS residual of joint j.

The robot file is a second witness: L_file(g) has its links instead of phi, and only rotors and
friction are solved for. A direction is offered if L falls by 0.2 (residuals smaller by a factor of
1.1) and L_file falls too, or if L falls by 0.5, whatever the file says. The search costs as much as
a fit. It is made if the model has a doubt that another gravity causes, or if one of eight other
directions, 17 or 90 degrees away, lowers L by 0.1.

Weight alone does not tell a direction from its opposite: the first moments of all links change
their sign, and only their share in the inertia contradicts. The file tells them apart: where L
hardly decides, a lead of L_file by 0.5 does. Without links in the file the opposite of the stated
direction is offered from a gain of L of 0.05 on.

Thresholds were chosen on twelve arms in seven worlds of friction, with files whose masses are wrong
by 20 % (`benchmarks/bench_gravity.py` counts offers on other seeds). In 48 upright runs a search
lowered L by 0.15 at most, and L_file of the opposite was larger by 1.4 or more. In 96 runs whose
base was turned by 15 degrees or more, L fell by 0.58 or more. In 48 runs whose base hung upside
down, L of the stated direction was smaller by 0.016 at most, and L_file larger by 1.5 or more. In
15 runs of real arms that stand upright L fell by 0.05 at most.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard._arrays import Array
from steelyard.recording import Samples
from steelyard.robot import RobotModel
from steelyard.verdict import Doubt, DoubtKind

_MAX_ROWS = 400  # more samples are thinned
_MIN_GAIN = 0.2  # of L, where the links of the robot file agree
_MIN_GAIN_ALONE = 0.5  # of L, where they do not
_MAX_LOSS_OF_AXIS = 0.05  # of L, by which an axis of the base may be worse than the optimum
_MIN_HINT = 0.1  # of L, by which another direction must be better for a search
_HINT_ANGLES = (0.3, np.pi / 2)  # [rad], of these directions from the stated one
_MIN_GAIN_OF_OPPOSITE = 0.05  # of L, where the best direction is not offered
_MAX_LOSS_OF_OPPOSITE = 0.05  # of L, where the links of the robot file decide
_MIN_LEAD_OF_SIGN = 0.1  # of L, by which a direction leads its opposite
_MIN_LEAD_IN_FILE = 0.5  # of L_file, by which a direction leads its opposite
_SEARCHES = 3  # from the best of the first directions
_FRICTION_SPEED = 0.02  # [rad/s], over which friction reverses
_RELATIVE_RANK = 1e-7  # smaller eigenvalues, over the largest, count as zero
_WEIGHT_ITERATIONS = 3
_FIRST_STEP = 0.2  # [rad] of the search
_MAX_STEPS = 40
_AXES = ("x", "y", "z")


@dataclass(frozen=True, eq=False)
class _Torques:
    """Inner products of [Y_0, Y_x, Y_y, Y_z, friction, tau] of each joint, (n, k, k).

    Attributes:
        grams: of the usable rows
        rows: their numbers, (n,)
        links: number of columns of links
        moving: number of columns of Y_0
        nominal: parameters of the links in the robot file, (10 n,); zero where it has none
    """

    grams: Array
    rows: Array
    links: int
    moving: int
    nominal: Array

    @classmethod
    def of(cls, robot: RobotModel, parts: Sequence[Samples]) -> _Torques:
        every = -(-sum(map(len, parts)) // _MAX_ROWS)
        weightless = robot.with_gravity(np.zeros(3))
        units = [robot.with_gravity(g) for g in np.eye(3)]
        links = 10 * robot.n
        moving = links + robot.n
        grams = 0.0
        rows = np.zeros(robot.n)
        for part in parts:
            few = slice(0, None, every)
            q = part.q[few]
            v = part.v[few]
            still = np.zeros_like(q)
            columns = [weightless.regressor(q, v, part.a[few])[:, :, :moving]]
            columns += [unit.regressor(q, still, still)[:, :, :links] for unit in units]
            columns += [*_friction(v), part.tau[few][:, :, None]]
            Z = np.concatenate(columns, axis=2) * part.mask[few][:, :, None]
            grams = grams + np.einsum("kja,kjb->jab", Z, Z, optimize=True)
            rows += part.mask[few].sum(axis=0)
        nominal = np.concatenate([body.vector for body in robot.links])
        return cls(np.asarray(grams), rows, links, moving, nominal)

    def misfit(self, g: Array) -> float:
        """L of a gravity vector in the base frame, (3,) [m/s^2]."""
        grams = self._with_gravity(g)
        there = self.rows > 0
        squares = grams[:, -1, -1]
        least = np.maximum(1e-9 * squares, 1e-300)
        for _ in range(_WEIGHT_ITERATIONS):
            weights = np.where(there, self.rows / np.maximum(squares, least), 0.0)
            minus = np.append(_solved(np.einsum("j,jab->ab", weights, grams)), -1.0)
            squares = np.maximum((grams @ minus) @ minus, least)
        logs = np.log(squares[there] / self.rows[there])
        return float(self.rows[there] @ logs / self.rows.sum())

    def file_misfit(self, g: Array) -> float:
        """L_file of a gravity vector in the base frame, (3,) [m/s^2]."""
        grams = self._with_gravity(g)
        m = self.links
        squares = []
        for gram in grams:
            weights = gram[:, -1] - gram[:, :m] @ self.nominal
            others = weights[m:-1]
            explained = np.linalg.lstsq(gram[m:-1, m:-1], others, rcond=_RELATIVE_RANK)[0]
            left = weights[-1] - weights[:m] @ self.nominal - others @ explained
            squares.append(max(float(left), 1e-9 * float(gram[-1, -1]), 1e-300))
        there = self.rows > 0
        logs = np.log(np.array(squares)[there] / self.rows[there])
        return float(self.rows[there] @ logs / self.rows.sum())

    def file_lead(self, g: Array, other: Array) -> float:
        """By how much L_file of `g` is below that of `other`; 0 for a file without links."""
        if not self.nominal.any():
            return 0.0
        return self.file_misfit(other) - self.file_misfit(g)

    def _with_gravity(self, g: Array) -> Array:
        """Inner products of [Y, rotors, friction, tau] with Y = Y_0 + g_x Y_x + g_y Y_y + g_z Y_z.

        (n, k - 3 links, k - 3 links)
        """
        of_links, of_both, of_others = self._blocks
        share = np.concatenate([[1.0], g])
        links = np.einsum("s,t,jsatb->jab", share, share, of_links, optimize=True)
        both = np.einsum("s,jsab->jab", share, of_both)
        grams = np.block([[links, both], [np.swapaxes(both, 1, 2), of_others]])
        return np.asarray(grams)

    @cached_property
    def _blocks(self) -> tuple[Array, Array, Array]:
        """Inner products of links with links, of links with others, of others with others.

        The four sets of columns of links, Y_0 to Y_z, have an axis of their own.
        """
        n, k = self.grams.shape[:2]
        m = self.links
        of_links = np.concatenate([np.arange(m), self.moving + np.arange(3 * m)])
        others = np.setdiff1d(np.arange(k), of_links)
        links = self.grams[:, of_links][:, :, of_links].reshape(n, 4, m, 4, m)
        both = self.grams[:, of_links][:, :, others].reshape(n, 4, m, len(others))
        return links, both, self.grams[:, others][:, :, others]


def _friction(v: Array) -> list[Array]:
    """Columns of Coulomb, viscous and constant friction, (N, n, n) each."""
    n = v.shape[1]
    out = []
    for column in (np.tanh(v / _FRICTION_SPEED), v, np.ones_like(v)):
        wide = np.zeros((*v.shape, n))
        wide[:, range(n), range(n)] = column
        out.append(wide)
    return out


def _solved(gram: Array) -> Array:
    """The least-squares solution of [A b]'[A b], (p,), zero where nothing is determined."""
    length = np.sqrt(np.maximum(np.diag(gram)[:-1], 0.0))
    scale = np.where(length > 0, 1.0 / np.maximum(length, 1e-300), 0.0)
    values, vectors = np.linalg.eigh(gram[:-1, :-1] * np.outer(scale, scale))
    kept = values > _RELATIVE_RANK * values[-1]
    half = vectors[:, kept]
    return np.asarray(scale * ((half / values[kept]) @ (half.T @ (scale * gram[:-1, -1]))))


def gravity_offer(
    robot: RobotModel, parts: Sequence[Samples], *, is_suspected: bool
) -> Doubt | None:
    """A doubt that offers another direction of gravity; None if none explains torques far better.

    Args:
        robot: the arm, with the stated gravity
        parts: samples of the empty arm
        is_suspected: whether the model has a doubt that another gravity causes
    """
    stated = robot.gravity_base
    if not stated.any():
        return None
    torques = _Torques.of(robot, parts)
    offer = None
    if is_suspected or _has_hint(torques, stated):
        offer = _offer_of_any(torques, stated)
    if offer is None:
        offer = _offer_of_opposite(torques, stated)
    return offer


def gain_of_direction(robot: RobotModel, parts: Sequence[Samples], gravity: Array) -> float:
    """By how much L of a direction of gravity is smaller than that of the stated one.

    Args:
        robot: the arm, with the stated gravity
        parts: samples of the empty arm
        gravity: in the base frame, (3,) [m/s^2]
    """
    torques = _Torques.of(robot, parts)
    return torques.misfit(robot.gravity_base) - torques.misfit(gravity)


def _has_hint(torques: _Torques, stated: Array) -> bool:
    """Whether one of a few other directions explains torques better than the stated one."""
    size = float(np.linalg.norm(stated))
    across = size * np.linalg.svd(stated[None])[2][1:]
    enough = torques.misfit(stated) - _MIN_HINT
    directions = (
        np.cos(angle) * stated + np.sin(angle) * side
        for angle in _HINT_ANGLES
        for side in (*across, *-across)
    )
    return any(torques.misfit(direction) < enough for direction in directions)


def _offer_of_any(torques: _Torques, stated: Array) -> Doubt | None:
    """A doubt that offers the best of all directions; None if it is not far better."""
    found, is_clear = _likelier_sign(torques, _best(torques, stated))
    gain = torques.misfit(stated) - torques.misfit(found)
    if gain < _MIN_GAIN:
        return None
    if gain < _MIN_GAIN_ALONE and torques.file_lead(found, stated) <= 0:
        return None
    words = _gravity_words(found, float(np.exp(-gain / 2)))
    if not is_clear:
        words += "; the opposite direction is nearly as good: take the one of the mounting"
    return Doubt(DoubtKind.GRAVITY, words)


def _likelier_sign(torques: _Torques, found: Array) -> tuple[Array, bool]:
    """A direction or its opposite, and whether there is evidence for the choice.

    Args:
        found: the gravity vector that explains the torques best, (3,) [m/s^2]
    """
    if torques.misfit(-found) - torques.misfit(found) >= _MIN_LEAD_OF_SIGN:
        return found, True
    lead = torques.file_lead(found, -found)
    if lead <= -_MIN_LEAD_IN_FILE:
        return -found, True
    return found, lead >= _MIN_LEAD_IN_FILE


def _offer_of_opposite(torques: _Torques, stated: Array) -> Doubt | None:
    """A doubt that offers the opposite direction; None if neither torques nor file prefer it."""
    gain = torques.misfit(stated) - torques.misfit(-stated)
    if gain < -_MAX_LOSS_OF_OPPOSITE:
        return None
    lead = torques.file_lead(-stated, stated)
    if lead <= -_MIN_LEAD_IN_FILE and gain < _MIN_GAIN_ALONE:
        return None
    if gain >= _MIN_GAIN_OF_OPPOSITE:
        return Doubt(DoubtKind.GRAVITY, _gravity_words(-stated, float(np.exp(-gain / 2))))
    if lead < _MIN_LEAD_IN_FILE:
        return None
    words = (
        f"{_direction_words(-stated)} agrees with the links of the robot file, and the stated"
        f" direction does not; if the base is mounted so, state {gravity_argument(-stated)}"
    )
    return Doubt(DoubtKind.GRAVITY, words)


def _gravity_words(gravity: Array, ratio: float) -> str:
    """What to state, for a direction that leaves smaller residuals."""
    return (
        f"{_direction_words(gravity)} explains the torques better, with residuals {ratio:.2f} times"
        f" as large; if the base is mounted so, state {gravity_argument(gravity)}"
    )


def _direction_words(gravity: Array) -> str:
    axis = int(np.abs(gravity).argmax())
    if not np.isclose(abs(gravity[axis]), np.linalg.norm(gravity)):
        return "another direction of gravity"
    sign = "+" if gravity[axis] > 0 else "-"
    return f"gravity along {sign}{_AXES[axis]} of the base"


def gravity_argument(gravity: Array) -> str:
    """The argument that states a gravity vector, as a message names it."""
    x, y, z = (float(np.round(value, 2)) + 0.0 for value in gravity)
    return f"`gravity_base=({x:g}, {y:g}, {z:g})`"


def _best(torques: _Torques, stated: Array) -> Array:
    """The gravity vector that explains the torques best, an axis of the base where one will do.

    Args:
        torques: of the arm
        stated: gravity in the base frame, (3,) [m/s^2]
    """
    size = float(np.linalg.norm(stated))
    every = [np.array(d, float) for d in itertools.product((-1, 0, 1), repeat=3) if any(d)]
    units = [d / np.linalg.norm(d) for d in every]
    misfits = [torques.misfit(size * d) for d in units]
    order = np.argsort(misfits)
    starts = [stated / size, *(units[k] for k in order[:_SEARCHES]), -units[order[0]]]
    ends = [_searched(torques, size, start) for start in starts]
    best, least = min(ends, key=lambda end: end[1])
    axes = [k for k, d in enumerate(every) if np.abs(d).sum() == 1]
    axis = min(axes, key=lambda k: misfits[k])
    if misfits[axis] < least + _MAX_LOSS_OF_AXIS:
        best = size * units[axis]
    return np.asarray(best)


def _searched(torques: _Torques, size: float, start: Array) -> tuple[Array, float]:
    """The best gravity vector near a direction, and its misfit."""
    from scipy.optimize import minimize  # slow to import, and few fits search

    across = np.linalg.svd(start[None])[2][1:]

    def turned(x: Array) -> Array:
        g = start + x @ across
        return np.asarray(size * g / np.linalg.norm(g))

    simplex = _FIRST_STEP * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    search = minimize(
        lambda x: torques.misfit(turned(x)),
        np.zeros(2),
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "maxiter": _MAX_STEPS, "xatol": 3e-3, "fatol": 1e-4},
    )
    return turned(search.x), float(search.fun)
