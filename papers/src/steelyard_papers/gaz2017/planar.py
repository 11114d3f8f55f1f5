"""The planar arm of section IV in MuJoCo: coefficients (34), payload (35), links (37), Fig. 2.

Torques depend on the links' numbers phi through the coefficients pi = K phi alone, so the regressor
of pi is Y K^+, Y that of phi. The paper estimates pi = (Y K^+)^# tau without and with the payload
and takes p_L = J^# (pi_L - pi), J the columns of K that belong to the last link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from steelyard._arrays import Array
from steelyard.identification import identify
from steelyard.identification._feasible import feasible_parameters
from steelyard.identification._feasible_space import ParameterBounds
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Samples
from steelyard.robot import ParameterBasis, RobotModel, load_robot
from steelyard.robot._symbolic import SymbolicBasis
from steelyard.signals import Preparation, prepare
from steelyard.simulation import SensorModel, Simulation, simulate
from steelyard.torque import weigh
from steelyard_papers.gaz2017.printed import (
    FEASIBLE_37,
    FEASIBLE_NAMES,
    LOWER_36,
    PAYLOAD_35,
    UPPER_36,
)
from steelyard_papers.sharing import Progress

NOISE_NM = 0.05
DRAWS = 8
TRUTH = InertialParameters.from_com(1.5, [0.3, 0.1, 0.0], np.diag([0.013, 0.02, 0.0313]))
_COLUMNS = [10, 11, 12, 19]  # m, mx, my, Izz of the last link
_ORDER = [3, 4, 5, 0, 1, 2]
_HALVES = np.array([0.5, 1, 1, 0.5, 1, 1])


@dataclass(frozen=True, eq=False)
class Sinusoids:
    """A sine for each joint around zero, from the end of its swing.

    Attributes:
        size: amplitudes, (n,) [rad]
        frequency_hz: (n,) [Hz]
        duration_s: [s]
        phase: at the start, [rad]
    """

    size: Array
    frequency_hz: Array
    duration_s: float = 20.0
    phase: float = np.pi / 2

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration, each (N, n).

        Args:
            t: times, (N,) [s]
        """
        w = 2 * np.pi * self.frequency_hz
        angle = w * np.asarray(t)[:, None] + self.phase
        return (
            self.size * np.sin(angle),
            self.size * w * np.cos(angle),
            -self.size * w**2 * np.sin(angle),
        )


@dataclass(frozen=True, eq=False)
class Planar:
    """The example recomputed.

    Attributes:
        pi: coefficients without payload, in the paper's order: as estimated and as they are, (2, 6)
        pi_loaded: the same with the payload, (2, 6)
        payload: m, mx, my, Izz by the paper's method, (4,)
        ours: by our method
        printed: the same from the printed differences, (4,)
        links: the eight numbers of (37) that we find from pi, (8,)
        true_links: the eight numbers as they are, (8,)
        masses: by the paper's method and by ours, for each draw of the noise, (draws, 2) [kg]
        t: time of the validation, (N,) [s]
        torques: by name: 'truth', 'paper' from the printed numbers, 'ours' from ours, (N, 2) each
            [Nm]
    """

    pi: Array
    pi_loaded: Array
    payload: Array
    ours: Payload
    printed: Array
    links: Array
    true_links: Array
    masses: Array
    t: Array
    torques: dict[str, Array]

    def mean_square(self, name: str) -> Array:
        """Mean square of the torque error of a name, (2,) [Nm^2].

        Args:
            name: 'paper' or 'ours'
        """
        return np.asarray(np.mean((self.torques[name] - self.torques["truth"]) ** 2, axis=0))


@cache
def coefficient_matrix() -> Array:
    """K of the paper's coefficients (29), from the links' numbers, (6, 20)."""
    matrix = SymbolicBasis.of(load_robot("planar2r"), drive=False, on_axes=True).numeric_matrix()
    return np.asarray(_HALVES[:, None] * matrix[_ORDER][:, :20])


def estimated_coefficients(robot: RobotModel, K: Array, samples: Samples) -> Array:
    """Coefficients pi = K phi by least squares from torques, eq. (14), all joints alike, (p,).

    Args:
        robot: the arm
        K: pi = K phi, phi the numbers of the links, (p, 10 n)
        samples: motion and torques
    """
    Y = robot.regressor(samples.q, samples.v, samples.a)[:, :, : K.shape[1]] @ np.linalg.pinv(K)
    return np.asarray(np.linalg.lstsq(Y.reshape(-1, len(K)), samples.tau.ravel(), rcond=None)[0])


