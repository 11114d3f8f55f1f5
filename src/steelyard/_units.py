"""Constants, symbols of units and the rounding of intervals that several packages share."""

import math
import re
import sys
from typing import Any

NORMAL_95 = 1.96
"""Half-width of a 95 % interval of a normal distribution, in standard deviations."""

STANDARD_GRAVITY = 9.81
"""Default magnitude of gravity, [m/s^2]."""

GRAVITY_DOWN = (0.0, 0.0, -STANDARD_GRAVITY)
"""Gravity of an upright base, (3,) [m/s^2], in the base frame."""

KILOGRAM = "kg"
FIRST_MOMENT = "kg m"
INERTIA = "kg m²"
NEWTON_METRE = "Nm"
VISCOUS_FRICTION = "Nm s/rad"
POWER_LAW_FRICTION = "Nm (s/rad)^α"
TORQUE_RATIO = "Nm/Nm"

_SIGNS = {"+-": "\u00b1", "m^2": "m\u00b2", "s^2": "s\u00b2"}
_SYMBOLS = re.compile(r"\+-|(?<= )m\^2|(?<=/)s\^2")
_PLAIN = str.maketrans({"\u00b1": "+-", "\u00b2": "^2", "\u03b1": "alpha", "\u03c4": "tau"})


def printable(text: str, stream: Any = None) -> str:
    """A text with the signs for plus-minus and squares; without them where a stream cannot.

    Args:
        text: with +-, m^2 and s^2, or with the signs
        stream: to be written to; None for stdout
    """
    encoding = getattr(stream or sys.stdout, "encoding", None) or ""
    if encoding.lower().replace("-", "") != "utf8":
        return text.translate(_PLAIN)
    return _SYMBOLS.sub(lambda found: _SIGNS[found.group()], text)


def interval_decimals(half_width: float) -> int:
    """Decimals that show two digits of a half-width, 0 to 9; 4 where it is zero.

    Args:
        half_width: of an interval, finite
    """
    if half_width <= 0:
        return 4
    return min(max(1 - math.floor(math.log10(half_width)), 0), 9)


def rounded(value: float, half_width: float) -> tuple[str, str]:
    """A value and its half-width to two digits of the half-width, as '3.527' and '0.011'.

    Args:
        value: in the centre of the interval
        half_width: of the interval; 'unknown' and '' are returned where it is not finite
    """
    if not math.isfinite(half_width):
        return "unknown", ""
    decimals = interval_decimals(half_width)
    shown = round(value, decimals) + 0.0  # no negative zero
    return f"{shown:.{decimals}f}", f"{half_width:.{decimals}f}"


def with_interval(value: float, half_width: float, *, signed: bool = False) -> str:
    """Value and half-width to two digits of the half-width, as '3.527 +- 0.011'.

    Args:
        value: in the centre of the interval
        half_width: of the interval; 'unknown' is returned where it is not finite
        signed: whether a value above zero gets a sign
    """
    if not math.isfinite(half_width):
        return "unknown"
    decimals = interval_decimals(half_width)
    sign = "+" if signed else ""
    return f"{value:{sign}.{decimals}f} +- {half_width:.{decimals}f}"


def in_seconds(seconds: float) -> str:
    """A duration with four digits, in hours besides from an hour on, as '10800 s (3.00 h)'.

    Args:
        seconds: [s]
    """
    if abs(seconds) < 1000.0:
        return f"{seconds:.4g} s"
    text = f"{seconds:.0f} s"
    if abs(seconds) >= 3600.0:
        text += f" ({seconds / 3600.0:.2f} h)"
    return text
