"""The history of an online estimate: mass and centre of mass over time, and convergence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.drawing import Band, Curve, Panel, Plot
from steelyard.payload._tracking import Progress, convergence_times

_MIN_MASS_SPAN = 0.05  # of an axis, [kg]
_MIN_COM_SPAN = 5.0  # of an axis, [mm]
_MAX_PERCENT = 300.0  # of an axis of relative uncertainty
_Marks = Sequence[tuple[float, str]]
_Span = Sequence[Progress]  # of one payload


def tracking_plot(points: Sequence[Progress], *, accuracy: float) -> Plot:
    """Mass, its relative uncertainty and the centre of mass over time, with 95 % bands.

    Args:
        points: the estimate over time
        accuracy: requested 95 % half-width of the mass, over the mass
    """
    last = points[-1]
    if np.isfinite(last.mass_std):
        half = f"± {NORMAL_95 * last.mass_std:.3f} kg (95 %)"
    else:
        half = "kg (not known)"
    spans = [
        [p for p in points if p.number == number and np.isfinite(p.mass_std)]
        for number in sorted({point.number for point in points})
    ]
    whole = (points[0].t, max(last.t, points[0].t + 1e-3))
    marks = _marks(points)
    panels = [
        _mass_panel(spans, whole, marks),
        _share_panel(spans, whole, accuracy),
        _com_panel(spans, whole),
    ]
    words = f"The estimate while the arm moves, at the end {last.mass:.3f} {half}."
    return Plot(f"{words} {last.status[:1].upper()}{last.status[1:]}.", panels, 1)


def _mass_panel(spans: Sequence[_Span], whole: tuple[float, float], marks: _Marks) -> Panel:
    t = _column(spans, lambda p: p.t)
    mass = _column(spans, lambda p: p.mass)
    half = _column(spans, lambda p: NORMAL_95 * p.mass_std)
    window = _window(
        [(p.mass, NORMAL_95 * p.mass_std) for span in spans for p in _later(span)], _MIN_MASS_SPAN
    )
    parts: list[Curve | Band] = [
        Band("95 % interval", t, mass - half, mass + half),
        Curve("mass", t, mass),
    ]
    return Panel("mass", "time [s]", "mass", parts, marks, x_range=whole, y_range=window, unit="kg")


def _share_panel(spans: Sequence[_Span], whole: tuple[float, float], accuracy: float) -> Panel:
    t = _column(spans, lambda p: p.t)
    asked = 100 * accuracy
    percent = _column(spans, lambda p: 100 * NORMAL_95 * p.mass_std / max(abs(p.mass), 1e-9))
    known = percent[np.isfinite(percent)]
    low = known.min(initial=asked / 2)
    high = known.max(initial=2 * asked)
    parts = [
        Curve("half-width", t, percent, colour="#2266aa"),
        Curve(
            f"requested: {asked:g} %",
            np.array(whole),
            np.full(2, asked),
            "dashed",
            colour="#c23030",
        ),
    ]
    window = (0.9 * float(low), min(float(high), _MAX_PERCENT))
    title = "half-width of the 95 % interval of the mass"
    return Panel(
        title, "time [s]", "share", parts, log_y=True, x_range=whole, y_range=window, unit="%"
    )


def _com_panel(spans: Sequence[_Span], whole: tuple[float, float]) -> Panel:
    known = [[p for p in span if np.isfinite(p.com_std).all()] for span in spans]
    t = _column(known, lambda p: p.t)
    parts: list[Curve | Band] = []
    for i, (axis, colour) in enumerate(zip("xyz", ("#2266aa", "#d9822b", "#2a9d5c"), strict=True)):
        com = _column(known, lambda p, i=i: 1e3 * p.com[i])  # type: ignore[misc]
        half = _column(known, lambda p, i=i: 1e3 * NORMAL_95 * p.com_std[i])  # type: ignore[misc]
        parts += [
            Band(f"{axis}: 95 %", t, com - half, com + half),
            Curve(axis, t, com, colour=colour),
        ]
    late = [p for span in known for p in _later(span)]
    window = _window(
        [(1e3 * p.com[i], 1e3 * NORMAL_95 * p.com_std[i]) for p in late for i in range(3)],
        _MIN_COM_SPAN,
    )
    title = "centre of mass in the flange frame"
    return Panel(title, "time [s]", "position", parts, x_range=whole, y_range=window, unit="mm")


def _column(spans: Sequence[_Span], value: Callable[[Progress], float]) -> Array:
    """A value of every point, with a gap after each payload."""
    return np.array([x for span in spans for x in (*map(value, span), np.nan)])


def _later(span: _Span) -> _Span:
    """The later two thirds of a payload's points, which determine the range of an axis."""
    return span[len(span) // 3 :]


def _window(shown: Sequence[tuple[float, float]], least: float) -> tuple[float, float]:
    """Limits that show values with their half-widths, with a margin."""
    if not shown:
        return -1.0, 1.0
    value, half = np.array(shown).T
    half = np.minimum(half, 3 * np.median(half) + least)
    low = float((value - half).min())
    high = float((value + half).max())
    margin = 0.15 * (high - low) + least / 10
    return low - margin, high + margin


def _marks(points: Sequence[Progress]) -> list[tuple[float, str]]:
    """Changes of the payload, and the times at which each reached the requested accuracy."""
    changes = [(b.t, "another payload") for a, b in pairwise(points) if b.number > a.number]
    since = convergence_times(points).values()
    return sorted([*changes, *((t, f"converged at {t:.1f} s") for t in since)])
