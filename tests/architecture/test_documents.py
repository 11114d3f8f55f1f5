"""The documents are true: files, tests, links, commands and options that they name exist."""

import re
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from conftest import steelyard
from steelyard.cli import _COMMANDS
from steelyard.io._designs import load_limits
from steelyard.robot import load_robot

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).as_posix(): path.read_text() for path in DOCS.rglob("*.md")}
FOLDERS = ("src", "tests", "examples", "benchmarks", "papers")
FILES = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
}
TESTS = set(re.findall(r"^ *def (test_\w+)", "".join(FILES.values()), re.MULTILINE))
DOCUMENTS = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in (
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "papers/README.md",
        *DOCS.rglob("*.md"),
    )
}
MAX_LINE = 160  # characters
MAX_CELL = 25  # words


def test_files_that_are_named_exist():
    missing = [
        (page, name)
        for page, text in PAGES.items()
        for name in re.findall(r"`([\w/]+\.py)`", text)
        if not any(f"/{file}".endswith(f"/{name}") for file in FILES)
    ]
    assert missing == []


def test_tests_that_are_named_exist():
    missing = [
        (page, name)
        for page, text in PAGES.items()
        for name in re.findall(r"`(test_\w+)`", text)
        if name not in TESTS
    ]
    assert missing == []


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST form them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


def test_links_lead_to_files_and_headings():
    broken = []
    for name, text in DOCUMENTS.items():
        for target in re.findall(r"\]\((?!https?:)([^)\s]+)", text):
            file, _, anchor = target.partition("#")
            path = (ROOT / name).parent / file if file else ROOT / name
            if not path.exists() or (anchor and anchor not in anchors(path.read_text())):
                broken.append((name, target))
    assert broken == []


def test_documents_that_sources_name_exist():
    missing = [
        (file, name)
        for file, text in FILES.items()
        for name in re.findall(r"\bdocs/[\w/]+\.md\b", text)
        if not (ROOT / name).exists()
    ]
    assert missing == []


def test_pages_of_theory_name_code_and_tests():
    for page in ("robot", "signals", "simulation", "inertia"):
        text = PAGES[f"explanation/{page}.md"]
        assert re.search(r"`\w+\.py`", text), page
        assert len(set(re.findall(r"`(test_\w+)`", text))) >= 5, page


def test_no_document_holds_a_merge_conflict():
    conflicts = [
        name for name, text in DOCUMENTS.items() if re.search(r"^<{7} ", text, re.MULTILINE)
    ]
    assert conflicts == []


def test_lines_are_short():
    long = [
        (name, number)
        for name, text in DOCUMENTS.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if len(line) > MAX_LINE
    ]
    assert long == []


def test_cells_of_tables_are_short():
    long = [
        (name, cell)
        for name, text in DOCUMENTS.items()
        for line in text.splitlines()
        if line.startswith("|")
        for cell in re.split(r"(?<!\\)\|", line)
        if len(cell.split()) > MAX_CELL
    ]
    assert long == []


UNCLEAR = re.compile(
    r"\b(told|speaks?|wished)\b|manieth|a sentence each|file a verb|numbers that are none|a word"
    r" of force",
    re.IGNORECASE,
)
"""Words over which readers have stumbled."""


def test_words_are_plain():
    sources = {
        file: text
        for file, text in FILES.items()
        if file.startswith(("src", "papers/src", "examples"))
    }
    unclear = {
        name: [hit.group() for hit in UNCLEAR.finditer(text)]
        for name, text in (DOCUMENTS | sources).items()
    }
    assert {name: words for name, words in unclear.items() if words} == {}


@cache
def help_of(*command: str) -> str:
    done = steelyard(*command, "--help")
    assert done.returncode == 0, f"there is no command '{' '.join(command)}': {done.stderr}"
    return done.stdout


def test_commands_have_the_options_that_they_are_shown_with():
    unknown = []
    for page, text in PAGES.items():
        for line in re.findall(r"^(?:    |\$ )(steelyard [a-z].*)$", text, re.MULTILINE):
            verb, *words = line.split("  #")[0].split()[1:]
            command = [verb]
            if _COMMANDS.get(verb, "").endswith("app") and not words[0].startswith("-"):
                command.append(words[0])
            for option in (word.split("=")[0] for word in words if word.startswith("--")):
                if f"{option} " not in help_of(*command):
                    unknown.append((page, line))
    assert unknown == []


