"""A panel as Plotly draws it: few points that keep the extremes, short numbers, one colour a name.

A line of N points is cut into buckets of equal length; of each the lowest and the highest point stay (and the
leftmost and rightmost where x goes back), so that no peak is lost however few points are drawn. A cloud of
dots is thinned evenly instead, its outermost points kept: the extremes of buckets would paint two edges.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.report.page import Band, Curve, Panel, Plot

_INK, _MUTED, _TRUTH = "#1f2933", "#b8c1cc", "#c23030"
_PALETTE = ("#2266aa", "#d9822b", "#2a9d5c", "#8e5bb5", "#b04a6f", "#5f7a8a", "#8a7a2a", "#17a2b8")
_DIGITS = 5
_MOST_DOTS = 250  # each is an element of its own in the page: slow to draw


def decimated(x: ArrayLike, y: ArrayLike, most: int) -> NDArray[np.intp]:
    """Which points of a line to draw: the extremes of every bucket, in their order, at most about `most`.

    Args:
        x: (N,)
        y: (N,) or several lines on one x, (N, k); NaN is a gap, and a gap stays a gap
        most: number of points
    """
    across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    N = len(across)
    if most >= N:
        return np.arange(N)
    lines = list(up.reshape(N, -1).T)
    if not (np.diff(across) >= 0).all():
        lines.append(across)
    count = max(1, (most - 2) // (2 * len(lines)))
    edges = np.linspace(0, N, count + 1).astype(int)
    kept = [0, N - 1]
    for line in lines:
        low, high = np.where(np.isnan(line), np.inf, line), np.where(np.isnan(line), -np.inf, line)
        gap = np.isnan(line)
        for a, b in pairwise(edges):
            kept += [a + int(low[a:b].argmin()), a + int(high[a:b].argmax())]
            if gap[a:b].any():
                kept.append(a + int(gap[a:b].argmax()))
    return np.unique(kept)


def thinned(x: ArrayLike, y: ArrayLike, most: int) -> NDArray[np.intp]:
    """Which dots of a cloud to draw: every so-manieth, and the outermost ones.

    Args:
        x: (N,)
        y: (N,)
        most: number of points
    """
    across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    N = len(across)
    if most >= N:
        return np.arange(N)
    outer = [f(np.where(np.isnan(values), fill, values)) for values in (across, up) for f, fill in _OUTERMOST]
    return np.unique([*np.linspace(0, N - 1, max(2, most - 4)).astype(int), *outer])


_OUTERMOST = ((np.argmin, np.inf), (np.argmax, -np.inf))


def rounded(values: ArrayLike, *, relative: bool = False) -> list[float | None]:
    """Numbers to about five digits of the largest span, for JSON; None where they are not finite.

    Args:
        values: (N,)
        relative: five digits of each number instead, for logarithmic axes
    """
    x = np.asarray(values, dtype=float)
    finite = x[np.isfinite(x)]
    span = float(np.ptp(finite)) if finite.size else 0.0
    if relative or span == 0.0:
        return [float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None for value in x]
    short = np.round(x, _DIGITS - int(np.floor(np.log10(span)))).tolist()
    return [value if ok else None for value, ok in zip(short, np.isfinite(x), strict=True)]


def colours_of(plot: Plot) -> dict[str, str]:
    """The colour of every name in a plot.

    Args:
        plot: whose panels share the colours
    """
    found: dict[str, str] = {}
    for panel in plot.panels:
        for curve in panel.curves:
            if isinstance(curve, Curve) and curve.name not in found:
                used = sum(colour in _PALETTE for colour in found.values())
                found[curve.name] = curve.colour or _known(curve.name) or _PALETTE[used % len(_PALETTE)]
    for panel in plot.panels:
        for i, part in enumerate(panel.curves):
            if isinstance(part, Band) and part.name not in found:
                lines = [c for c in (*panel.curves[i:], *panel.curves[i::-1]) if isinstance(c, Curve)]
                found[part.name] = part.colour or (found[lines[0].name] if lines else _PALETTE[0])
    return found


def legend_of(panel: Panel) -> tuple[tuple[str, str], ...]:
    """Names and styles of the parts of a panel, each name once, 'band' for an area.

    Args:
        panel: whose curves they are
    """
    styles = {part.name: "band" if isinstance(part, Band) else part.style for part in panel.curves}
    return tuple((name, style) for name, style in styles.items() if name)


def panel_figure(panel: Panel, colours: dict[str, str], most: int) -> dict[str, Any]:
    """Traces and layout of a panel, for Plotly; all words are escaped.

    Args:
        panel: to draw
        colours: of the names
        most: points of a curve
    """
    traces = []
    for part in panel.curves:
        colour = colours[part.name]
        traces += _band(part, colour, most) if isinstance(part, Band) else [_curve(part, panel, colour, most)]
    layout: dict[str, Any] = {"xaxis": {"title": {"text": _words(panel.x)}}}
    layout["yaxis"] = {"title": {"text": _words(panel.y)}}
    if panel.log_y:
        layout["yaxis"] |= {"type": "log", "dtick": _log_step(panel), "tickformat": "~g"}
    if panel.equal:
        layout["yaxis"]["scaleanchor"] = "x"
    if any(isinstance(part, Curve) and part.style == "bars" for part in panel.curves):
        layout["barmode"] = "overlay" if panel.categories else "group"
    if any(isinstance(part, Curve) and _worded(part) for part in panel.curves):
        layout["xaxis"]["type"] = "category"  # words that look like numbers stay words
    if panel.categories:
        words = [_words(name) for name in panel.categories]
        layout["xaxis"] |= {"categoryorder": "array", "categoryarray": words}
    layout["shapes"] = [_mark_line(x) for x, _ in panel.marks]
    layout["annotations"] = [_mark_words(x, words) for x, words in panel.marks if words]
    return {"data": traces, "layout": layout}


def _log_step(panel: Panel) -> str | int:
    """Ticks at 1, 2 and 5 of every decade, or at 1 alone where there are many decades."""
    curves = [np.asarray(part.y, dtype=float) for part in panel.curves if isinstance(part, Curve)]
    drawn = np.concatenate([*curves, np.zeros(0)])
    above = drawn[np.isfinite(drawn) & (drawn > 0)]
    return 1 if above.size and above.max() > 300 * above.min() else "D2"


def _worded(curve: Curve) -> bool:
    return len(curve.x) > 0 and isinstance(curve.x[0], str)


def _known(name: str) -> str:
    word = name.lower()
    return _MUTED if word.startswith("measured") else _TRUTH if word.startswith("truth") else ""


def _words(text: str) -> str:
    """Plotly reads some HTML in its labels: ours is plain text."""
    return html.escape(text, quote=False)


def _curve(curve: Curve, panel: Panel, colour: str, most: int) -> dict[str, Any]:
    trace: dict[str, Any] = {"name": _words(curve.name)}
    y = np.asarray(curve.y, dtype=float)
    std = None if curve.y_std is None else np.asarray(curve.y_std, dtype=float)
    if _worded(curve):
        which = np.arange(len(y))
        trace["x"] = [_words(str(word)) for word in curve.x]
    else:
        x = np.asarray(curve.x, dtype=float)
        which = np.arange(len(y))
        if curve.style == "dots":
            which = thinned(x, y, min(most, _MOST_DOTS))
        elif curve.style != "bars":
            which = decimated(x, y, most)
        trace["x"] = rounded(x[which])
    trace["y"] = rounded(y[which], relative=panel.log_y)
    if std is not None:
        half = np.where(np.isfinite(std), 1.96 * std, np.nan)[which]
        trace["error_y"] = {"array": rounded(half, relative=True), "color": _INK, "thickness": 1, "width": 2}
    return {**trace, **_look(curve.style, colour, len(which))}


def _look(style: str, colour: str, count: int) -> dict[str, Any]:
    if style == "bars":
        return {"type": "bar", "marker": {"color": colour}}
    if style == "dots":
        size = 3 if count > 200 else 5 if count > 30 else 8
        return {"mode": "markers", "marker": {"color": colour, "size": size}}
    line: dict[str, Any] = {"color": colour, "width": 2.6 if colour == _MUTED else 1.3}
    if style == "dashed":
        line["dash"] = "dash"
    if style == "steps":
        line["shape"] = "hv"
    return {"mode": "lines", "line": line}


def _band(band: Band, colour: str, most: int) -> list[dict[str, Any]]:
    low, high = np.asarray(band.low, dtype=float), np.asarray(band.high, dtype=float)
    which = decimated(band.x, np.column_stack([low, high]), most)
    which = which[np.isfinite(low[which]) & np.isfinite(high[which])]
    x = rounded(np.asarray(band.x, dtype=float)[which])
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    name = _words(band.name)
    return [
        {"x": x, "y": rounded(low[which]), "name": name, **edge},
        {
            "x": x,
            "y": rounded(high[which]),
            "name": name,
            "fill": "tonexty",
            "fillcolor": f"rgba({red},{green},{blue},0.18)",
            **edge,
        },
    ]


def _mark_line(x: float) -> dict[str, Any]:
    line = {"color": "#7b8794", "width": 1, "dash": "dot"}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": line}


def _mark_words(x: float, words: str) -> dict[str, Any]:
    place = {"x": x, "y": 1, "yref": "paper", "xanchor": "left", "yanchor": "top", "showarrow": False}
    return {"text": _words(words), "textangle": 0, "font": {"size": 11, "color": "#52606d"}, **place}


def curves_in(plots: Sequence[Plot]) -> int:
    """How many lines there are in plots.

    Args:
        plots: to count in
    """
    return sum(len(panel.curves) for plot in plots for panel in plot.panels)
