"""All ten numbers of the medium payload from motions of joint 1 and postures: (45), (46).

Joint 1 swings as sin(phi(t)) with a growing frequency up to 100 deg/s and 150 deg/s^2, 15 s for
each of three postures of the other joints; positions and torques every 5 ms, filtered at 1 Hz, 500
samples kept. The paper estimates the coefficients that these motions show, without and with the
payload, and solves both differences, that of gravity and this one, together. Ours is
`weigh(method="pooled")` on the same recordings, filtered at 20 Hz, joints weighted, empty and
loaded runs in one fit: these motions show combinations of the arm's parameters only, which a model
of single parameters cannot hold. And `weigh` on one motion of all joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from steelyard._arrays import Array
from steelyard.identification import DynamicModel, identify
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Recording, Samples
from steelyard.robot import ParameterBasis
from steelyard.signals import Preparation, prepare
from steelyard.simulation import SensorModel, SimulationOptions, simulate
from steelyard.torque import weigh
from steelyard.trajectory import FourierTrajectory, Trajectory
from steelyard_papers.gaz2017.gravity import (
    CHANGING,
    HEAVY_BODY,
    Sensors,
    StaticAnswer,
    arm,
    gravity_matrix,
)
from steelyard_papers.sharing import Progress

Pair = tuple[Recording, Recording]

RATE_HZ = 200.0
OTHERS = {
    "A": (np.pi / 2, 0.0, 0.0, 0.0, 0.0, 0.0),
    "B": (np.pi / 2, 0.0, 0.0, 0.0, -np.pi / 2, 0.0),
    "C": (np.pi / 2, 0.0, 0.0, -np.pi / 2, 0.0, 0.0),
}
"""Joints 2 to 7 of q_A, q_B, q_C, [rad]: the arm lies parallel to the ground."""

_TOP_SPEED, _TOP_ACCELERATION = np.radians([100.0, 150.0])
_PAPER = Preparation(cutoff_hz=1.0, torque_cutoff_hz=1.0, lowest_speed=0.0, trim_s=0.5, decimate=17)
_OURS = Preparation(cutoff_hz=20.0, lowest_speed=0.0, trim_s=0.2, torque_cutoff_hz=20.0, decimate=4)
_WHOLE_CENTRE = np.array([0.0, 0.6, 0.0, 0.8, 0.0, 0.6, 0.0])


@dataclass(frozen=True, eq=False)
class Swing:
    """Joint 1 swings with growing frequency up to its limits; the others stand still.

    Attributes:
        others: positions of joints 2 to 7, (6,) [rad]
        duration_s: [s]
    """

    others: Sequence[float]
    duration_s: float = 15.0

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration, each (N, 7).

        Args:
            t: times, (N,) [s]
        """
        t = np.asarray(t)
        top = _TOP_ACCELERATION / _TOP_SPEED
        size = _TOP_SPEED / top
        x = t / self.duration_s
        rate = top * (1 - (1 - x) ** 3)
        phase = top * self.duration_s * (x + ((1 - x) ** 4 - 1) / 4)
        growth = 3 * top * (1 - x) ** 2 / self.duration_s
        motion = np.zeros((3, len(t), 7))
        motion[0, :, 1:] = self.others
        motion[0, :, 0] = size * np.sin(phase)
        motion[1, :, 0] = size * rate * np.cos(phase)
        motion[2, :, 0] = size * (growth * np.cos(phase) - rate**2 * np.sin(phase))
        return motion[0], motion[1], motion[2]


@dataclass(frozen=True, eq=False)
class Inertial:
    """The payload from the motions, by each method.

    Attributes:
        counts: of the coefficients that each motion shows, and all of them together
        changing: how many of them a payload changes
        paper: the ten numbers by the paper's method, (10,)
        together: ours on the same recordings
        whole: ours on one motion of all joints
        model: of the empty arm, from that motion
    """

    counts: dict[str, int]
    changing: int
    paper: Array
    together: Payload
    whole: Payload
    model: DynamicModel


def moved(
    motion: Trajectory, payload: InertialParameters | None, *, friction: float = 1.0
) -> Recording:
    """A run of the arm in MuJoCo with torque sensors behind the gears that have no errors yet.

    Args:
        motion: to follow
        payload: in the flange frame; None for the empty arm
        friction: factor of the arm's Coulomb friction
    """
    robot = arm()
    robot = robot.with_drive(replace(robot.drive, coulomb=friction * robot.drive.coulomb))
    quiet = SensorModel(torque_std=0.0, torque_side="link", wrist_sensor=False)
    options = SimulationOptions(step_s=0.0025)
    done = simulate(robot, motion, payload=payload, sensors=quiet, rate_hz=RATE_HZ, options=options)
    return done.recording


