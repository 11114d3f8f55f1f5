"""A picture of hand guiding: the hand's force with the payload compensated and without, and the path."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steelyard.arrays import Array
from steelyard.control.guiding import GuidingComparison
from steelyard.report.pictures import EMPTY, INK, LOADED, MUTED, matplotlib_pyplot, plain, save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_WITHOUT, _WITH = "payload not compensated", "payload compensated"


def guiding_picture(path: Path, comparison: GuidingComparison, *, title: str = "") -> None:
    """Writes a picture of two guided runs: force per axis over time, path, mean and variance.

    Args:
        path: of the PNG file
        comparison: what to draw
        title: above it
    """
    plt = matplotlib_pyplot()
    figure = plt.figure(figsize=(13, 7.8), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.75, 1])
    axes = left.subplots(3, 1, sharex=True)
    for i, ax in enumerate(axes):
        _force_panel(ax, comparison, i)
    low, high = axes[0].get_ylim()
    axes[0].set_ylim(low, high + 0.25 * (high - low))
    axes[0].legend(loc="upper right", fontsize=8, frameon=False, ncols=2)
    axes[-1].set_xlabel("time [s]")
    left.suptitle(f"Force of the hand on the tool, axes of the {comparison.frame}")
    top, bottom = right.subfigures(2, 1, height_ratios=[1.25, 1])
    _path_panel(top.subplots(), comparison)
    means, variances = bottom.subplots(1, 2)
    mean = (comparison.mean_without, comparison.mean_compensated, comparison.mean_reduction)
    _bars(means, *mean, words="mean of |F| [N]")
    variance = (comparison.variance_without, comparison.variance_compensated, comparison.variance_reduction)
    _bars(variances, *variance, words="variance of F [N²]")
    figure.suptitle(title or "Hand guiding", fontsize=12, color=INK)
    words = comparison.status[0].upper() + comparison.status[1:] + "."
    figure.supxlabel("\n".join(textwrap.wrap(words, 120)), fontsize=8, color=INK)
    save_picture(figure, path)


def _force_panel(ax: Axes, comparison: GuidingComparison, i: int) -> None:
    ax.axhline(0.0, color=INK, lw=0.6)
    looks = ((EMPTY, _WITHOUT), (LOADED, _WITH))
    for force, (colour, words) in zip(comparison.forces, looks, strict=True):
        ax.plot(comparison.without.t, force[:, i], color=colour, lw=0.9, label=words)
    ax.set_ylabel(f"F{'xyz'[i]} [N]")
    ax.margins(x=0)
    plain(ax)


def _path_panel(ax: Axes, comparison: GuidingComparison) -> None:
    wanted = comparison.without.wanted
    ax.plot(wanted[:, 0], wanted[:, 1], color=MUTED, lw=4, label="where the hand wants to go")
    for run, colour, words in (
        (comparison.without, EMPTY, _WITHOUT),
        (comparison.compensated, LOADED, _WITH),
    ):
        ax.plot(run.position[:, 0], run.position[:, 1], color=colour, lw=1, label=words)
    x, y = map(float, wanted[0, :2])
    ax.plot(x, y, "o", color=INK, ms=4)
    ax.annotate("start", (x, y), (6, 6), textcoords="offset points", fontsize=8, color=INK)
    ax.set_xlabel("x [m]")
    ax.set_ylabel("y [m]")
    ax.set_title("Path of the grip, from above", fontsize=10, loc="left", color=INK)
    ax.set_aspect("equal")
    ax.legend(loc="center", fontsize=8, frameon=False)
    plain(ax)


def _bars(ax: Axes, without: Array, compensated: Array, reduction: Array, *, words: str) -> None:
    x = np.arange(3)
    ax.bar(x - 0.2, without, 0.4, color=EMPTY)
    ax.bar(x + 0.2, compensated, 0.4, color=LOADED)
    for i in range(3):
        change = f"{-100 * reduction[i]:+.0f} %"
        ax.text(
            x[i], max(without[i], compensated[i]), change, ha="center", va="bottom", fontsize=8, color=INK
        )
    ax.margins(y=0.15)
    ax.set_xticks(x, ["x", "y", "z"])
    ax.set_title(words, fontsize=10, loc="left", color=INK)
    plain(ax)
