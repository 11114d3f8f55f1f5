"""A picture of collision detection: residual and threshold of each joint, contacts shaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steelyard.control.collision import Detections
from steelyard.report.pictures import EMPTY, INK, LOADED, MUTED, TRUTH, matplotlib_pyplot, plain, save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_ROOM = 1.25
_HERE, _ELSEWHERE = (TRUTH, 0.22), (MUTED, 0.3)  # color, alpha


def collisions_picture(path: Path, detections: Detections, *, title: str) -> None:
    """Writes the picture.

    Args:
        path: of the PNG file
        detections: of a recording
        title: above it
    """
    plt = matplotlib_pyplot()
    names = detections.residuals.names
    height = 1.25 * len(names) + 1.3
    figure, axes = plt.subplots(
        len(names), 1, figsize=(12, height), sharex=True, squeeze=False, layout="constrained"
    )
    for j, ax in enumerate(axes[:, 0]):
        _panel(ax, detections, j)
    axes[-1, 0].set_xlabel("time [s]", fontsize=9)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    figure.suptitle(f"{title}\n{detections.status}", fontsize=10, color=INK)
    save_picture(figure, path)


def _panel(ax: Axes, detections: Detections, j: int) -> None:
    seen = detections.residuals
    threshold = detections.threshold[:, j]
    low, high = -threshold - seen.slack[:, 0, j], threshold + seen.slack[:, 1, j]
    for contact in detections.contacts:
        end_s = max(contact.end_s, contact.detected_s)
        look = _HERE if seen.names[j] in contact.joints else _ELSEWHERE
        ax.axvspan(contact.start_s, end_s, color=look[0], alpha=look[1], lw=0)
    ax.fill_between(
        seen.t,
        -seen.slack[:, 0, j],
        seen.slack[:, 1, j],
        color=EMPTY,
        alpha=0.3,
        lw=0,
        label="unknown friction",
    )
    ax.plot(seen.t, high, color=INK, lw=0.8, ls="--", label="threshold")
    ax.plot(seen.t, low, color=INK, lw=0.8, ls="--")
    ax.plot(seen.t, seen.residual[:, j], color=LOADED, lw=0.9, label="residual")
    for (color, alpha), words in ((_HERE, "contact seen by this joint"), (_ELSEWHERE, "by others")):
        ax.fill_between([], [], [], color=color, alpha=alpha, lw=0, label=words)
    most = max(float(np.abs(seen.residual[:, j]).max()), float(np.quantile(np.maximum(high, -low), 0.9)))
    ax.set_ylim(-_ROOM * most, _ROOM * most)
    ax.set_title(f"{seen.names[j]} [{seen.unit}]", fontsize=8, loc="left", color=INK, pad=2)
    ax.margins(x=0)
    plain(ax)
