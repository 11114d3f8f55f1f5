"""Which assumption makes a printed number come out: `steelyard reproduce NAME --explain ROW`.

A paper leaves assumptions x open: the step of an encoder, the share of a residual that is white
noise, a tilt of the base between two runs. For one printed number p and one assumption, the paper's
method is run with several values of x, several seeds each. p comes out at x if

    |p - mean(x)| <= 2 std(x) + half of the last printed digit

This is the criterion of the pages, too (`Scatter.holds`). Between two tried values whose means lie
on both sides of p, x is interpolated and tried again; the ends of the band in which p comes out
are interpolated between tried values. A bound is judged from one side: p comes out wherever the
least possible value does not exceed it.

Other numbers that the same table prints are computed in the same runs. They tell mechanisms apart:
an assumption that makes p come out but leaves one of them off by more than a fifth and its scatter
is no explanation, and the answer says so. Of the others it says how many lie within their scatter,
and how far off the farthest is (`agreement`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard.drawing import Band, Curve, Panel, Plot
from steelyard.errors import UnknownName
from steelyard.report import Page, Section, Table
from steelyard_papers import PAPERS
from steelyard_papers.sharing import Progress, part_of, versions, with_spread

Numbers = Mapping[str, Sequence[float]]
"""Results, one for each seed, by the name of the printed number."""

SPREAD_SIGMA = 2.0
"""Scatter that counts as equal, in standard deviations."""

_MIN_RELATIVE_STD = 1e-9  # of a mean; a smaller deviation is none
_MAX_COMPANION_ERROR = 0.2  # of another printed number, relative
_REFINEMENTS = 4  # at most, between two tried values


@dataclass(frozen=True, eq=False)
class Assumption:
    """Something that a paper does not print, and what its numbers become with it.

    Attributes:
        name: in words
        unit: of its values; empty for a plain number
        values: that are tried, in ascending order
        plausible: lowest and highest value that such an arm, hand or sensor can have
        reason: where this range comes from
        numbers: from a value to the printed numbers by the paper's method, one for each seed
    """

    name: str
    unit: str
    values: tuple[float, ...]
    plausible: tuple[float, float]
    reason: str
    numbers: Callable[[float], Numbers]


@dataclass(frozen=True, eq=False)
class OpenRow:
    """A printed number that depends on an assumption, or that nothing seems to explain.

    Attributes:
        what: the number is
        unit: of it
        printed: by name: this number first, then others that the same runs give
        digit: half of its last printed digit
        assumptions: that the paper leaves open
        is_bound: whether results are the least possible values
        other_digits: half of the last printed digit of others, by name; `digit` where it is the
            same
    """

    what: str
    unit: str
    printed: Mapping[str, float]
    digit: float
    assumptions: Sequence[Assumption]
    is_bound: bool = False
    other_digits: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the number among `printed`."""
        return next(iter(self.printed))

    @property
    def others(self) -> tuple[str, ...]:
        """The names of the other numbers."""
        return tuple(name for name in self.printed if name != self.name)


@dataclass(frozen=True)
class Scatter:
    """Results of one value: mean and standard deviation over the seeds."""

    mean: float
    std: float

    @classmethod
    def of(cls, runs: Sequence[float]) -> Scatter:
        """Of the results of several seeds; one alone has no deviation.

        Args:
            runs: one for each seed
        """
        values = np.asarray(runs, dtype=float)
        std = 0.0
        mean = float(values.mean())
        if len(values) > 1:
            std = float(values.std(ddof=1))
        if std < _MIN_RELATIVE_STD * abs(mean):
            std = 0.0
        return cls(mean, std)

    def holds(self, printed: float, digit: float, *, is_bound: bool = False) -> bool:
        """Whether a printed number lies within the scatter, or is not below the bound.

        Args:
            printed: the number
            digit: half of its last digit
            is_bound: whether the mean is the least possible value
        """
        allowed = self.allowed(digit)
        if is_bound:
            return bool(self.mean <= printed + allowed)
        return bool(abs(self.mean - printed) <= allowed)

    def allowed(self, digit: float) -> float:
        """The largest deviation from the mean of a number that is called equal.

        Args:
            digit: half of the last digit of the number
        """
        return SPREAD_SIGMA * self.std + digit

    def __str__(self) -> str:
        if self.std:
            return with_spread(self.mean, SPREAD_SIGMA * self.std)
        return f"{self.mean:.4g}"


