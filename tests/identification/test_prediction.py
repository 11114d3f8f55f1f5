"""Models that do not predict what they were not fitted to are not used."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import steelyard as sy
from steelyard.identification._left_out import alternating_stretches, stretches_of
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.signals import Preparation
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import DoubtKind
from steelyard.workflow._arm import Identification

ROBOT = load_robot("ur10")
FRICTION = np.array([8.0, 9.0, 6.0, 1.5, 1.5, 1.0])
NOISE = np.array([0.4, 0.6, 0.3, 0.1, 0.08, 0.06])
HOW = Preparation(trim_s=0.3, lag_s=(0.0,) * 6)
MED7 = Path(__file__).parents[3] / "shared" / "data" / "arms" / "med7"


def recording(seed, *, reach=1.5, speed=1.5, seconds=12.0, harmonics=8):
    series = FourierTrajectory.random(
        [0, -1.2, 1.0, 0, 0, 0],
        reach=[reach] * 6,
        speed=[speed] * 6,
        period_s=seconds,
        harmonics=harmonics,
        seed=seed,
    )
    t = np.arange(0, seconds, 0.01)
    q, v, a = series.at(t)
    tau = ROBOT.torque(q, v, a) + FRICTION * (np.tanh(v / 0.01) + 0.5 * v)
    tau += NOISE * np.random.default_rng(seed).normal(size=tau.shape)
    return Recording(t=t, q=q, tau=tau, joint_names=ROBOT.joint_names)


@pytest.mark.parametrize(("lengths", "folds"), [([1003], 4), ([300, 200], 2), ([90] * 6, 4)])
def test_each_row_is_left_out_once_and_in_at_most_four_folds(lengths, folds):
    for stretches in (stretches_of(lengths), alternating_stretches(lengths)):
        for part, length in enumerate(lengths):
            rows = [np.arange(length)[one.rows] for one in stretches if one.part == part]
            np.testing.assert_array_equal(np.concatenate(rows), np.arange(length))
    whole = stretches_of(lengths)
    assert {one.fold for one in whole} == set(range(folds))
    assert {one.fold for one in alternating_stretches(lengths)} == {0, 1, 2, 3}
    for part in range(len(lengths)):  # a recording is left out as a whole, a single one in quarters
        found = [one.fold for one in whole if one.part == part]
        assert found == sorted(found)
        assert len(set(found)) == (4 if len(lengths) == 1 else 1)


def unpredicted(model):
    return [d for d in model.verdict.doubts if d.kind is DoubtKind.DOES_NOT_PREDICT]


def test_torques_of_another_motion_are_not_predicted():
    runs = [recording(1), recording(2)]
    good = sy.identify(ROBOT, runs, friction="smooth", preparation=HOW)
    assert not unpredicted(good)
    assert good.verdict.ok
    swapped = [replace(runs[0], tau=runs[1].tau), replace(runs[1], tau=runs[0].tau)]
    bad = sy.identify(ROBOT, swapped, friction="smooth", preparation=HOW)
    (doubt,) = unpredicted(bad)
    assert doubt.blocks
    assert "does not predict stretches of its own recordings that are left out" in doubt.words


def test_a_joint_whose_torque_is_noise_is_no_failure_of_prediction():
    run = recording(1)
    tau = run.tau.copy()
    tau[:, 5] = np.random.default_rng(5).normal(size=len(tau))
    model = sy.identify(ROBOT, replace(run, tau=tau), friction="smooth", preparation=HOW)
    assert not unpredicted(model)


@pytest.mark.thorough
def test_joints_that_move_one_after_the_other_are_predicted():
    """Each recording moves one joint: to leave out a whole one would leave its joint unknown."""
    runs = []
    for j in range(6):
        run = recording(10 + j)
        held = np.where(np.arange(6) == j, run.q, run.q[0] + 0.1 * np.sin(run.t)[:, None])
        v = np.gradient(held, run.t, axis=0)
        a = np.gradient(v, run.t, axis=0)
        tau = ROBOT.torque(held, v, a) + FRICTION * np.tanh(v / 0.01)
        tau += NOISE * np.random.default_rng(j).normal(size=tau.shape)
        runs.append(replace(run, q=held, tau=tau))
    assert not unpredicted(sy.identify(ROBOT, runs, friction="smooth", preparation=HOW))


def test_a_run_to_validate_that_is_not_predicted_blocks():
    poor = recording(3, reach=0.05, speed=0.1, seconds=6.0, harmonics=2)
    found = Identification.of(
        ROBOT, {"poor": poor}, validate={"lively": recording(4)}, friction="smooth", preparation=HOW
    )
    (doubt,) = unpredicted(found.model)
    assert doubt.blocks
    assert doubt.words.startswith("the model does not predict lively: torques are off by ")
    good = Identification.of(
        ROBOT, recording(5), validate=recording(4), friction="smooth", preparation=HOW
    )
    assert not unpredicted(good.model)


@pytest.mark.thorough
@pytest.mark.skipif(not MED7.is_dir(), reason="needs recordings beside the repository")
@pytest.mark.parametrize("law", ["linear", "band", "presliding"])
def test_a_real_recording_that_no_method_predicts_is_refused(law):
    robot = load_robot(str(MED7 / "arm.urdf"))
    data = np.load(MED7 / "measurements.npz")
    t = np.arange(len(data["q"])) / 100.0
    whole = Recording(t=t, q=data["q"], tau=data["tau"], joint_names=robot.joint_names)
    model = sy.identify(robot, whole.between(0.0, 0.6 * t[-1]), friction=law)
    assert unpredicted(model)
    assert not model.verdict.ok
