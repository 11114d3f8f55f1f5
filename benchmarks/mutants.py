"""Mutation testing: small faults in lines that decide, and whether the tests that run them fail.

python benchmarks/mutants.py [COUNT] [--seed SEED] [--package NAME] [--record | --by-name] [--known]

Each mutant changes one place of the library in a copy of the repository: a comparison, a threshold,
a sign, a logical operator, an index of first or last, or a call that only has an effect (`fsync`).
Constants are multiplied by 10, tolerances of rounding by 10,000; those that bound a wait or the
work of a search are left alone.
Then tests of this place run, those of its package first, until the first failure or for 60 s of
processor time. Which tests run it is recorded once, those of `make thorough` too (half an hour;
`--record` does it again, after tests or the library have changed; with `--package` only tests that
import the package, a few minutes). With `--by-name` nothing is recorded: the tests of its module
run, those of its package, and those that mention the function or class; more survive.
Survivors are printed with the changed line; those that matter deserve a test that fails on them.
A mutant is undecided where a test waits for ten minutes: look at it, or use a quieter machine.
The exit code is 1 if more than a tenth survive. `--known` puts faults of the past back instead
(`known_faults.py`), each with the test that was written for it; none may survive.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from known_faults import KNOWN_FAULTS, KnownFault
from mutant_tests import NO_END, NO_TEST, ROOT, SOURCE, ByName, Records, Server

COPIED = ("src", "tests", "papers", "benchmarks", "docs", "examples")
MAX_SURVIVORS = 0.1
KILLED, SURVIVED, UNDECIDED = "killed", "SURVIVED", "undecided"
SOUND_TESTS = "tests/test_errors.py"
EFFECTS = {"fsync", "flush", "close", "sort", "setflags", "clear", "unlink", "replace", "flock"}
OPPOSITE: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Sub: ast.Add,  # a sum is left alone: it may be one of texts, and every test would fail
}
OTHER_NAME = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
"""Calls that are replaced by their opposites."""

MAX_ROUNDING = 1e-5
"""Smaller constants are tolerances of rounding."""

NO_DECISION = re.compile(r"(TIMEOUT|CHUNK|BLOCK_ROWS|CACHE|ITERATIONS|ROUNDS|SWEEPS|POINTS)")
"""Names of constants that bound a wait or the work of a search: ten times as much is as right."""


@dataclass(frozen=True)
class Mutant:
    """A change of one node of a module.

    Attributes:
        path: of the module, relative to the repository
        line: of the node
        number: of the node in `ast.walk`
        before: the changed line
    """

    path: Path
    line: int
    number: int
    before: str

    @property
    def package(self) -> str:
        """The package that it is in; empty for modules outside of packages."""
        inside = self.path.relative_to(SOURCE)
        return inside.parts[0] if len(inside.parts) > 1 else ""

    @property
    def after(self) -> str:
        """The text of the changed node, in one line."""
        node = nodes_of(self.mutated())[self.number]
        return " ".join(ast.unparse(node).split())[:100]

    def mutated(self) -> ast.Module:
        """The tree of the module with its change."""
        tree = ast.parse((ROOT / self.path).read_text())
        change = change_of(nodes_of(tree)[self.number])
        if change is None:
            raise ValueError(f"{self.path}:{self.line} holds nothing to change")
        change()
        return tree


def nodes_of(tree: ast.Module) -> list[ast.AST]:
    return list(ast.walk(tree))


def change_of(node: ast.AST) -> Callable[[], None] | None:
    """What changes a node in place; None where there is nothing to change."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OPPOSITE:
        return lambda: node.ops.__setitem__(0, OPPOSITE[type(node.ops[0])]())
    if isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in OPPOSITE:
        return lambda: setattr(node, "op", OPPOSITE[type(node.op)]())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return lambda: setattr(node, "op", ast.UAdd())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return lambda: setattr(node, "operand", ast.UnaryOp(ast.Not(), node.operand))
    if isinstance(node, ast.Assign) and _is_threshold(node):
        return lambda: setattr(node, "value", ast.Constant(_enlarged(node.value.value)))
    if isinstance(node, ast.Subscript) and ast.unparse(node.slice) in ("0", "-1"):
        other = 0 if ast.unparse(node.slice) == "-1" else -1
        return lambda: setattr(node, "slice", ast.Constant(other))
    if isinstance(node, ast.Expr) and _called(node.value) in EFFECTS:
        return lambda: setattr(node, "value", ast.Constant(None))
    if isinstance(node, ast.Call) and _called(node) in OTHER_NAME:
        return lambda: _rename(node.func)
    return None


def _is_threshold(node: ast.Assign) -> bool:
    """Whether it gives a constant of a module its number, which decides more than time or work."""
    name = node.targets[0]
    return (
        isinstance(name, ast.Name)
        and name.id.isupper()
        and not NO_DECISION.search(name.id)
        and isinstance(node.value, ast.Constant)
        and type(node.value.value) in (int, float)
    )


def _enlarged(value: float) -> float:
    """A constant that is too large; a tolerance of rounding may be wrong by some powers of ten."""
    return (1e4 if abs(value) < MAX_ROUNDING else 10) * value


def _called(node: ast.AST) -> str:
    """The name of the function that a call calls; empty for other nodes."""
    if not isinstance(node, ast.Call):
        return ""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _rename(function: ast.AST) -> None:
    field = "attr" if isinstance(function, ast.Attribute) else "id"
    setattr(function, field, OTHER_NAME[getattr(function, field)])


