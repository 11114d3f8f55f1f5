"""Which tests run a line, and how they end for a changed module; for `mutants.py`.

The tests of `make test` and `make thorough` run once under coverage, with the test as the context
of its lines; what a fixture runs for several tests counts for each of them. For the mutants of one
package, only the modules of tests that import it are recorded.

A server process imports the large libraries once, but nothing of steelyard, and forks for each
mutant. The fork runs the recorded tests of the changed line, those of its package first, until one
fails or the time is over. A test that also fails without the change does not count.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from collections import defaultdict
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/steelyard")
RECORDS = ROOT / "out" / "mutants"
NOT_RECORDED = ("architecture", "fuzz", "real")
"""Folders of tests that read sources only, take long, or need recordings from elsewhere."""
FIXTURE = "fixture:"  # what the context of a fixture begins with
NO_TEST = "?"  # in place of the name of a test: it cannot be imported, or computes without end
NO_END = "waits"  # in place of the name of a test: nothing came for LIMIT_S
BUDGET_S = 60.0  # of processor time for the tests of one mutant; what passes until then survives
LIMIT_S = 600.0  # of wall time; a test waits without end, or the machine is too busy
LIBRARIES = (
    *("numpy", "scipy.optimize", "scipy.signal", "scipy.linalg", "scipy.stats", "scipy.spatial"),
    *("pinocchio", "mujoco", "pyarrow.parquet", "pyarrow.csv", "typer", "rich.console"),
    *("matplotlib.figure", "clarabel", "sympy", "jinja2", "rosbags.typesys"),
)


class Times(NamedTuple):
    """How long each recorded test took, and which tests use each fixture."""

    seconds: dict[str, float]
    users: dict[str, list[str]]


# --- recording


class Recorder:
    """A plug-in of pytest that names the context of each line: a test or a fixture of several."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = defaultdict(float)
        self.users: dict[str, set[str]] = defaultdict(set)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.test = nodeid
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration

    def pytest_collection_finish(self, session: Any) -> None:
        for item in session.items:
            for name, definitions in item._fixtureinfo.name2fixturedefs.items():
                self.users[f"{FIXTURE}{definitions[-1].baseid}:{name}"].add(item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        """Gives a fixture of several tests a context of its own."""
        if fixturedef.scope == "function":
            return (yield)
        self.coverage.switch_context(f"{FIXTURE}{fixturedef.baseid}:{fixturedef.argname}")
        try:
            return (yield)
        finally:
            self.coverage.switch_context(self.test)


class Records:
    """What the tests run, in files.

    Args:
        package: whose tests were recorded; empty for all tests
    """

    def __init__(self, package: str = "") -> None:
        self.package = package
        self.folder = RECORDS / (package or "all")
        self._covered = self.folder / "coverage.sqlite"
        self._times = self.folder / "times.json"

    @property
    def exist(self) -> bool:
        """Whether the tests were recorded."""
        return self._times.exists()

    def record(self) -> int:
        """Runs the tests in this process and writes what they run; pytest's exit code."""
        import coverage

        self.folder.mkdir(parents=True, exist_ok=True)
        source = [str(ROOT / SOURCE)]
        measured = coverage.Coverage(data_file=str(self._covered), source=source, config_file=False)
        measured.erase()
        recorder = Recorder(measured)
        measured.start()
        words = ["-q", "-p", "no:cacheprovider"]
        code = pytest.main([*words, *self._modules()], plugins=[recorder])
        measured.stop()
        measured.save()
        users = {name: sorted(tests) for name, tests in recorder.users.items()}
        self._times.write_text(json.dumps([recorder.seconds, users]))
        return int(code)

    def _modules(self) -> list[str]:
        """The modules of tests to record."""
        name = f"steelyard.{self.package}"
        return [
            path for path in _modules() if not self.package or name in (ROOT / path).read_text()
        ]

    @cached_property
    def times(self) -> Times:
        """How long the tests took."""
        return Times(*json.loads(self._times.read_text()))

    def tests_of(self, path: Path, node: ast.AST, tree: ast.Module) -> list[str]:
        """The tests that run the lines of a node of a module.

        Those of its package come first, quick ones before slow ones. Where there are none: those
        that run its statement or its function; for a constant those that run a line with its name.
        """
        import coverage

        data = coverage.CoverageData(str(self._covered))
        data.read()
        lines = data.contexts_by_lineno(str(ROOT / path))
        seconds, users = self.times
        own = f"tests/{path.relative_to(SOURCE).parts[0]}/"
        for wanted in _places(node, tree):
            contexts = {context for line in wanted for context in lines.get(line, ()) if context}
            tests = {test for context in contexts for test in users.get(context, [context])}
            found = [test for test in tests if test in seconds]
            if found:
                return sorted(found, key=lambda test: (not test.startswith(own), seconds[test]))
        return []


class ByName:
    """The tests of a module by their names, without records: quick to begin with, less sharp.

    Thorough tests are left out, and a mutant that only tests of other packages notice survives
    unless they mention the function or class that it is in.
    """

    def tests_of(self, path: Path, node: ast.AST, tree: ast.Module) -> list[str]:
        """Modules of tests: that of the module first, then the others of its package.

        In between, and at the end for other packages, those that mention the function or class of
        the node.
        """
        inside = path.relative_to(SOURCE)
        own = f"test_{inside.stem.removeprefix('_')}.py"
        folder = f"tests/{inside.parts[0]}/" if len(inside.parts) > 1 else "tests/test_"
        names = {outer.name for outer in _around(node, tree) if hasattr(outer, "name")}
        mention = re.compile("|".join(rf"\b{re.escape(name.lstrip('_'))}\b" for name in names))
        ranks = {}
        for test in _modules():
            text = (ROOT / test).read_text()
            rank = (
                not test.startswith(folder),
                Path(test).name != own,
                not (names and mention.search(text)),
            )
            if not rank[0] or not rank[2]:
                ranks[test] = rank
        return sorted(ranks, key=lambda test: ranks[test])


@cache
def _modules() -> list[str]:
    """The modules of tests that run the library, relative to the repository."""
    paths = [path.relative_to(ROOT) for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    return [str(path) for path in paths if path.parts[1] not in NOT_RECORDED]


# --- places


def _places(node: ast.AST, tree: ast.Module) -> list[list[int]]:
    """Lines whose tests run a node: its own first, then those of what surrounds it."""
    around = _around(node, tree)
    functions = [outer for outer in around if isinstance(outer, ast.FunctionDef)]
    if functions:
        return [_lines(inner) for inner in (node, around[0], functions[0])]
    names = {name.id for name in ast.walk(around[0]) if isinstance(name, ast.Name)}
    return [_uses(names, tree)]


def _around(node: ast.AST, tree: ast.Module) -> list[ast.stmt]:
    """The statements that contain a node, the smallest first."""
    statements = [
        outer
        for outer in ast.walk(tree)
        if isinstance(outer, ast.stmt)
        and outer.lineno <= node.lineno
        and node.end_lineno <= outer.end_lineno
    ]
    return sorted(statements, key=lambda outer: outer.end_lineno - outer.lineno)


def _lines(node: ast.AST) -> list[int]:
    return list(range(node.lineno, node.end_lineno + 1))


def _uses(names: set[str], tree: ast.Module) -> list[int]:
    """The lines of functions that use names."""
    return [
        name.lineno
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for name in ast.walk(function)
        if isinstance(name, ast.Name) and name.id in names
    ]


# --- running tests


class InOrder:
    """A plug-in of pytest: tests in a given order, up to a failure or the end of the time."""

    def __init__(self, tests: list[str]) -> None:
        self.rank = {test: number for number, test in enumerate(tests)}
        self.failed = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        last = len(self.rank)
        items.sort(
            key=lambda item: self.rank.get(
                item.nodeid, self.rank.get(item.nodeid.partition("::")[0], last)
            )
        )

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed = NO_TEST

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed = report.nodeid

    def pytest_runtest_teardown(self, item: Any) -> None:
        if time.process_time() > BUDGET_S:
            item.session.shouldstop = "the time is over"


def serve() -> None:
    """Reads a list of tests from each line of the input, and answers which one fails."""
    import importlib
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in LIBRARIES:
            importlib.import_module(name)
    if any(name.partition(".")[0] == "steelyard" for name in sys.modules):
        raise RuntimeError("the server must not import what is changed")
    for line in sys.stdin:
        print(json.dumps(_forked(json.loads(line))), flush=True)


def _forked(tests: list[str]) -> str:
    """The first test that fails in a fork: empty if none does, NO_END if the fork does not end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        limit = int(2 * BUDGET_S)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        quiet = os.open(os.environ["MUTANT_LOG"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(quiet, stream)
        os.write(writing, b"=" + _run(tests).encode())
        sys.stdout.flush()
        os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], LIMIT_S)
    answer = NO_END
    if ready:
        answer = os.read(reading, 4096).decode()  # empty where the fork was killed
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not answer:
        return NO_TEST
    return answer.removeprefix("=")


def _run(tests: list[str]) -> str:
    """The first test that fails."""
    order = InOrder(tests)
    try:
        words = ["-x", "-q", "-p", "no:cacheprovider"]
        if not any("::" in test for test in tests):  # whole modules
            words += ["-m", "not thorough"]
        pytest.main([*words, *tests], plugins=[order])
    except BaseException:  # a mutant may break whatever pytest calls: noticed as well
        traceback.print_exc()
        return NO_TEST
    return order.failed


class Server:
    """The process that runs the tests of mutants, in a copy of the repository."""

    def __init__(self, copy: Path) -> None:
        paths = os.pathsep.join(str(copy / folder) for folder in ("src", "papers/src"))
        environment = {
            **os.environ,
            "PYTHONPATH": paths,
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "MUTANT_LOG": str(copy.parent / "log.txt"),
        }
        self.process = subprocess.Popen(
            [sys.executable, str(copy / "benchmarks" / Path(__file__).name), "serve"],
            cwd=copy,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def failing(self, tests: list[str]) -> str:
        """The first test that fails: empty if none does, NO_TEST for errors outside of tests.

        Args:
            tests: in their order
        """
        self.process.stdin.write(json.dumps(tests) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("the process that runs the tests ended")
        return str(json.loads(answer))

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=LIMIT_S)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        sys.exit(Records(sys.argv[2]).record())
