"""What a pick is, by its mass: limits with a stated rate of false alarms.

A part of mass M and tolerance T fits a measured mass m of standard deviation s where

    |m - M| <= T + z s

with z such that good parts fail with a probability of at most a. Those at the end of their
tolerance are nearest to a limit, and fail with

    F(-z) + F(-z - 2 T / s) <= a

with F the distribution of the deviations: the normal one, or Student's t if s was itself estimated
from a few picks. Without a tolerance z is the quantile of a / 2; with a tolerance of several s it
is that of a. The stated rate of false alarms is divided: four fifths are for the mass, one tenth is
for parts that are lost, and one tenth for parts that slip.

A pick is an alarm only if the expected part does not fit. If the expected part fits, but an empty
gripper or two parts would fit as well, the motion cannot distinguish them and the pick is unclear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from steelyard._units import NORMAL_95
from steelyard.payload import Part
from steelyard.picking._pick import Decision

MASS_SHARE = 0.8
"""The share of the false alarms that is for the mass."""

CHANGE_SHARE = 0.1
"""The share of the false alarms that is for lost parts, and again for parts that slip."""


@dataclass(frozen=True)
class MassLimits:
    """How far a measured mass may lie from that of a part.

    Attributes:
        false_alarms: stated rate, per pick
        freedom: degrees of freedom of the standard deviations; infinite where they are known
    """

    false_alarms: float
    freedom: float = np.inf

    @property
    def deviations(self) -> float:
        """The quantile z without a tolerance, in standard deviations."""
        return self._quantile(0.5 * MASS_SHARE * self.false_alarms)

    def reach(self, std: float, tolerance: float) -> float:
        """The largest difference of a good part's measured mass from the stated one, T + z s [kg].

        Args:
            std: standard deviation of the measured mass [kg]
            tolerance: of the part [kg]
        """
        if std <= 0:
            return tolerance
        rate = MASS_SHARE * self.false_alarms
        one_sided = self._quantile(rate)
        other_side = self._tail(one_sided + 2 * tolerance / std)
        z = self.deviations
        if other_side < 0.5 * rate:
            z = self._quantile(rate - other_side)
        return tolerance + z * std

    def _quantile(self, probability: float) -> float:
        """The deviation that is exceeded with a probability."""
        if np.isfinite(self.freedom):
            return float(-stdtrit(self.freedom, probability))
        return float(-ndtri(probability))

    def _tail(self, deviations: float) -> float:
        """The probability of larger deviations."""
        if np.isfinite(self.freedom):
            return float(stdtr(self.freedom, -deviations))
        return float(ndtr(-deviations))

    @property
    def change_evidence(self) -> float:
        """Log of the evidence from which a part counts as lost, or as slipped."""
        return float(-np.log(CHANGE_SHARE * self.false_alarms))

    def fits(self, value: float, std: float, mass: float, tolerance: float) -> bool:
        """Whether a measured mass fits a stated mass with its tolerance, all in kg."""
        return abs(value - mass) <= self.reach(std, tolerance)

    def distance(self, value: float, std: float, mass: float, tolerance: float) -> float:
        """How far a measured mass lies beyond a tolerance, in standard deviations."""
        return max(abs(value - mass) - tolerance, 0.0) / max(std, 1e-12)


@dataclass(frozen=True)
class Judged:
    """A decision.

    Attributes:
        decision: what the pick is
        fits: name of the part that fits; empty if none does
        reasons: one sentence without a full stop each
    """

    decision: Decision
    fits: str
    reasons: tuple[str, ...] = ()


def judged_by_mass(
    value: float,
    std: float,
    expected: Sequence[Part],
    others: Sequence[Part],
    limits: MassLimits,
) -> Judged:
    """The decision from a measured mass.

    Args:
        value: [kg]
        std: its standard deviation [kg]
        expected: parts that are fine
        others: all parts of the table
        limits: with the stated rate of false alarms
    """
    fitting = [part for part in expected if limits.fits(value, std, part.mass, part.tolerance)]
    empty = limits.fits(value, std, 0.0, 0.0)
    if fitting:
        best = min(fitting, key=lambda part: limits.distance(value, std, part.mass, part.tolerance))
        return _of_fitting(value, std, best, limits, empty=empty)
    if empty:
        return Judged(Decision.MISSING, "", (f"nothing carried: {_mass(value, std)}",))
    for part in expected:
        if limits.fits(value, std, 2 * part.mass, 2 * part.tolerance):
            words = f"{_mass(value, std)} is twice '{part.name}' ({2 * part.mass:.3f} kg)"
            return Judged(Decision.DOUBLE, part.name, (words,))
    wrong = [part for part in others if limits.fits(value, std, part.mass, part.tolerance)]
    should = " or ".join(f"'{part.name}' {part.mass:.3f}" for part in expected[:3])
    words = f"{_mass(value, std)} instead of {should} kg"
    if wrong:
        names = " or ".join(f"'{part.name}'" for part in wrong)
        return Judged(Decision.WRONG_PART, wrong[0].name, (f"{words}; {names} fits",))
    return Judged(Decision.FOREIGN, "", (f"{words}; no part of the table fits",))


def _of_fitting(value: float, std: float, part: Part, limits: MassLimits, *, empty: bool) -> Judged:
    """The decision where an expected part fits."""
    twice = limits.fits(value, std, 2 * part.mass, 2 * part.tolerance)
    if not empty and not twice:
        return Judged(Decision.GOOD, part.name)
    what = " and ".join(words for words, fits in (("nothing", empty), ("two parts", twice)) if fits)
    words = f"{_mass(value, std)} does not tell '{part.name}' from {what}"
    return Judged(Decision.UNCLEAR, part.name, (words,))


def _mass(value: float, std: float) -> str:
    return f"{value:.3f} +- {NORMAL_95 * std:.3f} kg"
