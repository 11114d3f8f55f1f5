"""Numbers, angles and comments as controllers want them: plain decimals, ASCII, a line per sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from steelyard.arrays import Array
from steelyard.export.load import Load

_ENTRIES = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")


def decimal(value: float, digits: int) -> str:
    """A number without an exponent.

    Args:
        value: the number
        digits: at most so many behind the point
    """
    text = f"{value:.{digits}f}".rstrip("0")
    text = text + "0" if text.endswith(".") else text
    return "0.0" if text == "-0.0" else text


def decimals(values: ArrayLike, digits: int) -> list[str]:
    """Numbers of any shape without exponents, in the order of rows, with at most so many digits each."""
    return [decimal(float(value), digits) for value in np.ravel(values)]


def roll_pitch_yaw(R: Array) -> Array:
    """Roll, pitch and yaw of a rotation R = RotZ(yaw) RotY(pitch) RotX(roll), (3,) [rad].

    The yaw is taken first, and roll and pitch from what RotZ(-yaw) leaves of R: that keeps all digits where
    the pitch is a right angle and the yaw is arbitrary.

    Args:
        R: (3, 3)
    """
    yaw = math.atan2(R[1, 0], R[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    rest = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ R
    return np.array([math.atan2(-rest[1, 2], rest[1, 1]), math.atan2(-rest[2, 0], rest[0, 0]), yaw])


def head(load: Load, target: str, units: str, *, notes: Sequence[str] = (), left_out: str = "") -> list[str]:
    """The sentences above a payload: frame, units, uncertainty, doubts, and what the format cannot hold.

    Args:
        load: that is written
        target: what reads the file
        units: of the numbers, in words
        notes: what else a user of this target must know
        left_out: what the format has no place for
    """
    sentences = [
        f"Payload for {target}, written by steelyard.",
        *(f"FORCED in spite of a doubt: {doubt.words}." for doubt in load.forced),
        f"Holds: {load.holds}.",
        f"Frame: {load.frame}.",
        f"Units: {units}.",
        f"Weighed (95 %): mass {load.body.mass:.6g} +- {load.mass_error:.2g} kg,"
        f" centre of mass +- {1e3 * load.com_error:.2g} mm in its worst direction.",
        _inertia_words(load),
        f"Status: {load.verdict.sentence}.",
    ]
    if left_out:
        sentences.append(f"Left out, for this format has no place for it: {left_out}.")
    return [" ".join(_ascii(words).split()) for words in (*sentences, *notes)]


def _ascii(words: str) -> str:
    return words.encode("ascii", "replace").decode("ascii")


def _inertia_words(load: Load) -> str:
    if not load.knows_inertia:
        return "The inertia was not measured."
    pairs = zip(_ENTRIES, load.inertia_com, load.inertia_com_error, strict=True)
    entries = ", ".join(f"{name} {value:.3g} +- {error:.1g}" for name, value, error in pairs)
    words = f"Inertia about the centre of mass, axes of this frame (95 %): {entries} kg m^2."
    if load.inertia_com_error.max() > load.inertia_com[:3].max():
        words += " It is hardly known: the largest half-width is larger than the largest moment."
    return words
