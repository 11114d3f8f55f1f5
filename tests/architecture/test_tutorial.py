"""The commands of the tutorial run in order and print what the tutorial shows."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from conftest import steelyard

TUTORIAL = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()
BLOCKS = re.findall(
    r"^```(python|toml|console(?: words)?)\n(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL
)
NUMBER = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")


class Shown(NamedTuple):
    """A command of the tutorial, its expected exit code, and the lines that it should print."""

    command: str
    code: int
    lines: tuple[str, ...]
    words_only: bool


def shown(kind: str, body: str) -> list[Shown]:
    found = []
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        first, *lines = part.splitlines()
        command, _, remark = first.partition("  # exit code ")
        kept = tuple(line for line in lines if line.strip() and line.strip() != "...")
        found.append(Shown(command, int(remark or 0), kept, kind.endswith("words")))
    return found


COMMANDS = [
    item for kind, body in BLOCKS if kind.startswith("console") for item in shown(kind, body)
]


def python(arguments: list[str], folder: Path) -> subprocess.CompletedProcess:
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "200"}
    words = [sys.executable, *arguments]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=180, env=env)


def alike(claimed: str, printed: str, *, words_only: bool) -> bool:
    """Whether a line has the same words as the printed one, and numbers within a tenth.

    A process without a terminal may print +- in place of the sign.
    """
    claimed = claimed.replace("±", "+-").replace("m²", "m^2")
    printed = printed.replace("±", "+-").replace("m²", "m^2")
    if claimed.endswith("..."):
        claimed = claimed.removesuffix("...").rstrip()
        pattern = r"\s+".join(re.escape(word) for word in NUMBER.sub("#", claimed).split())
        if not re.match(pattern, " ".join(NUMBER.sub("#", printed).split())):
            return False
    elif NUMBER.sub("#", claimed).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(
        map(float, NUMBER.findall(claimed)), map(float, NUMBER.findall(printed)), strict=False
    )
    return words_only or all(abs(a - b) <= 0.1 * max(abs(a), abs(b)) + 2e-3 for a, b in pairs)


def test_the_page_has_what_it_promises():
    assert [item.command.split()[1] for item in COMMANDS[:9]] == [
        "example", "identify", "weigh", "robot", "design", "check", "identify", "weigh", "weigh",
    ]  # fmt: skip
    assert {item.code for item in COMMANDS} == {0, 1, 2}
    assert not re.search(r"^    steelyard ", TUTORIAL, re.MULTILINE), (
        "commands stand in console blocks"
    )


@pytest.mark.thorough
def test_the_commands_run_in_order_and_print_what_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    for kind, body in BLOCKS:
        if kind == "python":
            exec(body, {})
        if kind == "toml":
            (tmp_path / body.split()[1]).write_text(body)
    for item in COMMANDS:
        words = shlex.split(item.command)[1:]
        apart = words[0] == "design"  # JAX stays out of this process
        done = (
            python(["-m", "steelyard", *words], tmp_path)
            if apart
            else steelyard(*words, cwd=tmp_path)
        )
        text = f"{item.command}\n{done.stdout}{done.stderr}"
        assert done.returncode == item.code, text
        printed = iter(text.splitlines()[1:])
        for line in item.lines:
            found = any(alike(line, other, words_only=item.words_only) for other in printed)
            assert found, f"not printed, or not in this order: {line!r}\n{text}"


def test_comparison_sees_other_words_and_other_numbers():
    line = "mass                    2.4912  0.0631      kg"
    assert alike(line, "mass  2.4913  0.0630  kg", words_only=False)
    assert not alike(line, "mass  -2.4913  0.0630  kg", words_only=False)
    assert not alike(line, "mass  24.913  0.0630  kg", words_only=False)
    assert not alike(line, "mass  2.4913  0.0630  g", words_only=True)
    assert alike("gains: 14.73 +- 0.1, ...", "gains: 14.70 +- 0.1, 3.2 Nm", words_only=False)
    assert not alike("gains: 14.73, ...", "losses: 14.73, 3.2 Nm", words_only=False)
