"""The examples run in an empty folder, are short, come in order, and print what they teach."""

import ast
import re
import runpy
import warnings
from pathlib import Path

import pytest

from steelyard._computing import one_blas_thread

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LESSONS = {
    "01": (
        r"mass +2\.[45]\d+ \+- 0\.1\d+ kg, +truth 2\.5",
        r"true mass lies inside the 95 % interval",
        r"exact: mass 2\.5\d+ \+- 0\.00\d+ kg",
        r"ok is False\.\n    \w+: ",
    ),
    "02": (
        r"42 parameters, 25 of them",
        r"same base parameters: True",
        r"-3\.92 Nm upright, 0\.00 Nm on",
    ),
    "03": (
        r"with the time of the row before",
        r"Without gains: .*Nm/A",
        r"hole: 0\.512 s",
        r"recording: log\.csv is cut at 1 hole",
        r"table in memory: All 58",
        r"degrees: q reaches 167",
    ),
    "04": (r"power .*<- chosen", r"Exponents \[0\.[56]\d* 0\.[56]\d*\] \(true: 0\.6\)"),
    "05": (r"direct +3\.[45]\d+ ", r"pooled +3\.[45]\d+ ", r"gains of the maker +0\.1\d+ kg"),
    "06": (
        r"it was -?0\.0\d kg",
        r"known to 1 %",
        r"it was [23]\.[09]\d kg",
        r"gives the same mass",
        r"Replayed: [23]\.",
    ),
    "07": (
        r"mass 1[12]\.\d+ kg \+- 0\.0",
        r"Ixx 0\.4",
        r"then: +\[ *-?0\.\d? +(39|40)\.\d? +-?0\.\d? *\] N",
    ),
    "08": (
        r"without the payload: error \[2\.\d+ 20\.",
        r"with the payload +: error \[0\.",
        r"\n +3\.\d+ s, by",
    ),
    "09": (
        r"set_target_payload\([12]\.",
        r"From 0\.5 s of motion: ",
        r"arm\.xml",
        r"payload\.html \(\d+ kB\)",
    ),
}
"""What each example prints, by its number, as patterns."""


def test_they_are_numbered_in_learning_order():
    assert [path.name[:2] for path in EXAMPLES] == [f"{i:02d}" for i in range(1, len(EXAMPLES) + 1)]
    assert {path.name[:2] for path in EXAMPLES} == set(LESSONS)


def test_they_are_short_and_say_what_they_are_about():
    for path in EXAMPLES:
        text = path.read_text()
        assert len(text.splitlines()) <= 100, path.name
        assert len(ast.get_docstring(ast.parse(text)).splitlines()) >= 2, path.name


def test_they_use_public_names_only():
    private = {
        path.name: hits
        for path in EXAMPLES
        if (hits := re.findall(r"\bimport .*\b_\w+|\._\w+", path.read_text()))
    }
    assert private == {}


def test_documents_link_to_each_example():
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(document.read_text() for document in documents)
    assert [path.name for path in EXAMPLES if path.name not in text] == []


@pytest.mark.thorough
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs_from_an_empty_folder_and_teaches_its_lesson(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("error")
        runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr()
    assert printed.err == ""
    for lesson in LESSONS[path.name[:2]]:
        assert re.search(lesson, printed.out), f"{lesson!r} is not in\n{printed.out}"


@pytest.mark.thorough
def test_the_notebook_runs_in_a_kernel_and_shows_table_picture_and_doubts(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    path = ROOT / "examples" / "10_in_a_notebook.ipynb"
    book = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells)
    client.NotebookClient(
        book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = {
        cell.source.splitlines()[-1]: cell.outputs[-1]["data"]
        for cell in book.cells
        if cell.get("outputs")
    }
    assert "All ten parameters were excited" in shown["payload"]["text/html"]
    assert "<img" in shown["payload"]["text/html"]
    assert "\n" not in shown["payload"]["text/plain"]
    assert "half_width" in shown["payload.to_dataframe()"]["text/html"]
    assert shown["payload.mass, inside, payload.verdict.ok"]["text/plain"].endswith("True, True)")
