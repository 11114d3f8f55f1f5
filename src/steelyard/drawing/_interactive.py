"""A panel for Plotly, with a reduced number of points and short numbers.

A line of N points is divided into buckets of equal length; each keeps its lowest and its highest
point (and the leftmost and rightmost where x is not monotone), so that no peak is lost. A cloud of
dots is thinned evenly instead and keeps its outermost points: extremes of buckets would draw two
edges.
"""

from __future__ import annotations

import html
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array, Indices
from steelyard._units import NORMAL_95
from steelyard.drawing._plot import INK, MUTED, SOFT, Band, Curve, Panel

_DIGITS = 5  # of numbers, relative to their span
_MARGIN = 0.05  # around the curves of panels with equal scales, of their span
_MAX_DOTS = 250  # of a cloud; each is a separate element of the page and slow to draw


def panel_figure(panel: Panel, colours: dict[str, str], most: int) -> dict[str, Any]:
    """Traces and layout of a panel for Plotly, with all texts escaped.

    Args:
        panel: to draw
        colours: by the names of curves and bands
        most: largest number of points of a curve
    """
    tracer = _Tracer(panel, colours, most)
    traces = [trace for part in panel.curves for trace in part.drawn_by(tracer)]
    layout: dict[str, Any] = {"xaxis": {"title": {"text": _words(panel.x)}}}
    layout["yaxis"] = {"title": {"text": _words(panel.y_label)}}
    if panel.log_y:
        step = 1 if panel.log_ticks == (1,) else "D2"
        layout["yaxis"] |= {"type": "log", "dtick": step, "tickformat": "~g"}
    if panel.equal:
        layout["yaxis"]["scaleanchor"] = "x"
        for axis, span in zip(("xaxis", "yaxis"), _spans(panel), strict=True):
            layout[axis]["range"] = span
    if panel.x_range is not None:
        layout["xaxis"]["range"] = list(panel.x_range)
    if panel.y_range is not None:
        layout["yaxis"]["range"] = [float(np.log10(y)) if panel.log_y else y for y in panel.y_range]
    if panel.bars:
        if panel.categories:
            layout["barmode"] = "overlay"
        else:
            layout["barmode"] = "group"
    if any(curve.has_words for curve in panel.lines):
        layout["xaxis"]["type"] = "category"  # words that look like numbers remain words
    if panel.categories:
        words = [_words(name) for name in panel.categories]
        layout["xaxis"] |= {"categoryorder": "array", "categoryarray": words}
    layout["shapes"] = [_mark_line(x) for x, _ in panel.marks]
    layout["annotations"] = [_mark_words(x, words) for x, words in panel.marks if words]
    return {"data": traces, "layout": layout}


def _spans(panel: Panel) -> tuple[list[float], list[float]]:
    """The ranges of x and y that leave a margin around all curves."""
    ranges = []
    for axis in ("x", "y"):
        columns = [np.asarray(getattr(curve, axis), dtype=float) for curve in panel.lines]
        every = np.concatenate([np.zeros(0), *columns])
        finite = every[np.isfinite(every)]
        low = float(finite.min(initial=np.inf))
        high = float(finite.max(initial=-np.inf))
        if not high >= low:
            low, high = 0.0, 1.0
        margin = _MARGIN * (high - low) or 1.0
        ranges.append([low - margin, high + margin])
    return ranges[0], ranges[1]


class _Tracer(NamedTuple):
    """Makes the traces of curves and bands."""

    panel: Panel
    colours: dict[str, str]
    most: int

    def curve(self, curve: Curve) -> list[dict[str, Any]]:
        return [_curve(curve, self.panel, self.colours[curve.name], self.most)]

    def band(self, band: Band) -> list[dict[str, Any]]:
        return _band(band, self.colours[band.name], self.most)


