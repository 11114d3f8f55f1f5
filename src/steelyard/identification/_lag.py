"""How much later the torques come than the motion, where the data prove it.

Position and torque pass through different filters and buses, so that the torque which a log shows
at t is that of t - L. With f the torque that the model predicts, the measured one is f(t - L_j),
which is linear in what is left of L_j once the rows of joint j are taken at t - L_j:

    tau_j(t) = f_j(t - L_j) - f_j'(t - L_j) d_j,       L_j <- L_j + d_j,

so a column -f_j' beside those of links, rotors, friction and the shapes of its law finds the lag in
a few Gauss-Newton steps, to fractions of a sample: one column for a lag that all joints share, or
one for each joint. The rows are interpolated, not the torques: that would smooth the noise, and any
lag would seem to predict better. Where a joint reverses, friction jumps or follows the distance
travelled, which looks like a lag: rows within 0.1 s of a reversal do not count. Friction that grows
with the load looks like a lag too, so the law includes it.

An estimated lag fits better by construction, and predicts worse as often as better. So a lag is
used only if it predicts stretches that were left out better than chance allows. Each fit (no lag,
one lag, a lag for each joint) predicts the same stretches from the other recordings, or from the
other quarters of a single one. For stretch s and joint j the mean squared residuals E_sj of two
fits give the differences

    d_s = mean over joints of (E_sj - E'_sj) / mean over stretches of E_sj,

and the second fit is used if their mean is above zero by a one-sided t test. One lag competes with
none, and lags for each joint compete with the winner. Besides, one lag must lie beyond its 95 %
interval, and lags for each joint must differ by more than their covariance allows (chi^2). A joint
whose torque no fit predicts (it is at the noise level, or not excited) does not count, and has no
lag of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri

from steelyard._arrays import Array, Indices, Mask, freeze
from steelyard._units import NORMAL_95
from steelyard.identification._covariance import correlated_covariance
from steelyard.identification._factor import RegressionFactor
from steelyard.identification._fit import fit_shapes
from steelyard.identification._least_squares import solve_grams, solve_weighted
from steelyard.identification._left_out import (
    LeftOutStretch,
    left_out_squares,
    p_value_of_gain,
    stretches_of,
)
from steelyard.identification._problem import RowMaker, Rows
from steelyard.recording import Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.robot._friction import FrictionLaw

_LAW = "load"
_MAX_LAG_S = 0.25  # longer ones are no delay of a bus
_COARSE_LAGS_S = np.linspace(-0.2, 0.2, 11)
_MIN_LAG_SAMPLES = 0.02
_MAX_ROWS = 2500
_MIN_RATE_HZ = 30.0  # of thinned samples
_REVERSAL_MARGIN_S = 0.1  # around a reversal
_END_MARGIN_S = 0.5  # accelerations are unreliable near the ends of a motion
_MIN_ROWS_PER_UNKNOWN = 10
_SLOPE_HALF_SPAN_S = 0.04  # shorter spans amplify noise of accelerations
_MAX_ITERATIONS = 8
_MAX_ITERATIONS_OWN = 4  # from the shared lag
_LAG_TOLERANCE_S = 2e-4
_MAX_LAG_STEP_S = 0.02
_LAG_STEP_STD_S = 0.1
_LOG_STEP_STD = 2.0  # of a shape
_MAX_LOG_STEP = 0.7  # of a shape
_MAX_UNPREDICTED = 0.5  # of a joint's RMS torque; joints above do not count
_MAX_CHANCE_SHARED = 0.05  # probability that a lag which is used helps by chance
_MAX_CHANCE_OWN = 0.01  # the same of lags for each joint


@dataclass(frozen=True, eq=False)
class TimeLags:
    """How much later the torques of each joint come than its motion.

    Attributes:
        value: the lags to use, (n,) [s]; 0 where the data do not prove one
        std: standard deviations of the estimates, (n,) [s]; infinite where there is none
    """

    value: Array
    std: Array

    def __post_init__(self) -> None:
        freeze(self, "value", "std")


def time_lags(robot: RobotModel, samples: Sequence[Samples]) -> TimeLags:
    """The lags of torques behind the motion that predict left-out stretches better than none.

    Args:
        robot: the arm
        samples: of it, each in the order of time, torques not shifted
    """
    n = robot.n
    search = _LagSearch.of(robot, samples)
    if search is None:
        return TimeLags(np.zeros(n), np.full(n, np.inf))
    none = search.settled(0.0)
    coarse_s = search.coarse_lag(none)
    start = none
    if coarse_s:
        start = search.settled(coarse_s)
    shared = search.refined(start, np.zeros(n, dtype=np.intp), _MAX_ITERATIONS)
    squares_none = search.left_out_squares(none)
    squares_shared = search.left_out_squares(shared)
    asked = search.predicted(squares_none) | search.predicted(squares_shared)
    if not asked.any():
        return TimeLags(np.zeros(n), np.full(n, np.inf))
    std = shared.of_joints(np.sqrt(np.diag(search.covariance(shared))), np.inf)
    found = TimeLags(np.zeros(n), std)
    squares = squares_none
    beyond_interval = abs(shared.lag[0]) > NORMAL_95 * std[0]
    if (
        beyond_interval
        and search.allows(shared)
        and _proven(squares_none, squares_shared, asked, _MAX_CHANCE_SHARED)
    ):
        found = TimeLags(shared.lag, std)
        squares = squares_shared
    own = search.refined(shared, _own_columns(asked), _MAX_ITERATIONS_OWN)
    if search.allows(own) and _proven(
        squares, search.left_out_squares(own), asked, _MAX_CHANCE_OWN
    ):
        covariance = search.covariance(own)
        if _differ(own.lag[asked], covariance):
            found = TimeLags(own.lag, own.of_joints(np.sqrt(np.diag(covariance)), np.inf))
    return found


def _own_columns(asked: Mask) -> Indices:
    """The column of lags of each joint, (n,), if those that are asked have one each."""
    columns = np.full(len(asked), -1, dtype=np.intp)
    columns[asked] = np.arange(asked.sum())
    return columns


def _proven(before: Array, after: Array, asked: Mask, chance: float) -> bool:
    """Whether squared residuals of left-out stretches, (stretches, n) each, became smaller."""
    return p_value_of_gain(before[:, asked], after[:, asked]) < chance


def _differ(lag: Array, covariance: Array) -> bool:
    """Whether lags, (k,), differ by more than their covariance allows, (k, k)."""
    inverse = np.linalg.inv(covariance)
    mean = inverse.sum(axis=0) @ lag / inverse.sum()
    apart = lag - mean
    return bool(apart @ inverse @ apart > chdtri(max(len(lag) - 1, 1), _MAX_CHANCE_OWN))


@dataclass(frozen=True, eq=False)
class _LagFit:
    """A fit with certain lags.

    Attributes:
        lag: of each joint, (n,) [s]
        columns: which column of lags each joint has, (n,); -1 for none
        law: of friction, with its shapes
        theta: linear unknowns, (p,)
        rows: of each part, in theta, steps of the shapes and steps of the lags
        prior: rows that hold the steps near zero, (m - p, m + 1)
    """

    lag: Array
    columns: Indices
    law: FrictionLaw
    theta: Array
    rows: Sequence[Rows]
    prior: Array

    @property
    def lag_columns(self) -> int:
        """The number of unknowns that are lags."""
        return int(self.columns.max()) + 1

    def of_joints(self, values: Array, otherwise: float) -> Array:
        """Values of the columns of lags as values of the joints, (n,).

        Args:
            values: one for each column of lags
            otherwise: the value of joints without a column
        """
        return np.where(self.columns >= 0, values[self.columns], otherwise)


@dataclass(frozen=True, eq=False)
class _LagSearch:
    """Samples to search lags in.

    Attributes:
        maker: of their rows
        parts: samples, thinned, without reversals and ends
        stretches: of the parts, to be left out
    """

    maker: RowMaker
    parts: Sequence[Samples]
    stretches: Sequence[LeftOutStretch]

    @classmethod
    def of(cls, robot: RobotModel, samples: Sequence[Samples]) -> _LagSearch | None:
        """The search, or None if there are too few rows."""
        maker = RowMaker(robot, ParameterBasis.of(robot))
        every = np.ceil(sum(len(each) for each in samples) / _MAX_ROWS)
        parts = [
            _away_from_reversals(each, int(min(every, each.rate_hz / _MIN_RATE_HZ)))
            for each in samples
        ]
        law = FrictionLaw.named(_LAW, robot.n)
        unknowns = len(maker.parameters(law)) + law.log_shapes.size + robot.n
        if sum(int(part.mask.sum()) for part in parts) < _MIN_ROWS_PER_UNKNOWN * unknowns:
            return None
        return cls(maker, parts, stretches_of([len(part) for part in parts]))

    def settled(self, lag_s: float) -> _LagFit:
        """The fit with the best shapes of friction for a lag that all joints share."""
        n = self.maker.robot.n
        lag = np.full(n, lag_s)
        parts = [replace(part, tau=_later(part.tau, lag_s * part.rate_hz)) for part in self.parts]
        law = FrictionLaw.named(_LAW, n)
        law, theta = fit_shapes(self.maker, parts, law.starts)
        return self._fit(lag, np.full(n, -1, dtype=np.intp), law, theta)

    def coarse_lag(self, none: _LagFit) -> float:
        """The lag of a coarse grid, shared by all joints, that fits best, [s].

        Args:
            none: the fit without lags
        """
        grams = np.concatenate([part.grams for part in none.rows])
        counts = np.concatenate([part.usable.sum(axis=0) for part in none.rows])
        solution = solve_grams(grams, counts, none.prior)
        weights = solution.weights.reshape(len(none.rows), -1)
        losses = []
        for lag_s in _COARSE_LAGS_S:
            pull = np.zeros(len(solution.value))
            loss = 0.0
            for part, rows, weight in zip(self.parts, none.rows, weights, strict=True):
                tau = _later(part.tau, lag_s * part.rate_hz) * rows.usable * weight
                pull += np.einsum("ij,ijk->k", tau * weight, rows.Y)
                loss += float((tau**2).sum())
            losses.append(loss - pull @ solution.inverse @ pull)
        return float(_COARSE_LAGS_S[int(np.argmin(losses))])

    def refined(self, start: _LagFit, columns: Indices, rounds: int) -> _LagFit:
        """The fit whose lags no longer move, by Gauss-Newton steps from another fit.

        Args:
            start: fit with lags and shapes to start from
            columns: which column of lags each joint has, (n,); -1 for none
            rounds: most steps
        """
        fit = self._fit(start.lag, columns, start.law, start.theta)
        counts = np.concatenate([part.usable.sum(axis=0) for part in fit.rows])
        p = len(fit.theta)
        k = fit.lag_columns
        weights = None
        for _ in range(rounds):
            grams = np.concatenate([part.grams for part in fit.rows])
            solution = solve_grams(grams, counts, fit.prior, weights=weights)
            weights = solution.weights
            step = np.clip(solution.value[-k:], -_MAX_LAG_STEP_S, _MAX_LAG_STEP_S)
            law = _moved(fit.law, solution.value[p:-k])
            lag = fit.lag + fit.of_joints(step, 0.0)
            fit = self._fit(lag, columns, law, solution.value[:p])
            if np.abs(step).max() < _LAG_TOLERANCE_S:
                break
        return fit

    def _fit(self, lag: Array, columns: Indices, law: FrictionLaw, theta: Array) -> _LagFit:
        """The rows of a fit with certain lags, shapes and unknowns."""
        rows = [
            _lag_rows(self.maker.rows(part, law, theta, shapes=True), part.rate_hz, theta, lag)
            for part in self.parts
        ]
        merged = [_with_lag_columns(part, columns) for part in rows]
        p = len(theta)
        return _LagFit(
            lag, columns, law, theta, merged, _prior(merged[0].Y.shape[2], p, columns.max() + 1)
        )

    def left_out_squares(self, fit: _LagFit) -> Array:
        """Mean squared residuals of stretches predicted from other folds, (stretches, n)."""
        squares, counts = left_out_squares(fit.rows, self.stretches, fit.prior)
        return squares / np.maximum(counts, 1)

    def predicted(self, squares: Array) -> Mask:
        """Which joints have torques that a fit predicts, (n,).

        Args:
            squares: as `left_out_squares` gives them
        """
        torque = np.mean([np.mean(part.tau**2, axis=0) for part in self.parts], axis=0)
        return np.asarray(squares.mean(axis=0) < _MAX_UNPREDICTED**2 * torque)

    def allows(self, fit: _LagFit) -> bool:
        """Whether the lags of a fit are neither negligible nor too long for a bus."""
        rate_hz = max(part.rate_hz for part in self.parts)
        longest = np.abs(fit.lag).max()
        return bool(_MIN_LAG_SAMPLES / rate_hz < longest < _MAX_LAG_S)

    def covariance(self, fit: _LagFit) -> Array:
        """The covariance of the columns of lags of a fit, (k, k) [s^2]."""
        solution = solve_weighted(RegressionFactor.of_rows(fit.rows), fit.prior)
        covariance, _ = correlated_covariance(fit.rows, solution, prior=fit.prior)
        k = fit.lag_columns
        return covariance[-k:, -k:]


def _away_from_reversals(samples: Samples, every: int) -> Samples:
    """One of `every` samples, without the ends and without rows near reversals of a joint."""
    every = max(1, every)
    thin = {name: getattr(samples, name)[::every] for name in ("q", "v", "a", "tau")}
    rate_hz = samples.rate_hz / every
    side = np.where(samples.mask, np.sign(samples.v), 0.0)[::every]
    same = side != 0
    for k in range(1, int(np.ceil(_REVERSAL_MARGIN_S * rate_hz)) + 1):
        alike = side[k:] == side[:-k]
        same[k:] &= alike
        same[:-k] &= alike
    ends = int(np.ceil(_END_MARGIN_S * rate_hz))
    same[:ends] = False
    same[len(same) - ends :] = False
    return replace(samples, rate_hz=rate_hz, usable=same, **thin)


def _lag_rows(rows: Rows, rate_hz: float, theta: Array, lag: Array) -> Rows:
    """Rows of each joint as they were a lag ago, with a column of the lag for each joint."""
    n = len(lag)
    predicted = rows.Y[:, :, : len(theta)] @ theta
    reach = max(1, round(_SLOPE_HALF_SPAN_S * rate_hz))
    columns = np.zeros((*predicted.shape, n))
    rise = predicted[2 * reach :] - predicted[: -2 * reach]
    joints = np.arange(n)
    columns[reach:-reach, joints, joints] = -rise * rate_hz / (2 * reach)
    Y = np.concatenate([rows.Y, columns], axis=2)
    usable = rows.usable.copy()
    for j in np.flatnonzero(lag).tolist():
        Y[:, j] = _before(Y[:, j], lag[j] * rate_hz)
        usable[:, j] = rows.usable[_indices(len(Y), -round(lag[j] * rate_hz)), j]
    return Rows(Y, rows.tau, usable)


def _indices(count: int, later: int) -> Indices:
    """The indices of rows that are `later` rows later, within the first and the last, (count,)."""
    return np.clip(np.arange(count) + later, 0, count - 1)


def _later(signals: Array, rows: float) -> Array:
    """Signals, (N, ...), as they are a number of rows later, rounded."""
    return np.asarray(signals[_indices(len(signals), round(rows))])


def _before(signals: Array, rows: float) -> Array:
    """Smooth signals, (N, ...), as they were some rows before, between rows by cubics."""
    whole = int(np.ceil(rows))
    x = whole - rows
    weights = {
        -1: -x * (x - 1) * (x - 2) / 6,
        0: (x + 1) * (x - 1) * (x - 2) / 2,
        1: -(x + 1) * x * (x - 2) / 2,
        2: (x + 1) * x * (x - 1) / 6,
    }
    count = len(signals)
    return np.asarray(
        sum(weight * signals[_indices(count, k - whole)] for k, weight in weights.items())
    )


def _with_lag_columns(rows: Rows, columns: Indices) -> Rows:
    """Rows whose last n columns, one lag for each joint, are merged into fewer.

    Args:
        columns: which of the new columns each joint has, (n,); -1 for none
    """
    n = len(columns)
    merging = np.zeros((n, int(columns.max()) + 1))
    asked = columns >= 0
    merging[asked, columns[asked]] = 1.0
    lags = rows.Y[:, :, -n:] @ merging
    return Rows(np.concatenate([rows.Y[:, :, :-n], lags], axis=2), rows.tau, rows.usable)


def _moved(law: FrictionLaw, step: Array) -> FrictionLaw:
    """The law with its shapes moved by a step of their logarithms."""
    step = np.clip(step, -_MAX_LOG_STEP, _MAX_LOG_STEP)
    return law.with_log_shapes(law.log_shapes + step.reshape(law.log_shapes.shape))


def _prior(m: int, p: int, lags: int) -> Array:
    """Rows that hold steps of shapes and lags near zero, (m - p, m + 1)."""
    prior = np.zeros((m - p, m + 1))
    width = np.append(np.full(m - p - lags, _LOG_STEP_STD), np.full(lags, _LAG_STEP_STD_S))
    prior[:, p:m] = np.diag(1 / width)
    return prior
