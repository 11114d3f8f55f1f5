"""Shared by the pages of all papers: partial progress, versions, rounding and thinning."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

Progress = Callable[[float], None]

_PACKAGES = ("steelyard", "numpy", "scipy", "pin", "mujoco", "jax")


def part_of(progress: Progress | None, low: float, high: float) -> Progress:
    """A progress that fills the part of another one from `low` to `high`.

    Args:
        progress: called with the share of the whole; None for no report
        low: share at which the part begins
        high: share at which it ends
    """

    def report(share: float) -> None:
        if progress is not None:
            progress(low + (high - low) * min(max(share, 0.0), 1.0))

    return report


def versions() -> dict[str, str]:
    """The version of every package that makes numbers, by name."""
    found = {}
    for name in _PACKAGES:
        try:
            found[f"version of {name}"] = version(name)
        except PackageNotFoundError:
            found[f"version of {name}"] = "not installed as a package"
    return found


def with_spread(value: float, spread: float) -> str:
    """A number with its spread, as text, to two digits of the spread.

    Args:
        value: in any unit
        spread: in the same unit
    """
    if not 0 < spread < math.inf:
        return f"{value:.4g} ± {spread:.2g}"
    digits = max(1 - math.floor(math.log10(spread)), 0)
    return f"{value:.{digits}f} ± {spread:.{digits}f}"


def every(count: int, wanted: int) -> slice:
    """A slice that keeps about `wanted` of `count` rows, evenly: enough for a plot.

    Args:
        count: of rows
        wanted: to keep
    """
    return slice(0, count, max(1, count // wanted))
