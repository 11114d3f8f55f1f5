"""The page of all measured figures, and the figures in README.md, from benchmarks/figures.json.

Usage: python benchmarks/figures.py            write docs/reference/figures.md and README.md
       python benchmarks/figures.py --update   first take new values from benchmarks/results.json

`benchmarks/run.py` writes results.json. A group of figures names the results that it shows under
`results`, by the first cell of a row; a row without a result is edited by hand after its command
was run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
DATA = HERE / "figures.json"
RESULTS = HERE / "results.json"
PAGE = ROOT / "docs" / "reference" / "figures.md"
README = ROOT / "README.md"
START = "<!-- figures: written by benchmarks/figures.py -->"
END = "<!-- end of figures -->"
LINE = 120  # characters
HEAD = """# Measured figures

This page lists measured figures; other documents link here. `python benchmarks/figures.py`
writes it from `benchmarks/figures.json`: edit that file, not this page. `make bench` measures most
of the figures again. Benches of their own write three more tables:
[verdicts](../explanation/trust.md), [real arms](arms.md) and [picks](../howto/picks.md).
Errors are relative to the true value, and intervals are 95 % intervals,
unless a row states otherwise. Times are processor times of one core unless stated.

Each group states the day on which it was measured. Figures from before 18 November 2026 are older
than the rules of today's verdicts: causes other than a load widen intervals since then.
"""


def wrapped(text: str) -> str:
    """A paragraph in lines of limited length."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > LINE:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def page(data: dict[str, Any]) -> str:
    """The whole page as Markdown."""
    parts = [HEAD.strip()]
    section = ""
    for group in data["groups"]:
        if group["section"] != section:
            section = group["section"]
            parts.append(f"## {section}")
        parts.append(f"### {group['title']}")
        parts.append(wrapped(group["conditions"]))
        parts.append(f"Measured: {group['measured']}.\nCommand: `{group['command']}`")
        parts.append(table(group["columns"], group["rows"]))
    return "\n\n".join(parts) + "\n"


def anchor(title: str) -> str:
    """The anchor of a heading, as GitHub and MyST form it."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in "-_ ")
    return kept.replace(" ", "-")


def value(data: dict[str, Any], entry: dict[str, Any]) -> tuple[str, str]:
    """The value of a figure of README.md, and the title of its group."""
    for group in data["groups"]:
        if group["id"] == entry["group"]:
            for row in group["rows"]:
                if row[0] == entry["row"]:
                    return row[entry["column"]] + entry.get("unit", ""), group["title"]
    raise SystemExit(f"README names a figure that does not exist: {entry}")


def readme(data: dict[str, Any], text: str) -> str:
    """README.md with its table of figures as the data have it."""
    rows = []
    for entry in data["readme"]:
        number, title = value(data, entry)
        link = f"docs/reference/figures.md#{anchor(title)}"
        rows.append([entry["label"], f"[{number}]({link})"])
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    block = table(["measured", "figure (link: conditions)"], rows)
    return f"{before}{START}\n{block}\n{END}{after}"


def update(data: dict[str, Any], results: dict[str, Any]) -> None:
    """Takes the values of results into the rows that show them."""
    for group in data["groups"]:
        for row in group["rows"]:
            name = group.get("results", {}).get(row[0])
            if name in results:
                row[1] = f"{results[name]['value']:.2g} {results[name]['unit']}"


def main() -> int:
    data = json.loads(DATA.read_text())
    if "--update" in sys.argv[1:]:
        update(data, json.loads(RESULTS.read_text()))
        DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(data))
    README.write_text(readme(data, README.read_text()))
    print(f"{len(data['groups'])} groups of figures: {PAGE.relative_to(ROOT)}, README.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
