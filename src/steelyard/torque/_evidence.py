"""Whether a cause other than a load acts: its probability, and what follows for the payload.

Let e be the size of a cause as a fit finds it, with the covariance C (misfit of the arm included,
see `identification._misfit`) and nu degrees of freedom. Without the cause, e is Student's t around
zero with C; with it, around zero with C + P, P the prior covariance of the cause. With k columns
their ratio is the Bayes factor

    log B = (nu + k) / 2 [log(1 + e'C^-1 e / nu) - log(1 + e'(C + P)^-1 e / nu)]
            - 1/2 log det (C + P) / det C.

R runs of the empty arm agree with each other, so by the rule of succession the next one differs
with the odds 1 : R + 1; o_c of these belong to cause c. But a run can only disagree about a cause
that it shows: where C is as large as P, it does not count. The share of what a cause may be that a
run shows is r_c = tr P (C + P)^-1 / k. The causes exclude each other, and have the probabilities

    w_c = b_c / (1 + sum of all b),      b_c = B_c o_c / (r_c R + 1).

If the cause acts, e has the mean f = P (C + P)^-1 e and the covariance F = P - P (C + P)^-1 P, and
the payload differs from the one without it by G f, G its response to e. The payload without a cause
stays the answer. Its mean square distance from the truth is

    C_payload + k sum_c w_c G_c (F_c + f_c f_c') G_c'

with k = 1. For an improbable cause with a large effect that is far wider than 95 % of the
probability: k is chosen so that the interval of the mass holds 95 % of the mixture of

    N(0, s^2)                         with the probability 1 - sum of all w
    N(g_c f_c, s^2 + g_c F_c g_c')    with the probability w_c

for s^2 the variance of the mass without causes and g_c its row of G_c. So the interval is nearly as
narrow as without causes where the data exclude them, and holds both answers where they do not.
A cause is proven if its probability exceeds 90 %; it blocks the payload
if it also moves the mass by more than the half-width without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.identification._misfit import CauseMisfit
from steelyard.identification._other_causes import CauseFit

_OUTSIDE = 0.05  # probability outside of an interval
_FAR_SIGMA = 10.0  # standard deviations beyond any interval
_REFINEMENTS = 4  # of the half-width, each to a 64th of the range before
_GRID_POINTS = 65

PROVEN = 0.9
"""Probability from which a cause counts as proven."""


@dataclass(frozen=True, eq=False)
class Cause:
    """A cause that may act in a loaded run.

    Attributes:
        name: for shares of the variance
        e: its size by the fit, (k,)
        covariance: of e, misfit included, (k, k)
        freedom: degrees of freedom of the covariance
        prior: covariance of the cause if it acts, (k, k)
        response: change of the ten numbers of the payload with e, (10, k)
        odds: prior odds of the cause before any run of the empty arm, o_c
    """

    name: str
    e: Array
    covariance: Array
    freedom: float
    prior: Array
    response: Array
    odds: float

    @classmethod
    def of(
        cls,
        name: str,
        found: CauseFit,
        misfit: CauseMisfit,
        *,
        prior_std: float,
        odds: float,
        extra_std: float = 0.0,
    ) -> Cause | None:
        """The cause that a fit has found; None if the data do not determine it.

        Args:
            name: of the cause
            found: the fit; the payload is the last of its unknowns
            misfit: of the arm
            prior_std: standard deviation of each number of the cause if it acts
            odds: prior odds of the cause
            extra_std: standard deviation of each number for known reasons
        """
        if found.response is None or not np.isfinite(found.squared_size()):
            return None
        unit = np.eye(len(found.e))
        return cls(
            name,
            found.e,
            misfit.widening * found.covariance + extra_std**2 * unit,
            misfit.tail_freedom,
            prior_std**2 * unit,
            found.response[-10:],
            odds,
        )

    @property
    def log_bayes_factor(self) -> float:
        """The logarithm of the Bayes factor for the cause."""
        k = len(self.e)
        wide = self.covariance + self.prior
        narrow_size = self.e @ np.linalg.solve(self.covariance, self.e) / self.freedom
        wide_size = self.e @ np.linalg.solve(wide, self.e) / self.freedom
        tails = np.log1p(narrow_size) - np.log1p(wide_size)
        volumes = np.linalg.slogdet(wide)[1] - np.linalg.slogdet(self.covariance)[1]
        return float((self.freedom + k) / 2 * tails - volumes / 2)

    @property
    def shown(self) -> float:
        """The share of the cause that a run shows, r_c: 1 if it is determined exactly."""
        share = np.trace(self.prior @ np.linalg.inv(self.covariance + self.prior))
        return float(share) / len(self.e)

    @property
    def shift(self) -> Array:
        """The change of the payload by the cause, if it acts, (10,)."""
        shrunk = self.prior @ np.linalg.solve(self.covariance + self.prior, self.e)
        return np.asarray(self.response @ shrunk)

    @property
    def mean_square(self) -> Array:
        """The mean square change of the payload by the cause, if it acts, (10, 10)."""
        gain = self.prior @ np.linalg.inv(self.covariance + self.prior)
        left = self.prior - gain @ self.prior
        return np.asarray(self.response @ left @ self.response.T + np.outer(self.shift, self.shift))


def probabilities(causes: Sequence[Cause], runs: int) -> Array:
    """The probability of each cause, (c,).

    Args:
        causes: that exclude each other
        runs: number of runs of the empty arm
    """
    logs = np.array(
        [
            np.log(cause.odds) + cause.log_bayes_factor - np.log(cause.shown * runs + 1.0)
            for cause in causes
        ]
    )
    top = max(0.0, float(logs.max(initial=0.0)))
    weights = np.exp(logs - top)
    return np.asarray(weights / (np.exp(-top) + weights.sum()))


def widening_share(causes: Sequence[Cause], found: Array, mass_std: float) -> float:
    """How much of the mean square change by causes makes 95 % intervals of the mass, k.

    Args:
        causes: that exclude each other
        found: probability of each, (c,)
        mass_std: standard deviation of the mass without them, [kg]
    """
    squares = np.array([float(cause.mean_square[0, 0]) for cause in causes])
    shifts = np.array([float(cause.shift[0]) for cause in causes])
    widths = np.sqrt(mass_std**2 + np.maximum(squares - shifts**2, 0.0))
    total = float(found @ squares)
    if not total > 0:
        return 0.0

    def outside(halves: Array) -> Array:
        """Probability outside of intervals with these half-widths, less 5 %."""
        by_noise = (1.0 - found.sum()) * 2.0 * ndtr(-halves / mass_std)
        wide = halves[:, None]
        by_causes = (ndtr((-wide - shifts) / widths) + ndtr((shifts - wide) / widths)) @ found
        return np.asarray(by_noise + by_causes - _OUTSIDE)

    low = NORMAL_95 * mass_std
    if outside(np.array([low]))[0] <= 0:
        return 0.0
    high = low + float(np.abs(shifts).max() + _FAR_SIGMA * widths.max())
    for _ in range(_REFINEMENTS):  # `outside` falls with the half-width
        halves = np.linspace(low, high, _GRID_POINTS)
        first_inside = max(int(np.argmax(outside(halves) <= 0)), 1)
        low = float(halves[first_inside - 1])
        high = float(halves[first_inside])
    return max((high / NORMAL_95) ** 2 - mass_std**2, 0.0) / total
