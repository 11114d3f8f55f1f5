"""A plot as SVG in HTML for live pages: small, without scripts, in the colour of the text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from steelyard._arrays import Array
from steelyard.drawing._plot import MUTED, Band, Curve, Panel, Plot

_LEFT = 44  # margins for labels, [px]
_RIGHT = 6
_TOP = 6
_BOTTOM = 20
_MIN_TICKS = 3
_TEXT = 'fill="currentColor" fill-opacity=".6" font-size="11"'
_GRID = 'fill="none" stroke="currentColor" stroke-opacity=".13"'
_MARK = 'fill="none" stroke="currentColor" stroke-opacity=".5" stroke-dasharray="2 3"'


def vector_html(plot: Plot, *, width: int = 360, height: int = 170) -> str:
    """The panels of a plot below each other, with title, legend and axes; lines and areas only.

    Args:
        plot: with numbers on x
        width: of a panel, [px]; scaled with the page
        height: of a panel, [px]
    """
    return "".join(
        _panel(panel, plot.colours, _Axes(panel, width, height)) for panel in plot.panels
    )


class _Axes:
    """Conversion of numbers to pixels."""

    def __init__(self, panel: Panel, width: int, height: int) -> None:
        self.log_y = panel.log_y
        self.width = width
        self.height = height
        self.inner = (width - _LEFT - _RIGHT, height - _TOP - _BOTTOM)
        xs = [np.asarray(part.x, dtype=float) for part in panel.curves]
        lines = [
            [part.y] if isinstance(part, Curve) else [part.low, part.high] for part in panel.curves
        ]
        self._x = panel.x_range or _span(xs)
        low, high = panel.y_range or _span([y for line in lines for y in line])
        if self.log_y:
            self._y = (np.log10(max(low, 1e-9)), np.log10(max(high, 1e-9)))
        else:
            self._y = (low, high)

    def x(self, x: Array) -> Array:
        low, high = self._x
        return np.asarray(_LEFT + (np.asarray(x, dtype=float) - low) / (high - low) * self.inner[0])

    def y(self, y: Array) -> Array:
        (low, high) = self._y
        y = np.asarray(y, dtype=float)
        if self.log_y:
            y = np.log10(np.maximum(y, 1e-9))
        return np.asarray(np.clip(_TOP + (high - y) / (high - low) * self.inner[1], -1e4, 1e4))

    @property
    def ticks_x(self) -> Array:
        return _ticks(*self._x)

    @property
    def ticks_y(self) -> Array:
        if not self.log_y:
            return _ticks(*self._y)
        decades = np.arange(np.floor(self._y[0]), np.ceil(self._y[1]) + 1)
        every = (10.0 ** decades[:, None] * [1, 2, 5]).ravel()
        inside = every[(np.log10(every) >= self._y[0]) & (np.log10(every) <= self._y[1])]
        if len(inside) > 2 * _MIN_TICKS + 2:
            inside = inside[np.isin(inside, 10.0**decades)]
        return np.asarray(inside)


def _panel(panel: Panel, colours: dict[str, str], axes: _Axes) -> str:
    areas = [
        _area(part, colours[part.name], axes) for part in panel.curves if isinstance(part, Band)
    ]
    lines = [
        _line(part, colours[part.name], axes) for part in panel.curves if isinstance(part, Curve)
    ]
    marks = [
        f'<path {_MARK} d="M{axes.x(np.array(t)):.1f}'
        f' 0v{axes.height}"><title>{escape(words)}</title></path>'
        for t, words in panel.marks
    ]
    (w, h) = axes.inner
    inside = f'x="{_LEFT}" y="{_TOP}" width="{w}" height="{h}" viewBox="{_LEFT} {_TOP} {w} {h}"'
    legend = "".join(
        _key(name, colours[name], wide=style == "band") for name, style in panel.legend
    )
    return (
        '<figure style="margin:0 0 14px"><figcaption'
        f' style="font-size:12px"><b>{escape(panel.title)}</b>'
        f' <span style="opacity:.6">{escape(panel.y.removeprefix(panel.title))}</span></figcaption>'
        f'<svg viewBox="0 0 {axes.width} {axes.height}" width="100%"'
        f' style="display:block">{_frame(axes)}'
        f"<svg {inside}>{''.join([*areas, *lines, *marks])}</svg></svg>"
        f'<div style="font-size:11px;opacity:.8;padding-left:{_LEFT}px">{legend}'
        f'<span style="float:right">{escape(panel.x)}</span></div></figure>'
    )


def _frame(axes: _Axes) -> str:
    """Grid and labels of the axes."""
    right = _LEFT + axes.inner[0]
    bottom = _TOP + axes.inner[1]
    words = []
    for value, y in zip(axes.ticks_y, axes.y(axes.ticks_y), strict=True):
        words.append(f'<path {_GRID} d="M{_LEFT} {y:.1f}H{right}"/>')
        words.append(
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" {_TEXT}>{value:.6g}</text>'
        )
    for value, x in zip(axes.ticks_x, axes.x(axes.ticks_x), strict=True):
        if x > right - 10:
            end = "end"
        else:
            end = "middle"
        words.append(
            f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="{end}" {_TEXT}>{value:.6g}</text>'
        )
    return "".join(words)


def _line(curve: Curve, colour: str, axes: _Axes) -> str:
    if colour == MUTED:
        width = 3.0
    else:
        width = 1.7
    if curve.style == "dashed":
        dash = ' stroke-dasharray="5 4"'
    else:
        dash = ""
    paths = (_path(x, y) for x, y in _stretches(axes.x(np.asarray(curve.x)), axes.y(curve.y)))
    return (
        f'<path fill="none" stroke="{colour}" stroke-width="{width}"{dash} d="{"".join(paths)}"/>'
    )


def _area(band: Band, colour: str, axes: _Axes) -> str:
    x = axes.x(band.x)
    both = np.column_stack([axes.y(band.low), axes.y(band.high)])
    paths = (
        _path(np.append(x, x[::-1]), np.append(y[:, 0], y[::-1, 1])) + "Z"
        for x, y in _stretches(x, both)
    )
    return f'<path fill="{colour}" fill-opacity=".22" d="{"".join(paths)}"/>'


def _stretches(x: Array, y: Array) -> list[tuple[Array, Array]]:
    """The pieces of a line, or of several on one x, without gaps."""
    whole = np.isfinite(y) if y.ndim == 1 else np.isfinite(y).all(axis=1)
    ends = np.flatnonzero(np.diff(whole)) + 1
    pieces = zip(np.split(x, ends), np.split(y, ends), np.split(whole, ends), strict=True)
    return [(a, b) for a, b, kept in pieces if len(kept) > 1 and kept[0]]


def _path(x: Array, y: Array) -> str:
    points = np.round(np.column_stack([x, y]), 1).tolist()
    return "M" + "L".join(f"{a:g} {b:g}" for a, b in points)


def _key(name: str, colour: str, *, wide: bool) -> str:
    if wide:
        look = f"height:9px;background:{colour};opacity:.35"
    else:
        look = f"height:3px;background:{colour}"
    box = (
        "display:inline-block;width:14px;border-radius:2px;margin-right:5px;"
        f"vertical-align:middle;{look}"
    )
    return (
        '<span style="margin-right:1em;white-space:nowrap"><i'
        f' style="{box}"></i>{escape(name)}</span>'
    )


def _span(values: Sequence[Array]) -> tuple[float, float]:
    """Limits that show all finite values, with a margin."""
    every = np.concatenate([np.zeros(0), *(np.ravel(x) for x in values)])
    every = every[np.isfinite(every)]
    if not every.size:
        return 0.0, 1.0
    margin = 0.06 * float(np.ptp(every)) or 0.5
    return float(every.min()) - margin, float(every.max()) + margin


def _ticks(low: float, high: float) -> Array:
    """Round numbers between two limits: at least three, at most a few more."""
    decade = 10.0 ** np.floor(np.log10(high - low))
    for step in decade * np.array([5.0, 2.0, 1.0, 0.5, 0.2]):
        found = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
        if len(found) >= _MIN_TICKS:
            break
    return np.asarray(found + 0.0)
