"""What may have put Method 1 of liu2025 so far off: another zero, moving rows, another tilt.

Method 1 estimates mass, centre, zero and tilt from postures at rest by total least squares. On such
postures it is as good as the proposed method; the paper has it off by 0.37 kg, by 7 degrees in the
tilt, and by 67 N in a test motion. It prints none of the data that Method 1 was fed with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from steelyard._arrays import Array
from steelyard.control._contact_force import contact_force
from steelyard.wrist import Postures, WrenchSamples
from steelyard_papers.explain import Assumption, Numbers, OpenRow
from steelyard_papers.liu2025.answers import (
    Answers,
    ChangedCell,
    postures_of,
    samples_left,
)
from steelyard_papers.liu2025.comparison_methods import method_1, moving_postures
from steelyard_papers.liu2025.printed import FORCE_DIGIT_N, TABLE_2, TABLE_2_DIGIT, TABLE_3
from steelyard_papers.liu2025.world import TILT, UPRIGHT, World

_ROWS = 40  # of a mixture of rows at rest and rows in motion
_ZERO_AXIS = np.array([1.0, -1.0, 0.5, 0.0, 0.0, 0.0]) / 1.5  # of a zero that moved, a unit vector
_PRINTED = {
    "m": float(TABLE_2["m"][1] or np.nan),
    "mz": float(TABLE_2["mz"][1] or np.nan),
    "mean force": TABLE_3["high"]["method_1"][1],
}
_DIGITS = {"m": TABLE_2_DIGIT, "mz": TABLE_2_DIGIT, "mean force": FORCE_DIGIT_N}
_UNITS = {"m": "kg", "mz": "kg m", "mean force": "N"}
_WORDS = {
    "m": "m by Method 1",
    "mz": "mz by Method 1",
    "mean force": "force without contact at high speed by Method 1",
}
_PRINTED_TILT = np.radians([float(TABLE_2[name][1] or np.nan) for name in "UV"])


class MethodOne:
    """Method 1 on data of several seeds that are not what it needs.

    Attributes:
        world: what really happened
        answers: of each seed
    """

    def __init__(self, world: World, answers: Sequence[Answers]) -> None:
        self.world = world
        self.answers = answers

    def moved_zero(self, size: float) -> Numbers:
        """The numbers where the zero moved when half of the postures were recorded.

        Args:
            size: by how much, [N]; along `_ZERO_AXIS`, or against it where negative
        """
        return self._numbers([_with_moved_zero(x, size * _ZERO_AXIS) for x in self._postures])

    def moving(self, share: float) -> Numbers:
        """The numbers where some of the rows were recorded in motion.

        Args:
            share: of all rows
        """
        pairs = zip(self._postures, self.answers, strict=True)
        return self._numbers([_mixed(x, answer.causal, share) for x, answer in pairs])

    def turned(self, degrees: float) -> Numbers:
        """The numbers where the base had another tilt when the postures were recorded.

        Args:
            degrees: of its change, towards the tilt that Method 1 printed
        """
        change = np.radians(degrees) * _towards_the_printed_tilt()
        return self._numbers(
            [postures_of(self.world, seed, change) for seed in range(len(self.answers))]
        )

    def _numbers(self, data: Sequence[Postures]) -> Numbers:
        found: dict[str, list[float]] = {name: [] for name in _PRINTED}
        for postures, samples in zip(data, self._test_samples, strict=True):
            payload = method_1(postures, gravity_base=UPRIGHT)
            found["m"].append(payload.unconstrained.mass)
            found["mz"].append(float(payload.unconstrained.vector[3]))
            found["mean force"].append(float(contact_force(payload, samples).force.mean()))
        return found

    @cached_property
    def _postures(self) -> list[Postures]:
        return [postures_of(self.world, seed) for seed in range(len(self.answers))]

    @cached_property
    def _test_samples(self) -> list[WrenchSamples]:
        return [
            samples_left(self.world, answer, ChangedCell(), seed)
            for seed, answer in enumerate(self.answers)
        ]


def _towards_the_printed_tilt() -> Array:
    """The direction from the tilt of the cell to the one that Method 1 printed, a unit vector."""
    way = _PRINTED_TILT - TILT
    return np.asarray(way / np.linalg.norm(way))


def _with_moved_zero(postures: Postures, change: Array) -> Postures:
    """The same postures, the second half of them with another zero."""
    later = np.arange(len(postures)) >= len(postures) // 2
    return replace(postures, wrench=postures.wrench + later[:, None] * change)


def _mixed(postures: Postures, samples: WrenchSamples, share: float) -> Postures:
    """Rows at rest and rows in motion, `_ROWS` of them, the latter with a share."""
    count = round(share * _ROWS)
    moving = moving_postures(samples, every=1)
    chosen = np.linspace(0, len(moving) - 1, count).astype(int)
    kept = np.arange(_ROWS - count) % len(postures)
    parts = (postures, kept), (moving, chosen)
    return replace(
        moving,
        t=np.arange(_ROWS, dtype=float),
        wrench=np.concatenate([part.wrench[rows] for part, rows in parts]),
        variance=np.concatenate([part.variance[rows] for part, rows in parts]),
        R_base_sensor=np.concatenate([part.R_base_sensor[rows] for part, rows in parts]),
        rows=np.ones(_ROWS, dtype=np.int64),
    )


def method_1_row(first: str, case: MethodOne) -> OpenRow:
    """A number of Method 1, over what may be wrong with its data.

    Args:
        first: a key of the printed numbers
        case: data of several seeds
    """
    others = {name: value for name, value in _PRINTED.items() if name != first}
    return OpenRow(
        _WORDS[first],
        _UNITS[first],
        {first: _PRINTED[first], **others},
        _DIGITS[first],
        (
            Assumption(
                "change of the sensor's zero after half of the postures",
                "N",
                (-30.0, -15.0, -5.0, 0.0, 5.0, 15.0, 30.0),
                (-30.0, 30.0),
                "drift of such a sensor within hours",
                case.moved_zero,
            ),
            Assumption(
                "share of the rows that were recorded in motion",
                "",
                (0.0, 0.1, 0.25, 0.5, 1.0),
                (0.0, 1.0),
                "the paper's rest is not described",
                case.moving,
            ),
            Assumption(
                "change of the base's tilt between the postures and the test",
                "°",
                (0.0, 1.0, 2.0, 4.0, 8.0, 12.0),
                (0.0, 2.0),
                "the base is an automatic vehicle; its identified tilt is 3°",
                case.turned,
            ),
        ),
        other_digits={name: _DIGITS[name] for name in others},
    )
