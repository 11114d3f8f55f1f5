"""The page that leads to the pages of the papers."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from steelyard.report import Page

_STYLE = (
    ":root{color-scheme:light dark;--ink:#1c2b33;--link:#0b5c8a}"
    "@media (prefers-color-scheme:dark)"
    "{:root{--ink:#e6e9ee;--link:#74b0ea}body{background:#14181d}}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0"
    " 1rem;color:var(--ink)}"
    "h1{font-size:1.5rem}dt{font-weight:600;margin-top:1.2rem}dd{margin:.2rem 0}"
    "a{color:var(--link)}"
)


def index_html(pages: Mapping[str, Page]) -> str:
    """One small HTML document: a link and a line for each paper.

    Args:
        pages: by label of the paper; each lies beside this one as LABEL.html and LABEL.json
    """
    lines = [
        f'<dt><a href="{escape(name)}.html">{escape(page.title)}</a></dt>'
        f'<dd>{escape(page.answer[0])} <a href="{escape(name)}.json">numbers</a></dd>'
        for name, page in pages.items()
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>The papers, recomputed</title><style>{_STYLE}</style></head>\n<body>"
        "<h1>The papers, recomputed</h1>"
        "<p>Every table and figure that can be recomputed, the paper's number beside ours"
        " and beside the truth.</p>\n"
        f"<dl>\n{chr(10).join(lines)}\n</dl></body></html>\n"
    )
