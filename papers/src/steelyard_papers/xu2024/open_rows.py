"""Printed numbers of xu2024 that depend on what it leaves open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from steelyard._arrays import Array
from steelyard_papers.explain import Assumption, Numbers, OpenRow
from steelyard_papers.xu2024.guiding import (
    NARROW,
    WIDE_SIDES,
    XU2024_MEAN_REDUCTION,
    WeighedArm,
    weighed_arms,
)
from steelyard_papers.xu2024.printed import (
    CONDITION_NUMBER,
    CONVERGED_S,
    TABLE_7,
    TABLE_7_DIGIT,
    TABLE_7_UNITS,
    TABLE_8,
    in_paper_words,
)
from steelyard_papers.xu2024.published import (
    REST_SHARES,
    STATIC_POSTURES,
    algorithm_2,
    published_case,
    recursion_with_share,
)
from steelyard_papers.xu2024.simulated import (
    ENCODER_STEPS,
    PairOfRuns,
    algorithm_1_on_raw_rows,
    linear_misfit,
    run_pair,
)
from steelyard_papers.xu2024.weighting import gram_matrices, least_condition

PAGE_SEEDS = 12
"""Seeds of the noise on the page, from `_FIRST_SEED`; a row that is explained has the same."""
_FIRST_SEED = 1000
_DIGIT_S = 0.005  # half of the last digit of the time of convergence, [s]
_FINE_STEP = 1e-6  # of encoders, [rad]
_LENGTH_S = 10.0  # of Table IV
_FRICTION_SEEDS = 3
_SHARE = 0.25  # of the friction that is taken off, where the speed varies
_SPEED = 0.25  # of the hand, where the share varies, [m/s]
_MAX_SHARE_OF_TEACHING = 0.95
_STATIC_KEYS = tuple(key for key, (_, _, static, _) in TABLE_7.items() if static is not None)


def name_of(key: str) -> str:
    """The name of a number of Table VII on pages.

    Args:
        key: of `TABLE_7`
    """
    return {"m": "mass"}.get(key, key)


def algorithm_1_name(key: str) -> str:
    """The row of a number of Table VII by Algorithm 1, as `--explain` takes it.

    Args:
        key: of `TABLE_7`
    """
    if key == "m":
        return "algorithm-1"
    return f"{key}-algorithm-1"


def algorithm_2_name(key: str) -> str:
    """The row of a number of Table VII by Algorithm 2, as `--explain` takes it.

    Args:
        key: of `TABLE_7`
    """
    return f"{name_of(key)}-algorithm-2"


def proposed_name(key: str) -> str:
    """The row of a number of Table VII by the proposed method, as `--explain` takes it.

    Args:
        key: of `TABLE_7`
    """
    return f"{name_of(key)}-proposed"


def algorithm_1_row(
    runs: PairOfRuns | None = None, *, key: str = "m", seeds: int = PAGE_SEEDS
) -> OpenRow:
    """A number of Table VII by Algorithm 1: encoder steps, or noise of the torques.

    Args:
        runs: along Table IV; simulated anew by default
        key: of `TABLE_7`
        seeds: of the noise
    """
    world = runs or run_pair()
    name = name_of(key)

    def numbers(step: float, noise_factor: float) -> Numbers:
        found = [
            algorithm_1_on_raw_rows(world, seed, step, noise_factor)
            for seed in range(_FIRST_SEED, _FIRST_SEED + seeds)
        ]
        return {name: [in_paper_words(vector)[key] for vector in found]}

    return OpenRow(
        f"{name} by Algorithm 1",
        TABLE_7_UNITS[key],
        {name: float(TABLE_7[key][1] or np.nan)},
        TABLE_7_DIGIT,
        (
            Assumption(
                "step of the encoders",
                "rad",
                (*ENCODER_STEPS, 2e-4),
                (1e-5, 2e-4),
                "15 to 19 bits per turn at the joint; unfiltered positions, as the paper says",
                lambda step: numbers(step, 1.0),
            ),
            Assumption(
                "torque noise, encoders exact",
                "times Table VIII",
                (0.0, 1.0, 2.0, 4.0),
                (0.0, 2.0),
                "Table VIII is what the friction laws leave; Table II up to twice that",
                lambda factor: numbers(_FINE_STEP, factor),
            ),
        ),
    )


def algorithm_2_row(*, key: str = "m", seeds: int = PAGE_SEEDS) -> OpenRow:
    """A number of Table VII by Algorithm 2: friction that holds a joint at rest, or postures.

    Args:
        key: of `TABLE_7`
        seeds: of noise and friction
    """
    case = published_case()
    keys = [key, *(other for other in _STATIC_KEYS if other != key)]

    def numbers(held: float, postures: int) -> Numbers:
        found: dict[str, list[float]] = {name_of(each): [] for each in keys}
        for seed in range(_FIRST_SEED, _FIRST_SEED + seeds):
            four = algorithm_2(case, seed, held=held, postures=postures)
            values = in_paper_words(np.append(four, np.full(6, np.nan)))
            for each in keys:
                found[name_of(each)].append(values[each])
        return found

    return OpenRow(
        f"{name_of(key)} by Algorithm 2",
        TABLE_7_UNITS[key],
        {name_of(each): float(TABLE_7[each][2] or np.nan) for each in keys},
        TABLE_7_DIGIT,
        (
            Assumption(
                f"largest friction at rest, {STATIC_POSTURES} postures",
                "times what moves a joint",
                REST_SHARES,
                (0.0, 1.0),
                "a joint at rest is held by anything up to what moves it",
                lambda held: numbers(held, STATIC_POSTURES),
            ),
            Assumption(
                "postures, friction at rest up to what moves a joint",
                "",
                (10.0, 20.0, 100.0, 500.0),
                (10.0, 500.0),
                "the paper prints no number; gaz2017, whose method it is, has 500",
                lambda count: numbers(1.0, round(count)),
            ),
        ),
    )


def convergence_row(*, seeds: int = 8) -> OpenRow:
    """The time after which the recursion stops: white share of Table VIII, or P at the start.

    Args:
        seeds: of the noise
    """

    def times(share: float, P0: float) -> Numbers:
        numbers = range(_FIRST_SEED, _FIRST_SEED + seeds)
        stopped = recursion_with_share(share, numbers, P0=P0).converged_s
        return {"time": np.minimum(stopped, _LENGTH_S).tolist()}

    return OpenRow(
        "time after which the recursion converges",
        "s",
        {"time": CONVERGED_S},
        _DIGIT_S,
        (
            Assumption(
                "share of Table VIII that is white noise",
                "",
                (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0),
                (0.1, 1.0),
                "Table VIII is the misfit of a friction law along the motion; white noise is part"
                " of it",
                lambda share: times(share, 10.0),
            ),
            Assumption(
                "P at the start, all of Table VIII as white noise",
                "",
                (1.0, 3.0, 10.0, 30.0),
                (1.0, 10.0),
                "1 in the text after (11), 10 in Algorithm 1",
                lambda P0: times(1.0, P0),
            ),
        ),
    )


def proposed_row(*, key: str = "m", seeds: int = 8) -> OpenRow:
    """A number of Table VII at which the recursion stops: white share of Table VIII.

    Args:
        key: of `TABLE_7`
        seeds: of the noise
    """
    name = name_of(key)

    def numbers(share: float) -> Numbers:
        found = recursion_with_share(share, range(_FIRST_SEED, _FIRST_SEED + seeds))
        times = np.minimum(found.converged_s, _LENGTH_S)
        values = [in_paper_words(vector)[key] for vector in found.payloads()]
        return {name: values, "time": times.tolist()}

    return OpenRow(
        f"{name} by the proposed method",
        TABLE_7_UNITS[key],
        {name: TABLE_7[key][3], "time": CONVERGED_S},
        TABLE_7_DIGIT,
        (
            Assumption(
                "share of Table VIII that is white noise",
                "",
                (0.1, 0.2, 0.35, 0.5, 1.0),
                (0.1, 1.0),
                "Table VIII is the misfit of a friction law along the motion; white noise is part"
                " of it",
                numbers,
            ),
        ),
        other_digits={"time": _DIGIT_S},
    )


class FrictionNoise:
    """The misfit of the linear law of friction over the noise of the torques.

    Attributes:
        runs: along Table IV
    """

    def __init__(self, runs: PairOfRuns) -> None:
        self.runs = runs
        self._found: dict[float, Numbers] = {}

    def numbers(self, factor: float) -> Numbers:
        """RMSE of friction by joint [Nm], for each seed.

        Args:
            factor: of the noise in Table VIII
        """
        if factor not in self._found:
            noise = factor * TABLE_8["without", "power"]
            fits = [linear_misfit(self.runs, noise, seed) for seed in range(_FRICTION_SEEDS)]
            self._found[factor] = {
                f"joint {j + 1}": [float(rmse[j]) for rmse in fits] for j in range(6)
            }
        return self._found[factor]


def friction_row(joint: int, noise: FrictionNoise | None = None) -> OpenRow:
    """The misfit of the linear law in one joint: noise of the torques.

    Args:
        joint: from 0
        noise: runs to fit; simulated anew by default
    """
    there = noise or FrictionNoise(run_pair())
    return OpenRow(
        f"friction of joint {joint + 1} by the linear law, RMSE",
        "Nm",
        {f"joint {joint + 1}": float(TABLE_8["without", "linear"][joint])},
        5e-5,
        (
            Assumption(
                "white noise of the torque",
                "times Table VIII",
                (0.3, 0.7, 1.0, 1.3),
                (0.3, 1.0),
                "what the power law leaves is noise and misfit: noise is not more than that",
                there.numbers,
            ),
        ),
    )


def condition_row() -> OpenRow:
    """The condition number of Table IV: correlations of the joints' residuals, best weights."""
    grams = gram_matrices(published_case().Y)

    def correlated(name: str, pair: tuple[int, int], values: tuple[float, ...]) -> Assumption:
        return Assumption(
            name,
            "",
            values,
            (0.0, 0.95),
            "any weights of the joints; residuals of neighbouring joints share what the model"
            " misses",
            lambda correlation: {"condition number": [_least(grams, correlation, pair)]},
        )

    return OpenRow(
        "condition number of Table IV",
        "",
        {"condition number": CONDITION_NUMBER},
        0.005,
        (
            correlated("correlation of joints 2 and 3", (1, 2), (0.0, 0.4, 0.7, 0.8, 0.9)),
            correlated("correlation of joints 1 and 2", (0, 1), (0.0, 0.5, 0.9)),
            correlated("correlation of joints 3 and 4", (2, 3), (0.0, 0.5, 0.9)),
        ),
        is_bound=True,
    )


