"""The papers recomputed: processor time of each page, and its share of four minutes."""

from __future__ import annotations

import time
from collections.abc import Iterator

from figure import Figure

from steelyard_papers import PAPERS, reproduce

LIMIT_S = 240.0


def figures() -> Iterator[Figure]:
    total = 0.0
    for name in PAPERS:
        began = time.process_time()
        page = reproduce(name)
        seconds = time.process_time() - began
        total += seconds
        tables = sum(hasattr(part, "rows") for section in page.sections for part in section.parts)
        words = f"{name}: a page with {tables} tables, processor time"
        yield Figure(f"{name}_s", words, seconds, "s")
    yield Figure(
        "all_share",
        "all papers: share of four minutes of processor time",
        total / LIMIT_S,
        "",
        goal=1.0,
    )
