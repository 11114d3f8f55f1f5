"""Picks of many shifts: what each part weighed in each, and what has changed over them.

Each shift is the result of one log (`steelyard picks LOG -o shift.json`). A series is one quantity
of one part in one gripper, a value per shift: the mean mass of good picks, their scatter, and the
share of alarms. Their standard deviations are those of n picks,

    mean: s / sqrt(n),     scatter: s / sqrt(2 (n - 1)),     share a: sqrt(a' (1 - a') / n)

with a' = (alarms + 1) / (n + 2). Changes are tested as those of other series of a fleet
(`_trend`), with the same control of false discoveries over all series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard._units import NORMAL_95
from steelyard.errors import InvalidSamples
from steelyard.fleet._trend import ChangePoint, false_discovery_rates, likeliest_change
from steelyard.picking import Decision, Shift

QUANTITIES = {"mass": "kg", "scatter": "kg", "alarms": ""}
"""The quantities of a part in a shift, and their units."""

_MIN_SCATTER_PICKS = 3


@dataclass(frozen=True)
class ShiftPart:
    """One part in one shift.

    Attributes:
        shift: name of the shift
        tool: name of the gripper; empty where it is not known
        part: name of the part; empty without a table of parts
        picks: that were compared with the part
        good: of them
        alarms: of them
        missing: of the alarms
        double: of the alarms
        mass: mean of the good picks [kg]; None without any
        mass_half_width: 95 % half-width of the mean with all errors [kg]; None without any
        scatter: standard deviation of single good picks [kg]; None for fewer than three
    """

    shift: str
    tool: str
    part: str
    picks: int
    good: int
    alarms: int
    missing: int
    double: int
    mass: float | None
    mass_half_width: float | None
    scatter: float | None


@dataclass(frozen=True)
class PickChange:
    """The likeliest change of a quantity over shifts.

    Attributes:
        tool: name of the gripper
        part: name of the part
        quantity: 'mass', 'scatter' or 'alarms'
        shift: the first one after the change
        ramp: whether it is a ramp from there, or a step
        size: of the change [kg, or share of the picks]
        half_width: of its 95 % interval
        p: probability of a change this significant by chance
        flagged: whether it is significant among all series
        words: what it means, a sentence without a full stop
    """

    tool: str
    part: str
    quantity: str
    shift: str
    ramp: bool
    size: float
    half_width: float
    p: float
    flagged: bool
    words: str


@dataclass(frozen=True, eq=False)
class PickTrends:
    """Shifts side by side.

    Attributes:
        rows: one per shift and part, in the order of the shifts
        changes: one per series with enough shifts
        rate: largest mean share of false alarms among all flagged changes
    """

    rows: tuple[ShiftPart, ...]
    changes: tuple[PickChange, ...]
    rate: float

    @property
    def flagged(self) -> tuple[PickChange, ...]:
        """Changes that are significant."""
        return tuple(change for change in self.changes if change.flagged)

    @property
    def series(self) -> dict[tuple[str, str], list[ShiftPart]]:
        """The rows of each gripper and part."""
        out: dict[tuple[str, str], list[ShiftPart]] = {}
        for row in self.rows:
            out.setdefault((row.tool, row.part), []).append(row)
        return out


def pick_trends(shifts: Mapping[str, Shift], *, rate: float = 0.05) -> PickTrends:
    """What parts weighed in many shifts, and what has changed.

    Args:
        shifts: by name, in the order of time
        rate: largest mean share of false alarms among all flagged changes
    """
    if not shifts:
        raise InvalidSamples("`shifts` is empty: there is nothing to compare")
    for name, shift in shifts.items():
        if not shift.picks:
            raise InvalidSamples(f"{name} has no picks: there is nothing to compare; leave it out")
    if not 0 < rate < 1:
        raise InvalidSamples(f"`rate` must lie between 0 and 1, got {rate:g}")
    rows = tuple(row for name, shift in shifts.items() for row in _rows(name, shift))
    trends = PickTrends(rows, (), rate)
    found = [
        change
        for series in trends.series.values()
        for quantity in QUANTITIES
        if (change := _change(series, quantity)) is not None
    ]
    rates = false_discovery_rates([change.p for change in found])
    changes = tuple(
        replace(change, flagged=bool(least <= rate))
        for change, least in zip(found, rates, strict=True)
    )
    return replace(trends, changes=changes)


def _rows(name: str, shift: Shift) -> list[ShiftPart]:
    batches = {batch.part: batch for batch in shift.batches}
    out = []
    for part in dict.fromkeys(pick.part for pick in shift.picks if pick.mass is not None):
        picks = [pick for pick in shift.picks if pick.part == part and pick.mass is not None]
        decisions = [pick.decision for pick in picks]
        batch = batches.get(part)
        scatter = None
        if batch is not None and batch.picks >= _MIN_SCATTER_PICKS:
            scatter = batch.scatter
        out.append(
            ShiftPart(
                name,
                shift.tool,
                part,
                len(picks),
                decisions.count(Decision.GOOD),
                sum(decision.is_alarm for decision in decisions),
                decisions.count(Decision.MISSING),
                decisions.count(Decision.DOUBLE),
                None if batch is None else batch.mass.value,
                None if batch is None else batch.mass.half_width,
                scatter,
            )
        )
    return out


def value_of(row: ShiftPart, quantity: str) -> tuple[float, float] | None:
    """A quantity of a part in a shift and its standard deviation; None where it is not known.

    Args:
        row: of the part
        quantity: 'mass', 'scatter' or 'alarms'
    """
    if quantity == "alarms":
        share = (row.alarms + 1) / (row.picks + 2)
        return row.alarms / row.picks, float(np.sqrt(share * (1 - share) / row.picks))
    if row.mass is None or row.scatter is None:
        return None
    if quantity == "mass":
        return row.mass, row.scatter / float(np.sqrt(row.good))
    return row.scatter, row.scatter / float(np.sqrt(2 * (row.good - 1)))


def _change(series: Sequence[ShiftPart], quantity: str) -> PickChange | None:
    known = [(row, pair) for row in series if (pair := value_of(row, quantity)) is not None]
    values = np.array([pair for _, pair in known]).reshape(-1, 2)
    time = np.arange(float(len(known)))
    std = np.maximum(values[:, 1], 1e-9)
    change = likeliest_change(time, values[:, 0], std, np.zeros((len(known), 0)))
    if change is None:
        return None
    row = known[change.at][0]
    half_width = NORMAL_95 * change.std
    words = _words(row, quantity, change, half_width)
    return PickChange(
        row.tool,
        row.part,
        quantity,
        row.shift,
        change.ramp,
        change.size,
        half_width,
        change.p,
        flagged=False,
        words=words,
    )


def _words(row: ShiftPart, quantity: str, change: ChangePoint, half_width: float) -> str:
    what = {"mass": "mean mass", "scatter": "scatter", "alarms": "share of alarms"}[quantity]
    size = f"{change.size:+.4f} +- {half_width:.4f} {QUANTITIES[quantity]}".rstrip()
    if quantity == "alarms":
        size = f"{100 * change.size:+.1f} +- {100 * half_width:.1f} percent points"
    how = "changes slowly from" if change.ramp else "changes at"
    of = f"'{row.part}'" if row.part else "picks"
    tool = f" in {row.tool}" if row.tool else ""
    return f"{what} of {of}{tool} {how} {row.shift} on, by {size}"
