"""How an online estimate became known: mass and centre of mass over time, and when they were sure enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.drawing import Band, Curve, Panel, Plot
from steelyard.payload._tracking import Progress, convergence_times

_LEAST_MASS = 0.05
_LEAST_COM = 5.0  # that an axis shows around a value, [kg, mm]
_LARGEST_SHARE = 300.0  # [%]
_Marks = Sequence[tuple[float, str]]
_Span = Sequence[Progress]  # of one payload


def tracking_plot(points: Sequence[Progress], *, accuracy: float) -> Plot:
    """Mass, its relative uncertainty and the centre of mass over time, with 95 % bands.

    Args:
        accuracy: half-width of the mass's 95 % interval over the mass that was requested
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
        [(p.mass, NORMAL_95 * p.mass_std) for span in spans for p in _later(span)], _LEAST_MASS
    )
    parts: list[Curve | Band] = [
        Band("95 % interval", t, mass - half, mass + half),
        Curve("mass", t, mass),
    ]
    return Panel("mass", "time [s]", "mass [kg]", parts, marks, x_range=whole, y_range=window)


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
    window = (0.9 * float(low), min(float(high), _LARGEST_SHARE))
    title = "half-width of the 95 % interval of the mass"
    return Panel(title, "time [s]", "share [%]", parts, log_y=True, x_range=whole, y_range=window)


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
        _LEAST_COM,
    )
    title = "centre of mass in the flange frame"
    return Panel(title, "time [s]", "position [mm]", parts, x_range=whole, y_range=window)


def _column(spans: Sequence[_Span], value: Callable[[Progress], float]) -> Array:
    """A value of every point, with a gap after each payload."""
    return np.array([x for span in spans for x in (*map(value, span), np.nan)])


def _later(span: _Span) -> _Span:
    """The later part of a payload's points, which says what is worth looking at."""
    return span[len(span) // 3 :]


def _window(shown: Sequence[tuple[float, float]], least: float) -> tuple[float, float]:
    """Limits that show values with their half-widths, some air around."""
    if not shown:
        return -1.0, 1.0
    value, half = np.array(shown).T
    half = np.minimum(half, 3 * np.median(half) + least)
    low = float((value - half).min())
    high = float((value + half).max())
    air = 0.15 * (high - low) + least / 10
    return low - air, high + air


def _marks(points: Sequence[Progress]) -> list[tuple[float, str]]:
    """Changes of the payload, and since when each was known to the requested accuracy."""
    changes = [(b.t, "another payload") for a, b in pairwise(points) if b.number > a.number]
    since = convergence_times(points).values()
    return sorted([*changes, *((t, f"converged at {t:.1f} s") for t in since)])