def test_names_that_are_imported_exist():
    for text in PAGES.values():
        for line in re.findall(r"^ *(from steelyard\S* import [\w, ]+)$", text, re.MULTILINE):
            exec(line, {})


CALLS = """
import sys
from steelyard.cli import run
source, *files = sys.argv[1:]
sys.argv = ["steelyard", "weigh", *files]
called = dict.fromkeys(["__main__.main"])  # in the order of the first call
def note(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(source):
        module = frame.f_code.co_filename.removeprefix(source).removesuffix(".py")
        module = module.removesuffix('/__init__').replace('/', '.')
        called.setdefault(f"{module}.{frame.f_code.co_qualname}")
sys.setprofile(note)
try:
    run()
except SystemExit:
    pass
finally:
    sys.setprofile(None)
    print("CALLS", *called, sep="\\n")
"""


@pytest.mark.thorough
def test_the_calls_of_one_weigh_are_those_of_the_architecture(tmp_path):
    page = PAGES["architecture.md"].split("## Call path of `steelyard weigh`")[1]
    steps = re.findall(r"^\| \d+ \| `([\w.]+)` \|", page, re.MULTILINE)
    assert len(steps) >= 20
    for words in ("empty.npz", "loaded.npz --mass 2 --seed 1"):
        assert steelyard("simulate", "planar2r", "-o", *words.split(), cwd=tmp_path).returncode == 0
    identify = ("identify", "planar2r", "empty.npz", "-o", "model.json", "--friction", "linear")
    assert steelyard(*identify, cwd=tmp_path).returncode == 0
    source = str(ROOT / "src" / "steelyard") + "/"
    words = [sys.executable, "-c", CALLS, source, "model.json", "loaded.npz"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    called = done.stdout.partition("CALLS\n")[2].split()
    assert not [step for step in steps if step not in called]
    assert sorted(steps, key=called.index) == steps


def test_the_index_lists_every_page():
    listed = {line.strip() for line in PAGES["index.md"].splitlines()}
    assert {name.removesuffix(".md") for name in PAGES} - {"index"} <= listed


def test_the_api_pages_have_every_public_name():
    script = runpy.run_path(str(DOCS / "api.py"))
    public = {package: set(script["public_names"](package)) for package in script["packages"]()}
    listed = {}
    described = {}
    for section in PAGES["reference/api.md"].split("\n## ")[1:]:
        listed[section.split()[0]] = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    for section in PAGES["reference/docstrings.md"].split("\n## ")[1:]:
        package = section.split()[0]
        directive = rf"^\.\. (?:auto\w+|py:data):: {re.escape(package)}\.(\w+)$"
        named = re.findall(directive, section, re.MULTILINE)
        described[package] = set(named)
    assert listed == public, "run python docs/api.py"
    assert described == public, "run python docs/api.py"


def test_the_page_of_commands_has_every_option():
    script = runpy.run_path(str(DOCS / "commands.py"))
    assert script["page"]() == PAGES["reference/command_line.md"], "run python docs/commands.py"


@pytest.mark.thorough
def test_the_page_of_doubts_has_every_kind_and_message():
    script = runpy.run_path(str(DOCS / "doubts.py"))
    assert script["page"]() == PAGES["reference/doubts.md"], "run python docs/doubts.py"


def test_the_descriptions_that_are_shown_can_be_read(tmp_path):
    shown = {}
    for page in ("reference/robot_files.md", "howto/design.md"):
        shown[page] = re.search(r"```toml\n(.*?)```", PAGES[page], re.DOTALL)[1]
    robot_file = tmp_path / "robot.toml"
    robot_file.write_text(shown["reference/robot_files.md"])
    assert load_robot(robot_file).joint_names == ("shoulder", "elbow")
    limits = tmp_path / "limits.toml"
    limits.write_text(shown["howto/design.md"].replace("urdf =", "# urdf ="))
    assert load_limits(load_robot("ur10"), limits).joints.v_max.max() == 2.0
