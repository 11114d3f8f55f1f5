"""Known truth -> MuJoCo -> wrist sensor -> static and dynamic stage -> truth."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.control._contact_force import contact_force
from steelyard.inertia import InertialParameters
from steelyard.robot import load_robot
from steelyard.simulation import Push, SensorModel, SimulationOptions, simulate
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
from steelyard.wrist.estimators import ESTIMATORS
from tiers import thorough_but

TILT = np.radians([1.8, -2.3])
LOAD = InertialParameters.from_com(12.0, [0.02, -0.03, 0.08], np.diag([0.4, 0.3, 0.25]))
DRIFT = np.array([6.0, -4.0, 12.0, 0.8, -0.5, 0.3])
NOISE = np.array([0.3, 0.3, 0.3, 0.03, 0.03, 0.03])
SENSORS = SensorModel(encoder_step=6e-6, wrench_std=NOISE, wrench_drift=DRIFT)
OPTIONS = SimulationOptions(
    gravity_base=BaseGravity(np.array([0, 0, -9.81])).tilted(TILT), step_s=0.004
)


@dataclass(frozen=True)
class Visits:
    postures: np.ndarray
    rest_s: float = 1.2
    move_s: float = 0.6

    @property
    def duration_s(self):
        return len(self.postures) * (self.rest_s + self.move_s) - self.move_s

    def at(self, t):
        period = self.rest_s + self.move_s
        k = np.minimum((t // period).astype(int), len(self.postures) - 1)
        x = np.clip((t - k * period - self.rest_s) / self.move_s, 0, 1)[:, None]
        way = self.postures[np.minimum(k + 1, len(self.postures) - 1)] - self.postures[k]
        first = (30 * x**2 - 60 * x**3 + 30 * x**4) / self.move_s
        second = (60 * x - 180 * x**2 + 120 * x**3) / self.move_s**2
        return (
            self.postures[k] + (10 * x**3 - 15 * x**4 + 6 * x**5) * way,
            first * way,
            second * way,
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
    return simulate(
        robot, Visits(postures), payload=LOAD, sensors=SENSORS, rate_hz=125, options=OPTIONS
    )


def moving(robot, **extra):
    centre = robot.home + np.array([0, 0, 0, 0, 0.7, 0])
    path = FourierTrajectory.random(
        centre,
        reach=[1e-9] * 3 + [1.2, 0.9, 1.5],
        speed=[1e-9] * 3 + [2, 2, 2.5],
        period_s=8,
        harmonics=5,
        seed=8,
    )
    return simulate(
        robot, path, payload=LOAD, sensors=SENSORS, rate_hz=250, options=OPTIONS, seed=3, **extra
    ).recording


@pytest.fixture(scope="module")
def in_motion(robot):
    return moving(robot)


@pytest.fixture(scope="module")
def static(robot, at_rest):
    return weigh_static(Postures.of(WristRecording.of_joints(at_rest.recording, robot)))


def test_the_static_stage_recovers_mass_com_drift_and_tilt(static):
    truth = np.concatenate([LOAD.vector[:4], DRIFT, TILT])
    assert "well spread" in static.verdict.sentence
    assert len(static.postures) == 9
    low, high = static.interval(0.9999).T
    assert ((truth > low) & (truth < high)).all()
    assert static.std[0] < 0.01
    assert np.degrees(static.std[10:]).max() < 0.05
    np.testing.assert_allclose(static.gravity_base, OPTIONS.gravity_base, atol=0.01)


@pytest.mark.parametrize(
    ("name", "source"),
    thorough_but(
        [("ml", "joints"), ("ml", "pose"), ("rrtls", "pose")],
        product(("ml", "restricted", "rrtls", "wls"), ("joints", "pose")),
    ),
)
def test_two_stages_recover_all_ten(name, source, robot, static, in_motion):
    if source == "joints":
        samples = WrenchSamples.from_joints(robot, in_motion, WristSensor(noise=NOISE))
    else:
        samples = WrenchSamples.from_pose(
            WristRecording.of_joints(in_motion, robot, WristSensor(noise=NOISE))
        )
    payload = weigh_dynamic(samples, static, estimator=ESTIMATORS[name])
    assert payload.body.is_physical
    assert payload.body.mass == pytest.approx(12.0, abs=0.01)
    np.testing.assert_allclose(payload.body.com, LOAD.com, atol=5e-4)
    np.testing.assert_allclose(payload.body.inertia, LOAD.inertia, atol=0.01)
    np.testing.assert_allclose(np.degrees(payload.inclination - TILT), 0, atol=0.05)
    np.testing.assert_allclose(payload.drift, DRIFT, atol=0.15)
    error = (payload.unconstrained.vector - LOAD.vector) / payload.std
    assert np.abs(error).max() < 5


def test_without_a_static_stage_drift_and_tilt_are_found_too(robot, in_motion):
    payload = weigh_dynamic(WrenchSamples.from_joints(robot, in_motion))
    np.testing.assert_allclose(payload.drift, DRIFT, atol=0.3)
    np.testing.assert_allclose(np.degrees(payload.inclination - TILT), 0, atol=0.1)
    assert payload.body.mass == pytest.approx(12.0, abs=0.02)
    assert (payload.full_covariance[range(18), range(18)] > 0).all()


def test_a_sensor_turned_about_the_flange_axis_is_found(robot, at_rest):
    recording = WristRecording.of_joints(at_rest.recording, robot)
    yaw = 0.6
    turn = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])
    turned = recording.wrench.reshape(-1, 2, 3) @ turn  # readings of a sensor that is turned by yaw
    said = WristRecording.of_measured(
        recording.t,
        turned.reshape(-1, 6),
        recording.R_base_sensor,
        sensor=WristSensor(yaw_known=False),
    )
    found = weigh_static(Postures.of(said), yaw_axis=[0, 0, 1])
    assert found.yaw == pytest.approx(yaw, abs=5 * found.yaw_std)
    assert found.yaw_std < 0.005
    assert found.mass == pytest.approx(12.0, abs=0.05)
    np.testing.assert_allclose(
        said.turned(found.yaw).R_base_sensor, recording.R_base_sensor @ turn, atol=0.01
    )


def test_a_push_is_seen_as_what_it_is(robot, static, in_motion):
    samples = WrenchSamples.from_joints(robot, in_motion)
    payload = weigh_dynamic(samples, static)
    push = Push(3.0, 2.0, robot.flange, np.array([15.0, -10.0, 20.0]), np.array([0.0, 0.1, 0.2]))
    pushed = WrenchSamples.from_joints(robot, moving(robot, pushes=[push]), decimate=False)
    contact = contact_force(payload, pushed, frame="base")
    inside = (contact.t > 3.3) & (contact.t < 4.7)
    outside = (contact.t < 2.7) | (contact.t > 5.3)
    np.testing.assert_allclose(contact.external[inside, :3].mean(axis=0), [15, -10, 20], atol=0.3)
    assert contact.force[outside].mean() < 1.0
    z = contact.external[outside] / contact.std[outside]
    assert 0.5 < z.std() < 2.0


@pytest.mark.parametrize("source", ["joints", "pose"])
def test_a_sensor_that_sits_elsewhere_than_the_flange(source, robot, in_motion):
    T = np.eye(4)
    T[:3, :3] = Rotation.from_rotvec([0.4, -0.7, 1.1]).as_matrix()
    T[:3, 3] = [0.05, -0.08, 0.12]
    f, tau = in_motion.wrench[:, :3] - DRIFT[:3], in_motion.wrench[:, 3:] - DRIFT[3:]
    there = np.hstack([f @ T[:3, :3], (tau - np.cross(T[:3, 3], f)) @ T[:3, :3]])
    sensor = WristSensor(T_flange_sensor=T)
    moved = replace(in_motion, wrench=there + DRIFT)
    if source == "joints":
        samples = WrenchSamples.from_joints(robot, moved, sensor)
    else:
        samples = WrenchSamples.from_pose(WristRecording.of_joints(moved, robot, sensor))
    payload = weigh_dynamic(samples)
    found = payload.in_flange(robot.flange)
    body, covariance = found.body, found.covariance
    assert body.frame == robot.flange
    assert body.mass == pytest.approx(12.0, abs=0.03)
    np.testing.assert_allclose(body.com, LOAD.com, atol=1e-3)
    np.testing.assert_allclose(body.inertia, LOAD.inertia, atol=0.02)
    error = (body.vector - LOAD.vector) / np.sqrt(np.diag(covariance))
    assert np.abs(error).max() < 6
