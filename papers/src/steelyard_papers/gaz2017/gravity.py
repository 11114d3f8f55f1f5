"""Mass and centre of mass from postures at rest: (38)-(44), Table I, and the ten samples of (47).

The arm moves to each posture in MuJoCo, from both sides (`approach`), and has torque sensors behind
its gears; the mean of both sides counts. At rest g = Y_g pi_g with the twelve
coefficients pi_g = K phi of (38); the paper estimates them without and with the payload, all
torques alike, and takes p_L,g = J^# (pi_L,g - pi_g) on the five rows that a payload changes. Ours
is the method "static".

The errors of the paper's sensors are not published, so three assumptions are compared: white
noise of 0.1 Nm; the same and sensors whose scales are wrong by 1 % (one draw for each joint); and
white noise as large as the changes, printed in (42), of the seven coefficients that no payload
changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from steelyard._arrays import Array
from steelyard.excitation import PostureSet
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Samples
from steelyard.robot import RobotModel, load_robot
from steelyard.robot._symbolic import SymbolicBasis
from steelyard.simulation._arm import ForwardDynamics
from steelyard.torque import weigh
from steelyard_papers.gaz2017.approach import Held, Reached, come_to_rest
from steelyard_papers.gaz2017.printed import GRAVITY_38, GRAVITY_42, GRAVITY_LOADED_42, HEAVY, LIGHT
from steelyard_papers.sharing import Progress

SCALE = 0.01
FEW = 10
PICK = np.array([0.0, 0.6, 0.0, 1.2, 0.0, 0.8, 0.0])  # assumed, [rad]
CHANGING = np.array([0, 1, 3, 6, 11])
"""The gravity coefficients that a payload changes, counted from 0."""
_MASS_COLUMNS = slice(60, 64)  # m, mx, my, mz of link 7
_REACH = 2.0  # of the random postures, [rad]
_FIRST_SEED = 100  # of results; settings were chosen with others


def _cylinder(
    mass: float, com: Sequence[float], radius: float, height: float
) -> InertialParameters:
    """An upright cylinder: the inertia is assumed, the paper prints none."""
    across = mass * (3 * radius**2 + height**2) / 12
    return InertialParameters.from_com(
        mass, list(com), np.diag([across, across, mass * radius**2 / 2]), frame=arm().flange
    )


@cache
def arm() -> RobotModel:
    """The bundled LWR 4+: kinematics of Fig. 3, nominal links; sensor scales known to 1 %."""
    robot = load_robot("lwr4")
    return robot.with_drive(replace(robot.drive, gain=np.ones(7), gain_std=np.full(7, SCALE)))


HEAVY_BODY = _cylinder(*HEAVY, radius=0.05, height=0.08)
LIGHT_BODY = _cylinder(*LIGHT, radius=0.02, height=0.06)


@cache
def gravity_matrix() -> Array:
    """K of the gravity coefficients (38) in the paper's order, (12, 70)."""
    import sympy as sp

    basis = SymbolicBasis.of(load_robot("lwr4"), on_axes=True)
    ours = [sp.expand(expression) for expression in basis.expressions]
    rows = [ours.index(sp.expand(sp.sympify(line))) for line in GRAVITY_38]
    return np.asarray(basis.numeric_matrix()[rows][:, :70])


@dataclass(frozen=True, eq=False)
class Sensors:
    """Errors of torque sensors.

    Attributes:
        name: in words
        noise: of each posture, [Nm]
        scale: standard deviation of the wrong scale of a joint
    """

    name: str
    noise: float
    scale: float

    def measured(self, tau: Array, seed: int, run: int) -> Array:
        """Torques as measured, like tau.

        Args:
            tau: true torques, (N, 7) [Nm]
            seed: of the sensors, their scales
            run: which one, its noise
        """
        wrong = self.scale * np.random.default_rng([seed, 0]).normal(size=7)
        noise = np.random.default_rng([seed, 1 + run]).normal(size=tau.shape)
        return np.asarray((1 + wrong) * tau + self.noise * noise)


def assumptions() -> tuple[Sensors, Sensors, Sensors]:
    """Three kinds of sensors, the second one as in the tables of one run."""
    implied = noise_of_42()
    return (
        Sensors("noise of 0.1 Nm", 0.1, 0.0),
        Sensors("noise of 0.1 Nm, scales wrong by 1 %", 0.1, SCALE),
        Sensors(f"noise of {implied:.2g} Nm, from (42)", implied, 0.0),
    )


def noise_of_42() -> float:
    """Posture noise that reproduces the scatter of the seven constant coefficients (42), [Nm]."""
    q = random_rest(500)
    spread = np.linalg.inv(np.einsum("kji,kjl->il", *(2 * [_gravity_rows(q)])))
    constant = np.setdiff1d(np.arange(12), CHANGING)
    change = (GRAVITY_LOADED_42 - GRAVITY_42)[constant]
    return float(np.sqrt(np.mean(change**2 / (2 * np.diag(spread)[constant]))))


def random_rest(count: int, seed: int = 0) -> Array:
    """Random postures, (count, 7) [rad].

    Args:
        count: how many
        seed: of the random numbers
    """
    return np.random.default_rng(seed).uniform(-_REACH, _REACH, (count, 7))


