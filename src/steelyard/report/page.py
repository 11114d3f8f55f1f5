"""What a page says, before it becomes HTML: an answer, sections of tables and plots, and every setting."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from steelyard.drawing import Plot, panel_figure
from steelyard.quality import QualityReport

_MOST_POINTS = 1500
_POINTS_IN_ALL = 180_000  # of 18 bytes or so: with the drawing library well below 6 MB
_FEWEST_POINTS = 60


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
        doubts: why not to believe the answer, in sentences; shown right after it
        picture: those of its plots that make one picture of it
    """

    title: str
    answer: Sequence[str]
    sections: Sequence[Section]
    settings: Mapping[str, str] = field(default_factory=dict)
    doubts: Sequence[str] = ()
    picture: Sequence[Plot] = ()

    def with_quality(self, reports: Mapping[str, QualityReport]) -> Page:
        """The same page with what was found in the recordings, their errors as doubts.

        Args:
            reports: by name of the recording
        """
        found = [(name, f.severity, f.sentence) for name, report in reports.items() for f in report.findings]
        errors = [f"{name}: {words}" for name, severity, words in found if severity == "error"]
        head = ("recording", "rows", "joints", "duration [s]", "rate [Hz]", "errors", "warnings", "infos")
        rows: list[list[str | float | None]] = [
            [name, report.rows, report.joints, report.duration_s, report.rate_hz, *report.counts.values()]
            for name, report in reports.items()
        ]
        parts = [Table("The recordings.", head, rows)]
        if found:
            parts.append(Table("What was found in them.", ("recording", "severity", "finding"), found))
        words = [] if found else ["Nothing was found that needs care."]
        section = Section("Quality of the recordings", words, parts)
        return replace(self, sections=[*self.sections, section], doubts=[*self.doubts, *errors])

    @property
    def points_per_curve(self) -> int:
        """How many points a curve is drawn with, so that the page stays small."""
        plots = [part for section in self.sections for part in section.parts if isinstance(part, Plot)]
        curves = sum(len(panel.curves) for plot in plots for panel in plot.panels)
        return max(_FEWEST_POINTS, min(_MOST_POINTS, _POINTS_IN_ALL // max(1, curves)))

    def to_dict(self) -> dict[str, Any]:
        """The page as plain values for JSON: tables in full, curves with the points that are drawn.

        A number that is not finite is 'inf', '-inf' or 'nan' in a table and None in a curve.
        """
        most = self.points_per_curve
        sections = [
            {
                "title": section.title,
                "text": list(section.text),
                "parts": [
                    _table_facts(part) if isinstance(part, Table) else _plot_facts(part, most)
                    for part in section.parts
                ],
            }
            for section in self.sections
        ]
        return {
            "title": self.title,
            "answer": list(self.answer),
            "doubts": list(self.doubts),
            "sections": sections,
            "settings": dict(self.settings),
        }


def _table_facts(table: Table) -> dict[str, Any]:
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    return {"table": table.caption, "head": list(table.head), "rows": rows, "note": table.note}


def _cell(cell: Any) -> Any:
    value = cell.item() if isinstance(cell, np.generic) else cell
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _plot_facts(plot: Plot, most: int) -> dict[str, Any]:
    colours, panels = plot.colours, []
    for panel in plot.panels:
        traces = panel_figure(panel, colours, most)["data"]
        curves = [
            {
                "name": html.unescape(trace["name"]),
                "x": [html.unescape(x) if isinstance(x, str) else x for x in trace["x"]],
                "y": trace["y"],
            }
            for trace in traces
        ]
        marks = [[float(x), words] for x, words in panel.marks]
        panels.append({"title": panel.title, "x": panel.x, "y": panel.y, "curves": curves, "marks": marks})
    return {"plot": plot.caption, "panels": panels}
