"""Other causes of the torques: columns that should count for nothing, tried beside a fit.

A fit with wrong data widens its own interval, as it leaves larger residuals. A cause that is named
is tested instead: its columns X join the regression, tau = Y theta + X e, and e = 0 unless the
cause is there. What it explains is not left in the residuals, so widening cannot hide it; a
friction law that does not fit leaves residuals of its own, and the covariance C of e, which allows
for correlation in time, is as wide as these ask for. The cause is sure where e'C^-1 e, chi-square,
is so large that chance does it once in 2,000 times.

Most causes are not there, and a step from the fit without them shows it (a score test): with its
weights W, its inverse A^-1 and its residuals r,

    G = A^-1 Y'W X,     V = X'W (X - Y G),     e = V^-1 X'W r,     and theta moves by -G e.

Its covariance is V^-1 M V^-1, M that of (X - Y G)'W times correlated noise (and G'Z'Z G of a prior
with rows Z), without what the fit has swallowed: a little too small. Only where e is sure by this,
and the answer moves, is the fit repeated with the cause, with weights and correlation in time of
its own.

Of the empty arm, gravity is tried: g (1 + e) in size, and in two directions across. Links show
their masses twice, by weight and by inertia; where these disagree gravity is another one, or the
clock runs at another rate (inertia goes with the square of it). Where there are several runs, the
torque of the links is tried at another scale in each of them, with friction of its own: gains, or
masses on the arm, that have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import chdtri

from steelyard._arrays import Array
from steelyard.identification._covariance import correlated_covariance, covariance_of_sums
from steelyard.identification._least_squares import Solution, solve_grams
from steelyard.identification._problem import Rows
from steelyard.recording import Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.robot._parameters import ParameterTable
from steelyard.verdict import Doubt, DoubtKind

CHANCE = 5e-4
"""That a cause seems to be there; 3.5 standard deviations of one column."""

_MAX_ROWS = 2500  # more samples are thinned
_MIN_SCREENED_EFFECT = 0.5  # share of a relevant effect, by a score test
_MIN_COLUMN = 1e-9  # share of a column that the unknowns do not explain
_GRAVITY_RANGE = (9.75, 9.85)  # [m/s^2], equator to poles with a margin
_MIN_GRAVITY_ERROR = 0.02  # relative; local gravity differs by 0.005
_MIN_TILT = np.radians(1.0)  # [rad]
_MIN_SCALE_ERROR = 0.02  # of torques of one run
_MAX_COMPARED_RUNS = 8  # more runs are compared in groups of neighbours


@dataclass(frozen=True, eq=False)
class _Tried:
    """A fit with a cause beside it.

    Attributes:
        e: how large the cause is, (k,)
        covariance: of it, (k, k)
        value: the m unknowns of the fit with the cause, (m,)
    """

    e: Array
    covariance: Array
    value: Array

    def sure(self, besides: float = 0.0, tests: int = 1) -> bool:
        """Whether the cause is there.

        Args:
            besides: standard deviation that each number may have for another reason
            tests: how many causes of the kind are tried
        """
        C = self.covariance + besides**2 * np.eye(len(self.e))
        if not len(self.e) or not np.isfinite(C).all() or not (np.diag(C) > 0).all():
            return False
        return bool(self.e @ np.linalg.solve(C, self.e) > chdtri(len(self.e), CHANCE / tests))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit that causes are tried beside.

    Attributes:
        rows: of each run, in the order of time, in p columns
        prior: rows [Z z] of what was known before with unit noise, (r, m + 1)
        mixing: the p combinations of the m unknowns, (p, m)
        solution: without a cause
    """

    rows: Sequence[Rows]
    prior: Array
    mixing: Array
    solution: Solution

    @classmethod
    def of(
        cls, rows: Sequence[Rows], prior: Array | None = None, mixing: Array | None = None
    ) -> Fitted:
        """The fit of some rows.

        Args:
            rows: of each run, in the order of time, in p columns
            prior: rows [Z z] of what was known before with unit noise, (r, m + 1); nothing by
                default
            mixing: the p combinations of the m unknowns, (p, m); the identity by default
        """
        if mixing is None:
            mixed = np.eye(rows[0].Y.shape[2])
        else:
            mixed = mixing
        if prior is None:
            known = np.zeros((0, mixed.shape[1] + 1))
        else:
            known = prior
        return cls(rows, known, mixed, _solved(rows, known, mixed))

    @property
    def value(self) -> Array:
        """The m unknowns without a cause, (m,)."""
        return self.solution.value

    @property
    def torque(self) -> list[Array]:
        """The torque that they say, of each run, (N, n)."""
        return [part.Y @ (self.mixing @ self.value) for part in self.rows]

    def moves(self, which: int, least: float) -> Callable[[_Tried], float]:
        """By how much a cause moves one of the unknowns, over what counts.

        Args:
            which: of the unknowns
            least: what counts
        """
        return lambda found: abs(float(found.value[which] - self.value[which])) / least

    def tried(
        self,
        cause: Sequence[Array],
        effect: Callable[[_Tried], float],
        *,
        besides: float = 0.0,
        tests: int = 1,
        beside: Sequence[Array] = (),
    ) -> _Tried | None:
        """The fit with a cause, where the cause is sure and counts; else None.

        Args:
            cause: its columns in each run, (N, n, k)
            effect: how much it does, over what counts
            besides: standard deviation that each number of it may have for another reason
            tests: how many causes of the kind are tried
            beside: columns of each run that are unknown with it, and are not tested, (N, n, f)
        """
        k = cause[0].shape[2]
        columns = list(cause)
        if beside:
            columns = [np.concatenate(pair, axis=2) for pair in zip(cause, beside, strict=True)]
        quick = self._step(columns, k)
        if not quick.sure(besides, tests) or effect(quick) < _MIN_SCREENED_EFFECT:
            return None
        found = self._again(columns, k)
        if effect(found) >= 1.0 and found.sure(besides, tests):
            return found
        return None

    @cached_property
    def _weighted(self) -> tuple[list[Array], Array, Array]:
        """Weights of torques for each run, (N, n) each, weighted rows, (all, p), and residuals."""
        n = self.rows[0].tau.shape[1]
        by_run = self.solution.weights.reshape(-1, n)
        weights = [part.usable * w for part, w in zip(self.rows, by_run, strict=True)]
        p = len(self.mixing)
        each = list(zip(self.rows, weights, strict=True))
        Y = np.concatenate([(part.Y * w[:, :, None]).reshape(-1, p) for part, w in each])
        tau = np.concatenate([(part.tau * w).ravel() for part, w in each])
        return weights, Y, tau - Y @ (self.mixing @ self.value)

    def _step(self, columns: Sequence[Array], k: int) -> _Tried:
        """The cause in the first k columns, by one step from the fit without it."""
        weights, Y, residuals = self._weighted
        each = zip(columns, weights, strict=True)
        X = np.concatenate([(part * w[:, :, None]).reshape(-1, part.shape[2]) for part, w in each])
        length = np.maximum(np.linalg.norm(X, axis=0), 1e-300)
        X /= length
        taken = self.solution.inverse @ (self.mixing.T @ (Y.T @ X))
        left = X - Y @ (self.mixing @ taken)  # by the unknowns
        V = X.T @ left
        c = X.T @ residuals
        others = np.linalg.pinv(V[k:, k:], rcond=_MIN_COLUMN, hermitian=True) @ V[k:, :k]
        V = V[:k, :k] - V[:k, k:] @ others
        c = c[:k] - others.T @ c[k:]
        left = left[:, :k] - left[:, k:] @ others
        taken = taken[:, :k] - taken[:, k:] @ others
        kept = np.diag(V) > _MIN_COLUMN
        inverse = np.linalg.pinv(V[np.ix_(kept, kept)], rcond=_MIN_COLUMN, hermitian=True)
        e = inverse @ c[kept]
        left = left[:, kept]
        taken = taken[:, kept]
        unit = length[:k][kept]
        known = self.prior[:, :-1] @ taken
        spread = inverse @ (self._noise_of(left, residuals - left @ e) + known.T @ known) @ inverse
        return _Tried(e / unit, spread / np.outer(unit, unit), self.value - taken @ e)

    def _noise_of(self, columns: Array, residuals: Array) -> Array:
        """The covariance of the sums of columns times noise as the residuals are, (k, k)."""
        n = self.rows[0].tau.shape[1]
        first = 0
        total = np.zeros((columns.shape[1], columns.shape[1]))
        for part in self.rows:
            last = first + part.tau.size
            x = columns[first:last].reshape(len(part.tau), n, columns.shape[1])
            r = residuals[first:last].reshape(-1, n)
            total += sum(covariance_of_sums(x[:, j], r[:, j]) for j in range(n))
            first = last
        return total

    def _again(self, columns: Sequence[Array], k: int) -> _Tried:
        """The fit with columns beside it, of which the first k are the cause."""
        p = len(self.mixing)
        more = columns[0].shape[2]
        m = self.mixing.shape[1]
        wide = np.zeros((p + more, m + more))
        wide[:p, :m] = self.mixing
        wide[p:, m:] = np.eye(more)
        known = np.insert(self.prior, np.full(more, m), 0.0, axis=1)
        both = [
            Rows(np.concatenate([part.Y, X], axis=2), part.tau, part.usable)
            for part, X in zip(self.rows, columns, strict=True)
        ]
        solution = _solved(both, known, wide)
        covariance, _ = correlated_covariance(both, solution, prior=known, mixing=wide)
        shown = m + np.flatnonzero(np.diag(solution.inverse)[m : m + k] > 0)
        return _Tried(solution.value[shown], covariance[np.ix_(shown, shown)], solution.value[:m])


