"""Printed numbers of gaz2017 that depend on what it leaves open: errors of the torque sensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

import numpy as np

from steelyard_papers.explain import Assumption, Numbers, OpenRow
from steelyard_papers.gaz2017.contacts import predicted
from steelyard_papers.gaz2017.gravity import Sensors, assumptions, draws_of, pair_of, static_answer
from steelyard_papers.gaz2017.inertial import Pair, inertial_answers, inertial_runs
from steelyard_papers.gaz2017.printed import (
    HEAVY_44,
    HEAVY_46,
    HEAVY_47,
    LIGHT_TABLE_1,
    VALIDATION_NM,
)

_SEEDS = 6
_INERTIAL_SEEDS = 3
_VALIDATION_FIRST_SEED = 300
_NOISE_NM = 0.1
_EXPERIMENTS = {
    "500 postures": ("heavy", False),
    "light payload": ("light", False),
    "ten samples": ("heavy", True),
}
_PRINTED = {
    "500 postures, mass": HEAVY_44[0],
    "500 postures, cz": 1e3 * HEAVY_44[1][2],
    "ten samples, mass": HEAVY_47[0],
    "ten samples, cz": 1e3 * HEAVY_47[1][2],
    "light payload, mass": LIGHT_TABLE_1[0],
    "light payload, cz": 1e3 * LIGHT_TABLE_1[1][2],
}
_UNIT_OF_QUANTITY = {"mass": "kg", "cz": "mm"}
DIGITS = {"mass": 5e-4, "cz": 0.05}
"""Half of the last printed digit of a mass [kg] and of a coordinate [mm]."""


def rest_row(first: str) -> OpenRow:
    """A number from postures at rest, over scales and noise of the torque sensors.

    Args:
        first: a key of the printed numbers; those of the same payload stand beside it
    """
    experiment, _, quantity = first.partition(", ")
    load, _ = _EXPERIMENTS[experiment]
    others = [name for name in _PRINTED if _load_of(name) == load and name != first]
    printed = {name: _PRINTED[name] for name in (first, *others)}

    def numbers(noise: float, scale: float) -> Numbers:
        found: dict[str, list[float]] = {}
        for name, (body, few) in _EXPERIMENTS.items():
            if body == load:
                sensors = Sensors("tried", noise, scale)
                draws = draws_of(*pair_of(body, few=few), sensors, seeds=_SEEDS, progress=_nothing)
                found[f"{name}, mass"] = draws[:, 0, 0].tolist()
                found[f"{name}, cz"] = (1e3 * draws[:, 0, 3]).tolist()
        return found

    return OpenRow(
        f"{quantity} from {experiment}",
        _UNIT_OF_QUANTITY[quantity],
        printed,
        DIGITS[quantity],
        (_scales(lambda x: numbers(_NOISE_NM, x)), _noise(lambda x: numbers(x, 0.0))),
    )


def _load_of(name: str) -> str:
    return _EXPERIMENTS[name.partition(", ")[0]][0]


def _scales(numbers: Callable[[float], Numbers]) -> Assumption:
    """Scales of the sensors, from a share to numbers."""
    return Assumption(
        "standard deviation of the sensors' scales",
        "%",
        (0.0, 0.5, 1.0, 2.0),
        (0.0, 2.0),
        "data sheets of joint torque sensors",
        lambda percent: numbers(percent / 100),
    )


def _noise(numbers: Callable[[float], Numbers]) -> Assumption:
    return Assumption(
        "noise of a posture's torque, scales exact",
        "Nm",
        (0.05, 0.1, 0.3, 1.0),
        (0.05, 0.3),
        "means over rests of a tenth of a second",
        numbers,
    )


@cache
def _inertial_runs() -> list[Pair]:
    return inertial_runs(_nothing)


def inertial_row() -> OpenRow:
    """The mass among all ten numbers, over the scales of the torque sensors."""

    def masses(scale: float) -> Numbers:
        sensors = Sensors("tried", _NOISE_NM, scale)
        found = []
        for seed in range(_INERTIAL_SEEDS):
            static = static_answer(*pair_of("heavy"), sensors, seed=seed)
            answer = inertial_answers(static, _inertial_runs(), sensors, seed)
            found.append(float(answer.paper[0]))
        return {"mass": found}

    return OpenRow(
        "mass among all ten numbers",
        "kg",
        {"mass": HEAVY_46.mass},
        5e-4,
        (_scales(masses),),
    )


def torque_row() -> OpenRow:
    """The largest torque error of Fig. 5, over the friction of the arm."""
    sensors = assumptions()[1]
    runs = []
    for seed in range(_VALIDATION_FIRST_SEED, _VALIDATION_FIRST_SEED + _INERTIAL_SEEDS):
        few = static_answer(*pair_of("heavy", few=True), sensors, seed=seed)
        static = static_answer(*pair_of("heavy"), sensors, seed=seed)
        inertial = inertial_answers(static, _inertial_runs(), sensors, seed)
        runs.append((few, inertial, seed))

    def largest(friction: float) -> Numbers:
        found = [
            predicted(few, inertial, sensors, seed=seed, friction=friction)
            for few, inertial, seed in runs
        ]
        return {"largest error": [float(np.abs(x.measured - x.paper).max()) for x in found]}

    return OpenRow(
        "largest torque error of Fig. 5",
        "Nm",
        {"largest error": VALIDATION_NM[1]},
        0.5,
        (
            Assumption(
                "Coulomb friction, which jerks the arm where a joint turns round",
                "times that here",
                (0.0, 0.5, 1.0, 1.5),
                (0.2, 2.0),
                "not printed; of other gears of this size",
                largest,
            ),
        ),
    )


def _nothing(share: float) -> None:
    """No report."""


ROWS: Mapping[str, Callable[[], OpenRow]] = {
    "mass-500": partial(rest_row, "500 postures, mass"),
    "cz-500": partial(rest_row, "500 postures, cz"),
    "mass-light": partial(rest_row, "light payload, mass"),
    "cz-light": partial(rest_row, "light payload, cz"),
    "mass-ten": partial(rest_row, "ten samples, mass"),
    "cz-ten": partial(rest_row, "ten samples, cz"),
    "mass-inertial": inertial_row,
    "torque-error": torque_row,
}
"""Rows that can be explained, by the name that `--explain` takes."""
