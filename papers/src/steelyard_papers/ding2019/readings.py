"""Readings of Table IV: what its correlation may have been computed from.

The paper does not say which run, which filter and which noise the correlations .99 .83 .95 .98 .97
.75 belong to. Six readings are tried with the paper's own method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from steelyard._arrays import Array
from steelyard.report import Table
from steelyard.signals import low_pass, prepare
from steelyard_papers.ding2019.fits import PAPER, Comparison
from steelyard_papers.ding2019.printed import CORRELATION, DIGIT, RMS
from steelyard_papers.ding2019.world import RATE_HZ

_FILTER_HZ = 10.0  # cut-off of the paper's filters here


def correlations(measured: Array, predicted: Array) -> Array:
    """Of measured and predicted torque, joint by joint, (n,).

    Args:
        measured: torques, (N, n) [Nm]
        predicted: by a model, (N, n) [Nm]
    """
    pairs = zip(measured.T, predicted.T, strict=True)
    return np.array([np.corrcoef(*pair)[0, 1] for pair in pairs])


def _as_measured(found: Comparison) -> Array:
    return correlations(found.measured, found.paper.predicted)


def _filtered(found: Comparison) -> Array:
    smooth = low_pass(found.measured, _FILTER_HZ, RATE_HZ, order=5)
    return correlations(smooth, found.paper.predicted)


def _squared(found: Comparison) -> Array:
    return np.asarray(_as_measured(found) ** 2)


def _moving(found: Comparison) -> Array:
    fast = np.abs(found.v) >= PAPER.lowest_speed
    measured, predicted = found.measured, found.paper.predicted
    return np.array(
        [
            np.corrcoef(measured[fast[:, j], j], predicted[fast[:, j], j])[0, 1]
            for j in range(measured.shape[1])
        ]
    )


def _own_run(found: Comparison) -> Array:
    model = found.paper.models[0]
    how = replace(PAPER, torque_cutoff_hz=None, lowest_speed=0.0)
    samples = prepare(found.world.runs[0], how)
    return correlations(samples.tau, model.rows(samples).Y @ model.estimate.value)


def _as_noisy_as_printed(found: Comparison) -> Array:
    """White noise added until the residuals are as large as printed; none where they are larger."""
    residual = found.measured - found.paper.predicted
    missing = np.maximum(np.square(RMS) - np.mean(residual**2, axis=0), 0.0)
    noise = np.random.default_rng(0).normal(size=residual.shape) * np.sqrt(missing)
    return correlations(found.measured + noise, found.paper.predicted)


READINGS: Mapping[str, Callable[[Comparison], Array]] = {
    "verification, torques as measured": _as_measured,
    "verification, torques filtered at 10 Hz": _filtered,
    "verification, square of the correlation": _squared,
    "verification, joints that move": _moving,
    "the run that was identified": _own_run,
    "verification, noise that makes the printed RMS": _as_noisy_as_printed,
}
"""By words: the correlations of the six joints."""


def differences(found: Comparison) -> dict[str, float]:
    """Largest difference of a joint's correlation from the printed one, by reading.

    Args:
        found: both methods in one world
    """
    return {
        words: float(np.abs(reading(found) - CORRELATION).max())
        for words, reading in READINGS.items()
    }


def readings_that_fit(found: Comparison) -> list[str]:
    """The readings by which all six printed correlations come out, to their last digit.

    Args:
        found: both methods in one world
    """
    return [words for words, off in differences(found).items() if off <= DIGIT]


def readings_table(found: Comparison) -> Table:
    """The correlations by every reading, and how far they are from the printed ones.

    Args:
        found: both methods in one world
    """
    rows: list[tuple[str | float | None, ...]] = [("printed", *CORRELATION, None)]
    off = differences(found)
    for words, reading in READINGS.items():
        rows.append((words, *(float(x) for x in reading(found)), off[words]))
    nearest = min(off, key=lambda words: off[words])
    given = readings_that_fit(found)
    if given:
        words = f"The printed row comes out by {' and '.join(given)}."
    else:
        words = "None of them gives the printed row."
    return Table(
        "Readings of ρ in Table IV, by the paper's method here.",
        ("reading", *(f"joint {j + 1}" for j in range(6)), "largest difference"),
        rows,
        f"{words} Nearest is '{nearest}', off by up to {off[nearest]:.2g}.",
    )
