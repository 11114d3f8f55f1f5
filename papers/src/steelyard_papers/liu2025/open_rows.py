"""Printed numbers of liu2025 that depend on what it leaves open: the forces of Table III."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from steelyard.robot import load_robot
from steelyard_papers.explain import Assumption, Numbers, OpenRow
from steelyard_papers.liu2025.answers import (
    TURNED_DEGREES,
    Answers,
    ChangedCell,
    answers_of,
    forces_left,
    tilt_change,
)
from steelyard_papers.liu2025.motions import planned_motions
from steelyard_papers.liu2025.printed import TABLE_3
from steelyard_papers.liu2025.world import World, run_world

_HIGH = TABLE_3["high"]
_PLACES = {"at t = 0": 0, "mean": 1, "deviation": 2}
_LABELS = {"proposed": "proposed", "method_2": "Method 2"}
_AXIS = np.array([1.0, -1.0, 0.5, 0.0, 0.0, 0.0]) / 1.5  # of a zero that moved, a unit vector
_JOINTS = np.array([0.0, 0.0, 0.0, 1.0, -1.0, 1.0])
_WORDS = "force without contact at high speed"


class Case:
    """World and payloads of several seeds.

    Attributes:
        world: what really happened
        answers: of each seed
    """

    def __init__(self, world: World, answers: Sequence[Answers]) -> None:
        self.world = world
        self.answers = answers

    @classmethod
    def made(cls, seeds: int = 4) -> Case:
        """The case of the page.

        Args:
            seeds: how many
        """
        robot = load_robot("kr60ha")
        motions = planned_motions(robot, starts=1, effort=0.4)
        world = run_world(robot, motions, progress=lambda share: None)
        return cls(world, [answers_of(world, seed) for seed in range(seeds)])

    def numbers(self, changed: ChangedCell) -> Numbers:
        """Force at the start, its mean and its deviation, by both methods, [N].

        Args:
            changed: since the identification
        """
        found: dict[str, list[float]] = {}
        for seed, answer in enumerate(self.answers):
            left = forces_left(self.world, answer, changed, seed)
            for key, label in _LABELS.items():
                force = left.forces[key].force
                values = (force[0], force.mean(), force.std())
                for name, value in zip(_PLACES, values, strict=True):
                    found.setdefault(f"{label}, {name}", []).append(float(value))
        return found


def _printed(first: str) -> dict[str, float]:
    """All six numbers at high speed, one of them first."""
    every = {
        f"{label}, {name}": _HIGH[key][place]
        for key, label in _LABELS.items()
        for name, place in _PLACES.items()
    }
    return {first: every[first], **every}


def proposed_row(case: Case | None = None) -> OpenRow:
    """The force that the proposed method leaves: what changed since the identification?

    Args:
        case: world and payloads; made anew by default
    """
    there = case or Case.made()
    printed = _printed("proposed, mean")
    return OpenRow(
        f"{_WORDS}, proposed method",
        "N",
        printed,
        0.005,
        (
            Assumption(
                "change of the base's tilt",
                "°",
                (0.0, 0.5, 1.0, 1.5, 2.0),
                (0.0, 2.0),
                "the base is an automatic vehicle; its identified tilt is 3°",
                lambda degrees: there.numbers(ChangedCell(turned=tilt_change(degrees))),
            ),
            Assumption(
                "change of the sensor's zero",
                "N",
                (0.0, 5.0, 10.0),
                (0.0, 30.0),
                "drift of such a sensor within hours",
                lambda size: there.numbers(ChangedCell(zero=size * _AXIS)),
            ),
            Assumption(
                "error of joints 4 to 6",
                "°",
                (0.0, 0.25, 0.5, 1.0),
                (0.0, 0.1),
                "the arm was calibrated",
                lambda degrees: there.numbers(
                    ChangedCell(joint_error=np.radians(degrees) * _JOINTS)
                ),
            ),
            Assumption(
                "change of the sensor's scale",
                "%",
                (0.0, 1.0, 2.0, 3.0),
                (0.0, 1.0),
                "data sheet of such a sensor",
                lambda percent: there.numbers(ChangedCell(scale=percent / 100)),
            ),
        ),
    )


def method_2_row(case: Case | None = None) -> OpenRow:
    """The force that Method 2 leaves: in which direction did the tilt change?

    Args:
        case: world and payloads; made anew by default
    """
    there = case or Case.made()
    printed = _printed("Method 2, mean")
    return OpenRow(
        f"{_WORDS}, Method 2",
        "N",
        printed,
        0.005,
        (
            Assumption(
                f"direction of a change of the base's tilt by {TURNED_DEGREES}°",
                "° from the identified tilt",
                (0.0, 45.0, 90.0, 135.0, 180.0),
                (0.0, 180.0),
                "any",
                lambda degrees: there.numbers(
                    ChangedCell(turned=tilt_change(TURNED_DEGREES, degrees))
                ),
            ),
        ),
    )


ROWS: Mapping[str, Callable[[], OpenRow]] = {
    "force-proposed": proposed_row,
    "force-method-2": method_2_row,
}
"""Rows that can be explained, by the name that `--explain` takes."""