def measured(run: Recording, sensors: Sensors, seed: int, number: int) -> Recording:
    """A run with the errors of the torque sensors.

    Args:
        run: without them
        sensors: that measure
        seed: of the sensors
        number: of the run, for its noise
    """
    assert run.tau is not None  # noqa: S101 - simulated
    return replace(run, tau=sensors.measured(run.tau, seed, number))


def whole_motion(seed: int, period_s: float = 15.0) -> FourierTrajectory:
    """A random motion of all joints.

    Args:
        seed: of the motion
        period_s: [s]
    """
    return FourierTrajectory.random(
        _WHOLE_CENTRE, reach=[1.2] * 7, speed=[1.5] * 7, period_s=period_s, harmonics=5, seed=seed
    )


def inertial_runs(progress: Progress) -> list[Pair]:
    """All runs without sensor errors: the three swings and two motions of all joints.

    Args:
        progress: called with the share that is done
    """
    motions: list[Trajectory] = [*_swings(), whole_motion(3), whole_motion(4)]
    runs = []
    for k, motion in enumerate(motions):
        runs.append((moved(motion, None), moved(motion, HEAVY_BODY)))
        progress((k + 1) / len(motions))
    return runs


def inertial_answers(
    static: StaticAnswer, runs: Sequence[Pair], sensors: Sensors, seed: int = 0
) -> Inertial:
    """The ten numbers by every method.

    Args:
        static: postures at rest, without and with the payload, by the same sensors
        runs: without errors of the sensors
        sensors: that measure
        seed: of the sensors
    """
    pairs = [
        (measured(empty, sensors, seed, 10 + k), measured(loaded, sensors, seed, 20 + k))
        for k, (empty, loaded) in enumerate(runs)
    ]
    empties, loads = ([prepare(pair[i], _OURS) for pair in pairs] for i in (0, 1))
    before = [static.rest_empty, *empties[:3]]
    arm_at_rest = identify(arm(), before, friction="linear")
    together = weigh(arm_at_rest, [static.rest, *loads[:3]], method="pooled", empty=before)
    model = identify(arm(), empties[3:], friction="linear")
    difference, J = _difference(pairs[:3])
    both = np.vstack([J, _gravity_columns()])
    at_rest = (static.pi_loaded - static.pi)[CHANGING]
    return Inertial(
        _counts(),
        int((np.abs(J) > 1e-9).any(axis=1).sum()),
        np.asarray(np.linalg.lstsq(both, np.append(difference, at_rest), rcond=None)[0]),
        together,
        weigh(model, loads[3]),
        model,
    )


def _swings() -> list[Swing]:
    return [Swing(others) for others in OTHERS.values()]


def _gravity_columns() -> Array:
    """How the five gravity coefficients change with the ten numbers of a payload, (5, 10)."""
    return gravity_matrix()[CHANGING, 60:70]


@cache
def _shown(names: str = "ABC") -> ParameterBasis:
    """The coefficients that motions show, by the names of `OTHERS`."""
    motions = [Swing(OTHERS[name]).at(np.arange(0.0, 15.0, 0.05)) for name in names]
    rows = np.concatenate([arm().regressor(*motion) for motion in motions])
    return ParameterBasis.of_regressor(arm(), rows, drive=False)


def _counts() -> dict[str, int]:
    return {name: len(_shown(name)) for name in OTHERS} | {"together": len(_shown())}


def _difference(runs: Sequence[Pair]) -> tuple[Array, Array]:
    """The difference of the coefficients that the swings show, and their payload Jacobian."""
    robot = arm()
    basis = _shown()
    found = []
    for i in (0, 1):
        parts: list[Samples] = [prepare(pair[i], _PAPER) for pair in runs]
        Y = np.concatenate([basis.reduce(robot.regressor(p.q, p.v, p.a)) for p in parts])
        tau = np.concatenate([p.tau for p in parts])
        found.append(np.linalg.lstsq(Y.reshape(-1, len(basis)), tau.ravel(), rcond=None)[0])
    return found[1] - found[0], basis.payload_jacobian
