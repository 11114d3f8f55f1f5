"""Has the payload changed? A test of the innovations of a short window.

With residuals e = tau - H x of a window, x from before it, a change delta of the payload's mass and
first moment would show as e = W delta + noise, W the first four payload columns. Its score g = W'e
(rows over their noise) has, without a change, the covariance

    V = W'W + (W'H) R^-1 R^-T (W'H)'                         (noise, and what was not known of x)

so that g' V^-1 g is chi-square with four degrees of freedom. It is divided by the inflation of the
residuals, because the model is not perfect. While much less was known before than the window itself
shows, there is nothing to compare with, and no change. The default threshold of 60 is one in 10^11
windows of white noise: the margin covers unmodelled effects.

A drive that creeps for a while looks like another payload: at rest its friction is anything between
-F and F (standard deviation F / sqrt(3)), and just above, no law is right. Residuals of simulated
and real arms fall as 1/v there, so friction of a drive at speed v > v_0 (`lowest_speed`, below
which rows do not count) is taken as unknown by

    c(v) = F / sqrt(3) v_0 / |v|,    F = |Fc| + |Fv| v_0^alpha + |Fs|    (the friction at v_0)

through the whole window, but by another factor forwards than backwards: V grows by sum (W'c)(W'c)'
over drives and directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from steelyard._arrays import Array
from steelyard.identification import DynamicModel
from steelyard.robot._transmission import Transmission
from steelyard.torque.tracking._rows import TorqueRows
from steelyard.torque.tracking._state import BeforeRest, Window

_UNIFORM_STD = 3.0**-0.5  # standard deviation of a uniform distribution between -1 and 1
_MAX_WINDOWS_AFTER_REST = 5  # windows that are compared with the estimate before the rest
_WEIGHT_AFTER_REST = 2.0  # of the statistic after a rest, a rarer test than that of every window
_MAX_PRIOR_VARIANCE_RATIO = 100.0  # variance of the prior over that of the window alone


def change_statistic(window: Window, R: Array, x: Array) -> float:
    """Statistic for another payload in a window; chi-square with four degrees of freedom if none.

    Args:
        R: factor before the window, (m + 1, m + 1)
        x: unknowns before the window, (m,)
    """
    seen = window.payload[:, :-1]
    g = window.payload[:, -1] - seen @ x
    half = lapack.dtrtrs(R[:-1, :-1], seen.T, trans=1)[0]
    doubt = half.T @ half
    if (np.diag(doubt) > _MAX_PRIOR_VARIANCE_RATIO * np.diag(seen)).any():
        return 0.0
    V = seen[:, :4] + doubt + window.friction @ window.friction.T
    scale = np.sqrt(np.maximum(np.diag(V), 1e-300))
    V = V / np.outer(scale, scale) + 1e-9 * np.eye(4)
    g = g / scale
    return float(g @ np.linalg.solve(V, g))


def after_rest(rest: BeforeRest, window: Window) -> tuple[BeforeRest | None, float]:
    """The comparison with one more window, None at its end, and the statistic of its samples.

    This test is rarer than that of every window, so its statistic counts twice. It is compared with
    the residuals before the rest.

    Args:
        rest: the estimate before the rest, and the samples since
        window: the newest one
    """
    since = rest.since.plus(window)
    statistic = (
        change_statistic(since, rest.known.R, rest.known.solution)
        / rest.noise_before.inflation.max()
    )
    young = since.rows.max() <= _MAX_WINDOWS_AFTER_REST * window.rows.max()
    return rest._replace(since=since) if young else None, _WEIGHT_AFTER_REST * float(statistic)


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


def friction_change(model: DynamicModel, rows: TorqueRows, share: float) -> Array:
    """Standard deviation of the change of each friction coefficient with the payload, (f,) [SI].

    Args:
        share: of Fc + Fv
    """
    of_drive = np.maximum(np.abs(model.friction.coefficients[:2]).sum(axis=0), 1e-3)
    drives = rows.parameters.joints[: rows.friction]
    return np.asarray(share * of_drive[drives])
