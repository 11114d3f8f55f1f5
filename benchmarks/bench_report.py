"""Pages: how large they are, how quickly they are made and, in Chromium, drawn."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from figure import Figure, median_s

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
OPENED = 5


def drawn_s(path: Path, folder: Path) -> float:
    """From opening a page to its last plot: median without the first, which starts the browser."""
    from browser import Browser

    browser = Browser(folder / f"profile-{path.stem}")
    try:
        times = []
        for _ in range(OPENED + 1):
            browser.open(path)
            times.append(float(browser.ask("document.body.dataset.seconds")))
    finally:
        browser.close()
    return statistics.median(times[1:])


def figures() -> Iterator[Figure]:
    from browser import chromium
    from report_pages import PAGES

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        sizes = {}
        for kind, make in PAGES.items():
            make().write(folder / f"{kind}.html")
            sizes[kind] = (folder / f"{kind}.html").stat().st_size / 1e6
        largest = max(sizes, key=lambda kind: sizes[kind])
        yield Figure("size_mb", f"largest page ({largest})", sizes[largest], "MB", goal=6)
        for kind in ("identification", "payload"):
            page = PAGES[kind]()
            made = median_s(page.html, runs=5)
            yield Figure(f"{kind}_html_s", f"{kind} page: data to HTML", made, "s")
            if chromium() is not None:
                drawn = drawn_s(folder / f"{kind}.html", folder)
                what = f"{kind} page: opened to all plots drawn"
                yield Figure(f"{kind}_drawn_s", what, drawn, "s", goal=3)
