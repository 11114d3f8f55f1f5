"""The fit: weights, friction shapes and carried torque found in turns.

Unknowns that are linear, theta, are solved for; shapes of friction, eta = log(alpha, width, vs), are found by
Gauss-Newton steps on both together (variable projection): with D the derivative of the torque by eta,

    min over theta, d  | W (tau - Y(eta) theta - D d) |^2 ,     eta <- eta + d,

until d is zero; a weak prior on d (two e-foldings) keeps shapes that the data do not show where they are. The
solution of the last step holds theta and eta with their common covariance. The torque that gears carry, where
friction depends on it, is taken from the theta before.

Huber's robust estimate repeats the fit with rows weighted by min(1, c sigma / |residual|)^(1/2), c = 1.345.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from steelyard.arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.identification.covariance import correlated_covariance
from steelyard.identification.factor import RegressionFactor
from steelyard.identification.least_squares import Solution, solve_weighted
from steelyard.identification.problem import RowMaker, Rows
from steelyard.recording import Samples
from steelyard.robot.friction import FrictionLaw

Estimator = Literal["weighted", "ordinary", "huber"]

_ROUNDS = 30
_LONGEST_STEP = 0.7
_SETTLED = 2e-3
_HUBER = 1.345
_PRIOR_STD = 2.0


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit found.

    Attributes:
        law: friction with its shapes
        theta: linear unknowns, (p,)
        covariance: of theta and then of the logarithms of the free shapes, (p + s, p + s)
        noise: standard deviation of the residuals, (parts, n) [Nm]
        inflation: how much correlation widens the variance of slow columns, (n,)
        condition: of the weighted regression with columns of unit length
        unknown: which of theta the data do not tell, (p,)
        factor: of all rows in theta alone, each joint of each part with its own group
    """

    law: FrictionLaw
    theta: Array
    covariance: Array
    noise: Array
    inflation: Array
    condition: float
    unknown: NDArray[np.bool_]
    factor: RegressionFactor


def fit(
    maker: RowMaker,
    parts: Sequence[Samples],
    law: FrictionLaw,
    *,
    estimator: Estimator = "weighted",
    progress: Callable[[float], None] | None = None,
) -> Fit:
    """Fits the unknowns to samples.

    Args:
        maker: of rows
        parts: sets of samples, each in the order of time
        law: of friction, with shapes to start from
        estimator: 'weighted', 'ordinary' or 'huber'
        progress: called with the share that is done
    """
    if estimator not in ("weighted", "ordinary", "huber"):
        raise InvalidSamples(f"estimator must be 'weighted', 'ordinary' or 'huber', got '{estimator}'")
    pass_ = _Pass(maker, parts, estimator)
    ends = [pass_.settled(start, progress) for start in law.starts]
    found, solution, factor = min(ends, key=lambda end: float(end[2].rows @ np.log(end[1].noise + 1e-12)))
    return pass_.finish(found, solution, factor, len(maker.names(law)))


@dataclass(frozen=True)
class _Pass:
    """One pass over all samples."""

    maker: RowMaker
    parts: Sequence[Samples]
    estimator: Estimator

    def rows(self, part: Samples, law: FrictionLaw, theta: Array | None) -> Rows:
        """Rows with the columns of the shapes behind those of theta, once theta is known."""
        rows = self.maker.rows(part, law, theta)
        if theta is None or not law.free_shapes:
            return rows
        D = self.maker.shape_columns(part, law, theta)
        return Rows(np.concatenate([rows.Y, D], axis=2), rows.tau, rows.usable)

    def factor(self, law: FrictionLaw, theta: Array | None, noise: Array | None) -> RegressionFactor:
        """The factor of all rows."""
        factors = []
        for k, part in enumerate(self.parts):
            rows = self.rows(part, law, theta)
            Y, tau = rows.Y, rows.tau
            if self.estimator == "huber" and theta is not None and noise is not None:
                w = _huber_weights(tau - Y[:, :, : len(theta)] @ theta, noise[k])
                Y, tau = Y * w[:, :, None], tau * w
            empty = RegressionFactor.empty(part.n, Y.shape[2])
            factors.append(empty.add(Y, tau, rows.usable))
        return RegressionFactor.stacked(factors)

    def solve(self, factor: RegressionFactor, p: int) -> Solution:
        """The solution, with a weak prior on the step of the shapes."""
        return solve_weighted(factor, _prior(factor.p, p), equal_weights=self.estimator == "ordinary")

    def settled(
        self, law: FrictionLaw, progress: Callable[[float], None] | None
    ) -> tuple[FrictionLaw, Solution, RegressionFactor]:
        """The law whose shapes no longer move, its solution and the factor that this was found from."""
        p = len(self.maker.names(law))
        factor = self.factor(law, None, None)
        solution = self.solve(factor, p)
        repeats = bool(law.free_shapes) or law.load or self.estimator == "huber"
        for i in range(_ROUNDS if repeats else 0):
            before = solution
            factor = self.factor(law, before.value[:p], before.noise.reshape(len(self.parts), -1))
            solution = self.solve(factor, p)
            step = np.clip(solution.value[p:], -_LONGEST_STEP, _LONGEST_STEP).reshape(law.log_shapes.shape)
            moved = law.with_log_shapes(law.log_shapes + step)
            still = np.abs(moved.log_shapes - law.log_shapes).max(initial=0.0) < _SETTLED
            if progress is not None:
                progress((i + 1) / _ROUNDS)
            if still and _small(solution.value[:p] - before.value[:p], solution.inverse[:p, :p]):
                break
            law = moved
        return law, solution, factor

    def finish(self, law: FrictionLaw, solution: Solution, factor: RegressionFactor, p: int) -> Fit:
        """The fit with its covariance."""
        theta = solution.value[:p]
        rows = [self.rows(part, law, theta) for part in self.parts]
        prior = _prior(len(solution.value), p)
        spread, inflation = correlated_covariance(rows, solution, prior=prior)
        return Fit(
            law,
            theta,
            spread,
            solution.noise.reshape(len(self.parts), -1),
            inflation,
            solution.condition,
            solution.unknown[:p],
            factor if factor.p == p else factor.columns(np.arange(p)),
        )


def _prior(m: int, p: int) -> Array:
    """Rows that hold the step of the m - p shapes near zero, (m - p, m + 1)."""
    prior = np.zeros((m - p, m + 1))
    prior[:, p:m] = np.eye(m - p) / _PRIOR_STD
    return prior


def _huber_weights(residuals: Array, noise: Array) -> Array:
    size = np.abs(residuals) / np.maximum(_HUBER * noise, 1e-12)
    return np.asarray(1.0 / np.sqrt(np.maximum(size, 1.0)))


def _small(change: Array, inverse: Array) -> bool:
    """Whether a change of theta is far below its own uncertainty."""
    std = np.sqrt(np.maximum(np.diag(inverse), 0.0))
    return bool((np.abs(change) <= 0.01 * std + 1e-9).all())
