"""Restricted total least squares from lifted rows, in square-root form, with a calibrated interval.

A solution near theta = (phi, drift, U, V, trend) uses the derivative G of the lifted numbers there
(`sums`): A_i = sqrt(W_i) R_i [G, wrench - constant]. Rests are rows of the same kind, each a mean
with its variance and what differs from posture to posture.

**The smallest ratio.** With A the triangle of all A_i (and of postures and prior), v = (theta, -1),
and P the covariance that noise of motion and wrench adds to A'A, the smallest

    |A v|^2 / v'Pv,      P = F F'

has v = A^-1 u, u the right singular vector of the largest singular value of F' A^-1. A'A is never
formed. P follows from the sum of the features' covariances, by a constant tensor. The scores' slope
is H = A'A - mu P; where noise makes more than half of A'A in some direction, nothing is said about
it.

**How noisy.** The variance of an axis is that of its residuals, but at least the sensor's own (as
`WrenchRegression.calibrated_covariance`). Residuals are correlated in time; what counts is the
variance of their sum, the long-run variance f times their own: by Parzen's window as in the batch,
but at least that of an AR(1) process, because a window over few blocks sees too little, and a fit
absorbs what is slow. The correlation rho of neighbouring blocks comes out too small by (1 + 3 rho +
p_i) / K, p_i the unknowns that the axis determines; that is added back, and the quantile is
Student's with K - p_i. Then

    cov theta = H^-1 (A'A + sum_i (f_i - 1) A_i'A_i) H^-1 + b b'.

Residuals may also be errors of the acceleration that no rest shows (a unit that is turned a little,
a late clock); then the mass is too small, as in every regression with errors in its columns. If all
residuals of the force were m times such errors, theta would be off by H^-1 P' theta, P' their part
of A'A. The truth lies between nothing and that, evenly: b is the root mean square, 1 / sqrt(3) of
it, and the same for torques and angular accelerations. While gravity hardly turns at the sensor,
this is most of the interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.special import stdtrit

from steelyard._arrays import Array, Indices, Mask
from steelyard._kinds import Shape
from steelyard._units import NORMAL_95
from steelyard.inertia import INERTIA
from steelyard.wrist._checks import CAUSE_STD, CauseColumn, ForceScales
from steelyard.wrist._regression import long_run_sum
from steelyard.wrist._regressor import BaseGravity, wrench_tensor
from steelyard.wrist._rest import Postures
from steelyard.wrist.tracking._sums import (
    LOAD,
    TILT,
    UNKNOWNS,
    Sums,
    lifted_numbers,
    lifted_rows,
    load_numbers,
    weight_numbers,
)

FEWEST_BLOCKS = 6
"""Fewer blocks of samples in motion are too few to estimate the correlation of residuals."""

_PRIOR_STD = np.array([1e4] * 16 + [np.radians(10.0)] * 2 + [1e4] * 6)  # the base is nearly level
_UNKNOWN_STD_SHARE = 1e-3  # a number is unknown above this share of the prior's deviation
_MAX_MOTION_NOISE = 1.25  # residuals up to this many times the noise of the motion are its own
_MAX_NOISE_SHARE = 0.5  # of the curvature in a direction that is still used
_MAX_HIDDEN_SHARE = 0.1  # of a number's variance from unused directions; above, it is unknown
_MIN_CHANGE = 1e-9  # of a round, in standard deviations of the prior
_MAX_CORRELATION = 0.9  # of neighbouring blocks
_CAUSE_ROUNDS = 3  # of the noise without causes
_LARGEST_ERROR = 100.0  # of an acceleration, [m/s^2, rad/s^2]


@dataclass(frozen=True, eq=False)
class WrenchSolution:
    """The solution after some samples.

    Attributes:
        value: of the 24 unknowns, (24,)
        covariance: of them, (24, 24); that of the prior where they are unknown, zero where taken
            as known
        unknown: which of the 24 are unknown, (24,)
        variance: of a sample's wrench about the model, (6,)
        long_run: variance of the sum of the residuals of many samples over their number, (6,)
        extra: variance of a posture's force and torque beyond its own, (2,)
    """

    value: Annotated[Array, Shape(UNKNOWNS)]
    covariance: Annotated[Array, Shape(UNKNOWNS, UNKNOWNS)]
    unknown: Annotated[Mask, Shape(UNKNOWNS)]
    variance: Annotated[Array, Shape(6)]
    long_run: Annotated[Array, Shape(6)]
    extra: Annotated[Array, Shape(2)]

    def with_mass_std(self, std: float) -> WrenchSolution:
        """The solution with a further error of the mass.

        Args:
            std: standard deviation of the error, [kg]
        """
        covariance = self.covariance.copy()
        covariance[0, 0] += std**2
        return replace(self, covariance=covariance)


@dataclass(frozen=True, eq=False)
class WristProblem:
    """The measurements of one load, and how they are solved.

    Attributes:
        sums: of the samples in motion
        postures: means of rests
        prior: rows [L, L value] of what is known from before, (k, 25)
        gravity: where things fall without a tilt
        noise: standard deviation of a sample's wrench from the sensor's own noise, (6,) [N, Nm]
        free: which of the 24 are unknown
        fewest_blocks: with fewer of them, samples in motion do not count yet
    """

    sums: Sums
    postures: Postures
    prior: Array
    gravity: BaseGravity
    noise: Array
    free: Indices
    fewest_blocks: int = FEWEST_BLOCKS

    def solved(
        self, start: WrenchSolution | None = None, rounds: int = 8, *, estimate_noise: bool = True
    ) -> WrenchSolution:
        """The solution: value, weights and tilt found alternately.

        Args:
            start: where to begin; at zero by default
            rounds: at most
            estimate_noise: estimate the long-run variance again, do not take that of the start
        """
        if start is None:
            value = np.zeros(UNKNOWNS)
        else:
            value = start.value.copy()
        value[np.setdiff1d(np.arange(UNKNOWNS), self.free)] = 0.0
        variance = self.noise**2
        extra = np.zeros(2)
        if start is not None:
            variance = start.variance
            extra = start.extra
        pieces = _Pieces.of(self, moving=len(self.sums.blocks) >= self.fewest_blocks)
        for k in range(rounds):
            there = _Linear.of(pieces, value, variance, extra)
            change = np.abs(there.value - value) @ (1 / _PRIOR_STD)
            value = there.value
            variance, extra = there.calibrated(value)
            if k > 1 and change < _MIN_CHANGE:
                break
        if start is not None and not estimate_noise:
            long_run = start.long_run
        else:
            long_run = None
        return there.solution(value, variance, extra, long_run)

    def weight_cause(self, known: WrenchSolution) -> CauseColumn:
        """The relative difference of weight and inertia (see `_checks`), from the motion alone.

        Args:
            known: the solution
        """
        weight = weight_numbers(self.gravity, known.value)
        value, covariance = self._causes(known, weight[:, :, None])
        return CauseColumn(float(value[0]), float(np.sqrt(covariance[0, 0])))

    def force_scales(self, known: WrenchSolution) -> ForceScales:
        """The scales of the forces of the sensor (see `_checks`), from the motion alone.

        Args:
            known: the solution
        """
        load = load_numbers(self.gravity, known.value)
        return ForceScales(*self._causes(known, load[:, :, None] * np.eye(6, 3)[:, None, :]))

    def _causes(self, known: WrenchSolution, numbers: Array) -> tuple[Array, Array]:
        """The factors of further wrenches, (c,), and their covariance, (c, c).

        Args:
            known: the solution
            numbers: lifted numbers of these wrenches, (6, 20, c)
        """
        L, G = lifted_numbers(self.gravity, known.value)
        unknowns = np.concatenate([G[:, :, self.free], numbers], axis=2)

        def with_residuals(rows: Array) -> Array:
            """Columns of all unknowns and residuals of some lifted rows, (6, k, p + c + 1)."""
            left = rows[:, :, -1:] - rows[:, :, :-1] @ L[:, :, None]
            return np.concatenate([rows[:, :, :-1] @ unknowns, left], axis=2)

        columns = with_residuals(self.sums.triangles)
        of_blocks = with_residuals(self.sums.blocks.transpose(1, 0, 2))
        p = len(self.free)
        width = unknowns.shape[2]
        std = np.append(_PRIOR_STD[self.free], np.full(width - p, CAUSE_STD))
        prior = np.eye(width, width + 1) / std[:, None]
        noise = known.long_run
        for _ in range(_CAUSE_ROUNDS):  # causes are no part of the residuals' noise
            weighted = columns / np.sqrt(noise)[:, None, None]
            stacked = np.concatenate([weighted.reshape(-1, width + 1), prior])
            triangle = np.asarray(np.linalg.qr(stacked, mode="r"))
            found = np.append(np.linalg.solve(triangle[:-1, :-1], triangle[:-1, -1]), -1.0)
            noise = np.maximum(
                _share_left(columns, found) * known.variance,
                _share_left(of_blocks, found) * known.long_run,
            )
        inverse = np.linalg.inv(triangle[p:-1, p:-1])
        return found[p:-1], inverse @ inverse.T


class _Pieces(NamedTuple):
    """The parts that stay the same from round to round."""

    problem: WristProblem
    samples: int  # in motion
    triangles: Array  # (6, 21, 21)
    by_motion: Array  # what noise of the motion adds to Y'Y, for each axis, (6, 10, 10)
    rests: Array  # lifted rows of the postures, (6, n, 21)
    within: Array  # variances of their means, judged from the scatter in all of them, (n, 6)
    blocks: Array  # (K, 6, 21)

    @classmethod
    def of(cls, problem: WristProblem, *, moving: bool) -> _Pieces:
        postures = problem.postures
        if moving:
            sums = problem.sums
        else:
            sums = Sums.nothing()
        n = len(postures)
        T = wrench_tensor().transpose(1, 0, 2)
        still = np.zeros((n, 9))
        exact = np.zeros((n, 3, 3))
        R = postures.R_base_sensor
        g = problem.gravity.nominal
        rests = lifted_rows(postures.t, postures.wrench, R, still, g, exact)
        by_motion = T.transpose(0, 2, 1) @ sums.features @ T
        windows = postures.rows[:, None]
        scatter = (postures.variance * windows * (windows - 1)).sum(axis=0) / max(
            (windows - 1).sum(), 1
        )
        return cls(
            problem, sums.rows, sums.triangles, by_motion, rests, scatter / windows, sums.blocks
        )


@dataclass(frozen=True, eq=False)
class _Linear:
    """The problem near one value: a triangle, its noise, and the solution of least ratio."""

    pieces: _Pieces
    variance: Array  # of an axis, (6,)
    within: Array  # variance of the postures, extra included, (n, 6)
    extra: Array
    moving: Array  # rows of the samples, unweighted, (6, 21, p + 1)
    resting: Array  # rows of the postures, unweighted, (6, n, p + 1)
    triangle: Array  # of the unknowns, (p, p)
    A: Array  # its inverse, (p, p)
    value: Array  # (24,)
    noise_share: Array  # of the noise in A'A, in ten directions, (10,)
    noise_way: Array  # which these are, (p, 10)
    mu: float

    @classmethod
    def of(cls, pieces: _Pieces, value: Array, variance: Array, extra: Array) -> _Linear:
        free = pieces.problem.free
        problem = pieces.problem
        p = len(free)
        L, G = lifted_numbers(pieces.problem.gravity, value)
        constant = L - (G[:, :, free] @ value[free])
        moving, resting = (
            np.concatenate(
                [Z[:, :, :-1] @ G[:, :, free], Z[:, :, -1:] - Z[:, :, :-1] @ constant[:, :, None]],
                axis=2,
            )
            for Z in (pieces.triangles, pieces.rests)
        )
        within = pieces.within + np.repeat(extra, 3) + 1e-24
        W = 1 / variance
        weight = 1 / np.sqrt(within)
        known = problem.prior[:, [*free, UNKNOWNS]]
        stacked = [
            (np.sqrt(W)[:, None, None] * moving).reshape(-1, p + 1),
            (weight.T[:, :, None] * resting).reshape(-1, p + 1),
            np.eye(p, p + 1) / _PRIOR_STD[free, None],
            known,
        ]
        triangle = np.asarray(np.linalg.qr(np.concatenate(stacked), mode="r"))
        inverse = np.triu(dtrtri(triangle[:p, :p])[0])
        P = np.tensordot(W, pieces.by_motion, axes=1)
        half = np.zeros((p, 10))
        half[LOAD] = _root(P)
        _, share, way = np.linalg.svd(half.T @ inverse, full_matrices=False)
        share = share**2
        way = way.T
        of_wrench = max(pieces.samples * 6.0 - float(value[LOAD] @ P @ value[LOAD]), pieces.samples)
        of_wrench += weight.size + len(known) + 1.0
        if share[0] <= _MAX_NOISE_SHARE:
            theta, mu = _smallest_ratio(triangle, inverse, half, of_wrench)
        else:  # corrected least squares, without the directions that noise hides
            theta = inverse @ _relieved(triangle[:p, p], share, way, 1.0)
            mu = 1.0
        full = np.zeros(UNKNOWNS)
        full[free] = theta
        return cls(
            pieces,
            variance,
            within,
            extra,
            moving,
            resting,
            triangle[:p, :p],
            inverse,
            full,
            share,
            way,
            mu,
        )

    def calibrated(self, value: Array) -> tuple[Array, Array]:
        """Variance of the residuals of each axis, (6,), and between postures, (2,)."""
        noise = self.pieces.problem.noise**2
        pieces = self.pieces
        variance = noise
        extra = self.extra
        v = np.append(value[pieces.problem.free], -1.0)
        if pieces.samples:
            squares = self.squares(v)
            motion = (
                np.einsum("a,iab,b->i", value[LOAD], pieces.by_motion, value[LOAD]) / pieces.samples
            )
            beyond = squares > noise + _MAX_MOTION_NOISE * motion
            variance = np.where(beyond, np.maximum(squares - motion, noise), noise) + motion
        if self.within.size:
            left = ((self.resting @ v) ** 2 - pieces.within.T).reshape(2, -1)
            extra = np.maximum(left.sum(axis=1) / self.rest_freedom(), 0.0)
        return variance, extra

    @cached_property
    def used(self) -> Array:
        """How many unknowns the samples of each axis determine, (6,)."""
        rows = self.moving[:, :, :-1]
        return np.asarray(((rows @ self.A) ** 2).sum(axis=(1, 2)) / self.variance)

    def squares(self, v: Array) -> Array:
        """Mean squared residual of each axis, corrected for the fitted numbers, (6,)."""
        freedom = np.maximum(self.pieces.samples - self.used, 1.0)
        return np.asarray(((self.moving @ v) ** 2).sum(axis=1) / freedom)

    def rest_freedom(self) -> Array:
        """Degrees of freedom of the postures, of force and torque, (2,), above zero."""
        rows = self.resting[:, :, :-1] / np.sqrt(self.within).T[:, :, None]
        used = ((rows @ self.A) ** 2).sum(axis=(1, 2)).reshape(2, 3).sum(axis=1)
        return np.asarray(np.maximum(3 * len(self.within) - used, 0.3))

    def solution(
        self, value: Array, variance: Array, extra: Array, known_long_run: Array | None
    ) -> WrenchSolution:
        """The value with its covariance, and the variances that its residuals show.

        Args:
            variance: of each axis, (6,)
            extra: of postures beyond their own, (2,)
            known_long_run: long-run variance, (6,); None to estimate it
        """
        free = self.pieces.problem.free
        pieces = self.pieces
        A = self.A
        C = A @ A.T
        long_run = variance
        halves = [self.triangle]
        if pieces.samples:
            if known_long_run is None:
                known_long_run = self._long_run(value)
            long_run = np.maximum(known_long_run, variance)
            wider = np.sqrt(np.maximum(long_run / self.variance, 1.0) - 1) / np.sqrt(self.variance)
            halves.append((self.moving[:, :, :-1] * wider[:, None, None]).reshape(-1, len(free)))
        if self.within.size:
            wider = np.sqrt((stdtrit(self.rest_freedom(), 0.975) / NORMAL_95) ** 2 - 1)
            weight = np.repeat(wider, 3)[:, None] / np.sqrt(self.within.T)
            halves.append((self.resting[:, :, :-1] * weight[:, :, None]).reshape(-1, len(free)))
        H = A @ _relieved(A.T, self.noise_share, self.noise_way, self.mu)
        half = H @ np.hstack([np.concatenate(halves).T, self._bias_by_motion(value, variance)])
        covariance = half @ half.T
        hidden = (A @ self.noise_way[:, self.noise_share > _MAX_NOISE_SHARE]) ** 2
        unknown = np.sqrt(np.diag(C)) > _UNKNOWN_STD_SHARE * _PRIOR_STD[free]
        unknown |= hidden.sum(axis=1) > _MAX_HIDDEN_SHARE * np.diag(C)
        whole = np.zeros((UNKNOWNS, UNKNOWNS))
        mask = np.zeros(UNKNOWNS, bool)
        whole[np.ix_(free, free)] = covariance
        mask[free] = unknown
        mask[TILT] = False
        return WrenchSolution(value, whole, mask, variance, long_run, extra)

    def _bias_by_motion(self, value: Array, variance: Array) -> Array:
        """Bias of A'A theta if all residuals came from linear or angular acceleration, (p, 2)."""
        T = wrench_tensor()
        count = self.pieces.samples
        mass = value[LOAD][0]
        inertia = value[LOAD][INERTIA]
        size = np.array([mass, np.linalg.norm(inertia) / np.sqrt(2)])
        worst = np.minimum(
            variance.reshape(2, 3).mean(axis=1) / np.maximum(size**2, 1e-300), _LARGEST_ERROR**2
        )
        out = np.zeros((len(self.A), 2))
        for k, which in enumerate((slice(0, 3), slice(3, 6))):
            slope = T[which] @ value[LOAD]
            noise = np.einsum("lia,i,li->a", T[which], 1 / self.variance, slope)
            out[LOAD, k] = count * worst[k] * noise / np.sqrt(3.0)
        return out

    def _long_run(self, value: Array) -> Array:
        """Variance of the summed residuals over their number, (6,), wider for few blocks."""
        blocks = self.pieces.blocks
        L, _ = lifted_numbers(self.pieces.problem.gravity, value)
        r = blocks[:, :, -1] - (blocks[:, :, :-1] * L).sum(axis=2)
        return _variance_of_sum(r, self.used) / self.pieces.samples


