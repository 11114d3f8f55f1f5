"""liu2025 section IV: feasible workspace, Algorithm 1, and the objective (40)."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.errors import InfeasibleDesign
from steelyard.excitation import DesignLimits, Liu2025, OrientationWorkspace, Sector
from steelyard.excitation._gradients import RegressorRows
from steelyard.robot import load_robot
from steelyard.trajectory import FourierTrajectory
from steelyard_papers.liu2025.postures import postures_for


def wrist_motion() -> FourierTrajectory:
    rng = np.random.default_rng(7)
    sine, cosine = np.zeros((6, 5)), np.zeros((6, 5))
    sine[3:], cosine[3:] = rng.normal(size=(2, 3, 5)) / 2
    return FourierTrajectory(sine, cosine, [0.0, -1.57, 1.57, 0.3, 0.8, 0.2], 10.0)


def test_axes_in_spherical_coordinates_are_those_of_eq_36():
    theta, phi = 0.7, -2.1
    x = np.array([[np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)]])
    sector = Sector("x", (theta - 0.1, theta + 0.3), (phi - 0.2, phi + 0.5))
    assert sector.margin(x)[0] == pytest.approx(min(0.1, 0.2 * np.sin(theta)))


def test_algorithm_1_as_printed_adds_postures_again_and_ours_does_not():
    """n = 1 and n = 2 share every posture of n = 1; fewer gravity directions differ."""
    ours = OrientationWorkspace().liu2025_orientations(3, K=-0.2)
    gravity = ours[:, 2]
    assert len(np.unique(np.round(gravity, 9), axis=0)) == len(ours)
    assert len(ours) < 4 + 9


def test_orientations_are_reached_in_their_order_or_refused():
    arm = load_robot("kr60ha")
    q = arm.home + np.random.default_rng(5).uniform(-0.4, 0.4, size=(3, 6)) * [0, 0, 0, 1, 1, 1]
    wanted = arm.forward_kinematics(q)[:, :3, :3]
    found = postures_for(arm, wanted, limits=DesignLimits(arm.limits), joints=[3, 4, 5])
    np.testing.assert_allclose(found.R_base_flange, wanted, atol=1e-5)
    with pytest.raises(
        InfeasibleDesign, match=r"orientation 1 of 1: kr60ha cannot reach this pose of its flange"
    ):
        postures_for(arm, np.diag([1.0, -1.0, -1.0])[None], joints=[5])
    high = DesignLimits(arm.limits, height=(9.0, 10.0))
    with pytest.raises(
        InfeasibleDesign, match=r"posture 1 breaks a limit: flange: lowest height, .* beyond 9"
    ):
        postures_for(arm, arm.forward_kinematics(arm.home)[None, :3, :3], limits=high)


def test_a_point_mass_in_the_wrist_centre_cannot_be_seen_without_weight():
    arm, wrist = load_robot("kr60ha"), np.array([3, 4, 5])
    for gravity, count in ((False, 9), (True, 10)):
        objective = Liu2025(gravity=gravity)
        criterion = objective.criterion(arm, DesignLimits(arm.limits), wrist_motion().offset, wrist)
        assert len(criterion.rows.columns) == count


def test_objective_40_is_the_condition_of_the_normal_matrix():
    arm, motion = load_robot("kr60ha"), wrist_motion()
    t = np.arange(1250) / 125.0
    rows = RegressorRows("wrench", np.arange(10), np.ones(6))
    C = rows.exact(arm, *motion.at(t)).reshape(-1, 10)
    value = Liu2025(gravity=True).evaluate(arm, motion)
    assert value == pytest.approx(np.linalg.cond(C.T @ C), rel=1e-6)


def test_objective_40_as_printed_is_singular_for_every_motion_of_a_wrist():
    """Without weight a point mass in the centre of the wrist leaves no trace in the wrench."""
    arm = load_robot("kr60ha")
    middle = [0.0, -1.57, 1.57, 0.3, 0.8, 0.2]
    t = np.arange(250) / 25.0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        sine, cosine = np.zeros((6, 5)), np.zeros((6, 5))
        sine[3:], cosine[3:] = rng.normal(size=(2, 3, 5)) / 2
        signals = FourierTrajectory(sine, cosine, middle, 10.0).at(t)
        without, counted = (
            RegressorRows("wrench", np.arange(10), np.ones(6), gravity).exact(arm, *signals)
            for gravity in (False, True)
        )
        ranks = [np.linalg.matrix_rank(x.reshape(-1, 10), tol=1e-7) for x in (without, counted)]
        assert ranks == [9, 10]
        nothing = np.linalg.svd(without.reshape(-1, 10))[2][-1]
        mass, moment = nothing[0], nothing[1:4]
        wrist = moment / mass
        places = arm.forward_kinematics(signals[0]) @ np.append(wrist, 1.0)
        assert np.ptp(places[:, :3], axis=0).max() < 1e-6  # it stands still


def own_rows(R, c, step_s):
    """Rows of the wrench about the sensor's origin in ten parameters, weight left out, own code.

    The sensor is fixed to a hand that turns about a point; c is the sensor seen from that point, in
    the frame of the hand. Order: m, m c, then Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin.
    """

    def cross(x):
        return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])

    def spread(x):  # I w = spread(w) @ (Ixx, Ixy, Iyy, Ixz, Iyz, Izz)
        return np.array(
            [[x[0], x[1], 0, x[2], 0, 0], [0, x[0], x[1], 0, x[2], 0], [0, 0, 0, x[0], x[1], x[2]]]
        )

    spin = np.einsum("nji,njk->nik", R[1:-1], (R[2:] - R[:-2]) / (2 * step_s))
    w = np.column_stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]])
    alpha = np.gradient(w, step_s, axis=0)
    blocks = []
    for omega, turning in zip(w, alpha, strict=True):
        field = cross(turning) + cross(omega) @ cross(omega)
        a = field @ c
        force = np.column_stack([a, field, np.zeros((3, 6))])
        inertia = spread(turning) + cross(omega) @ spread(omega)
        blocks += [force, np.column_stack([np.zeros(3), -cross(a), inertia])]
    return np.vstack(blocks)


def test_own_code_finds_objective_40_singular_for_every_turning_about_a_point():
    """A point mass in the centre of the wrist, seen at -c from the sensor, leaves no wrench."""
    step_s = 1e-3
    t = np.arange(0.0, 4.0, step_s)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        angles = sum(rng.normal(size=3) * np.sin(np.outer(t, [k, k, k]) + k) for k in (1, 2, 3))
        c = np.array([0.05, -0.02, 0.3]) + 0.1 * rng.normal(size=3)
        rows = own_rows(Rotation.from_euler("zyz", angles).as_matrix(), c, step_s)[:-12]
        x, y, z = -c
        about = [y**2 + z**2, -x * y, x**2 + z**2, -x * z, -y * z, x**2 + y**2]
        point_mass = np.array([1.0, x, y, z, *about])
        size = np.linalg.norm(rows, axis=0)
        assert np.linalg.norm(rows @ point_mass) < 1e-9 * np.linalg.norm(size * point_mass)
        s = np.linalg.svd(rows / size, compute_uv=False)
        assert s[-1] < 1e-9 * s[0] < 1e-5 * s[-2]
