"""Numbers and comments in the texts of exports."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def decimal(value: float, digits: int) -> str:
    """A number without an exponent.

    Args:
        value: the number
        digits: largest number of decimals
    """
    text = f"{value:.{digits}f}".rstrip("0")
    if text.endswith("."):
        text = text + "0"
    if text == "-0.0":
        return "0.0"
    return text


def decimals(values: ArrayLike, digits: int) -> list[str]:
    """Numbers without exponents.

    Args:
        values: the numbers, in any shape
        digits: largest number of decimals
    """
    return [decimal(float(value), digits) for value in np.ravel(values)]


def commented(mark: str, comments: list[str], *lines: str) -> str:
    """Lines of code below their comments.

    Args:
        mark: that begins a comment
        comments: one sentence each
        lines: of code
    """
    return "\n".join([*(f"{mark} {words}" for words in comments), *lines, ""])
