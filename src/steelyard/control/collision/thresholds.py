"""When a residual is a contact: fixed limits, or levels learned from a free motion.

A learned threshold is a level times the standard deviation of the torque that the model predicts at that
state. That torque is linear in the model's parameters, tau = Y(q, v, a) theta, so where they are uncertain by
the covariance S the torque of joint j is uncertain by

    std_j^2 = noise_j^2 + Y_j (S + J S_payload J') Y_j'

large where the arm is quick and the parameters of friction or inertia are poorly known. noise_j is what was
left of the torques in the fit: model errors that no parameter takes. Friction that has changed since the arm
was identified may change again: in a second deviation the change counts as one more of Fc, Fv and B. Each
deviation has its level, both keep the false-alarm rate on the learning motion, and the larger product counts,
so that the threshold is cautious where that motion tells nothing. Friction that nobody can know, at rest and
where a joint turns round, is taken off the residual before (`slack`).

A level must be so high that noise crosses it only once in a long time. Peaks are the maxima of clusters:
stretches above a high quantile u, closer to each other than `gap_s` being one. Above u the peaks z of
filtered noise follow a Weibull tail (extreme-value theory; de Haan and Ferreira 2006, Girard 2004)

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
from numpy.typing import ArrayLike

from steelyard.arrays import Array, Indices, Mask, freeze
from steelyard.control.collision.dynamics import ArmDynamics
from steelyard.control.collision.observer import Observer
from steelyard.control.collision.residuals import Residuals
from steelyard.errors import InvalidSamples
from steelyard.identification.problem import kinds
from steelyard.payload import Payload
from steelyard.torque.online.rows import OnlineRows

_FASTER = 1.2
_STILL = (0.02, 0.2)  # [rad/s], [rad/s^2]: a joint below rests
_SMALLEST = 1e-12
_QUANTILE = 0.9
_EXPONENTS = (1.0, 1.25, 1.5, 1.75, 2.0)
_FEWEST_PEAKS = 8
_UPPER_95 = 1.645
_ABOVE_LARGEST = 1.1
_HOUR_S = 3600.0
_IMPOSSIBLE = 1e-4  # probability of the largest peak of a free motion below which it is none
_CAREFUL = 2.0  # deviations that count as one where there are no other peaks to compare with


@dataclass(frozen=True, eq=False)
class TorqueUncertainty:
    """Standard deviation of the torque that a model predicts, at any state.

    Attributes:
        rows: makes the regressor of the model; None where links and drives are given: a deviation is then 1
        x: payload and parameters in the order of `rows`, (10 + p,)
        root: a square root of their covariance, covariance = root @ root.T, (p, p)
        noise: of each joint's torque in the fit, (n,) [Nm or N]
        friction: which parameters are Fc, Fv and B, in this order, (3 n,)
        friction_change: standard deviation of these beyond the covariance, (3, n)
    """

    rows: OnlineRows | None
    x: Array
    root: Array
    noise: Array
    friction: Indices
    friction_change: Array

    @classmethod
    def of(cls, arm: ArmDynamics, friction_change: Array | None = None) -> TorqueUncertainty:
        """That of an arm and what it carries; a `Payload` brings the covariance of the numbers it knows.

        Args:
            arm: identified, or given
            friction_change: of Fc, Fv and B since the arm was identified, (3, n); none by default
        """
        change = np.zeros((3, arm.n)) if friction_change is None else np.abs(friction_change)
        model, payload = arm.model, arm.payload
        if model is None:
            nothing = np.zeros(0)
            return cls(None, nothing, np.zeros((0, 0)), np.ones(arm.n), nothing.astype(np.intp), change)
        covariance, load = np.array(model.estimate.covariance), np.zeros(10)
        if payload is not None:
            load = (payload.body if isinstance(payload, Payload) else payload).vector
        if isinstance(payload, Payload):
            known = np.isfinite(payload.std)
            J = model.basis.payload_jacobian[:, known]
            covariance[: len(J), : len(J)] += J @ payload.covariance[np.ix_(known, known)] @ J.T
        rows = OnlineRows.of(model)
        x = np.concatenate([load, model.estimate.value[rows.theta_order]])
        kind = kinds(model.estimate.names)
        friction = np.concatenate([np.flatnonzero(kind == name) for name in ("Fc", "Fv", "B")])
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return cls(rows, x, root, np.array(model.estimate.noise), friction, change)

    def variance(self, motion: Array, memory: Array, weights: Array | None = None) -> Array:
        """Variance of each torque without and with the change of friction, (k, 2, m).

        Args:
            motion: q, v and a of each sample in the order of time, (k, 3, n)
            memory: what friction remembered before, (2, n)
            weights: of the joints in m sums of torques, (k, m, n); each joint by itself when None
        """
        if self.rows is None:
            m = motion.shape[2] if weights is None else weights.shape[1]
            return np.ones((len(motion), 2, m))
        Y, _ = self.rows.regressor(motion, memory, self.x)
        columns, changed = Y @ self.root, Y[:, :, self.friction] * self.friction_change.ravel()
        noise = np.broadcast_to(self.noise**2, Y.shape[:2])
        if weights is not None:
            columns, changed = weights @ columns, weights @ changed
            noise = weights**2 @ self.noise**2
        plain = np.einsum("kjp,kjp->kj", columns, columns) + noise
        return np.stack([plain, plain + np.einsum("kjp,kjp->kj", changed, changed)], axis=1)

    def residual_std(self, observer: Observer, motion: Array, memory: Array) -> Array:
        """Standard deviation of an observer's residuals without and with the change of friction, (k, 2, m).

        Args:
            observer: of the arm
            motion: q, v and a of each sample in the order of time, (k, 3, n)
            memory: what friction remembered before, (2, n)
        """
        variance = self.variance(motion, memory, observer.torque_weights(motion[:, 1]))
        return np.sqrt(np.maximum(variance, _SMALLEST))


@dataclass(frozen=True)
class Tail:
    """The tail of the peaks of one signal, in standard deviations.

    Attributes:
        start: u, above which it holds
        exponent: k
        scale: b, with its uncertainty in it
        clusters_per_hour: how often the signal goes above u, [1/h]
        peaks: how many it was fitted to; 0 when it is that of Gaussian noise of standard deviation 1
        largest: of the peaks
        gap_s: stretches closer than this are one, [s]
    """

    start: float
    exponent: float
    scale: float
    clusters_per_hour: float
    peaks: int
    largest: float
    gap_s: float

    @classmethod
    def of(cls, z: Array, t: Array, gap_s: float) -> Tail:
        """The tail of a signal; that of Gaussian noise of standard deviation 1 where it has too few peaks.

        Args:
            z: signal, not negative, in standard deviations, (N,)
            t: time, (N,) [s]
            gap_s: stretches closer than this are one, [s]
        """
        u = float(np.quantile(z, _QUANTILE))
        peaks, _ = _cluster_peaks(z, t, u, gap_s)
        hours = max(t[-1] - t[0], gap_s) / _HOUR_S
        if len(peaks) < _FEWEST_PEAKS:
            return cls(0.0, 2.0, 2.0, _HOUR_S / gap_s, 0, float(peaks.max(initial=0.0)), gap_s)
        likely = max(_EXPONENTS, key=lambda k: _log_likelihood(peaks, u, k))
        scale = float(np.mean(peaks**likely - u**likely)) * (1 + _UPPER_95 / np.sqrt(len(peaks)))
        return cls(u, likely, scale, len(peaks) / hours, len(peaks), float(peaks.max()), gap_s)

    def level(self, crossings_per_hour: float) -> float:
        """The level that is crossed so often, at least a little above the largest peak.

        Args:
            crossings_per_hour: [1/h]
        """
        ratio = max(self.clusters_per_hour / crossings_per_hour, 1.0)
        power = self.start**self.exponent + self.scale * np.log(ratio)
        return float(max(power ** (1 / self.exponent), _ABOVE_LARGEST * self.largest))

    def foreign_peak(self, z: Array, t: Array) -> tuple[float, float] | None:
        """Time [s] and size of a largest peak that belongs neither to the others nor to noise; else None.

        Args:
            z: the signal, (N,)
            t: time, (N,) [s]
        """
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
        return (float(times[peaks.argmax()]), largest) if chance < _IMPOSSIBLE else None


@dataclass(frozen=True, eq=False)
class LearnedFrom:
    """The free motion that thresholds were learned from.

    Attributes:
        duration_s: [s]
        false_alarms_per_hour: that were asked for, all residuals together, [1/h]
        uncertainty: of the arm's torque, the change of friction in it
        tails: of the residuals in standard deviations of either kind, 2 m
        largest_v: largest speed of each joint, (n,) [rad/s or m/s]
        largest_a: largest acceleration of each joint, (n,) [rad/s^2 or m/s^2]
        friction_change: of Fc, Fv and B that the motion showed, (3, n)
    """

    duration_s: float
    false_alarms_per_hour: float
    uncertainty: TorqueUncertainty
    tails: tuple[Tail, ...]
    largest_v: Array
    largest_a: Array
    friction_change: Array


@dataclass(frozen=True, eq=False)
class Thresholds:
    """What a residual must exceed to be a contact.

    Attributes:
        level: (2, m), in the unit of the residual when fixed; when learned, in standard deviations of either
            kind, of which the larger product counts
        status: what they are, a sentence
        learned: from what; None for fixed ones
    """

    level: Array
    status: str
    learned: LearnedFrom | None = None

    def __post_init__(self) -> None:
        freeze(self, "level")

    @classmethod
    def fixed(cls, observer: Observer, limit: ArrayLike) -> Thresholds:
        """The same limit at every state, say 6 Nm (gaz2017).

        Args:
            observer: whose residuals are judged
            limit: one number, or one for each residual, (m,) [Nm, N or W]
        """
        level = np.broadcast_to(np.asarray(limit, dtype=float), (2, len(observer.names)))
        if not (level > 0).all() or not np.isfinite(level).all():
            raise InvalidSamples(f"a threshold must be positive and finite, got {level[0]}")
        words = f"{level[0, 0]:g}" if np.ptp(level) == 0 else " ".join(f"{x:g}" for x in level[0])
        return cls(level, f"fixed at {words} {observer.unit}")

    def at(self, observer: Observer, motion: Array, memory: Array) -> Array:
        """The thresholds along a motion, (k, m).

        Args:
            observer: whose residuals are judged
            motion: q, v and a of each sample in the order of time, (k, 3, n)
            memory: what friction remembered before, (2, n)
        """
        if self.learned is None:
            return np.tile(self.level[0], (len(motion), 1))
        std = self.learned.uncertainty.residual_std(observer, motion, memory)
        return np.asarray((self.level * std).max(axis=1))

    def beyond_learned(self, residuals: Residuals, free: Mask) -> tuple[str, ...]:
        """Where a motion goes beyond what was learned, one sentence for speed and one for acceleration.

        Args:
            residuals: along the motion
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
                    f"the {what} of joint {joint + 1} reaches {now[joint]:.3g}, in the learning motion"
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
