"""The start of each page: the paper's numbers beside its method here and ours, one row for each.

The paper's own method is run here, over independent seeds, under each assumption that the paper
leaves open and that was tried. A printed number lies within the scatter of an assumption if it is
within two standard deviations (about 95 % of the runs) and its own rounding; where nothing is
random, if it agrees to the printed digits. Four states follow:

| state | rule |
|---|---|
| equal | within the scatter under every assumption |
| depends | within it under some assumptions only |
| better here | within it under none, and nearer to the ideal value here |
| worse here | within it under none, and farther from the ideal value here |

Structure, such as the number of base parameters, is counted apart. An assumption may stand on a
page only where `steelyard reproduce NAME --explain ROW` tries it over its range.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from steelyard.errors import UnknownName
from steelyard.report import Section, Table
from steelyard_papers.explain import open_rows

_SPREAD_SIGMA = 2.0  # printed spread, in standard deviations
_PRINTED_DIGITS = 6  # of a paper's number, at most
HEAD = ("what", "unit", "paper", "paper's method here", "± 2 std", "ours", "± 2 std", "state")
_STRUCTURE_HEAD = ("what", "paper", "here", "equal")
_RULE = (
    "Equal: the printed number lies within two standard deviations, over seeds, and its rounding of"
    " the results of the paper's own method, under every assumption that was tried; without seeds,"
    " it agrees to the printed digits. Better or worse here: it does not, and the results here are"
    " nearer to the ideal value, or farther from it. Depends: an assumption decides, which the"
    " paper leaves open."
    " `steelyard reproduce {paper} --explain ROW` tries them: {rows}."
)

Runs = Sequence[float] | Mapping[str, Sequence[float]]
"""Results, one for each seed; by assumption where several were tried."""


class State(StrEnum):
    """What became of a printed number."""

    EQUAL = "equal"
    BETTER = "better here"
    WORSE = "worse here"
    DEPENDS = "depends"


@dataclass(frozen=True, eq=False)
class Claim:
    """A number of a paper, and the same by its method here and by ours.

    Attributes:
        what: it is, in words
        unit: of all of them; empty for a plain number
        paper: as printed
        here: by the paper's method; the row shows the assumption that comes nearest
        ours: the same by our method
        digit: the printed number is known to this
        ideal: value of a perfect method: the truth, or 0 for an error or a time
        row: that `--explain` takes for it; needed where several assumptions were tried
        contradicted: assumptions that other numbers of the same experiment exclude
    """

    what: str
    unit: str
    paper: float
    here: Runs
    ours: Runs = ()
    digit: float = 0.0
    ideal: float = 0.0
    row: str = ""
    contradicted: Collection[str] = ()

    def __post_init__(self) -> None:
        if len(self._variants) > 1 and not self.row:
            raise UnknownName(f"{self.what}: assumptions need a row that `--explain` takes")

    @property
    def state(self) -> State:
        """What became of the number."""
        count = len(self._equal)
        if count == len(self._variants):
            return State.EQUAL
        if count:
            return State.DEPENDS
        mean = _mean(self._variants[self._nearest])
        if abs(mean - self.ideal) < abs(self.paper - self.ideal):
            return State.BETTER
        return State.WORSE

    @property
    def cells(self) -> tuple[str | float | None, ...]:
        """Cells under `HEAD`."""
        nearest = self._nearest
        ours: Sequence[float] = ()
        if isinstance(self.ours, Mapping):
            ours = self.ours.get(nearest, ())
        else:
            ours = self.ours
        shown = _summary(self._variants[nearest])
        printed = f"{self.paper:.{_PRINTED_DIGITS}g}"  # as text: all digits that the paper has
        return self.what, self.unit, printed, *shown, *_summary(ours), self._words

    @property
    def _variants(self) -> Mapping[str, Sequence[float]]:
        if isinstance(self.here, Mapping):
            return self.here
        return {"": self.here}

    @property
    def _nearest(self) -> str:
        """The assumption whose mean comes nearest to the printed number, contradicted ones last."""

        def distance(name: str) -> tuple[bool, float]:
            return name in self.contradicted, abs(_mean(self._variants[name]) - self.paper)

        return min(self._variants, key=distance)

    @property
    def _words(self) -> str:
        """The state, and the assumption that it depends on."""
        if self.state is not State.DEPENDS:
            return str(self.state)
        return f"{self.state}: equal with {'; or '.join(self._equal)}"

    @property
    def _equal(self) -> list[str]:
        """The assumptions under which the printed number comes out."""
        return [
            name
            for name, values in self._variants.items()
            if name not in self.contradicted and self._is_equal(values)
        ]

    def _is_equal(self, values: Sequence[float]) -> bool:
        mean, spread = _summary(values)
        if mean is None:
            return False
        return bool(abs(self.paper - mean) <= self.digit + (spread or 0.0))


@dataclass(frozen=True)
class Count:
    """A number of the structure: how many parameters, coefficients or contacts.

    Attributes:
        what: is counted
        paper: as printed
        here: as found
    """

    what: str
    paper: int
    here: int


def _mean(values: Sequence[float]) -> float:
    if not len(values):
        return np.inf
    return float(np.mean(values))


def _summary(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Mean and two standard deviations; None where there are too few."""
    if not len(values):
        return None, None
    if len(values) == 1:
        return float(values[0]), None
    return float(np.mean(values)), float(_SPREAD_SIGMA * np.std(values, ddof=1))


