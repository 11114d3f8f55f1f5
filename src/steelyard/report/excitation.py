"""Pictures of designed motions and postures: signals against limits, sensor axes in spherical coordinates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from steelyard.arrays import Array
from steelyard.excitation import Cone, Design, DesignLimits, OrientationWorkspace
from steelyard.report.pictures import matplotlib_pyplot, save_picture
from steelyard.robot import RobotModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_INK, _LIMIT, _FEASIBLE = "#1f2933", "#c23030", "#cfe8cf"
_COLOURS = ("#2266aa", "#d9822b", "#2a9d5c", "#8e5bb5", "#b04a6f", "#5f7a8a", "#8a7a2a")
_RATE_HZ = 200.0
_GRID = 181


def design_picture(path: Path, robot: RobotModel, limits: DesignLimits, design: Design) -> None:
    """Writes a picture of position, velocity and acceleration of every joint against their limits.

    Args:
        path: of the PNG file
        robot: the arm
        limits: of the design
        design: the motion
    """
    plt = matplotlib_pyplot()
    trajectory, joints = design.trajectory, limits.joints
    t = np.linspace(0, trajectory.duration_s, round(trajectory.duration_s * _RATE_HZ) + 1)
    figure, axes = plt.subplots(
        robot.n, 3, figsize=(13, 1.25 * robot.n + 1.2), sharex=True, squeeze=False, layout="constrained"
    )
    bounds = (
        (joints.q_min, joints.q_max),
        (-joints.v_max, joints.v_max),
        (-joints.a_max, joints.a_max),
    )
    for k, (signal, (low, high)) in enumerate(zip(trajectory.at(t), bounds, strict=True)):
        for j in range(robot.n):
            _signal_panel(axes[j, k], t, signal[:, j], (float(low[j]), float(high[j])), _COLOURS[j % 7])
    for ax, title in zip(
        axes[0], ("position [rad]", "velocity [rad/s]", "acceleration [rad/s²]"), strict=True
    ):
        ax.set_title(title, fontsize=10, color=_INK)
    for j, ax in enumerate(axes[:, 0]):
        ax.set_ylabel(f"joint {j + 1}", fontsize=9, color=_INK)
    for ax in axes[-1]:
        ax.set_xlabel("time [s]", fontsize=9)
    worst = design.certificate.worst
    words = "" if design.objective == "condition" else f"{design.objective}: {design.value:.4g}; "
    figure.suptitle(
        f"{robot.name}, {words}condition number {design.condition_number:.4g}\n"
        f"closest limit: {worst.limit} of {worst.where}, margin {worst.margin:.2g} {worst.unit}"
        f" ({design.certificate.rate_hz:g} Hz check)",
        fontsize=11,
    )
    save_picture(figure, path)


def orientation_picture(
    path: Path,
    R_base_flange: ArrayLike,
    workspace: OrientationWorkspace | None = None,
    *,
    second: ArrayLike | None = None,
) -> None:
    """Writes a picture of the sensor axes in spherical coordinates on the workspace (liu2025 Fig. 4, 6, 8).

    Args:
        path: of the PNG file
        R_base_flange: orientations of postures or along a motion, (N, 3, 3)
        workspace: feasible orientations, shaded
        second: other orientations to compare with, (M, 3, 3)
    """
    plt = matplotlib_pyplot()
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.4), sharey=True, layout="constrained")
    R = np.asarray(R_base_flange, dtype=float)
    for i, ax in enumerate(axes):
        _workspace_panel(ax, i, workspace)
        if second is not None:
            _axis_points(ax, np.asarray(second, dtype=float)[:, :, i], "#5f7a8a", "second")
        _axis_points(ax, R[:, :, i], _COLOURS[0], "designed" if second is not None else "")
        ax.set_title(f"{'xyz'[i]} axis of the sensor", fontsize=10, color=_INK)
        ax.set_xlabel("azimuth φ [°]", fontsize=9)
    axes[0].set_ylabel("polar angle θ [°]", fontsize=9)
    axes[0].invert_yaxis()
    if second is not None:
        axes[2].legend(fontsize=8, frameon=True)
    words = "" if workspace is None else "; shaded: the feasible workspace"
    figure.suptitle(f"Axes of the sensor in the base frame, {len(R)} orientations{words}", fontsize=11)
    save_picture(figure, path)


def _signal_panel(ax: Axes, t: Array, signal: Array, bounds: tuple[float, float], colour: str) -> None:
    ax.plot(t, signal, color=colour, lw=1.3)
    low, high = float(signal.min()), float(signal.max())
    reach = max(high - low, 1e-6)
    for bound in bounds:
        if np.isfinite(bound) and low - 1.2 * reach < bound < high + 1.2 * reach:
            ax.axhline(bound, color=_LIMIT, lw=1, ls="--")
            low, high = min(low, bound), max(high, bound)
    ax.set_ylim(low - 0.1 * reach, high + 0.1 * reach)
    ax.margins(x=0)
    _plain(ax)


def _workspace_panel(ax: Axes, i: int, workspace: OrientationWorkspace | None) -> None:
    ax.set_xlim(-180, 180)
    ax.set_ylim(0, 180)
    ax.set_xticks(range(-180, 181, 60))
    ax.set_yticks(range(0, 181, 30))
    _plain(ax)
    if workspace is None:
        return
    phi, theta = np.meshgrid(np.linspace(-np.pi, np.pi, 2 * _GRID), np.linspace(0, np.pi, _GRID))
    x = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], axis=-1)
    feasible = np.ones(phi.size, dtype=bool)
    for part in workspace.regions:
        if part.axis == "xyz"[i]:
            feasible &= part.margin(x.reshape(-1, 3)) >= 0
            if isinstance(part, Cone):
                _axis_points(ax, part.direction[None], _LIMIT, "", marker="+")
    ax.contourf(
        np.degrees(phi),
        np.degrees(theta),
        feasible.reshape(phi.shape).astype(float),
        levels=[0.5, 1.5],
        colors=[_FEASIBLE],
        zorder=0,
    )


def _axis_points(ax: Axes, x: Array, colour: str, label: str, *, marker: str = ".") -> None:
    phi, theta = np.degrees(np.arctan2(x[:, 1], x[:, 0])), np.degrees(np.arccos(np.clip(x[:, 2], -1, 1)))
    size = 3 if len(x) > 100 else 9
    ax.plot(phi, theta, marker, color=colour, ms=size, mew=1.5 if marker == "+" else 0, label=label or None)


def _plain(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, lw=0.5)
    ax.tick_params(labelsize=8)
