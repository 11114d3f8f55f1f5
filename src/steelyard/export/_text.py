"""Numbers and comments in the texts of exports."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def decimal(value: float, digits: int) -> str:
    """A number without an exponent, with at most a given number of decimals."""
    text = f"{value:.{digits}f}".rstrip("0")
    if text.endswith("."):
        text = text + "0"
    if text == "-0.0":
        return "0.0"
    return text


def decimals(values: ArrayLike, digits: int) -> list[str]:
    """Numbers without exponents, with at most a given number of decimals."""
    return [decimal(float(value), digits) for value in np.ravel(values)]


def commented(mark: str, comments: list[str], *lines: str) -> str:
    """Lines of code below their comments."""
    return "\n".join([*(f"{mark} {words}" for words in comments), *lines, ""])
