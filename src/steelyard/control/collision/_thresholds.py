"""Thresholds of residuals for contacts: fixed, or learned from a motion without contact.

A learned threshold is a level times the standard deviation of the torque that the model predicts at
that state (`TorqueUncertainty`), without and with the change of friction that the learning motion
showed. Each of the two standard deviations has its level, both give the requested rate of false
alarms on the learning motion, and the larger product is used, so that the threshold is conservative
in states that the motion did not reach. The unknown part of friction, at rest and at
reversals, is subtracted from the residual before (`slack`).

Noise must cross a level only rarely. Peaks are the maxima of clusters: stretches above a high
quantile u, of which those closer than `gap_s` count as one. Above u the peaks z of filtered noise
follow a Weibull tail (extreme-value theory; de Haan and Ferreira
2006, Girard 2004)

    P(peak > z) = exp(-(z^k - u^k) / b),      1 <= k <= 2

k = 2 for Gaussian noise, k = 1 for an exponential tail; k is the most likely one on a grid, b the
mean of z^k - u^k, widened to its upper 95 % limit for few peaks. With c clusters per hour the level
that is crossed `rate` times per hour is

    z = (u^k + b log(c / rate))^(1/k)

A contact in the learning motion appears as a peak that is improbable with this tail. For this test
the tail is exponential (the heavy end), with b from the median of the peaks, which is robust.
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

_MAX_SPEED_RATIO = 1.2  # to the speeds and accelerations of the learning motion
_REST_LIMITS = (0.02, 0.2)  # [rad/s], [rad/s^2], of a joint at rest
_PEAK_QUANTILE = 0.9
_EXPONENTS = (1.0, 1.25, 1.5, 1.75, 2.0)
_MIN_PEAKS = 8  # to fit a tail
_ONE_SIDED_95 = 1.645  # standard deviations
_MIN_LEVEL_RATIO = 1.1  # to the largest peak
_HOUR_S = 3600.0
_MIN_PEAK_PROBABILITY = 1e-4  # of the largest peak of a motion without contact
_MODEL_STD_MARGIN = 2.0  # factor of the standard deviation without other peaks to compare


@dataclass(frozen=True)
class PeakTail:
    """The tail of the peaks of one signal, in standard deviations."""

    start: float  # u, above which it holds
    exponent: float  # k
    scale: float  # b, with its uncertainty in it
    clusters_per_hour: float  # [1/h]
    peaks: int  # number of fitted peaks; 0 for the tail of Gaussian noise with standard deviation 1
    largest: float  # of the peaks
    gap_s: float  # stretches that are closer count as one, [s]

    @classmethod
    def of(cls, z: Array, t: Array, gap_s: float) -> PeakTail:
        """The tail of a signal; that of unit Gaussian noise if there are too few peaks.

        Args:
            z: the signal, in standard deviations, (N,)
            t: times, (N,) [s]
            gap_s: stretches above the threshold that are closer count as one
        """
        u = float(np.quantile(z, _PEAK_QUANTILE))
        peaks, _ = _cluster_peaks(z, t, u, gap_s)
        hours = max(t[-1] - t[0], gap_s) / _HOUR_S
        if len(peaks) < _MIN_PEAKS:
            return cls(0.0, 2.0, 2.0, _HOUR_S / gap_s, 0, float(peaks.max(initial=0.0)), gap_s)
        exponent = max(_EXPONENTS, key=lambda k: _log_likelihood(peaks, u, k))
        scale = float(np.mean(peaks**exponent - u**exponent)) * (
            1 + _ONE_SIDED_95 / np.sqrt(len(peaks))
        )
        return cls(u, exponent, scale, len(peaks) / hours, len(peaks), float(peaks.max()), gap_s)

    def level(self, crossings_per_hour: float) -> float:
        """The level with this rate `crossings_per_hour`, [1/h], above the largest peak."""
        ratio = max(self.clusters_per_hour / crossings_per_hour, 1.0)
        power = self.start**self.exponent + self.scale * np.log(ratio)
        return float(max(power ** (1 / self.exponent), _MIN_LEVEL_RATIO * self.largest))

    def improbable_peak(self, z: Array, t: Array) -> tuple[float, float] | None:
        """Time [s] and size of the largest peak if it is improbable, else None.

        Args:
            z: the signal, in standard deviations, (N,)
            t: times, (N,) [s]
        """
        peaks, times = _cluster_peaks(z, t, self.start, self.gap_s)
        if not peaks.size:
            return None
        largest = float(peaks.max())
        draws = (t[-1] - t[0]) / self.gap_s
        if self.peaks:
            scale = max(float(np.median(peaks - self.start)) / np.log(2), 1e-12)
            probability = len(peaks) * np.exp(-(largest - self.start) / scale)
            probability = max(probability, draws * np.exp(-0.5 * largest**2))
        else:
            probability = draws * np.exp(-0.5 * (largest / _MODEL_STD_MARGIN) ** 2)
        if probability < _MIN_PEAK_PROBABILITY:
            return (float(times[peaks.argmax()]), largest)
        return None


@dataclass(frozen=True, eq=False)
class FreeMotion:
    """The motion without contact from which thresholds were learned."""

    duration_s: float  # [s]
    false_alarms_per_hour: float  # that were requested, all residuals together, [1/h]
    uncertainty: TorqueUncertainty  # of the arm's torque, the change of friction in it
    tails: tuple[PeakTail, ...]  # of the residuals in standard deviations of either kind, 2 m
    largest_v: Array  # largest speed of each joint, (n,) [rad/s or m/s]
    largest_a: Array  # largest acceleration of each joint, (n,) [rad/s^2 or m/s^2]
    friction_change: Array  # of Fc, Fv and B that the motion showed, (3, n)


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Thresholds that residuals exceed in a contact.

    Attributes:
        level: (2, m); fixed ones in the unit of the residual; learned ones in the two kinds of
            standard deviations, of which the larger product is used
        status: description, a sentence
        learned: motion from which they were learned; None for fixed ones
    """

    level: Array
    status: str
    learned: FreeMotion | None = None

    def __post_init__(self) -> None:
        freeze(self, "level")

    @classmethod
    def fixed(cls, observer: Observer, limit: ArrayLike) -> Thresholds:
        """The same threshold at every state, such as 6 Nm (gaz2017).

        Args:
            observer: of the residuals
            limit: () or (m,) [Nm, N or W]
        """
        level = np.broadcast_to(np.asarray(limit, dtype=float), (2, len(observer.names)))
        if not (level > 0).all() or not np.isfinite(level).all():
            raise InvalidSamples(f"a threshold must be positive and finite, got {level[0]}")
        if np.ptp(level) == 0:
            words = f"{level[0, 0]:g}"
        else:
            words = " ".join(f"{x:.3g}" for x in level[0])
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
        """The thresholds that a motion without contact crosses at the requested rate.

        Args:
            observer: of the residuals, with adapted friction
            free: residuals of the motion before adaptation
            parts: residuals with the friction of the other half, for each half; or one for both
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
        learned = FreeMotion(
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
            observer: of the residuals
            motion: q, v and a of each sample in the order of time, (k, 3, n)
            memory: state of friction before the motion, (2, n)
        """
        if self.learned is None:
            return np.tile(self.level[0], (len(motion), 1))
        std = self.learned.uncertainty.std(motion, memory, observer.torque_weights(motion[:, 1]))
        return np.asarray((self.level * std).max(axis=1))

    def beyond_learned(
        self, residuals: Residuals, free: Mask, joint_names: Sequence[str]
    ) -> tuple[str, ...]:
        """Sentences on speeds and accelerations beyond those of the learning motion.

        Args:
            residuals: of the motion
            free: which rows are away from contacts, (N,)
            joint_names: of the arm
        """
        if self.learned is None or not free.any():
            return ()
        known = self.learned
        pairs = (
            ("speed", np.abs(residuals.v[free]).max(axis=0), known.largest_v),
            ("acceleration", np.abs(residuals.a[free]).max(axis=0), known.largest_a),
        )
        words = []
        for (what, now, then), at_rest in zip(pairs, _REST_LIMITS, strict=True):
            ratio = now / np.maximum(then, at_rest)
            joint = int(ratio.argmax())
            if ratio[joint] > _MAX_SPEED_RATIO:
                words.append(
                    f"the {what} of {joint_names[joint]} reaches {now[joint]:.3g}, in the learning"
                    f" motion {then[joint]:.3g}: thresholds are extrapolated"
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
) -> tuple[PeakTail, ...]:
    """The tails of normalised residuals; an error if the motion has a contact."""
    motion = np.stack([free.q, free.v, free.a], axis=1)
    memory = observer.arm.friction.init(free.q[0], free.v[0])
    std = uncertainty.std(motion, memory, observer.torque_weights(free.v))
    settled = free.settled
    z = np.abs(beyond[:, None] / std)[settled].reshape(settled.sum(), -1)
    t = free.t[settled]
    tails = tuple(PeakTail.of(z[:, j], t, observer.settling_s / 2) for j in range(z.shape[1]))
    for j, tail in enumerate(tails):
        if improbable := tail.improbable_peak(z[:, j], t):
            raise InvalidRecording(
                f"the learning motion is not free of contact: near t = {improbable[0]:.2f} s the"
                f" residual of {observer.names[j % len(observer.names)]} is {improbable[1]:.1f}"
                " standard deviations, far above the others (a contact, a jolt, a hard stop); cut"
                " that part off or record a motion without contact"
            )
    return tails


def _status(observer: Observer, learned: FreeMotion) -> str:
    extrapolation = 3600.0 / learned.false_alarms_per_hour / max(learned.duration_s, 1e-9)
    words = (
        f"learned from {learned.duration_s:.0f} s of motion without contact for a rate of"
        f" {learned.false_alarms_per_hour:g} false alarms per hour (a tail extrapolated"
        f" {extrapolation:.0f}-fold)"
    )
    at_rest = [
        name for name, tail in zip(observer.names, learned.tails, strict=False) if tail.peaks == 0
    ]
    if at_rest:
        words += f"; {', '.join(at_rest)} had hardly any residual: threshold from the model only"
    return words
