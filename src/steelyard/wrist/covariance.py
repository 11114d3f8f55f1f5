"""The covariance of an estimate from its scores, correlated in time.

An estimate theta that makes a sum of scores s_k(theta) zero has the covariance H^-1 V H^-1, H the slope of
that sum and V the covariance of the sum at the truth: V = sum over lags of the scores' autocovariance, not
N times their variance. Errors of a low-passed wrench are correlated over its window (V larger), those of a
twice differentiated encoder are anti-correlated (V smaller); both are found in the scores themselves. The
lags are weighted by Parzen's window, whose length follows from the scores' own persistence (Andrews 1991,
AR(1)).
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from steelyard.arrays import Array


def sandwich(slope: Array, scores: Array, prior_information: Array) -> Array:
    """The covariance of an estimate, (p, p).

    Args:
        slope: H of the rows alone, (p, p)
        scores: of each sample at the estimate, (N, p)
        prior_information: of what was known before, (p, p)
    """
    inverse = np.linalg.inv(slope + prior_information)
    N, p = scores.shape
    V = long_run_sum(scores) * (N / max(N - p / 6, 1))
    half = inverse @ (V + prior_information) @ inverse.T
    return np.asarray((half + half.T) / 2)


def long_run_sum(scores: Array) -> Array:
    """The covariance of the sum of a series that is correlated in time, (p, p).

    Args:
        scores: (N, p), with mean near zero
    """
    N = len(scores)
    centred = scores - scores.mean(axis=0)
    lags = min(_window(centred), N - 1)
    size = 2 ** int(np.ceil(np.log2(N + lags + 1)))
    spectrum = np.fft.rfft(centred, size, axis=0)
    frequencies = len(spectrum)
    k = np.arange(lags + 1) / (lags + 1)
    parzen = np.where(k <= 0.5, 1 - 6 * k**2 + 6 * k**3, 2 * (1 - k) ** 3)
    taper = np.zeros(size)
    taper[: lags + 1] = parzen
    taper[size - lags :] = parzen[1:][::-1]
    weight = np.fft.rfft(taper).real
    both = np.full(frequencies, 2.0)
    both[0] = both[-1] = 1.0
    V = ((spectrum.conj() * (weight * both)[:, None]).T @ spectrum).real / size
    b = lags / N
    made_up = (stdtrit(3.71 / b, 0.975) / 1.96) ** 2 / (1 - 0.75 * b) if lags else 1.0
    return np.asarray((V + V.T) / 2 * made_up)


def _window(centred: Array) -> int:
    """Lags that count, from the persistence of each column."""
    N = len(centred)
    power = (centred**2).sum(axis=0)
    alive = power > 0
    if not alive.any():
        return 1
    rho = (centred[1:] * centred[:-1]).sum(axis=0)[alive] / power[alive]
    rho = np.clip(rho, -0.97, 0.97)
    alpha = np.mean(4 * rho**2 / (1 - rho) ** 8) / np.mean(1 / (1 - rho) ** 4)
    return int(min(max(2.6614 * (alpha * N) ** 0.2, 1.5 * N ** (1 / 3)), N // 4))
