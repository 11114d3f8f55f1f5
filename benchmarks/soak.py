"""Everything that takes long, as one command of about an hour, and one table at its end.

Usage: python benchmarks/soak.py [--scale 1.0] [--seed 0] [--only NAME,...] [--beside]

Two programs run at a time; the output of each goes to out/soak/NAME.log. `--scale 0.1` runs a tenth
of everything. With `--beside` other programs keep the machine busy: one part runs at a time, with
low priority, and the one that measures times is left out. The exit code is 1 where anything is
wrong.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOGS = HERE.parent / "out" / "soak"
RESULT = re.compile(r"^(\d+) [\w ,]*?, (\d+) wrong", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """A program whose output has a line such as '5000 cases, 0 wrong'.

    Attributes:
        name: of the part
        what: is tried, and must not happen
        count: how many, in an hour
        words: the program; COUNT and SEED are replaced
    """

    name: str
    what: str
    count: int
    words: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What became of a part; `wrong` is None where it did not end as it should."""

    part: Part
    tried: int
    wrong: int | None
    seconds: float

    @property
    def line(self) -> str:
        wrong = "failed" if self.wrong is None else str(self.wrong)
        return f"{self.part.what:64} {self.tried:>9} {wrong:>7} {self.seconds / 60:>6.1f} min"


def files(option: str) -> tuple[str, ...]:
    """The program of one kind of files; the other kinds are left out."""
    kinds = ("--kills", "--builds", "--cases", "--designs")
    others = [word for kind in kinds if kind != option for word in (kind, "0")]
    return ("soak_files.py", option, "COUNT", *others, "--seed", "SEED")


PARTS = (
    Part(
        "steps", "tracking steps: drift, NaN, growing memory", 4_000_000, ("soak_steps.py", "COUNT")
    ),
    Part("cases", "malformed files, arguments, streams", 5000, files("--cases")),
    Part(
        "matrix",
        "corrupted recordings, sample by sample",
        152,
        ("soak_matrix.py", "torque", "COUNT", "SEED"),
    ),
    Part(
        "wrist",
        "corrupted wrist recordings, batch and tracking",
        96,
        ("soak_matrix.py", "wrist", "COUNT", "SEED"),
    ),
    Part("designs", "designs beyond a limit, by other kinematics", 200, files("--designs")),
    Part("kills", "files broken by a killed writer", 150, files("--kills")),
    Part("builds", "fleets whose builds were killed", 10, files("--builds")),
)
LIVE = Part(
    "live",
    "faults of a moving arm: not at rest, untrue sentences",
    150,
    ("soak_live.py", "--faults", "COUNT", "--seed", "SEED"),
)
"""Alone at the end: it measures times."""
_LOW_PRIORITY = 15
_PATHS = os.pathsep.join(map(str, (HERE, HERE.parent / "src", HERE.parent / "papers" / "src")))
"""Of the programs: this repository counts, not the one that is installed."""


def run(part: Part, scale: float, seed: int) -> Outcome:
    """Runs a part and reads its last result."""
    count = max(int(scale * part.count), 1)
    given = {"COUNT": str(count), "SEED": str(seed)}
    words = [sys.executable, str(HERE / part.words[0])]
    words += [given.get(word, word) for word in part.words[1:]]
    log = LOGS / f"{part.name}.log"
    began = time.monotonic()
    with log.open("w") as file:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": _PATHS}
        code = subprocess.run(words, stdout=file, stderr=file, env=environment).returncode
    found = RESULT.findall(log.read_text())
    if not found or code not in (0, 1) or (code == 1 and found[-1][1] == "0"):
        return Outcome(part, 0, None, time.monotonic() - began)
    tried, wrong = map(int, found[-1])
    return Outcome(part, tried, wrong, time.monotonic() - began)


def table(outcomes: Sequence[Outcome]) -> str:
    head = f"{'what':64} {'tried':>9} {'wrong':>7} {'time':>10}"
    return "\n".join([head, *(outcome.line for outcome in outcomes)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="names of parts, with commas")
    parser.add_argument("--beside", action="store_true", help="beside other programs")
    given = parser.parse_args()
    if given.beside:
        os.nice(_LOW_PRIORITY)
    chosen = [name for name in given.only.split(",") if name]
    LOGS.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with ThreadPoolExecutor(1 if given.beside else 2) as pool:
        parts = [part for part in PARTS if not chosen or part.name in chosen]
        outcomes = list(pool.map(lambda part: run(part, given.scale, given.seed), parts))
    if LIVE.name in chosen or not (chosen or given.beside):
        outcomes.append(run(LIVE, given.scale, given.seed))
    print(table(outcomes))
    wrong = sum(outcome.wrong != 0 for outcome in outcomes)
    minutes = (time.monotonic() - began) / 60
    print(f"{len(outcomes)} parts, {wrong} with something wrong, {minutes:.0f} minutes; {LOGS}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
