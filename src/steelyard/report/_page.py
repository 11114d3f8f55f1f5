"""What a page says: an answer, sections of tables and plots, every setting; and how it becomes one file.

The file asks for no network and no second file, opens from a USB stick, reads on paper and on a
phone. The drawing library travels inside, once, packed (gzip, base64); the browser unpacks it. What
is drawn is JSON in the page. All words are escaped: a name of a joint is text, whatever it holds.
"""

from __future__ import annotations

import base64
import gzip
import html
import importlib.util
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.drawing import Plot, Scene, panel_figure
from steelyard.errors import MissingExtra
from steelyard.quality import QualityReport
from steelyard.saved import plain, write_text

_MOST_POINTS = 1500
_POINTS_IN_ALL = 180_000  # of 18 bytes or so: with the drawing library well below 6 MB
_FEWEST_POINTS = 60
_MANY_COLUMNS = 8  # smaller on paper beyond
_MOST_DECIMALS = 7  # more are read better with a power of ten
_SHORT_WORDS = 24  # not broken into lines


@dataclass(frozen=True)
class Table:
    """Rows of cells under a caption that says what stands in them, and maybe a note below.

    Numbers are shown with four significant digits, None as an empty cell; a number before a column
    whose name begins with ± is shown with as many as its interval, of which two count, and so is a
    'truth' after it. `met` says of each row whether it
    is as it should be: such rows are green, those where it is False are not, None is for rows
    without a goal.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]
    note: str = ""
    met: Sequence[bool | None] = ()


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
        """The same page with what was found in the recordings, by name, their errors as doubts."""
        found = [
            (name, f.severity, f.sentence)
            for name, report in reports.items()
            for f in report.findings
        ]
        errors = [f"{name}: {words}" for name, severity, words in found if severity == "error"]
        head = (
            "recording",
            "rows",
            "joints",
            "duration [s]",
            "rate [Hz]",
            "errors",
            "warnings",
            "infos",
        )
        rows: list[list[str | float | None]] = [
            [
                name,
                report.rows,
                report.joints,
                report.duration_s,
                report.rate_hz,
                *report.counts.values(),
            ]
            for name, report in reports.items()
        ]
        parts = [Table("The recordings.", head, rows)]
        if found:
            parts.append(
                Table("What was found in them.", ("recording", "severity", "finding"), found)
            )
        if found:
            words = []
        else:
            words = ["Nothing was found that needs care."]
        section = Section("Quality of the recordings", words, parts)
        return replace(self, sections=[*self.sections, section], doubts=[*self.doubts, *errors])

    @property
    def points_per_curve(self) -> int:
        """How many points a curve is drawn with, so that the page stays small."""
        plots = [
            part for section in self.sections for part in section.parts if isinstance(part, Plot)
        ]
        curves = sum(len(panel.curves) for plot in plots for panel in plot.panels)
        return max(_FEWEST_POINTS, min(_MOST_POINTS, _POINTS_IN_ALL // max(1, curves)))

    def html(self) -> str:
        """The page as one self-contained HTML document."""
        figures: list[dict[str, Any]] = []
        scenes: list[dict[str, Any]] = []
        most = self.points_per_curve
        body = [_answer(self), _contents(self)]
        body += [_section(part, i, figures, scenes, most) for i, part in enumerate(self.sections)]
        body.append(_settings(self.settings, len(self.sections)))
        return _asset("page.html").format(
            title=_text(self.title),
            style=_asset("page.css"),
            errors=_asset("errors.js"),
            body="\n".join(part for part in body if part),
            figures=_json_in_html(figures),
            scenes=_json_in_html(scenes),
            scene_program=_asset("scene.js") if scenes else "",
            library=_library() if figures else "",
            program=_asset("page.js"),
        )

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
            "answer": list(self.answer),
            "doubts": list(self.doubts),
            "sections": sections,
            "settings": dict(self.settings),
        }


def _part_facts(part: Table | Plot | Scene, most: int) -> dict[str, Any]:
    if isinstance(part, Scene):
        return {"scene": part.caption, "legend": dict(part.legend)}
    if isinstance(part, Plot):
        return _plot_facts(part, most)
    return _table_facts(part)


def _table_facts(table: Table) -> dict[str, Any]:
    rows = [plain(row) for row in table.rows]
    if table.met:
        goals = {"met": list(table.met)}
    else:
        goals = {}
    return {
        "table": table.caption,
        "head": list(table.head),
        "rows": rows,
        "note": table.note,
        **goals,
    }


def _plot_facts(plot: Plot, most: int) -> dict[str, Any]:
    colours = plot.colours
    panels = []
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
        panels.append(
            {"title": panel.title, "x": panel.x, "y": panel.y, "curves": curves, "marks": marks}
        )
    return {"plot": plot.caption, "panels": panels}


def _shown(cell: str | float | None) -> str:
    """A cell of a table as words: four digits that count, integers in full."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool | np.bool_):
        if cell:
            return "yes"
        return "no"
    if isinstance(cell, int | np.integer):
        return str(cell)
    value = float(cell)
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        if value > 0:
            return "∞"
        return "−∞"
    if value == 0:
        return "0"
    size = abs(value)
    if 1e4 <= size < 1e6:
        return f"{value:.0f}"
    if 1e-4 <= size < 1e4:
        words = f"{value:#.4g}"
    else:
        words = f"{value:.3e}"
    return words.rstrip(".")


