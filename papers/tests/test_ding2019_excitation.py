"""ding2019 eq. (9) and Table II: limits of joints and of the end effector."""

import numpy as np
import pytest

from steelyard.excitation import DesignLimits
from steelyard.robot import load_robot
from steelyard.trajectory import FourierTrajectory


@pytest.fixture(scope="module")
def table_2():
    arm = load_robot("tx60")
    limits = DesignLimits(
        arm.limits,
        height=(0.2, np.inf),
        linear_speed=np.full(3, 2.0),
        angular_speed=np.full(3, 60.0),
    )
    return arm, limits


def test_joint_limits_are_those_of_table_2(table_2):
    joints = table_2[1].joints
    np.testing.assert_array_equal(joints.q_max, [2.6, 2.1, 2.1, 1.74, 1.74, 4.36])
    np.testing.assert_array_equal(joints.q_min, -joints.q_max)  # -1.74 twice is a slip of the table
    np.testing.assert_array_equal(joints.v_max, [5.23, 5.23, 6.97, 8.72, 10.46, 17.44])
    np.testing.assert_array_equal(joints.a_max, 69.8)


def test_end_effector_limits_are_checked_by_finite_differences(table_2):
    arm, limits = table_2
    rng = np.random.default_rng(5)
    series = FourierTrajectory(
        rng.normal(size=(6, 5)), rng.normal(size=(6, 5)), rng.normal(size=6), 10.0
    )
    checks = {check.limit: check for check in limits.certify(arm, series).checks}
    t, h = np.linspace(0, 10, 10001), 1e-6
    T = arm.forward_kinematics(series.at(t)[0])
    step = (
        arm.forward_kinematics(series.at(t + h)[0]) - arm.forward_kinematics(series.at(t - h)[0])
    ) / (2 * h)
    assert checks["lowest height"].value == pytest.approx(T[:, 2, 3].min())
    assert checks["linear speed"].value == pytest.approx(np.abs(step[:, :3, 3]).max(), rel=1e-5)
    spin = np.einsum("tab,tcb->tac", step[:, :3, :3], T[:, :3, :3])  # dR R' is the skew matrix of w
    w = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
    assert checks["angular speed"].value == pytest.approx(np.abs(w).max(), rel=1e-5)
    assert checks["angular speed"].where == "xyz"[np.abs(w).max(axis=0).argmax()]
