"""The cut-off of the filter on the motion, chosen from the motion itself.

Positions are differentiated twice. The power S(f) of accelerations is therefore the sum of the
motion's power, which falls with the frequency f, and of the power of noise on the positions
(encoder steps, clock jitter), which rises, as f^4 for white noise. S is smallest at f*, where noise
takes over from motion. Above f*, white noise N(f) = W f^4 is certain, with the level W taken from
the highest frequencies. The rest of the power above f* may be motion or noise, because jitter is
not white and friction makes joints twitch at reversals. A noise share s in the power of
accelerations makes inertias too small by s; motion that the filter removes is missing where
friction jumps. The filter therefore passes as much as is harmless: the cut-off is the highest
frequency up to which, from f* on,

    the integral of N is at most 0.05 %, and that of S at most 1 %, of the power of accelerations
    below f*,

but not below 2 f*, where the filter, which passes 1 / (1 + (f / fc)^8), still preserves motion up
to f*. Without visible noise (commanded motion), f* is the highest frequency of the spectrum.

S is averaged over thirds of an octave. A band whose power exceeds the smallest power at higher
frequencies by a factor of ten is motion too, and f* is searched above it. Every moving joint of
every recording yields a cut-off; the lower quartile of these is used. It is rounded to a preferred
number (ten per decade), so that similar recordings get the same filter.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from steelyard._arrays import Array

_PREFERRED = (1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0)
_MIN_CUTOFF_HZ = 5.0  # a causal filter delays by two periods of the cut-off
_MAX_CUTOFF_SHARE = 0.4  # of the sampling rate
_FIRST_BAND_HZ = 0.5
_LAST_BAND_SHARE = 0.45  # of the sampling rate
_BANDS_PER_OCTAVE = 3
_MIN_LINES_PER_BAND = 3  # spectral lines
_MOTION_FACTOR = 10.0  # a band with this power over the smallest higher one is motion
_MAX_WHITE_SHARE = 0.0005  # of the power of accelerations
_MAX_UNCERTAIN_SHARE = 0.01  # of the power of accelerations
_CUTOFF_QUANTILE = 0.25
_MIN_STROKE = 0.02  # [rad or m], joints that move less are ignored


def chosen_cutoff_hz(motions: Iterable[tuple[Array, float]]) -> float:
    """The cut-off for recordings of one arm, [Hz].

    Args:
        motions: for each recording, uniform joint positions, (N, n) [rad or m], and their rate [Hz]
    """
    cutoffs_hz = []
    lowest_rate_hz = np.inf
    for q, rate_hz in motions:
        moving = np.ptp(q, axis=0) > _MIN_STROKE
        cutoffs_hz += _cutoffs_hz(q[:, moving], rate_hz)
        lowest_rate_hz = min(lowest_rate_hz, rate_hz)
    best = _MIN_CUTOFF_HZ
    if cutoffs_hz:
        best = float(np.quantile(cutoffs_hz, _CUTOFF_QUANTILE))
    decade, tenth = divmod(round(10 * np.log10(best)), 10)
    highest = float(f"{_MAX_CUTOFF_SHARE * lowest_rate_hz:.3g}")
    return float(min(max(_PREFERRED[tenth] * 10.0**decade, _MIN_CUTOFF_HZ), highest))


def _cutoffs_hz(q: Array, rate_hz: float) -> list[float]:
    """The cut-off of each joint, [Hz]; empty if the recording is too short for a spectrum."""
    a = np.diff(q, 2, axis=0) * rate_hz**2
    f = np.fft.rfftfreq(len(a), 1 / rate_hz)
    power = np.abs(np.fft.rfft(a * np.hanning(len(a) + 2)[1:-1, None], axis=0)) ** 2
    octaves = np.log2(_LAST_BAND_SHARE * rate_hz / _FIRST_BAND_HZ)
    bands = max(int(_BANDS_PER_OCTAVE * octaves), 0)
    edges = _FIRST_BAND_HZ * 2 ** (np.arange(bands + 1) / _BANDS_PER_OCTAVE)
    band = np.searchsorted(edges, f)
    kept = [k for k in range(1, len(edges)) if np.sum(band == k) >= _MIN_LINES_PER_BAND]
    if len(kept) < 2:
        return []
    sums = np.array([power[band == k].sum(axis=0) for k in kept])
    lines = np.array([np.sum(band == k) for k in kept])
    below = power[band < kept[0]].sum(axis=0)
    edge = edges[kept]
    return [_cutoff_hz(edge, lines, column, low) for column, low in zip(sums.T, below, strict=True)]


def _cutoff_hz(edge: Array, lines: Array, power: Array, below: float) -> float:
    """The cut-off of one joint, [Hz].

    Args:
        edge: upper edges of the bands, (k,) [Hz]
        lines: number of spectral lines in each band, (k,)
        power: power of accelerations in each band, (k,)
        below: power below the first band
    """
    density = power / lines
    higher = np.minimum.accumulate(density[::-1])[::-1]
    first = int(np.flatnonzero(density > _MOTION_FACTOR * higher).max(initial=-1)) + 1
    least = first + int(density[first:].argmin())
    if least >= len(edge) - 2:
        return float(2 * edge[-1])
    motion = below + power[: least + 1].sum()
    white = lines * edge**4 * np.min(density[least + 1 :] / edge[least + 1 :] ** 4)
    harmful = np.cumsum(power[least + 1 :]) > _MAX_UNCERTAIN_SHARE * motion
    harmful |= np.cumsum(white[least + 1 :]) > _MAX_WHITE_SHARE * motion
    highest = 2 * edge[-1]
    if harmful.any():
        highest = edge[least + int(harmful.argmax())]
    return float(max(highest, 2 * edge[least]))
