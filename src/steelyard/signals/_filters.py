"""Zero-phase filters on whole tables of signals, from joints or from a wrist sensor.

Every function takes columns, (N, k), and a clock or a rate. The filters are not causal, so they do
not delay the signals.

A linear filter F that is the same for every column turns tau = Y phi + noise into
F tau = F Y phi + F noise. F Y equals Y of the filtered motion where Y changes smoothly, as it does
for links, but not where friction jumps with the sign of the velocity. If torques are filtered
strongly and the regressor is not, the identified friction is too small. Therefore motion may be
filtered as long as it is slower than the cut-off, torques only where that jump does not matter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

# scipy.signal and scipy.interpolate would take most of a second to import.
from scipy.linalg import lapack

from steelyard._arrays import Array
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.recording import default_gap_s

_KEPT_SHARE = 0.96  # share of the smallest squared differences that estimate the noise
_KEPT_VARIANCE = 0.793  # variance of that share over the variance of all, for normal noise


def uniform_clock(
    t: ArrayLike, *, rate_hz: float | None = None, longest_gap_s: float | None = None
) -> Array:
    """Uniform times over a measured clock, (M,) [s]; the clock itself if it is uniform already.

    Args:
        t: times, strictly increasing, (N,) [s]
        rate_hz: samples per second, [Hz]; the mean rate of the clock by default
        longest_gap_s: longest accepted gap, [s]; by default 5 median steps or 0.05 s, if longer
    """
    clock = np.asarray(t, dtype=float)
    steps = np.diff(clock)
    if len(clock) < 4 or not (steps > 0).all():
        raise InvalidSamples(
            f"a uniform clock needs 4 or more times that increase, got {len(clock)} rows"
        )
    median = float(np.median(steps))
    longest = default_gap_s(median) if longest_gap_s is None else longest_gap_s
    if steps.max() > longest:
        i = int(steps.argmax())
        raise InvalidRecording(
            f"{steps[i]:.3f} s are missing after t = {clock[i]:.3f} s (longest allowed gap:"
            f" {longest:.3f} s); record again, cut the recording there (Recording.split_at_gaps in"
            " Python, the command 'check' in a shell), or allow the gap with `longest_gap_s`"
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
    """The signal at other times, (M, n).

    Args:
        t: times, strictly increasing, (N,) [s]
        x: signal, (N, n)
        t_new: requested times, inside those of t, (M,) [s]
        smooth: cubic spline, for positions; False for linear interpolation, for noisy torques
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
    """Slopes of the cubic spline at its N knots, (N, n).

    Second derivatives are continuous at all knots, third derivatives at the second and the last but
    one.

    Args:
        h: steps between the knots, (N-1, 1)
        slope: slopes of the chords, (N-1, n)
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
    """The signal after a low-pass filter without delay, (N, n).

    A Butterworth filter is applied forwards and backwards; at the cut-off a quarter of the power
    passes.

    Args:
        x: signal, (N, n)
        cutoff_hz: cut-off frequency, [Hz]
        rate_hz: samples per second, [Hz]
        order: order of the filter
    """
    rows = np.asarray(x, dtype=float)
    if not 1e-9 * rate_hz < cutoff_hz < rate_hz / 2:
        raise InvalidSamples(
            f"the cut-off must lie between 0 and half the rate, {rate_hz / 2:g} Hz; got"
            f" {cutoff_hz:g} Hz"
        )
    # The filter also rings for long if the cut-off is close to half the rate.
    slowest_hz = min(cutoff_hz, rate_hz / 2 - cutoff_hz)
    settle = min(len(rows) - 1, int(np.ceil(3 * rate_hz / slowest_hz)))
    before = 2 * rows[0] - rows[settle:0:-1]
    after = 2 * rows[-1] - rows[-2 : -2 - settle : -1]
    y = np.asfortranarray(np.concatenate([before, rows, after]))
    for _ in range(2):
        y = _filtered_once(y, np.tan(np.pi * cutoff_hz / rate_hz), order)[::-1]
    return np.ascontiguousarray(y[settle : len(y) - settle])


def _filtered_once(x: Array, k: float, order: int) -> Array:
    """A forward Butterworth low-pass that starts in the steady state of the first row, (N, n).

    The filter has sections y_i + a y_i-1 + b y_i-2 = g (x_i + 2 x_i-1 + x_i-2) by the bilinear
    transform, each solved as a banded triangular system; an odd order has a last section of first
    order. k is the tangent of half the cut-off's angle.
    """
    damping = 2 * np.sin(np.pi * (2 * np.arange(order // 2) + 1) / (2 * order))
    whole = 1 + damping * k + k * k
    sections = [*zip(2 * (k * k - 1) / whole, 1 - 2 * damping * k / whole, strict=True)]
    y = x
    if order % 2:
        sections.append(((k - 1) / (k + 1), 0.0))
    for a, b in sections:
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
    """First and second derivative of x, (N, n), by central differences, one-sided at the ends.

    Args:
        x: values, (N, n)
        rate_hz: samples per second
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


def moving_mean(x: ArrayLike, length: int, *, causal: bool = False) -> Array:
    """The mean of `length` samples around each one (fewer at the two ends), (N, n).

    Args:
        x: signal, (N, n)
        length: number of samples, odd unless causal
        causal: mean of the last `length` samples, which delays by (length - 1) / 2 samples; the
            signal counts as constant before the first sample
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
    """The standard deviation of white noise on a smooth signal x, (N, n): (n,).

    It is estimated from fourth differences. The largest 4 % are left out, because a motion may jump
    (friction at a reversal); the rest has 0.793 of the variance of normal noise.
    """
    squares = np.sort(np.diff(x, 4, axis=0) ** 2, axis=0)
    kept = squares[: max(1, int(np.ceil(_KEPT_SHARE * len(squares))))]
    return np.asarray(np.sqrt(kept.mean(axis=0) / _KEPT_VARIANCE / 70.0))


def noise_gains(cutoff_hz: float | None, rate_hz: float) -> tuple[float, float, float]:
    """Variances of low-passed white noise of unit variance and of its first two derivatives.

    The filter is `low_pass`; derivatives are central differences.

    Args:
        cutoff_hz: cut-off of the filter, [Hz]; None for no filter
        rate_hz: samples per second, [Hz]
    """
    half = 8
    if cutoff_hz is not None:
        half += int(np.ceil(8 * rate_hz / cutoff_hz))
    h = np.zeros((2 * half + 1, 1))
    h[half] = 1.0
    if cutoff_hz is not None:
        h = low_pass(h, cutoff_hz, rate_hz)
    first = (h[2:] - h[:-2]) * rate_hz / 2
    second = (h[2:] - 2 * h[1:-1] + h[:-2]) * rate_hz**2
    return float((h**2).sum()), float((first**2).sum()), float((second**2).sum())
