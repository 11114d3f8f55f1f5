"""Plots as data: curves and bands in panels, with the colours and legend of all renderers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeVar

import numpy as np

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.errors import InvalidSamples

INK = "#1f2933"
SOFT = "#52606d"
MUTED = "#b8c1cc"
TRUTH = "#c23030"
T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
_PALETTE = ("#2266aa", "#d9822b", "#2a9d5c", "#8e5bb5", "#b04a6f", "#5f7a8a", "#8a7a2a", "#17a2b8")


class Renderer(Protocol[T_co]):
    """Draws the parts of a panel, each in its way."""

    def curve(self, curve: Curve) -> T_co:
        """A curve, drawn."""

    def band(self, band: Band) -> T_co:
        """A band, drawn."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One line of a plot.

    Attributes:
        name: in the legend; curves of one name share a colour
        x: (N,), or N words for bars
        y: (N,); NaN is a gap
        style: 'line', 'dashed', 'dots' or 'bars'
        y_std: standard deviation, drawn as 95 % error bars, (N,); none by default
        colour: as '#2266aa'; if empty, by the name: 'measured' grey, 'truth' red, others from the
            palette
    """

    name: str
    x: Array | Sequence[str]
    y: Array
    style: Literal["line", "dashed", "dots", "bars"] = "line"
    y_std: Array | None = None
    colour: str = ""

    def __post_init__(self) -> None:
        _require_one_length(
            self.name, self.x, self.y, *([] if self.y_std is None else [self.y_std])
        )

    @property
    def has_words(self) -> bool:
        """Whether x are words."""
        return len(self.x) > 0 and isinstance(self.x[0], str)

    def drawn_by(self, renderer: Renderer[T]) -> T:
        """What a renderer makes of it."""
        return renderer.curve(self)


@dataclass(frozen=True, eq=False)
class Band:
    """An area between two lines: an interval, a threshold.

    Attributes:
        name: in the legend
        x: (N,)
        low: (N,); NaN is a gap
        high: (N,)
        colour: as '#2266aa'; if empty, that of the next curve of the panel
    """

    name: str
    x: Array
    low: Array
    high: Array
    colour: str = ""
    style: ClassVar[Literal["band"]] = "band"

    def __post_init__(self) -> None:
        _require_one_length(self.name, self.x, self.low, self.high)

    def drawn_by(self, renderer: Renderer[T]) -> T:
        """What a renderer makes of it."""
        return renderer.band(self)


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes.

    Attributes:
        title: above the axes
        x: label of the x axis, with its unit
        y: label of the y axis, with its unit where `unit` is empty
        curves: curves and bands to draw
        marks: x of vertical lines, each with a word
        log_y: whether y is logarithmic
        equal: whether both axes have the same scale
        categories: order of the words on x, for bars
        x_range: of the axis, may be reversed; None to show all data
        y_range: of the axis, may be reversed; None to show all data
        unit: of the y axis
    """

    title: str
    x: str
    y: str
    curves: Sequence[Curve | Band]
    marks: Sequence[tuple[float, str]] = ()
    log_y: bool = False
    equal: bool = False
    categories: Sequence[str] = ()
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    unit: str = ""

    @property
    def y_label(self) -> str:
        """The label of the y axis, with its unit."""
        if self.unit:
            return f"{self.y} [{self.unit}]"
        return self.y

    @property
    def legend(self) -> tuple[tuple[str, str], ...]:
        """Each name once, with its style; the style of an area is 'band'."""
        styles = {part.name: part.style for part in self.curves}
        return tuple((name, style) for name, style in styles.items() if name)

    @property
    def lines(self) -> tuple[Curve, ...]:
        """The curves without the bands."""
        return tuple(part for part in self.curves if part.style != "band")

    @property
    def bars(self) -> tuple[Curve, ...]:
        """The curves that are drawn as bars."""
        return tuple(curve for curve in self.lines if curve.style == "bars")

    @property
    def log_ticks(self) -> tuple[int, ...]:
        """Ticks of each decade: 1, 2 and 5, or only 1 if there are many decades."""
        drawn = np.concatenate([np.zeros(0), *(curve.y for curve in self.lines)])
        above = drawn[np.isfinite(drawn) & (drawn > 0)]
        if above.size and above.max() > 300 * above.min():
            return (1,)
        return (1, 2, 5)


@dataclass(frozen=True, eq=False)
class Plot:
    """Panels under one caption.

    Attributes:
        caption: description of the panels
        panels: side by side, one in a row on a phone
        columns: panels in a row on a wide screen, 1 to 3
    """

    caption: str
    panels: Sequence[Panel]
    columns: int = 2

    @classmethod
    def over_time(
        cls,
        caption: str,
        t: Array,
        signals: Mapping[str, Array],
        names: Sequence[str],
        *,
        units: str | Sequence[str],
        std: Mapping[str, Array] | None = None,
        marks: Sequence[tuple[float, str]] = (),
    ) -> Plot:
        """Signals over time, one panel for each of their columns.

        Args:
            t: time, (N,) [s]
            signals: by name in the legend, each (N, k)
            names: of the k panels
            units: label of y, one for all or k
            std: standard deviations of some signals, (N, k): 95 % bands are drawn
            marks: x of vertical lines, each with a word
        """
        if isinstance(units, str):
            labels = [units] * len(names)
        else:
            labels = list(units)
        panels = []
        for k, name in enumerate(names):
            parts: list[Curve | Band] = []
            for key, signal in signals.items():
                y = np.asarray(signal)[:, k]
                if std is not None and key in std:
                    half = NORMAL_95 * np.asarray(std[key])[:, k]
                    parts.append(Band(f"{key}: 95 %", t, y - half, y + half))
                parts.append(Curve(key, t, y))
            panels.append(Panel(name, "time [s]", labels[k], parts, marks))
        return cls(caption, panels)

    @property
    def shared_legend(self) -> tuple[tuple[str, str], ...]:
        """The longest legend of a panel, if it contains all others; otherwise empty."""
        legends = [panel.legend for panel in self.panels]
        longest = max(legends, key=len, default=())
        if all(set(legend) <= set(longest) for legend in legends):
            return longest
        return ()

    @property
    def colours(self) -> dict[str, str]:
        """The colour of each name, in all panels."""
        found: dict[str, str] = {}
        for panel in self.panels:
            for curve in panel.lines:
                if curve.name not in found:
                    used = sum(colour in _PALETTE for colour in found.values())
                    known = curve.colour or _colour_by_name(curve.name)
                    found[curve.name] = known or _PALETTE[used % len(_PALETTE)]
        for panel in self.panels:
            for i, band in enumerate(panel.curves):
                if band.name not in found:
                    found[band.name] = band.colour or _colour_of_neighbour(panel, i, found)
        return found


def _colour_of_neighbour(panel: Panel, index: int, colours: Mapping[str, str]) -> str:
    """The colour of the next curve after a band, else of the last one before it."""
    after = panel.curves[index:]
    before = panel.curves[index::-1]
    for part in (*after, *before):
        if part.style != "band":
            return colours[part.name]
    return _PALETTE[0]


def _colour_by_name(name: str) -> str:
    word = name.lower()
    if word.startswith("measured"):
        return MUTED
    if word.startswith("truth"):
        return TRUTH
    return ""


def _require_one_length(name: str, *columns: Array | Sequence[str]) -> None:
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise InvalidSamples(f"curve '{name}': x and y must have the same length, got {lengths}")
