"""Corrupted recordings as a part of the soak: how many wrong answers are trusted.

Usage: python benchmarks/soak_matrix.py torque|wrist [CELLS] [FIRST_SEED]

`torque` weighs the recordings of `bench_trust` sample by sample, `wrist` those of
`bench_trust_wrist` as a whole and sample by sample. Each trusted wrong answer is printed.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator

os.environ["ONLINE"] = "1"

import bench_trust
import bench_trust_wrist

Place = tuple[str, ...]


def torque_cells(first_seed: int) -> Iterator[tuple[Place, str]]:
    """Every cell of joint torques, and its outcome."""
    for seed in itertools.count(first_seed):
        for name, source, law in itertools.product(
            bench_trust.ARMS, bench_trust.SOURCES, bench_trust.LAWS
        ):
            for kind in bench_trust.corruptions(name):
                if kind != "clean":
                    found = bench_trust.cell(name, seed, source, law, kind)
                    place = (kind, name, str(seed), source, law)
                    yield place, found.outcome


def wrist_cells(first_seed: int) -> Iterator[tuple[Place, str]]:
    """Every cell of a wrist sensor, and its outcome."""
    for seed in itertools.count(first_seed):
        for name, way in itertools.product(bench_trust_wrist.ARMS, bench_trust_wrist.WAYS):
            for kind in bench_trust_wrist.CORRUPTIONS:
                if kind != "clean":
                    found = bench_trust_wrist.cell(name, seed, way, kind)
                    yield (kind, name, str(seed), way), found.outcome


def main() -> int:
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 152
    first_seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    cells = {"torque": torque_cells, "wrist": wrist_cells}[sys.argv[1]](first_seed)
    wrong = 0
    for place, outcome in itertools.islice(cells, count):
        if outcome == "SILENT":
            wrong += 1
            print(", ".join(place), flush=True)
    print(f"{count} cells, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
