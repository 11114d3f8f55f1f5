"""Runs every benchmark: one table on the screen, the same figures in benchmarks/results.json.

Each file `bench_<subject>.py` has a function `figures()` that yields `Figure`s. Times are medians
of
several runs, taken beside a reference in the same run, because machines are noisy; judge the
ratios.
Usage: python benchmarks/run.py [SUBJECT ...]
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


def main() -> int:
    subjects = sys.argv[1:] or sorted(
        p.stem.removeprefix("bench_") for p in HERE.glob("bench_*.py")
    )
    path = HERE / "results.json"
    if path.exists() and sys.argv[1:]:
        results = json.loads(path.read_text())
    else:
        results = {}
    print(f"{'what':66} {'ours':>14} {'reference':>14} {'ratio':>8}  goal")
    missed = 0
    for subject in subjects:
        for figure in importlib.import_module(f"bench_{subject}").figures():
            results[f"{subject}.{figure.name}"] = figure.as_dict()
            missed += not figure.reached
            print(figure.line(), flush=True)
    path.write_text(json.dumps(results, indent=2) + "\n")
    print(f"{len(results)} figures, {missed} short of their goal; benchmarks/results.json")
    if missed:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
