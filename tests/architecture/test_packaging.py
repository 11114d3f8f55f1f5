"""The wheel holds every file of the package and works in a folder without the sources."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import steelyard

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    shutil.copytree(
        ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*pip, "-w", folder, tree], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "there")
    return folder / "there"


@pytest.mark.thorough
def test_the_wheel_holds_every_file_of_the_package(unpacked):
    def files(folder: Path) -> set[str]:
        found = (
            path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
        )
        return {str(path.relative_to(folder)) for path in found}

    assert files(unpacked / "steelyard") == files(ROOT / "src" / "steelyard")


@pytest.mark.thorough
def test_the_example_is_weighed_from_the_wheel(unpacked, tmp_path):
    there = {**os.environ, "PYTHONPATH": str(unpacked)}

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=there,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert str(unpacked) in run("-c", "import steelyard; print(steelyard.__file__)")
    said = run("-m", "steelyard", "example", "ur10")
    assert "steelyard identify ur10 empty.npz -o model.json" in said
    run(
        "-m",
        "steelyard",
        "identify",
        "ur10",
        "empty.npz",
        "-o",
        "model.json",
        "--friction",
        "power",
    )
    assert run("-m", "steelyard", "weigh", "model.json", "loaded.npz").startswith("OK: 2.50")


def test_the_version_of_the_package_is_the_one_that_python_and_the_project_state(unpacked):
    (about,) = unpacked.glob("steelyard-*.dist-info")
    assert about.name == f"steelyard-{steelyard.__version__}.dist-info"
    assert f'version = "{steelyard.__version__}"' in (ROOT / "pyproject.toml").read_text()


COMPLETED = """
steelyard --install-completion >&2 && . ~/.bashrc
COMP_WORDS=(steelyard weigh-) COMP_CWORD=1 && _steelyard_completion steelyard &&
echo "${COMPREPLY[@]}"
"""


@pytest.mark.thorough
def test_completion_is_installed_and_names_the_verbs(tmp_path):
    program = tmp_path / "steelyard"
    program.write_text(f"#!{sys.executable}\nfrom steelyard.__main__ import main\nmain()\n")
    program.chmod(0o755)
    there = {**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    bash = ["bash", "--norc", "-c", COMPLETED]
    done = subprocess.run(bash, cwd=tmp_path, env=there, capture_output=True, text=True, timeout=60)
    assert sorted(done.stdout.split()) == ["weigh-live", "weigh-wrist"], done.stderr


def test_the_citation_says_what_the_package_says():
    cited = dict(
        re.findall(r"^([\w-]+): *(.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    )
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert f'license = "{cited["license"]}"' in (ROOT / "pyproject.toml").read_text()