def _text(words: str) -> str:
    return html.escape(str(words))


def _breakable(words: str) -> str:
    """Escaped words that may be broken into lines after the joints of a name or a path."""
    return re.sub(r"([_/])(?=\w)", r"\1<wbr>", _text(words))


def _paragraphs(sentences: Sequence[str]) -> str:
    return "\n".join(f"<p>{_text(words)}</p>" for words in sentences)


def _answer(page: Page) -> str:
    if page.doubts:
        doubts = f'\n<div class="doubts">\n{_paragraphs(page.doubts)}\n</div>'
    else:
        doubts = ""
    return f'<div class="answer">\n{_paragraphs(page.answer)}\n</div>{doubts}'


def _contents(page: Page) -> str:
    titles = [part.title for part in page.sections] + (["Settings"] if page.settings else [])
    links = (f'<a href="#part{i}">{_text(title)}</a>' for i, title in enumerate(titles))
    if len(titles) > 1:
        return f"<nav>{' '.join(links)}</nav>"
    return ""


def _section(
    section: Section,
    number: int,
    figures: list[dict[str, Any]],
    scenes: list[dict[str, Any]],
    most: int,
) -> str:
    parts = [
        f'<section id="part{number}">',
        f"<h2>{_text(section.title)}</h2>",
        _paragraphs(section.text),
    ]
    for part in section.parts:
        if isinstance(part, Scene):
            parts.append(_scene(part, len(scenes)))
            scenes.append(part.to_dict())
        else:
            parts.append(_table(part) if isinstance(part, Table) else _plot(part, figures, most))
    return "\n".join([*parts, "</section>"])


def _scene(scene: Scene, number: int) -> str:
    marks = "".join(
        f"<span>{_swatch('bars', colour)}{_text(name)}</span>" for name, colour in scene.legend
    )
    views = "\n".join(
        f'<div class="panel"><canvas class="view" tabindex="0" role="img" aria-label="{label}">'
        "</canvas></div>"
        for label in ("the arm", "what it carries, enlarged")
    )
    return (
        f'<figure data-scene="{number}"><figcaption>{_text(scene.caption)}</figcaption>'
        f'<p class="legend">{marks}</p>\n<div class="panels c2">\n{views}\n</div>\n'
        '<p class="controls"><button type="button">Play</button>'
        ' <input type="range" min="0" value="0" aria-label="time"> <output></output></p></figure>'
    )


def _table(table: Table) -> str:
    words = [
        any(isinstance(row[i], str) for row in table.rows if i < len(row))
        for i in range(len(table.head))
    ]
    kind = ["" if flag else ' class="n"' for flag in words]
    head = "".join(f"<th{kind[i]}>{_breakable(name)}</th>" for i, name in enumerate(table.head))
    cells = ["".join(map(_td, _by_interval(table.head, row))) for row in table.rows]
    marks = [' class="met"' if met else "" for met in table.met] or [""] * len(cells)
    rows = "\n".join(f"<tr{mark}>{row}</tr>" for mark, row in zip(marks, cells, strict=True))
    if table.caption:
        caption = f"<figcaption>{_text(table.caption)}</figcaption>"
    else:
        caption = ""
    if table.note:
        note = f'\n<p class="note">{_text(table.note)}</p>'
    else:
        note = ""
    if len(table.head) > _MANY_COLUMNS:
        wide = ' class="wide"'
    else:
        wide = ""
    return (
        f'<figure class="table">{caption}<div'
        f' class="scroll"><table{wide}><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>{note}</figure>"
    )