def planar_example(*, duration_s: float = 20.0, progress: Progress | None = None) -> Planar:
    """Section IV in MuJoCo.

    Args:
        duration_s: of each run, [s]
        progress: called with the share that is done
    """
    robot = load_robot("planar2r")
    K = coefficient_matrix()
    motion = Sinusoids(np.array([1.5, 2.0]), np.array([0.3, 0.5]), duration_s)
    sensors = SensorModel(torque_std=0.0, wrist_sensor=False)
    runs = []
    for k, load in enumerate((None, TRUTH)):
        runs.append(simulate(robot, motion, payload=load, sensors=sensors, rate_hz=100.0, seed=k))
        if progress is not None:
            progress((k + 1) / 2)
    noisy = [
        [_with_noise(run, 2 * seed + k) for k, run in enumerate(runs)] for seed in range(DRAWS)
    ]
    draws = [_answers(robot, pair) for pair in noisy]
    pi, loaded, payload, ours = draws[0]
    feasible = _feasible(robot, K, pi)
    t, torques = _validation(robot, feasible, payload)
    return Planar(
        np.array([pi, K @ robot.parameters[:20]]),
        np.array([loaded, K @ robot.with_payload(TRUTH).parameters[:20]]),
        payload,
        ours,
        PAYLOAD_35,
        _eight(feasible),
        _eight(robot),
        np.array([(float(paper[0]), float(own.unconstrained.mass)) for _, _, paper, own in draws]),
        t,
        torques,
    )


def _with_noise(run: Simulation, seed: int) -> Samples:
    """A run with a draw of the torque noise, prepared."""
    noise = NOISE_NM * np.random.default_rng([35, seed]).normal(size=run.truth.tau.shape)
    recording = replace(run.recording, tau=run.truth.tau + noise)
    return prepare(recording, Preparation(cutoff_hz=20.0, lowest_speed=0.0, trim_s=0.5))


def _answers(robot: RobotModel, runs: Sequence[Samples]) -> tuple[Array, Array, Array, Payload]:
    """Coefficients without and with the payload; the payload by the paper's method and by ours."""
    K = coefficient_matrix()
    pi, loaded = (estimated_coefficients(robot, K, run) for run in runs)
    payload: Array = np.linalg.pinv(K[:5, _COLUMNS]) @ (loaded - pi)[:5]
    return pi, loaded, payload, weigh(identify(robot, runs[0], friction="linear"), runs[1])


def _feasible(robot: RobotModel, K: Array, pi: Array) -> RobotModel:
    """Real links within (36) that have the coefficients pi; nothing else is known of them."""
    basis = ParameterBasis.of(robot, drive=False)
    R = np.zeros((7, 7))
    R[:6, :6] = K[:, basis.independent] / 1e-5
    R[:6, 6] = pi / 1e-5
    R[6, 6] = 1.0
    limits = {name: limit for name, *limit in zip(FEASIBLE_NAMES, LOWER_36, UPPER_36, strict=True)}
    bounds = ParameterBounds(
        {name: (low, high) for name, (low, high) in limits.items()} | {"total_mass": (3.0, 6.0)}
    )
    unknown = robot.with_links([InertialParameters.nothing()] * 2)
    return feasible_parameters(robot, basis, R, bounds=bounds, nominal=unknown).robot


def _eight(robot: RobotModel) -> Array:
    one, two = robot.links
    moments = (one.inertia[2, 2], two.inertia[2, 2])
    return np.array([one.mass, two.mass, *moments, *one.com[:2], *two.com[:2]])


def _validation(
    robot: RobotModel, feasible: RobotModel, payload: Array
) -> tuple[Array, dict[str, Array]]:
    """Torques of Fig. 2 by Newton-Euler: the truth, the printed numbers, and ours."""
    t = np.linspace(0.0, 20.0, 2001)
    motion = Sinusoids(np.array([2 * np.pi, np.pi]), np.array([0.05, 0.3]), phase=0.0).at(t)
    m1, m2, j1, j2, x1, y1, x2, y2 = FEASIBLE_37
    printed = robot.with_links(
        [
            InertialParameters(m, m * np.array([x, y, 0.0]), j * np.eye(3))
            for m, x, y, j in ((m1, x1, y1, j1), (m2, x2, y2, j2))
        ]
    )
    carried = {
        "truth": robot.with_payload(TRUTH),
        "paper": printed.with_payload(_planar_body(PAYLOAD_35)),
        "ours": feasible.with_payload(_planar_body(payload)),
    }
    return t, {name: arm.inverse_dynamics(*motion) for name, arm in carried.items()}


def _planar_body(numbers: Array) -> InertialParameters:
    m, mx, my, Izz = numbers
    return InertialParameters(m, np.array([mx, my, 0.0]), Izz * np.eye(3))
