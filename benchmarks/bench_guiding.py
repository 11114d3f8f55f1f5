"""Hand guiding: force of the hand with a compensated payload (xu2024 Fig. 12), in MuJoCo.

UR10 with the friction and noise of the paper; arm identified and payload weighed from simulated
runs; a hand drags the arm around a rectangle of 0.3 m x 0.4 m with 0.05 m/s. The figures are what
is left of the mean of
|F| and of the variance of F, in the axes of the flange as in the paper,
worst of five seeds.
The figures without a goal show what they depend on: the axes of the base, a hand of stone, a
quicker hand, a controller that takes off less friction.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from figure import Figure

from steelyard.control._compensation import Compensator
from steelyard.control._guiding import GuidingComparison, RectanglePath, TeachMode, guide
from steelyard.simulation._guided import GuidedOptions, Hand
from steelyard_papers.xu2024.guiding import (
    XU2024_MEAN_REDUCTION,
    XU2024_VARIANCE_REDUCTION,
    xu2024_guided_arm,
)

SEEDS = 5
AXES = "xyz"
OTHERWISE = {
    "stone": ("a hand of stone", {"hand": Hand(unsteadiness=0.0)}),
    "steadier": ("a hand half as unsteady", {"hand": Hand(unsteadiness=0.05)}),
    "quick": ("a hand twice as quick", {"path": RectanglePath(speed=0.1)}),
    "rough": ("80 % of the friction taken off", {"teach": TeachMode(friction_share=0.8)}),
}


def figures() -> Iterator[Figure]:
    arms = [xu2024_guided_arm(seed=seed) for seed in range(SEEDS)]
    runs = []
    for seed, (robot, model, payload, truth) in enumerate(arms):
        options = GuidedOptions(seed=seed)
        runs.append(guide(model, payload, robot=robot, payload_true=truth, options=options))
    yield from _left(runs)
    there = [replace(run, frame="base").variance_reduction for run in runs]
    yield Figure(
        "base.variance",
        "axes of the base: variance left, worst axis",
        100 * (1 - np.min(there)),
        "%",
    )
    robot, model, payload, truth = arms[0]
    for name, (words, change) in OTHERWISE.items():
        comparison = guide(model, payload, robot=robot, payload_true=truth, **change)
        left = 1 - comparison.variance_reduction.min()
        yield Figure(
            f"otherwise.{name}.variance", f"{words}: variance left, worst axis", 100 * left, "%"
        )
    yield _step(model, payload)


def _left(runs: list[GuidingComparison]) -> Iterator[Figure]:
    mean = 1 - np.min([run.mean_reduction for run in runs], axis=0)
    variance = 1 - np.min([run.variance_reduction for run in runs], axis=0)
    for i, axis in enumerate(AXES):
        paper = 100 * (1 - XU2024_MEAN_REDUCTION[i])
        what = f"guiding, mean of |F{axis}| left ({paper:.0f} % in the paper)"
        yield Figure(f"mean.{axis}", what, 100 * mean[i], "%", goal=60.0 if axis == "z" else None)
    for i, axis in enumerate(AXES):
        paper = 100 * (1 - XU2024_VARIANCE_REDUCTION[i])
        what = f"guiding, variance of F{axis} left ({paper:.0f} % in the paper)"
        yield Figure(f"variance.{axis}", what, 100 * variance[i], "%", goal=50.0)


def _step(model, payload) -> Figure:
    compensator = Compensator(model, payload)
    state = Compensator(model, payload).init()
    rng = np.random.default_rng(0)
    motion = rng.uniform(-1, 1, (2000, 3, model.robot.n))
    times = []
    for q, v, a in motion:
        began = time.perf_counter()
        state, _ = compensator.step(state, q, v, a)
        times.append(time.perf_counter() - began)
    return Figure(
        "step", "feed-forward of one sample, 6 joints, median", 1e6 * float(np.median(times)), "us"
    )
