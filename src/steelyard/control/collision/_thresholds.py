"""When a residual is a contact: fixed limits, or levels learned from a free motion.

A learned threshold is a level times the standard deviation of the torque that the model predicts at
that state (`TorqueUncertainty`), without and with the change of friction that the learning motion
showed. Each deviation has its level, both keep the false-alarm rate on the learning motion, and the
larger product counts, so that the threshold is cautious where that motion shows nothing. Friction
that nobody can know, at rest and where a joint turns round, is taken off the residual before
(`slack`).

A level must be so high that noise crosses it only once in a long time. Peaks are the maxima of
clusters: stretches above a high quantile u, closer to each other than `gap_s` being one. Above u
the peaks z of filtered noise follow a Weibull tail (extreme-value theory; de Haan and Ferreira
2006, Girard 2004)

    P(peak > z) = exp(-(z^k - u^k) / b),      1 <= k <= 2

k = 2 for Gaussian noise, k = 1 for an exponential tail; k is the more likely one on a grid, b the
mean of z^k - u^k, widened to its upper 95 % limit for few peaks. With c clusters per hour the level
that is crossed `rate` times per hour is

    z = (u^k + b log(c / rate))^(1/k)

A contact in a motion that is said to be free shows as a peak that this tail cannot have. The tail
is then judged without trusting the peaks themselves: exponential (the heavy end), with b from their
median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array, Mask, freeze
from steelyard.control.collision._dynamics import TorqueUncertainty
from steelyard.control.collision._observer import Observer
from steelyard.control.collision._residuals import Residuals
from steelyard.errors import InvalidRecording, InvalidSamples

_FASTER = 1.2
_STILL = (0.02, 0.2)  # [rad/s], [rad/s^2]: a joint below rests
_QUANTILE = 0.9
_EXPONENTS = (1.0, 1.25, 1.5, 1.75, 2.0)
_FEWEST_PEAKS = 8
_UPPER_95 = 1.645
_ABOVE_LARGEST = 1.1
_HOUR_S = 3600.0
_IMPOSSIBLE = 1e-4  # probability of the largest peak of a free motion below which it is none
_CAREFUL = 2.0  # deviations that count as one where there are no other peaks to compare with


@dataclass(frozen=True)
class _Tail:
    """The tail of the peaks of one signal, in standard deviations."""

    start: float  # u, above which it holds
    exponent: float  # k
    scale: float  # b, with its uncertainty in it
    clusters_per_hour: float  # how often the signal goes above u, [1/h]
    # how many it was fitted to; 0 when it is that of Gaussian noise of standard deviation 1
    peaks: int
    largest: float  # of the peaks
    gap_s: float  # stretches closer than this are one, [s]

    @classmethod
    def of(cls, z: Array, t: Array, gap_s: float) -> _Tail:
        """The tail of a signal z; that of Gaussian noise of deviation 1 where it has too few peaks."""
        u = float(np.quantile(z, _QUANTILE))
        peaks, _ = _cluster_peaks(z, t, u, gap_s)
        hours = max(t[-1] - t[0], gap_s) / _HOUR_S
        if len(peaks) < _FEWEST_PEAKS:
            return cls(0.0, 2.0, 2.0, _HOUR_S / gap_s, 0, float(peaks.max(initial=0.0)), gap_s)
        likely = max(_EXPONENTS, key=lambda k: _log_likelihood(peaks, u, k))
        scale = float(np.mean(peaks**likely - u**likely)) * (1 + _UPPER_95 / np.sqrt(len(peaks)))
        return cls(u, likely, scale, len(peaks) / hours, len(peaks), float(peaks.max()), gap_s)

    def level(self, crossings_per_hour: float) -> float:
        """The level that is crossed at that rate, [1/h]; at least a little above the largest peak."""
        ratio = max(self.clusters_per_hour / crossings_per_hour, 1.0)
        power = self.start**self.exponent + self.scale * np.log(ratio)
        return float(max(power ** (1 / self.exponent), _ABOVE_LARGEST * self.largest))

    def foreign_peak(self, z: Array, t: Array) -> tuple[float, float] | None:
        """Time [s] and size of a largest peak that belongs neither to the others nor to noise; else None."""
        peaks, times = _cluster_peaks(z, t, self.start, self.gap_s)
        if not peaks.size:
            return None
        largest = float(peaks.max())
        draws = (t[-1] - t[0]) / self.gap_s
        if self.peaks:
            scale = max(float(np.median(peaks - self.start)) / np.log(2), 1e-12)
            chance = len(peaks) * np.exp(-(largest - self.start) / scale)
            chance = max(chance, draws * np.exp(-0.5 * largest**2))
        else:
            chance = draws * np.exp(-0.5 * (largest / _CAREFUL) ** 2)
        if chance < _IMPOSSIBLE:
            return (float(times[peaks.argmax()]), largest)
        return None


@dataclass(frozen=True, eq=False)
class _FreeMotion:
    """The free motion that thresholds were learned from."""

    duration_s: float  # [s]
    false_alarms_per_hour: float  # that were requested, all residuals together, [1/h]
    uncertainty: TorqueUncertainty  # of the arm's torque, the change of friction in it
    tails: tuple[_Tail, ...]  # of the residuals in standard deviations of either kind, 2 m
    largest_v: Array  # largest speed of each joint, (n,) [rad/s or m/s]
    largest_a: Array  # largest acceleration of each joint, (n,) [rad/s^2 or m/s^2]
    friction_change: Array  # of Fc, Fv and B that the motion showed, (3, n)


@dataclass(frozen=True, eq=False)
class Thresholds:
    """What a residual must exceed to be a contact.

    Attributes:
        level: (2, m), in the unit of the residual when fixed; when learned, in standard deviations
            of either kind, of which the larger product counts
        status: what they are, a sentence
        learned: from what; None for fixed ones
    """

    level: Array
    status: str
    learned: _FreeMotion | None = None

    def __post_init__(self) -> None:
        freeze(self, "level")

    @classmethod
    def fixed(cls, observer: Observer, limit: ArrayLike) -> Thresholds:
        """The same limit at every state, say 6 Nm (gaz2017): one, or (m,) for the residuals [Nm, N, W]."""
        level = np.broadcast_to(np.asarray(limit, dtype=float), (2, len(observer.names)))
        if not (level > 0).all() or not np.isfinite(level).all():
            raise InvalidSamples(f"a threshold must be positive and finite, got {level[0]}")
        if np.ptp(level) == 0:
            words = f"{level[0, 0]:g}"
        else:
            words = " ".join(f"{x:g}" for x in level[0])
        return cls(level, f"fixed at {words} {observer.unit}")

    @classmethod
    def from_free_motion(
        cls,
        observer: Observer,
        free: Residuals,
        parts: Sequence[Residuals],
        friction_change: Array,
        false_alarms_per_hour: float,
    ) -> Thresholds:
        """The thresholds that a motion without contact crosses as rarely as requested.

        Args:
            observer: whose residuals are judged, its friction adapted
            free: the motion, as the observer saw it before
            parts: the same with the friction that the other half shows, for each half; or once for
                both
            friction_change: of Fc, Fv and B that the motion showed, (3, n)
            false_alarms_per_hour: of all residuals together, [1/h]
        """
        uncertainty = TorqueUncertainty.of(observer.arm, friction_change)
        first = (free.t < free.t[-1] / 2)[:, None]
        beyond = np.where(first, parts[0].beyond_friction, parts[-1].beyond_friction)
        tails = _tails(observer, uncertainty, free, beyond)
        m = len(observer.names)
        level = np.array([tail.level(false_alarms_per_hour / m) for tail in tails]).reshape(2, m)
        largest_v = np.abs(free.v).max(axis=0)
        largest_a = np.abs(free.a).max(axis=0)
        learned = _FreeMotion(
            float(free.t[-1]),
            false_alarms_per_hour,
            uncertainty,
            tails,
            largest_v,
            largest_a,
            friction_change,
        )
        return cls(level, _status(observer, learned), learned)

    def at(self, observer: Observer, motion: Array, memory: Array) -> Array:
        """The thresholds along a motion, (k, m).

        Args:
            motion: q, v and a of each sample in the order of time, (k, 3, n)
            memory: what friction remembered before, (2, n)
        """
        if self.learned is None:
            return np.tile(self.level[0], (len(motion), 1))
        std = self.learned.uncertainty.std(motion, memory, observer.torque_weights(motion[:, 1]))
        return np.asarray((self.level * std).max(axis=1))

    def beyond_learned(
        self, residuals: Residuals, free: Mask, joint_names: Sequence[str]
    ) -> tuple[str, ...]:
        """Where a motion goes beyond what was learned, in speed or acceleration, in sentences.

        Args:
            free: which rows are away from contacts, (N,)
        """
        if self.learned is None or not free.any():
            return ()
        known = self.learned
        pairs = (
            ("speed", np.abs(residuals.v[free]).max(axis=0), known.largest_v),
            ("acceleration", np.abs(residuals.a[free]).max(axis=0), known.largest_a),
        )
        words = []
        for (what, now, then), still in zip(pairs, _STILL, strict=True):
            ratio = now / np.maximum(then, still)
            joint = int(ratio.argmax())
            if ratio[joint] > _FASTER:
                words.append(
                    f"the {what} of {joint_names[joint]} reaches {now[joint]:.3g}, in the learning"
                    " motion"
                    f" {then[joint]:.3g}: thresholds reach beyond what was learned"
                )
        return tuple(words)


def _cluster_peaks(z: Array, t: Array, start: float, gap_s: float) -> tuple[Array, Array]:
    """The maxima of the stretches above a level, and their times."""
    over = np.flatnonzero(z > start)
    if not over.size:
        return np.zeros(0), np.zeros(0)
    stretches = np.split(over, np.flatnonzero(np.diff(t[over]) > gap_s) + 1)
    at = np.array([stretch[z[stretch].argmax()] for stretch in stretches])
    return z[at], t[at]


def _log_likelihood(peaks: Array, u: float, k: float) -> float:
    y = peaks**k - u**k
    return float(np.sum(np.log(k * peaks ** (k - 1))) - len(peaks) * np.log(y.mean()))


def _tails(
    observer: Observer, uncertainty: TorqueUncertainty, free: Residuals, beyond: Array
) -> tuple[_Tail, ...]:
    """The tails of residuals beyond friction over their deviations; refuses a motion that is not free."""
    motion = np.stack([free.q, free.v, free.a], axis=1)
    memory = observer.arm.friction.init(free.q[0], free.v[0])
    std = uncertainty.std(motion, memory, observer.torque_weights(free.v))
    settled = free.settled
    z = np.abs(beyond[:, None] / std)[settled].reshape(settled.sum(), -1)
    t = free.t[settled]
    tails = tuple(_Tail.of(z[:, j], t, observer.settling_s / 2) for j in range(z.shape[1]))
    for j, tail in enumerate(tails):
        if foreign := tail.foreign_peak(z[:, j], t):
            raise InvalidRecording(
                f"the learning motion is not free: near t = {foreign[0]:.2f} s the residual of"
                f" {observer.names[j % len(observer.names)]} is {foreign[1]:.1f} standard"
                " deviations large,"
                " which does not belong to the others (a contact, a jolt, a hard stop); cut that"
                " part off or"
                " record a free motion"
            )
    return tails


def _status(observer: Observer, learned: _FreeMotion) -> str:
    reach = 3600.0 / learned.false_alarms_per_hour / max(learned.duration_s, 1e-9)
    words = (
        f"learned from {learned.duration_s:.0f} s of free motion for a rate of"
        f" {learned.false_alarms_per_hour:g} false alarms an hour (a tail continued {reach:.0f}"
        " times beyond"
        " what was seen)"
    )
    still = [
        name for name, tail in zip(observer.names, learned.tails, strict=False) if tail.peaks == 0
    ]
    if still:
        words += f"; {', '.join(still)} hardly showed a residual: threshold from the model alone"
    return words
