"""Numbers and comments as vendors' files want them: plain decimals, ASCII, one sentence a line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from steelyard.io.export.load import Load

UNCHECKED = "The form of this file could not be checked against a manual; compare it with yours before use."
ABOUT_INERTIA = "Inertia is about the centre of mass"
_ENTRIES = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")


def decimal(value: float, digits: int) -> str:
    """A number without an exponent, with at most so many digits behind the point.

    Args:
        value: the number
        digits: behind the point
    """
    text = f"{value:.{digits}f}".rstrip("0")
    text = text + "0" if text.endswith(".") else text
    return "0.0" if text == "-0.0" else text


def decimals(values: ArrayLike, digits: int) -> list[str]:
    """Numbers without exponents, in the order of rows.

    Args:
        values: of any shape
        digits: behind the point
    """
    return [decimal(float(value), digits) for value in np.ravel(values)]


def head(load: Load, target: str, units: str, *, notes: Sequence[str] = (), left_out: str = "") -> list[str]:
    """The sentences above a payload: frame, units, uncertainty, doubts, and what the format cannot hold.

    Args:
        load: that is written
        target: what reads the file
        units: of the numbers, in words
        notes: what else a user of this target must know
        left_out: what the format has no place for
    """
    told = [
        f"Payload for {target}, written by steelyard.",
        *(f"FORCED in spite of a doubt: {doubt}." for doubt in load.forced),
        f"Holds: {load.holds}.",
        f"Frame: {load.frame}.",
        f"Units: {units}.",
        f"Weighed (95 %): mass {load.body.mass:.6g} +- {load.mass_error:.2g} kg,"
        f" centre of mass +- {1e3 * load.com_error:.2g} mm in its worst direction.",
        _inertia_words(load),
        f"Status: {load.status}.",
    ]
    if left_out:
        told.append(f"Left out, for this format has no place for it: {left_out}.")
    return [line(words) for words in (*told, *notes)]


def line(words: str) -> str:
    """The words in one line of ASCII.

    Args:
        words: any text
    """
    return " ".join(words.encode("ascii", "replace").decode("ascii").split())


def _inertia_words(load: Load) -> str:
    if not load.knows_inertia:
        return "The inertia was not measured."
    pairs = zip(_ENTRIES, load.inertia_com, load.inertia_com_error, strict=True)
    entries = ", ".join(f"{name} {value:.3g} +- {error:.1g}" for name, value, error in pairs)
    words = f"Inertia about the centre of mass, axes of this frame (95 %): {entries} kg m^2."
    if load.inertia_com_error.max() > load.inertia_com[:3].max():
        words += " It is hardly known: the largest half-width is larger than the largest moment."
    return words
