"""Kinematics of the simulated controller: poses, their inverse and the Jacobian with a tool."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.robot import load_robot
from steelyard.twin._kinematics import ToolKinematics, pose_of, transform

Q = np.array([0.4, -1.1, 1.2, -1.4, -1.2, 0.3])
TCP = (0.02, -0.03, 0.15, 0.2, -0.4, 0.1)


@pytest.fixture(scope="module")
def kinematics():
    return ToolKinematics(load_robot("ur10e"), TCP)


def test_rotation_vectors_agree_with_scipy():
    generator = np.random.default_rng(0)
    axes = generator.normal(size=(200, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    angles = np.concatenate([generator.uniform(0, np.pi, 196), [0, 1e-9, np.pi - 1e-7, 3.1]])
    for vector in axes * angles[:, None]:
        T = np.eye(4)
        T[:3, :3] = Rotation.from_rotvec(vector).as_matrix()
        np.testing.assert_allclose(pose_of(T)[3:], vector, atol=1e-8)
        np.testing.assert_allclose(transform(pose_of(T)), T, atol=1e-9)


def test_the_jacobian_is_the_derivative_of_the_pose(kinematics):
    v = np.array([0.3, -0.2, 0.5, 0.1, -0.4, 0.6])
    h = 1e-6
    before, after = (transform(kinematics.pose(Q + s * h * v)) for s in (-1, 1))
    linear = (after[:3, 3] - before[:3, 3]) / (2 * h)
    turn = Rotation.from_matrix(after[:3, :3] @ before[:3, :3].T).as_rotvec() / (2 * h)
    np.testing.assert_allclose(kinematics.jacobian(Q) @ v, [*linear, *turn], atol=1e-6)


def test_the_inverse_finds_the_posture_again(kinematics):
    near = Q + np.array([0.2, -0.1, 0.15, 0.1, -0.2, 0.3])
    np.testing.assert_allclose(kinematics.inverse(kinematics.pose(Q), near), Q, atol=1e-7)
    with pytest.raises(ValueError, match="no joint positions were found for this pose"):
        kinematics.inverse(np.array([5.0, 0, 0, 0, 0, 0]), Q)
