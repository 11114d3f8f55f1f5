"""Tests for other causes of the torques: columns that should have no effect, added to a fit.

A fit of wrong data widens its own interval, because it leaves larger residuals. A specific cause is
therefore tested: its columns X join the regression, tau = Y theta + X e, and e = 0 unless the cause
is present. What it explains is not left in the residuals, so widening cannot hide it; a friction
law that does not fit leaves residuals of its own, which widen the covariance C of e (it allows for
correlation in time). The cause is significant if e'C^-1 e, chi-square, is so large that chance
alone exceeds it once in 2,000 tests.

Most causes are absent, which one step from the fit without them shows (a score test). With its
weights W, its inverse A^-1 and its residuals r,

    G = A^-1 Y'W X,     V = X'W (X - Y G),     e = V^-1 X'W r,     and theta moves by -G e.

The covariance of e is V^-1 M V^-1, M that of (X - Y G)'W times correlated noise (and G'Z'Z G of a
prior with rows Z). The fit has absorbed part of the noise of N rows of a joint: residuals are
scaled up to N / (N - kappa h), h the unknowns that the joint determines, kappa the widening of its
variance by correlation in time.
Only if e is significant by this test and the answer moves, the fit is repeated with the cause, with
weights and correlation in time of its own.

For the empty arm, gravity is tested: its size g (1 + e), and two perpendicular directions. Links
show their masses twice, by weight and by inertia; if these disagree, gravity is wrong, or the clock
runs at another rate (inertia goes with its square). The weight at one joint alone, beside those at
the others, should not differ at all: what it differs by measures how wrong such a number may be on
this arm for other reasons (scales of single torques, friction that no law contains), and counts as
a standard deviation of the size of gravity, as does 1 % for the filter of the motion, which weakens
accelerations. So does noise of the accelerations, by which inertia comes out too small: with N that
of `Solution.motion_shift`, it adds V^-1 G'N theta to e (Y'W r = 0 for the noisy Y, but not for that
of the true motion). If there are several runs, another scale of the
links' torque is tested in each of them, with friction of its own: gains, or masses on the arm, that
have changed.

Friction that varies over the position can look like a tilt. A tilt of the base that would not be
significant with twice its standard deviation has to lower L of `_gravity_direction` by 0.06, too:
residuals smaller by 3 %. In 16 places of the bench of gates (`benchmarks/bench_gates.py`, seeds 70
to 73) one false tilt lowered L by 0.045; true ones of 3 degrees lower it by 0.05 to 0.45.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import chdtri

from steelyard._arrays import Array, Indices
from steelyard.identification._covariance import (
    correlated_covariance,
    covariance_of_sums,
    widening,
)
from steelyard.identification._gravity_direction import gain_of_direction, gravity_argument
from steelyard.identification._least_squares import Solution, solve_grams
from steelyard.identification._problem import Rows
from steelyard.recording import Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.robot._parameters import ParameterTable
from steelyard.verdict import Doubt, DoubtKind

FALSE_ALARM_PROBABILITY = 5e-4
"""Of the test for one cause; 3.5 standard deviations of one column."""

_MAX_ROWS = 2500  # more samples are thinned
_MIN_SCREENED_EFFECT = 0.5  # of a relevant effect, for a fit after the score test
_MIN_FREE_SHARE = 0.25  # of the rows, lower limit of the degrees of freedom
_MIN_COLUMN = 1e-9  # smallest share of a column that the unknowns do not explain
_GRAVITY_RANGE = (9.75, 9.85)  # [m/s^2], equator to poles with a margin
_MIN_GRAVITY_ERROR = 0.02  # relative; local gravity differs by 0.005
_PREPARED_STD = 0.01  # relative, of weight beside inertia, by the filter of the motion
_MIN_TILT = np.radians(1.0)  # [rad], smallest reported tilt of the base
_MIN_GAIN_OF_TILT = 0.06  # of L of `_gravity_direction`, by a tilt that is not clear
_CLEAR_TILT_WIDENING = 4.0  # of the covariance of a tilt that is significant nevertheless
_MIN_SCALE_ERROR = 0.02  # relative; smallest reported change of the torque scale of a run
_MAX_COMPARED_RUNS = 8  # more runs are compared in groups of neighbours


@dataclass(frozen=True, eq=False)
class CauseFit:
    """A fit that includes a cause.

    Attributes:
        e: size of the cause in each column that the data determine, (k,)
        covariance: of e, (k, k)
        value: the m unknowns of the fit with the cause, (m,)
        columns: which columns of the cause the data determine, (k,)
        response: change of the m unknowns with e, (m, k); None if it was not computed
    """

    e: Array
    covariance: Array
    value: Array
    columns: Indices
    response: Array | None = None

    def squared_size(self, extra_std: float = 0.0, widening: float = 1.0) -> float:
        """The squared size e'C^-1 e of the cause; NaN if the data do not determine it.

        Args:
            extra_std: standard deviation of each number for known reasons
            widening: factor of the covariance, see `_misfit`
        """
        C = widening * self.covariance + extra_std**2 * np.eye(len(self.e))
        if not len(self.e) or not np.isfinite(C).all() or not (np.diag(C) > 0).all():
            return float("nan")
        return float(self.e @ np.linalg.solve(C, self.e))

    def disagreement(self, largest_std: float, without: int | None = None) -> tuple[float, int]:
        """How far the numbers of the cause contradict each other: chi-square, and its freedom.

        A real cause has the same size at all joints, misfit has not. The sizes e_j at single
        joints, with the covariance C, are compared with their common mean.

        Args:
            largest_std: of a number that counts
            without: index of a number that does not count; None for none
        """
        C = self.covariance
        shown = np.isfinite(np.diag(C)) & (np.diag(C) > 0) & (np.diag(C) < largest_std**2)
        if without is not None:
            shown = shown & (np.arange(len(shown)) != without)
        count = int(shown.sum())
        if count < 2:
            return 0.0, 0
        information = np.linalg.pinv(C[np.ix_(shown, shown)], hermitian=True)
        e = self.e[shown]
        rest = e - float((information @ e).sum() / information.sum())
        return float(rest @ information @ rest), count - 1

    def is_significant(self, extra_std: float = 0.0, tests: int = 1, widening: float = 1.0) -> bool:
        """Whether the cause is significant.

        Args:
            extra_std: standard deviation of each number for known reasons
            tests: number of tests for causes of this kind
            widening: factor of the covariance, see `_misfit`
        """
        limit = chdtri(len(self.e), FALSE_ALARM_PROBABILITY / tests)
        return bool(self.squared_size(extra_std, widening) > limit)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit to which causes can be added.

    Attributes:
        rows: of each run, in the order of time, in p columns
        prior: rows [Z z] of prior knowledge with unit noise, (r, m + 1)
        mixing: the p combinations of the m unknowns, (p, m)
        solution: of the fit without a cause
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
            prior: rows [Z z] of prior knowledge with unit noise, (r, m + 1); none by default
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
        """The torque that the fit predicts, for each run, (N, n) [Nm or N]."""
        return [part.Y @ (self.mixing @ self.value) for part in self.rows]

    def shift_ratio(self, which: int, smallest: float) -> Callable[[CauseFit], float]:
        """The change of one of the unknowns by a cause, over the smallest relevant change.

        Args:
            which: index of the unknown
            smallest: relevant change
        """
        return lambda found: abs(float(found.value[which] - self.value[which])) / smallest

    def with_cause(
        self,
        cause: Sequence[Array],
        effect: Callable[[CauseFit], float],
        *,
        extra_std: float = 0.0,
        tests: int = 1,
        nuisance: Sequence[Array] = (),
        widening: float = 1.0,
    ) -> CauseFit | None:
        """The fit with a cause if the cause is significant and relevant, else None.

        Args:
            cause: its columns in each run, (N, n, k)
            effect: the effect of a cause over the smallest relevant effect
            extra_std: standard deviation of each number of the cause for known reasons
            tests: number of tests for causes of this kind
            nuisance: columns of each run with unknown coefficients that are not tested, (N, n, f)
            widening: factor of the covariance of the cause, see `_misfit`
        """
        k = cause[0].shape[2]
        columns = list(cause)
        if nuisance:
            columns = [np.concatenate(pair, axis=2) for pair in zip(cause, nuisance, strict=True)]
        screened = self._score_step(columns, k)
        if not screened.is_significant(extra_std, tests, widening):
            return None
        if effect(screened) < _MIN_SCREENED_EFFECT:
            return None
        found = self._refitted(columns, k)
        if effect(found) >= 1.0 and found.is_significant(extra_std, tests, widening):
            return found
        return None

    def step(self, cause: Sequence[Array]) -> CauseFit:
        """The fit with a cause, by one step from the fit without it.

        Args:
            cause: its columns in each run, (N, n, k)
        """
        return self._score_step(cause, cause[0].shape[2])

    def at_joints(self, cause: Sequence[Array]) -> CauseFit:
        """The fit with a cause that has another size at each joint, by one step.

        Args:
            cause: its column in each run, (N, n, 1)
        """
        return self.step([column * np.eye(column.shape[1]) for column in cause])

    def motion_bias(self, cause: Sequence[Array], noise_grams: Array) -> Array:
        """What noise of the motion contributes to a cause that depends on positions only, (k,).

        Accelerations with noise make inertia come out too small; see the module's text.

        Args:
            cause: its columns in each run, (N, n, k)
            noise_grams: inner products of the noise of the rows, N_g of each group, (G, p, p)
        """
        weights, Y, _ = self._weighted
        k = cause[0].shape[2]
        each = zip(cause, weights, strict=True)
        X = np.concatenate([(part * w[:, :, None]).reshape(-1, k) for part, w in each])
        G = self.solution.inverse @ (self.mixing.T @ (Y.T @ X))
        V = X.T @ (X - Y @ (self.mixing @ G))
        N = np.einsum("g,gij->ij", self.solution.weights**2, noise_grams)
        pulled = (self.mixing @ G).T @ N @ (self.mixing @ self.value)
        return np.asarray(np.linalg.pinv(V, rcond=_MIN_COLUMN, hermitian=True) @ pulled)

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

    def _score_step(self, columns: Sequence[Array], k: int) -> CauseFit:
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
        return CauseFit(
            e / unit,
            spread / np.outer(unit, unit),
            self.value - taken @ e,
            np.flatnonzero(kept),
            -taken * unit,
        )

    def _noise_of(self, columns: Array, residuals: Array) -> Array:
        """The covariance of sums of columns times noise with the spectrum of residuals, (k, k)."""
        n = self.rows[0].tau.shape[1]
        first = 0
        total = np.zeros((columns.shape[1], columns.shape[1]))
        for part, restored in zip(self.rows, self._restored, strict=True):
            last = first + part.tau.size
            x = columns[first:last].reshape(len(part.tau), n, columns.shape[1])
            r = residuals[first:last].reshape(-1, n)
            total += sum(restored[j] * covariance_of_sums(x[:, j], r[:, j]) for j in range(n))
            first = last
        return total

    @cached_property
    def _restored(self) -> Array:
        """Variance of the noise over that of the residuals, for each run and joint, (runs, n)."""
        n = self.rows[0].tau.shape[1]
        weights = self.solution.weights.reshape(-1, n)
        _, _, residuals = self._weighted
        inverse = self.mixing @ self.solution.inverse @ self.mixing.T
        out = np.ones(weights.shape)
        first = 0
        for run, part in enumerate(self.rows):
            left = residuals[first : first + part.tau.size].reshape(-1, n)
            first += part.tau.size
            for j in np.flatnonzero(part.usable.any(axis=0)):
                used = part.usable[:, j]
                Y = part.Y[used, j]
                fitted = weights[run, j] ** 2 * float(np.sum((Y @ inverse) * Y))
                count = int(used.sum())
                free = count - widening([left[used, j]]) * fitted
                out[run, j] = count / max(free, _MIN_FREE_SHARE * count)
        return out

    def _refitted(self, columns: Sequence[Array], k: int) -> CauseFit:
        """The fit with further columns, of which the first k are the cause."""
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
        determined = np.flatnonzero(np.diag(solution.inverse)[m : m + k] > 0)
        shown = m + determined
        return CauseFit(
            solution.value[shown],
            covariance[np.ix_(shown, shown)],
            solution.value[:m],
            determined,
        )


def _solved(rows: Sequence[Rows], prior: Array, mixing: Array) -> Solution:
    wide = np.pad(mixing, (0, 1))
    wide[-1, -1] = 1.0
    grams = wide.T @ np.concatenate([part.grams for part in rows]) @ wide
    return solve_grams(grams, np.concatenate([part.usable.sum(axis=0) for part in rows]), prior)


def empty_arm_doubts(
    robot: RobotModel,
    parts: Sequence[Samples],
    rows: Sequence[Rows],
    parameters: ParameterTable,
    theta: Array,
    noise_grams: Array,
) -> list[Doubt]:
    """Doubts about the stated gravity, and about runs of the empty arm that disagree.

    Args:
        parts: samples of the empty arm
        rows: of them
        parameters: the p unknowns
        theta: their values, (p,) [SI]
        noise_grams: inner products of the noise of the rows, of each run and joint, (G, p, p)
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
        doubts = _gravity_doubts(robot, fit, parts, links, noise_grams / every)
    return doubts or _run_doubts(fit, parameters, links, robot.drive.gain_drift or 0.0)


