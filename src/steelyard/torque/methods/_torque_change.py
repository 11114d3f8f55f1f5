"""Torque change: torques with and without the load on the same motion.

    tau_L - tau_0 = Y J phi

with tau_0 measured before (Khalil, Gautier and Lemoine 2007; 'Algorithm 1' in xu2024), where the
change of friction between two runs is unknown, but has twice the variance of friction between runs
(`identification._between_runs`; taken as unchanged where that is not known); or with tau_0 from the
controller's own model of the empty arm (gaz2017 eq. (26), 'manufacturer'), which has no friction,
so friction is estimated together with the payload. The error of the controller's model is taken to
be its difference from the identified model: it is converted to a payload, which widens the
interval.

Two runs of one motion start at different times of their clocks. With loaded positions a_i and empty
ones b_i at the same rate, the mean square of the distance at a shift of l samples,

    d_l = (sum_i |a_i|^2 + sum_i |b_i+l|^2 - 2 sum_i a_i' b_i+l) / (number of i with both),

is smallest where they coincide (the last sum for all l at once by a Fourier transform). Newton
steps s -= sum v'(b - a) / sum |v|^2 refine the shift to fractions of a sample. The overlap of both
runs is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.identification import RegressionFactor
from steelyard.identification._covariance import correlated_covariance
from steelyard.identification._least_squares import solve_weighted
from steelyard.identification._problem import Rows
from steelyard.recording import Samples
from steelyard.signals import resample
from steelyard.torque.methods._problem import Answer, WeighingProblem

_MAX_PATH_DISTANCE = 0.02  # [rad], RMS; runs of one motion agree to 1e-4, others differ by 0.1
_MIN_COMMON_SHARE = 0.5  # of the shorter run; a short overlap may be at rest in one posture
_NEWTON_STEPS = 3


def torque_change(problem: WeighingProblem) -> Answer:
    """The payload from torques before and after on the same motion.

    Args:
        problem: loaded runs, and empty runs that include each of their motions
    """
    if not problem.empty:
        raise InvalidSamples(
            "this method needs an empty run for each loaded run on the same motion"
        )
    found = [_changed(part, problem.empty, f"run {k + 1}") for k, part in enumerate(problem.loaded)]
    pairs = [(loaded, change) for loaded, change, _ in found]
    spread = problem.model.run_spread
    if spread is None:
        answer = _from_change(problem, problem.jacobian, pairs)
    else:
        varying = np.flatnonzero(spread > 0)
        mixing = np.column_stack([np.eye(len(spread))[:, varying], problem.jacobian])
        unchanged = np.zeros((len(varying), len(varying) + 11))
        unchanged[:, : len(varying)] = np.diag(1.0 / (np.sqrt(2.0) * spread[varying]))
        answer = _from_change(problem, mixing, pairs, prior=unchanged)
    return replace(answer, remark="; ".join(words for _, _, words in found))


def has_same_motions(problem: WeighingProblem) -> bool:
    """Whether each loaded run has an empty run on the same motion."""
    return bool(problem.empty) and all(
        _nearest(part, problem.empty).distance <= _MAX_PATH_DISTANCE for part in problem.loaded
    )


def manufacturer(problem: WeighingProblem) -> Answer:
    """The payload from torques less those of the controller's model of the empty arm.

    Args:
        problem: loaded runs, and for each the controller's torque of the empty arm as samples
    """
    if [part.q.shape for part in problem.empty] != [part.q.shape for part in problem.loaded]:
        raise InvalidSamples(
            "this method needs the controller's torque of the empty arm for each sample of each"
            " loaded run"
        )
    runs = list(zip(problem.loaded, problem.empty, strict=True))
    pairs = [(loaded, replace(loaded, tau=loaded.tau - empty.tau)) for loaded, empty in runs]
    model = problem.model
    friction = model.estimate.parameters.daily
    mixing = np.column_stack([np.eye(len(friction))[:, friction], problem.jacobian])
    firm = np.where(friction, 0.0, model.estimate.value)
    controller_error = [model.rows(loaded).Y @ firm - empty.tau for loaded, empty in runs]
    return _from_change(problem, mixing, pairs, controller_error=controller_error)


class _Nearest(NamedTuple):
    """The empty run whose motion is nearest to that of a loaded run.

    Attributes:
        empty: its samples
        shift_s: its delay, [s]
        rows: of the loaded run that it covers
        distance: of the positions, RMS of the worst joint, [rad]
    """

    empty: Samples
    shift_s: float
    rows: slice
    distance: float


def _nearest(loaded: Samples, others: Sequence[Samples]) -> _Nearest:
    """The empty run whose motion is nearest to that of a loaded run."""
    shifted = [(empty, _shift_s(loaded, empty)) for empty in others]
    common = [
        _Nearest(empty, shift_s, *_common(loaded, empty, shift_s)) for empty, shift_s in shifted
    ]
    return min(common, key=lambda each: each.distance)


def _changed(loaded: Samples, others: Sequence[Samples], name: str) -> tuple[Samples, Samples, str]:
    """The common part of a loaded and the nearest empty run, the torque change, and words."""
    empty, shift_s, rows, distance = _nearest(loaded, others)
    if distance > _MAX_PATH_DISTANCE:
        raise InvalidSamples(
            f"{name}: the loaded and the empty motion differ by {distance:.3f} rad at the best time"
            " shift; this method needs the same motion"
        )
    part = loaded.rows(rows)
    times = _seconds(loaded)[rows] + shift_s
    tau, counted, direction = (
        resample(_seconds(empty), x, times, smooth=False)
        for x in (empty.tau, empty.mask.astype(float), np.sign(empty.v))
    )
    same_direction = np.abs(direction - np.sign(part.v)) < 1e-9  # friction depends on it
    comparable = (counted > 1 - 1e-9) & same_direction
    words = (
        f"{name}: {len(part) / part.rate_hz:.1f} s in common with the empty run, {shift_s:+.3f} s"
        f" shifted, positions {distance:.1g} rad distance"
    )
    part = replace(part, usable=part.mask & comparable)
    return part, replace(part, tau=part.tau - tau), words


def _shift_s(loaded: Samples, empty: Samples) -> float:
    """The delay of the empty run behind the loaded one, from their first samples, [s]."""
    rate_hz = loaded.rate_hz
    a = loaded.q - loaded.q.mean(axis=0)
    count = int((len(empty) - 1) / empty.rate_hz * rate_hz * (1 + 1e-12)) + 1
    b = resample(_seconds(empty), empty.q, np.arange(count) / rate_hz) - loaded.q.mean(axis=0)
    lags = np.arange(1 - len(a), len(b))
    size = len(lags)
    product = np.fft.rfft(a, size, axis=0).conj() * np.fft.rfft(b, size, axis=0)
    correlation = np.fft.irfft(product.sum(axis=1), size)[lags]
    sums = [np.append(0.0, np.cumsum((x**2).sum(axis=1))) for x in (a, b)]
    first = np.maximum(0, -lags)
    last = np.minimum(len(a), len(b) - lags)
    squares = sums[0][last] - sums[0][first] + sums[1][last + lags] - sums[1][first + lags]
    overlap = last - first
    distance = np.where(
        overlap >= _MIN_COMMON_SHARE * min(len(a), len(b)),
        (squares - 2 * correlation) / overlap,
        np.inf,
    )
    shift_s = float(lags[distance.argmin()] / rate_hz)
    for _ in range(_NEWTON_STEPS):
        rows, _ = _common(loaded, empty, shift_s)
        deviation = (
            resample(_seconds(empty), empty.q, _seconds(loaded)[rows] + shift_s) - loaded.q[rows]
        )
        step_s = (loaded.v[rows] * deviation).sum() / max((loaded.v[rows] ** 2).sum(), 1e-300)
        shift_s -= float(np.clip(step_s, -1 / rate_hz, 1 / rate_hz))
    return shift_s


def _common(loaded: Samples, empty: Samples, shift_s: float) -> tuple[slice, float]:
    """Rows of a loaded run that a shifted empty one covers, and their RMS distance [rad]."""
    times = _seconds(loaded) + shift_s
    last_s = _seconds(empty)[-1]
    inside = np.flatnonzero((times > -1e-9) & (times < last_s + 1e-9))
    rows = slice(int(inside[0]), int(inside[-1]) + 1)
    deviation = (
        resample(_seconds(empty), empty.q, np.clip(times[rows], 0.0, last_s)) - loaded.q[rows]
    )
    return rows, float(np.sqrt(np.mean(deviation**2, axis=0)).max())


def _seconds(samples: Samples) -> Array:
    """Times since the first sample, (N,) [s]."""
    return np.asarray(np.arange(len(samples)) / samples.rate_hz)


def _from_change(
    problem: WeighingProblem,
    mixing: Array,
    pairs: Sequence[tuple[Samples, Samples]],
    *,
    prior: Array | None = None,
    controller_error: Sequence[Array] | None = None,
) -> Answer:
    """The payload, the last ten unknowns of a mixing, from changes of torque.

    Gains scale the change; or only the loaded torques, if those of the empty arm come from a
    controller. Its error `controller_error`, for each run (N, n) [Nm], converted to a payload, is
    one further standard deviation. `prior` are rows [Z z] of unit noise, (r, m + 1).
    """
    n = problem.model.robot.n
    fixed = np.zeros((len(problem.fixed), mixing.shape[1] + 1))
    fixed[:, -11:] = problem.fixed
    prior = fixed if prior is None else np.vstack([prior, fixed])
    rows = [problem.model.rows(change) for _, change in pairs]
    factor = RegressionFactor.of_rows(rows)
    solution = solve_weighted(factor, prior, mixing)
    covariance, _ = correlated_covariance(rows, solution, prior=prior, mixing=mixing)

    def moved_by(torques: Iterable[Array]) -> Array:
        scaled = [Rows(part.Y, tau, part.usable) for part, tau in zip(rows, torques, strict=True)]
        return solution.gain_response(RegressionFactor.of_rows(scaled), n, mixing)

    drifted = moved_by(loaded.tau for loaded, _ in pairs)
    if controller_error is None:
        wrong = solution.gain_response(factor, n, mixing)
    else:
        wrong = drifted
        shift = moved_by(controller_error).sum(axis=1)
        covariance = covariance + np.outer(shift, shift)
    friction = np.arange(mixing.shape[1]) < mixing.shape[1] - 10
    return Answer.of(solution, covariance, wrong, drifted, friction=friction)
