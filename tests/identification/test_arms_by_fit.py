"""Arms that a log may be of: the one that moved comes first."""

import numpy as np
import pytest

from conftest import lively_motion
from steelyard.identification._arms_by_fit import arms_by_fit
from steelyard.recording import Samples
from steelyard.robot import load_robot, robot_names


def of_arm(robot, rng):
    """Samples of a motion of an arm whose links are unknown, with a little noise."""
    q, v, a = lively_motion(robot, 7, duration_s=4.0)
    theta = rng.normal(size=robot.regressor(q[:1], v[:1], a[:1]).shape[2])
    tau = np.einsum("njk,k->nj", robot.regressor(q, v, a), theta)
    tau += 0.01 * tau.std(axis=0) * rng.standard_normal(tau.shape)
    return Samples(q, v, a, tau, 100.0, robot.joint_names, "measured")


@pytest.mark.parametrize("name", ["iiwa14", "ur10", "tx60"])
def test_the_arm_that_moved_comes_first(name, rng):
    robot = load_robot(name)
    samples = of_arm(robot, rng)
    arms = [each for each in map(load_robot, robot_names()) if each.n == robot.n]
    first = arms_by_fit(arms, samples.q, samples)[0]
    assert first.same_kinematics(robot)


def test_limits_decide_where_torques_are_not_known():
    arms = [each for each in map(load_robot, robot_names()) if each.n == 6]
    q = np.zeros((3, 6))
    q[:, 1] = max(arm.limits.q_max[1] for arm in arms)
    inside = [arm.name for arm in arms if contains(arm, q)]
    outside = [arm.name for arm in arms if not contains(arm, q)]
    assert inside
    assert outside
    assert [arm.name for arm in arms_by_fit(arms, q, None)] == inside + outside


def contains(arm, q):
    """Whether positions are within the limits of an arm."""
    return bool(((q >= arm.limits.q_min) & (q <= arm.limits.q_max)).all())
