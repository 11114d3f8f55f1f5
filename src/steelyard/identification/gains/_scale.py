"""The common scale of all gains, from the controller's own rigid-body model.

Motion alone does not determine the scale: masses and gains may grow together. The controller's
target moment m contains the masses. With gains K that are wrong by a common factor, the true ones
being K e^k, the motor currents i of the empty arm follow

    K_j i_j = e^-k (m_j + Y_j b) + Ia_j a_j + f_j(v_j) + mu_j |m_j| sign(v_j) + noise

Y_j b is the torque of a body at the flange that the controller's model lacks (an adapter), or has
but is not mounted, Ia_j the rotor, f_j + mu_j |m_j| friction that grows with the load. f_j is free:
sign, square root and speed, with different coefficients for each direction and each recording. With
s = e^-k and s b for b all is linear. Unknowns of one joint of one recording (rotor, friction) are
eliminated from its rows (Frisch, Waugh); s and the ten numbers s b stay.

First each recording r has a scale s_r of its own, with one body for all, so that they can disagree.
Rows of joint j have the weight 1 / sigma_rj, found iteratively; the covariance C of s_1, s_2, ...
is widened kappa-fold for the correlation in time of a joint's rows. Their mean by C is s, with a
variance that is widened by

    chi^2 / (R - 1) = (s_r - s)' C^-1 (s_r - s) / (R - 1)      where it exceeds 1 (Birge).

Accelerations are differentiated and noisy: their coefficient would be too small, and that of m,
which contains them too, would compensate (with positions of four decimals filtered at 20 Hz, k of a
simulated arm is 0.9 % too small). The motion is therefore filtered at `SMOOTH_HZ`, where the effect
vanishes.

The controller's masses, and the friction law above, are accurate to `_MODEL_STD`. The tolerance of
published gains is the prior of k: the answer is the mean of both, weighted by their variances. If
the data determine k less well than that (motion without weight or without inertia), or contradict
it, the published scale is kept, and the verdict says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.identification._covariance import widening
from steelyard.identification.gains._drive_gains import DriveGains
from steelyard.recording import Samples
from steelyard.robot import RobotModel
from steelyard.robot._drive import COMMON_GAIN_TOLERANCE
from steelyard.verdict import Doubt, DoubtKind

SMOOTH_HZ = 8.0
"""Cut-off of the filter on the motion, to find the scale, [Hz]."""

_MIN_SPEED = 0.03  # [rad/s]; friction reverses at lower speeds
_MIN_ROWS = 100
_MODEL_STD = 0.005  # relative: castings, cables, and unmodelled friction
_MAX_SIGMA = 3.0  # standard deviations of k before the model counts as a contradiction
_ITERATIONS = 6  # of weights and scales
_RELATIVE_RANK = 1e-10  # smaller eigenvalues, over the largest, count as zero


class _Block(NamedTuple):
    """Rows of one joint of one recording, after elimination of its own unknowns.

    Attributes:
        run: index of the recording
        tau: measured torque, (N,) [Nm]
        columns: the controller's moment, and the regressor of a body at the flange, (N, 11)
        eliminated: number of eliminated columns
    """

    run: int
    tau: Array
    columns: Array
    eliminated: int


def scaled_by_targets(
    gains: DriveGains, robot: RobotModel, measured: Sequence[Samples], targets: Sequence[Samples]
) -> DriveGains:
    """The gains times one factor e^k, so that torques agree with the controller's model.

    Args:
        gains: of the measured torques, from the controller's targets
        robot: kinematics, without coupled drives
        measured: runs of the empty arm, filtered at `SMOOTH_HZ`, torques of currents times the
            gains
        targets: the same runs with the controller's moments as torques
    """
    blocks = [
        block
        for run, (part, other) in enumerate(zip(measured, targets, strict=True))
        if part.tau.shape == other.tau.shape
        for block in _blocks(robot, part, other.tau, run)
    ]
    if blocks:
        k, std, scatter = _scale(blocks, len(measured))
    else:
        k, std, scatter = (0.0, np.inf, np.inf)
    tolerance = COMMON_GAIN_TOLERANCE
    if std > tolerance:
        if std > 1:
            found = "do not determine"
        else:
            found = f"determine to {100 * std:.1f} % only"
        words = f"the runs {found} the scale of the gains, so the published scale is kept"
    elif abs(k) > _MAX_SIGMA * np.hypot(std, tolerance):
        words = (
            f"gains and the controller's model contradict each other by {100 * k:+.0f} %: check"
            " whether the recording is of this arm"
        )
    else:
        k = k / (1 + (std / tolerance) ** 2)
        std = 1 / np.hypot(1 / std, 1 / tolerance)
        if np.isfinite(scatter):
            agree = f" (runs agree to {100 * scatter:.2f} %)"
        else:
            agree = ""
        return _with_scale(gains, k, std, f"by its model{agree}")
    return replace(
        gains, verdict=gains.verdict.doubted(Doubt(DoubtKind.GAINS, words, blocks=False))
    )


def _with_scale(gains: DriveGains, k: float, std: float, how: str) -> DriveGains:
    value = np.exp(k) * gains.value
    scale = f"{100 * k:+.2f} +- {100 * NORMAL_95 * std:.2f} %"
    words = f"{gains.verdict.summary}; all scaled by {scale}, {how}"
    return replace(
        gains,
        value=value,
        std=np.abs(value) * np.hypot(gains.std / np.abs(gains.value), std),
        verdict=replace(gains.verdict, summary=words),
        common=np.full((len(gains), 1), std),
    )


def _blocks(robot: RobotModel, part: Samples, moment: Array, run: int) -> list[_Block]:
    """The rows of a run's joints while they move."""
    body = robot.payload_regressor(part.q, part.v, part.a)
    blocks = []
    for j in range(part.n):
        moving = part.mask[:, j] & (np.abs(part.v[:, j]) >= _MIN_SPEED)
        if moving.sum() < _MIN_ROWS:
            continue
        m = moment[moving, j]
        v = part.v[moving, j]
        friction = [way * np.abs(v) ** power for way in (v > 0, v < 0) for power in (0.0, 0.5, 1.0)]
        own = np.column_stack([part.a[moving, j], np.abs(m) * np.sign(v), *friction])
        rows = np.column_stack([part.tau[moving, j], m, body[moving, j]])
        Q = np.linalg.qr(own / np.maximum(np.linalg.norm(own, axis=0), 1e-300))[0]
        rows = rows - Q @ (Q.T @ rows)
        blocks.append(_Block(run, rows[:, 0], rows[:, 1:], own.shape[1]))
    return blocks


