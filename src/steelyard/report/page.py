"""What a page says, before it becomes HTML: an answer, sections of tables and plots, and every setting.

A page is data: `page_html` draws it, `page_facts` gives the same numbers as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from steelyard.arrays import Array
from steelyard.errors import InvalidSamples


def _same_length(name: str, *columns: Array | Sequence[str]) -> None:
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise InvalidSamples(f"curve '{name}': x and y need one length, got {lengths}")


@dataclass(frozen=True, eq=False)
class Curve:
    """One line of a plot.

    Attributes:
        name: in the legend; curves of one name share a colour
        x: (N,), or N words for bars
        y: (N,)
        style: 'line', 'dashed', 'dots', 'bars' or 'steps'
        y_std: half of the error bars over 1.96, (N,); none by default
        colour: as '#2266aa'; by the name when empty: 'measured' grey, 'truth' red, the others in turn
    """

    name: str
    x: Array | Sequence[str]
    y: Array
    style: Literal["line", "dashed", "dots", "bars", "steps"] = "line"
    y_std: Array | None = None
    colour: str = ""

    def __post_init__(self) -> None:
        _same_length(self.name, self.x, self.y, *([] if self.y_std is None else [self.y_std]))


@dataclass(frozen=True, eq=False)
class Band:
    """An area between two lines: an interval, a threshold.

    Attributes:
        name: in the legend
        x: (N,)
        low: (N,)
        high: (N,)
        colour: as '#2266aa'; that of the next curve of the panel when empty
    """

    name: str
    x: Array
    low: Array
    high: Array
    colour: str = ""

    def __post_init__(self) -> None:
        _same_length(self.name, self.x, self.low, self.high)


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes.

    Attributes:
        title: above it
        x: label with its unit
        y: label with its unit
        curves: lines and bands
        marks: x of vertical lines, each with a word
        log_y: whether y is logarithmic
        equal: whether both axes have one scale
        categories: order of the words on x, for bars
    """

    title: str
    x: str
    y: str
    curves: Sequence[Curve | Band]
    marks: Sequence[tuple[float, str]] = ()
    log_y: bool = False
    equal: bool = False
    categories: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Plot:
    """Panels under one caption.

    Attributes:
        caption: a sentence: what to see in it
        panels: side by side, one in a row on a phone
        columns: panels in a row on a wide screen, 1 to 3
    """

    caption: str
    panels: Sequence[Panel]
    columns: int = 2


@dataclass(frozen=True)
class Table:
    """Rows under one caption. Numbers are shown with four significant digits, None as an empty cell.

    Attributes:
        caption: a sentence: what stands in it
        head: of the columns
        rows: cells, numbers or words
        note: below it
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]
    note: str = ""


@dataclass(frozen=True, eq=False)
class Section:
    """A part of a page.

    Attributes:
        title: of the part
        text: paragraphs
        parts: tables and plots in their order
    """

    title: str
    text: Sequence[str] = ()
    parts: Sequence[Table | Plot] = ()


@dataclass(frozen=True, eq=False)
class Page:
    """One report.

    Attributes:
        title: of the page
        answer: sentences that answer the reader's question, with uncertainty, before anything else
        sections: in the order in which a doubting colleague asks
        settings: every setting, version and input digest, by name
        doubts: why not to believe the answer, a sentence each; shown right after it
    """

    title: str
    answer: Sequence[str]
    sections: Sequence[Section]
    settings: Mapping[str, str] = field(default_factory=dict)
    doubts: Sequence[str] = ()
