"""How `make docs` makes a site of the pages in this folder, with a search that works offline."""

from __future__ import annotations

import json
import re
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

project = "steelyard"
author = "the steelyard authors"
copyright = "2026, the steelyard authors"  # noqa: A001
release = version = version_of("steelyard")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "pictures"]
suppress_warnings = ["myst.xref_missing"]  # links out of this folder; a test checks them all
myst_heading_anchors = 3
napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_typehints = "none"  # they stand in the signature's source; units and shapes in the text
default_role = "code"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"

html_theme = "furo"
html_title = "steelyard"
html_show_sphinx = False
templates_path: list[str] = []

SEARCH_TEXTS = "search_texts.js"
OFFLINE_PAGES = """
const online = window.fetch;
window.fetch = (address, ...rest) => {
  const name = String(address).replace(/^(\\.\\/)+/, "").split("#")[0];
  return name in texts ? Promise.resolve(new Response(texts[name])) : online(address, ...rest);
};
"""
"""The search shows words beside each page that it finds. It reads that page by a request, which a
browser refuses to pages that are opened as files."""


def write_search_texts(app: Any, error: Exception | None) -> None:
    """Writes the texts of all pages beside the search page, which then needs no requests."""
    if error is not None:
        return
    site = Path(app.outdir)
    texts = {}
    for page in sorted(site.rglob("*.html")):
        if page.parent.name.startswith("_") or "_modules" in page.parts:
            continue
        main = re.search(r"<article.*?</article>", page.read_text(), re.DOTALL)
        if main is not None:
            words = re.sub(r"<(script|style).*?</\1>", " ", main.group(), flags=re.DOTALL)
            name = page.relative_to(site).as_posix()
            texts[name] = f"<div role='main'>{words}</div>"
    script = f"const texts = {json.dumps(texts)};{OFFLINE_PAGES}"
    (site / "_static" / SEARCH_TEXTS).write_text(script)


def setup(app: Any) -> None:
    """Adds the texts to the search page."""
    app.connect("build-finished", write_search_texts)
    app.connect("html-page-context", _add_search_texts)


def _add_search_texts(app: Any, page: str, *_: Any) -> None:
    if page == "search":
        app.add_js_file(SEARCH_TEXTS)
