"""Installing as README.md says, into empty environments: needs a network and some minutes.

The install line is read from README.md and typed as it stands, in a copy of the sources; then the
commands of README.md run in an empty folder. `make demo` runs in another copy, without an
environment. `make install-test` runs this, and so does continuous integration, after the tests:
it fails where a command fails. Times depend on the network, and only `benchmarks/run.py` compares
them with a goal.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from figure import Figure

ROOT = Path(__file__).parents[1]
NOT_SOURCES = shutil.ignore_patterns(
    *(".*_cache", ".venv", ".git", "*.egg-info", "__pycache__", "out", "build", "results.json")
)
INSTALL_LINE = re.compile(r"^    (pip install .*?)(?:\s+#.*)?$", re.MULTILINE)
COMMAND = re.compile(r"^    (steelyard .*?)(?:\s+#.*)?$", re.MULTILINE)
MAX_DEMO_S = 60.0


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder)
        yield Figure("line", "README's install line, empty environment", _install(there), "s")
        yield Figure("commands", "README's commands after it", _commands(there), "s")
        demo_s = _make_demo(there)
        yield Figure("demo", "make demo in an empty clone", demo_s, "s", goal=MAX_DEMO_S)


def install_line() -> str:
    """The only install line of README.md."""
    (line,) = INSTALL_LINE.findall((ROOT / "README.md").read_text())
    return str(line)


def _install(there: Path) -> float:
    clone = _copy(there / "clone")
    subprocess.run([sys.executable, "-m", "venv", there / "env"], check=True)
    return _timed(install_line(), clone, there / "env")


def _commands(there: Path) -> float:
    empty = there / "empty"
    empty.mkdir()
    lines = COMMAND.findall((ROOT / "README.md").read_text())
    spent = sum(_timed(line, empty, there / "env") for line in lines)
    if "set_target_payload(2.5" not in (empty / "payload.script").read_text():
        raise SystemExit("README's commands did not find 2.5 kg")
    return spent


def _make_demo(there: Path) -> float:
    clone = _copy(there / "demo")
    spent = _timed("make demo", clone)
    if not (clone / "out" / "demo.html").exists():
        raise SystemExit("make demo has written no report")
    return spent


def _copy(there: Path) -> Path:
    shutil.copytree(ROOT, there, ignore=NOT_SOURCES)
    return there


def _timed(line: str, folder: Path, environment: Path | None = None) -> float:
    """Seconds of a line as a user types it, with the programs of an environment."""
    around = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if environment is not None:
        around["PATH"] = f"{environment / 'bin'}{os.pathsep}{around['PATH']}"
    began = time.perf_counter()
    done = subprocess.run(shlex.split(line), cwd=folder, env=around, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{line}: {done.stdout}{done.stderr}")
    return time.perf_counter() - began


def main() -> int:
    for figure in figures():
        print(figure.line(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