def _gravity_doubts(
    robot: RobotModel,
    fit: Fitted,
    parts: Sequence[Samples],
    links: Array,
    noise_grams: Array,
) -> list[Doubt]:
    """A doubt if weight and inertia of the links contradict each other, or the base is tilted."""
    every = -(-sum(map(len, parts)) // _MAX_ROWS)
    postures = [part.q[::every] for part in parts]
    down = robot.gravity_base
    across = np.linalg.svd(down[None])[2][1:] * np.linalg.norm(down)
    weights = [[_weight(robot, q, g, links) for g in (down, *across)] for q in postures]
    whole = [np.stack(x[:1], axis=2) for x in weights]
    larger = fit.with_cause(whole, lambda found: abs(found.e[0]) / _MIN_GRAVITY_ERROR)
    disagreement = _disagreement(fit, [x[0] for x in weights])
    by_motion = fit.motion_bias(whole, noise_grams)[0]
    extra_std = float(np.linalg.norm([disagreement, by_motion, _PREPARED_STD]))
    if larger is not None and larger.is_significant(extra_std):
        words = (
            "weight and inertia of the links contradict each other: gravity would be"
            f" {1 + larger.e[0]:.2f} times as large as stated; check the clock of the recording,"
            " the stated gravity, and whether it is this arm"
        )
        return [Doubt(DoubtKind.GRAVITY, words)]
    tilted = fit.with_cause(
        [np.stack(x[1:], axis=2) for x in weights],
        lambda found: float(np.linalg.norm(found.e)) / _MIN_TILT,
    )
    if tilted is None:
        return []
    direction = down + tilted.e @ across[tilted.columns]
    direction *= np.linalg.norm(down) / np.linalg.norm(direction)
    is_clear = tilted.is_significant(widening=_CLEAR_TILT_WIDENING)
    if not is_clear and gain_of_direction(robot, parts, direction) < _MIN_GAIN_OF_TILT:
        return []
    words = (
        f"the base seems to be tilted by {np.degrees(np.linalg.norm(tilted.e)):.1f} degrees against"
        f" the stated gravity: level it, or state {gravity_argument(direction)}"
    )
    return [Doubt(DoubtKind.TILTED_BASE, words)]


def _disagreement(fit: Fitted, weights: Sequence[Array]) -> float:
    """RMS by which the weight at single joints differs from that at the others, beyond noise.

    Args:
        weights: torque of the links' weight in each run, (N, n) [Nm or N]
    """
    n = weights[0].shape[1]
    total = 0.0
    precision = 0.0
    for j in range(n):
        alone = [each[:, :, None] * (np.arange(n) == j)[:, None] for each in weights]
        found = fit._score_step(alone, 1)
        if len(found.e) and 0 < found.covariance[0, 0] < 1:
            total += float(found.e[0] ** 2 / found.covariance[0, 0]) - 1.0
            precision += float(1.0 / found.covariance[0, 0])
    return float(np.sqrt(max(total, 0.0) / max(precision, 1e-300)))


def _run_doubts(fit: Fitted, parameters: ParameterTable, links: Array, drift: float) -> list[Doubt]:
    """A doubt if the torque of the links has another scale in some runs than in the others."""
    count = len(fit.rows)
    runs = np.arange(count) * min(count, _MAX_COMPARED_RUNS) // count
    if count == 1:
        groups = range(0)
    elif count == 2:  # the second group says the same as the first
        groups = range(1, 2)
    else:
        groups = range(int(runs[-1]) + 1)
    friction = parameters.daily
    found = []
    for group in groups:
        acting = runs == group
        cause = [
            (part.Y @ links)[:, :, None] * on for part, on in zip(fit.rows, acting, strict=True)
        ]
        own = [part.Y[:, :, friction] * on for part, on in zip(fit.rows, acting, strict=True)]
        scaled = fit.with_cause(
            cause,
            lambda x: abs(x.e[0]) / _MIN_SCALE_ERROR,
            extra_std=drift,
            tests=len(groups),
            nuisance=own,
        )
        if scaled is not None:
            e = float(scaled.e[0])
            found.append((abs(e), e, int(acting.argmax()) + 1))
    if not found:
        return []
    _, scale, run = max(found)
    words = (
        f"the runs of the empty arm contradict each other; torques of its links are {1 + scale:.3f}"
        f" times as large in run {run} of {count} as in the others; check whether gains, units or"
        " the load of the arm have changed"
    )
    return [Doubt(DoubtKind.TORQUE_SCALE, words)]


def _weight(robot: RobotModel, q: Array, gravity: Array, links: Array) -> Array:
    """The torque of the links' weight in a given gravity, (N, n) [Nm or N]."""
    zero = np.zeros_like(q)
    basis = ParameterBasis.of(robot)
    Y = basis.reduce(robot.with_gravity(gravity).regressor(q, zero, zero))
    return np.asarray(Y @ links[: Y.shape[2]])
