"""A page as data: an answer, sections of tables, plots and scenes, and every setting.

`_html.py` writes it as one HTML file.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from steelyard._saved import plain, write_text
from steelyard.drawing import Panel, Plot, Scene, panel_figure
from steelyard.quality import QualityReport

_LISTED_RECORDINGS = 3
_MAX_POINTS_PER_CURVE = 1500
_MIN_POINTS_PER_CURVE = 60
_MAX_POINTS_PER_PAGE = 180_000  # at about 18 bytes each: below 6 MB with the drawing library

Cell: TypeAlias = str | float | None
"""A cell of a table: words, a number, or nothing."""


@dataclass(frozen=True)
class Table:
    """Rows of cells under a caption.

    Numbers are shown with four significant digits. A column whose name begins with ± holds the
    half-widths of the column before it: these are shown with two digits, and their values, and a
    column 'truth' behind them, with the same decimals.

    Attributes:
        caption: what the cells hold
        head: name of each column
        rows: cells of each row; None is an empty cell
        note: shown below the table
        met: whether each row has reached its goal, which makes it green; None for rows without one
        links: caption of the plot that the first cell of each row leads to; empty for none
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    met: Sequence[bool | None] = ()
    links: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Section:
    """A part of a page: paragraphs, then tables, plots and scenes in their order."""

    title: str
    text: Sequence[str] = ()
    parts: Sequence[Table | Plot | Scene] = ()


@dataclass(frozen=True, eq=False)
class Page:
    """One report.

    Attributes:
        title: of the page
        answer: sentences that answer the reader's question, with uncertainty
        sections: the evidence, the most important first
        settings: every setting, version and input digest, by name
        doubts: reasons not to trust the answer, in sentences; shown right after it
        picture: those of its plots that make one picture of it
        badge: whether to use the answer, and the answer in short; None for none
        about: what the page is about, by name: arm, recordings, date; shown below the title
    """

    title: str
    answer: Sequence[str]
    sections: Sequence[Section]
    settings: Mapping[str, str] = field(default_factory=dict)
    doubts: Sequence[str] = ()
    picture: Sequence[Plot] = ()
    badge: tuple[str, str] | None = None
    about: Mapping[str, str] = field(default_factory=dict)

    def with_subject(self, arm: str, recordings: Sequence[str], *, drawn: str = "") -> Page:
        """The same page that says which arm and recordings it is about, and when it was made.

        Args:
            arm: name of the arm; empty if unknown
            recordings: names of the recordings; those after the third are counted
            drawn: name of the only one in the plots; empty if that goes without saying
        """
        listed = list(recordings[:_LISTED_RECORDINGS])
        if len(recordings) > len(listed):
            listed.append(f"{len(recordings) - len(listed)} more")
        about = {
            "arm": arm,
            "recordings": ", ".join(listed),
            "drawn": drawn,
            "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        }
        return replace(self, about={name: words for name, words in about.items() if words})

    def with_quality(self, reports: Mapping[str, QualityReport]) -> Page:
        """The same page with a section on its recordings, by name; their errors become doubts."""
        findings = [
            (name, finding.severity, finding.sentence)
            for name, report in reports.items()
            for finding in report.findings
        ]
        errors = [f"{name}: {words}" for name, severity, words in findings if severity == "error"]
        parts = [_quality_table(reports)]
        text = []
        if findings:
            head = ("recording", "severity", "finding")
            parts.append(Table("Findings in the recordings.", head, findings))
        else:
            text.append("No problems were found.")
        section = Section("Quality of the recordings", text, parts)
        return replace(self, sections=[*self.sections, section], doubts=[*self.doubts, *errors])

    @property
    def points_per_curve(self) -> int:
        """The largest number of points that a curve is drawn with, so that the page stays small."""
        parts = [part for section in self.sections for part in section.parts]
        plots = [part for part in parts if isinstance(part, Plot)]
        curves = sum(len(panel.curves) for plot in plots for panel in plot.panels)
        share = _MAX_POINTS_PER_PAGE // max(1, curves)
        return max(_MIN_POINTS_PER_CURVE, min(_MAX_POINTS_PER_CURVE, share))

    def html(self) -> str:
        """The page as one self-contained HTML document."""
        from steelyard.report._html import page_html

        return page_html(self)

    def write(self, path: Path) -> None:
        """Writes the page, in a folder that exists; the file appears whole or not at all."""
        write_text(path, self.html())

    def to_dict(self) -> dict[str, Any]:
        """The page as plain values for JSON: tables in full, curves with the points that are drawn.

        A number that is not finite is 'inf', '-inf' or 'nan' in a table and None in a curve.
        """
        most = self.points_per_curve
        sections = [
            {
                "title": section.title,
                "text": list(section.text),
                "parts": [_part_facts(part, most) for part in section.parts],
            }
            for section in self.sections
        ]
        return {
            "title": self.title,
            "about": dict(self.about),
            "answer": list(self.answer),
            "doubts": list(self.doubts),
            "sections": sections,
            "settings": dict(self.settings),
        }


def _quality_table(reports: Mapping[str, QualityReport]) -> Table:
    about = ("recording", "rows", "joints", "duration [s]", "rate [Hz]")
    counts = ("errors", "warnings", "infos")
    rows: list[list[Cell]] = []
    for name, report in reports.items():
        size: list[Cell] = [name, report.rows, report.joints, report.duration_s, report.rate_hz]
        rows.append([*size, *report.counts.values()])
    return Table("The recordings.", (*about, *counts), rows)


def _part_facts(part: Table | Plot | Scene, most: int) -> dict[str, Any]:
    if isinstance(part, Scene):
        return {"scene": part.caption, "legend": dict(part.legend)}
    if isinstance(part, Plot):
        panels = [_panel_facts(panel, part.colours, most) for panel in part.panels]
        return {"plot": part.caption, "panels": panels}
    return _table_facts(part)


def _table_facts(table: Table) -> dict[str, Any]:
    facts = {
        "table": table.caption,
        "head": list(table.head),
        "rows": [plain(row) for row in table.rows],
        "note": table.note,
    }
    if table.met:
        facts["met"] = list(table.met)
    return facts


def _panel_facts(panel: Panel, colours: dict[str, str], most: int) -> dict[str, Any]:
    curves = [
        {
            "name": html.unescape(trace["name"]),
            "x": [html.unescape(x) if isinstance(x, str) else x for x in trace["x"]],
            "y": trace["y"],
        }
        for trace in panel_figure(panel, colours, most)["data"]
    ]
    marks = [[float(x), words] for x, words in panel.marks]
    return {
        "title": panel.title,
        "x": panel.x,
        "y": panel.y_label,
        "curves": curves,
        "marks": marks,
    }
