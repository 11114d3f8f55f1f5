"""Pictures of an identified arm: torque measured against predicted, and friction against speed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steelyard.identification import DynamicModel
from steelyard.recording import Samples
from steelyard.report.pictures import INK, LOADED, MUTED, TRUTH, matplotlib_pyplot, plain, save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MOST_POINTS = 4000


def identification_picture(path: Path, model: DynamicModel, samples: Samples, *, words: str) -> None:
    """Writes a picture: for each joint the torque measured and predicted, and its friction against speed.

    Args:
        path: of the PNG file
        model: of the arm
        samples: best of a recording that the model was not fitted to
        words: what the samples are, for the title
    """
    plt = matplotlib_pyplot()
    predicted = model.rows(samples).Y @ model.estimate.value
    measured_friction, friction = model.friction_torque(samples)
    relative = model.validate(samples).relative
    n = samples.n
    figure, axes = plt.subplots(
        n, 2, figsize=(12, 1.9 * n), layout="constrained", width_ratios=[2.4, 1], squeeze=False
    )
    for j in range(n):
        title = f"{samples.joint_names[j]}: {100 * relative[j]:.1f} % residual"
        _torque_panel(axes[j, 0], samples, j, predicted[:, j], title)
        _friction_panel(axes[j, 1], samples.v[:, j], measured_friction[:, j], friction[:, j])
    axes[0, 0].legend(loc="upper right", fontsize=8, frameon=False, ncols=3)
    axes[0, 1].set_title("friction [Nm] against speed", fontsize=9, loc="left", color=INK)
    axes[-1, 0].set_xlabel("time [s]")
    axes[-1, 1].set_xlabel("speed [rad/s]")
    figure.suptitle(f"{model.robot.name}, {words}: torque [Nm], friction law '{model.law.name}'")
    save_picture(figure, path, dpi=110)


def _torque_panel(ax: Axes, samples: Samples, j: int, predicted: np.ndarray, title: str) -> None:
    ax.plot(samples.t, samples.tau[:, j], color=MUTED, lw=2, label="measured")
    ax.plot(samples.t, predicted, color=LOADED, lw=0.8, label="predicted")
    ax.plot(samples.t, samples.tau[:, j] - predicted, color=TRUTH, lw=0.6, label="residual")
    ax.set_title(title, fontsize=9, loc="left", color=INK)
    ax.margins(x=0)
    plain(ax)


def _friction_panel(ax: Axes, v: np.ndarray, measured: np.ndarray, modelled: np.ndarray) -> None:
    every = slice(None, None, max(1, len(v) // _MOST_POINTS))
    ax.plot(v[every], measured[every], ".", ms=1.5, color=MUTED, rasterized=True)
    ax.plot(v[every], modelled[every], ".", ms=1.5, color=LOADED, rasterized=True)
    inside = np.percentile(measured, [0.5, 99.5])
    margin = 0.25 * (inside[1] - inside[0]) + 1e-9
    ax.set_ylim(inside[0] - margin, inside[1] + margin)
    plain(ax)
