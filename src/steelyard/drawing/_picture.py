"""Plots as one picture, drawn by Matplotlib: a file, or inline in a notebook.

Plots are arranged below each other, each with its caption, one legend, and its panels in rows.
Matplotlib is imported on demand; its windows and settings are not changed.
"""

from __future__ import annotations

import base64
import importlib.util
import io
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steelyard._saved import replacing
from steelyard._templates import render
from steelyard._units import NORMAL_95
from steelyard.drawing._plot import INK, MUTED, SOFT, Band, Curve, Panel, Plot
from steelyard.errors import MissingExtra, UnreadableFile

# Lengths are in inches.
_WIDTH = 12.0
_WIDTH_INLINE = 8.0
_DPI = 120
_DPI_INLINE = 90
_PANEL_HEIGHT = 1.9
_SQUARE_PANEL_HEIGHT = 3.2
_TITLE_HEIGHT = 0.3
_LINE_HEIGHT = 0.175
_LEGEND_HEIGHT = 0.22
_GAP = 0.12  # above texts
_EDGE = 0.12  # left of texts
_PANEL_TOP = 0.22  # margins of a panel for title, ticks and labels
_PANEL_BOTTOM = 0.4
_PANEL_LEFT = 0.6
_PANEL_RIGHT = 0.1
_LETTERS_PER_INCH = 13.5  # of a caption
_MAX_AXIS_LETTERS = 90  # of words on an axis that are written horizontally
_TEMPLATES = ("steelyard.drawing",)
_BADGE_COLOURS = {"use": "#1a7f37", "use with care": "#9a6700", "do not use": "#b42318"}


@dataclass(frozen=True, eq=False)
class Picture:
    """Plots below each other, shown in a notebook."""

    plots: Sequence[Plot]

    def __repr__(self) -> str:
        captions = "; ".join(plot.caption.split(":")[0].rstrip(".") for plot in self.plots)
        return f"<Picture: {captions}>"

    def _repr_html_(self) -> str | None:
        if not _has_templates():
            return None
        images = [_Image.of(plot) for plot in self.plots]
        return "".join(
            render(_TEMPLATES, "image.html", {"image": image}) for image in images if image
        )

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The panels of all plots."""
        return tuple(panel for plot in self.plots for panel in plot.panels)

    def figure(self) -> Any:
        """The plots as a figure of Matplotlib, whose axes can be changed."""
        with _matplotlib():
            return _figure(self.plots, _WIDTH, "", ())

    def draw(self, axes: Any) -> None:
        """Draws the panels on axes of Matplotlib, in their order.

        Args:
            axes: one or several; further panels are left out
        """
        given = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
        colours = {name: colour for plot in self.plots for name, colour in plot.colours.items()}
        with _matplotlib():
            for ax, panel in zip(given, self.panels, strict=False):
                _draw_panel(ax, panel, colours)
                ax.set_xlabel(panel.x)
                ax.set_ylabel(panel.y_label)

    def save(self, path: str | Path) -> None:
        """Writes them as a .png, .svg, .pdf or .jpg file."""
        save_picture(self.plots, Path(path))


def save_picture(
    plots: Sequence[Plot], path: Path, *, title: str = "", words: Sequence[str] = ()
) -> None:
    """Writes plots below each other as a picture.

    Args:
        plots: to draw
        path: of the file, whose extension determines its format
        title: above the plots
        words: sentences above the plots
    """
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    with _matplotlib():
        figure = _figure(plots, _WIDTH, title, words)
        if kind not in figure.canvas.get_supported_filetypes():
            raise UnreadableFile(f"{path}: pictures are written as .png, .svg, .pdf or .jpg")
        with replacing(path) as part:
            figure.savefig(part, format=kind, dpi=_DPI)


def notebook_html(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    words: str = "",
    plot: Plot | None = None,
    badge: tuple[str, str] | None = None,
) -> str | None:
    """HTML for a notebook: a badge, words, a table, and an image if Matplotlib is installed.

    None where Jinja2 is not installed; a notebook then shows the text of a value.
    """
    if not _has_templates():
        return None
    colour = ""
    if badge is not None:
        colour = _BADGE_COLOURS.get(badge[0], _BADGE_COLOURS["do not use"])
    image = None
    if plot is not None:
        image = _Image.of(plot)
    values = {
        "badge": badge,
        "colour": colour,
        "words": words,
        "headers": headers,
        "rows": rows,
        "numeric": [k for k in range(len(headers)) if _is_numeric(row[k] for row in rows)],
        "image": image,
    }
    return render(_TEMPLATES, "notebook.html", values)


def _is_numeric(cells: Iterable[str]) -> bool:
    """Whether a column holds numbers, and perhaps empty or unknown ones."""
    return all(re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?|unknown|", cell) for cell in cells)


def _has_templates() -> bool:
    """Whether HTML can be made."""
    return importlib.util.find_spec("jinja2") is not None


@dataclass(frozen=True)
class _Image:
    """A plot as a .png file in base64."""

    caption: str
    data: str

    @classmethod
    def of(cls, plot: Plot) -> _Image | None:
        """The image of a plot; None where Matplotlib is not installed."""
        out = io.BytesIO()
        try:
            with _matplotlib():
                figure = _figure([plot], _WIDTH_INLINE, "", ())
                figure.savefig(out, format="png", dpi=_DPI_INLINE)
        except MissingExtra:
            return None
        return cls(plot.caption, base64.b64encode(out.getvalue()).decode("ascii"))


def _matplotlib() -> AbstractContextManager[None]:
    """Settings of Matplotlib in which texts are not formulas."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise MissingExtra.of("matplotlib", "report") from error
    return matplotlib.rc_context({"text.parse_math": False})


