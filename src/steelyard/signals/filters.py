"""Filters on whole recordings: they see the future, so none of them delays.

A filter F that is linear and the same for every column turns tau = Y phi + noise into
F tau = F Y phi + F noise. F Y is Y of the filtered motion where Y changes smoothly, as that of links does,
but not where friction jumps with the sign of the velocity: a torque that is filtered strongly while the
regressor is not shows a friction that is too small. So motion may be filtered as long as it is slower than
the cut-off, torques only where that jump does not matter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import interpolate, signal

from steelyard.arrays import Array
from steelyard.errors import InvalidSamples


def resample(t: ArrayLike, x: ArrayLike, t_new: ArrayLike, *, smooth: bool = True) -> Array:
    """The signal at other times, (M, n): by a cubic spline, or by straight lines for noisy signals.

    Args:
        t: times, strictly increasing, (N,) [s]
        x: signal, (N, n)
        t_new: times wanted, inside those of t, (M,) [s]
        smooth: a cubic spline (positions) instead of straight lines (torques)
    """
    old, new = np.asarray(t, dtype=float), np.asarray(t_new, dtype=float)
    degree = 3 if smooth and len(old) > 3 else 1
    if len(old) < 2:
        raise InvalidSamples("a signal of one row cannot be resampled")
    return np.asarray(interpolate.make_interp_spline(old, np.asarray(x, dtype=float), k=degree)(new))


def butterworth(cutoff_hz: float, rate_hz: float, order: int) -> Array:
    """The sections of a low-pass Butterworth filter, (sections, 6).

    Args:
        cutoff_hz: where it passes half the power, [Hz]
        rate_hz: samples for each second, [Hz]
        order: of the filter
    """
    if not 0 < cutoff_hz < rate_hz / 2:
        raise InvalidSamples(
            f"the cut-off must lie between 0 and half the rate, {rate_hz / 2:g} Hz; got {cutoff_hz:g} Hz"
        )
    return np.asarray(signal.butter(order, cutoff_hz, fs=rate_hz, output="sos"))


def low_pass(x: ArrayLike, cutoff_hz: float, rate_hz: float, *, order: int = 4) -> Array:
    """The signal without what is faster than the cut-off, and without delay, (N, n).

    A Butterworth filter, once forwards and once backwards: at the cut-off a quarter of the power passes.

    Args:
        x: signal, (N, n)
        cutoff_hz: [Hz]
        rate_hz: samples for each second, [Hz]
        order: of the filter
    """
    rows = np.asarray(x, dtype=float)
    sections = butterworth(cutoff_hz, rate_hz, order)
    settle = min(len(rows) - 1, int(np.ceil(3 * rate_hz / cutoff_hz)))
    return np.asarray(signal.sosfiltfilt(sections, rows, axis=0, padlen=settle))


def central_differences(x: ArrayLike, rate_hz: float) -> tuple[Array, Array]:
    """First and second derivative by central differences (one-sided at the two ends), each (N, n).

    Args:
        x: signal, (N, n)
        rate_hz: samples for each second, [Hz]
    """
    rows = np.asarray(x, dtype=float)
    if len(rows) < 4:
        raise InvalidSamples(f"two derivatives need at least 4 samples, got {len(rows)}")
    first = np.gradient(rows, 1.0 / rate_hz, axis=0, edge_order=2)
    second = np.empty_like(rows)
    second[1:-1] = (rows[2:] - 2 * rows[1:-1] + rows[:-2]) * rate_hz**2
    second[0] = (2 * rows[0] - 5 * rows[1] + 4 * rows[2] - rows[3]) * rate_hz**2
    second[-1] = (2 * rows[-1] - 5 * rows[-2] + 4 * rows[-3] - rows[-4]) * rate_hz**2
    return first, second


def moving_mean(x: ArrayLike, length: int) -> Array:
    """The mean of `length` samples around each one (fewer at the two ends), (N, n).

    Args:
        x: signal, (N, n)
        length: an odd number of samples
    """
    if length < 1 or length % 2 == 0:
        raise InvalidSamples(f"a moving mean without delay needs an odd length, got {length}")
    rows = np.asarray(x, dtype=float)
    half = length // 2
    total = np.concatenate([np.zeros((1, *rows.shape[1:])), np.cumsum(rows, axis=0)])
    centre = np.arange(len(rows))
    low, high = np.maximum(centre - half, 0), np.minimum(centre + half + 1, len(rows))
    count = (high - low).reshape(-1, *([1] * (rows.ndim - 1)))
    return np.asarray((total[high] - total[low]) / count)
