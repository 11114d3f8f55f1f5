"""Printed numbers of liu2025 that depend on what it leaves open: tilt, zero, faults of the cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial

import numpy as np

from steelyard.robot import load_robot
from steelyard_papers.explain import Assumption, Numbers, OpenRow
from steelyard_papers.liu2025.answers import (
    DIRECTION_DEGREES,
    METHODS,
    TURNED_DEGREES,
    TURNED_SLOW_DEGREES,
    Answers,
    ChangedCell,
    answers_of,
    contacts_of,
    forces_left,
    tilt_change,
)
from steelyard_papers.liu2025.cell import REAL
from steelyard_papers.liu2025.method_1_rows import MethodOne, method_1_row
from steelyard_papers.liu2025.motions import planned_motions
from steelyard_papers.liu2025.printed import (
    FORCE_DIGIT_N,
    PEAKS,
    TABLE_2,
    TABLE_2_DIGIT,
    TABLE_3,
)
from steelyard_papers.liu2025.sections import peaks, value_of
from steelyard_papers.liu2025.world import World, run_world

_HIGH = TABLE_3["high"]
_PLACES = {"at t = 0": 0, "mean": 1, "deviation": 2}
_LABELS = {"proposed": "proposed", "method_2": "Method 2"}
_AXIS = np.array([1.0, -1.0, 0.5, 0.0, 0.0, 0.0]) / 1.5  # of a zero that moved, a unit vector
_JOINTS = np.array([0.0, 0.0, 0.0, 1.0, -1.0, 1.0])
_WORDS = "force without contact at high speed"
_CELL_SEEDS = 4
_TABLE_2_ROWS = {
    "m": ("proposed", "m"),
    "mz": ("proposed", "mz"),
    "Ixx": ("proposed", "Ixx"),
    "Izz": ("proposed", "Izz"),
    "m-method-2": ("method_2", "m"),
}
"""Numbers of Table II by name: method, and key of the table."""
_LOW_ROWS = {"force-low-proposed": "proposed", "force-low-method-2": "method_2"}
"""Mean forces at low speed by name: method."""
_PEAK_ROWS = {"peak-force": ("force", "N"), "peak-torque": ("torque", "Nm")}
"""Largest force and torque after the second compensation by name, in the order of `PEAKS`."""
_METHOD_1_ROWS = {"m-method-1": "m", "mz-method-1": "mz", "force-method-1": "mean force"}
"""Numbers of Method 1 by name: key of `method_1_rows`."""


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
        world = _made_world()
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
        FORCE_DIGIT_N,
        (
            _tilt(lambda degrees: there.numbers(ChangedCell(turned=tilt_change(degrees)))),
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
        FORCE_DIGIT_N,
        (
            Assumption(
                f"direction of a change of the base's tilt by {TURNED_DEGREES}°",
                "° from the identified tilt",
                (0.0, 45.0, 90.0, DIRECTION_DEGREES, 135.0, 180.0),
                (0.0, 180.0),
                "any",
                lambda degrees: there.numbers(
                    ChangedCell(turned=tilt_change(TURNED_DEGREES, degrees))
                ),
            ),
        ),
    )


class FaultyCells:
    """Payloads and forces in cells with faults, by the size of the faults.

    Attributes:
        world: what really happened
        seeds: of noise, drift and cell
    """

    def __init__(self, world: World, seeds: int = _CELL_SEEDS) -> None:
        self.world = world
        self.seeds = seeds

    def numbers(self, size: float) -> Numbers:
        """The numbers of Table II, and the mean forces at low speed, by name.

        Args:
            size: of the faults, 1 for those of the page
        """
        faults = REAL.scaled(size, "tried")
        found: dict[str, list[float]] = {}
        for seed in range(self.seeds):
            answer = answers_of(self.world, seed, faults)
            contacts = contacts_of(self.world, answer, "slow", 100 + seed)
            for row, (method, key) in _TABLE_2_ROWS.items():
                value = value_of(answer, method, key)
                if value is not None:
                    found.setdefault(row, []).append(value)
            for row, method in _LOW_ROWS.items():
                found.setdefault(row, []).append(float(contacts.forces[method].force.mean()))
            for row, value in zip(_PEAK_ROWS, peaks([contacts], "again"), strict=True):
                found.setdefault(row, []).append(value)
        return found

    def turned_at_low_speed(self, degrees: float) -> Numbers:
        """The mean forces at low speed by name, in a cell without faults whose base has turned.

        Args:
            degrees: change of the base's tilt
        """
        changed = ChangedCell(turned=tilt_change(degrees))
        found: dict[str, list[float]] = {}
        for seed, answer in enumerate(self._without_faults):
            left = forces_left(self.world, answer, changed, seed, speed="slow")
            for row, method in _LOW_ROWS.items():
                found.setdefault(row, []).append(float(left.forces[method].force.mean()))
        return found

    @cached_property
    def _without_faults(self) -> list[Answers]:
        return [answers_of(self.world, seed) for seed in range(self.seeds)]


def cell_row(name: str, cells: FaultyCells | None = None) -> OpenRow:
    """A number of Table II, or one of low speed, over the size of the cell's faults.

    Args:
        name: of the row
        cells: made anew by default
    """
    there = cells or FaultyCells(_made_world())
    assumptions = [
        Assumption(
            "size of the cell's faults",
            "times those of the page",
            (0.0, 0.5, 1.0, 2.0),
            (0.0, 2.0),
            "scales of 1 %, cross-talk of 0.5 %, hysteresis of 0.1 %, joints to 0.02°, a base"
            " that leans by 0.1° for 100 Nm: data sheets, and assumed",
            there.numbers,
        )
    ]
    if name in _TABLE_2_ROWS:
        method, key = _TABLE_2_ROWS[name]
        column = {"method_2": 2, "proposed": 3}[method]
        printed = {name: float(TABLE_2[key][column] or np.nan)}
        digit = TABLE_2_DIGIT
        words = f"{key} by {METHODS[method]}"
        unit = {"m": "kg", "mz": "kg m"}.get(key, "kg m²")
    elif name in _PEAK_ROWS:
        every = dict(zip(_PEAK_ROWS, PEAKS, strict=True))
        printed = {name: every[name], **every}
        digit = FORCE_DIGIT_N
        what, unit = _PEAK_ROWS[name]
        words = f"largest {what} of an axis after the second compensation, low speed"
    else:
        method = _LOW_ROWS[name]
        every = {row: TABLE_3["low"][method][1] for row, method in _LOW_ROWS.items()}
        printed = {name: every[name], **every}
        digit = FORCE_DIGIT_N
        words = f"force without contact at low speed by {METHODS[method]}"
        unit = "N"
        assumptions.append(_tilt(there.turned_at_low_speed))
    return OpenRow(
        words,
        unit,
        printed,
        digit,
        assumptions,
    )


def _tilt(numbers: Callable[[float], Numbers]) -> Assumption:
    """The change of the base's tilt, from degrees to numbers."""
    return Assumption(
        "change of the base's tilt",
        "°",
        (0.0, 0.5, 1.0, TURNED_DEGREES, TURNED_SLOW_DEGREES, 1.5, 2.0),
        (0.0, 2.0),
        "the base is an automatic vehicle; its identified tilt is 3°",
        numbers,
    )


def _method_1_row(key: str) -> OpenRow:
    """A number of Method 1 on the runs of the page."""
    case = Case.made()
    return method_1_row(key, MethodOne(case.world, case.answers))


@cache
def _made_world() -> World:
    robot = load_robot("kr60ha")
    motions = planned_motions(robot, starts=1, effort=0.4)
    return run_world(robot, motions, progress=lambda share: None)


ROWS: Mapping[str, Callable[[], OpenRow]] = {
    "force-proposed": proposed_row,
    "force-method-2": method_2_row,
    **{name: partial(cell_row, name) for name in (*_TABLE_2_ROWS, *_LOW_ROWS, *_PEAK_ROWS)},
    **{name: partial(_method_1_row, key) for name, key in _METHOD_1_ROWS.items()},
}
"""Rows that can be explained, by the name that `--explain` takes."""