def all_come_out(runs: Array, printed: Array) -> bool:
    """Whether no number of one experiment is off by more than a fifth and its scatter.

    Args:
        runs: results of each seed, (seeds, k)
        printed: (k,)
    """
    scatters = [Scatter.of(column.tolist()) for column in runs.T]
    return all(
        scatter.holds(number, _MAX_COMPANION_ERROR * abs(number))
        for scatter, number in zip(scatters, printed.tolist(), strict=True)
    )


@dataclass(frozen=True)
class Agreement:
    """How well several printed numbers come out together.

    Attributes:
        held: how many lie within their scatter
        count: of them all
        farthest: largest deviation of a mean over the printed number, [%]
    """

    held: int
    count: int
    farthest: float

    @property
    def words(self) -> str:
        """How many, and how far off the farthest is, rounded up."""
        percent = np.ceil(round(self.farthest, 6))
        return f"{self.held} of {self.count} within the scatter, all within {percent:.0f} %"


def agreement(found: Sequence[tuple[Scatter, float, float]]) -> Agreement:
    """How many printed numbers come out, by the criterion of all pages.

    Args:
        found: for each number its scatter here, the number as printed, and half of its last digit
    """
    held = sum(scatter.holds(number, digit) for scatter, number, digit in found)
    off = [100 * abs(scatter.mean / number - 1) for scatter, number, _ in found]
    return Agreement(held, len(found), max(off, default=0.0))


