"""gaz2017: the payload from the difference of dynamic coefficients, recomputed in MuJoCo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard._arrays import Array
from steelyard.report import Page
from steelyard_papers.gaz2017.at_rest import reached_masses, stated_masses
from steelyard_papers.gaz2017.contacts import Contacts, Prediction, predicted, three_contacts
from steelyard_papers.gaz2017.gravity import (
    CHANGING,
    HEAVY_BODY,
    LIGHT_BODY,
    Sensors,
    assumptions,
    draws_of,
    gravity_matrix,
    pair_of,
    reached,
    rms_of,
    static_answer,
)
from steelyard_papers.gaz2017.inertial import Inertial, inertial_answers, inertial_runs
from steelyard_papers.gaz2017.moving_sections import (
    contact_section,
    few_section,
    inertia_rms,
    inertial_section,
    what_is_missing,
)
from steelyard_papers.gaz2017.open_rows import DIGITS
from steelyard_papers.gaz2017.planar import DRAWS, NOISE_NM, Planar, planar_example
from steelyard_papers.gaz2017.printed import (
    DIFFERENCE_43,
    GRAVITY_42,
    GRAVITY_LOADED_42,
    HEAVY_44,
    HEAVY_46,
    HEAVY_47,
    LIGHT_TABLE_1,
    VALIDATION_NM,
)
from steelyard_papers.gaz2017.static_sections import (
    gravity_section,
    light_section,
    planar_section,
    rest_section,
    sensor_section,
)
from steelyard_papers.headline import Claim, Count, opening
from steelyard_papers.sharing import Progress, part_of, versions

__all__ = ["page"]


_FIRST_SEED = 300
_MISSING = (
    "the inertia of (46), which no body has; the coefficients (42) themselves, which are those of"
    " a real"
    " arm; cx and cy, zero but for millimetres, the centre among the ten numbers and the payload's"
    " other numbers of the planar arm, which have tables below; the mean squares of Fig. 2, which"
    " contradict the figure; KUKA's own detector."
)
_SENSOR_WORDS = ("noise only", "scales wrong by 1 %")
"""Assumptions about the torque sensors, in the order of `assumptions`."""

_COARSE = Sensors("scales wrong by 2 %", 0.1, 0.02)
_LESS_FRICTION = 0.4  # times that of the arm here: the bound comes out at 0.34 to 0.49
_FRICTION_WORDS = {
    "friction of the arm here": 1.0,
    f"{_LESS_FRICTION:g} times the friction here": _LESS_FRICTION,
}
_HALF_LAST_DIGIT_NM = 0.5  # of the bound of Fig. 5

_PRINTED = {
    "500 postures": (HEAVY_44, HEAVY_BODY),
    "light payload": (LIGHT_TABLE_1, LIGHT_BODY),
    "ten samples": (HEAVY_47, HEAVY_BODY),
}
"""By experiment at rest: printed mass [kg] and centre of mass [m], and the true body."""
_ROWS = {"500 postures": "500", "light payload": "light", "ten samples": "ten"}
"""By experiment: how the rows of `--explain` call it."""

_EXPERIMENTS = {
    "500 postures": ("heavy", False),
    "light payload": ("light", False),
    "ten samples": ("heavy", True),
}


def page(progress: Progress | None = None, *, draws: int = 5) -> Page:
    """The page of gaz2017.

    Args:
        progress: called with the share that is done
        draws: of the sensors' errors; one less for the motions, which take longer
    """
    report = part_of(progress, 0.0, 1.0)
    planar = planar_example(progress=part_of(progress, 0.0, 0.1))
    sensors = assumptions()[1]
    heavy, light = (static_answer(*pair_of(load), sensors) for load in ("heavy", "light"))
    few = static_answer(*pair_of("heavy", few=True), sensors)
    report(0.2)
    found = _draws(draws, part_of(progress, 0.2, 0.4))
    coarse = draws_of(*pair_of("heavy", few=True), _COARSE, seeds=draws, progress=lambda x: None)
    inertial = _inertial(draws - 1, part_of(progress, 0.4, 0.8))
    prediction = predicted(few, inertial[sensors.name][0], sensors)
    validation = {
        words: _validations(inertial[sensors.name], sensors, friction)
        for words, friction in _FRICTION_WORDS.items()
    }
    report(0.83)
    touched = three_contacts(sensors, reached("none").both)
    report(0.92)
    seeds = range(200, 200 + draws)
    came = {"500 postures": reached("heavy"), "ten samples": reached("heavy", few=True)}
    rested = {name: reached_masses(reached("none"), x, sensors, seeds) for name, x in came.items()}
    report(1.0)
    findings = _findings(planar, found, inertial, touched)
    counts = _counts(inertial, touched)
    claims = [*_claims(planar, found, inertial, coarse), _validation_claim(validation)]
    answer, first = opening("gaz2017", claims, _MISSING, counts=counts, findings=findings)
    constant = np.setdiff1d(np.arange(12), CHANGING)
    changed = float(np.sqrt(np.mean((GRAVITY_LOADED_42 - GRAVITY_42)[constant] ** 2)))
    return Page(
        "gaz2017, recomputed: payload from identified coefficients of robot dynamics",
        answer,
        [
            *first,
            planar_section(planar),
            gravity_section(heavy, _from_printed(), sensors.name),
            sensor_section(found, changed, draws),
            light_section(light, sensors.name),
            rest_section(came, rested, stated_masses(sensors, seeds), sensors.name),
            inertial_section(inertial),
            few_section(few, prediction),
            contact_section(touched),
            what_is_missing(),
        ],
        _settings(draws, sensors.name),
    )


def _claims(
    planar: Planar,
    found: dict[str, dict[str, Array]],
    inertial: dict[str, list[Inertial]],
    coarse: Array,
) -> list[Claim]:
    """One claim for each printed number; the scales of the torque sensors are an assumption.

    Ten samples show wrong scales most, so that `coarse` ones are tried for them as well.
    """
    claims = [
        Claim(
            "planar arm: mass",
            "kg",
            1.5,
            planar.masses[:, 0].tolist(),
            planar.masses[:, 1].tolist(),
            ideal=1.5,
            rests_on="the noise of the torques",
        )
    ]
    worlds = dict(zip(_SENSOR_WORDS, list(found.values())[:2], strict=True))
    for name in _PRINTED:
        draws = {words: x[name] for words, x in worlds.items()}
        if name == "ten samples":
            draws[_COARSE.name] = coarse
        claims += _claims_at_rest(name, draws)
    return [*claims, _inertial_claim(inertial)]


def _claims_at_rest(name: str, draws: Mapping[str, Array]) -> list[Claim]:
    """Mass and height of the centre of one experiment, by what the sensors are assumed to be."""
    (mass, com), truth = _PRINTED[name]
    row = _ROWS[name]
    claims = []
    for words, unit, printed, ideal, factor, column in (
        ("mass", "kg", mass, truth.mass, 1.0, 0),
        ("cz", "mm", 1e3 * com[2], 1e3 * float(truth.com[2]), 1e3, 3),
    ):
        here, ours = (
            {world: (factor * x[:, k, column]).tolist() for world, x in draws.items()}
            for k in range(2)
        )
        claims.append(
            Claim(
                f"{name}: {words}",
                unit,
                printed,
                here,
                ours,
                digit=DIGITS[words],
                ideal=ideal,
                row=f"{words}-{row}",
            )
        )
    return claims


def _inertial_claim(inertial: dict[str, list[Inertial]]) -> Claim:
    """The mass among all ten numbers, from inertial motions."""
    here = {
        words: [float(x.paper[0]) for x in runs]
        for words, runs in zip(_SENSOR_WORDS, inertial.values(), strict=True)
    }
    ours = {
        words: [float(x.together.unconstrained.mass) for x in runs]
        for words, runs in zip(_SENSOR_WORDS, inertial.values(), strict=True)
    }
    return Claim(
        "ten numbers: mass",
        "kg",
        HEAVY_46.mass,
        here,
        ours,
        digit=DIGITS["mass"],
        ideal=HEAVY_BODY.mass,
        row="mass-inertial",
    )


def _validations(
    inertial: Sequence[Inertial], sensors: Sensors, friction: float
) -> list[Prediction]:
    """Fig. 5 with other errors of the sensors in each run, and the payload that they lead to."""
    found = []
    for k, each in enumerate(inertial):
        seed = _FIRST_SEED + k
        few = static_answer(*pair_of("heavy", few=True), sensors, seed=seed)
        found.append(predicted(few, each, sensors, seed=seed, friction=friction))
    return found


def _validation_claim(found: Mapping[str, Sequence[Prediction]]) -> Claim:
    """The bound of the torque errors in Fig. 5, the largest joint; friction is an assumption."""
    here, ours = (
        {
            words: [float(np.abs(x.measured - getattr(x, method)).max()) for x in runs]
            for words, runs in found.items()
        }
        for method in ("paper", "ours")
    )
    return Claim(
        "largest torque error of Fig. 5",
        "Nm",
        VALIDATION_NM[1],
        here,
        ours,
        digit=_HALF_LAST_DIGIT_NM,
        row="torque-error",
    )


def _counts(inertial: dict[str, list[Inertial]], touched: Contacts) -> list[Count]:
    """The numbers of the structure, and of contacts."""
    delays = touched.six.delays_s(touched.paper)
    return [
        Count("gravity coefficients", 12, len(gravity_matrix())),
        Count("coefficients that an inertial motion shows, most", 19, _most(inertial)),
        Count("contacts found by (48) of 3", 3, int(np.isfinite(delays).sum())),
        Count("contacts that the arm stopped for, of 3", 3, len(touched.reactions)),
    ]


def _most(inertial: dict[str, list[Inertial]]) -> int:
    counts = next(iter(inertial.values()))[0].counts
    return max(counts[name] for name in "ABC")


def _draws(draws: int, progress: Progress) -> dict[str, dict[str, Array]]:
    found: dict[str, dict[str, Array]] = {}
    kinds = assumptions()
    for i, sensors in enumerate(kinds):
        found[sensors.name] = {}
        for k, (name, (load, few)) in enumerate(_EXPERIMENTS.items()):
            done = (3 * i + k) / (3 * len(kinds))
            part = part_of(progress, done, done + 1 / (3 * len(kinds)))
            found[sensors.name][name] = draws_of(
                *pair_of(load, few=few), sensors, seeds=draws if i < 2 else 2, progress=part
            )
    return found


def _inertial(draws: int, progress: Progress) -> dict[str, list[Inertial]]:
    """By sensors: noise alone, and wrong scales as well."""
    runs = inertial_runs(part_of(progress, 0.0, 0.4))
    found: dict[str, list[Inertial]] = {}
    for i, sensors in enumerate(assumptions()[:2]):
        found[sensors.name] = []
        for k, seed in enumerate(range(_FIRST_SEED, _FIRST_SEED + draws)):
            static = static_answer(*pair_of("heavy"), sensors, seed=seed)
            found[sensors.name].append(inertial_answers(static, runs, sensors, seed))
            progress(0.4 + 0.3 * (i + (k + 1) / draws))
    return found


def _from_printed() -> Array:
    """m, mx, my, mz from the printed differences (43), (4,)."""
    J = gravity_matrix()[CHANGING, 60:64]
    return np.asarray(np.linalg.lstsq(J, DIFFERENCE_43, rcond=None)[0])


def _findings(
    planar: Planar,
    found: dict[str, dict[str, Array]],
    inertial: dict[str, list[Inertial]],
    touched: Contacts,
) -> list[str]:
    quiet, scaled = (inertia_rms(found) for found in inertial.values())
    noise_only, with_scales = list(found.values())[:2]
    com = 1e3 * rms_of(with_scales["ten samples"], HEAVY_BODY)[:, 1]
    rest = [
        1e3 * rms_of(draws["500 postures"], HEAVY_BODY)[:, 0] for draws in (noise_only, with_scales)
    ]
    free = [touched.six.largest_free(x) for x in touched.by_observer.values()]
    return [
        "The equations hold: (29), (32), (38) and at most 19 coefficients for each inertial motion"
        " follow"
        " from the arms' tables in symbols, and the printed differences give the printed payloads"
        " (35) and"
        f" (44). The planar payload comes out as {planar.payload[0]:.3f} kg of 1.5 kg.",
        "All ten numbers from the paper's motions: with sensors that only have noise the mass errs"
        " by"
        f" {1e3 * quiet[0, 0]:.1f} g RMS by the paper's method and {1e3 * quiet[1, 0]:.1f} g by"
        " ours, the"
        f" worst inertia (of 46 g m²) by {1e3 * quiet[0, 4:].max():.1f} and"
        f" {1e3 * quiet[1, 4:].max():.1f} g"
        f" m². Where scales are wrong by 1 %, {1e3 * scaled[0, 0]:.0f} and"
        f" {1e3 * scaled[1, 0]:.0f} g,"
        f" {1e3 * scaled[0, 4:].max():.0f} and {1e3 * scaled[1, 4:].max():.0f} g m². On one motion"
        " of all"
        f" joints ours errs by {1e3 * quiet[2, 4:].max():.1f} and {1e3 * scaled[2, 4:].max():.1f}"
        " g m².",
        f"Mass from 500 postures at rest, sensors with noise only: {rest[0][0]:.1f} g RMS by the"
        " paper's"
        f" method, {rest[0][1]:.1f} g by ours, which allows for friction and scales that are not"
        " there; with"
        f" scales wrong by 1 %: {rest[1][0]:.0f} and {rest[1][1]:.0f} g.",
        f"From ten samples the centre of mass errs by {com[0]:.0f} mm RMS by the paper's method"
        " (its own"
        f" run: 15 mm) and {com[1]:.0f} mm by ours.",
        f"Contacts: the largest free residual is {free[0]:.0f} Nm with the payload ignored,"
        f" {free[1]:.1f} Nm"
        f" with (48) and {free[2]:.1f} Nm with ours, at the paper's threshold of 6 Nm. In closed"
        " loop the"
        f" arm stopped {len(touched.reactions)} times for 2 s and resumed, its acceleration"
        " continuous.",
    ]


def _settings(draws: int, sensors: str) -> dict[str, str]:
    return {
        "arms": "bundled planar2r (section IV) and lwr4 (Fig. 3, nominal links)",
        "medium payload": "3.028 kg, centre (0, 0, 119) mm; cylinder, 50 mm radius, 80 mm high,"
        " assumed",
        "light payload": "0.144 kg, centre (0, 0, 114.6) mm; cylinder, 20 mm radius, 60 mm high,"
        " assumed",
        "planar runs": "20 s at 100 Hz, sines of 1.5 and 2 rad, 0.3 and 0.5 Hz; torque noise"
        f" {NOISE_NM} Nm,"
        f" {DRAWS} draws",
        "sensors of the LWR": sensors,
        "random postures": "500, each joint within ±2 rad, seed 0; each reached from both sides:"
        " the last"
        " 0.05 rad of every joint in 0.3 s, rest of 0.3 s, mean of its last 0.1 s; steps of 2.5 ms",
        "pick posture": "(0, 0.6, 0, 1.2, 0, 0.8, 0) rad, assumed",
        "draws of the sensors' errors": f"{draws}, seeds from 100, 200, 300; settings: other seeds",
        "inertial motions": "15 s each at 200 Hz, sweep assumed; paper: 1 Hz Butterworth filter;"
        " ours: 20 Hz",
        "motions of all joints": "random series, 5 harmonics, 15 s, seeds 3 and 4; validation seed"
        " 11",
        **versions(),
    }
