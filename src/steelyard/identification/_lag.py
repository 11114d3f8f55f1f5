"""The time lag of each joint's torque behind its motion.

Position and torque pass through different filters and buses, so that the torque logged at t is that
of t - L. With f the torque that the model predicts, the measured torque is f(t - L_j). Once torques
are shifted by the current estimate of the lag, it is linear in the remaining lag d_j:

    tau_j(t + L_j) = f_j(t) - f_j'(t) d_j,       L_j <- L_j + d_j,

A column -f_j' for each joint, beside those of links, rotors, friction and the shapes of its law,
therefore gives the lag in a few Gauss-Newton steps, to fractions of a sample, with a covariance C
that allows for correlation in time. At a reversal, friction jumps or follows the distance
travelled, which looks like a lag: rows within 0.1 s of a reversal are left out. Friction that grows
with the load looks like a lag too, so the friction law with a load term is fitted.

The joints of an arm share their buses. If the lags agree (chi^2 of their differences from the mean
1'C^-1 L / 1'C^-1 1 within its 99 % range), all joints get the mean. A lag within 1.96 standard
deviations of zero is set to zero: it is not significant, and moves no parameter by more than 1.96
of its standard deviations. The search covers 0.1 s; longer lags are not delays of a bus, and are
reported but not corrected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import chdtri

from steelyard._arrays import Array, Mask
from steelyard._units import NORMAL_95
from steelyard.identification._covariance import correlated_covariance
from steelyard.identification._factor import RegressionFactor
from steelyard.identification._fit import fit_shapes
from steelyard.identification._least_squares import solve_grams, solve_weighted
from steelyard.identification._problem import RowMaker, Rows
from steelyard.recording import Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.robot._friction import FrictionLaw
from steelyard.verdict import Doubt, DoubtKind

_MAX_LAG_S = 0.1  # longer lags are not searched
_LAW = "load"  # friction law that is fitted with the lags
_MAX_ROWS = 6000  # more samples are thinned
_MIN_RATE_HZ = 30.0  # of thinned samples
_REVERSAL_MARGIN_S = 0.1  # around a reversal
_END_MARGIN_S = 0.5  # accelerations are unreliable near the ends of a motion
_MIN_ROWS_PER_UNKNOWN = 10
_SLOPE_HALF_SPAN_S = 0.04  # shorter spans amplify noise of accelerations
_MAX_ITERATIONS = 12
_LAG_TOLERANCE_S = 5e-5  # smaller steps end the iteration
_MAX_LAG_STEP_S = 0.02
_LAG_STEP_STD_S = 0.1  # of the prior on a step of a lag
_LOG_STEP_STD = 2.0  # of the prior on a step of the logarithm of a shape
_MAX_LOG_STEP = 0.7  # largest step of the logarithm of a shape
_AGREEMENT_LEVEL = 0.01  # probability of a larger chi^2
_MIN_LATE_SIGMA = 3.5  # smallest reported lag beyond the search range, in standard deviations
_MIN_LAG_SAMPLES = 0.02  # shorter lags count as zero


def time_lags(robot: RobotModel, samples: Sequence[Samples]) -> tuple[Array, Array, Mask]:
    """Lags of torques behind motion, (n,) [s], their standard deviations, and late joints, (n,).

    A lag that is not significant is 0. Late joints have a lag beyond the search range.

    Args:
        robot: the arm
        samples: of the arm, each in the order of time, torques not shifted
    """
    found, covariance = _estimated(robot, samples)
    n = robot.n
    variance = np.diag(covariance)
    known = (np.abs(found) < _MAX_LAG_S) & (variance < _MAX_LAG_S**2)
    beyond = (np.abs(found) >= _MAX_LAG_S) & (found**2 > _MIN_LATE_SIGMA**2 * variance)
    if not known.any():
        return np.zeros(n), np.full(n, np.inf), beyond
    inverse = np.linalg.inv(covariance[np.ix_(known, known)])
    mean = inverse.sum(axis=0) @ found[known] / inverse.sum()
    deviation = found[known] - mean
    if deviation @ inverse @ deviation <= chdtri(max(int(known.sum()) - 1, 1), _AGREEMENT_LEVEL):
        lag = np.full(n, mean)
        std = np.full(n, 1 / np.sqrt(inverse.sum()))
    else:
        lag = np.where(known, found, 0.0)
        std = np.where(known, np.sqrt(variance), np.inf)
    shortest_s = _MIN_LAG_SAMPLES / max(each.rate_hz for each in samples)
    return np.where(np.abs(lag) > np.maximum(NORMAL_95 * std, shortest_s), lag, 0.0), std, beyond


def late_torque_doubts(robot: RobotModel, late: Mask) -> tuple[Doubt, ...]:
    """A doubt about joints whose torques and motion are not synchronised within the search range.

    Args:
        robot: the arm
        late: the joints, (n,), as `time_lags` gives them
    """
    if not late.any():
        return ()
    joints = ", ".join(np.array(robot.joint_names)[late].tolist())
    words = (
        f"torques and motion of {joints} are more than {1e3 * _MAX_LAG_S:.0f} ms apart in time,"
        " which is not corrected: record both with one clock"
    )
    return (Doubt(DoubtKind.TIME_OFFSET, words),)


def _estimated(robot: RobotModel, samples: Sequence[Samples]) -> tuple[Array, Array]:
    """The lag of each joint, (n,) [s], and the covariance, (n, n) [s^2]."""
    n = robot.n
    maker = RowMaker(robot, ParameterBasis.of(robot))
    thinning = np.ceil(sum(len(each) for each in samples) / _MAX_ROWS)
    parts = [
        _smooth_parts(each, int(min(thinning, each.rate_hz / _MIN_RATE_HZ))) for each in samples
    ]
    law = FrictionLaw.named(_LAW, n)
    lag = np.zeros(n)
    p = len(maker.parameters(law))
    counts = np.concatenate([part.mask.sum(axis=0) for part in parts])
    if counts.sum() < _MIN_ROWS_PER_UNKNOWN * (p + law.log_shapes.size + n):
        return lag, np.diag(np.full(n, np.inf))
    law, theta = fit_shapes(maker, parts, law.starts)
    weights = None
    for _ in range(_MAX_ITERATIONS):
        rows = [
            _rows(maker.rows(part, law, theta, shapes=True), part, every, theta, lag)
            for part, every in zip(parts, samples, strict=True)
        ]
        prior = _prior(rows[0].Y.shape[2], p, n)
        solution = solve_grams(
            np.concatenate([part.grams for part in rows]), counts, prior, weights=weights
        )
        found = solution.value
        weights = solution.weights
        theta = found[:p]
        law = _moved(law, found[p:-n])
        step = np.clip(found[-n:], -_MAX_LAG_STEP_S, _MAX_LAG_STEP_S)
        lag = lag + step
        if np.abs(step).max() < _LAG_TOLERANCE_S:
            break
    solution = solve_weighted(RegressionFactor.of_rows(rows), prior)
    covariance, _ = correlated_covariance(rows, solution, prior=prior)
    return lag, covariance[-n:, -n:]


def _smooth_parts(samples: Samples, thinning: int) -> Samples:
    """Every k-th sample, k = thinning, of which those near reversals and ends are not usable."""
    every = max(1, thinning)
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


def _rows(rows: Rows, part: Samples, samples: Samples, theta: Array, lag: Array) -> Rows:
    """Rows with a column of the lag for each joint, torques shifted by the current lag."""
    predicted = rows.Y[:, :, : len(theta)] @ theta
    half_span = max(1, round(_SLOPE_HALF_SPAN_S * part.rate_hz))
    columns = np.zeros((*part.q.shape, part.n))
    rise = predicted[2 * half_span :] - predicted[: -2 * half_span]
    joints = np.arange(part.n)
    columns[half_span:-half_span, joints, joints] = -rise * part.rate_hz / (2 * half_span)
    tau = [np.interp(part.t + lag[j], samples.t, samples.tau[:, j]) for j in joints]
    return Rows(np.concatenate([rows.Y, columns], axis=2), np.column_stack(tau), rows.usable)


def _moved(law: FrictionLaw, step: Array) -> FrictionLaw:
    step = np.clip(step, -_MAX_LOG_STEP, _MAX_LOG_STEP)
    return law.with_log_shapes(law.log_shapes + step.reshape(law.log_shapes.shape))


def _prior(m: int, p: int, n: int) -> Array:
    """Rows that hold steps of shapes and lags near zero, (m - p, m + 1)."""
    prior = np.zeros((m - p, m + 1))
    width = np.append(np.full(m - p - n, _LOG_STEP_STD), np.full(n, _LAG_STEP_STD_S))
    prior[:, p:m] = np.diag(1 / width)
    return prior
