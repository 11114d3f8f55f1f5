"""A day at 125 Hz: millions of tracking steps without drift, NaN or growth of memory.

Usage: python benchmarks/soak_steps.py [STEPS]   (10 million by default)
"""

from __future__ import annotations

import itertools
import resource
import sys
import time
from collections.abc import Iterator

import numpy as np
from bench_payload_online import RATE_HZ, TABLE_VII, TABLE_VIII, Case, published_case

from steelyard.recording import Sample
from steelyard.torque.tracking import (
    TorqueTracker,
    TorqueTrackerOptions,
    TorqueTrackerState,
)

REPORTS = 20


def endless(case: Case) -> Iterator[Sample]:
    """The trajectory again and again with fresh noise, and a bad sample now and then."""
    rng = np.random.default_rng(0)
    for i in itertools.count():
        row = i % len(case.t)
        tau = case.tau[row] + rng.normal(size=6) * TABLE_VIII
        if i % 10_007 == 10_006:
            tau = np.full(6, np.nan)
        yield Sample.of_joints(i / RATE_HZ, *case.motion[row], tau)


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def healthy(state: TorqueTrackerState) -> bool:
    arrays = (
        state.known.R,
        *(before.known.R for before in state.earlier),
        state.x,
        state.information,
        state.pull,
        state.memory,
    )
    arrays = (*arrays, *state.spread[:5])
    return all(np.isfinite(array).all() for array in arrays)


def soak(steps: int) -> int:
    """The number of things that went wrong."""
    case = published_case()
    wrong = 0
    options = TorqueTrackerOptions(forgetting_s=30.0)
    estimator = TorqueTracker(case.model, "commanded", options=options)
    state = estimator.init()
    began = time.perf_counter()
    first = 0.0
    every = max(steps // REPORTS, 1)
    for i, sample in enumerate(itertools.islice(endless(case), steps), start=1):
        state = estimator.step(state, sample)
        if i % every:
            continue
        found = estimator.estimate(state)
        first = first or megabytes()
        off = (found.unconstrained.mass - TABLE_VII.mass) / max(found.std[0], 1e-12)
        grown = megabytes() - first
        bad = not healthy(state) or abs(off) > 5 or grown > 20 or bool(state.history)
        wrong += bad
        print(
            f"{i:>10} steps  mass {found.unconstrained.mass:.4f} kg ({off:+.1f} std)  {grown:+.1f}"
            " MB "
            f" {1e6 * (time.perf_counter() - began) / i:.0f} us a step  {'WRONG' if bad else 'ok'}",
            flush=True,
        )
    return wrong


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    wrong = soak(count)
    print(f"{count} steps, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
