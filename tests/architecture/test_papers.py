"""The papers are a plug-in: the library and its tests work without them."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HIDDEN = """
import importlib.metadata, sys
every = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **group: [
    entry for entry in every(**group) if not entry.value.startswith("steelyard_papers")
]
sys.modules["steelyard_papers"] = None
from steelyard.__main__ import main
main()
"""


def without_papers(*words):
    """The command line where steelyard-papers is not installed."""
    return subprocess.run(
        [sys.executable, "-c", HIDDEN, *words], capture_output=True, text=True, timeout=60
    )


def test_the_library_does_not_name_the_papers():
    named = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "src").rglob("*.py"))
        if "steelyard_papers" in path.read_text()
    ]
    assert named == []


def test_tests_and_examples_of_the_library_need_no_papers():
    users = [
        path.relative_to(ROOT).as_posix()
        for folder in ("tests", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"^\s*(from|import) steelyard_papers", path.read_text(), re.MULTILINE)
    ]
    assert users == []


def test_help_without_papers_has_no_reproduce():
    done = without_papers("--help")
    assert done.returncode == 0, done.stderr
    assert "collisions" in done.stdout
    assert "reproduce" not in done.stdout


@pytest.mark.parametrize("words", [(), ("gaz2017", "-o", "pages"), ("--help",)])
def test_reproduce_without_papers_says_what_to_install(words):
    done = without_papers("reproduce", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: reproduce is in another package: pip install ./papers")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("folder", "package"), [(".", "steelyard"), ("papers", "steelyard_papers")]
)
def test_each_wheel_carries_the_files_of_its_own_package(folder, package):
    setup = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["tool"]["setuptools"]
    source = ROOT / folder / "src" / package
    assert setup["packages"]["find"]["where"] == ["src"]
    carried = {path for pattern in setup["package-data"][package] for path in source.glob(pattern)}
    others = {
        path for path in source.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert source / "py.typed" in others <= carried
