"""Pictures for people: one function a picture, written as PNG. They draw, they do not compute results."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import MissingExtra, UnreadableFile
from steelyard.identification import DynamicModel
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes


INK, MUTED, EMPTY, LOADED, TRUTH = "#1f2933", "#b8c1cc", "#d9822b", "#2266aa", "#c23030"
_CHI_95 = 2.4477  # radius of the 95 % ellipse of two normal variables, in standard deviations


def payload_picture(
    path: Path, model: DynamicModel, payload: Payload, samples: Samples, *, truth: InertialParameters | None
) -> None:
    """Writes a picture of a weighed payload: torques with and without it, and where its centre of mass is.

    Args:
        path: of the PNG file
        model: of the empty arm
        payload: what was weighed
        samples: of the loaded arm
        truth: the payload where it is known, in the flange frame
    """
    plt = matplotlib_pyplot()
    empty = model.torque(samples.q, samples.v, samples.a)
    load = model.robot.payload_regressor(samples.q, samples.v, samples.a) @ payload.body.vector
    figure = plt.figure(figsize=(13, 7.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[2.1, 1])
    columns = 2
    rows = -(-samples.n // columns)
    axes = left.subplots(rows, columns, sharex=True, squeeze=False)
    for j, ax in enumerate(axes.ravel()):
        if j < samples.n:
            _torque_panel(ax, samples, j, empty[:, j], (empty + load)[:, j])
        else:
            ax.set_visible(False)
    for ax in axes[-1]:
        ax.set_xlabel("time [s]")
    axes[0, 0].legend(loc="upper right", fontsize=8, frameon=False, ncols=3)
    left.suptitle("Torque of the loaded arm: measured, and predicted with and without the payload [Nm]")
    _payload_panels(right, payload, truth)
    save_picture(figure, path)


def _torque_panel(ax: Axes, samples: Samples, j: int, empty: Array, loaded: Array) -> None:
    ax.plot(samples.t, samples.tau[:, j], color=MUTED, lw=2.5, label="measured")
    ax.plot(samples.t, empty, color=EMPTY, lw=1, label="empty arm")
    ax.plot(samples.t, loaded, color=LOADED, lw=1, label="with payload")
    ax.set_title(samples.joint_names[j], fontsize=9, loc="left", color=INK)
    ax.margins(x=0)
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.18 * (high - low))
    plain(ax)


def _payload_panels(figure: Any, payload: Payload, truth: InertialParameters | None) -> None:
    mass, half = payload.body.mass, 1.96 * payload.std[0]
    figure.suptitle(f"Payload: {mass:.3f} ± {half:.3f} kg (95 %)")
    top, side = figure.subplots(2, 1)
    for ax, (i, k) in ((top, (0, 1)), (side, (0, 2))):
        _com_panel(ax, payload, truth, (i, k))
    figure.supxlabel("\n".join(textwrap.wrap(payload.status, 62)), fontsize=8, color=INK)


def _com_panel(ax: Axes, payload: Payload, truth: InertialParameters | None, plane: tuple[int, int]) -> None:
    i, k = plane
    com, scale = payload.body.com[[i, k]], 1e3
    slope = np.column_stack([-payload.body.com, np.eye(3)])[[i, k]] / payload.body.mass
    spread = slope @ payload.covariance[:4, :4] @ slope.T
    angle = np.linspace(0, 2 * np.pi, 100)
    ellipse = com[:, None]
    if np.isfinite(spread).all():
        values, axes = np.linalg.eigh(spread)
        ellipse = com[:, None] + _CHI_95 * axes @ (np.sqrt(values)[:, None] * [np.cos(angle), np.sin(angle)])
    ax.fill(*(scale * ellipse), color=LOADED, alpha=0.2, label="95 % region")
    ax.plot(*(scale * com), "o", color=LOADED, label="centre of mass")
    if truth is not None:
        ax.plot(*(scale * truth.com[[i, k]]), "x", color=TRUTH, ms=9, mew=2, label="truth")
    ax.plot(0, 0, "+", color=INK, ms=12, label="flange")
    ax.set_xlabel(f"{'xyz'[i]} [mm]")
    ax.set_ylabel(f"{'xyz'[k]} [mm]")
    ax.set_title(f"Centre of mass in the flange frame, {'xyz'[i]}-{'xyz'[k]} plane", fontsize=9, loc="left")
    ax.axis("equal")
    ax.margins(0.3)
    ax.legend(fontsize=8, frameon=False)
    plain(ax)


def save_picture(figure: Any, path: Path, *, dpi: int = 130) -> None:
    """Writes a figure into a file, and forgets it; the file's ending says which kind of picture.

    Args:
        figure: of matplotlib
        path: of the file; folders are made
        dpi: points for each inch
    """
    plt = matplotlib_pyplot()
    kinds = figure.canvas.get_supported_filetypes()
    try:
        if path.suffix.lower().removeprefix(".") not in kinds:
            raise UnreadableFile(f"{path}: the name of a picture ends in .png, .svg, .pdf or .jpg")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=dpi)
    except OSError as error:
        raise UnreadableFile(f"{path}: the picture cannot be written: {error.strerror}") from error
    finally:
        plt.close(figure)


def plain(ax: Axes) -> None:
    """Takes away what does not speak.

    Args:
        ax: to tidy up
    """
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, lw=0.5)
    ax.tick_params(labelsize=8)


def matplotlib_pyplot() -> Any:
    """The plotting module, set to write files only."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise MissingExtra("matplotlib", "report") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