class _Number(str):
    """A number that is words already."""


def _by_interval(
    head: Sequence[str], row: Sequence[str | float | None]
) -> list[str | float | None]:
    """The row, its numbers with as many digits behind the point as their intervals."""
    cells = list(row)
    for i in range(1, min(len(head), len(row))):
        value = row[i - 1]
        half = row[i]
        if (
            not head[i].startswith("±")
            or isinstance(value, str | None)
            or isinstance(half, str | None)
        ):
            continue
        if math.isfinite(value) and math.isfinite(half) and half > 0:
            digits = 1 - math.floor(math.log10(half))
            if 0 <= digits <= _MOST_DECIMALS:
                for k, x in enumerate(row[i - 1 : i + 2], start=i - 1):
                    if isinstance(x, float) and (k <= i or head[k] == "truth"):
                        cells[k] = _Number(f"{x:.{digits}f}")
    return cells


def _td(cell: str | float | None) -> str:
    kind = ' class="n"'
    if isinstance(cell, str) and not isinstance(cell, _Number):
        if len(cell) <= _SHORT_WORDS:
            kind = ' class="s"'
        else:
            kind = ""
    return f"<td{kind}>{_breakable(_shown(cell))}</td>"


def _plot(plot: Plot, figures: list[dict[str, Any]], most: int) -> str:
    colours = plot.colours
    shared = plot.shared_legend
    panels = []
    for panel in plot.panels:
        if shared:
            own = ""
        else:
            own = _legend(panel.legend, colours)
        if panel.equal:
            square = " square"
        else:
            square = ""
        label = _text(f"{panel.title}: {panel.y} against {panel.x}")
        place = (
            f'<div class="plot{square}" data-plot="{len(figures)}" role="img"'
            f' aria-label="{label}"></div>'
        )
        if panel.title:
            title = f"<h3>{_text(panel.title)}</h3>"
        else:
            title = ""
        panels.append(f'<div class="panel">{title}{own}{place}</div>')
        figures.append(panel_figure(panel, colours, most))
    above = _legend(shared, colours)
    if len(plot.panels) > 1:
        columns = f"c{min(3, max(1, plot.columns, 1))}"
    else:
        columns = "c1"
    inside = "\n".join(panels)
    if plot.caption:
        caption = f"<figcaption>{_text(plot.caption)}</figcaption>"
    else:
        caption = ""
    return f'<figure>{caption}{above}\n<div class="panels {columns}">\n{inside}\n</div></figure>'


def _legend(names: Sequence[tuple[str, str]], colours: Mapping[str, str]) -> str:
    if len(names) < 2:
        return ""
    marks = "".join(
        f"<span>{_swatch(style, colours[name])}{_text(name)}</span>" for name, style in names
    )
    return f'<p class="legend">{marks}</p>'


def _swatch(style: str, colour: str) -> str:
    colour = _text(colour)
    drawn = {
        "dots": f'<circle cx="11" cy="5" r="3" fill="{colour}"/>',
        "bars": f'<rect x="4" width="14" height="10" fill="{colour}"/>',
        "band": f'<rect width="22" height="10" fill="{colour}" fill-opacity="0.25"/>',
        "dashed": f'<path d="M0 5h22" stroke="{colour}" stroke-width="2" stroke-dasharray="6 3"/>',
    }
    line = f'<path d="M0 5h22" stroke="{colour}" stroke-width="2.5"/>'
    return f'<svg viewBox="0 0 22 10" aria-hidden="true">{drawn.get(style, line)}</svg>'


def _settings(settings: Mapping[str, str], number: int) -> str:
    if not settings:
        return ""
    rows = "\n".join(
        f"<tr><td>{_text(name)}</td><td>{_text(value)}</td></tr>"
        for name, value in settings.items()
    )
    return (
        f'<section id="part{number}">\n<h2>Settings</h2>\n'
        f'<table class="settings"><tbody>\n{rows}\n</tbody></table>\n</section>'
    )


def _json_in_html(value: Any) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@lru_cache(maxsize=8)
def _asset(name: str) -> str:
    return (resources.files("steelyard.report") / "assets" / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _library() -> str:
    """Plotly, packed."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        raise MissingExtra("plotly", "report")
    script = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    return base64.b64encode(gzip.compress(script.read_bytes(), 9, mtime=0)).decode("ascii")
