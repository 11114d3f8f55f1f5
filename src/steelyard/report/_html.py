"""A page as one HTML file: what each template shows, prepared from the data of a page.

The file needs no network and no second file. The drawing library is stored in it once, compressed
(gzip, base64), and the browser unpacks it. Plots and scenes are JSON in the page.
"""

from __future__ import annotations

import base64
import gzip
import importlib.util
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from steelyard._templates import render
from steelyard.drawing import Panel, Plot, Scene, panel_figure
from steelyard.errors import MissingExtra

if TYPE_CHECKING:
    from steelyard.report._page import Cell, Page, Section, Table


_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?( %)?")
_VALUE_WITH_SPREAD = re.compile(r"[-+.e\d]+ (±|\+-) [-+.e\d]+")
_MIN_COLUMNS_WIDE = 8  # tables with more columns have a smaller font on paper
_MAX_DECIMALS = 7  # numbers that need more are easier to read with a power of ten
_MAX_LETTERS_UNBROKEN = 24  # longer cells may be broken into lines


def page_html(page: Page) -> str:
    """The page as one self-contained HTML document."""
    return render(["steelyard.report"], "page.html", page_values(page))


def page_values(page: Page) -> dict[str, Any]:
    """What the template `page.html` mentions, by name.

    Args:
        page: to show
    """
    drawings = _Drawings(page.points_per_curve)
    sections = [_section_view(section, drawings) for section in page.sections]
    contents = [section.title for section in page.sections]
    if page.settings:
        contents.append("Settings")
    return {
        "title": page.title,
        "about": page.about,
        "answer": page.answer,
        "badge": page.badge,
        "doubts": page.doubts,
        "contents": contents,
        "sections": sections,
        "settings": page.settings,
        "figures": drawings.figures,
        "scenes": drawings.scenes,
        "library": _library() if drawings.figures else "",
    }


@dataclass
class _Drawings:
    """Plots and scenes of a page, in the order of their numbers.

    Attributes:
        points_per_curve: how many points a curve may have
        figures: panels as Plotly draws them
        scenes: scenes as plain values
    """

    points_per_curve: int
    figures: list[dict[str, Any]] = field(default_factory=list)
    scenes: list[dict[str, Any]] = field(default_factory=list)

    def add_panel(self, panel: Panel, colours: dict[str, str]) -> int:
        """Adds a panel; returns its number."""
        self.figures.append(panel_figure(panel, colours, self.points_per_curve))
        return len(self.figures) - 1

    def add_scene(self, scene: Scene) -> int:
        """Adds a scene; returns its number."""
        self.scenes.append(scene.to_dict())
        return len(self.scenes) - 1


@dataclass(frozen=True)
class _LegendEntry:
    name: str
    style: str
    colour: str


@dataclass(frozen=True)
class _HeadView:
    text: str
    numeric: bool


@dataclass(frozen=True)
class _CellView:
    """A cell as text.

    Attributes:
        style: 'n' for a number, 's' for short words, empty for words that may be broken into lines
    """

    text: str
    style: str


@dataclass(frozen=True)
class _RowView:
    cells: Sequence[_CellView]
    met: bool
    link: str


@dataclass(frozen=True)
class _TableView:
    template: ClassVar[str] = "table.html"
    caption: str
    note: str
    wide: bool
    head: Sequence[_HeadView]
    rows: Sequence[_RowView]


@dataclass(frozen=True)
class _PanelView:
    number: int
    title: str
    label: str
    square: bool
    legend: Sequence[_LegendEntry]


@dataclass(frozen=True)
class _PlotView:
    template: ClassVar[str] = "plot.html"
    caption: str
    anchor: str
    columns: int
    legend: Sequence[_LegendEntry]
    panels: Sequence[_PanelView]


@dataclass(frozen=True)
class _SceneView:
    template: ClassVar[str] = "scene.html"
    number: int
    caption: str
    legend: Sequence[_LegendEntry]


@dataclass(frozen=True)
class _SectionView:
    title: str
    text: Sequence[str]
    parts: Sequence[_TableView | _PlotView | _SceneView]


def _section_view(section: Section, drawings: _Drawings) -> _SectionView:
    parts = [_part_view(part, drawings) for part in section.parts]
    return _SectionView(section.title, section.text, parts)


def _part_view(
    part: Table | Plot | Scene, drawings: _Drawings
) -> _TableView | _PlotView | _SceneView:
    if isinstance(part, Scene):
        legend = [_LegendEntry(name, "bars", colour) for name, colour in part.legend]
        return _SceneView(drawings.add_scene(part), part.caption, legend)
    if isinstance(part, Plot):
        return _plot_view(part, drawings)
    return _table_view(part)