def _solved(rows: Sequence[Rows], prior: Array, mixing: Array) -> Solution:
    wide = np.pad(mixing, (0, 1))
    wide[-1, -1] = 1.0
    grams = wide.T @ np.concatenate([part.grams for part in rows]) @ wide
    return solve_grams(grams, np.concatenate([part.usable.sum(axis=0) for part in rows]), prior)


def causes_of_empty_torques(
    robot: RobotModel,
    parts: Sequence[Samples],
    rows: Sequence[Rows],
    parameters: ParameterTable,
    theta: Array,
) -> list[Doubt]:
    """Doubts about gravity, and about runs of the empty arm that disagree.

    Args:
        parts: samples of the empty arm
        rows: of them
        parameters: the p unknowns
        theta: their values, (p,) [SI]
    """
    size = float(np.linalg.norm(robot.gravity_base))
    if size and not _GRAVITY_RANGE[0] <= size <= _GRAVITY_RANGE[1]:
        words = (
            f"gravity is given as {size:.4g} m/s^2, on Earth it is"
            f" {_GRAVITY_RANGE[0]} to {_GRAVITY_RANGE[1]}"
        )
        return [Doubt(DoubtKind.GRAVITY, words)]
    every = -(-sum(map(len, parts)) // _MAX_ROWS)
    fit = Fitted.of([part.thinned(every) for part in rows])
    links = np.where(parameters.links, theta, 0.0)
    if not size:
        doubts = []
    else:
        doubts = _of_gravity(robot, fit, [part.q[::every] for part in parts], links)
    return doubts or _of_runs(fit, parameters, links, robot.drive.gain_drift or 0.0)


def _of_gravity(
    robot: RobotModel, fit: Fitted, postures: Sequence[Array], links: Array
) -> list[Doubt]:
    """A doubt where weight and inertia of the links contradict each other, or the base leans."""
    down = robot.gravity_base
    across = np.linalg.svd(down[None])[2][1:] * np.linalg.norm(down)
    weights = [[_weight(robot, q, g, links) for g in (down, *across)] for q in postures]
    larger = fit.tried(
        [np.stack(x[:1], axis=2) for x in weights],
        lambda found: abs(found.e[0]) / _MIN_GRAVITY_ERROR,
    )
    if larger is not None:
        words = (
            "weight and inertia of the links contradict each other: gravity would be"
            f" {1 + larger.e[0]:.2f} times as large as stated; is the clock of the recording right,"
            " and gravity?"
        )
        return [Doubt(DoubtKind.GRAVITY, words)]
    aside = fit.tried(
        [np.stack(x[1:], axis=2) for x in weights],
        lambda found: float(np.linalg.norm(found.e)) / _MIN_TILT,
    )
    if aside is None:
        return []
    words = (
        f"the base seems to be tilted by {np.degrees(np.linalg.norm(aside.e)):.1f} degrees against"
        " the stated gravity: level it, or give its direction"
    )
    return [Doubt(DoubtKind.TILTED_BASE, words)]


def _of_runs(fit: Fitted, parameters: ParameterTable, links: Array, drift: float) -> list[Doubt]:
    """A doubt where the torque of the links has another scale in some runs than in the others."""
    count = len(fit.rows)
    runs = np.arange(count) * min(count, _MAX_COMPARED_RUNS) // count
    groups = range(1 if runs[-1] == 1 else 0, int(runs[-1]) + 1) if count > 1 else ()
    friction = parameters.daily
    found = []
    for group in groups:
        acting = runs == group
        cause = [
            (part.Y @ links)[:, :, None] * on for part, on in zip(fit.rows, acting, strict=True)
        ]
        own = [part.Y[:, :, friction] * on for part, on in zip(fit.rows, acting, strict=True)]
        tried = fit.tried(
            cause,
            lambda x: abs(x.e[0]) / _MIN_SCALE_ERROR,
            besides=drift,
            tests=len(groups),
            beside=own,
        )
        if tried is not None:
            found.append((abs(float(tried.e[0])), float(tried.e[0]), int(acting.argmax()) + 1))
    if not found:
        return []
    _, scale, run = max(found)
    words = (
        f"the runs of the empty arm contradict each other: torques of its links are {1 + scale:.3f}"
        f" times as large in run {run} of {count} as in the others; have gains or units changed, or"
        " what the arm carried?"
    )
    return [Doubt(DoubtKind.TORQUE_SCALE, words)]


def _weight(robot: RobotModel, q: Array, gravity: Array, links: Array) -> Array:
    """The torque of the links' weight where things fall along some gravity, (N, n) [Nm or N]."""
    still = np.zeros_like(q)
    basis = ParameterBasis.of(robot)
    Y = basis.reduce(robot.with_gravity(gravity).regressor(q, still, still))
    return np.asarray(Y @ links[: Y.shape[2]])
