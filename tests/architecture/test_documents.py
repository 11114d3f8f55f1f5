"""What the documents name exists: files, tests, links, verbs and their options."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import steelyard as front_door
from conftest import steelyard
from steelyard.io._designs import load_limits
from steelyard.robot import load_robot

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
FILES = [
    path.relative_to(ROOT).as_posix()
    for folder in ("src", "tests", "examples", "benchmarks", "papers")
    for path in (ROOT / folder).rglob("*.py")
]
TESTS = set(
    re.findall(r"^ *def (test_\w+)", "".join((ROOT / f).read_text() for f in FILES), re.MULTILINE)
)
NAMES = [page.stem for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_files_that_are_named_exist(page):
    for name in re.findall(r"`([\w/]+\.py)`", page.read_text()):
        assert any(f"/{file}".endswith(f"/{name}") for file in FILES), f"{page.name} names {name}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_tests_that_are_named_exist(page):
    named = set(re.findall(r"`(test_\w+)`", page.read_text()))
    assert named <= TESTS, f"{page.name} names {sorted(named - TESTS)}"


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ROOT / "papers/README.md", *PAGES],
    ids=["README", "papers", *NAMES],
)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("room", ["robot", "signals", "simulation", "inertia"])
def test_a_page_of_theory_names_code_and_tests(room):
    text = (ROOT / "docs" / f"{room}.md").read_text()
    assert len(text.splitlines()) <= 65
    assert re.search(r"`\w+\.py`", text)
    assert len(set(re.findall(r"`(test_\w+)`", text))) >= 5


STUMBLES = re.compile(
    r"\b(told|speaks?|wished)\b|manieth|a sentence each|file a verb|numbers that are none|a word"
    r" of force",
    re.IGNORECASE,
)
"""Words over which readers have stumbled."""


def test_words_are_plain():
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "papers/README.md", *PAGES]
    sources = [ROOT / file for file in FILES if file.startswith(("src", "papers/src", "examples"))]
    found = {
        path.name: [hit.group() for hit in STUMBLES.finditer(path.read_text())]
        for path in (*pages, *sources)
    }
    assert {name: words for name, words in found.items() if words} == {}


@cache
def options_of(verb: str) -> str:
    done = steelyard(verb, "--help")
    assert done.returncode == 0, f"there is no verb '{verb}': {done.stderr}"
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_commands_have_the_options_that_they_are_shown_with(page):
    for line in re.findall(r"^(?:    |\$ )(steelyard [a-z].*)$", page.read_text(), re.MULTILINE):
        verb, *words = line.split("  #")[0].split()[1:]
        for option in (word.split("=")[0] for word in words if word.startswith("--")):
            assert f"{option} " in options_of(verb), f"{page.name}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_names_that_are_imported_exist(page):
    for line in re.findall(
        r"^ *(from steelyard\S* import [\w, ]+)$", page.read_text(), re.MULTILINE
    ):
        exec(line, {})


WALK = """
import sys
from steelyard.cli import run
source, *files = sys.argv[1:]
sys.argv = ["steelyard", "weigh", *files]
called = dict.fromkeys(["__main__.main"])  # in the order of the first call
def note(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(source):
        module = frame.f_code.co_filename.removeprefix(source).removesuffix(".py")
        called.setdefault(f"{module.removesuffix('/__init__').replace('/', '.')}.{frame.f_code.co_qualname}")
sys.setprofile(note)
try:
    run()
except SystemExit:
    pass
finally:
    sys.setprofile(None)
    print("WALK", *called, sep="\\n")
"""


def test_the_walk_of_one_weigh_is_the_one_in_the_map(tmp_path):
    page = (ROOT / "docs" / "architecture.md").read_text()
    hops = re.findall(
        r"^\| \d+ \| `([\w.]+)` \|", page.split("## The walk of one weigh")[1], re.MULTILINE
    )
    assert 30 <= len(hops) <= 40
    for words in ("empty.npz", "loaded.npz --mass 2 --seed 1"):
        assert steelyard("simulate", "tx60", "-o", *words.split(), cwd=tmp_path).returncode == 0
    identify = ("identify", "tx60", "empty.npz", "-o", "model.json", "--friction", "linear")
    assert steelyard(*identify, cwd=tmp_path).returncode == 0
    words = [
        sys.executable,
        "-c",
        WALK,
        str(ROOT / "src" / "steelyard") + "/",
        "model.json",
        "loaded.npz",
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    called = done.stdout.partition("WALK\n")[2].split()
    assert not [hop for hop in hops if hop not in called]
    assert sorted(hops, key=called.index) == hops


def test_the_site_has_every_page_and_every_name_of_the_front_door():
    index, names = (ROOT / "docs" / "index.md").read_text(), (ROOT / "docs" / "api.md").read_text()
    listed = {line.strip() for line in index.splitlines()}
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages <= listed
    assert set(re.findall(r"auto(?:class|function):: steelyard\.(\w+)", names)) == set(
        front_door.__all__
    )


def test_the_descriptions_that_are_shown_can_be_read(tmp_path):
    shown = {
        page: re.search(
            r"```toml\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text(), re.DOTALL
        )[1]
        for page in ("robot_files", "excitation")
    }
    for page, text in shown.items():
        (tmp_path / f"{page}.toml").write_text(text)
    assert load_robot(tmp_path / "robot_files.toml").joint_names == ("shoulder", "elbow")
    (tmp_path / "excitation.toml").write_text(shown["excitation"].replace("urdf =", "# urdf ="))
    assert load_limits(load_robot("ur10"), tmp_path / "excitation.toml").joints.v_max.max() == 2.0
