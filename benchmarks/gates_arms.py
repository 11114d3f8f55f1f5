"""The arms of `bench_gates.py`: the bundled ones, and others that are built here from DH tables.

Payload, gains and friction of an arm follow from the torques that hold it, so that small and large
arms are equally difficult.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from steelyard.inertia import InertialParameters
from steelyard.robot import DHTable, DriveModel, JointLimits, RobotModel, load_robot

HALF_TURN = np.pi
QUARTER_TURN = np.pi / 2
_FRICTION_SHARE = 0.04  # Coulomb friction over the largest torque that holds the arm
_NOISE_SHARE = 0.03  # of the torque noise over friction
_POSTURES = 200


@dataclass(frozen=True, eq=False)
class Arm:
    """An arm of the bench.

    Attributes:
        robot: with friction and gains
        payload: what it carries when it is loaded
        torque_std: noise of its torques, (n,) [Nm or N]
    """

    robot: RobotModel
    payload: InertialParameters
    torque_std: np.ndarray


def _limits(v_max: list[float], reach: float = 2.6) -> JointLimits:
    n = len(v_max)
    wide = np.full(n, reach)
    return JointLimits(-wide, wide, np.array(v_max), np.full(n, 30.0), np.full(n, np.inf))


def _cylinder(mass: float, com: list[float], length: float, radius: float) -> InertialParameters:
    """A cylinder along the longest component of its centre."""
    across = mass * (3 * radius**2 + length**2) / 12
    moments = np.full(3, across)
    moments[int(np.abs(com).argmax())] = mass * radius**2 / 2
    return InertialParameters.from_com(mass, com, np.diag(moments))


def _small_cobot() -> RobotModel:
    """Six joints, three of them parallel, reach 0.5 m, 11 kg."""
    table = DHTable.from_rows(
        [
            [0.0, 0.0, 0.15, 0.0],
            [QUARTER_TURN, 0.0, 0.0, 0.0],
            [0.0, -0.244, 0.0, 0.0],
            [0.0, -0.213, 0.11, 0.0],
            [QUARTER_TURN, 0.0, 0.085, 0.0],
            [-QUARTER_TURN, 0.0, 0.082, 0.0],
        ]
    )
    links = [
        _cylinder(2.0, [0.0, 0.0, -0.02], 0.12, 0.05),
        _cylinder(3.4, [-0.12, 0.0, 0.10], 0.24, 0.05),
        _cylinder(1.3, [-0.11, 0.0, 0.02], 0.21, 0.04),
        _cylinder(0.8, [0.0, 0.01, 0.0], 0.10, 0.04),
        _cylinder(0.8, [0.0, -0.01, 0.0], 0.10, 0.04),
        _cylinder(0.3, [0.0, 0.0, -0.02], 0.05, 0.035),
    ]
    return RobotModel.from_dh(
        table, name="small-cobot", links=links, limits=_limits([3.1, 3.1, 3.1, 6.0, 6.0, 6.0])
    )


def _heavy_elbow() -> RobotModel:
    """Six joints with a spherical wrist, reach 2.5 m, about 900 kg."""
    table = DHTable.from_rows(
        [
            [0.0, 0.0, 0.68, 0.0],
            [-QUARTER_TURN, 0.35, 0.0, -QUARTER_TURN],
            [0.0, 1.15, 0.0, 0.0],
            [-QUARTER_TURN, -0.04, 1.2, 0.0],
            [QUARTER_TURN, 0.0, 0.0, 0.0],
            [-QUARTER_TURN, 0.0, 0.0, 0.0],
        ]
    )
    links = [
        _cylinder(300.0, [0.15, 0.0, -0.2], 0.5, 0.25),
        _cylinder(220.0, [0.55, 0.0, 0.1], 1.1, 0.18),
        _cylinder(180.0, [0.0, 0.15, 0.0], 0.4, 0.2),
        _cylinder(120.0, [0.0, 0.0, -0.5], 1.0, 0.12),
        _cylinder(35.0, [0.0, 0.03, 0.0], 0.2, 0.1),
        _cylinder(10.0, [0.0, 0.0, 0.1], 0.1, 0.1),
    ]
    return RobotModel.from_dh(
        table, name="heavy-elbow", links=links, limits=_limits([1.8, 1.6, 1.7, 3.0, 3.0, 3.8])
    )


def _seven_joints() -> RobotModel:
    """Seven joints: shoulder and wrist spherical, reach 0.8 m, about 23 kg."""
    turn = QUARTER_TURN
    table = DHTable.from_rows(
        [
            [0.0, 0.0, 0.34, 0.0],
            [-turn, 0.0, 0.0, 0.0],
            [turn, 0.0, 0.40, 0.0],
            [turn, 0.0, 0.0, 0.0],
            [-turn, 0.0, 0.40, 0.0],
            [-turn, 0.0, 0.0, 0.0],
            [turn, 0.0, 0.126, 0.0],
        ]
    )
    links = [
        _cylinder(4.5, [0.0, -0.03, -0.05], 0.2, 0.07),
        _cylinder(4.2, [0.0, -0.10, 0.03], 0.25, 0.07),
        _cylinder(3.6, [0.0, 0.03, -0.12], 0.25, 0.06),
        _cylinder(3.2, [0.0, 0.09, 0.03], 0.22, 0.06),
        _cylinder(2.2, [0.0, 0.02, -0.10], 0.2, 0.05),
        _cylinder(2.0, [0.0, 0.01, 0.02], 0.12, 0.06),
        _cylinder(0.6, [0.0, 0.0, -0.03], 0.06, 0.05),
    ]
    speed = [1.7, 1.7, 1.7, 2.2, 2.4, 3.1, 3.1]
    return RobotModel.from_dh(
        table, name="seven-joints", links=links, limits=_limits(speed, reach=2.1)
    )


def _five_joints() -> RobotModel:
    """Five joints of a small palletiser with a wrist of two axes, reach 0.6 m."""
    table = DHTable.from_rows(
        [
            [0.0, 0.0, 0.20, 0.0],
            [-QUARTER_TURN, 0.05, 0.0, -QUARTER_TURN],
            [0.0, 0.30, 0.0, QUARTER_TURN],
            [0.0, 0.25, 0.0, 0.0],
            [-QUARTER_TURN, 0.0, 0.08, 0.0],
        ]
    )
    links = [
        _cylinder(3.0, [0.03, 0.0, -0.05], 0.15, 0.06),
        _cylinder(2.5, [0.14, 0.0, 0.03], 0.3, 0.045),
        _cylinder(1.6, [0.12, 0.0, -0.02], 0.25, 0.04),
        _cylinder(0.7, [0.0, 0.03, 0.0], 0.1, 0.035),
        _cylinder(0.2, [0.0, 0.0, -0.01], 0.03, 0.03),
    ]
    return RobotModel.from_dh(
        table, name="five-joints", links=links, limits=_limits([2.5, 2.5, 2.5, 4.0, 5.0])
    )


def _on_a_wall() -> RobotModel:
    """The small cobot, mounted on a wall."""
    return replace(_small_cobot(), name="cobot-on-a-wall").with_gravity([9.81, 0.0, 0.0])


def _on_a_ceiling() -> RobotModel:
    """The TX60, upside down."""
    return load_robot("tx60").with_gravity([0.0, 0.0, 9.81])


_BUILT: dict[str, Callable[[], RobotModel]] = {
    "small-cobot": _small_cobot,
    "heavy-elbow": _heavy_elbow,
    "seven-joints": _seven_joints,
    "five-joints": _five_joints,
    "cobot-on-a-wall": _on_a_wall,
    "tx60-on-a-ceiling": _on_a_ceiling,
}
_BUNDLED = ("ur10e", "panda", "tx60", "lwr4", "ur10", "kr60ha")
NAMES = tuple(name for pair in zip(_BUNDLED, _BUILT, strict=True) for name in pair)
"""Bundled arms and others in turn, so that a few neighbours are a mixture."""


@cache
def arm(name: str) -> Arm:
    """An arm by name."""
    robot = _BUILT[name]() if name in _BUILT else load_robot(name)
    held = _holding_torque(robot)
    own = robot.drive.coulomb
    coulomb = np.where(own > 0.2 * _FRICTION_SHARE * held, own, _FRICTION_SHARE * held)
    viscous = np.where(robot.drive.viscous > 0, robot.drive.viscous, 0.8 * coulomb)
    rotor = np.where(robot.drive.rotor_inertia > 0, robot.drive.rotor_inertia, 0.01 * held)
    drive = DriveModel(
        rotor, coulomb=coulomb, viscous=viscous, offset=0.05 * coulomb, gain=held / 10.0
    )
    return Arm(robot.with_drive(drive), _payload(robot, held), _NOISE_SHARE * coulomb)


def _holding_torque(robot: RobotModel) -> np.ndarray:
    """The largest torque that holds each joint of the empty arm, (n,) [Nm]."""
    rng = np.random.default_rng(0)
    q = rng.uniform(-2.0, 2.0, size=(_POSTURES, robot.n))
    held = np.abs(robot.gravity_torque(q)).max(axis=0)
    return np.maximum(held, 0.15 * held.max())


def _payload(robot: RobotModel, held: np.ndarray) -> InertialParameters:
    """A body that adds about a quarter to the torque of the strongest joint."""
    rng = np.random.default_rng(1)
    q = rng.uniform(-2.0, 2.0, size=(_POSTURES, robot.n))
    still = np.zeros_like(q)
    per_kilogram = np.abs(robot.payload_regressor(q, still, still)[:, :, 0]).max(axis=0)
    mass = float(f"{0.25 * held.max() / per_kilogram.max():.2g}")
    size = 0.06 * mass ** (1 / 3)
    com = size * np.array([0.3, -0.2, 0.8])
    inertia = (
        mass * size**2 * np.array([[0.3, 0.03, -0.02], [0.03, 0.35, 0.01], [-0.02, 0.01, 0.25]])
    )
    return InertialParameters.from_com(mass, com, inertia, robot.flange)
