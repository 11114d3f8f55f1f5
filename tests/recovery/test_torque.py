"""Known truth -> MuJoCo -> identify -> truth: data and estimate use different equations."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.robot import ParameterBasis, load_robot
from steelyard.signals import Preparation, prepare
from steelyard.simulation import SensorModel, simulate
from steelyard.torque import weigh
from steelyard.trajectory import FourierTrajectory

UR10_NOISE = np.array([1.3102, 2.5186, 1.1437, 0.3914, 0.2793, 0.3325])
LOAD = InertialParameters.from_com(3.5256, [0.01, -0.02, 0.0296], np.diag([0.0064, 0.0064, 0.0045]))


def ur10_runs(seed):
    """The arm, and recordings of it empty and loaded."""
    robot = load_robot("ur10")
    robot = robot.with_drive(
        replace(robot.drive, gain_std=np.zeros(6))
    )  # simulated gains are exact
    motion, sensors = FourierTrajectory.load("xu2024"), SensorModel(torque_std=UR10_NOISE)
    return robot, [
        simulate(robot, motion, payload=load, sensors=sensors, seed=2 * seed + k).recording
        for k, load in enumerate((None, LOAD))
    ]


def prepared(robot, recording, kinematics="measured"):
    return prepare(recording, Preparation(cutoff_hz=20.0, kinematics=kinematics), drive=robot.drive)


@pytest.mark.thorough
def test_a_ur10_with_friction_and_noise_weighs_its_payload():
    errors = {"measured": [], "commanded": []}
    for seed in range(3):
        robot, runs = ur10_runs(seed)
        for kinematics, found in errors.items():
            empty, loaded = (prepared(robot, run, kinematics) for run in runs)
            payload = weigh(identify(robot, empty), loaded)
            found.append((payload.unconstrained.vector - LOAD.vector) / payload.std)
            assert payload.body.is_physical
            share = payload.shares.get("scale", 0.0) + payload.shares.get("force", 0.0)
            assert payload.std[0] * np.sqrt(1 - share) < 0.01
            assert payload.std[0] < 0.014
            assert (payload.com_std < 0.003).all()
            np.testing.assert_allclose(payload.body.com, LOAD.com, atol=3 * payload.com_std.max())
    for found in errors.values():
        assert np.abs(np.mean(found, axis=0)).max() < 3 / np.sqrt(3)
        assert np.mean(np.abs(found) < 1.96) > 0.85


def test_base_parameters_of_the_empty_arm_are_recovered():
    robot, (empty, _) = ur10_runs(11)
    estimate = identify(robot, prepared(robot, empty)).estimate
    z = (estimate.value - ParameterBasis.of(robot).K @ robot.parameters) / estimate.std
    assert np.mean(np.abs(z) < 2) > 0.9


@pytest.mark.thorough
def test_a_seven_joint_arm_with_torque_sensors_weighs_a_light_payload():
    robot = load_robot("lwr4")
    robot = robot.with_drive(type(robot.drive).ideal(7))
    centre = np.array([0.0, 0.6, 0.0, 0.8, 0.0, 0.6, 0.0])
    sensors = SensorModel(torque_std=0.1, torque_side="link")
    light = InertialParameters.from_com(0.144, [0, 0, 0.1146], 1e-4 * np.eye(3))
    runs = []
    for k, load in enumerate((None, light)):
        motion = FourierTrajectory.random(
            centre, reach=[1.2] * 7, speed=[1.5] * 7, period_s=15.0, harmonics=5, seed=3 + k
        )
        runs.append(
            prepare(
                simulate(
                    robot, motion, payload=load, sensors=sensors, rate_hz=200, seed=k
                ).recording
            )
        )
    payload = weigh(identify(robot, runs[0]), runs[1])
    assert payload.body.mass == pytest.approx(0.144, abs=3 * payload.std[0])
    assert payload.std[0] < 0.05 * 0.144


class RestToRest:
    """A motion of all joints that begins and ends at rest, with the full acceleration."""

    duration_s = 6.0
    posture = np.array([0.0, -1.3, 1.2, -1.4, -1.2, 0.3])

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.size = rng.uniform(0.05, 0.15, (6, 3)) * rng.choice([-1, 1], (6, 3))
        self.w = 2 * np.pi / self.duration_s * np.arange(1, 4)

    def at(self, t):
        angle = self.w * np.asarray(t)[:, None, None]
        q = self.posture + (self.size * (1 - np.cos(angle))).sum(-1)
        v = (self.size * self.w * np.sin(angle)).sum(-1)
        return q, v, (self.size * self.w**2 * np.cos(angle)).sum(-1)


@pytest.mark.thorough
def test_starts_and_stops_do_not_make_a_payload_heavier():
    """Filtered motions turn later than friction jumps: 16 g where rows near reversals count."""
    robot = load_robot("ur10e")
    motion = FourierTrajectory.load("xu2024")
    empty = [simulate(robot, motion, seed=seed).recording for seed in (0, 1)]
    model = identify(robot, [prepare(run, Preparation(cutoff_hz=20.0)) for run in empty])
    runs = [simulate(robot, RestToRest(k), seed=10 + k, rate_hz=500.0) for k in range(6)]
    found = [weigh(model, prepare(run.recording, model.preparation)) for run in runs]
    errors = [payload.unconstrained.mass for payload in found]
    one_model = np.mean([payload.std[0] for payload in found])  # whose error all of them share
    assert abs(np.mean(errors)) < one_model < 0.004
