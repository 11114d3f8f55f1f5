"""When a residual is a contact: fixed limits, or levels learned from a free motion.

A learned threshold is a level times the standard deviation of the torque that the model predicts at that
state (`spread`), so it grows with speed and acceleration where friction and inertia are uncertain. There are
two such deviations, without and with the doubt about friction that has changed; each has its level, both keep
the false-alarm rate on the learning motion, and the larger product counts, so that the threshold is cautious
where that motion tells nothing. Friction that nobody can know, at rest and where a joint turns round, is
taken off the residual before (`slack`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.arrays import Array
from steelyard.control.collision.observer import Observer
from steelyard.control.collision.residuals import Residuals
from steelyard.control.collision.tail import Tail
from steelyard.errors import InvalidSamples

_FASTER = 1.2
_STILL = (0.02, 0.2)  # [rad/s], [rad/s^2]: a joint below rests
_SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class LearnedFrom:
    """The free motion that thresholds were learned from.

    Attributes:
        duration_s: [s]
        false_alarms_per_hour: that were asked for, all residuals together, [1/h]
        tails: of the residuals in standard deviations of either kind, 2 m
        largest_v: largest speed of each joint, (n,) [rad/s or m/s]
        largest_a: largest acceleration of each joint, (n,) [rad/s^2 or m/s^2]
        friction_change: of Fc, Fv and B that the motion showed, (3, n)
    """

    duration_s: float
    false_alarms_per_hour: float
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

    def at(self, std: Array) -> Array:
        """The threshold, (N, m) or (m,).

        Args:
            std: of the residual at each state, (N, 2, m) or (2, m), as `residual_std` gives it
        """
        level = self.level if self.learned is not None else self.level / std
        return np.asarray((level * std).max(axis=-2))

    def doubts(self, residuals: Residuals, free: NDArray[np.bool_]) -> tuple[str, ...]:
        """Where a motion goes beyond what was learned, a sentence each.

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


def fixed_thresholds(observer: Observer, limit: ArrayLike) -> Thresholds:
    """The same limit at every state, say 6 Nm (gaz2017).

    Args:
        observer: whose residuals are judged
        limit: one number, or one for each residual, (m,) [Nm, N or W]
    """
    m = len(observer.names)
    level = np.array(np.broadcast_to(np.asarray(limit, dtype=float), (2, m)))
    if not (level > 0).all() or not np.isfinite(level).all():
        raise InvalidSamples(f"a threshold must be positive and finite, got {level[0]}")
    level.setflags(write=False)
    told = f"{level[0, 0]:g}" if np.ptp(level) == 0 else " ".join(f"{x:g}" for x in level[0])
    return Thresholds(level, f"fixed at {told} {observer.unit}")


def residual_std(observer: Observer, motion: Array, memory: Array) -> Array:
    """Standard deviation of the residuals that an uncertain model makes, (k, 2, m); 1 where it is given.

    The first is that of the model's covariance, in the second friction is uncertain by its change, too.

    Args:
        observer: of the arm
        motion: q, v and a of each sample in the order of time, (k, 3, n)
        memory: what friction remembered before, (2, n)
    """
    spread = observer.arm.spread
    if spread is None:
        return np.ones((len(motion), 2, len(observer.names)))
    weights = None
    if len(observer.names) != observer.arm.n:
        weights = np.array([observer.joint_weights(v) for v in motion[:, 1]])
    return np.sqrt(np.maximum(spread.variance(motion, memory, weights), _SMALLEST))
