"""How high a level must be so that noise crosses it only once in a long time: the tail of its peaks.

Peaks are the maxima of clusters: stretches above a high quantile u, closer to each other than `gap_s` being
one. Above u the peaks z of filtered noise follow a Weibull tail (extreme-value theory; de Haan and Ferreira
2006, Girard 2004)

    P(peak > z) = exp(-(z^k - u^k) / b),      1 <= k <= 2

k = 2 for Gaussian noise, k = 1 for an exponential tail; k is the more likely one on a grid, b the mean of
z^k - u^k, widened to its upper 95 % limit for few peaks. With c clusters for each hour the level that is
crossed `rate` times for each hour is

    z = (u^k + b log(c / rate))^(1/k)

A contact in a motion that is said to be free shows as a peak that this tail cannot have. The tail is then
judged without trusting the peaks themselves: exponential (the heavy end), with b from their median.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.arrays import Array

_QUANTILE = 0.9
_EXPONENTS = (1.0, 1.25, 1.5, 1.75, 2.0)
_FEWEST_PEAKS = 8
_UPPER_95 = 1.645
_ABOVE_LARGEST = 1.1
_HOUR_S = 3600.0


@dataclass(frozen=True)
class Tail:
    """The tail of the peaks of one signal.

    Attributes:
        start: u, above which it holds
        exponent: k
        scale: b, with its uncertainty in it
        clusters_per_hour: how often the signal goes above u, [1/h]
        peaks: how many it was fitted to; 0 when it is that of Gaussian noise of standard deviation 1
        largest: of the peaks
    """

    start: float
    exponent: float
    scale: float
    clusters_per_hour: float
    peaks: int
    largest: float

    def level(self, crossings_per_hour: float) -> float:
        """The level that is crossed so often, at least a little above the largest peak.

        Args:
            crossings_per_hour: [1/h]
        """
        ratio = max(self.clusters_per_hour / crossings_per_hour, 1.0)
        power = self.start**self.exponent + self.scale * np.log(ratio)
        return float(max(power ** (1 / self.exponent), _ABOVE_LARGEST * self.largest))


def cluster_peaks(z: Array, t: Array, start: float, gap_s: float) -> tuple[Array, Array]:
    """The maxima of the stretches above a level, and their times.

    Args:
        z: signal, (N,)
        t: time, (N,) [s]
        start: the level
        gap_s: stretches closer than this are one, [s]
    """
    over = np.flatnonzero(z > start)
    if not over.size:
        return np.zeros(0), np.zeros(0)
    stretches = np.split(over, np.flatnonzero(np.diff(t[over]) > gap_s) + 1)
    at = np.array([stretch[z[stretch].argmax()] for stretch in stretches])
    return z[at], t[at]


def fit_tail(z: Array, t: Array, gap_s: float) -> Tail:
    """The tail of a signal; that of Gaussian noise of standard deviation 1 where it has too few peaks.

    Args:
        z: signal, not negative, in standard deviations, (N,)
        t: time, (N,) [s]
        gap_s: stretches closer than this are one, [s]
    """
    u = float(np.quantile(z, _QUANTILE))
    peaks, _ = cluster_peaks(z, t, u, gap_s)
    hours = max(t[-1] - t[0], gap_s) / _HOUR_S
    if len(peaks) < _FEWEST_PEAKS:
        return Tail(0.0, 2.0, 2.0, _HOUR_S / gap_s, 0, float(peaks.max(initial=0.0)))
    likely = max(_EXPONENTS, key=lambda k: _log_likelihood(peaks, u, k))
    scale = float(np.mean(peaks**likely - u**likely)) * (1 + _UPPER_95 / np.sqrt(len(peaks)))
    return Tail(u, likely, scale, len(peaks) / hours, len(peaks), float(peaks.max()))


def _log_likelihood(peaks: Array, u: float, k: float) -> float:
    y = peaks**k - u**k
    return float(np.sum(np.log(k * peaks ** (k - 1))) - len(peaks) * np.log(y.mean()))
