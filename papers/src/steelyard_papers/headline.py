"""The start of each page: the paper's numbers beside its method here and ours, one row for each.

The paper's own method is run here, over independent seeds, under each assumption that the paper
leaves open and that was tried. No number stands there without a row of `--explain` that tries
assumptions about it, or the words on what it rests. Under one assumption a printed number is

| here | rule |
|---|---|
| equal | if it lies within the scatter of the runs (`Scatter.holds`) |
| better | if it does not, and the mean of the runs is nearer to the ideal value |
| worse | otherwise |

A number has that state if all assumptions agree on it. If they do not, or if all that decides the
number is assumed, it depends. An assumption that other numbers of the same experiment exclude makes
no number equal, and does not decide between better and worse. Every row shows the assumption of the
page, the first one, and names it: an assumption that was chosen to fit a number must not stand
beside it as if it were a prediction.
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
from steelyard_papers.explain import SPREAD_SIGMA, Scatter, open_rows

_PRINTED_DIGITS = 6  # of a paper's number, at most
_NAMED_ASSUMPTIONS = 2  # that give a number; of others the row says how many
HEAD = (
    "what",
    "unit",
    "paper",
    "paper's method here",
    "± 2 std",
    "ours",
    "± 2 std",
    "assumed here",
    "state",
)
_STRUCTURE_HEAD = ("what", "paper", "here", "equal")
_RULE = (
    "Equal: the printed number lies within two standard deviations, over seeds, and its rounding of"
    " the mean result of the paper's own method; without seeds, it agrees to the printed digits."
    " Better or worse here: it does not, and the mean here is nearer to the ideal value, or farther"
    " from it; every arm here is simulated, and may be kinder than a real one. Where the paper"
    " leaves an assumption open, the state is the one on which all assumptions that were tried"
    " agree; otherwise it depends. Each row shows the assumption of this page, and a number that"
    " depends names those that give it. {explained}"
)

_EXPLAINED = (
    "`steelyard reproduce {paper} --explain ROW` tries them, for example {row}; `--explain list`"
    " names all rows."
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
        here: by the paper's method; where assumptions were tried, the one of this page first
        ours: the same by our method
        digit: the printed number is known to this
        ideal: value of a perfect method: the truth, or 0 for an error or a time
        row: that `--explain` takes for it; needed where several assumptions were tried, and where
            nothing says what the number rests on
        contradicted: assumptions that other numbers of the same experiment exclude
        rests_on: what is assumed, where nothing that the paper prints decides the number
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
    rests_on: str = ""

    def __post_init__(self) -> None:
        if len(self._variants) > 1 and not self.row:
            raise UnknownName(f"{self.what}: assumptions need a row that `--explain` takes")
        if not self.row and not self.rests_on:
            raise UnknownName(
                f"{self.what}: a simulated number rests on assumptions, so give `row` or `rests_on`"
            )

    @property
    def state(self) -> State:
        """What became of the number."""
        states = set(self._states.values())
        if len(states) != 1:
            return State.DEPENDS
        state = states.pop()
        if state is State.EQUAL and self.contradicted:
            return State.DEPENDS
        if state is not State.EQUAL and self.rests_on:
            return State.DEPENDS
        return state

    @property
    def cells(self) -> tuple[str | float | None, ...]:
        """Cells under `HEAD`."""
        shown = next(iter(self._variants))
        ours: Sequence[float] = ()
        if isinstance(self.ours, Mapping):
            ours = self.ours.get(shown, ())
        else:
            ours = self.ours
        numbers = (*_summary(self._variants[shown]), *_summary(ours))
        return self.what, self.unit, self._printed, *numbers, _unbroken(shown), self._words

    @property
    def _printed(self) -> str:
        """The printed number as text, with all digits that the paper has."""
        if not self.digit:
            return f"{self.paper:.{_PRINTED_DIGITS}g}"
        decimals = max(0, round(-np.log10(2 * self.digit)))
        return f"{self.paper:.{decimals}f}"

    @property
    def _variants(self) -> Mapping[str, Sequence[float]]:
        if isinstance(self.here, Mapping):
            return self.here
        return {"": self.here}

    @property
    def _states(self) -> dict[str, State]:
        """The state under each assumption that is not contradicted."""
        return {
            name: self._state_of(values)
            for name, values in self._variants.items()
            if name not in self.contradicted
        }

    def _state_of(self, values: Sequence[float]) -> State:
        """The state under one assumption."""
        if not len(values):
            return State.WORSE
        scatter = Scatter.of(values)
        if scatter.holds(self.paper, self.digit):
            return State.EQUAL
        if abs(scatter.mean - self.ideal) < abs(self.paper - self.ideal):
            return State.BETTER
        return State.WORSE

    @property
    def _words(self) -> str:
        """The state, and the assumption that it depends on."""
        if self.state is not State.DEPENDS:
            return str(self.state)
        found = [name for name, state in self._states.items() if state is State.EQUAL]
        if found:
            return _unbroken(f"{self.state}: {self._results(found)}")
        if self.rests_on:
            return f"{self.state} on {self.rests_on}; nothing that was tried gives it"
        return _unbroken(f"{self.state}: {self._disagreement}; nothing that was tried gives it")

    def _results(self, names: Sequence[str]) -> str:
        """What assumptions give: the first ones in full, and how many more."""
        shown = names[:_NAMED_ASSUMPTIONS]
        words = "; or ".join(f"{_in_words(self._variants[name])} with {name}" for name in shown)
        if len(names) > len(shown):
            words += f"; or with {len(names) - len(shown)} more"
        return words

    @property
    def _disagreement(self) -> str:
        """Under which assumptions the number is better here, and under which it is worse."""
        names: dict[State, list[str]] = {}
        for name, state in self._states.items():
            names.setdefault(state, []).append(name)
        parts = []
        for state, found in names.items():
            words = f"{state} with {found[0]}"
            if len(found) > 1:
                words += f" and {len(found) - 1} more"
            parts.append(words)
        return "; ".join(parts)


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


def _unbroken(words: str) -> str:
    """The same words, without a per cent sign at the start of a line."""
    return words.replace(" %", "\u00a0%")


def _summary(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Mean and two standard deviations; None where there are too few."""
    if not len(values):
        return None, None
    if len(values) == 1:
        return float(values[0]), None
    return float(np.mean(values)), float(SPREAD_SIGMA * np.std(values, ddof=1))


def _in_words(values: Sequence[float]) -> str:
    """Mean and two standard deviations."""
    if not len(values):
        return "nothing"
    return str(Scatter.of(values))


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
    explained = ""
    if named:
        explained = _EXPLAINED.format(paper=paper, row=named[-1])
    words = f"{_RULE.format(explained=explained)} {note}".strip()
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
        f" {number[State.WORSE]} worse here; {number[State.DEPENDS]}"
        f" {_verb('depend', number[State.DEPENDS])} on an assumption that the paper leaves open."
    )
    if not counts:
        return sentence
    agree = sum(count.paper == count.here for count in counts)
    return f"{sentence} Of {len(counts)} counts of its structure, {agree} {_verb('agree', agree)}."


def _verb(plural: str, count: int) -> str:
    """A verb that goes with a count."""
    if count == 1:
        return f"{plural}s"
    return plural
