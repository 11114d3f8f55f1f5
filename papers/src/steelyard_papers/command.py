"""`steelyard reproduce`: the papers recomputed, a page and a JSON file for each."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard._saved import write_text
from steelyard.cli.options import JsonFlag
from steelyard.cli.output import Output
from steelyard.errors import UnknownName

if TYPE_CHECKING:
    from steelyard.report import Page


def command(
    paper: Annotated[
        str, typer.Argument(help="Label of a paper: ding2019, gaz2017, xu2024, liu2025 or all.")
    ] = "all",
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="ROW",
            help="Which assumption that the paper leaves open makes this printed number come out;"
            " 'list' names the rows.",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for the pages.")
    ] = Path("out/reproduce"),
    as_json: JsonFlag = False,
) -> None:
    """Recomputes papers: tables and figures beside our method and the truth, one page each."""
    from steelyard_papers import PAPERS, reproduce

    names = _names(paper, tuple(PAPERS))
    out = Output(as_json)
    if explain is not None:
        _explain(out, names, explain, output)
        return
    output.mkdir(parents=True, exist_ok=True)
    pages: dict[str, Page] = {}
    results: dict[str, Any] = {}
    for k, name in enumerate(names):
        began = time.perf_counter()
        with out.progress(f"{name} ({k + 1} of {len(names)})") as done:
            pages[name] = reproduce(name, done)
        results[name] = _written(name, pages[name], output) | {
            "seconds": time.perf_counter() - began
        }
        if not as_json:
            _print(pages[name], results[name])
    if len(names) > 1:
        from steelyard_papers.index import index_html

        index = output / "index.html"
        write_text(index, index_html(pages))
        results["index"] = index
    out.emit(results, lambda: None, files={"All pages": results.get("index")})


def _explain(out: Output, names: tuple[str, ...], row: str, folder: Path) -> None:
    """Explains one row of one paper, or lists the rows of papers."""
    from steelyard_papers.explain import explain, open_rows

    if row == "list":
        rows = {name: list(open_rows(name)) for name in names}
        lines = [f"{name}: {', '.join(found)}" for name, found in rows.items()]
        out.emit(rows, lambda: print("\n".join(lines)))
        return
    if len(names) > 1:
        raise UnknownName("a row to explain belongs to one paper: name it")
    with out.progress(f"{names[0]}, {row}") as done:
        found = explain(names[0], row, done)
    folder.mkdir(parents=True, exist_ok=True)
    label = f"{names[0]}-{row}"
    written = _written(label, found.page, folder)
    explained = any(search.explains for search in found.searches)
    out.emit(
        written | {"explained": explained},
        lambda: print("\n".join(found.answer)),
        files={"Page": Path(written["page"])},
    )


def _names(paper: str, known: tuple[str, ...]) -> tuple[str, ...]:
    if paper == "all":
        return known
    if paper not in known:
        raise UnknownName(f"no paper '{paper}'; there are {', '.join(known)}, all")
    return (paper,)


def _written(name: str, page: Page, folder: Path) -> dict[str, Any]:
    """Writes both files of a page; where they are, and the answer."""
    page.write(folder / f"{name}.html")
    facts = json.dumps(page.to_dict(), indent=2, allow_nan=False)
    write_text(folder / f"{name}.json", facts + "\n")
    return {
        "page": str(folder / f"{name}.html"),
        "json": str(folder / f"{name}.json"),
        "answer": list(page.answer),
    }


def _print(page: Page, written: dict[str, Any]) -> None:
    print(f"{page.title}\n")
    for sentence in page.answer:
        print(f"  {sentence}")
    print(f"\nPage: {written['page']} (numbers: {written['json']}; {written['seconds']:.0f} s)\n")
