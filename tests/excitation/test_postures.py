"""Static postures: taken from the workspace, chosen, reached."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.errors import InfeasibleDesign, InvalidTrajectory
from steelyard.excitation import (
    Cone,
    DesignLimits,
    OrientationWorkspace,
    PostureSet,
    Sector,
    inverse_kinematics,
)
from steelyard.robot import load_robot

DOWN = OrientationWorkspace((Sector("z", (np.radians(60), np.pi)),))


@pytest.fixture(scope="module")
def arm():
    return load_robot("kr60ha")


def test_algorithm_1_gives_distinct_gravity_directions_inside_the_workspace():
    R = DOWN.liu2025_orientations(15, K=-0.2)
    assert len(R) > 15
    assert DOWN.contains(R).all()
    gravity = R[:, 2]
    distance = np.linalg.norm(gravity[:, None] - gravity[None], axis=2) + 9 * np.eye(len(R))
    assert distance.min() > 1e-6
    assert len(OrientationWorkspace().liu2025_orientations(15, K=0.5)) > 15


def test_random_orientations_stay_inside():
    R = DOWN.random_orientations(50, seed=3)
    assert R.shape == (50, 3, 3)
    assert DOWN.contains(R).all()
    np.testing.assert_array_equal(R, DOWN.random_orientations(50, seed=3))


def test_static_wrench_rows_are_the_wrench_of_a_load(rng):
    """A force and moment by hand: weight at the centre of mass, zero drift added."""
    R, m, c = Rotation.random(5, rng).as_matrix(), 3.0, np.array([0.1, -0.2, 0.3])
    rows = PostureSet(np.zeros((5, 6)), R, np.nan).sensor_rows
    drift, g = rng.normal(size=6), np.array([0.0, 0.0, -9.81])
    unknown = np.concatenate([m * g, drift[:3], m * c, drift[3:]])
    for turned, wrench in zip(R, rows @ unknown, strict=True):
        force = turned.T @ (m * g)
        np.testing.assert_allclose(
            wrench, np.concatenate([force, np.cross(c, force)]) + drift, atol=1e-12
        )


def test_greedy_choice_beats_random_choices(arm, rng):
    candidates = OrientationWorkspace().random_orientations(20, seed=0)
    rows = PostureSet(np.zeros((20, 6)), candidates, np.nan).sensor_rows

    def log_det(chosen):
        A = chosen.reshape(-1, 12)
        return np.linalg.slogdet(A.T @ A)[1]

    found = PostureSet.for_sensor(arm, 10, K=None, seed=0)
    assert log_det(found.sensor_rows) > max(
        log_det(rows[rng.choice(20, 10, replace=False)]) for _ in range(50)
    )
    assert len(np.unique(found.q, axis=0)) == 10
    assert PostureSet.at(arm, found.q).condition_number == found.condition_number


def test_inverse_kinematics_reaches_orientation_and_position(arm, rng):
    for _ in range(5):
        q = rng.uniform(np.maximum(arm.limits.q_min, -2), np.minimum(arm.limits.q_max, 2)) * 0.8
        T = arm.forward_kinematics(q)
        found = inverse_kinematics(arm, T[:3, :3], position=T[:3, 3])
        np.testing.assert_allclose(arm.forward_kinematics(found), T, atol=1e-5)
        assert (found <= arm.limits.q_max).all()
        assert (found >= arm.limits.q_min).all()
    wrist = inverse_kinematics(arm, T[:3, :3], joints=[3, 4, 5], near=q)
    np.testing.assert_array_equal(wrist[:3], q[:3])
    with pytest.raises(InfeasibleDesign, match=r"misses it by .* degrees and .* m"):
        inverse_kinematics(arm, np.eye(3), position=[9.0, 0, 0])


@pytest.mark.thorough
def test_static_postures_keep_workspace_and_limits(arm):
    limits = DesignLimits(arm.limits, workspace=DOWN)
    found = PostureSet.for_sensor(arm, 8, limits=limits, joints=[3, 4, 5])
    assert len(found) == 8
    assert DOWN.contains(found.R_base_flange).all()
    np.testing.assert_array_equal(found.q[:, :3], np.tile(arm.home[:3], (8, 1)))
    assert (found.q <= arm.limits.q_max).all()
    better = PostureSet.for_sensor(arm, 8, limits=limits, joints=[3, 4, 5], K=None)
    assert better.condition_number < 40


def test_random_postures_and_small_moves_of_gaz2017():
    arm = load_robot("lwr4")
    found = PostureSet.random(arm, 100, seed=1)
    assert found.q.shape == (100, arm.n)
    pick = np.array([0.0, 0.5, 0.0, -1.2, 0.0, 1.0, 0.0])
    moves = PostureSet.around(arm, pick)
    steps = (moves.q - pick) / np.radians(7)
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)
    assert np.abs(steps).max() == pytest.approx(1)
    assert len(np.unique(np.round(moves.q, 9), axis=0)) == 10
    assert 1 < moves.condition_number < 50


def test_refusals(arm):
    tight = OrientationWorkspace((Cone("z", (0, 0, 1.0), 1e-3), Cone("x", (0, 1.0, 0), 1e-3)))
    with pytest.raises(
        InfeasibleDesign, match=r"holds only \d+ orientations .*short of more than 15; widen it"
    ):
        tight.liu2025_orientations(15)
    with pytest.raises(
        InfeasibleDesign, match=r"of 1000 random orientations only 0 lie in the workspace"
    ):
        tight.random_orientations(1)
    for sample in (tight.liu2025_orientations, tight.random_orientations):
        with pytest.raises(InvalidTrajectory, match="at least 1 orientation, got 0"):
            sample(0)
    with pytest.raises(InvalidTrajectory, match="at least 1 posture, got 0"):
        PostureSet.random(arm, 0)
    with pytest.raises(InvalidTrajectory, match="at least 1 posture, got 0"):
        PostureSet.around(arm, arm.home, count=0)
    with pytest.raises(InvalidTrajectory, match="pick must be 6 finite numbers"):
        PostureSet.around(arm, [0.0])
    high = DesignLimits(arm.limits, height=(9.0, 10.0))
    with pytest.raises(InfeasibleDesign, match="of 200 random postures only 0 keep all limits"):
        PostureSet.random(arm, 1, limits=high)
    with pytest.raises(InfeasibleDesign, match="only 0 of the moves around the pick posture"):
        PostureSet.around(arm, arm.home, limits=high)
    with pytest.raises(InfeasibleDesign, match=r"kr60ha reaches 0 of \d+ orientations .*2 too few"):
        PostureSet.for_sensor(arm, 2, limits=high)


def test_postures_count_with_where_things_fall():
    robot = load_robot("kr60ha")
    q = np.random.default_rng(3).uniform(-0.5, 0.5, (9, 6)) + robot.home
    on_a_wall = PostureSet.at(robot.with_gravity([0.0, 9.81, 0.0]), q)
    np.testing.assert_array_equal(on_a_wall.gravity_base, [0.0, 9.81, 0.0])
    falls = on_a_wall.R_base_flange[4].T @ [0.0, 9.81, 0.0]
    moment = on_a_wall.sensor_rows[4, 3:, 6:9] @ [0.1, -0.2, 0.3]
    np.testing.assert_allclose(moment, np.cross([0.1, -0.2, 0.3], falls), atol=1e-12)
    assert on_a_wall.condition_number != PostureSet.at(robot, q).condition_number


def test_postures_without_gravity_are_refused():
    weightless = load_robot("planar2r").with_gravity([0.0, 0.0, 0.0])
    with pytest.raises(InfeasibleDesign, match="nothing has a weight without gravity"):
        PostureSet.random(weightless, 3)
