"""Drive gains from the controller's own target current and target moment.

A controller that logs its target moment m and its target current i of a joint has computed i from m
with its own gain K, and has added what the motor needs beyond the links:

    i = m / K + c a + f(v)

c a is for the rotor, f(v) compensates friction. The manufacturer's f is unknown (that of a UR has a
kink at 0.5 rad/s), so it is left free: piecewise linear over the speed, different in each
direction. Rows slower than `_MIN_SPEED`, where f reverses, are left out, and so are outliers. f(v)
is eliminated from all columns (Frisch, Waugh); 1 / K and c remain.

A controller adds the rotor term for every joint or for none (its target moment may contain it
already), so one decision is taken for all joints, by the Bayesian information criterion. If it
does, the coefficient of the acceleration, which is differentiated from the log and noisy, would be
too small (errors in variables), and that of m wrong, which resembles it in a joint that carries no
weight. A smoother copy of the acceleration, whose noise is nearly independent, is therefore used as
an instrumental variable: with X = [m, a] and Z = [m, smooth a]

    (1/K, c) = (Z'X)^-1 Z'i

Residuals are correlated in time by a factor kappa, so that N rows and p columns leave N - kappa p
degrees of freedom for the noise.

While a joint rests and others move, its f is constant: such rows give a slope of their own, which
is as exact as the resolution of the log.

Measured motion may be early or late against the targets. One lag for all joints is found by the
smallest residuals. If m is nearly proportional to a (a last joint without load), the gain depends
on the lag, so the uncertainty of the lag is propagated to the gains.

Each recording has an f of its own, since compensation may change from day to day. The slopes are
combined by their variances, which are widened if they disagree more than expected (Birge).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d
from scipy.optimize import minimize_scalar

from steelyard._arrays import Array
from steelyard._units import NORMAL_95, with_interval
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.identification._covariance import widening
from steelyard.identification.gains._drive_gains import DriveGains
from steelyard.recording import Recording
from steelyard.signals import central_differences, low_pass, resample
from steelyard.verdict import Doubt, DoubtKind, Verdict

_MIN_SPEED = 0.03  # [rad/s]; friction compensation reverses at lower speeds
_MAX_CELLS = 12  # pieces of the friction law in each direction
_ROWS_PER_CELL = 20  # smallest mean number of rows in a piece
_MIN_ROWS = 50
_CUTOFF_HZ = 20.0  # of the motion
_SMOOTH_HZ = 5.0  # of the acceleration as an instrumental variable
_MAX_REST_TRAVEL = 5e-4  # [rad] within _REST_S
_REST_S = 1.0
_ITERATIONS = 5  # of fit and removal of outliers
_MIN_FREEDOM = 0.2  # smallest degrees of freedom, of the number of rows
_OUTLIER_SIGMA = 5.0  # standard deviations, by the median
_MIN_RESOLUTION = 30.0  # std of the moment over its smallest step; rounding shrinks the slope
_MAX_LAG_S = 0.05  # longer lags are not searched
_LAG_STEP_S = 0.003  # for the derivatives by the lag
_LAG_ROWS = 1500  # for the search of the lag
_MAX_RELATIVE_STD = 0.2  # less certain gains count as unknown


_Rotor = Literal["absent", "plain", "smoothed"]
"""Whether the model has an acceleration term, and if so, whether its instrument is smoothed."""


class _Slope(NamedTuple):
    """1 / K of a joint from some rows, its standard deviation, and the residuals, all [A/Nm, A]."""

    value: float
    std: float
    residuals: Array

    def misfit(self, information: float) -> float:
        """Twice the negative log-likelihood of weighted rows, up to a constant."""
        return float(
            2 * information * len(self.residuals) * np.log(np.mean(np.abs(self.residuals)) + 1e-12)
        )


@dataclass(frozen=True, eq=False)
class _Targets:
    """Targets row for row, and a motion that is uniform in time.

    Attributes:
        t: time of the rows, (N,) [s]
        current: target current, (N, n) [A]
        moment: target moment, (N, n) [Nm]
        grid: times of the motion, (M,) [s]
        q: position, (M, n) [rad]
        v: velocity, (M, n) [rad/s]
        a: acceleration, (M, n) [rad/s^2]
        smooth_a: the same, with a lower cut-off, (M, n) [rad/s^2]
        measured: whether the motion is measured, not commanded
    """

    t: Array
    current: Array
    moment: Array
    grid: Array
    q: Array
    v: Array
    a: Array
    smooth_a: Array
    measured: bool

    @classmethod
    def of(cls, part: Recording) -> _Targets:
        rate_hz = (len(part) - 1) / part.duration_s
        grid = np.arange(len(part)) / rate_hz
        q = low_pass(
            resample(part.t, _position(part), grid), min(_CUTOFF_HZ, 0.4 * rate_hz), rate_hz
        )
        v, a = central_differences(q, rate_hz)
        smooth_a = low_pass(a, min(_SMOOTH_HZ, 0.2 * rate_hz), rate_hz)
        return cls(part.t, *_targets_of(part), grid, q, v, a, smooth_a, part.q_commanded is None)

    @property
    def n(self) -> int:
        return int(self.moment.shape[1])

    def thinned(self, rows: int) -> _Targets:
        """About a number of the rows, with the whole motion."""
        pick = slice(None, None, -(-len(self.t) // rows))
        return replace(self, t=self.t[pick], current=self.current[pick], moment=self.moment[pick])

    def in_motion(
        self, j: int, lag_s: float, rotor: _Rotor, *, with_std: bool = True
    ) -> _Slope | None:
        """The slope of joint j while it moves; None if the rows do not determine it.

        Without `with_std`, the standard deviation is not computed (NaN).
        """
        motion = (self.v[:, j], self.a[:, j], self.smooth_a[:, j])
        v, a, smooth_a = (np.interp(self.t + lag_s, self.grid, x) for x in motion)
        moving = np.abs(v) >= _MIN_SPEED
        if moving.sum() < _MIN_ROWS:
            return None
        i, m, v, a, smooth_a = (
            x[moving] for x in (self.current[:, j], self.moment[:, j], v, a, smooth_a)
        )
        pair = {
            "absent": ([m], [m]),
            "plain": ([m, a], [m, a]),
            "smoothed": ([m, a], [m, smooth_a]),
        }[rotor]
        X, Z = (np.column_stack(columns) for columns in pair)
        return _slope(i, X, Z, _speed_law(v), with_std=with_std)

    def at_rest(self, j: int) -> _Slope | None:
        """The slope of joint j at rest; None if the rows do not determine it."""
        window = max(3, round(_REST_S / self.grid[1]))
        moved = maximum_filter1d(self.q[:, j], window) - minimum_filter1d(self.q[:, j], window)
        rest = np.interp(self.t, self.grid, moved) < _MAX_REST_TRAVEL
        if rest.sum() < _MIN_ROWS:
            return None
        pairs = np.column_stack([self.current[rest, j], self.moment[rest, j]])
        _, first = np.unique(pairs, axis=0, return_index=True)
        distinct = np.flatnonzero(rest)[np.sort(first)]  # repeats of rounded pairs add nothing
        m = self.moment[distinct, j : j + 1]
        return _slope(self.current[distinct, j], m, m, np.ones((len(distinct), 1)))


def gains_from_targets(recordings: Recording | Iterable[Recording]) -> DriveGains:
    """The gains that the controller itself uses, from its target currents and target moments.

    Commanded motion is used if recorded, else measured motion. A joint whose target moment varies
    too little, or only together with friction and acceleration, has the gain NaN with an infinite
    standard deviation.

    Args:
        recordings: one or many of one arm, each with `current_target` and `tau_target`
    """
    if isinstance(recordings, Recording):
        parts = [recordings]
    else:
        parts = list(recordings)
    if not parts:
        raise InvalidSamples("there are no recordings to determine gains from")
    names = parts[0].joint_names
    slopes: list[list[_Slope]] = [[] for _ in names]
    for part in parts:
        if part.joint_names != names:
            raise InvalidRecording(
                f"the recordings are of different joints: {', '.join(names)} and"
                f" {', '.join(part.joint_names)}"
            )
        for piece in _pieces(part):
            for j, found in enumerate(_slopes_of(piece)):
                slopes[j] += found
    answers = [_combined(found) for found in slopes]
    value, std = np.array([answer[:2] for answer in answers]).T
    return DriveGains(
        value, std, "targets", _verdict(value, std, names), [words for _, _, words in answers]
    )


def _targets_of(part: Recording) -> tuple[Array, Array]:
    if part.current_target is None or part.tau_target is None:
        raise InvalidRecording(
            f"recording '{part.source}' lacks target currents or target moments (current_target,"
            " tau_target); state the gains, or determine them with a known mass"
        )
    return part.current_target, part.tau_target


def _position(part: Recording) -> Array:
    if part.q_commanded is None:
        return part.q
    return part.q_commanded


def _pieces(part: Recording) -> list[_Targets]:
    """The pieces of a recording between its gaps, without incomplete and repeated rows."""
    complete = np.isfinite(np.hstack([*_targets_of(part), _position(part)])).all(axis=1)
    complete &= np.concatenate([[True], np.diff(part.t) > 0])
    if complete.sum() < 2:
        raise InvalidRecording(
            f"recording '{part.source}' has fewer than two complete rows of targets and motion"
        )
    rows = part.rows(complete)
    pieces = rows.split_at_gaps()
    return [_Targets.of(piece) for piece in pieces if len(piece) >= _MIN_ROWS]


def _slopes_of(piece: _Targets) -> list[list[_Slope]]:
    """The slopes in motion and at rest that a piece shows for each joint."""
    if piece.measured:
        lag_s, lag_std = _lag(piece)
    else:
        lag_s, lag_std = (0.0, 0.0)
    rotor = _rotor(piece, lag_s)
    slopes = []
    for j in range(piece.n):
        moving = piece.in_motion(j, lag_s, rotor)
        resting = piece.at_rest(j)
        if moving is not None and lag_std > 0:
            times_s = (lag_s - _LAG_STEP_S, lag_s + _LAG_STEP_S)
            sides = [piece.in_motion(j, time_s, rotor, with_std=False) for time_s in times_s]
            values = [side.value for side in sides if side is not None]
            if len(values) == 2:
                change = np.ptp(values) / (2 * _LAG_STEP_S)
            else:
                change = np.inf
            moving = moving._replace(std=float(np.hypot(moving.std, change * lag_std)))
        slopes.append([slope for slope in (moving, resting) if slope is not None])
    return slopes


def _rotor(piece: _Targets, lag_s: float) -> _Rotor:
    """Whether the current has an acceleration term, decided for all joints together."""
    gain = 0.0
    for j in range(piece.n):
        without, plain = (
            piece.in_motion(j, lag_s, rotor, with_std=False) for rotor in ("absent", "plain")
        )
        if without is not None and plain is not None:
            information = 1 / widening([plain.residuals])
            gain += (
                without.misfit(information)
                - plain.misfit(information)
                - np.log(information * len(plain.residuals))
            )
    if gain > 0:
        return "smoothed"
    return "absent"


def _lag(piece: _Targets) -> tuple[float, float]:
    """The delay of measured motion that fits the targets, and its standard deviation, [s]."""
    few = piece.thinned(_LAG_ROWS)
    information = {
        j: 1.0 for j in range(few.n) if few.in_motion(j, 0.0, "plain", with_std=False) is not None
    }
    if not information:
        return 0.0, 0.0

    def misfit(lag_s: float) -> float:
        slopes = {j: few.in_motion(j, lag_s, "plain", with_std=False) for j in information}
        return sum(slope.misfit(information[j]) for j, slope in slopes.items() if slope is not None)

    bounds = (-_MAX_LAG_S, _MAX_LAG_S)
    best = float(
        minimize_scalar(misfit, bounds=bounds, method="bounded", options={"xatol": 1e-4}).x
    )
    for j in information:
        if (slope := few.in_motion(j, best, "plain", with_std=False)) is not None:
            information[j] = 1 / widening([slope.residuals])
    left, middle, right = (misfit(best + step) for step in (-_LAG_STEP_S, 0.0, _LAG_STEP_S))
    curvature = (left - 2 * middle + right) / _LAG_STEP_S**2
    widest = _MAX_LAG_S / np.sqrt(3)
    return best, float(min(np.sqrt(2 / curvature), widest)) if curvature > 0 else widest


def _speed_law(v: Array) -> Array:
    """Hat functions over the speed, separate for each direction, (N, columns)."""
    columns = []
    for speed in (v, -v):
        ahead = speed >= _MIN_SPEED
        if ahead.any():
            cells = int(np.clip(ahead.sum() // _ROWS_PER_CELL, 1, _MAX_CELLS))
            knots = np.linspace(_MIN_SPEED, max(speed.max(), 2 * _MIN_SPEED), cells + 1)
            distance = np.abs(speed[:, None] - knots) / (knots[1] - knots[0])
            hats = np.where(ahead[:, None], np.maximum(1.0 - distance, 0.0), 0.0)
            columns.append(hats[:, hats.any(axis=0)])
    return np.hstack(columns)


def _slope(
    current: Array, X: Array, Z: Array, law: Array, *, with_std: bool = True
) -> _Slope | None:
    """The coefficient of the moment, first column of X, with instruments Z; None if unknown."""
    step_i, step_m = (np.diff(np.unique(x)).min(initial=np.inf) for x in (current, X[:, 0]))
    keep = np.ones(len(current), dtype=bool)
    for _ in range(_ITERATIONS):
        rows = _without(np.column_stack([current, X, Z])[keep], law[keep])
        i, Xr, Zr = np.split(rows, [1, 1 + X.shape[1]], axis=1)
        m = _without(Xr[:, :1], Zr[:, 1:])
        if len(i) < 2 * law.shape[1] + _MIN_ROWS // 2 or not np.std(m) > _MIN_RESOLUTION * step_m:
            return None
        inverse = np.linalg.pinv(Zr.T @ Xr, rcond=1e-12)
        value = inverse @ Zr.T @ i
        residuals = (i - Xr @ value)[:, 0]
        far = _OUTLIER_SIGMA * 1.4826 * np.median(np.abs(residuals)) + 1e-12 * np.abs(current).max()
        near = np.abs(residuals) <= far
        if near.all():
            break
        keep[np.flatnonzero(keep)[~near]] = False
    if not with_std:
        return _Slope(float(value[0, 0]), np.nan, residuals)
    kappa = widening([residuals])
    count = len(residuals)
    freedom = max(count - kappa * (law.shape[1] + X.shape[1]), _MIN_FREEDOM * count)
    rounding = (step_i**2 + (value[0, 0] * step_m) ** 2) / 12
    noise = max(float(residuals @ residuals) / freedom, rounding)
    spread = (inverse @ (Zr.T @ Zr) @ inverse.T)[0, 0]
    return _Slope(float(value[0, 0]), float(np.sqrt(kappa * noise * spread)), residuals)


def _without(signals: Array, others: Array) -> Array:
    """Signals less their projection on other columns, (N, k).

    The other columns are a constant or hat functions, whose inner products are a well-conditioned
    band matrix.
    """
    inverse = np.linalg.pinv(others.T @ others, rcond=1e-12, hermitian=True)
    return np.asarray(signals - others @ (inverse @ (others.T @ signals)))


def _combined(slopes: Sequence[_Slope]) -> tuple[float, float, str]:
    """The gain, its standard deviation, and a sentence."""
    if not slopes:
        return np.nan, np.inf, "unknown: its target moment varies too little to determine it"
    values = np.array([slope.value for slope in slopes])
    precision = np.array([max(slope.std, 1e-9 * abs(slope.value)) for slope in slopes]) ** -2.0
    mean = float(precision @ values / precision.sum())
    chi_square = float(precision @ (values - mean) ** 2)
    widened = np.sqrt(max(1.0, chi_square / max(len(slopes) - 1, 1)))
    std = float(widened / np.sqrt(precision.sum()))
    if not std < _MAX_RELATIVE_STD * abs(mean):
        return np.nan, np.inf, f"unknown: 1/gain is {with_interval(mean, NORMAL_95 * std)} A/Nm"
    words = f"{with_interval(1 / mean, NORMAL_95 * std / mean**2)} Nm/A from {len(slopes)} slopes"
    if widened > 1.5:
        words += f", which disagree {widened:.1f} times more than expected"
    if mean < 0:
        words += "; negative: current and moment have opposite signs"
    return 1 / mean, std / mean**2, words


def _verdict(value: Array, std: Array, names: Sequence[str]) -> Verdict:
    unknown = [name for name, one in zip(names, std, strict=True) if np.isinf(one)]
    if unknown:
        words = (
            f"the gains of {', '.join(unknown)} are unknown: their target moment varies too little;"
            " add recordings in which they move or carry a changing load"
        )
        return Verdict(doubts=(Doubt(DoubtKind.GAINS, words),))
    relative = std / np.abs(value)
    j = int(relative.argmax())
    return Verdict(f"least certain: {names[j]}, to {100 * relative[j]:.2g} %")