def every_mutant(package: str) -> list[Mutant]:
    """All places of the library that can be changed."""
    return [
        mutant
        for path in sorted((ROOT / SOURCE).rglob("*.py"))
        for mutant in _mutants_of(path.relative_to(ROOT))
        if not package or mutant.package == package
    ]


def _mutants_of(path: Path) -> Iterator[Mutant]:
    text = (ROOT / path).read_text()
    lines = text.splitlines()
    for number, node in enumerate(nodes_of(ast.parse(text))):
        if change_of(node) is not None:
            line = node.lineno
            yield Mutant(path, line, number, lines[line - 1].strip())


class Bench:
    """A copy of the repository in which mutants are tried.

    Args:
        folder: for the copy
        records: which tests run a line
    """

    def __init__(self, folder: Path, records: Records | ByName) -> None:
        self.records = records
        self.copy = copied(folder)
        self.server = Server(self.copy)
        self.steady: dict[str, bool] = {}
        if self.server.failing([SOUND_TESTS]):
            raise RuntimeError(f"{SOUND_TESTS} fails without a change")

    def state(self, mutant: Mutant) -> str:
        """What becomes of a mutant; it survives where no test runs its line."""
        tree = ast.parse((ROOT / mutant.path).read_text())
        tests = self.records.tests_of(mutant.path, nodes_of(tree)[mutant.number], tree)
        changed = ast.unparse(ast.fix_missing_locations(mutant.mutated()))
        while tests:
            failed = self._failing_with(mutant.path, changed, tests)
            if not failed:
                return SURVIVED
            if failed == NO_END:
                return UNDECIDED
            if failed == NO_TEST or self._passes_unchanged(failed):
                return KILLED
            tests = [test for test in tests if test not in (failed, failed.partition("::")[0])]
        return SURVIVED

    def known_state(self, fault: KnownFault) -> str:
        """What becomes of a fault of the past."""
        path = SOURCE / fault.path
        changed = fault.mutated((ROOT / path).read_text())
        failed = self._failing_with(path, changed, [fault.test])
        if not failed:
            return SURVIVED
        if failed == NO_END or self.server.failing([fault.test]):
            return UNDECIDED
        return KILLED

    def _failing_with(self, path: Path, changed: str, tests: list[str]) -> str:
        target = self.copy / path
        original = target.read_text()
        target.write_text(changed)
        try:
            return self.server.failing(tests)
        finally:
            target.write_text(original)

    def _passes_unchanged(self, test: str) -> bool:
        if test not in self.steady:
            self.steady[test] = not self.server.failing([test])
        return self.steady[test]


def record(package: str) -> None:
    """Runs tests once and notes which lines each of them runs."""
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("src", "papers/src"))
    words = [sys.executable, str(ROOT / "benchmarks" / "mutant_tests.py"), "record", package]
    subprocess.run(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, check=False)


def copied(folder: Path) -> Path:
    """A copy of the repository, without environments and caches."""
    copy = folder / "repository"
    copy.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "out")
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, copy)
    return copy


def shown(number: int, mutant: Mutant, bench: Bench) -> str:
    """What becomes of a mutant; printed."""
    begin_s = time.monotonic()
    state = bench.state(mutant)
    seconds = time.monotonic() - begin_s
    print(f"{number:4} {state:9} {seconds:5.0f} s  {mutant.path}:{mutant.line}", flush=True)
    if state != KILLED:
        print(f"       {mutant.before}\n    -> {mutant.after}", flush=True)
    return state


def put_back() -> int:
    """Tries all faults of the past; the number of those that no test notices."""
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), Records())
        for fault in KNOWN_FAULTS:
            try:
                state = bench.known_state(fault)
            except ValueError as error:  # the library has changed there
                state = f"{UNDECIDED} ({error})"
            missed += state != KILLED
            print(f"{state:9} {fault.what}", flush=True)
        bench.server.close()
    print(f"{len(KNOWN_FAULTS)} faults of the past, {missed} not noticed")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", nargs="?", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--package", default="", help="only mutants of this package")
    parser.add_argument("--record", action="store_true", help="note again which test runs what")
    parser.add_argument("--by-name", action="store_true", help="choose tests without a record")
    parser.add_argument("--known", action="store_true", help="faults of the past, no drawn ones")
    given = parser.parse_args()
    if given.known:
        return int(put_back() > 0)
    if given.by_name:
        records: Records | ByName = ByName()
    else:
        records = Records(given.package)
        if given.record or not records.exist:
            record(given.package)
    mutants = every_mutant(given.package)
    drawn = random.Random(given.seed).sample(mutants, min(given.count, len(mutants)))
    print(f"{len(drawn)} of {len(mutants)} mutants, seed {given.seed}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), records)
        states = Counter(shown(k, mutant, bench) for k, mutant in enumerate(drawn, 1))
        bench.server.close()
    share = states[SURVIVED] / max(len(drawn), 1)
    counts = ", ".join(
        f"{states[state]} {state.lower()}" for state in (KILLED, SURVIVED, UNDECIDED)
    )
    print(f"{counts} ({100 * share:.0f} % survived)")
    return int(share > MAX_SURVIVORS)


if __name__ == "__main__":
    sys.exit(main())
