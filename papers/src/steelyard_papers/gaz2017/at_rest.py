"""Payload from postures that are reached from one side or both, or by the controller's torque.

Sensors behind the gears feel the load and what is left of the arm's swinging. A motor's torque
feels friction too, which holds part of the load in each posture, often the other way round from the
other side.

Eq. (26): where the controller states the torque that it would need without a payload, no empty run
is needed; the change of the coefficients follows from measured less stated torque. Its model may be
right, or be off by 2 % in the mass of every link.
"""

from __future__ import annotations

import numpy as np

from steelyard._arrays import Array
from steelyard.inertia import InertialParameters
from steelyard_papers.gaz2017.approach import Held, Reached
from steelyard_papers.gaz2017.gravity import (
    CHANGING,
    HEAVY_BODY,
    Sensors,
    arm,
    gravity_coefficients,
    gravity_matrix,
    pair_of,
    placed,
)

_MASS_ERROR_STD = 0.02  # of a link's mass


def reached_masses(
    empty: Reached, loaded: Reached, sensors: Sensors, seeds: range
) -> dict[str, Array]:
    """Mass [kg] and centre of mass [m] by the paper's method, by sampling, (seeds, 4).

    Args:
        empty: postures of the empty arm
        loaded: of the arm with the medium payload
        sensors: that measure
        seeds: of their errors
    """
    kinds = {
        "put into the postures": (placed(None, empty.both.q), placed(HEAVY_BODY, loaded.both.q)),
        "reached from one side": (
            Held(empty.q[0], empty.link[0]),
            Held(loaded.q[0], loaded.link[0]),
        ),
        "reached from both sides, mean": (empty.both, loaded.both),
        "motor torque, from one side": (
            Held(empty.q[0], empty.motor[0]),
            Held(loaded.q[0], loaded.motor[0]),
        ),
        "motor torque, mean of both sides": (_motors(empty), _motors(loaded)),
    }
    answers: dict[str, list[Array]] = {name: [] for name in kinds}
    for seed in seeds:
        for name, runs in kinds.items():
            pi, pi_loaded = (
                gravity_coefficients(held.q, sensors.measured(held.tau, seed, run))
                for run, held in enumerate(runs)
            )
            answers[name].append(payload_of((pi_loaded - pi)[CHANGING]))
    return {name: np.array(values) for name, values in answers.items()}


def _motors(found: Reached) -> Held:
    return Held(found.q.mean(axis=0), found.motor.mean(axis=0))


def stated_masses(sensors: Sensors, seeds: range) -> dict[str, Array]:
    """Mass [kg] and centre of mass [m] by eq. (26), by the controller's model, (seeds, 4).

    Args:
        sensors: that measure
        seeds: of their errors, and of the model's
    """
    loaded = pair_of("heavy")[1]
    q, true = loaded.q, arm().gravity_torque(loaded.q)
    answers: dict[str, list[Array]] = {"its model is right": [], "its links are 2 % off": []}
    for seed in seeds:
        measured = sensors.measured(loaded.tau, seed, 1)
        off = 1 + _MASS_ERROR_STD * np.random.default_rng([seed, 26]).normal(size=7)
        links = [
            InertialParameters.from_vector(x * link.vector, link.frame)
            for link, x in zip(arm().links, off, strict=True)
        ]
        wrong = arm().with_links(links).gravity_torque(q)
        for name, stated in zip(answers, (true, wrong), strict=True):
            answers[name].append(payload_of(gravity_coefficients(q, measured - stated)[CHANGING]))
    return {name: np.array(values) for name, values in answers.items()}


def payload_of(change: Array) -> Array:
    """Mass and centre of mass of a change of the five coefficients, (4,) [kg, m].

    Args:
        change: of rows 1, 2, 4, 7 and 12, (5,) [kg m]
    """
    m, *h = np.linalg.lstsq(gravity_matrix()[CHANGING, 60:64], change, rcond=None)[0]
    return np.array([m, *(np.array(h) / m)])
