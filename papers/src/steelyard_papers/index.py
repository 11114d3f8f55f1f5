"""The page that leads to the pages of the papers."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard._templates import render
from steelyard.report import Page


def index_html(pages: Mapping[str, Page]) -> str:
    """One small HTML document: a link and a line for each paper.

    Args:
        pages: by label of the paper; each lies beside this one as LABEL.html and LABEL.json
    """
    return render(["steelyard_papers"], "index.html", {"pages": pages})
