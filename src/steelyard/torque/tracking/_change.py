"""Has the payload changed? A test of the innovations since earlier times.

At the end of each window of 0.2 s the samples since the starts of windows up to 3.2 s ago are
compared with what was known there (about two times for each power of two). With residuals e = tau -
H x of these samples, x from before them, a change delta of the payload's mass and first moment
would show as e = W delta + noise, W the first four payload columns. Its score g = W'e (rows over
their noise) has, without a change, the covariance

    V = W'W + (W'H) R^-1 R^-T (W'H)' + (W'F) Q (W'F)'

by noise, by what was not known of x, and by friction F that drifts, Q in proportion to time.
g' V^-1 g is then chi-square with four degrees of freedom. Combinations of mass and first moments of
which much less was known before than the samples show are left out: there is nothing to compare
with. Of friction, which the first samples hardly show, it is known that it is plausible
(`plausible_friction`). The default threshold of 60 is one in 10^11 windows of white noise: the
margin covers unmodelled effects.

The model is not perfect, so the statistic is divided by the inflation of the residuals. A change
that is missed must not count as noise, else it would hide the next ones. Sums y = sum e of each
joint over the window are therefore judged with a payload that is free: their covariance, with k
rows each and D = diag(k), is

    C = D + J R^-1 R^-T J' + S B S',     J = sum H,  S = sum of the ten payload columns,  B large.

The residual of a joint that the other joints do not explain is u = C^-1 y, with the variance
(C^-1)_jj if noise is as assumed; k u_j^2 over k (C^-1)_jj, over many windows, is the inflation.

A drive that creeps for a while looks like another payload: at rest its friction is anything between
-F and F (standard deviation F / sqrt(3)), and just above, no law is right. Residuals of simulated
and real arms fall as 1/v there, so friction of a drive at speed v > v_0 (`lowest_speed`, below
which rows do not count) is taken as unknown by

    c(v) = F / sqrt(3) v_0 / |v|,    F = |Fc| + |Fv| v_0^alpha + |Fs|    (the friction at v_0)

through the whole window, but by another factor forwards than backwards: V grows by sum (W'c)(W'c)'
over drives and directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from steelyard._arrays import Array
from steelyard.identification import DynamicModel
from steelyard.robot._transmission import Transmission
from steelyard.torque.tracking._noise import Unexplained
from steelyard.torque.tracking._rows import TorqueRows
from steelyard.torque.tracking._state import EarlierKnowledge, Window

_UNIFORM_STD = 3.0**-0.5  # standard deviation of a uniform distribution between -1 and 1
_MAX_WINDOWS_AFTER_REST = 5  # windows that are compared with the estimate before the rest
_WEIGHT_AFTER_REST = 2.0  # of the statistic after a rest, a rarer test than that of every window
_MAX_PRIOR_VARIANCE_RATIO = 100.0  # variance of the prior over that of the samples alone
_LEAST_SHOWN = 1e-9  # of a combination of mass and moments, over what is shown of each alone
_DRIFT_S = 60.0  # in which friction drifts by `friction_std`; its variance grows with the time
_FREE_PAYLOAD = np.array([100.0] + 3 * [100.0] + 6 * [1.0])  # std of a change [kg, kg m, kg m^2]
_LONGEST_WINDOWS = 16  # windows that are compared together with an earlier estimate


def change_statistic(before: EarlierKnowledge, friction_std: Array) -> float:
    """Statistic for another payload since a time; chi-square with four degrees of freedom if none.

    Args:
        before: what was known then, and the samples since
        friction_std: of the drift of each friction coefficient within a minute, (f,) [SI]
    """
    R = before.expected.R
    window = before.since
    seen = window.payload[:, :-1]
    g = window.payload[:, -1] - seen @ before.expected.solution
    half = lapack.dtrtrs(R[:-1, :-1], seen.T, trans=1)[0]
    elapsed_s = max(window.end_s - before.known_s, 0.0)
    drift = seen[:, 10 : 10 + len(friction_std)] * friction_std * np.sqrt(elapsed_s / _DRIFT_S)
    doubt = half.T @ half + drift @ drift.T + window.friction @ window.friction.T
    scale = 1.0 / np.sqrt(np.maximum(np.diag(seen), 1e-300))
    scales = np.outer(scale, scale)
    L = np.linalg.cholesky(scales * seen[:, :4] + _LEAST_SHOWN * np.eye(4))
    half = lapack.dtrtrs(L, scales * doubt, lower=1)[0]
    ratios, directions = np.linalg.eigh(lapack.dtrtrs(L, half.T, lower=1)[0])
    score = directions.T @ lapack.dtrtrs(L, scale * g, lower=1)[0]
    known = ratios < _MAX_PRIOR_VARIANCE_RATIO
    return float((score[known] ** 2 / (1.0 + ratios[known])).sum())


def after_rest(
    rest: EarlierKnowledge, window: Window, friction_std: Array
) -> tuple[EarlierKnowledge | None, float]:
    """The comparison with one more window, None at its end, and the statistic of its samples.

    This test is rarer than that of every window, so its statistic counts twice.

    Args:
        rest: what was known before the rest, and the samples since
        window: the newest one
        friction_std: see `change_statistic`
    """
    rest = rest.plus(window)
    statistic = change_statistic(rest, friction_std) / noise_since(rest)
    young = rest.since.rows.max() <= _MAX_WINDOWS_AFTER_REST * window.rows.max()
    return rest if young else None, _WEIGHT_AFTER_REST * statistic


def strongest_change(earlier: Sequence[EarlierKnowledge], friction_std: Array) -> tuple[int, float]:
    """The place of the time since which another payload is likeliest, and its statistic.

    Args:
        earlier: what was known at some times, newest first, and the samples since
        friction_std: see `change_statistic`
    """
    statistics = [
        change_statistic(before, friction_std) / noise_since(before) for before in earlier
    ]
    strongest = int(np.argmax(statistics))
    return strongest, statistics[strongest]


def noise_since(before: EarlierKnowledge) -> float:
    """Variance of residuals over the assumed one, by those that no other payload explains."""
    found = before.unexplained.plus(0, *_unexplained(before))
    return float(found.inflation.max())


def with_unexplained(
    found: Unexplained, earlier: Sequence[EarlierKnowledge], window: int
) -> Unexplained:
    """Residuals that no other payload explains, with those of the window that ends now.

    Args:
        found: before
        earlier: what was known at the starts of windows, and the samples since
        window: number of the one that ends now
    """
    found = found.faded
    for before in earlier:
        length = window + 1 - before.window
        for level in range(len(found.sums)):
            if length == 2**level and before.window % length == 0:
                found = found.plus(level, *_unexplained(before))
    return found


def _unexplained(before: EarlierKnowledge) -> tuple[Array, Array]:
    """Squares of the joints' residuals and their share of noise (see above), (n,) each."""
    since = before.since
    rows = np.maximum(since.rows, 1e-9)
    H = since.joints[:, :-1]
    y = since.joints[:, -1] - H @ before.expected.solution
    half = lapack.dtrtrs(before.expected.R[:-1, :-1], H.T, trans=1)[0]
    free = _FREE_PAYLOAD * H[:, :10]
    scale = 1.0 / np.sqrt(rows)
    C = np.eye(len(y)) + np.outer(scale, scale) * (half.T @ half + free @ free.T)
    inverse = np.linalg.inv(C)
    counting = since.rows > 0
    u = inverse @ (scale * y)
    return np.where(counting, u**2, 0.0), np.where(counting, np.diag(inverse), 0.0)