@dataclass(frozen=True, eq=False)
class Search:
    """One assumption, tried over its range.

    Attributes:
        row: the printed number
        assumption: that was tried
        found: scatter of every number, by value and name, in ascending order of the values
    """

    row: OpenRow
    assumption: Assumption
    found: Mapping[float, Mapping[str, Scatter]]

    @property
    def values(self) -> Array:
        """The values that were tried, (N,)."""
        return np.array(list(self.found))

    @property
    def scatter(self) -> list[Scatter]:
        """That of the row's number, one for each value."""
        return [numbers[self.row.name] for numbers in self.found.values()]

    @property
    def comes_out(self) -> Mask:
        """At which of the values the printed number comes out, (N,)."""
        return np.array([self.holds(value, self.row.name) for value in self.found])

    def holds(self, value: float, name: str) -> bool:
        """Whether the row's number comes out at a value, or another one is not contradicted there.

        Args:
            value: one that was tried
            name: of the number
        """
        scatter = self.found[value][name]
        printed = self.row.printed[name]
        if name != self.row.name:
            digit = _MAX_COMPANION_ERROR * abs(printed)
            return scatter.holds(printed, digit)
        return scatter.holds(printed, self.row.digit, is_bound=self.row.is_bound)

    @property
    def best(self) -> float:
        """The value that contradicts the fewest of the printed numbers.

        Of equals a plausible one, of these the one with the most numbers within their scatter, and
        of these the nearest.
        """
        printed = self.row.printed[self.row.name]
        low, high = self.assumption.plausible

        def merit(value: float) -> tuple[int, bool, int, float]:
            off = abs(self.found[value][self.row.name].mean - printed)
            if not self.holds(value, self.row.name):
                return -1, False, 0, -off
            held = sum(self.holds(value, name) for name in self.row.printed)
            if self.row.is_bound:
                return held, low <= value <= high, 0, -value
            return held, low <= value <= high, self._agreement_at(value).held, -off

        return max(self.found, key=merit)

    @property
    def is_plausible(self) -> bool:
        """Whether the best value lies in the plausible range."""
        low, high = self.assumption.plausible
        return low <= self.best <= high

    @property
    def contradicted(self) -> tuple[str, ...]:
        """Names of other printed numbers that do not come out at the best value."""
        return tuple(name for name in self.row.printed if not self.holds(self.best, name))

    @property
    def explains(self) -> bool:
        """Whether a plausible value makes every printed number come out."""
        return bool(self.comes_out.any() and self.is_plausible and not self.contradicted)

    @property
    def sentence(self) -> str:
        """What was found."""
        unit = f" {self.assumption.unit}".rstrip()
        best = self.best
        number = f"{self.row.printed[self.row.name]:g} {self.row.unit}".rstrip()
        low, high = self.values[0], self.values[-1]
        if not self.comes_out.any():
            near = self.found[best][self.row.name]
            return (
                f"{self.assumption.name}: {number} comes out for no value from {low:.3g} to"
                f" {high:.3g}{unit}; nearest is {near} at {best:.3g}{unit}."
            )
        words = f"{self.assumption.name}: {number} comes out at {best:.3g}{unit}"
        words += f" ({self._range_words})"
        if not self.is_plausible:
            words += f", outside of the plausible {self._plausible_words}"
        return f"{words}.{self._companion_words}"

    @property
    def bands(self) -> list[tuple[float, float]]:
        """Where the printed number comes out: lowest and highest value of each band.

        Mean and deviation are taken as straight between tried values. A band ends where the
        printed number leaves the scatter, or with the last value that was tried.
        """
        found: list[tuple[float, float]] = []
        inside = np.flatnonzero(self.comes_out)
        for run in np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1):
            if len(run):
                first, last = int(run[0]), int(run[-1])
                found.append((self._edge(first, first - 1), self._edge(last, last + 1)))
        return found

    def _edge(self, inside: int, outside: int) -> float:
        """The value between two neighbours at which the printed number leaves the scatter."""
        values = self.values
        if not 0 <= outside < len(values):
            return float(values[inside])
        printed = self.row.printed[self.row.name]
        near, far = self.scatter[inside], self.scatter[outside]
        sign = np.sign(far.mean - printed)
        excess = [
            sign * (each.mean - printed) - each.allowed(self.row.digit) for each in (near, far)
        ]
        share = excess[0] / (excess[0] - excess[1])
        return float(values[inside] + share * (values[outside] - values[inside]))

    @property
    def _range_words(self) -> str:
        if self.row.is_bound:
            return f"at least, of {self.values[0]:.3g} to {self.values[-1]:.3g}"
        bands = " and from ".join(f"{low:.4g} to {high:.4g}" for low, high in self.bands)
        return f"within its scatter from {bands}"

    @property
    def _plausible_words(self) -> str:
        low, high = self.assumption.plausible
        return f"{low:.3g} to {high:.3g} {self.assumption.unit}".rstrip()

    @property
    def _companion_words(self) -> str:
        if not self.row.others:
            return ""
        if self.contradicted:
            return f" But there {'; '.join(self._contradictions)}."
        found = self._agreement_at(self.best)
        if found.count == 1:
            name = self.row.others[0]
            other = f"{name}, printed {self.row.printed[name]:g}, is {self.found[self.best][name]}"
            return f" There {other}."
        return f" The other printed numbers there: {found.words}."

    @property
    def _contradictions(self) -> list[str]:
        """The numbers that do not come out at the best value, with what they would be."""
        at = self.found[self.best]
        return [
            f"{name} would be {at[name]} (printed {self.row.printed[name]:g})"
            for name in self.contradicted
        ]

    def _agreement_at(self, value: float) -> Agreement:
        """How well the other printed numbers come out at a value."""
        at = self.found[value]
        row = self.row
        digits = {name: row.other_digits.get(name, row.digit) for name in row.others}
        return agreement([(at[name], row.printed[name], digits[name]) for name in row.others])

    @property
    def panel(self) -> Panel:
        """The number over the assumption, the printed one, and the plausible range."""
        x = self.values
        mean = np.array([each.mean for each in self.scatter])
        half = SPREAD_SIGMA * np.array([each.std for each in self.scatter])
        printed = np.full(len(x), self.row.printed[self.row.name])
        bottom = float(min((mean - half).min(), printed[0]))
        top = float(max((mean + half).max(), printed[0]))
        margin = 0.05 * (top - bottom)
        low, high = np.clip(self.assumption.plausible, x[0], x[-1])
        ends = np.array([low, high])
        area = np.full(2, bottom - margin), np.full(2, top + margin)
        return Panel(
            self.assumption.name,
            self.assumption.unit or "value",  # the title has the name
            f"{self.row.name} [{self.row.unit}]" if self.row.unit else self.row.name,
            [
                Band("plausible range", ends, *area, colour="#9aa5ab"),
                Band("two standard deviations", x, mean - half, mean + half),
                Curve("paper's method here", x, mean),
                Curve("printed", x, printed, style="dashed", colour="#c0392b"),
            ],
        )


@dataclass(frozen=True, eq=False)
class Explanation:
    """Every assumption of one row.

    Attributes:
        paper: its label
        row: the printed number
        searches: one for each assumption
    """

    paper: str
    row: OpenRow
    searches: Sequence[Search] = field(default_factory=tuple)

    @property
    def answer(self) -> list[str]:
        """Whether an assumption explains the number, and what each of them gives."""
        explaining = [each.assumption.name for each in self.searches if each.explains]
        number = f"{self.row.what}, printed {self.row.printed[self.row.name]:g} {self.row.unit}"
        if explaining:
            first = f"{number.rstrip()}: explained by {', or '.join(explaining)}."
        else:
            first = f"{number.rstrip()}: none of the assumptions that were tried explains it."
        return [first, *(each.sentence for each in self.searches)]

    @property
    def page(self) -> Page:
        """The answer, the plots and the numbers."""
        plot = Plot(
            "The printed number over each assumption. Grey: the plausible range.",
            [each.panel for each in self.searches],
            columns=min(2, len(self.searches)),
        )
        ranges = [
            (each.assumption.name, each._plausible_words, each.assumption.reason)
            for each in self.searches
        ]
        head = ("assumption", "plausible", "why")
        tables = [_table(each) for each in self.searches]
        return Page(
            f"{self.paper}: {self.row.what}, explained",
            self.answer,
            [
                Section("Assumptions that the paper leaves open", [], [plot]),
                Section("Ranges", [], [Table("Plausible ranges.", head, ranges)]),
                Section("All values", [], tables),
            ],
            versions(),
        )