def _figure(plots: Sequence[Plot], width: float, title: str, words: Sequence[str]) -> Any:
    from matplotlib.figure import Figure

    heading = _wrapped(" ".join(words), width)
    top = (_TITLE_HEIGHT if title else 0.0) + _LINE_HEIGHT * len(heading)
    heights = [_head_height(x, width) + _shape(x)[0] * _panel_height(x) + _GAP for x in plots]
    tops = np.cumsum([_GAP + top, *heights])
    figure = Figure(figsize=(width, tops[-1]))
    _write(figure, title, _GAP, size=14, colour=INK)
    _write(
        figure, "\n".join(heading), _GAP + (_TITLE_HEIGHT if title else 0.0), size=9.5, colour=INK
    )
    for plot, start in zip(plots, tops[:-1], strict=True):
        _draw_plot(figure, plot, float(start))
    return figure


def _write(figure: Any, words: str, top: float, *, size: float, colour: str) -> None:
    """Writes words at the left edge, at a distance below the top [inch]."""
    width, height = figure.get_size_inches()
    figure.text(_EDGE / width, 1 - top / height, words, va="top", fontsize=size, color=colour)


def _wrapped(words: str, width: float) -> list[str]:
    return textwrap.wrap(words, int(_LETTERS_PER_INCH * width))


def _head_height(plot: Plot, width: float) -> float:
    """Height of caption and legend, [inch]."""
    if len(plot.shared_legend) > 1:
        legend = _LEGEND_HEIGHT
    else:
        legend = 0.0
    return _GAP + _LINE_HEIGHT * len(_wrapped(plot.caption, width)) + legend


def _panel_height(plot: Plot) -> float:
    """Height of a row of panels with titles, ticks and labels, [inch]."""
    square = any(panel.equal for panel in plot.panels)
    words = max((_words_height(panel) for panel in plot.panels), default=0.0)
    return (_SQUARE_PANEL_HEIGHT if square else _PANEL_HEIGHT) + words


def _words_height(panel: Panel) -> float:
    """Additional height of upright words on the x axis, [inch]."""
    if _upright(panel):
        return max(map(len, _bar_words(panel))) / _LETTERS_PER_INCH
    return 0.0


def _shape(plot: Plot) -> tuple[int, int]:
    """Rows and columns of the panels."""
    columns = max(1, min(plot.columns, len(plot.panels)))
    return -(-len(plot.panels) // columns), columns


def _draw_plot(figure: Any, plot: Plot, top: float) -> None:
    width, height = figure.get_size_inches()
    _, columns = _shape(plot)
    colours = plot.colours
    tall = _panel_height(plot)
    lines = _wrapped(plot.caption, width)
    _write(figure, "\n".join(lines), top + _GAP, size=9.5, colour=SOFT)
    below = 1 - (top + _GAP + _LINE_HEIGHT * len(lines)) / height
    place = {"loc": "upper left", "bbox_to_anchor": (_EDGE / width, below)}
    _draw_legend(figure, plot.shared_legend, colours, place)
    top += _head_height(plot, width)
    wide = (width - _EDGE) / columns
    shared_x, shared_y = (
        len({getattr(panel, axis) for panel in plot.panels}) == 1 for axis in ("x", "y_label")
    )
    for k, panel in enumerate(plot.panels):
        upper = top + (k // columns) * tall
        lower = upper + tall - _PANEL_BOTTOM - _words_height(panel)
        left = _EDGE + (k % columns) * wide + _PANEL_LEFT
        size = (wide - _PANEL_LEFT - _PANEL_RIGHT) / width, (lower - upper - _PANEL_TOP) / height
        ax = figure.add_axes((left / width, 1 - lower / height, *size))
        _draw_panel(ax, panel, colours)
        if not plot.shared_legend:
            above = {"loc": "lower right", "bbox_to_anchor": (1, 0.98)}
            _draw_legend(ax, panel.legend, colours, above if columns == 1 else {"loc": "best"})
        if not shared_x or k + columns >= len(plot.panels):
            ax.set_xlabel(panel.x, fontsize=8.5, color=SOFT)
        if not shared_y or k % columns == 0:
            ax.set_ylabel(panel.y_label, fontsize=8.5, color=SOFT)


def _draw_legend(
    where: Any, names: Sequence[tuple[str, str]], colours: dict[str, str], place: dict[str, Any]
) -> None:
    if len(names) > 1:
        handles = [_swatch(name, style, colours[name]) for name, style in names]
        look = {
            "fontsize": 8.5,
            "frameon": False,
            "borderpad": 0.1,
            "borderaxespad": 0,
            "handlelength": 1.8,
        }
        where.legend(handles=handles, ncols=len(names), **look, **place)


class _Pen(NamedTuple):
    """Draws curves and bands on axes; bars, which stand side by side, are drawn together later."""

    ax: Any
    colours: Mapping[str, str]

    def curve(self, curve: Curve) -> None:
        if curve.style != "bars":
            _draw_curve(self.ax, curve, self.colours[curve.name])

    def band(self, band: Band) -> None:
        low = np.asarray(band.low, dtype=float)
        high = np.asarray(band.high, dtype=float)
        self.ax.fill_between(band.x, low, high, color=self.colours[band.name], alpha=0.18, lw=0)


def _draw_panel(ax: Any, panel: Panel, colours: dict[str, str]) -> None:
    pen = _Pen(ax, colours)
    for part in panel.curves:
        part.drawn_by(pen)
    if panel.bars:
        _draw_bars(ax, panel, panel.bars, colours)
    elif all(part.style != "dots" for part in panel.curves) and not panel.equal:
        ax.margins(x=0)
    if panel.log_y:
        from matplotlib.ticker import LogLocator

        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=panel.log_ticks))
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.minorticks_off()
    if panel.equal:
        ax.set_aspect("equal", adjustable="datalim")
    if panel.x_range is not None:
        ax.set_xlim(*panel.x_range)
    if panel.y_range is not None:
        ax.set_ylim(*panel.y_range)
    _draw_marks(ax, panel)
    ax.set_title(panel.title, fontsize=9, loc="left", color=INK, pad=4)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(MUTED)
    ax.grid(color="#eceff2", lw=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8, color=MUTED, labelcolor=INK)


