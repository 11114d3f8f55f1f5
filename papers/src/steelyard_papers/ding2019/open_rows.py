"""Printed numbers of ding2019 that depend on what it leaves open: Table IV."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from steelyard_papers.ding2019.fits import Comparison, compare
from steelyard_papers.ding2019.printed import CORRELATION
from steelyard_papers.ding2019.readings import correlations
from steelyard_papers.ding2019.world import (
    NOISE,
    designed_motions,
    gear_friction,
    paper_arm,
    run_world,
)
from steelyard_papers.explain import Assumption, Numbers, OpenRow

_SEEDS = 4


def compared(runs: int = 2) -> Comparison:
    """Both methods where friction is as in gears.

    Args:
        runs: of the excitation
    """
    arm = paper_arm()

    def nothing(share: float) -> None:
        """No report."""

    motions = designed_motions(arm, starts=1, effort=0.5, progress=nothing)
    world = run_world("as in gears", gear_friction(arm), motions, runs=runs, progress=nothing)
    return compare(world, arm, laws=("smooth",), progress=nothing)


def correlation_row(joint: int, found: Comparison | None = None) -> OpenRow:
    """The correlation of one joint over the noise of the torques; the other joints beside it.

    Args:
        joint: from 0
        found: both methods in one world; simulated anew by default
    """
    there = found or compared()
    names = [f"joint {j + 1}" for j in range(6)]
    order = [joint, *(j for j in range(6) if j != joint)]

    def numbers(factor: float) -> Numbers:
        drawn: list[list[float]] = [[] for _ in names]
        for seed in range(_SEEDS):
            noise = factor * NOISE * np.random.default_rng(seed).normal(size=there.measured.shape)
            values = correlations(there.world.true_torque + noise, there.paper.predicted)
            for j, value in enumerate(values):
                drawn[j].append(float(value))
        return {name: drawn[j] for j, name in enumerate(names)}

    return OpenRow(
        f"correlation of joint {joint + 1} (Table IV)",
        "",
        {names[j]: CORRELATION[j] for j in order},
        5e-5,
        (
            Assumption(
                "white noise of the torques",
                f"times {NOISE.tolist()} Nm",
                (0.0, 1.0, 3.0, 10.0, 30.0),
                (0.0, 3.0),
                "not printed; currents of such drives, a few percent of the largest torque",
                numbers,
            ),
        ),
    )


def _row(joint: int) -> Callable[[], OpenRow]:
    return lambda: correlation_row(joint)


ROWS: Mapping[str, Callable[[], OpenRow]] = {f"correlation-{j + 1}": _row(j) for j in range(6)}
"""Rows that can be explained, by the name that `--explain` takes."""