def still_kept(earlier: Sequence[EarlierKnowledge], window: int) -> Iterator[EarlierKnowledge]:
    """The earlier times that the next window is compared with: about two for each power of two.

    Args:
        earlier: newest first
        window: number of the next one
    """
    for before in earlier:
        divisor = before.window & -before.window or _LONGEST_WINDOWS
        if window - before.window < min(2 * divisor, _LONGEST_WINDOWS):
            yield before


@dataclass(frozen=True, eq=False)
class Creep:
    """Unmodelled friction of slow drives (see above).

    Attributes:
        std: of the friction of each drive at `lowest_speed`, F / sqrt(3), (n,) [Nm or N]
        lowest_speed: v_0, below which torques do not count, [rad/s or m/s]
        weights: of the joints' rows, (n,)
        drives: from joints to drives
    """

    std: Array
    lowest_speed: float
    weights: Array
    drives: Transmission

    @classmethod
    def of(
        cls, model: DynamicModel, rows: TorqueRows, weights: Array, lowest_speed: float
    ) -> Creep:
        """The doubt about a model's friction.

        Args:
            weights: of the joints' rows, (n,)
            lowest_speed: below which torques do not count, [rad/s or m/s]
        """
        size = np.abs(model.friction.coefficients)
        F = (size * model.law.breakaway(lowest_speed)).sum(axis=0)
        return cls(_UNIFORM_STD * F, lowest_speed, weights, rows.drives)

    def pull(self, payload: Array, v: Array) -> Array:
        """W'c of a few samples, (4, 2 n): forwards and backwards for each drive in turn.

        Args:
            payload: first four payload columns W of each sample and joint, rows over their noise,
                (k, n, 4)
            v: joint velocity, (k, n) [rad/s or m/s]
        """
        if self.lowest_speed == 0:
            return np.zeros((4, 2 * len(self.std)))
        drives = self.drives
        std = self.std
        if drives.is_coupled:
            v = drives.to_drives(v)
            payload = drives.matrix @ (payload * self.weights[:, None])
        else:
            std = std * self.weights
        c = (self.lowest_speed * std) / np.maximum(np.abs(v), self.lowest_speed)
        both = np.empty((v.shape[1], 2, len(v)))
        both[:, 0] = (c * (v > 0)).T
        both[:, 1] = c.T - both[:, 0]
        return np.asarray((both @ payload.transpose(1, 0, 2)).reshape(-1, 4).T)
