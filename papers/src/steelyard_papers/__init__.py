"""The papers recomputed: tables and figures beside the truth and beside our own method.

Each paper is a folder with a function `page(progress)`, imported on demand.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from steelyard.errors import UnknownName
from steelyard.report import Page

__all__ = ["PAPERS", "reproduce"]

PAPERS: dict[str, str] = {
    "ding2019": "steelyard_papers.ding2019",
    "gaz2017": "steelyard_papers.gaz2017",
    "liu2025": "steelyard_papers.liu2025",
    "xu2024": "steelyard_papers.xu2024",
}
"""The module of each paper, by its label; it has a function `page`."""


def reproduce(name: str, progress: Callable[[float], None] | None = None) -> Page:
    """The page of one paper, computed anew; seeds are fixed, so it is the same every time.

    Args:
        name: one of `PAPERS`
        progress: called with the share that is done
    """
    if name not in PAPERS:
        raise UnknownName(f"no paper '{name}'; there are {', '.join(PAPERS)}")
    made: Page = import_module(PAPERS[name]).page(progress)
    return made
