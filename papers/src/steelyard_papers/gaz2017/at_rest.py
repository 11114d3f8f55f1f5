"""Ten samples that are reached by motion, and the controller's own torque: what a rest really gives.

Elsewhere on the page the arm is put into a posture. Here it moves there in MuJoCo, from below and from above
(all joints a twentieth of a radian before and behind), and rests for 0.3 s; torques are the mean of the last
tenth of a second. Sensors behind the gears feel the load and what is left of the arm's swinging; a motor's
torque feels friction too, which holds part of the load in each posture, the other way round from the other
side.

Eq. (26): where the controller states the torque that it would need without a payload, no empty run is needed;
the change of the coefficients follows from measured less stated torque. Its model may be right, or be off by
2 % in the mass of every link.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.arrays import Array
from steelyard.excitation import PostureSet
from steelyard.inertia import InertialParameters
from steelyard.simulation import SensorModel, SimulationOptions, simulate
from steelyard_papers.gaz2017.gravity import (
    CHANGING,
    FEW,
    HEAVY_BODY,
    PICK,
    Sensors,
    arm,
    gravity_coefficients,
    gravity_matrix,
    hold,
    random_rest,
)
from steelyard_papers.visit import Visit

_BESIDE = 0.05  # [rad]
_LAST_S = 0.1
_WRONG = 0.02  # of a link's mass


@dataclass(frozen=True, eq=False)
class Reached:
    """Torques of the loaded arm in ten postures that it moved to.

    Attributes:
        q: where it came to rest, from below and from above, (2, FEW, 7) [rad]
        link: torque behind the gears, (2, FEW, 7) [Nm]
        motor: torque of the drives, (2, FEW, 7) [Nm]
        speed: largest speed of a joint that is left, [rad/s]
        swing: largest change of a link torque while it counts, [Nm]
    """

    q: Array
    link: Array
    motor: Array
    speed: float
    swing: float


def reached() -> Reached:
    """The ten samples around the pick posture, reached from both sides in MuJoCo."""
    postures = PostureSet.around(arm(), PICK, count=FEW).q
    stops = np.concatenate([[q - _BESIDE, q, q + _BESIDE, q] for q in postures])
    visit = Visit(stops, rest_s=0.3, move_s=0.3)
    sensors = SensorModel(torque_std=0.0, torque_side="link", wrist_sensor=False)
    options = SimulationOptions(step_s=0.0025)
    truth = simulate(arm(), visit, payload=HEAVY_BODY, sensors=sensors, rate_hz=200.0, options=options).truth
    rests = visit.ends_of_rest(truth.t, _LAST_S)
    sides = [rests[1::4], rests[3::4]]
    q, link, motor = (
        np.array([[signal[rows].mean(axis=0) for rows in side] for side in sides])
        for signal in (truth.q, truth.tau_link, truth.tau)
    )
    counted = [rows for side in sides for rows in side]
    speed = max(float(np.abs(truth.v[rows]).max()) for rows in counted)
    swing = max(float(np.ptp(truth.tau_link[rows], axis=0).max()) for rows in counted)
    return Reached(q, link, motor, speed, swing)


def reached_masses(found: Reached, sensors: Sensors, seeds: range) -> dict[str, Array]:
    """Mass [kg] and centre of mass [m] by the paper's method, by kind of sample, (seeds, 4).

    Args:
        found: the ten samples
        sensors: that measure
        seeds: of their errors
    """
    q_empty = random_rest(500)
    kinds = {
        "put into the posture": (found.q[0], hold(found.q[0], HEAVY_BODY)),
        "reached from below": (found.q[0], found.link[0]),
        "reached from both sides": (found.q.mean(axis=0), found.link.mean(axis=0)),
        "motor torque, from below": (found.q[0], found.motor[0]),
        "motor torque, mean of both sides": (found.q.mean(axis=0), found.motor.mean(axis=0)),
    }
    answers: dict[str, list[Array]] = {name: [] for name in kinds}
    for seed in seeds:
        pi = gravity_coefficients(q_empty, sensors.measured(hold(q_empty, None), seed, 0))
        for name, (q, tau) in kinds.items():
            loaded = gravity_coefficients(q, sensors.measured(tau, seed, 1))
            answers[name].append(payload_of((loaded - pi)[CHANGING]))
    return {name: np.array(values) for name, values in answers.items()}


def stated_masses(sensors: Sensors, seeds: range) -> dict[str, Array]:
    """Mass [kg] and centre of mass [m] by eq. (26), by the controller's model, (seeds, 4).

    Args:
        sensors: that measure
        seeds: of their errors, and of the model's
    """
    q = random_rest(500)
    loaded, true = hold(q, HEAVY_BODY), arm().gravity_torque(q)
    answers: dict[str, list[Array]] = {"its model is right": [], "its links are 2 % off": []}
    for seed in seeds:
        measured = sensors.measured(loaded, seed, 1)
        off = 1 + _WRONG * np.random.default_rng([seed, 26]).normal(size=7)
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
