"""Has the payload changed? A test of the innovations of a short window.

With residuals e = tau - H x of a window, x from before it, a change delta of the payload's mass and first
moment would show as e = W delta + noise, W the first four payload columns. Its score g = W'e (rows over
their noise) has, without a change, the covariance

    V = W'W + (W'H) R^-1 R^-T (W'H)'                         (noise, and what was not known of x)

so that g' V^-1 g is chi-square with four degrees of freedom. It is divided by the inflation of the
residuals, because the model is not perfect. While much less was known before than the window itself tells,
there is nothing to compare with, and no change. The default threshold of 60 is one in 10^11 windows of
white noise: what is kept for what nobody has thought of.

A drive that creeps for a while looks like another payload: at rest its friction is anything between -F and
F (standard deviation F / sqrt(3)), and just above, no law is right. Residuals of simulated and real arms fall
as 1/v there, so friction of a drive at speed v > v_0 (`lowest_speed`, below which rows do not count) is taken
as unknown by

    c(v) = F / sqrt(3) v_0 / |v|,    F = |Fc| + |Fv| v_0^alpha + |Fs|    (the friction at v_0)

through the whole window, but by another factor forwards than backwards: V grows by sum (W'c)(W'c)' over
drives and directions.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from steelyard.arrays import Array
from steelyard.torque.online.state import Window

_MOST_DOUBT = 100.0  # what was not known before, over what the window tells, in variance


def change_statistic(window: Window, R: Array, x: Array) -> float:
    """How much a window speaks for another payload, chi-square with four degrees of freedom if it does not.

    Args:
        window: of samples
        R: factor before the window, (m + 1, m + 1)
        x: unknowns before the window, (m,)
    """
    seen = window.payload[:, :-1]
    g = window.payload[:, -1] - seen @ x
    half = lapack.dtrtrs(R[:-1, :-1], seen.T, trans=1)[0]
    doubt = half.T @ half
    if (np.diag(doubt) > _MOST_DOUBT * np.diag(seen)).any():
        return 0.0
    V = seen[:, :4] + doubt + window.friction @ window.friction.T
    scale = np.sqrt(np.maximum(np.diag(V), 1e-300))
    V = V / np.outer(scale, scale) + 1e-9 * np.eye(4)
    g = g / scale
    return float(g @ np.linalg.solve(V, g))
