"""The papers recomputed: how long each page takes, and the share of ten minutes that all need."""

from __future__ import annotations

import time
from collections.abc import Iterator

from figure import Figure

from steelyard_papers import PAPERS, reproduce

LIMIT_S = 600.0


def figures() -> Iterator[Figure]:
    total = 0.0
    for name in PAPERS:
        began = time.perf_counter()
        page = reproduce(name)
        seconds = time.perf_counter() - began
        total += seconds
        tables = sum(hasattr(part, "rows") for section in page.sections for part in section.parts)
        words = f"{name}: a page with {tables} tables, one after the other"
        yield Figure(f"{name}_s", words, seconds, "s")
    yield Figure("all_share", "all papers: share of ten minutes", total / LIMIT_S, "", goal=1.0)
