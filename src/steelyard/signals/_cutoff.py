"""The cut-off of the filter on the motion, chosen from the motion itself.

Positions are differentiated twice, so the power S(f) of accelerations is that of the motion, which
falls with the frequency f, and that of noise on the positions (encoder steps, jitter of the clock),
which rises: as f^4 where it is white. Where S is smallest, at f*, one hands over to the other. What
lies above is noise for certain as far as it is white, of the level W that the highest frequencies
show, N(f) = W f^4. The rest may be
either: jitter is not white, and friction makes joints twitch where they turn round. Noise of share
s in the power of accelerations makes inertias too small by s, motion that is cut off is missing
where friction jumps. So the filter passes as much as does no harm: the cut-off is the highest
frequency up to which, from f* on,

    the integral of N is at most 0.05 %, and that of S at most 1 %, of the power of accelerations
    below f*,

but not below 2 f*, where the filter, which passes 1 / (1 + (f / fc)^8), still leaves motion up to
f* alone. Where no noise is to be seen (commanded motion), f* is the highest frequency that there
is.

S is averaged over thirds of an octave. Peaks above a smallest S that exceed all that lies higher by
a factor of ten are motion too, and f* is looked for above them. Every joint that moves in every
recording has its own cut-off; a quarter of all may ask for less than the one that is taken. It is
rounded to a preferred number (ten for each decade), so that like recordings are treated alike.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from steelyard._arrays import Array

_PREFERRED = (1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0)
_LOWEST_HZ = 5.0  # a stream waits two periods of it
_HIGHEST = 0.4  # of the rate
_FIRST_BAND_HZ = 0.5
_LAST_BAND = 0.45  # of the rate
_PER_OCTAVE = 3
_FEWEST_LINES = 3  # of a spectrum in a band
_PLAINLY_MOTION = 10.0
_MOST_NOISE = 0.0005
_MOST_DOUBTFUL = 0.01  # of the power of accelerations
_QUARTER = 0.25
_MOVES = 0.02  # [rad or m]: joints that move less say nothing


def chosen_cutoff_hz(motions: Iterable[tuple[Array, float]]) -> float:
    """The cut-off for recordings of one arm, [Hz].

    Args:
        motions: uniform joint positions, (N, n) [rad or m], and their rate, [Hz], of each recording
    """
    wanted = []
    slowest_hz = np.inf
    for q, rate_hz in motions:
        moving = np.ptp(q, axis=0) > _MOVES
        wanted += _cutoffs_hz(q[:, moving], rate_hz)
        slowest_hz = min(slowest_hz, rate_hz)
    if wanted:
        best = float(np.quantile(wanted, _QUARTER))
    else:
        best = _LOWEST_HZ
    decade, tenth = divmod(round(10 * np.log10(best)), 10)
    highest = float(f"{_HIGHEST * slowest_hz:.3g}")
    return float(min(max(_PREFERRED[tenth] * 10.0**decade, _LOWEST_HZ), highest))


def _cutoffs_hz(q: Array, rate_hz: float) -> list[float]:
    """The cut-off that each joint asks for, [Hz]; none where a recording is too short to tell."""
    a = np.diff(q, 2, axis=0) * rate_hz**2
    f = np.fft.rfftfreq(len(a), 1 / rate_hz)
    power = np.abs(np.fft.rfft(a * np.hanning(len(a) + 2)[1:-1, None], axis=0)) ** 2
    octaves = np.log2(_LAST_BAND * rate_hz / _FIRST_BAND_HZ)
    edges = _FIRST_BAND_HZ * 2 ** (np.arange(max(int(_PER_OCTAVE * octaves), 0) + 1) / _PER_OCTAVE)
    band = np.searchsorted(edges, f)
    kept = [k for k in range(1, len(edges)) if np.sum(band == k) >= _FEWEST_LINES]
    if len(kept) < 2:
        return []
    sums = np.array([power[band == k].sum(axis=0) for k in kept])
    lines = np.array([np.sum(band == k) for k in kept])
    below = power[band < kept[0]].sum(axis=0)
    edge = edges[kept]
    return [_cutoff_hz(edge, lines, column, low) for column, low in zip(sums.T, below, strict=True)]


def _cutoff_hz(edge: Array, lines: Array, power: Array, below: float) -> float:
    """The cut-off that one joint asks for, [Hz], from the power in bands with upper edges, and below them."""
    density = power / lines
    higher = np.minimum.accumulate(density[::-1])[::-1]
    first = int(np.flatnonzero(density > _PLAINLY_MOTION * higher).max(initial=-1)) + 1
    least = first + int(density[first:].argmin())
    if least >= len(edge) - 2:
        return float(2 * edge[-1])
    motion = below + power[: least + 1].sum()
    white = lines * edge**4 * np.min(density[least + 1 :] / edge[least + 1 :] ** 4)
    passed = np.cumsum(power[least + 1 :]) > _MOST_DOUBTFUL * motion
    passed |= np.cumsum(white[least + 1 :]) > _MOST_NOISE * motion
    if passed.any():
        harmless = edge[least + int(passed.argmax())]
    else:
        harmless = 2 * edge[-1]
    return float(max(harmless, 2 * edge[least]))