def opening(
    paper: str,
    claims: Sequence[Claim],
    missing: str,
    *,
    counts: Sequence[Count] = (),
    note: str = "",
    findings: Sequence[str] = (),
) -> tuple[list[str], list[Section]]:
    """The first section of a page: summary sentence, tables and findings.

    Args:
        paper: its label
        claims: one for each printed number
        missing: printed numbers that are left out, and why
        counts: of the structure
        note: under the table, after the rule
        findings: in sentences
    """
    states = [claim.state for claim in claims]
    met = [_GOOD.get(state) for state in states]
    named = list(dict.fromkeys(claim.row for claim in claims if claim.row))
    _require_rows(paper, named)
    words = f"{_RULE.format(paper=paper, rows=', '.join(named))} {note}".strip()
    rows = [claim.cells for claim in claims]
    parts = [Table("What the paper prints, its method here, and ours.", HEAD, rows, words, met)]
    if counts:
        agree = [count.paper == count.here for count in counts]
        cells = [
            (count.what, count.paper, count.here, "yes" if equal else "no")
            for count, equal in zip(counts, agree, strict=True)
        ]
        parts.append(Table("Structure.", _STRUCTURE_HEAD, cells, "", agree))
    return (
        [_summary_sentence(states, counts)],
        [
            Section("Paper, paper's method here, ours", [], parts),
            Section("In short", [f"Left out: {missing}", *findings]),
        ],
    )


def _require_rows(paper: str, named: Sequence[str]) -> None:
    """Refuses rows that `--explain` does not know."""
    for row in named:
        if row not in open_rows(paper):
            raise UnknownName(f"{paper} has no row '{row}' that `--explain` takes")


_GOOD: Mapping[State, bool] = {State.EQUAL: True, State.BETTER: True, State.WORSE: False}


def _summary_sentence(states: Sequence[State], counts: Sequence[Count]) -> str:
    """How many numbers have which state."""
    number = {state: sum(x is state for x in states) for state in State}
    sentence = (
        f"Of {len(states)} printed numbers, the paper's own method gives"
        f" {number[State.EQUAL]} equal within its scatter, {number[State.BETTER]} better and"
        f" {number[State.WORSE]} worse here; {number[State.DEPENDS]} depend on an assumption that"
        " the paper leaves open."
    )
    if not counts:
        return sentence
    agree = sum(count.paper == count.here for count in counts)
    return f"{sentence} Of {len(counts)} counts of its structure, {agree} agree."