def _scale(blocks: Sequence[_Block], runs: int) -> tuple[float, float, float]:
    """The logarithm k of the scale, its standard deviation, and the scatter between runs."""
    noise = np.ones(len(blocks))
    kappa = np.ones(len(blocks))
    for _ in range(_ITERATIONS):
        A = np.zeros((runs + 10, runs + 10))
        M = np.zeros((runs + 10, runs + 10))
        c = np.zeros(runs + 10)
        for block, sigma, correlated in zip(blocks, noise, kappa, strict=True):
            at = [block.run, *range(runs, runs + 10)]
            square = block.columns.T @ block.columns / sigma**2
            A[np.ix_(at, at)] += square
            M[np.ix_(at, at)] += correlated * square
            c[at] += block.columns.T @ block.tau / sigma**2
        half = _half_inverse(A)
        x = half @ (half.T @ c)
        for i, block in enumerate(blocks):
            residuals = block.tau - block.columns @ x[[block.run, *range(runs, runs + 10)]]
            kappa[i] = widening([residuals])
            noise[i] = np.sqrt(residuals @ residuals / max(len(residuals) - block.eliminated, 1))
    seen = np.diag(A)[:runs] > 0
    C = (half @ (half.T @ M @ half) @ half.T)[:runs, :runs][np.ix_(seen, seen)]
    scales = x[:runs][seen]
    if len(scales) > 1:
        scatter = float(np.std(scales, ddof=1) / abs(scales.mean()))
    else:
        scatter = np.inf
    return *_mean(scales, C), scatter


def _mean(s: Array, C: Array) -> tuple[float, float]:
    """The logarithm k of the mean scale, and its standard deviation, widened by disagreement."""
    half = _half_inverse(C)
    ones = half.T @ np.ones(len(s))
    values = half.T @ s
    information = float(ones @ ones)
    if not information > 0:
        return 0.0, np.inf
    mean = float(ones @ values) / information
    chi_square = float(((values - mean * ones) ** 2).sum()) / max(len(s) - 1, 1)
    if not mean > 0:
        return 0.0, np.inf
    by_data = np.sqrt(max(chi_square, 1.0) / information) / mean
    return -float(np.log(mean)), float(np.hypot(by_data, _MODEL_STD))


def _half_inverse(A: Array) -> Array:
    """H with H H' the inverse of a positive matrix, or its pseudo-inverse."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(A), 1e-300))
    values, vectors = np.linalg.eigh(A * np.outer(scale, scale))
    kept = values > _RELATIVE_RANK * values[-1]
    return np.asarray(scale[:, None] * vectors[:, kept] / np.sqrt(values[kept]))
