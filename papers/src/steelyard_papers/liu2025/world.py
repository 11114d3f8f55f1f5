"""liu2025's cell in MuJoCo: a KR60HA on a tilted base, a wrist sensor, a 40 kg plate.

The load is the reference of Table II, its inertia taken about the centre of mass: about the
sensor's origin no body has it (a plate of no thickness, off its plane); here the plate is 10 mm
thick. The tilt is the one that the paper's method found. The wrench's noise is the effective
resolution of the ATI Omega160, encoders have 20 bits. Each seed has its own noise, zero drift and
encoder phases; the motions are the same for all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from steelyard._arrays import Array
from steelyard._units import GRAVITY_DOWN
from steelyard.inertia import InertialParameters
from steelyard.recording import Recording
from steelyard.robot import RobotModel
from steelyard.simulation import SensorModel, SimulationOptions, Truth, simulate
from steelyard.trajectory import Trajectory
from steelyard.wrist import WristSensor
from steelyard.wrist._regressor import BaseGravity
from steelyard_papers.liu2025.cell import Cell
from steelyard_papers.liu2025.motions import FromRest, Motions, Visits
from steelyard_papers.sharing import Progress

_PLATE_INERTIA = 40.173 * 0.01**2 / 12
LOAD = InertialParameters.from_com(
    40.173,
    [0.0, 0.0, 0.905 / 40.173],
    np.diag([3.24 + _PLATE_INERTIA, 0.809 + _PLATE_INERTIA, 4.049]),
)
TILT = np.radians([1.824, 2.326])
UPRIGHT = np.array(GRAVITY_DOWN)
NOISE = np.array([0.5, 0.5, 0.5, 0.05, 0.05, 0.05])
_VISIT_STEP_S = 0.004  # of the simulation; the visit of the postures is slow
STEP = 2 * np.pi / 2**20
SENSOR = WristSensor(
    "ATI Omega160", reach=np.array([2500.0, 2500, 6250, 400, 400, 400]), noise=NOISE
)


@dataclass(frozen=True, eq=False)
class World:
    """The true signals of the experiment.

    Attributes:
        robot: the arm
        rest: the visit of the postures
        excitation: the excitation
        fast: the test motion at high speed
        slow: the test motion at low speed
    """

    robot: RobotModel
    rest: Truth
    excitation: Truth
    fast: Truth
    slow: Truth


def run_world(
    robot: RobotModel,
    motions: Motions,
    *,
    duration_s: float = 11.5,
    progress: Progress,
    step_s: float = 0.002,
) -> World:
    """The motions of the arm with its load on a tilted base.

    Args:
        robot: the KR60HA
        motions: of the experiment
        duration_s: of each motion but the visit of the postures, [s]
        progress: called with the share that is done
        step_s: of the simulation of each motion but that visit, [s]
    """
    paths: list[Trajectory] = [
        Visits(motions.postures.q, robot.limits.v_max),
        *(
            FromRest(motion, duration_s=duration_s)
            for motion in (motions.found.trajectory, motions.fast, motions.slow)
        ),
    ]
    truths = []
    for k, path in enumerate(paths):
        if k == 0:
            step = _VISIT_STEP_S
        else:
            step = step_s
        options = SimulationOptions(gravity_base=BaseGravity(UPRIGHT).tilted(TILT), step_s=step)
        run = simulate(
            robot, path, payload=LOAD, sensors=SensorModel.ideal(), rate_hz=250.0, options=options
        )
        truths.append(run.truth)
        progress((k + 1) / len(paths))
    return World(robot, *truths)


def zero_drift(rng: np.random.Generator) -> Array:
    """The zero drift of the sensor, (6,) [N, Nm].

    Args:
        rng: random numbers
    """
    return np.asarray(rng.normal(size=6) * [10, 10, 20, 1, 1, 1])


def base_turned(robot: RobotModel, truth: Truth, change: Array) -> Truth:
    """The same run on a base whose tilt has changed: another weight in the sensor frame.

    Args:
        robot: the arm
        truth: the true signals on the base as it was identified
        change: of U and V, (2,) [rad]
    """
    R = robot.forward_kinematics(truth.q)[:, :3, :3]
    gravity = BaseGravity(UPRIGHT)
    more = gravity.tilted(TILT + change) - gravity.tilted(TILT)
    more_sensor = np.einsum("nji,j->ni", R, more)
    load = truth.payload
    weight = np.hstack([load.mass * more_sensor, np.cross(load.mass * load.com, more_sensor)])
    return replace(truth, wrench=truth.wrench + weight)


def measured(
    robot: RobotModel,
    truth: Truth,
    drift: Array,
    rng: np.random.Generator,
    *,
    step: float = STEP,
    cell: Cell | None = None,
) -> Recording:
    """Measurements of the truth: encoders with their own phase, a noisy wrench with drift.

    Args:
        robot: the arm
        truth: the true signals
        drift: zero of the sensor, (6,) [N, Nm]
        rng: random numbers
        step: of the encoders, [rad]
        cell: further errors; none by default
    """
    phase = rng.uniform(-0.5, 0.5, truth.q.shape[1]) * step
    if cell is None:
        wrench = truth.wrench
    else:
        wrench = cell.wrench(robot, truth)
    if cell is None:
        q = truth.q
    else:
        q = truth.q + cell.joint_error
    return Recording(
        truth.t,
        np.round((q + phase) / step) * step,
        robot.joint_names,
        wrench=wrench + drift + NOISE * rng.standard_normal(truth.wrench.shape),
        wrench_frame="flange",
        wrench_convention="load_on_sensor",
    )
