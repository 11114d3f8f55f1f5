"""The fit: weights, friction shapes and carried torque found alternately.

The linear unknowns theta are solved for; the shapes of friction, eta = log(alpha, width, vs), are
found by Gauss-Newton steps on both together (variable projection). With D the derivative of the
torque by eta,

    min over theta, d  | W (tau - Y(eta) theta - D d) |^2 ,     eta <- eta + d,

until d is zero; a weak prior on d (two e-foldings) holds shapes that the data do not determine. The
solution of the last step holds theta and eta with their joint covariance. If friction depends on
the torque that a gear transmits, this torque is computed with the theta of the previous step. A
load share Fl that is not positive beyond its 95 % interval is removed and the fit repeated: if the
transmitted torques hardly vary, Fl would be noise that a payload multiplies.

The shapes are found from all rows, because rows near reversals show the width of a law. The last
step, which gives theta and the covariance, leaves these rows out (`Preparation.turning_s`). The
rows that remain can be so fast that exp(-(v / vs)^2) is nearly zero in all of them, and Fs could be
anything. vs is therefore not below the speed that 1 % of these rows do not exceed.

Huber's robust estimate iterates the fit with rows weighted by min(1, c sigma / |residual|)^(1/2), c
= 1.345.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from steelyard._arrays import Array
from steelyard._computing import Progress
from steelyard._units import NORMAL_95
from steelyard.errors import InvalidSamples
from steelyard.identification._between_runs import spread_between_runs
from steelyard.identification._covariance import correlated_covariance
from steelyard.identification._factor import RegressionFactor
from steelyard.identification._least_squares import Solution, solve_grams, solve_weighted
from steelyard.identification._problem import RowMaker, Rows
from steelyard.identification._run_effects import RunEffects, with_run_effects
from steelyard.recording import Samples
from steelyard.robot._friction import FrictionLaw
from steelyard.robot._parameters import ParameterKind, ParameterTable

FitMethod = Literal["weighted", "ordinary", "huber"]

_MAX_ITERATIONS = 30
_MAX_ITERATIONS_COMPARING = 15  # when laws are compared; later steps hardly matter
_MAX_LOG_STEP = 0.7  # largest step of the logarithm of a shape
_LOG_TOLERANCE = 2e-3  # smaller steps of the logarithm of a shape end the iteration
_HUBER_CONSTANT = 1.345  # standard deviations
_LOG_STEP_STD = 2.0  # of the prior on the step of the logarithm of a shape
_HELD_STEP_STD = 1e-6  # the same of a shape that may not move
_MIN_SLOW_SPEED = 1e-6  # [rad/s or m/s], where all rows are at rest
_SLOW_SHARE = 0.01  # of the rows away from reversals, that are slower than the Stribeck speed


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of a fit.

    Attributes:
        law: friction with its shapes
        theta: linear unknowns, (p,)
        covariance: of theta and then of the logarithms of the free shapes, (p + s, p + s)
        noise: standard deviation of the residuals, (parts, n) [Nm]
        inflation: factor by which correlation in time widens the variance of slow columns, (n,)
        condition: of the weighted regression with columns of unit length
        unknown: which of theta the data do not determine, (p,)
        factor: of all rows in theta, a group for each joint of each part
        converged: whether the shapes converged
    """

    law: FrictionLaw
    theta: Array
    covariance: Array
    noise: Array
    inflation: Array
    condition: float
    unknown: NDArray[np.bool_]
    factor: RegressionFactor
    converged: bool


def fit(
    maker: RowMaker,
    parts: Sequence[Samples],
    law: FrictionLaw,
    *,
    method: FitMethod = "weighted",
    progress: Progress | None = None,
) -> Fit:
    """The unknowns that fit samples best.

    Args:
        parts: sets of samples, each in the order of time
        law: of friction, with initial shapes
        method: 'weighted', 'ordinary' or 'huber'
    """
    if method not in ("weighted", "ordinary", "huber"):
        raise InvalidSamples(f"method must be 'weighted', 'ordinary' or 'huber', got '{method}'")
    task = _Task(maker, parts, method)
    found = task.finish(task.best(law.starts, progress))
    while (significant := _significant_shares(maker, found)) is not None:
        found = task.finish(task.best([replace(found.law, carrying=significant)], progress))
    return found


def fit_shapes(
    maker: RowMaker, parts: Sequence[Samples], starts: Sequence[FrictionLaw]
) -> tuple[FrictionLaw, Array]:
    """The law with fitted shapes, and its linear unknowns, (p,), without covariance.

    Args:
        parts: sets of samples, each in the order of time
        starts: laws with different initial shapes
    """
    end = _Task(maker, parts, "weighted", _MAX_ITERATIONS_COMPARING).best(starts, None)
    return end.law, end.solution.value[: len(maker.parameters(end.law))]