def _draw_curve(ax: Any, curve: Curve, colour: str) -> None:
    x = curve.x
    y = np.asarray(curve.y, dtype=float)
    if curve.style == "dots":
        if len(y) > 200:
            size = 1.5
        elif len(y) > 30:
            size = 3
        else:
            size = 5
        ax.plot(x, y, "o", color=colour, ms=size, mew=0, rasterized=True)
    else:
        if curve.style == "dashed":
            ls = "--"
        else:
            ls = "-"
        ax.plot(x, y, color=colour, lw=2.4 if colour == MUTED else 1.1, ls=ls)
    if curve.y_std is not None:
        half = np.where(np.isfinite(curve.y_std), NORMAL_95 * np.asarray(curve.y_std), 0.0)
        ax.errorbar(x, y, yerr=half, fmt="none", ecolor=INK, elinewidth=0.8, capsize=2)


def _draw_bars(ax: Any, panel: Panel, bars: Sequence[Curve], colours: dict[str, str]) -> None:
    """Draws bars on words; side by side, unless the panel lists its words."""
    order = _bar_words(panel)
    if panel.categories:
        width = 0.8
    else:
        width = 0.8 / len(bars)
    for i, bar in enumerate(bars):
        if panel.categories:
            shift = 0.0
        else:
            shift = (i - (len(bars) - 1) / 2) * width
        x = [order.index(str(word)) + shift for word in bar.x]
        ax.bar(x, bar.y, width, color=colours[bar.name])
        if bar.y_std is not None:
            half = np.where(np.isfinite(bar.y_std), NORMAL_95 * np.asarray(bar.y_std), 0.0)
            ax.errorbar(x, bar.y, yerr=half, fmt="none", ecolor=INK, elinewidth=0.8, capsize=2)
    ax.set_xticks(range(len(order)), order, rotation=90 if _upright(panel) else 0)


def _bar_words(panel: Panel) -> list[str]:
    """The words on the x axis, in their order."""
    return list(
        panel.categories or dict.fromkeys(str(word) for bar in panel.bars for word in bar.x)
    )


def _upright(panel: Panel) -> bool:
    """Whether there are too many words to write them horizontally."""
    return sum(len(word) + 2 for word in _bar_words(panel)) > _MAX_AXIS_LETTERS


def _draw_marks(ax: Any, panel: Panel) -> None:
    left, right = ax.get_xlim()
    for x, words in panel.marks:
        ax.axvline(x, color="#7b8794", lw=0.9, ls=":")
        late = (x - left) > 0.75 * (right - left)
        place = {"xytext": (-3 if late else 3, 0), "textcoords": "offset points", "va": "top"}
        at = {
            "xy": (x, 1.0),
            "xycoords": ("data", "axes fraction"),
            "ha": "right" if late else "left",
        }
        ax.annotate(words, **at, **place, fontsize=8, color=SOFT)


def _swatch(name: str, style: str, colour: str) -> Any:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if style == "band":
        return Patch(color=colour, alpha=0.25, lw=0, label=name)
    if style == "bars":
        return Patch(color=colour, lw=0, label=name)
    if style == "dots":
        return Line2D([], [], color=colour, ls="", marker="o", ms=4, label=name)
    if style == "dashed":
        kind = "--"
    else:
        kind = "-"
    return Line2D([], [], color=colour, ls=kind, lw=3 if colour == MUTED else 1.6, label=name)
