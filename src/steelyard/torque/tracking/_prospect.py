"""How much more motion the mass needs.

With samples that say a times as much as those so far, the variance of the mass by noise and
friction is that of today over a. Another cause of the torques (a scale, a steady force) was found
as e with the covariance C. If none acts, the samples to come show it as zero with C / (a - 1), so
all together show

    e / a with the scatter C (a - 1) / a^2,     a mean square of (e^2 + C (a - 1)) / a^2,

with the covariance C / a. Its probability, and with it what it adds to the variance of the mass,
falls faster than 1 / a: once the samples exclude the cause, it adds nothing. The smallest a with
the requested variance is found by bisection.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from steelyard.torque._evidence import Cause
from steelyard.torque._other_causes import effect_of

_MOST_GROWTH = 1e4
_HALVINGS = 8  # of the logarithm of the growth: 4 % are left


@dataclass(frozen=True, eq=False)
class Prospect:
    """What more motion will say about other causes of the torques.

    Attributes:
        causes: that may act
        runs: number of runs of the empty arm
    """

    causes: tuple[Cause, ...] = ()
    runs: int = 1

    def growth_until(self, goal: float, *, plain: float, stays: float) -> float:
        """By how much samples have to grow for a variance of the mass, at least 1.

        Infinite if no growth is enough.

        Args:
            goal: requested variance [kg^2]
            plain: today's variance by noise and friction [kg^2]
            stays: variance that no motion changes [kg^2]
        """
        if stays >= goal:
            return float("inf")
        if not self.causes:
            return max(plain / (goal - stays), 1.0)
        low = 0.0
        high = float(np.log(_MOST_GROWTH))
        if self._variance(1.0, plain, stays) <= goal:
            return 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self._variance(float(np.exp(middle)), plain, stays) > goal:
                low = middle
            else:
                high = middle
        return float(np.exp(high))

    def _variance(self, growth: float, plain: float, stays: float) -> float:
        """Of the mass, after samples have grown by a factor [kg^2]."""
        variance = plain / growth + stays
        later = [_later(cause, growth) for cause in self.causes]
        added = effect_of(later, self.runs, float(np.sqrt(variance))).added
        return variance + sum(float(more[0, 0]) for more in added.values())


def _later(cause: Cause, growth: float) -> Cause:
    """A cause that does not act, as it will be found after samples have grown by a factor."""
    variance = np.diag(cause.covariance)
    size = np.sqrt(cause.e**2 + variance * (growth - 1.0)) / growth
    return replace(cause, e=np.copysign(size, cause.e), covariance=cause.covariance / growth)
