"""The scale of all gains from the controller's model: known k, an unknown body, friction."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

from steelyard.identification.gains import DriveGains, gains_from_targets, scaled_by_targets
from steelyard.identification.gains._scale import SMOOTH_HZ
from steelyard.inertia import InertialParameters
from steelyard.recording import Preparation, Recording
from steelyard.robot import load_robot
from steelyard.signals import prepare
from steelyard.simulation import SensorModel, simulate
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import DoubtKind
from steelyard.workflow._arm import Identification

NOISE = np.array([1.31, 2.52, 1.14, 0.39, 0.28, 0.33])
"""Torque residuals of a UR10, xu2024 Table VIII, [Nm]."""
TOOL = InertialParameters.from_com(3.0, [0.08, -0.05, 0.1], np.diag([0.03, 0.03, 0.02]))
ADAPTER = InertialParameters.from_com(0.8, [0.02, -0.01, 0.03], np.diag([2e-3, 2e-3, 1e-3]))
HOW = Preparation(cutoff_hz=SMOOTH_HZ)


@pytest.fixture(scope="module")
def robot():
    """A UR10 with a tool that its controller knows; nonlinear, load-dependent friction."""
    arm = load_robot("ur10").with_payload(TOOL)
    return arm.with_drive(replace(arm.drive, load_coulomb=0.04))


def log(robot, k, seed, *, still=(), noise=1.0, lag_s=0.0, duration_s=20.0):
    """The log of a controller whose gains are wrong by e^k and that ignores the adapter."""
    rng = np.random.default_rng(seed)
    motion = FourierTrajectory.random(
        np.array([0.2, -1.3, 0.9, -1.1, 0.4, 0.3]),
        reach=[0.9] * 6,
        speed=[1.2, 0.9, 1.1, 1.0, 1.2, 1.4],
        period_s=duration_s,
        harmonics=5,
        seed=seed,
    )
    t = np.arange(0, duration_s, 0.01)
    moving = ~np.isin(np.arange(6), still)

    def at(times):
        q, v, a = motion.at(times)
        return np.where(moving, q, motion.at(np.zeros(1))[0]), v * moving, a * moving

    q, v, a = at(t)
    moment = robot.inverse_dynamics(*at(t + lag_s))
    white = rng.normal(size=q.shape)
    tau = robot.with_payload(ADAPTER).torque(q, v, a)
    tau = tau + noise * NOISE * lfilter([np.sqrt(1 - 0.8**2)], [1, -0.8], white, axis=0)
    friction = robot.drive.friction(v, load=0 * v)
    return Recording(
        t,
        np.round(q, 4),
        robot.joint_names,
        current=tau / (robot.drive.gain * np.exp(k)),
        current_target=np.round(
            (moment + robot.drive.rotor_inertia * a + friction) / robot.drive.gain, 4
        ),
        tau_target=np.round(moment, 4),
        source=f"log {seed}",
    )


def scaled(robot, recordings, how=HOW):
    gains = DriveGains(robot.drive.gain, 1e-4 * robot.drive.gain, "targets", VERDICT, ("",) * 6)
    measured = [prepare(part, how, drive=robot.drive) for part in recordings]
    targets = [
        prepare(replace(part, tau=part.tau_target, current=None), how) for part in recordings
    ]
    return scaled_by_targets(gains, robot, measured, targets)


VERDICT = DriveGains.given([1.0]).verdict


def found(gains, robot):
    return float(np.log(gains.value / robot.drive.gain)[0])


@pytest.mark.thorough
@pytest.mark.parametrize("k", [-0.02, 0.015])
def test_a_known_scale_is_found_within_its_interval(robot, k):
    errors, stds = [], []
    for seed in range(8):
        gains = scaled(
            robot, [log(robot, k, 10 * seed + run, noise=0.5, lag_s=0.008) for run in range(2)]
        )
        np.testing.assert_allclose(np.log(gains.value / robot.drive.gain), found(gains, robot))
        assert gains.verdict.ok
        assert not gains.verdict.doubts
        errors.append(found(gains, robot) - k)
        stds.append(gains.common[0, 0])
    errors, stds = np.array(errors), np.array(stds)
    assert np.mean(np.abs(errors) < 1.96 * stds) >= 0.85
    assert np.sqrt(np.mean(errors**2)) < 0.008
    assert stds.max() < 0.01
    np.testing.assert_allclose(gains.std / gains.value, np.hypot(stds[-1], 1e-4))


def test_differentiated_rounding_does_not_bias_the_scale(robot):
    errors = [
        found(scaled(robot, [log(robot, 0.01, 30 + seed, noise=0.1)]), robot) - 0.01
        for seed in range(8)
    ]
    assert abs(np.mean(errors)) < 0.004


def test_mujoco_with_a_body_that_the_controller_does_not_know(robot):
    true = robot.with_drive(replace(robot.drive, gain=np.exp(0.015) * robot.drive.gain))
    sensors = SensorModel(torque_std=0.5 * NOISE)
    run = simulate(
        true, FourierTrajectory.load("xu2024"), payload=ADAPTER, sensors=sensors, seed=3
    ).recording
    moment = robot.inverse_dynamics(run.q_commanded, run.v_commanded, run.a_commanded)
    gains = scaled(robot, [replace(run, tau=None, tau_target=moment)])
    assert abs(found(gains, robot) - 0.015) < 1.96 * gains.common[0, 0]
    assert gains.common[0, 0] < 0.02


def test_runs_that_do_not_show_the_scale_keep_the_makers(robot):
    gains = scaled(robot, [log(robot, 0.02, 5, still=(1, 2, 3, 4))])
    np.testing.assert_array_equal(gains.value, robot.drive.gain)
    assert gains.common is None
    (doubt,) = gains.verdict.doubts
    assert (doubt.kind, doubt.blocks) == (DoubtKind.GAINS, False)
    assert doubt.words.endswith("% only the scale of the gains, so the published scale is kept")
    np.testing.assert_allclose(gains.in_drive(robot.drive).gain_common, 0.02)
    (doubt,) = scaled_by_targets(DriveGains.given(robot.drive.gain), robot, [], []).verdict.doubts
    assert (
        doubt.words
        == "the runs do not determine the scale of the gains, so the published scale is kept"
    )


def test_a_controller_of_another_arm_is_noticed(robot):
    runs = [log(robot, 0.0, seed, noise=0.2) for seed in (6, 7)]
    gains = scaled(robot, [replace(run, tau_target=1.3 * run.tau_target) for run in runs])
    np.testing.assert_array_equal(gains.value, robot.drive.gain)
    assert "contradict each other by +" in gains.verdict.doubts[0].words


@pytest.mark.thorough
def test_identify_scales_the_gains_of_targets(robot):
    arm = robot.with_drive(replace(robot.drive, gain=None))
    runs = [log(robot, 0.02, seed, noise=0.3) for seed in (7, 8)]
    done = Identification.of(arm, runs, friction="power")
    drive = done.model.robot.drive
    k = np.log(drive.gain / gains_from_targets(runs).value)
    np.testing.assert_allclose(k, k[0])
    assert abs(k[0] - 0.02) < 1.96 * drive.gain_common[0, 0]
    assert 0.004 < drive.gain_common[0, 0] < 0.015
    np.testing.assert_array_equal(done.gains.value, drive.gain)
    assert "all scaled by +" in done.gains_from
