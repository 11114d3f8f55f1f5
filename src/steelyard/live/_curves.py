"""A panel of curves and bands on a live page, drawn by viser's uPlot in the browser.

uPlot draws all curves on one sorted x. The curves of a panel are therefore interpolated on the
union of their x, and cut off at the range of the panel, from which uPlot chooses its axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard._arrays import Array
from steelyard.drawing import Band, Curve, Panel
from steelyard.live._words import page_part

if TYPE_CHECKING:
    from viser import GuiApi, GuiHtmlHandle, GuiTabHandle, GuiUplotHandle

_HEIGHT = 150  # [px]
_PADDING = (8, 28, 0, 0)  # top, right, bottom, left, [px]
_LINEAR = 1  # distributions of uPlot
_LOGARITHMIC = 3
_BAND_OPACITY = "33"  # of 255, hexadecimal
_NO_ROLLOVER = (None,) * 6
_CLOCK = (  # formats of the time of day, by the smallest step of the axis in seconds
    (3600, "{HH}:{mm}", *_NO_ROLLOVER, 1),
    (60, "{HH}:{mm}", *_NO_ROLLOVER, 1),
    (1, "{HH}:{mm}:{ss}", *_NO_ROLLOVER, 1),
    (0.001, "{ss}.{fff}", *_NO_ROLLOVER, 1),
)


class LiveChart:
    """A title with the keys of the curves, and a chart below it once there are values.

    The names and kinds of the curves stay the same; their values change.

    Args:
        gui: of the page
        tab: that holds the chart
        order: of the chart in the tab
    """

    def __init__(self, gui: GuiApi, tab: GuiTabHandle, order: int) -> None:
        self._gui = gui
        self._tab = tab
        self._order = order
        with tab:
            self._title: GuiHtmlHandle = gui.add_html("", order=order)
        self._chart: GuiUplotHandle | None = None

    def draw(self, panel: Panel, colours: Mapping[str, str], age: str = "") -> None:
        """Shows a panel.

        Args:
            panel: curves and bands over the time of day, [s] since 1970
            colours: by the names of curves and bands
            age: how old the newest row is; empty where it is new
        """
        title = title_html(panel, colours, age)
        if self._title.content != title:
            self._title.content = title
        if self._chart is None:
            self._chart = self._created(panel, colours)
        else:
            self._chart.data = chart_data(panel)

    def _created(self, panel: Panel, colours: Mapping[str, str]) -> GuiUplotHandle:
        """A new chart with the curves of a panel."""
        drawing = _ChartSeries(colours)
        for part in panel.curves:
            part.drawn_by(drawing)
        distribution = _LINEAR
        if panel.log_y:
            distribution = _LOGARITHMIC
        ticks = {"show": False}
        axes: Any = (
            {"values": _CLOCK, "size": 30, "space": 70, "ticks": ticks},
            {"size": 48, "ticks": ticks},
        )
        scales: Any = {"x": {"time": True}, "y": {"distr": distribution}}
        with self._tab:
            return self._gui.add_uplot(
                chart_data(panel),
                tuple(drawing.series),
                bands=tuple(drawing.bands) or None,
                scales=scales,
                axes=axes,
                legend={"show": False},
                height=_HEIGHT,
                padding=_PADDING,
                order=self._order + 0.5,
            )


class _ChartSeries:
    """The series of a chart, the first of which is x, and the areas between some of them."""

    def __init__(self, colours: Mapping[str, str]) -> None:
        self._colours = colours
        self.series: list[Any] = [{}]
        self.bands: list[Any] = []

    def curve(self, curve: Curve) -> None:
        """Adds a line."""
        self.series.append(_line(curve, self._colours[curve.name]))

    def band(self, band: Band) -> None:
        """Adds two invisible lines and the area between them."""
        low = len(self.series)
        fill = self._colours[band.name] + _BAND_OPACITY
        self.bands.append({"series": (low + 1, low), "fill": fill})
        self.series += [{"width": 0, "points": {"show": False}} for _ in range(2)]


class _Values:
    """The values of the series of a chart."""

    def curve(self, curve: Curve) -> tuple[Array, ...]:
        """Of a line."""
        return (curve.y,)

    def band(self, band: Band) -> tuple[Array, ...]:
        """Of both edges of an area."""
        return (band.low, band.high)


def _line(curve: Curve, colour: str) -> dict[str, Any]:
    line: dict[str, Any] = {"stroke": colour, "width": 1.6, "points": {"show": False}}
    if curve.style == "dashed":
        line["dash"] = (5, 4)
    return line


def chart_data(panel: Panel) -> tuple[Array, ...]:
    """The common x of a panel, then the values of its curves; a band has a low and a high one.

    Args:
        panel: with numbers on x
    """
    parts = [np.asarray(part.x, dtype=float) for part in panel.curves]
    every = np.concatenate([np.zeros(0), *parts])
    x = np.unique(every[np.isfinite(every)])
    columns = [x]
    for part in panel.curves:
        for y in part.drawn_by(_Values()):
            columns.append(_on(x, np.asarray(part.x, dtype=float), y, panel.y_range))
    return tuple(columns)


def _on(x: Array, own_x: Array, y: Array, y_range: tuple[float, float] | None) -> Array:
    """A curve on another x, cut off at a range; NaN where it has no values at all."""
    values = np.asarray(y, dtype=float)
    known = np.isfinite(own_x) & np.isfinite(values)
    if not known.any():
        return np.full(len(x), np.nan)
    found = np.interp(x, own_x[known], values[known])
    if y_range is not None:
        found = np.clip(found, *y_range)
    return np.asarray(found)


def title_html(panel: Panel, colours: Mapping[str, str], age: str = "") -> str:
    """The title of a panel with its unit, and the keys of its curves.

    Args:
        panel: to name
        colours: by the names of curves and bands
        age: how old the newest row is, which makes all charts of the page grey; empty where it is
            new
    """
    keys = [{"name": name, "style": style, "colour": colours[name]} for name, style in panel.legend]
    return page_part("chart", {"title": panel.title, "unit": panel.unit, "keys": keys, "age": age})