def _least(grams: Array, correlation: float, pair: tuple[int, int]) -> float:
    start = np.zeros(len(grams) - 1)
    return least_condition(grams, correlation, start, pair=pair)[0]


def guiding_row(axis: int, arms: list[WeighedArm] | None = None, *, seeds: int = 3) -> OpenRow:
    """By how much the mean force of the hand falls along an axis.

    Args:
        axis: 0, 1 or 2
        arms: weighed; weighed anew by default
        seeds: of all noise
    """
    weighed = arms or weighed_arms(seeds)
    names = [f"|F{name}|" for name in "xyz"]
    names = [names[axis], *(name for k, name in enumerate(names) if k != axis)]
    places = {name: "xyz".index(name[2]) for name in names}

    def reductions(share: float, speed: float, sides: Array = WIDE_SIDES) -> Numbers:
        found = np.array([arm.reduction(share, speed, sides) for arm in weighed])
        return {name: found[:, place].tolist() for name, place in places.items()}

    return OpenRow(
        f"hand guiding: mean {names[0]} falls by",
        "%",
        {name: 100 * XU2024_MEAN_REDUCTION[place] for name, place in places.items()},
        0.005,
        (
            Assumption(
                f"share of the friction that the drives take off, {_SPEED:g} m/s",
                "",
                (0.0, 0.25, 0.5, 0.95),
                (0.0, _MAX_SHARE_OF_TEACHING),
                "not printed; a teaching mode takes off some of it, never all",
                lambda share: reductions(share, _SPEED),
            ),
            Assumption(
                f"speed of the hand, {100 * _SHARE:g} % of the friction taken off",
                "m/s",
                (0.1, 0.2, 0.3),
                (0.05, 0.3),
                "not printed; a hand that follows a rectangle",
                lambda speed: reductions(_SHARE, speed),
            ),
            Assumption(
                "one side of the rectangle, 0.7 m less this the other; no friction taken off,"
                f" {NARROW.speed:g} m/s",
                "m",
                (0.15, 0.2, 0.25, 0.3),
                (0.1, 0.6),
                "not printed; within the reach of the arm",
                lambda side: reductions(0.0, NARROW.speed, np.array([side, 0.7 - side])),
            ),
        ),
    )


def _friction_of(joint: int) -> Callable[[], OpenRow]:
    return lambda: friction_row(joint)


ROWS: Mapping[str, Callable[[], OpenRow]] = {
    **{algorithm_1_name(key): partial(algorithm_1_row, key=key) for key in TABLE_7},
    **{proposed_name(key): partial(proposed_row, key=key) for key in TABLE_7},
    **{algorithm_2_name(key): partial(algorithm_2_row, key=key) for key in _STATIC_KEYS},
    "convergence": convergence_row,
    "condition-number": condition_row,
    **{f"friction-{j + 1}": _friction_of(j) for j in range(6)},
    "guiding-x": lambda: guiding_row(0),
    "guiding-y": lambda: guiding_row(1),
    "guiding-z": lambda: guiding_row(2),
}
"""Rows that can be explained, by the name that `--explain` takes."""
