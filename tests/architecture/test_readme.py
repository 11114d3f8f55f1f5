"""README.md is true: it installs, its commands run, and its example prints what it shows."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard as steelyard_package
from conftest import steelyard

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
COMMANDS = re.findall(r"^    ((?:steelyard|make|pip) .*?)(?:\s+#.*)?$", README, re.MULTILINE)
EXAMPLE = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
MAX_WORDS = 800


def test_it_is_short():
    assert len(README.split()) <= MAX_WORDS
    assert len([line for line in EXAMPLE.splitlines() if line.strip()]) <= 12


def test_make_targets_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|    )make ([\w-]+)", README))
    assert {"demo", "test", "bench"} <= named <= targets


@pytest.mark.thorough
def test_the_install_line_installs(tmp_path):
    """Installs a copy of the sources with the very line of README.md, without dependencies."""
    (line,) = [command for command in COMMANDS if command.startswith("pip")]
    tree = tmp_path / "clone"
    ignored = shutil.ignore_patterns("*.egg-info", "__pycache__")
    shutil.copytree(ROOT / "src", tree / "src", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    there = tmp_path / "site"
    extra = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(there)]
    pip = [sys.executable, "-m", "pip", *shlex.split(line)[1:], *extra]
    done = subprocess.run(pip, cwd=tree, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "does not provide the extra" not in done.stderr
    assert (there / "steelyard" / "__init__.py").exists()


def test_all_documents_install_with_the_line_of_readme():
    """`make install-test` types the line of README.md; here it is compared with other documents."""
    from bench_install import install_line

    line = install_line()
    documents = [*ROOT.glob("docs/**/*.md"), ROOT / "papers" / "README.md"]
    shown = re.compile(r"^    pip install (.*?)(?:\s+#.*)?$", re.MULTILINE)
    lines = {found for path in documents for found in shown.findall(path.read_text())}
    arguments = line.removeprefix("pip install ")
    assert {found.removesuffix(" ./papers") for found in lines} == {arguments}
    assert "make install-test" in (ROOT / ".ci" / "run").read_text()


def test_commands_run_in_their_order_and_the_example_weighs_the_payload(
    tmp_path, monkeypatch, capsys
):
    for command in COMMANDS:
        if command.startswith("steelyard"):
            done = steelyard(*shlex.split(command)[1:], cwd=tmp_path)
            assert done.returncode == 0, command + done.stdout + done.stderr
            assert done.stdout, command
    script = tmp_path / "payload.script"
    assert "set_target_payload(2.5" in script.read_text()
    script.unlink()

    def identify(robot, recording):
        """The model that the command has identified from the same recording."""
        assert (robot.name, recording) == ("ur10", "empty.npz")
        return steelyard_package.DynamicModel.load("model.json")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(steelyard_package, "identify", identify)
    exec(EXAMPLE, {})
    output = capsys.readouterr().out
    numbers = re.match(r"([\d.]+) ± ([\d.]+) kg, centre of mass", output).groups()
    mass, half_width = map(float, numbers)
    assert mass == pytest.approx(2.5, abs=1.5 * half_width)
    assert half_width < 0.1
    shown = re.search(r"^    ([\d.]+ ± .*?\.) \.\.\.$", README, re.MULTILINE).group(1)
    printed = output[: len(shown) + 10].partition("(95 %).")[0] + "(95 %)."
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    compared = [list(map(float, NUMBER.findall(text))) for text in (printed, shown)]
    assert compared[0] == pytest.approx(compared[1], rel=0.1, abs=0.1)
    assert "set_target_payload(2.5" in script.read_text()
