"""How quickly the house opens its door."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from figure import Figure, alternating_medians_s

COMMAND = str(Path(sys.executable).parent / "steelyard")


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def figures() -> Iterator[Figure]:
    def bare() -> None:
        run(sys.executable, "-c", "pass")

    for name, what, goal, command in (
        (
            "import",
            "import steelyard (beside a bare Python; whole process)",
            0.4,
            (sys.executable, "-c", "import steelyard"),
        ),
        ("help", "steelyard --help (beside a bare Python)", 0.6, (COMMAND, "--help")),
    ):
        ours, python = alternating_medians_s(lambda command=command: run(*command), bare)
        yield Figure(f"{name}_s", what + f": {python:.3f} s", ours, "s", goal=goal)
    with tempfile.TemporaryDirectory() as folder:
        picture = str(Path(folder) / "demo.png")
        ours, _ = alternating_medians_s(lambda: run(COMMAND, "demo", "-o", picture), bare, runs=3)
    yield Figure("demo_s", "steelyard demo, whole process", ours, "s", goal=60)
