"""What a motion can show, before the shift: which faults of which parts would be noticed.

A fault that changes the mass by D is noticed in 95 % of the cases where

    D - T >= (z + 1.645) s

with the tolerance T of the part, the limit z of the stated rate of false alarms and the standard
deviation s of the mass on this motion. s follows from the motion and the model alone: the posterior
covariance does not depend on torques. The arm is known as after the unloaded stretches of a dry
cycle, without what its carries would tell of friction: in a shift they have parts.

Where s is too large, other motions are tried: the same path, slower; and the same path with one of
the last three joints turned by 60 degrees on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard._units import NORMAL_95
from steelyard.payload import Part
from steelyard.picking._carry import Carry
from steelyard.picking._decide import MassLimits
from steelyard.picking._segments import Stretch
from steelyard.picking._weigher import StretchWeigher, WeigherState
from steelyard.recording import Samples

_DETECTED_DEVIATIONS = 1.645  # 95 % of the faults are noticed
_SMALL_SHARE = 0.08  # of the mass, of a fault that is tried
_SLOWER = (1.5, 2.0)
_TURN = np.deg2rad(60.0)  # [rad]
_TURNED_JOINTS = 3  # of the wrist


@dataclass(frozen=True)
class Visibility:
    """Whether a fault of a part would be noticed on a motion.

    Attributes:
        part: name of the part
        fault: in words
        visible: whether it would be noticed in 95 % of the cases
        needed: 95 % half-width of the mass that is needed for it [kg]; 0 if the tolerance of the
            part hides it
        given: 95 % half-width of the mass on this motion [kg]
        advice: another motion that would show it; empty if none was found or needed
    """

    part: str
    fault: str
    visible: bool
    needed: float
    given: float
    advice: str = ""

    @property
    def sentence(self) -> str:
        """The answer in words, without a full stop."""
        words = f"{self.fault} of '{self.part}': {'yes' if self.visible else 'no'}"
        if self.needed <= 0:
            return f"{words}: the tolerance of the part is as large"
        if self.visible:
            return f"{words} (this motion gives +-{1e3 * self.given:.0f} g)"
        words += (
            f": it needs +-{1e3 * self.needed:.0f} g, this motion gives +-{1e3 * self.given:.0f} g"
        )
        if self.advice:
            words += f"; {self.advice}"
        return words


def visible_faults(
    weigher: StretchWeigher, state: WeigherState, carries: Sequence[Stretch], limits: MassLimits
) -> tuple[Visibility, ...]:
    """Which faults of the weigher's parts would be noticed.

    Args:
        weigher: of the model and the parts
        state: after unloaded stretches
        carries: motions on which parts are carried; the widest interval counts
        limits: with the stated rate of false alarms
    """
    out = []
    for part in weigher.parts:
        std = _mass_std(weigher, state, carries, part)
        for fault, change in _faults(part, weigher.parts):
            visible_change = change - part.tolerance
            needed = max(visible_change, 0.0) / (limits.deviations + _DETECTED_DEVIATIONS)
            advice = ""
            if 0 < needed < std:
                advice = _advice(weigher, state, carries, part, needed)
            out.append(
                Visibility(
                    part.name, fault, std <= needed, NORMAL_95 * needed, NORMAL_95 * std, advice
                )
            )
    return tuple(out)


def _faults(part: Part, parts: Sequence[Part]) -> Iterator[tuple[str, float]]:
    """Faults of a part, with the change of the mass beyond other tolerances [kg]."""
    yield "a missing part instead", part.mass
    yield "two parts instead", part.mass - part.tolerance
    yield f"+{100 * _SMALL_SHARE:.0f} %", _SMALL_SHARE * part.mass
    for other in parts:
        if other.name != part.name:
            change = abs(other.mass - part.mass) - other.tolerance
            yield f"'{other.name}' instead", change


def _mass_std(
    weigher: StretchWeigher, state: WeigherState, carries: Sequence[Stretch], part: Part
) -> float:
    """The standard deviation of the mass of a part on the worst of some motions [kg]."""
    found = []
    for stretch in carries:
        loaded = replace(stretch, closed=True)
        carry = Carry.of(weigher.arm, state.arm, loaded, part, noise=state.noise)
        found.append(state.widening * carry.mass.std)
    return max(found)


def _advice(
    weigher: StretchWeigher,
    state: WeigherState,
    carries: Sequence[Stretch],
    part: Part,
    needed: float,
) -> str:
    """The first other motion that gives what is needed, or the best one; empty for no gain."""
    best = _mass_std(weigher, state, carries, part)
    words = ""
    for name, change in _other_motions(weigher.arm.model.robot.joint_names):
        changed = [_changed(stretch, change) for stretch in carries]
        std = _mass_std(weigher, state, changed, part)
        if std < 0.9 * best:
            best = std
            words = f"{name} would give +-{1e3 * NORMAL_95 * std:.0f} g"
        if std <= needed:
            break
    return words


@dataclass(frozen=True)
class _OtherMotion:
    """A change of a motion: slower by a factor, with a joint turned on the way."""

    slower: float = 1.0
    joint: int | None = None


def _other_motions(joint_names: Sequence[str]) -> Iterator[tuple[str, _OtherMotion]]:
    for factor in _SLOWER:
        yield f"a carry that takes {factor:g} times as long", _OtherMotion(factor)
    n = len(joint_names)
    for joint in range(max(n - _TURNED_JOINTS, 0), n):
        yield f"a turn of {joint_names[joint]} by 60 degrees", _OtherMotion(joint=joint)
    for joint in range(max(n - _TURNED_JOINTS, 0), n):
        name = f"a carry that takes 2 times as long, with a turn of {joint_names[joint]} by 60"
        yield f"{name} degrees", _OtherMotion(2.0, joint)


def _changed(stretch: Stretch, change: _OtherMotion) -> Stretch:
    """A stretch with another motion."""
    samples = stretch.samples
    k = change.slower
    turn = _turn(samples, stretch.counting, change.joint)
    rate_hz = samples.rate_hz
    repeats = np.repeat(np.arange(len(samples)), int(np.ceil(k)))
    moved = replace(
        samples,
        q=(samples.q + turn[0])[repeats],
        v=((samples.v + turn[1]) / k)[repeats],
        a=((samples.a + turn[2]) / k**2)[repeats],
        tau=samples.tau[repeats],
        usable=None,
        rate_hz=rate_hz * np.ceil(k) / k,
    )
    return replace(stretch, samples=moved, counting=stretch.counting[repeats])


def _turn(samples: Samples, counting: Mask, joint: int | None) -> Array:
    """Position, velocity and acceleration of a smooth turn of a joint, (3, N, n)."""
    out = np.zeros((3, *samples.q.shape))
    places = np.flatnonzero(counting)
    if joint is None or not places.size:
        return out
    duration_s = len(places) / samples.rate_hz
    s = np.clip((np.arange(len(samples)) - places[0]) / len(places), 0.0, 1.0)
    out[0, :, joint] = _TURN * (10 * s**3 - 15 * s**4 + 6 * s**5)
    out[1, :, joint] = _TURN * (30 * s**2 - 60 * s**3 + 30 * s**4) / duration_s
    out[2, :, joint] = _TURN * (60 * s - 180 * s**2 + 120 * s**3) / duration_s**2
    return out
