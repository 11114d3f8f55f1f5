"""Pictures of a wrist sensor: what it measured, what of it is load and drift, and what is left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.control.contact_force import ContactForce
from steelyard.report.pictures import matplotlib_pyplot, save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_INK, _MUTED, _DRIFT, _LOAD, _EXTERNAL = "#1f2933", "#b8c1cc", "#d9822b", "#2266aa", "#c23030"
_NAMES = ("fx [N]", "fy [N]", "fz [N]", "τx [Nm]", "τy [Nm]", "τz [Nm]")


def contact_picture(path: Path, contact: ContactForce, *, title: str = "") -> None:
    """Writes a picture of an external wrench: raw, load and drift on the left, what is left on the right.

    Args:
        path: of the PNG file
        contact: what to draw
        title: above it
    """
    plt = matplotlib_pyplot()
    figure, axes = plt.subplots(6, 2, figsize=(13, 11), sharex=True, layout="constrained")
    for i in range(6):
        _parts(axes[i, 0], contact, i)
        _rest(axes[i, 1], contact, i)
    for ax in axes[0]:
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + 0.3 * (high - low))
        ax.legend(loc="upper right", ncols=3, frameon=False, fontsize=8)
    axes[0, 0].set_title("what the sensor measures, in the sensor frame", fontsize=10, loc="left", color=_INK)
    axes[0, 1].set_title(
        f"what is left: the contact, in the {contact.frame} frame", fontsize=10, loc="left", color=_INK
    )
    for ax in axes[-1]:
        ax.set_xlabel("time [s]")
    figure.suptitle(title or "External force and torque", fontsize=12)
    figure.supxlabel(contact.status[0].upper() + contact.status[1:] + ".", fontsize=8, color=_INK)
    save_picture(figure, path, dpi=110)


def _parts(ax: Axes, contact: ContactForce, i: int) -> None:
    ax.plot(contact.t, contact.raw[:, i], color=_MUTED, lw=3, label="raw")
    ax.plot(contact.t, contact.load[:, i], color=_LOAD, lw=1.2, label="payload")
    ax.plot(contact.t, contact.drift[:, i], color=_DRIFT, lw=1.2, ls="--", label="zero drift")
    ax.set_ylabel(_NAMES[i])
    _plain(ax)


def _rest(ax: Axes, contact: ContactForce, i: int) -> None:
    value, half = contact.external[:, i], 1.96 * contact.std[:, i]
    ax.axhline(0.0, color=_INK, lw=0.6)
    ax.fill_between(contact.t, value - half, value + half, color=_EXTERNAL, alpha=0.18, lw=0, label="95 %")
    ax.plot(contact.t, value, color=_EXTERNAL, lw=0.9, label="external")
    for k, time_s in enumerate(contact.zeroed_at):
        ax.axvline(time_s, color=_DRIFT, lw=0.8, ls=":", label="zero found again" if k == 0 else None)
    _plain(ax)


def _plain(ax: Axes) -> None:
    ax.margins(x=0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, lw=0.5)
    ax.tick_params(labelsize=8)