def _table(search: Search) -> Table:
    names = list(search.row.printed)
    rows: list[tuple[str | float | None, ...]] = [
        (f"{value:.4g}", *(str(numbers[name]) for name in names))
        for value, numbers in search.found.items()
    ]
    printed = ("printed", *(f"{search.row.printed[name]:g}" for name in names))
    name = f"{search.assumption.name} [{search.assumption.unit}]".replace(" []", "")
    words = f"{search.assumption.name}: mean over seeds, and two standard deviations."
    return Table(words, (name, *names), [*rows, printed])


def searched(row: OpenRow, assumption: Assumption, progress: Progress | None = None) -> Search:
    """The numbers at every value of one assumption, refined where the printed one is crossed.

    Args:
        row: the printed number
        assumption: to try
        progress: called with the share that is done
    """
    report = part_of(progress, 0.0, 1.0)
    found: dict[float, dict[str, Scatter]] = {}
    for k, value in enumerate(assumption.values):
        found[value] = _scatters(assumption, value)
        report((k + 1) / (len(assumption.values) + 1))
    _refine(row, assumption, found)
    report(1.0)
    return Search(row, assumption, {value: found[value] for value in sorted(found)})


def _scatters(assumption: Assumption, value: float) -> dict[str, Scatter]:
    return {name: Scatter.of(runs) for name, runs in assumption.numbers(value).items()}


def _refine(row: OpenRow, assumption: Assumption, found: dict[float, dict[str, Scatter]]) -> None:
    """Adds values between two whose means lie on both sides of the printed number."""
    printed = row.printed[row.name]
    for _ in range(_REFINEMENTS):
        values = sorted(found)
        off = np.array([found[value][row.name].mean - printed for value in values])
        crossings = np.flatnonzero(off[1:] * off[:-1] < 0)
        nearest = found[values[int(np.abs(off).argmin())]][row.name]
        close = abs(nearest.mean - printed) <= max(0.5 * nearest.std, row.digit)
        if close or not len(crossings):
            return
        k = int(crossings[0])
        share = off[k] / (off[k] - off[k + 1])
        share = float(np.clip(share, 0.1, 0.9))  # never at an end, where nothing new is learnt
        value = values[k] + share * (values[k + 1] - values[k])
        found[value] = _scatters(assumption, value)


def explaining_runs(row: OpenRow) -> dict[str, list[float]]:
    """Results of a row under each assumption that explains its printed number, by words.

    Args:
        row: prepared
    """
    found = {}
    for assumption in row.assumptions:
        search = searched(row, assumption)
        if search.explains:
            words = f"{assumption.name}: {search.best:.2g} {assumption.unit}".rstrip()
            found[words] = list(assumption.numbers(search.best)[row.name])
    return found


def open_rows(paper: str) -> Mapping[str, Callable[[], OpenRow]]:
    """The rows of a paper that can be explained, by name; each is prepared when it is called.

    Args:
        paper: one of `PAPERS`
    """
    if paper not in PAPERS:
        raise UnknownName(f"no paper '{paper}'; there are {', '.join(PAPERS)}")
    rows: Mapping[str, Callable[[], OpenRow]] = import_module(f"{PAPERS[paper]}.open_rows").ROWS
    return rows


def explain(paper: str, row: str, progress: Progress | None = None) -> Explanation:
    """Tries every assumption that a paper leaves open about one of its numbers.

    Args:
        paper: one of `PAPERS`
        row: one of `open_rows(paper)`
        progress: called with the share that is done
    """
    rows = open_rows(paper)
    if row not in rows:
        raise UnknownName(f"{paper} has no row '{row}' to explain; there are {', '.join(rows)}")
    prepared = rows[row]()
    count = len(prepared.assumptions)
    parts = (partial(part_of, progress, k / count, (k + 1) / count) for k in range(count))
    searches = [
        searched(prepared, assumption, part())
        for assumption, part in zip(prepared.assumptions, parts, strict=True)
    ]
    return Explanation(paper, prepared, searches)
