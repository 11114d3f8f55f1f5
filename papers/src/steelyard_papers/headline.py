"""The start of each page: the paper's numbers beside its method here and ours.

A printed number counts as reproduced if it lies within two standard deviations of the results of
the paper's own method over independent seeds (about 95 % of them). A number without seeds counts if
it agrees to the printed digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.report import Section, Table

_SPREAD_SIGMA = 2.0  # printed spread, in standard deviations
HEAD = ("what", "unit", "paper", "paper's method here", "± 2 std", "ours", "± 2 std", "met")
_RULE = (
    "Reproduced (green): the printed number lies within two standard deviations, over seeds, of"
    " the results of the paper's own method; without seeds, it agrees to the printed digits."
)


@dataclass(frozen=True, eq=False)
class Claim:
    """A number of a paper, and the same by its method here and by ours.

    Attributes:
        what: it is, in words
        unit: of all of them; empty for a plain number
        paper: as printed; None where the paper prints none
        here: by the paper's method, one for each seed; one alone where nothing is random; none
            where the paper's method has no such number
        ours: the same by our method
        digit: the printed number is known to this, for numbers without seeds
    """

    what: str
    unit: str
    paper: float | None
    here: Sequence[float] = ()
    ours: Sequence[float] = ()
    digit: float = 0.0

    @property
    def met(self) -> bool | None:
        """Whether the paper's own method reproduces the number; None if incomparable."""
        if self.paper is None or not len(self.here):
            return None
        mean, spread = _summary(self.here)
        return bool(abs(self.paper - _number(mean)) <= (self.digit if spread is None else spread))

    @property
    def row(self) -> tuple[str | float | None, ...]:
        """Cells under `HEAD`."""
        words = {True: "yes", False: "no", None: ""}[self.met]
        return self.what, self.unit, self.paper, *_summary(self.here), *_summary(self.ours), words


def _number(value: float | None) -> float:
    if value is None:
        return np.nan
    return value


def _summary(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Mean and two standard deviations; None where there are too few."""
    if not len(values):
        return None, None
    if len(values) == 1:
        return values[0], None  # a count stays a whole number
    return float(np.mean(values)), float(_SPREAD_SIGMA * np.std(values, ddof=1))


def opening(
    claims: Sequence[Claim], missing: str, *, note: str = "", findings: Sequence[str] = ()
) -> tuple[list[str], list[Section]]:
    """The first section of a page: summary sentence, table and findings.

    Args:
        claims: of the paper
        missing: what was not reproduced, and why
        note: under the table, after the criterion
        findings: in sentences
    """
    met = [claim.met for claim in claims]
    counted = f"{sum(x is True for x in met)} of {sum(x is not None for x in met)}"
    rows = [claim.row for claim in claims]
    words = f"{_RULE} {note}".strip()
    table = Table("What the paper prints, its method here, and ours.", HEAD, rows, words, met)
    return (
        [f"{counted} printed numbers are reproduced by the paper's own method here."],
        [
            Section("Paper, paper's method here, ours", [], [table]),
            Section("In short", [f"Not reproduced: {missing}", *findings]),
        ],
    )