def _plot_view(plot: Plot, drawings: _Drawings) -> _PlotView:
    colours = plot.colours
    shared = plot.shared_legend
    panels = []
    for panel in plot.panels:
        own = () if shared else panel.legend
        panels.append(
            _PanelView(
                number=drawings.add_panel(panel, colours),
                title=panel.title,
                label=f"{panel.title}: {panel.y_label} against {panel.x}",
                square=panel.equal,
                legend=_legend(own, colours),
            )
        )
    columns = 1
    if len(panels) > 1:
        columns = min(3, max(1, plot.columns))
    return _PlotView(plot.caption, _anchor(plot.caption), columns, _legend(shared, colours), panels)


def _legend(names: Sequence[tuple[str, str]], colours: Mapping[str, str]) -> Sequence[_LegendEntry]:
    """The entries of a legend; none where a single name needs no legend."""
    if len(names) < 2:
        return ()
    return [_LegendEntry(name, style, colours[name]) for name, style in names]


def _table_view(table: Table) -> _TableView:
    head = []
    for i, name in enumerate(table.head):
        column = [row[i] for row in table.rows if i < len(row)]
        head.append(_HeadView(name, numeric=_is_numeric(column, first=i == 0)))
    met = table.met or [None] * len(table.rows)
    links = table.links or [""] * len(table.rows)
    rows = [
        _RowView(_row_cells(table.head, row), bool(goal), _anchor(link))
        for row, goal, link in zip(table.rows, met, links, strict=True)
    ]
    wide = len(table.head) > _MIN_COLUMNS_WIDE
    return _TableView(table.caption, table.note, wide, head, rows)


def _is_numeric(column: Sequence[Cell], *, first: bool) -> bool:
    """Whether a column holds numbers, and no words."""
    return all(not isinstance(cell, str) or _has_digits_only(cell, first) for cell in column)


def _has_digits_only(cell: str, first: bool) -> bool:
    """Whether a text is a number; in the first column it is a name."""
    return not first and _NUMBER.fullmatch(cell) is not None


def _anchor(caption: str) -> str:
    """The name of a plot in the page, by its caption."""
    return re.sub(r"[^a-z0-9]+", "-", caption.lower()).strip("-")


def _style_of(text: str) -> str:
    """The class of a cell: short texts are not broken, values with a spread not even on a phone."""
    if _VALUE_WITH_SPREAD.fullmatch(text):
        return "s v"
    if len(text) <= _MAX_LETTERS_UNBROKEN:
        return "s"
    return ""


def _row_cells(head: Sequence[str], row: Sequence[Cell]) -> list[_CellView]:
    rounded = _rounded_by_interval(head, row)
    cells = []
    for i, cell in enumerate(row):
        if i in rounded:
            cells.append(_CellView(rounded[i], "n"))
        elif isinstance(cell, str):
            style = "n" if _has_digits_only(cell, i == 0) else _style_of(cell)
            cells.append(_CellView(cell, style))
        else:
            cells.append(_CellView(number_text(cell), "n"))
    return cells


def _rounded_by_interval(head: Sequence[str], row: Sequence[Cell]) -> dict[int, str]:
    """Numbers with as many decimals as the interval beside them needs, by column."""
    texts: dict[int, str] = {}
    for i in range(1, min(len(head), len(row))):
        if not head[i].startswith("±"):
            continue
        decimals = _interval_decimals(row[i - 1], row[i])
        if decimals is None:
            continue
        for k, value in enumerate(row[i - 1 : i + 2], start=i - 1):
            if isinstance(value, float) and (k <= i or head[k] == "truth"):
                texts[k] = f"{round(value, decimals) + 0.0:.{decimals}f}"  # no negative zero
    return texts


def _interval_decimals(value: Cell, half_width: Cell) -> int | None:
    """Decimals that show two digits of a half-width; None where another notation is better."""
    if isinstance(value, str | None) or isinstance(half_width, str | None):
        return None
    if not (math.isfinite(value) and math.isfinite(half_width) and half_width > 0):
        return None
    decimals = 1 - math.floor(math.log10(half_width))
    if 0 <= decimals <= _MAX_DECIMALS:
        return decimals
    return None


def number_text(value: float | None) -> str:
    """A value with four significant digits; integers in full, None as an empty text."""
    if value is None:
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return str(value)
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = abs(value)
    if 1e4 <= size < 1e6:
        return f"{value:.0f}"
    if 1e-4 <= size < 1e4:
        return f"{value:#.4g}".rstrip(".")
    return f"{value:.3e}"


@cache
def _library() -> str:
    """Plotly's script, compressed."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        raise MissingExtra.of("plotly", "report")
    script = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    return base64.b64encode(gzip.compress(script.read_bytes(), 9, mtime=0)).decode("ascii")