def _decimated(x: Array, y: Array, most: int) -> Indices:
    """Indices of the points to draw, of a line or of several on one x, y (N, k), with gaps."""
    N = len(x)
    if most >= N:
        return np.arange(N)
    lines = list(y.reshape(N, -1).T)
    if not (np.diff(x) >= 0).all():
        lines.append(x)
    count = max(1, (most - 2) // (2 * len(lines)))
    edges = np.linspace(0, N, count + 1).astype(int)
    kept = [0, N - 1]
    for line in lines:
        gap = np.isnan(line)
        low = np.where(gap, np.inf, line)
        high = np.where(gap, -np.inf, line)
        for a, b in pairwise(edges):
            kept += [a + int(low[a:b].argmin()), a + int(high[a:b].argmax())]
            if gap[a:b].any():
                kept.append(a + int(gap[a:b].argmax()))
    return np.unique(kept)


def _thinned(x: Array, y: Array, most: int) -> Indices:
    """Indices of the dots to draw: some at equal steps, and the outermost ones."""
    N = len(x)
    if most >= N:
        return np.arange(N)
    outer = []
    for values in (x, y):
        gap = np.isnan(values)
        outer += [np.where(gap, np.inf, values).argmin(), np.where(gap, -np.inf, values).argmax()]
    return np.unique([*np.linspace(0, N - 1, max(2, most - 4)).astype(int), *outer])


def _rounded(values: ArrayLike, *, relative: bool = False) -> list[float | None]:
    """Numbers rounded to five digits of their span, or of each if relative; None for NaN, inf."""
    x = np.asarray(values, dtype=float)
    finite = x[np.isfinite(x)]
    if finite.size:
        span = float(np.ptp(finite))
    else:
        span = 0.0
    if relative or span == 0.0:
        return [float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None for value in x]
    short = np.round(x, _DIGITS - int(np.floor(np.log10(span)))).tolist()
    return [value if ok else None for value, ok in zip(short, np.isfinite(x), strict=True)]


def _words(text: str) -> str:
    """A text without the HTML that Plotly would interpret in labels."""
    return html.escape(text, quote=False)


def _curve(curve: Curve, panel: Panel, colour: str, most: int) -> dict[str, Any]:
    trace: dict[str, Any] = {"name": _words(curve.name)}
    y = np.asarray(curve.y, dtype=float)
    which = np.arange(len(y))
    if curve.has_words:
        trace["x"] = [_words(str(word)) for word in curve.x]
    else:
        x = np.asarray(curve.x, dtype=float)
        if curve.style == "dots":
            which = _thinned(x, y, min(most, _MAX_DOTS))
        elif curve.style != "bars":
            which = _decimated(x, y, most)
        trace["x"] = _rounded(x[which])
    trace["y"] = _rounded(y[which], relative=panel.log_y)
    if curve.y_std is not None:
        std = np.asarray(curve.y_std, dtype=float)
        half = np.where(np.isfinite(std), NORMAL_95 * std, np.nan)[which]
        trace["error_y"] = {
            "array": _rounded(half, relative=True),
            "color": INK,
            "thickness": 1,
            "width": 2,
        }
    return {**trace, **_look(curve.style, colour, len(which))}


def _look(style: str, colour: str, count: int) -> dict[str, Any]:
    if style == "bars":
        return {"type": "bar", "marker": {"color": colour}}
    if style == "dots":
        if count > 200:
            size = 3
        elif count > 30:
            size = 5
        else:
            size = 8
        return {"mode": "markers", "marker": {"color": colour, "size": size}}
    line: dict[str, Any] = {"color": colour, "width": 2.6 if colour == MUTED else 1.3}
    if style == "dashed":
        line["dash"] = "dash"
    return {"mode": "lines", "line": line}


def _band(band: Band, colour: str, most: int) -> list[dict[str, Any]]:
    """Two traces, the area between them filled, for each stretch without a gap."""
    x, low, high = (np.asarray(values, dtype=float) for values in (band.x, band.low, band.high))
    which = _decimated(x, np.column_stack([low, high]), most)
    whole = np.isfinite(low[which]) & np.isfinite(high[which])
    if len(which):
        stretches = np.split(which, np.flatnonzero(np.diff(whole)) + 1)
    else:
        stretches = []
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    fill = {"fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},0.18)"}
    edge = {"name": _words(band.name), "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    traces = []
    for part in stretches:
        if np.isfinite(low[part[0]]) and np.isfinite(high[part[0]]):
            along = _rounded(x[part])
            traces.append({"x": along, "y": _rounded(low[part]), **edge})
            traces.append({"x": along, "y": _rounded(high[part]), **edge, **fill})
    return traces


def _mark_line(x: float) -> dict[str, Any]:
    line = {"color": "#7b8794", "width": 1, "dash": "dot"}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": line}


def _mark_words(x: float, words: str) -> dict[str, Any]:
    place = {
        "x": x,
        "y": 1,
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "top",
        "showarrow": False,
    }
    return {"text": _words(words), "textangle": 0, "font": {"size": 11, "color": SOFT}, **place}
