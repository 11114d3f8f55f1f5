"""A picture of an online estimate: how the mass and the centre of mass became known, and when."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steelyard.report.pictures import EMPTY, INK, LOADED, TRUTH, matplotlib_pyplot, plain, save_picture
from steelyard.torque.online.curve import CurvePoint, convergence_times

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_AXES = (LOADED, EMPTY, "#2a9d5c")


def online_picture(path: Path, points: Sequence[CurvePoint], *, accuracy: float, words: str) -> None:
    """Writes a picture of mass, its relative uncertainty, and centre of mass over time, with 95 % bands.

    Args:
        path: of the PNG file
        points: along the way, in the order of time
        accuracy: half-width of the mass's interval over the mass that was asked for
        words: what was weighed, for the title
    """
    plt = matplotlib_pyplot()
    figure, axes = plt.subplots(
        3, 1, figsize=(9.5, 8.2), sharex=True, layout="constrained", height_ratios=[1.4, 0.9, 1.2]
    )
    spans = _spans(points)
    _mass_panel(axes[0], spans)
    _sureness_panel(axes[1], spans, accuracy)
    _com_panel(axes[2], spans)
    _marks(axes, points)
    axes[0].set_xlim(points[0].t, max(points[-1].t, points[0].t + 1e-3))
    axes[-1].set_xlabel("time [s]")
    last = points[-1]
    half = f"± {1.96 * last.mass_std:.3f}" if np.isfinite(last.mass_std) else "± unknown"
    figure.suptitle(f"{words}: {last.mass:.3f} {half} kg (95 %) at the end", fontsize=11, color=INK)
    figure.supxlabel("\n".join(textwrap.wrap(last.status, 110)), fontsize=8, color=INK)
    save_picture(figure, path)


def _spans(points: Sequence[CurvePoint]) -> list[list[CurvePoint]]:
    """The points of each payload, those without a mass left out."""
    numbers = sorted({point.payload for point in points})
    known = [point for point in points if np.isfinite(point.mass_std)]
    return [[point for point in known if point.payload == number] for number in numbers]


def _mass_panel(ax: Axes, spans: Sequence[Sequence[CurvePoint]]) -> None:
    for span in spans:
        t, mass, std = (np.array([getattr(p, name) for p in span]) for name in ("t", "mass", "mass_std"))
        ax.fill_between(t, mass - 1.96 * std, mass + 1.96 * std, color=LOADED, alpha=0.2, lw=0)
        ax.plot(t, mass, color=LOADED, lw=1.4)
    ax.set_ylim(*_window([(p.mass, 1.96 * p.mass_std) for span in spans for p in _later(span)], 0.05))
    ax.set_ylabel("mass [kg]", color=INK)
    plain(ax)


def _sureness_panel(ax: Axes, spans: Sequence[Sequence[CurvePoint]], accuracy: float) -> None:
    for span in spans:
        percent = [196 * p.mass_std / max(abs(p.mass), 1e-9) for p in span]
        ax.semilogy([p.t for p in span], percent, color=LOADED, lw=1.4)
    ax.axhline(100 * accuracy, color=TRUTH, lw=1, ls="--")
    ax.annotate(
        f"asked for: {100 * accuracy:g} %",
        (0.995, 100 * accuracy),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="bottom",
        fontsize=8,
        color=TRUTH,
    )
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, 50 * accuracy), min(max(high, 200 * accuracy), 300.0))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_ylabel("half-width of the\n95 % interval [%]", color=INK)
    plain(ax)


def _com_panel(ax: Axes, spans: Sequence[Sequence[CurvePoint]]) -> None:
    shown = []
    for k, span in enumerate(spans):
        known = [p for p in span if np.isfinite(p.com_std).all()]
        for i, colour in enumerate(_AXES):
            t, com = [p.t for p in known], np.array([1e3 * p.com[i] for p in known])
            half = np.array([1.96e3 * p.com_std[i] for p in known])
            ax.fill_between(t, com - half, com + half, color=colour, alpha=0.15, lw=0)
            ax.plot(t, com, color=colour, lw=1.3, label="" if k else "xyz"[i])
        shown += [(1e3 * p.com[i], 1.96e3 * p.com_std[i]) for p in _later(known) for i in range(3)]
    ax.set_ylim(*_window(shown, 5.0))
    ax.legend(loc="upper right", fontsize=8, frameon=False, ncols=3)
    ax.set_ylabel("centre of mass in the\nflange frame [mm]", color=INK)
    plain(ax)


def _later(span: Sequence[CurvePoint]) -> Sequence[CurvePoint]:
    """The later part of a payload's points, which says what is worth looking at."""
    return span[len(span) // 3 :]


def _window(shown: Sequence[tuple[float, float]], least: float) -> tuple[float, float]:
    """Limits that show values with their half-widths, some air around."""
    if not shown:
        return -1.0, 1.0
    value, half = np.array(shown).T
    half = np.minimum(half, 3 * np.median(half) + least)
    low, high = float((value - half).min()), float((value + half).max())
    air = 0.15 * (high - low) + least / 10
    return low - air, high + air


def _marks(axes: Sequence[Axes], points: Sequence[CurvePoint]) -> None:
    """Changes of the payload, and since when each was known as asked for."""
    for before, after in pairwise(points):
        if after.payload > before.payload:
            for ax in axes:
                ax.axvline(after.t, color=TRUTH, lw=1.2)
            axes[0].annotate(
                " another payload",
                (after.t, 1.0),
                xycoords=("data", "axes fraction"),
                va="top",
                fontsize=8,
                color=TRUTH,
            )
    for since in convergence_times(points).values():
        for ax in axes:
            ax.axvline(since, color=INK, lw=0.8, ls=":")
        axes[0].annotate(
            f" converged at {since:.1f} s",
            (since, 0.0),
            xycoords=("data", "axes fraction"),
            va="bottom",
            fontsize=8,
            color=INK,
        )
