"""What a motion is checked against, and the certificate that it keeps it.

A limit holds where its margin is not negative; the certificate gives the margin in the limit's own
unit, with the joint, axis or pair and the time where it is smallest. Signals may peak between the
samples of the grid: where a limit is nearly reached, the parabola through three samples says when,
a second one through three that are closer says it better, and the limit is checked there too: what
is broken by 1e-9 is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steelyard import fields
from steelyard._arrays import Array

_NEARLY = 1e-3  # share of a limit that signals cannot gain between two samples
_CLOSER = 0.02  # of the step between two samples


@dataclass(frozen=True, eq=False)
class Bounded:
    """A limit with what it bounds.

    Attributes:
        names: of the k joints, axes or pairs of bodies
        values: of N postures, (N, k)
        bounds: that they must keep, (k,); infinite where there is none
        low: whether values must lie above the bounds, not below
        scale: what counts as much as a radian when postures are compared
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
        """How far the values are inside, (N, k)."""
        if self.low:
            return self.values - self.bounds
        return self.bounds - self.values

    @property
    def shares(self) -> Array:
        """The margins as shares of the bounds, or themselves where a bound is zero, (N, k)."""
        finite = np.isfinite(self.bounds)
        size = np.where(finite & (self.bounds != 0), np.abs(self.bounds), 1.0)
        return np.where(finite, self.margins / size, np.inf)

    @property
    def room(self) -> Array:
        """The margins, comparable among limits, (N, k)."""
        return np.where(np.isfinite(self.bounds), self.margins / self.scale, np.inf)

    def closest(self, distance: Array, t: Array | None = None) -> LimitCheck:
        """The check of the value with the smallest distance, (N, k), at its time of t, (N,) [s]."""
        i, k = np.unravel_index(int(distance.argmin()), distance.shape)
        value = float(self.values[i, k])
        bound = float(self.bounds[k])
        margin = float(self.margins[i, k])
        if t is None:
            at_s = None
        else:
            at_s = float(t[i])
        return LimitCheck(self.limit, self.names[k], at_s, value, bound, margin, self.unit)


def closest_checks(bounded: Callable[[Array], list[Bounded]], t: Array) -> list[LimitCheck]:
    """Each limit of a motion where it is closest, on a grid and between its points.

    Args:
        bounded: the limits, of times (M,) [s]
        t: times of the grid, (N,) [s]
    """
    grid = bounded(t)
    step_s = float(t[1] - t[0])
    checks = [limit.closest(limit.shares, t) for limit in grid]
    threes = [np.stack([x[:-2], x[1:-1], x[2:]], axis=1) for x in (limit.shares for limit in grid)]
    peaks = _peaks(threes, t[1:-1], step_s)
    if not peaks.size:
        return checks
    near = bounded((peaks[:, None] + _CLOSER * step_s * np.array([-1.0, 0.0, 1.0])).ravel())
    threes = [x.reshape(len(peaks), 3, -1) for x in (limit.shares for limit in near)]
    peaks = np.clip(np.concatenate([peaks, _peaks(threes, peaks, _CLOSER * step_s)]), t[0], t[-1])
    between = [limit.closest(limit.shares, peaks) for limit in bounded(peaks)]
    return [min(pair, key=lambda check: check.share) for pair in zip(checks, between, strict=True)]


def _peaks(shares: list[Array], middle: Array, step_s: float) -> Array:
    """When limits that are nearly reached may be closest, (P,) [s], by parabolas through three samples.

    Args:
        shares: of each limit at the samples, (M, 3, k)
        middle: times of the second ones, (M,) [s]
        step_s: from one to the next, [s]
    """
    found = [np.zeros(0)]
    for before, here, after in (np.moveaxis(x, 1, 0) for x in shares):
        i, k = np.nonzero((here <= before) & (here <= after) & (here < _NEARLY))
        curved = before[i, k] - 2 * here[i, k] + after[i, k]
        shift = (before[i, k] - after[i, k]) / (2 * np.where(curved > 0, curved, np.inf))
        found.append(middle[i] + shift * step_s)
    return np.unique(np.concatenate(found))


def given(*limits: Bounded) -> Iterator[Bounded]:
    """Those of the limits that bound anything."""
    return (limit for limit in limits if np.isfinite(limit.bounds).any())


@dataclass(frozen=True)
class LimitCheck:
    """One limit and where it is closest: the joint, axis or pair of bodies, and the time [s].

    The margin says how far the value is inside its bound, negative outside; there is no time where
    the limit is on a whole period, or at rest.
    """

    limit: str
    where: str
    at_s: float | None
    value: float
    bound: float
    margin: float
    unit: str

    @property
    def share(self) -> float:
        """The margin as a share of the bound, or the margin itself where the bound is zero."""
        return self.margin / (abs(self.bound) or 1.0)

    @property
    def sentence(self) -> str:
        """The check in words: whose limit, which, by how much, and when."""
        if self.at_s is None:
            when = ""
        else:
            when = f" at {self.at_s:.3f} s"
        if self.margin < 0:
            side = "beyond"
        else:
            side = "inside"
        return (
            f"{self.where}: {self.limit}, {abs(self.margin):.3g} {self.unit} {side}"
            f" {self.bound:.6g}{when}"
        )


CERTIFICATE = {
    "holds": fields.FLAG,
    "rate_hz": fields.number(1e-9),
    "unchecked": fields.each(fields.TEXT),
    "bodies": fields.each(fields.TEXT),
    "left_out": fields.each(fields.TEXT),
    "checks": fields.each(
        fields.table(
            {
                **dict.fromkeys(("limit", "where", "unit"), fields.TEXT),
                **{name: fields.number() for name in ("value", "bound", "margin")},
                "at_s": fields.or_null(fields.number(0.0)),
            }
        )
    ),
}
"""Fields of a saved certificate."""


@dataclass(frozen=True)
class Certificate:
    """The checks of all limits on one motion.

    Attributes:
        checks: one for each limit, at its closest point
        rate_hz: of the grid, [Hz]
        unchecked: what was not checked, because no limit or no shape was given, in a few words for
            each
        bodies: shapes of the arm whose clearance was checked, in a few words for each
        left_out: pairs of bodies whose clearance no joint, or hardly any posture, can change
    """

    checks: tuple[LimitCheck, ...]
    rate_hz: float
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
        """What was not checked, as a sentence without its end; empty when everything was."""
        if self.unchecked:
            return f"NOT checked, as no limits say it: {', '.join(self.unchecked)}"
        return ""

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain values, for JSON."""
        return {
            "holds": self.holds,
            "rate_hz": self.rate_hz,
            "unchecked": list(self.unchecked),
            "bodies": list(self.bodies),
            "left_out": list(self.left_out),
            "checks": [asdict(check) for check in self.checks],
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Certificate:
        """The certificate that `to_dict` has written."""
        checks = tuple(LimitCheck(**check) for check in content["checks"])
        bodies = (tuple(content[name]) for name in ("bodies", "left_out"))
        return cls(checks, content["rate_hz"], tuple(content["unchecked"]), *bodies)
