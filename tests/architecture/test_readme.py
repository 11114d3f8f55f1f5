"""What the README says can be done: its commands run, its example prints a payload."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import steelyard

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
COMMANDS = re.findall(r"^    ((?:steelyard|make) .*?)(?:\s+#.*)?$", README, re.MULTILINE)
EXAMPLE = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)


def test_the_two_commands_are_targets_of_the_makefile():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {command.split()[1] for command in COMMANDS if command.startswith("make")} <= targets
    assert {"demo", "test", "bench", "lint"} <= targets


def test_commands_run_in_their_order_and_the_example_weighs_the_payload(tmp_path):
    for command in COMMANDS:
        if command.startswith("steelyard"):
            done = steelyard(*shlex.split(command)[1:], cwd=tmp_path)
            assert done.returncode == 0, command + done.stdout + done.stderr
            assert done.stdout, command
    assert len([line for line in EXAMPLE.splitlines() if line.strip()]) <= 12
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLE], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    mass, half = map(
        float, re.match(r"([\d.]+) \+- ([\d.]+) kg, centre of mass", done.stdout).groups()
    )
    assert mass == pytest.approx(2.5, abs=1.5 * half)
    assert half < 0.1
    assert "ten parameters were excited" in done.stdout
    shown = re.search(r"^    ([\d.]+ \+- .*?;) \.\.\.$", README, re.MULTILINE).group(1)
    printed = done.stdout[: done.stdout.index(";") + 1]
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    numbers = [list(map(float, NUMBER.findall(text))) for text in (printed, shown)]
    assert numbers[0] == pytest.approx(numbers[1], rel=0.1, abs=0.1)
    assert "set_target_payload(2.5" in (tmp_path / "payload.script").read_text()
