"""Filters on whole tables of signals, of joints or of a wrist sensor: they see the future, so none delays.

Every function takes columns, (N, k), and a clock or a rate.

A filter F that is linear and the same for every column turns tau = Y phi + noise into
F tau = F Y phi + F noise. F Y is Y of the filtered motion where Y changes smoothly, as that of
links does, but not where friction jumps with the sign of the velocity: a torque that is filtered
strongly while the regressor is not shows a friction that is too small. So motion may be filtered as
long as it is slower than the cut-off, torques only where that jump does not matter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import (
    lapack,
)  # scipy.signal and scipy.interpolate take most of a second to import

from steelyard._arrays import Array
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.recording import default_gap_s

_KEPT_SHARE = 0.96
_KEPT_VARIANCE = 0.793


def uniform_clock(
    t: ArrayLike, *, rate_hz: float | None = None, longest_gap_s: float | None = None
) -> Array:
    """Uniform times over a measured clock, (M,) [s]; the clock itself where it is uniform already.

    Args:
        t: times, strictly increasing, (N,) [s]
        rate_hz: samples per second, [Hz]; the mean rate of the clock by default
        longest_gap_s: a longer hole is refused, [s]; by default 5 median steps or 0.05 s, if longer
    """
    clock = np.asarray(t, dtype=float)
    steps = np.diff(clock)
    if len(clock) < 4 or not (steps > 0).all():
        raise InvalidSamples(
            f"a uniform clock needs 4 or more times that increase, got {len(clock)} rows"
        )
    median = float(np.median(steps))
    if longest_gap_s is None:
        longest = default_gap_s(median)
    else:
        longest = longest_gap_s
    if steps.max() > longest:
        i = int(steps.argmax())
        raise InvalidRecording(
            f"{steps[i]:.3f} s are missing after t = {clock[i]:.3f} s (longest allowed:"
            f" {longest:.3f} s);"
            " record again, or cut it there: steelyard check FILE --between FROM,TO -o"
            " PIECE.parquet"
            " (in Python: recording.split_at_gaps(); or allow the hole with longest_gap_s)"
        )
    rate = rate_hz or 1.0 / float(np.mean(steps))
    if rate > 1.5 / median:
        raise InvalidSamples(f"{rate:g} Hz is faster than the recording, about {1 / median:.4g} Hz")
    count = int(np.floor((clock[-1] - clock[0]) * rate * (1 + 1e-12))) + 1
    grid = clock[0] + np.arange(count) / rate
    if count < 4:
        raise InvalidSamples(f"only {count} samples at {rate:g} Hz; at least 4 are needed")
    same = count == len(clock) and np.allclose(grid, clock, rtol=0, atol=1e-6 / rate)
    return clock if same else grid


def resample(t: ArrayLike, x: ArrayLike, t_new: ArrayLike, *, smooth: bool = True) -> Array:
    """The signal at other times, (M, n): by a cubic spline, or by straight lines for noisy signals.

    Args:
        t: times, strictly increasing, (N,) [s]
        x: signal, (N, n)
        t_new: requested times, inside those of t, (M,) [s]
        smooth: a cubic spline (positions) instead of straight lines (torques)
    """
    old, new, rows = (np.asarray(values, dtype=float) for values in (t, t_new, x))
    if len(old) < 2:
        raise InvalidSamples("a signal of one row cannot be resampled")
    at = np.clip(np.searchsorted(old, new, side="right") - 1, 0, len(old) - 2)
    step = np.diff(old)[:, None]
    after = (new - old[at])[:, None]
    slope = np.diff(rows, axis=0) / step
    if not smooth or len(old) < 4:
        return np.asarray(rows[at] + after * slope[at])
    tangent = _spline_tangents(step, slope)
    bend = (tangent[:-1] + tangent[1:] - 2 * slope) / step
    start = (slope - tangent[:-1]) / step - bend
    return np.asarray(
        rows[at] + after * (tangent[at] + after * (start[at] + after * (bend / step)[at]))
    )


def _spline_tangents(h: Array, slope: Array) -> Array:
    """Slopes of the cubic spline at its N knots, from steps (N-1, 1) and slopes of the chords (N-1, n).

    Second derivatives agree at the knots, and third ones at the second and the last but one.
    """
    diagonal = np.concatenate([h[1], 2 * (h[:-1] + h[1:])[:, 0], h[-2]])
    above = np.concatenate([h[0] + h[1], h[:-1, 0]])
    below = np.concatenate([h[1:, 0], h[-1] + h[-2]])
    inner = 3 * (h[1:] * slope[:-1] + h[:-1] * slope[1:])
    ends = [
        ((near + 2 * (near + far)) * far * first + near**2 * second) / (near + far)
        for near, far, first, second in (
            (h[0], h[1], slope[0], slope[1]),
            (h[-1], h[-2], slope[-1], slope[-2]),
        )
    ]
    right = np.vstack([ends[0], inner, ends[1]])
    return np.asarray(lapack.dgtsv(below, diagonal, above, right)[3])


def low_pass(x: ArrayLike, cutoff_hz: float, rate_hz: float, *, order: int = 4) -> Array:
    """The signal without what is faster than the cut-off, and without delay, (N, n).

    A Butterworth filter, once forwards and once backwards: at the cut-off a quarter of the power
    passes.

    Args:
        x: signal, (N, n)
        cutoff_hz: [Hz]
        rate_hz: samples per second, [Hz]
    """
    rows = np.asarray(x, dtype=float)
    if not 1e-9 * rate_hz < cutoff_hz < rate_hz / 2:
        raise InvalidSamples(
            f"the cut-off must lie between 0 and half the rate, {rate_hz / 2:g} Hz; got"
            f" {cutoff_hz:g} Hz"
        )
    slowest_hz = min(cutoff_hz, rate_hz / 2 - cutoff_hz)  # near half the rate it rings on as long
    settle = min(len(rows) - 1, int(np.ceil(3 * rate_hz / slowest_hz)))
    before = 2 * rows[0] - rows[settle:0:-1]
    after = 2 * rows[-1] - rows[-2 : -2 - settle : -1]
    y = np.asfortranarray(np.concatenate([before, rows, after]))
    for _ in range(2):
        y = _filtered_once(y, np.tan(np.pi * cutoff_hz / rate_hz), order)[::-1]
    return np.ascontiguousarray(y[settle : len(y) - settle])


def _filtered_once(x: Array, k: float, order: int) -> Array:
    """A Butterworth low-pass forwards, as if the first row had been there always, (N, n).

    Sections y_i + a y_i-1 + b y_i-2 = g (x_i + 2 x_i-1 + x_i-2) of the bilinear transform, each
    solved as a banded triangular system; a last one of first order where the order is odd. k is the
    tangent of half the cut-off's angle.
    """
    damping = 2 * np.sin(np.pi * (2 * np.arange(order // 2) + 1) / (2 * order))
    whole = 1 + damping * k + k * k
    sections = [*zip(2 * (k * k - 1) / whole, 1 - 2 * damping * k / whole, strict=True)]
    y = x
    for a, b in [*sections, ((k - 1) / (k + 1), 0.0)] if order % 2 else sections:
        first = y[0].copy()
        right = y
        for _ in range(2 if b else 1):
            right = 0.5 * (right + np.concatenate([right[:1], right[:-1]]))
        right = np.asfortranarray((1 + a + b) * right)
        right[:1] -= (a + b) * first
        right[1:2] -= b * first
        bands = np.repeat([[1.0], [a], [b]], len(y), axis=1)
        y = lapack.dtbtrs(bands, right, uplo="L", diag="U", overwrite_b=1)[0]
    return np.asarray(y)


def central_differences(x: ArrayLike, rate_hz: float) -> tuple[Array, Array]:
    """First and second derivative of x, (N, n), sampled at rate_hz [Hz]: central, one-sided at the ends."""
    rows = np.asarray(x, dtype=float)
    if len(rows) < 4:
        raise InvalidSamples(f"two derivatives need at least 4 samples, got {len(rows)}")
    first = np.gradient(rows, 1.0 / rate_hz, axis=0, edge_order=2)
    second = np.empty_like(rows)
    second[1:-1] = (rows[2:] - 2 * rows[1:-1] + rows[:-2]) * rate_hz**2
    second[0] = (2 * rows[0] - 5 * rows[1] + 4 * rows[2] - rows[3]) * rate_hz**2
    second[-1] = (2 * rows[-1] - 5 * rows[-2] + 4 * rows[-3] - rows[-4]) * rate_hz**2
    return first, second


def moving_mean(x: ArrayLike, length: int, *, causal: bool = False) -> Array:
    """The mean of `length` samples around each one (fewer at the two ends), (N, n).

    Args:
        x: signal, (N, n)
        length: number of samples, odd unless causal
        causal: of the last `length` samples, which delays by (length - 1) / 2 of them; before the
            first one the signal is taken as constant
    """
    rows = np.asarray(x, dtype=float)
    if causal:
        if length < 1:
            raise InvalidSamples(f"a mean needs at least one sample, got {length}")
        padded = np.concatenate([np.repeat(rows[:1], length - 1, axis=0), rows])
        return np.asarray(sum(padded[k : k + len(rows)] for k in range(length)) / length)
    if length < 1 or length % 2 == 0:
        raise InvalidSamples(f"a moving mean without delay needs an odd length, got {length}")
    half = length // 2
    total = np.concatenate([np.zeros((1, *rows.shape[1:])), np.cumsum(rows, axis=0)])
    centre = np.arange(len(rows))
    low = np.maximum(centre - half, 0)
    high = np.minimum(centre + half + 1, len(rows))
    count = (high - low).reshape(-1, *([1] * (rows.ndim - 1)))
    return np.asarray((total[high] - total[low]) / count)


def noise_of_differences(x: Array) -> Array:
    """The standard deviation of white noise on a smooth signal x, (N, n), from its fourth differences, (n,).

    The largest 4 % are left out, because a motion may jump (friction where a joint turns round); of
    normal noise the others have 0.793 of its variance.
    """
    squares = np.sort(np.diff(x, 4, axis=0) ** 2, axis=0)
    kept = squares[: max(1, int(np.ceil(_KEPT_SHARE * len(squares))))]
    return np.asarray(np.sqrt(kept.mean(axis=0) / _KEPT_VARIANCE / 70.0))


def noise_gains(cutoff_hz: float | None, rate_hz: float) -> tuple[float, float, float]:
    """What the zero-phase low-pass makes of white noise of unit variance: of value, slope, and curvature.

    The variances of the filtered signal and of its first two derivatives by central differences.

    Args:
        cutoff_hz: of the filter, [Hz]; None for no filter
        rate_hz: samples per second, [Hz]
    """
    if cutoff_hz is None:
        half = 8
    else:
        half = int(np.ceil(8 * rate_hz / cutoff_hz)) + 8
    h = np.zeros((2 * half + 1, 1))
    h[half] = 1.0
    if cutoff_hz is not None:
        h = low_pass(h, cutoff_hz, rate_hz)
    first = (h[2:] - h[:-2]) * rate_hz / 2
    second = (h[2:] - 2 * h[1:-1] + h[:-2]) * rate_hz**2
    return float((h**2).sum()), float((first**2).sum()), float((second**2).sum())
