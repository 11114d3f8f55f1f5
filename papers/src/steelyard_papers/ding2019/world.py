"""ding2019's experiment in MuJoCo: a TX-60 within Table II, ten runs and a verification.

The paper prints neither the masses of the arm nor its motion nor its noise, so the arm is the
bundled one (its kinematics and limits are the paper's, its links are nominal) and the noise is
assumed. Friction comes in two worlds: in `as assumed` it is what the paper's eq. (3) says, so every
parameter has a true value; in `as in gears` it also has a Stribeck peak at low speed, bends with
speed and grows with the carried torque, so no law that is fitted here is exactly true. Each run is
simulated anew: the controller in its loop, its own noise, and drives that get warmer from run to
run, by 5 degrees over ten of them, so that viscous friction falls by 2 % a degree.

Heights of Table II are above the ground; frame 0 of Table I lies at the shoulder, taken to be
0.375 m above it: the paper does not print it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array
from steelyard.errors import InfeasibleDesign
from steelyard.excitation import ConditionNumber, Design, DesignLimits, DesignSettings, design
from steelyard.recording import Recording
from steelyard.robot import RobotModel, load_robot
from steelyard.simulation import SensorModel, SimulationOptions, simulate
from steelyard.trajectory import FourierTrajectory
from steelyard_papers.sharing import Progress

PERIOD_S = 10.0
HARMONICS = 5
RATE_HZ = 250.0  # section IV
NOISE = np.array([1.5, 2.0, 1.0, 0.3, 0.3, 0.1])  # assumed, [Nm]
SHOULDER = 0.375  # height of frame 0 above the ground, [m]
WARMER = 5.0
THINNING = 0.02  # over all runs [K], of viscous friction [1/K], assumed
_VERIFICATION_SEED = 100
_MAX_TRIES = 400  # random motions
_PARALLEL_TOLERANCE = 1e-9  # norm of the cross product of unit vectors


@dataclass(frozen=True, eq=False)
class Motions:
    """The motions of the experiment.

    Attributes:
        found: the designed excitation
        limits: those of Table II
        verification: another motion within the same limits
        random_conditions: condition numbers of random motions within them
    """

    found: Design
    limits: DesignLimits
    verification: FourierTrajectory
    random_conditions: Array


@dataclass(frozen=True, eq=False)
class World:
    """One world and what was recorded in it.

    Attributes:
        name: in words
        robot: the arm as it is, its true friction included
        runs: of the excitation
        verification: a run of another motion
        true_torque: of the verification run, without noise, (N, n) [Nm]
    """

    name: str
    robot: RobotModel
    runs: tuple[Recording, ...]
    verification: Recording
    true_torque: Array


def table_2(robot: RobotModel) -> DesignLimits:
    """The limits of Table II: joints, height and speeds of the end effector.

    Args:
        robot: the TX-60
    """
    return DesignLimits(
        robot.limits,
        height=(0.2 - SHOULDER, np.inf),
        linear_speed=np.full(3, 2.0),
        angular_speed=np.full(3, 60.0),
    )


def formula_7(axes: Array, points: Array) -> tuple[int, int, int]:
    """How many joints count as R1, R2 and R3 of eq. (7): 7 R1 + 3 R2 + R3 parameters of the links.

    R1: the axis is not parallel to every axis before it, gravity among them; R2: it is parallel,
    beside them;
    R3: it coincides with those before it.

    Args:
        axes: of gravity and of each joint in one posture, (1 + n, 3), unit vectors
        points: on each joint's axis, (n, 3) [m]; gravity has none
    """
    kinds = [0, 0, 0]
    for i in range(1, len(axes)):
        parallel = np.linalg.norm(np.cross(axes[:i], axes[i]), axis=1) < _PARALLEL_TOLERANCE
        if not parallel.all():
            kinds[0] += 1
            continue
        away = np.cross(points[: i - 1] - points[i - 1], axes[i])
        kinds[1 if i > 1 and np.linalg.norm(away, axis=1).max() > _PARALLEL_TOLERANCE else 2] += 1
    return kinds[0], kinds[1], kinds[2]


def joint_axes(robot: RobotModel) -> tuple[Array, Array]:
    """Gravity and joint axes at home, (1 + n, 3), and points on them, (n, 3) [m], base frame.

    Args:
        robot: with revolute joints
    """
    T = np.eye(4)
    axes = [robot.gravity_base / np.linalg.norm(robot.gravity_base)]
    points = []
    for placement, axis, q in zip(
        robot.joint_placements, robot.joint_axes, robot.home, strict=True
    ):
        T = T @ placement
        axes.append(T[:3, :3] @ axis)
        points.append(T[:3, 3].copy())
        turn = np.eye(4)
        turn[:3, :3] = Rotation.from_rotvec(q * np.asarray(axis)).as_matrix()
        T = T @ turn
    return np.array(axes), np.array(points)


def designed_motions(
    robot: RobotModel,
    *,
    starts: int = 4,
    effort: float = 1.0,
    randoms: int = 20,
    progress: Progress,
) -> Motions:
    """The excitation of least condition number (eq. (9)), a verification, and random motions.

    Args:
        robot: the TX-60
        starts: of the search
        effort: of the search
        randoms: how many random motions to compare with
        progress: called with the share that is done
    """
    limits = table_2(robot)
    settings = DesignSettings(
        starts=starts, effort=effort, rate_hz=RATE_HZ, progress=lambda share, best: progress(share)
    )
    found = design(robot, harmonics=HARMONICS, period_s=PERIOD_S, limits=limits, settings=settings)
    centre = found.trajectory.offset
    others = _random_motions(robot, limits, centre, count=randoms + 1)
    values = [
        ConditionNumber().evaluate(robot, motion, limits=limits, rate_hz=RATE_HZ)
        for motion in others[1:]
    ]
    return Motions(found, limits, others[0], np.array(values))


def _random_motions(
    robot: RobotModel, limits: DesignLimits, centre: Array, *, count: int
) -> list[FourierTrajectory]:
    """Random motions around a posture, each as large as the limits allow in steps of a fifth."""
    joints = limits.joints
    kept = []
    reach = 0.9 * np.minimum(joints.q_max - centre, centre - joints.q_min)
    for seed in range(_VERIFICATION_SEED, _VERIFICATION_SEED + _MAX_TRIES):
        for size in (1.0, 0.8, 0.64, 0.51, 0.41, 0.33):
            motion = FourierTrajectory.random(
                centre,
                reach=size * reach,
                speed=size * joints.v_max,
                period_s=PERIOD_S,
                harmonics=HARMONICS,
                seed=seed,
            )
            if limits.certify(robot, motion).holds:
                kept.append(motion)
                break
        if len(kept) == count:
            return kept
    raise InfeasibleDesign(f"only {len(kept)} of {_MAX_TRIES} random motions keep Table II")


def gear_friction(robot: RobotModel) -> RobotModel:
    """The arm with a Stribeck peak, a nonlinear speed law and load-dependent gear friction.

    Args:
        robot: with Coulomb and viscous friction
    """
    drive = robot.drive
    richer = replace(
        drive,
        stribeck=0.25 * drive.coulomb,
        stribeck_speed=np.full(robot.n, 0.1),
        exponent=np.full(robot.n, 0.8),
        load_coulomb=np.full(robot.n, 0.05),
    )
    return robot.with_drive(richer)


def run_world(
    name: str,
    robot: RobotModel,
    motions: Motions,
    *,
    runs: int,
    progress: Progress,
    step_s: float = 0.002,
) -> World:
    """The recordings of a world.

    Args:
        name: in words
        robot: the arm as it is
        motions: excitation and verification
        runs: of the excitation
        progress: called with the share that is done
        step_s: of the simulation, [s]
    """
    sensors = SensorModel(torque_std=NOISE, wrist_sensor=False)
    options = SimulationOptions(step_s=step_s)
    plan = [
        (motions.found.trajectory, WARMER * k / max(runs - 1, 1), 2019 + k) for k in range(runs)
    ]
    plan.append((motions.verification, 0.0, 1))
    done = []
    for k, (motion, kelvins, seed) in enumerate(plan):
        arm = warmer(robot, kelvins)
        done.append(
            simulate(arm, motion, sensors=sensors, rate_hz=RATE_HZ, seed=seed, options=options)
        )
        progress((k + 1) / len(plan))
    recordings = tuple(run.recording for run in done[:-1])
    return World(name, robot, recordings, done[-1].recording, done[-1].truth.tau)


def warmer(robot: RobotModel, kelvins: float) -> RobotModel:
    """The arm with thinner grease.

    Args:
        robot: as it is when cold
        kelvins: by how much it is warmer, [K]
    """
    drive = robot.drive
    return robot.with_drive(replace(drive, viscous=drive.viscous * np.exp(-THINNING * kelvins)))


def paper_arm() -> RobotModel:
    """The TX-60 of Tables I and II with nominal links."""
    return load_robot("tx60")