def _variance_of_sum(r: Array, used: Array) -> Array:
    """Variance of the sum of correlated residuals, (6,), wider for few of them.

    Args:
        r: summed in blocks, (K, 6)
        used: how many unknowns were fitted, (6,)
    """
    K = len(r)
    power = (r**2).sum(axis=0) + 1e-300
    used = np.minimum(used, K - 1.0)
    rho = (r[1:] * r[:-1]).sum(axis=0) / power
    rho = np.clip(rho + (1 + 3 * rho + used) / K, 0.0, _MAX_CORRELATION)
    whole = np.maximum(np.diag(long_run_sum(r)), power * (1 + rho) / (1 - rho))
    wider = K / (K - used) * (stdtrit(K - used, 0.975) / NORMAL_95) ** 2
    return np.asarray(whole * wider)


def _smallest_ratio(
    triangle: Array, inverse: Array, half: Array, of_wrench: float
) -> tuple[Array, float]:
    """The theta of the v = (theta, -1) with the smallest |A v|^2 / v'Pv, (p,), and that ratio.

    Args:
        triangle: A, (p + 1, p + 1)
        inverse: of its first p rows and columns, (p, p)
        half: F of P = F F' for the unknowns, (p, 10)
        of_wrench: the last entry of P
    """
    p = len(inverse)
    last = max(abs(triangle[p, p]), 1e-12 * abs(triangle[:p, p]).max(initial=1e-12))
    z = inverse @ triangle[:p, p]
    B = np.zeros((11, p + 1))
    B[:10, :p] = half.T @ inverse
    B[:10, p] = -(half.T @ z) / last
    B[10, p] = np.sqrt(of_wrench) / last
    _, s, Vt = np.linalg.svd(B, full_matrices=False)
    u = Vt[0]
    # v = A^-1 u: its last entry is u[p] / last
    theta = z - inverse @ u[:p] * (last / u[p])
    return np.asarray(theta), float(1 / s[0] ** 2)


def _share_left(columns: Array, found: Array) -> Array:
    """The share of the residuals' mean square on each axis that is left by a solution, (6,).

    Args:
        columns: of all unknowns, and the residuals, (6, k, p + 1)
        found: the unknowns, and -1, (p + 1,)
    """
    before = (columns[:, :, -1] ** 2).sum(axis=1)
    after = ((columns @ found) ** 2).sum(axis=1)
    return np.asarray(np.clip(after / np.maximum(before, 1e-300), 1e-12, 1.0))


def _relieved(x: Array, share: Array, way: Array, mu: float) -> Array:
    """(1 - mu E)^-1 x, E the share of noise in some directions, no more than is believed."""
    E = mu * np.minimum(share, _MAX_NOISE_SHARE)
    return np.asarray(x + (way * (E / (1 - E))) @ (way.T @ x))


def _root(P: Array) -> Array:
    values, vectors = np.linalg.eigh(P)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