def hold(q: Array, payload: InertialParameters | None) -> Array:
    """Torques behind the gears that hold the arm at rest in MuJoCo, (N, 7) [Nm].

    Args:
        q: postures, (N, 7) [rad]
        payload: in the flange frame; none for the empty arm
    """
    simulated = ForwardDynamics(arm(), payload)
    held = []
    for posture in q:
        simulated.move_to(posture, np.zeros(7))
        held.append(np.array(simulated.data.qfrc_bias))
    return np.array(held)


def gravity_coefficients(q: Array, tau: Array) -> Array:
    """The twelve coefficients by least squares, joint 1 left out, (12,).

    Args:
        q: postures, (N, 7) [rad]
        tau: torques at rest, (N, 7) [Nm]
    """
    Y = _gravity_rows(q)
    return np.asarray(np.linalg.lstsq(Y.reshape(-1, 12), tau[:, 1:].ravel(), rcond=None)[0])


def _gravity_rows(q: Array) -> Array:
    Y = arm().regressor(q, 0 * q, 0 * q)[:, 1:, :70]
    return np.asarray(Y @ np.linalg.pinv(gravity_matrix()))


@dataclass(frozen=True, eq=False)
class StaticAnswer:
    """The payload from postures at rest.

    Attributes:
        pi: coefficients of the empty arm, (12,)
        pi_loaded: of the loaded arm, (12,)
        paper: m, mx, my, mz by the paper's method, (4,)
        ours: by ours
        rest: loaded postures at rest, to weigh with others
        rest_empty: empty postures at rest
    """

    pi: Array
    pi_loaded: Array
    paper: Array
    ours: Payload
    rest: Samples
    rest_empty: Samples


def placed(payload: InertialParameters | None, q: Array) -> Held:
    """The arm put into postures.

    Args:
        payload: in the flange frame; None for none
        q: postures, (N, 7) [rad]
    """
    return Held(q, hold(q, payload))


@cache
def reached(load: str, *, few: bool = False) -> Reached:
    """The arm in postures: 500 random ones, or ten samples around the pick posture.

    Args:
        load: 'none', 'heavy' or 'light'
        few: whether the ten samples are meant
    """
    body = {"none": None, "heavy": HEAVY_BODY, "light": LIGHT_BODY}[load]
    return come_to_rest(arm(), body, samples_near_pick() if few else random_rest(500))


def samples_near_pick() -> Array:
    """Ten postures around the pick posture, (FEW, 7) [rad]."""
    return PostureSet.around(arm(), PICK, count=FEW).q


def pair_of(load: str, *, few: bool = False) -> tuple[Held, Held]:
    """The postures of an experiment: 500 of the empty arm, and those of the loaded arm.

    Args:
        load: 'heavy' or 'light'
        few: whether the loaded arm only makes ten small moves around a pick posture
    """
    return reached("none").both, reached(load, few=few).both


def static_answer(empty: Held, loaded: Held, sensors: Sensors, *, seed: int = 0) -> StaticAnswer:
    """The payload from postures at rest by both methods.

    Args:
        empty: postures without the payload
        loaded: postures with it
        sensors: that measure
        seed: of their errors
    """
    rests = [
        _at_rest(held.q, sensors.measured(held.tau, seed, run))
        for run, held in enumerate((empty, loaded))
    ]
    pi, pi_loaded = (gravity_coefficients(part.q, part.tau) for part in rests)
    J = gravity_matrix()[CHANGING, _MASS_COLUMNS]
    paper = np.linalg.lstsq(J, (pi_loaded - pi)[CHANGING], rcond=None)[0]
    model = identify(arm(), rests[0], friction="linear")
    ours = weigh(model, rests[1], method="static")
    return StaticAnswer(pi, pi_loaded, paper, ours, rest=rests[1], rest_empty=rests[0])


def _at_rest(q: Array, tau: Array) -> Samples:
    return Samples(q, 0 * q, 0 * q, tau, 1.0, arm().joint_names, "measured")


def draws_of(
    empty: Held, loaded: Held, sensors: Sensors, *, seeds: int, progress: Progress
) -> Array:
    """Mass [kg] and centre of mass [m] per draw of sensor errors: paper, ours, (seeds, 2, 4).

    Args:
        empty: postures without the payload
        loaded: postures with it
        sensors: that measure
        seeds: how many draws
        progress: called with the share that is done
    """
    found = []
    for seed in range(_FIRST_SEED, _FIRST_SEED + seeds):
        answer = static_answer(empty, loaded, sensors, seed=seed)
        ours = answer.ours.unconstrained
        paper = np.append(answer.paper[0], answer.paper[1:] / answer.paper[0])
        found.append((paper, np.append(ours.mass, ours.com)))
        progress((seed - _FIRST_SEED + 1) / seeds)
    return np.array(found)


def rms_of(draws: Array, payload: InertialParameters) -> Array:
    """RMS errors of mass [kg] and centre of mass [m]: paper, then ours, (2, 2).

    Args:
        draws: as `draws_of` gives them
        payload: the truth
    """
    off = draws - np.append(payload.mass, payload.com)
    squares = np.stack([off[:, :, 0] ** 2, (off[:, :, 1:] ** 2).sum(axis=2)], axis=2)
    return np.asarray(np.sqrt(squares.mean(axis=0)))