@dataclass(frozen=True, eq=False)
class _End:
    """The end of an iteration: the law, the solution, and the previous solution."""

    law: FrictionLaw
    solution: Solution
    previous: Solution | None
    converged: bool


@dataclass(frozen=True, eq=False)
class _Task:
    """Samples to fit."""

    maker: RowMaker
    parts: Sequence[Samples]
    method: FitMethod
    max_iterations: int = _MAX_ITERATIONS

    def best(self, starts: Sequence[FrictionLaw], progress: Progress | None) -> _End:
        """The end with the largest likelihood over all starts."""
        ends = [self._iterated(self._within_speeds(start), progress) for start in starts]
        return min(ends, key=lambda end: float(self._counts @ np.log(end.solution.noise + 1e-12)))

    def finish(self, end: _End) -> Fit:
        """The fit with its covariance, from triangular factors without rows near reversals."""
        law = end.law
        p = len(self.maker.parameters(law))
        previous = end.previous
        if not end.converged and previous is not None:
            previous = self._solve(law, previous, moving=False)
        away = replace(self, parts=[part.away_from_reversals() for part in self.parts])
        parts = [away._rows(k, law, previous) for k in range(len(self.parts))]
        factor = RegressionFactor.of_rows(parts)
        prior = _prior(factor.p, p)
        solution = solve_weighted(factor, prior, equal_weights=self.method == "ordinary")
        theta = solution.value[:p]
        rows = [self.maker.rows(part, law, theta, shapes=True) for part in away.parts]
        spread, inflation = correlated_covariance(rows, solution, prior=prior)
        unknown = solution.unknown[:p]
        if law.carrying is not None:
            shares = np.flatnonzero(self.maker.parameters(law).of_kind(ParameterKind.LOAD_SHARE))
            removed = shares[law.carrying == 0]
            unknown[removed] = False
            spread[removed] = 0.0
            spread[:, removed] = 0.0
        stated_prior = prior
        stated = solution
        if not end.converged:
            stated_prior = _prior(factor.p, p, std=_HELD_STEP_STD)
            stated = self._with_held_shapes(factor, stated_prior)
        theta = stated.value[:p]
        noise = stated.noise.reshape(len(self.parts), -1)
        if len(rows) > 1 and self.method == "weighted" and not unknown.any():
            parameters = self.maker.parameters(law)
            fitted = _with_run_effects(parameters, rows, prior, solution, inflation, factor)
            spread = fitted.covariance
            if not end.converged:
                fitted = _with_run_effects(
                    parameters, rows, stated_prior, stated, inflation, factor
                )
            theta = fitted.value[:p]
            noise = fitted.noise
            inflation = fitted.inflation
        if law.carrying is not None:
            spread[removed] = 0.0
            spread[:, removed] = 0.0
        return Fit(
            law,
            theta,
            spread,
            noise,
            inflation,
            solution.condition,
            unknown,
            factor if factor.p == p else factor.columns(np.arange(p)),
            end.converged,
        )

    def _with_held_shapes(self, factor: RegressionFactor, prior: Array) -> Solution:
        """The solution without a step of the shapes.

        Where the shapes did not converge, the data ask for a step that is not made. With it, the
        solution would not be that of the stated law. The covariance is still that of free shapes.
        """
        return solve_weighted(factor, prior, equal_weights=self.method == "ordinary")

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """Number of usable rows of each joint of each part, (parts * n,)."""
        return np.concatenate([part.mask.sum(axis=0) for part in self.parts])

    def _iterated(self, law: FrictionLaw, progress: Progress | None) -> _End:
        """The law after iteration of its shapes, and its solution."""
        p = len(self.maker.parameters(law))
        previous = None
        solution = self._solve(law, None)
        iterates = bool(law.free_shapes) or law.load or self.method == "huber"
        for i in range(self.max_iterations if iterates else 0):
            previous = solution
            solution = self._solve(law, previous)
            step = np.clip(solution.value[p:], -_MAX_LOG_STEP, _MAX_LOG_STEP).reshape(
                law.log_shapes.shape
            )
            moved = self._within_speeds(law.with_log_shapes(law.log_shapes + step))
            shapes_converged = (
                np.abs(moved.log_shapes - law.log_shapes).max(initial=0.0) < _LOG_TOLERANCE
            )
            if progress is not None:
                progress((i + 1) / self.max_iterations, f"fitting {law.name}")
            if shapes_converged and _is_small(
                solution.value[:p] - previous.value[:p], solution.inverse[:p, :p]
            ):
                return _End(law, solution, previous, converged=True)
            law = moved
        return _End(law, solution, previous, converged=not iterates)

    def _within_speeds(self, law: FrictionLaw) -> FrictionLaw:
        """The law with free Stribeck speeds that the rows can show."""
        if "stribeck_speed" not in law.free_shapes:
            return law
        log_shapes = law.log_shapes
        row = law.free_shapes.index("stribeck_speed")
        log_shapes[row] = np.maximum(log_shapes[row], np.log(self._slow_speed))
        return law.with_log_shapes(log_shapes)

    @cached_property
    def _slow_speed(self) -> Array:
        """The speed that 1 % of the rows away from reversals do not exceed, (n,) [rad/s or m/s]."""
        clear = [part.away_from_reversals() for part in self.parts]
        usable = np.concatenate([part.mask for part in clear])
        drives = self.maker.robot.drive.transmission
        speed = np.abs(np.concatenate([drives.to_drives(part.v) for part in clear]))
        slow = np.full(speed.shape[1], _MIN_SLOW_SPEED)
        for j in np.flatnonzero(usable.any(axis=0)):
            slow[j] = max(slow[j], np.quantile(speed[usable[:, j], j], _SLOW_SHARE))
        return slow

    def _solve(
        self, law: FrictionLaw, previous: Solution | None, *, moving: bool = True
    ) -> Solution:
        """The solution from inner products, with a prior on the step of the shapes.

        The prior is weak where the shapes are `moving`.
        """
        p = len(self.maker.parameters(law))
        if previous is None:
            theta = None
        else:
            theta = previous.value[:p]
        if self.method == "huber" and previous is not None:
            grams = np.concatenate(
                [self._rows(k, law, previous).grams for k in range(len(self.parts))]
            )
        else:
            grams = np.concatenate([self.maker.grams(part, law, theta) for part in self.parts])
        if previous is None:
            weights = None
        else:
            weights = previous.weights
        std = _LOG_STEP_STD if moving else _HELD_STEP_STD
        prior = _prior(grams.shape[1] - 1, p, std=std)
        equal = self.method == "ordinary"
        return solve_grams(grams, self._counts, prior, weights=weights, equal_weights=equal)

    def _rows(self, k: int, law: FrictionLaw, previous: Solution | None) -> Rows:
        """The rows of a part, with the columns of the shapes once theta is known."""
        part = self.parts[k]
        if previous is None:
            theta = None
        else:
            theta = previous.value[: len(self.maker.parameters(law))]
        rows = self.maker.rows(part, law, theta, shapes=theta is not None)
        if self.method != "huber" or previous is None or theta is None:
            return rows
        noise = previous.noise.reshape(len(self.parts), -1)[k]
        w = _huber_weights(rows.tau - rows.Y[:, :, : len(theta)] @ theta, noise)
        return Rows(rows.Y * w[:, :, None], rows.tau * w, rows.usable)


