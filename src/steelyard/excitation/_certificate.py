"""The certificate of a motion: every limit, checked at its closest point.

A limit holds if its margin is not negative. The certificate states the smallest margin in the
limit's own unit, with the joint, axis or pair and the time. Signals may peak between the samples of
the grid: where a limit is nearly reached, a parabola through three samples estimates the time of
the peak, a second parabola through three closer samples refines it, and the limit is checked there
too. This detects violations of 1e-9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated

import numpy as np

from steelyard._arrays import Array
from steelyard._codec import Value
from steelyard._kinds import NOT_NEGATIVE, POSITIVE
from steelyard.errors import InvalidTrajectory

_PEAK_SHARE = 1e-3  # share of a limit within which a peak between two samples could violate it
_REFINED_STEP = 0.02  # relative to the step between two samples


@dataclass(frozen=True, eq=False)
class Bounded:
    """A limit with its bounded values.

    Attributes:
        limit: name of the limit
        names: names of the k joints, axes or pairs of bodies
        values: values of N postures, (N, k)
        bounds: bounds of the values, (k,); infinite for no limit
        unit: unit of the values
        low: whether values must lie above the bounds, not below
        scale: size that counts as much as a radian when postures are compared
    """

    limit: str
    names: tuple[str, ...]
    values: Array
    bounds: Array
    unit: str
    low: bool = False
    scale: float | Array = 1.0

    @property
    def margins(self) -> Array:
        """Distances of the values from their bounds, (N, k), negative outside."""
        if self.low:
            return self.values - self.bounds
        return self.bounds - self.values

    @property
    def shares(self) -> Array:
        """The margins as shares of the bounds, (N, k); absolute if a bound is zero."""
        finite = np.isfinite(self.bounds)
        size = np.where(finite & (self.bounds != 0), np.abs(self.bounds), 1.0)
        return np.where(finite, self.margins / size, np.inf)

    @property
    def margin(self) -> Array:
        """The scaled margins, comparable among limits, (N, k)."""
        return np.where(np.isfinite(self.bounds), self.margins / self.scale, np.inf)

    def closest(self, distance: Array, t: Array | None = None) -> LimitCheck:
        """The check of the value with the smallest distance, (N, k), at its time of t, (N,) [s]."""
        i, k = np.unravel_index(int(distance.argmin()), distance.shape)
        value = float(self.values[i, k])
        bound = float(self.bounds[k])
        margin = float(self.margins[i, k])
        at_s = None if t is None else float(t[i])
        return LimitCheck(self.limit, self.names[k], at_s, value, bound, margin, self.unit)


def closest_checks(bounded: Callable[[Array], list[Bounded]], t: Array) -> list[LimitCheck]:
    """The check of each limit of a motion at its closest time, on a grid and between its points.

    Args:
        bounded: the limits with their values as a function of times, (M,) [s]
        t: times of the grid, (N,) [s]
    """
    grid = bounded(t)
    step_s = float(t[1] - t[0])
    checks = [limit.closest(limit.shares, t) for limit in grid]
    threes = [np.stack([x[:-2], x[1:-1], x[2:]], axis=1) for x in (limit.shares for limit in grid)]
    peaks = _peaks(threes, t[1:-1], step_s)
    if not peaks.size:
        return checks
    fine_step_s = _REFINED_STEP * step_s
    near = bounded((peaks[:, None] + fine_step_s * np.array([-1.0, 0.0, 1.0])).ravel())
    threes = [x.reshape(len(peaks), 3, -1) for x in (limit.shares for limit in near)]
    refined = _peaks(threes, peaks, fine_step_s)
    peaks = np.clip(np.concatenate([peaks, refined]), t[0], t[-1])
    between = [limit.closest(limit.shares, peaks) for limit in bounded(peaks)]
    return [min(pair, key=lambda check: check.share) for pair in zip(checks, between, strict=True)]


def _peaks(shares: list[Array], middle: Array, step_s: float) -> Array:
    """Times at which nearly reached limits may be closest, (P,) [s], by parabolas.

    Args:
        shares: margins of each limit at three samples, (M, 3, k)
        middle: times of the middle samples, (M,) [s]
        step_s: step between two samples, [s]
    """
    times = [np.zeros(0)]
    for before, here, after in (np.moveaxis(x, 1, 0) for x in shares):
        i, k = np.nonzero((here <= before) & (here <= after) & (here < _PEAK_SHARE))
        curvature = before[i, k] - 2 * here[i, k] + after[i, k]
        shift = (before[i, k] - after[i, k]) / (2 * np.where(curvature > 0, curvature, np.inf))
        times.append(middle[i] + shift * step_s)
    return np.unique(np.concatenate(times))


def active_limits(*limits: Bounded) -> Iterator[Bounded]:
    """The limits with at least one finite bound."""
    return (limit for limit in limits if np.isfinite(limit.bounds).any())


@dataclass(frozen=True)
class LimitCheck(Value, error=InvalidTrajectory):
    """One limit at its closest point.

    Attributes:
        limit: name of the limit
        where: joint, axis or pair of bodies
        at_s: time, [s]; None for a limit of a whole period or at rest
        value: value at that time
        bound: bound of the value
        margin: distance of the value from its bound, negative outside
        unit: unit of value, bound and margin
    """

    limit: str
    where: str
    at_s: Annotated[float | None, NOT_NEGATIVE]
    value: float
    bound: float
    margin: float
    unit: str

    @property
    def share(self) -> float:
        """The margin as a share of the bound; absolute if the bound is zero."""
        return self.margin / (abs(self.bound) or 1.0)

    @property
    def sentence(self) -> str:
        """The check in words: joint or axis, limit, margin and time."""
        when = "" if self.at_s is None else f" at {self.at_s:.3f} s"
        side = "beyond" if self.margin < 0 else "inside"
        return (
            f"{self.where}: {self.limit}, {abs(self.margin):.3g} {self.unit} {side}"
            f" {self.bound:.6g}{when}"
        )


@dataclass(frozen=True)
class Certificate(Value, error=InvalidTrajectory, derived={"holds": attrgetter("holds")}):
    """The checks of all limits on one motion.

    Attributes:
        checks: one for each limit, at its closest point
        rate_hz: rate of the grid, [Hz]
        unchecked: short descriptions of what was not checked for lack of a limit or a shape
        bodies: short descriptions of the shapes whose clearance was checked
        left_out: pairs of bodies whose clearance hardly depends on the posture
    """

    checks: tuple[LimitCheck, ...]
    rate_hz: Annotated[float, POSITIVE]
    unchecked: tuple[str, ...]
    bodies: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether no limit is broken."""
        return all(check.margin >= 0 for check in self.checks)

    @property
    def worst(self) -> LimitCheck:
        """The limit with the smallest share of margin."""
        return min(self.checks, key=lambda check: check.share)

    @property
    def not_checked(self) -> str:
        """A clause about what was not checked; empty if everything was."""
        if self.unchecked:
            return f"NOT checked, because no limit was given: {', '.join(self.unchecked)}"
        return ""
