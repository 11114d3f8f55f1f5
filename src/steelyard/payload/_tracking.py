"""What every online estimate counts, remembers and shows: samples, earlier payloads, points of a curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steelyard import fields
from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.payload._payload import Payload

_NO_SAMPLES = ("used", "gaps", "clocks")  # names of counts that are not of skipped samples


class Counts(NamedTuple):
    """How many samples were used, and how many were not, by reason.

    Attributes:
        used: they count
        repeated: the same time as the one before
        late: an earlier time than the one before
        corrupt: NaN, infinite or absurdly large
        saturated: a torque or wrench at its limit
        spikes: a torque far from both its neighbours
        gaps: pauses in the stream, not samples
        impossible: a step of position that no drive makes
        frozen: the same reading as before, while the arm moved
        clocks: how often the clock was set back, not samples
    """

    used: int = 0
    repeated: int = 0
    late: int = 0
    corrupt: int = 0
    saturated: int = 0
    spikes: int = 0
    gaps: int = 0
    impossible: int = 0
    frozen: int = 0
    clocks: int = 0

    @property
    def words(self) -> str:
        """What was skipped, as 'skipped 3 late and 2 corrupt samples'; empty when nothing was."""
        bad = [f"{n} {name}" for name, n in self._asdict().items() if n and name not in _NO_SAMPLES]
        if bad:
            skipped = f"skipped {', '.join(bad)} samples"
        else:
            skipped = ""
        if self.gaps:
            paused = f"{self.gaps} pauses"
        else:
            paused = ""
        if self.clocks:
            again = "the clock was set back: what was carried before is forgotten"
        else:
            again = ""
        return "; ".join(word for word in (skipped, paused, again) if word)

    def plus(self, name: str, more: int = 1) -> Counts:
        """The counts with one of them larger."""
        return self._replace(**{name: getattr(self, name) + more})


class Episode(NamedTuple):
    """One payload of the past.

    Attributes:
        start_s: end of the payload before, or time of the first sample, [s] on the stream's clock
        end_s: up to when it was this one for sure: the start of the window in which the change was
            seen, [s]; the change itself came later in that window (`window_s`), rarely at the end
            of the one before
        vector: the ten numbers in the order of `PARAMETER_NAMES`, plain estimate, (10,)
        covariance: of them, (10, 10); infinite where unknown
    """

    start_s: float
    end_s: float
    vector: Array
    covariance: Array


HISTORY = fields.each(
    fields.row(
        *[fields.number(finite=False)] * 2,
        fields.numbers(10),
        fields.numbers(10, 10, finite=False, covariance=True),
    )
)
"""What a saved state may hold of the past: its episodes."""


class CurvePoint(NamedTuple):
    """The estimate at one instant.

    Attributes:
        t: time of the last sample, [s] on the stream's clock
        mass: [kg]
        mass_std: its standard deviation, [kg]; infinite where unknown
        com: centre of mass, (3,) [m], in the frame of the body; NaN while the mass may be zero
        com_std: its standard deviation, (3,) [m]
        payload: which one, counted from 1
        converged: whether the mass is as sure as was asked for
        status: how good it is, in sentences
    """

    t: float
    mass: float
    mass_std: float
    com: Array
    com_std: Array
    payload: int
    converged: bool
    status: str

    @classmethod
    def of(cls, found: Payload, *, t: float, number: int, accuracy: float) -> CurvePoint:
        """A plain estimate as a point of a curve; a real body is looked for at the end only.

        Args:
            found: the estimate, `physical=False`
            t: time of the last sample, [s] on the stream's clock
            number: which payload it is, counted from 1
            accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
        """
        mass = found.body.mass
        std = float(found.std[0])
        com = np.full(3, np.nan)
        com_std = np.full(3, np.inf)
        if mass > NORMAL_95 * std:
            com = found.body.com
            com_std = found.com_std
        sure = bool(NORMAL_95 * std <= accuracy * abs(mass))
        return cls(t, mass, std, com, com_std, number, sure, found.status)


def convergence_times(points: Sequence[CurvePoint]) -> dict[int, float]:
    """Since when each payload was known as asked for, to its end, [s]; those that never were are left out."""
    since: dict[int, float] = {}
    for point in points:
        if point.converged:
            since.setdefault(point.payload, point.t)
        else:
            since.pop(point.payload, None)
    return since
