"""Known truth -> MuJoCo -> wrist sensor -> our two stages beside liu2025's comparisons."""

import numpy as np
import pytest

from steelyard.control._contact_force import contact_force
from steelyard.inertia import InertialParameters
from steelyard.robot import load_robot
from steelyard.simulation import SensorModel, SimulationOptions, simulate
from steelyard.trajectory import FourierTrajectory
from steelyard.wrist import (
    Postures,
    WrenchSamples,
    WristRecording,
    WristSensor,
    weigh_dynamic,
    weigh_static,
)
from steelyard.wrist._regressor import BaseGravity
from steelyard_papers.liu2025.comparison_methods import method_1, method_2
from steelyard_papers.liu2025.motions import Visits

pytestmark = pytest.mark.thorough

UPRIGHT = np.array([0, 0, -9.81])
LOAD = InertialParameters.from_com(12.0, [0.02, -0.03, 0.08], np.diag([0.4, 0.3, 0.25]))
NOISE = np.array([0.3, 0.3, 0.3, 0.03, 0.03, 0.03])
SENSORS = SensorModel(
    encoder_step=6e-6, wrench_std=NOISE, wrench_drift=np.array([6.0, -4.0, 12.0, 0.8, -0.5, 0.3])
)
OPTIONS = SimulationOptions(
    gravity_base=BaseGravity(UPRIGHT).tilted(np.radians([1.8, -2.3])), step_s=0.004
)


@pytest.fixture(scope="module")
def robot():
    return load_robot("kr60ha")


@pytest.fixture(scope="module")
def at_rest(robot):
    turns = np.random.default_rng(2).uniform(-1.3, 1.3, size=(9, 3))
    postures = (
        robot.home + np.array([0, 0, 0, 0, 0.7, 0]) + np.column_stack([np.zeros((9, 3)), turns])
    )
    visits = Visits(postures, np.full(6, 4.0))
    found = simulate(robot, visits, payload=LOAD, sensors=SENSORS, rate_hz=125, options=OPTIONS)
    return Postures.of(WristRecording.of_joints(found.recording, robot))


@pytest.fixture(scope="module")
def in_motion(robot):
    path = FourierTrajectory.random(
        robot.home + np.array([0, 0, 0, 0, 0.7, 0]),
        reach=[1e-9] * 3 + [1.2, 0.9, 1.5],
        speed=[1e-9] * 3 + [2, 2, 2.5],
        period_s=8,
        harmonics=5,
        seed=8,
    )
    found = simulate(
        robot, path, payload=LOAD, sensors=SENSORS, rate_hz=250, options=OPTIONS, seed=3
    )
    return WrenchSamples.from_joints(
        robot, found.recording, WristSensor(noise=NOISE), decimate=False
    )


def test_the_methods_that_liu2025_compares_with_are_worse(at_rest, in_motion):
    static = weigh_static(at_rest)
    ours = weigh_dynamic(in_motion, static)
    second = method_2(in_motion, static)
    first = method_1(at_rest, gravity_base=UPRIGHT)
    assert abs(second.unconstrained.mass - 12.0) > 3 * abs(ours.unconstrained.mass - 12.0)
    assert not first.knows_inertia
    sizes = [contact_force(payload, in_motion) for payload in (ours, second, first)]
    assert sizes[0].force.mean() < 0.1 * sizes[1].force.mean()  # the tilt that Method 2 ignores
    assert (
        sizes[0].torque.mean() < 0.5 * sizes[2].torque.mean()
    )  # the inertia that Method 1 ignores
