"""A covariance that holds when residuals are correlated in time, as those of real arms are.

With weights w_g and noise of covariance Gamma_g in group g (a joint of a recording), the estimate
A^-1 sum_g w_g^2 Y_g'tau_g has the covariance

    C = A^-1 M A^-1,    M = sum_g w_g^4 Y_g' Gamma_g Y_g   (and Z'Z of a prior with rows Z).

Gamma_g is that of a stationary process with the spectrum S, a smoothed periodogram: few numbers,
where a free estimate of M would need as many independent stretches of data as there are unknowns.
With the discrete Fourier transform F of the rows, Y' Gamma Y is the mean of F* S F (stretches are
long beside the memory of the noise, so their ends do not matter).

S is estimated from residuals, whose power is below that of the noise: a fit absorbs part of the
noise, most of it at the low frequencies of the motion. For the fit that is weighted by 1 / S
(generalised least squares, of covariance G) the absorbed part is F G F*, so the spectrum of the
noise is that of the residuals plus F G F*. S, this fit and G are found alternately. (For white
noise this is the usual N - p.)

Where a single number is fitted, the ratio kappa = S(0) / sigma^2 is enough: the sum of N residuals
has the variance N S(0). The fit has removed the slowest part of the noise from its residuals, so
S(0) is extrapolated by an autoregression of all of them,

    x_t = sum_l a_l x_{t-l} + e_t,      S(0) = var(e) / (1 - sum_l a_l)^2

with coefficients from the autocovariances (Yule, Walker) and the order by the Bayesian information
criterion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from steelyard._arrays import Array
from steelyard.identification._least_squares import Solution
from steelyard.identification._problem import Rows

_MIN_NEIGHBOURS = 8  # smallest half-width of the spectral smoothing, in frequency bins
_RELATIVE_BANDWIDTH = 0.15  # half-width of the smoothing over the frequency
_MAX_ITERATIONS = 3  # of spectra and generalised least squares
_MAX_ORDER = 24  # of an autoregression


def correlated_covariance(
    rows: Sequence[Rows],
    solution: Solution,
    *,
    prior: Array | None = None,
    mixing: Array | None = None,
) -> tuple[Array, Array]:
    """Covariance, (m, m), infinite where unknown, and its widening by correlation, (n,).

    Args:
        rows: of each recording, in the order of time, in p columns
        solution: of them all, with one group for each joint of each recording
        prior: rows [Z z] of prior knowledge with unit noise, (r, m + 1)
        mixing: the p combinations of the m unknowns, (p, m); the identity by default
    """
    p = rows[0].Y.shape[2]
    if mixing is None:
        mixed = np.eye(p)
    else:
        mixed = mixing
    if prior is None:
        known = np.zeros((0, mixed.shape[1] + 1))
    else:
        known = prior
    groups = [group for part in rows for group in JointSpectra.of_run(part)]
    spectra = [group.spectrum(mixed @ solution.value, np.zeros((p, p))) for group in groups]
    for _ in range(_MAX_ITERATIONS):
        theta, G = _generalised(groups, spectra, known, mixed)
        spectra = [group.spectrum(theta, G) for group in groups]
    Z = known[:, :-1]
    parts = zip(groups, spectra, solution.weights, strict=True)
    M = mixed.T @ sum(w**4 * group.quadratic(S) for group, S, w in parts) @ mixed + Z.T @ Z
    spread = solution.inverse @ M @ solution.inverse
    spread = (spread + spread.T) / 2
    spread[solution.unknown, solution.unknown] = np.inf
    widening = np.array([S[0] / max(float(np.mean(S)), 1e-300) for S in spectra])
    return np.asarray(spread), widening.reshape(len(rows), -1).mean(axis=0)


def covariance_of_sums(columns: Array, residuals: Array) -> Array:
    """The covariance of sum_t x_t r_t, (k, k), for noise r with the spectrum of residuals.

    It is slightly too small: the part of the noise that a fit has absorbed is not added back.

    Args:
        columns: x, in the order of time, 0 in unusable rows, (N, k)
        residuals: r, the same, (N,)
    """
    size = _fast_fft_length(len(residuals))
    count = int(np.count_nonzero(residuals))
    if not count:
        return np.zeros((columns.shape[1], columns.shape[1]))
    T = np.fft.rfft(residuals, size)
    X = np.fft.rfft(columns, size, axis=0)
    power = _smoothed(np.abs(T) ** 2 / count)
    weighted = X * np.sqrt(power * _one_sided_weights(size, len(T)))[:, None]
    return np.asarray(weighted.real.T @ weighted.real + weighted.imag.T @ weighted.imag)


def _one_sided_weights(size: int, frequencies: int) -> Array:
    """Weight of each frequency of a one-sided transform in a two-sided sum, (frequencies,)."""
    weights = np.full(frequencies, 2.0 / size)
    weights[0] /= 2
    if size % 2 == 0:
        weights[-1] /= 2
    return weights


def _generalised(
    groups: Sequence[JointSpectra], spectra: Sequence[Array], known: Array, mixed: Array
) -> tuple[Array, Array]:
    """Generalised least squares with given spectra: the p parameters and their covariance."""
    A, b = JointSpectra.sums(groups, spectra, len(mixed))
    Z = known[:, :-1]
    z = known[:, -1]
    G = np.linalg.pinv(mixed.T @ A @ mixed + Z.T @ Z, rcond=1e-14, hermitian=True)
    return mixed @ (G @ (mixed.T @ b + Z.T @ z)), mixed @ G @ mixed.T


@dataclass(frozen=True, eq=False)
class JointSpectra:
    """The rows of one joint of one recording as Fourier transforms.

    Attributes:
        F: of the columns that are not zero, (frequencies, columns)
        T: of the torque, (frequencies,)
        columns: indices of these columns
        p: number of all columns
        size: length of the transformed signals
        count: number of usable rows
    """

    F: NDArray[np.complex128]
    T: NDArray[np.complex128]
    columns: NDArray[np.intp]
    p: int
    size: int
    count: int

    @classmethod
    def of(cls, rows: Rows, j: int, p: int) -> JointSpectra:
        """The group of a joint; unusable rows are set to zero.

        Args:
            rows: of a recording
            j: index of the joint
            p: number of columns
        """
        usable = rows.usable[:, j]
        columns = np.flatnonzero(rows.Y[:, j].any(axis=0))
        Y = rows.Y[:, j][:, columns]
        if not usable.all():
            Y = np.where(usable[:, None], Y, 0.0)
        size = _fast_fft_length(len(Y))
        tau = np.where(usable, rows.tau[:, j], 0.0)
        F = np.fft.rfft(Y, size, axis=0)
        T = np.fft.rfft(tau, size)
        return cls(F, T, columns, p, size, int(usable.sum()))

    @classmethod
    def of_run(cls, rows: Rows) -> list[JointSpectra]:
        """The groups of all joints of a recording."""
        n, p = rows.Y.shape[1:]
        return [cls.of(rows, j, p) for j in range(n)]

    @staticmethod
    def sums(
        groups: Sequence[JointSpectra], spectra: Sequence[Array], p: int
    ) -> tuple[Array, Array]:
        """Inner products of rows weighted by one over spectra, (p, p), and with the torques, (p,).

        Args:
            groups: rows of p columns
            spectra: of their noise
            p: number of columns
        """
        A = np.zeros((p, p))
        b = np.zeros(p)
        for group, S in zip(groups, spectra, strict=True):
            inverse = 1.0 / np.maximum(S, 1e-12 * S.max(initial=1e-300) + 1e-300)
            A += group.quadratic(inverse)
            b[group.columns] += group.product(inverse)
        return A, b

    def quadratic(self, S: Array) -> Array:
        """The mean of F* S F, (p, p).

        Args:
            S: weight of each frequency, (frequencies,)
        """
        weighted = self.F * np.sqrt(S * _one_sided_weights(self.size, len(S)))[:, None]
        out = np.zeros((self.p, self.p))
        out[np.ix_(self.columns, self.columns)] = (
            weighted.real.T @ weighted.real + weighted.imag.T @ weighted.imag
        )
        return out

    def product(self, S: Array) -> Array:
        """The mean of F* S T, (columns,).

        Args:
            S: weight of each frequency, (frequencies,)
        """
        return np.asarray(
            (self.F.conj() * (S * _one_sided_weights(self.size, len(S)) * self.T)[:, None])
            .sum(axis=0)
            .real
        )

    def spectrum(self, theta: Array, G: Array) -> Array:
        """The spectrum of the noise: residuals plus what a fit has absorbed, (frequencies,).

        Args:
            theta: the parameters of the fit, (p,)
            G: their covariance, (p, p)
        """
        if self.count == 0:
            return np.zeros(len(self.T))
        own_covariance = G[np.ix_(self.columns, self.columns)]
        absorbed = sum(
            np.einsum("fa,fa->f", X @ own_covariance, X) for X in (self.F.real, self.F.imag)
        )
        power = np.abs(self.T - self.F @ theta[self.columns]) ** 2 + np.maximum(absorbed, 0.0)
        return _smoothed(power / self.count)


def _smoothed(power: Array) -> Array:
    """The mean over neighbouring frequencies, more of them at high ones, (frequencies,)."""
    last = len(power) - 1
    k = np.arange(last + 1)
    half = np.minimum(np.maximum(_MIN_NEIGHBOURS, (_RELATIVE_BANDWIDTH * k).astype(int)), last)
    mirrored = np.concatenate([power[:0:-1], power, power[-2::-1]])
    total = np.concatenate([[0.0], np.cumsum(mirrored)])
    centre = last + k
    return np.asarray((total[centre + half + 1] - total[centre - half]) / (2 * half + 1))


@cache
def _fast_fft_length(count: int) -> int:
    """The smallest length of at least `count` with prime factors 2, 3 and 5 only, for the FFT."""
    odd: list[int] = [3**i * 5**j for i in range(20) for j in range(14) if 3**i * 5**j < 2 * count]
    return min(k << max(0, (-(-count // k) - 1).bit_length()) for k in odd)


def widening(residuals: Sequence[Array]) -> float:
    """The ratio kappa by which correlation in time widens the variance of a joint's residuals.

    It is at least 1.

    Args:
        residuals: of one or many recordings, each in the order of time, (N,)
    """
    N = sum(len(part) for part in residuals)
    gamma = np.sum([_autocovariance(part) for part in residuals], axis=0) / max(N, 1)
    best = 1.0
    lowest = np.inf
    a = np.zeros(0)
    variance = float(gamma[0])
    for order in range(min(_MAX_ORDER, N // 10) + 1):
        if order:  # Levinson, Durbin
            last = float(gamma[order] - a @ gamma[order - 1 : 0 : -1]) / variance
            a = np.append(a - last * a[::-1], last)
            variance = variance * (1 - last**2)
        if not variance > 0:
            break
        score = N * np.log(variance) + order * np.log(N)
        if score < lowest:
            best = variance / (1 - float(a.sum())) ** 2 / float(gamma[0])
            lowest = score
    return max(best, 1.0)


def _autocovariance(x: Array) -> Array:
    """The sums of products of a signal with itself, 0 to `_MAX_ORDER` rows apart."""
    centred = np.concatenate([x - x.mean(), np.zeros(_MAX_ORDER)])
    return np.array(
        [centred[: len(x)] @ centred[lag : lag + len(x)] for lag in range(_MAX_ORDER + 1)]
    )