def _with_run_effects(
    parameters: ParameterTable,
    rows: Sequence[Rows],
    prior: Array,
    solution: Solution,
    inflation: Array,
    factor: RegressionFactor,
) -> RunEffects:
    """The fit with friction of each run, from the one with the same friction in all runs.

    Args:
        parameters: the p linear unknowns
        rows: of each run, in columns of the unknowns and of the shapes
        prior: of the step of the shapes
        solution: with the same friction
        inflation: of its residuals, (n,)
        factor: of the rows
    """
    p = len(parameters)
    noise = solution.noise.reshape(len(rows), -1)
    joint_noise = np.sqrt(np.mean(noise**2, axis=0))
    linear = factor
    if factor.p > p:
        linear = factor.columns(np.arange(p))
    spread = spread_between_runs(parameters, solution.value[:p], joint_noise, inflation, linear)
    friction = np.flatnonzero(spread)
    return with_run_effects(rows, prior, friction, spread[friction], noise)


def _significant_shares(maker: RowMaker, found: Fit) -> Array | None:
    """1 for drives with Fl above zero by its 95 % interval, else 0; None if nothing changes."""
    if not found.law.load:
        return None
    which = maker.parameters(found.law).of_kind(ParameterKind.LOAD_SHARE)
    std = np.sqrt(np.diag(found.covariance)[: len(which)][which])
    if found.law.carrying is None:
        previous = np.ones(len(std))
    else:
        previous = found.law.carrying
    significant = np.where(found.theta[which] > NORMAL_95 * std, previous, 0.0)
    if np.array_equal(significant, previous):
        return None
    return significant


def _prior(m: int, p: int, *, std: float = _LOG_STEP_STD) -> Array:
    """Rows that hold the step of the m - p shapes near zero, (m - p, m + 1)."""
    prior = np.zeros((m - p, m + 1))
    prior[:, p:m] = np.eye(m - p) / std
    return prior


def _huber_weights(residuals: Array, noise: Array) -> Array:
    size = np.abs(residuals) / np.maximum(_HUBER_CONSTANT * noise, 1e-12)
    return np.asarray(1.0 / np.sqrt(np.maximum(size, 1.0)))


def _is_small(change: Array, inverse: Array) -> bool:
    """Whether a change of theta is far below its standard deviation."""
    std = np.sqrt(np.maximum(np.diag(inverse), 0.0))
    return bool((np.abs(change) <= 0.01 * std + 1e-9).all())
