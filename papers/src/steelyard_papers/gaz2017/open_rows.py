"""Printed numbers of gaz2017 that depend on what it leaves open: errors of the torque sensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from steelyard_papers.explain import Assumption, Numbers, OpenRow
from steelyard_papers.gaz2017.gravity import Sensors, draws_of, pair_of
from steelyard_papers.gaz2017.printed import HEAVY_44, HEAVY_47

_SEEDS = 6
_NOISE_NM = 0.1
_EXPERIMENTS = {"500 postures": False, "ten samples": True}


def mass_row(first: str) -> OpenRow:
    """The medium mass from postures at rest, over scales and noise of the torque sensors.

    Args:
        first: '500 postures' or 'ten samples'; the other one stands beside it
    """
    pairs = {name: pair_of("heavy", few=few) for name, few in _EXPERIMENTS.items()}
    every = {"500 postures": HEAVY_44[0], "ten samples": HEAVY_47[0]}

    def masses(noise: float, scale: float) -> Numbers:
        sensors = Sensors("tried", noise, scale)
        return {
            name: draws_of(*pair, sensors, seeds=_SEEDS, progress=_nothing)[:, 0, 0].tolist()
            for name, pair in pairs.items()
        }

    return OpenRow(
        f"mass from {first}",
        "kg",
        {first: every[first], **every},
        5e-4,
        (
            Assumption(
                "standard deviation of the sensors' scales",
                "%",
                (0.0, 0.5, 1.0, 2.0),
                (0.0, 2.0),
                "data sheets of joint torque sensors",
                lambda percent: masses(_NOISE_NM, percent / 100),
            ),
            Assumption(
                "noise of a posture's torque, scales exact",
                "Nm",
                (0.05, 0.1, 0.3, 1.0),
                (0.05, 0.3),
                "means over rests of a tenth of a second",
                lambda noise: masses(noise, 0.0),
            ),
        ),
    )


def _nothing(share: float) -> None:
    """No report."""


ROWS: Mapping[str, Callable[[], OpenRow]] = {
    "mass-500": lambda: mass_row("500 postures"),
    "mass-ten": lambda: mass_row("ten samples"),
}
"""Rows that can be explained, by the name that `--explain` takes."""
