"""Position of the tool and its inverse, as a controller computes them for a program.

A pose is a position [m] and a rotation vector [rad] of the tool centre point in the base frame,
(6,). The inverse is Newton's method from a nearby posture, with damping near singular postures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array
from steelyard.robot import RobotModel

_MAX_ITERATIONS = 50
_TOLERANCE = 1e-9  # of a pose, [m] and [rad]
_DAMPING = 1e-4
_MAX_CHANGE = 0.3  # of a joint in one iteration, [rad]
_RADIUS = 0.2  # length that a turn of 1 rad counts as, [m]


class ToolKinematics:
    """Kinematics of an arm with a tool.

    Args:
        robot: the arm
        tcp: pose of the tool centre point in the flange frame, (6,) [m, rad]
    """

    def __init__(self, robot: RobotModel, tcp: Sequence[float] = (0.0,) * 6) -> None:
        self._robot = robot
        self.tcp = tuple(tcp)
        self.T_flange_tcp = transform(self.tcp)

    def pose(self, q: Array) -> Array:
        """Pose of the tool, (6,), at joint positions q, (6,) [rad]."""
        return pose_of(self._robot.forward_kinematics(q) @ self.T_flange_tcp)

    def jacobian(self, q: Array) -> Array:
        """Matrix from joint velocities to the velocity of the tool, (6, 6), at q, (6,) [rad]."""
        J = self._robot.frame_jacobian(q)
        lever = self._robot.forward_kinematics(q)[:3, :3] @ self.T_flange_tcp[:3, 3]
        linear = J[:3] + np.cross(J[3:].T, lever).T
        return np.vstack([linear, J[3:]])

    def joint_velocity(self, q: Array, velocity: Array) -> Array:
        """Joint velocities, (6,), for a velocity of the tool, (6,), at q, (6,) [rad]."""
        J = self.jacobian(q)
        return np.asarray(J.T @ np.linalg.solve(J @ J.T + _DAMPING**2 * np.eye(6), velocity))

    def inverse(self, pose: Array, near: Array) -> Array:
        """Joint positions, (6,) [rad], for a pose, (6,).

        Args:
            pose: pose of the tool, (6,)
            near: joint positions to start from, (6,) [rad]

        Raises:
            ValueError: no solution was found
        """
        q = np.array(near, dtype=float)
        for _ in range(_MAX_ITERATIONS):
            error = self._error(pose, q)
            if np.abs(error).max() < _TOLERANCE:
                return q
            change = self.joint_velocity(q, error)
            q = q + change * min(1.0, _MAX_CHANGE / max(np.abs(change).max(), 1e-12))
        if np.abs(self._error(pose, q)).max() < 1e-4:
            return q
        raise ValueError("no joint positions were found for this pose")

    def _error(self, pose: Array, q: Array) -> Array:
        """Velocity that would lead to a pose in one second, (6,)."""
        T = self._robot.forward_kinematics(q) @ self.T_flange_tcp
        goal = transform(pose)
        turn = Rotation.from_matrix(goal[:3, :3] @ T[:3, :3].T).as_rotvec()
        return np.concatenate([goal[:3, 3] - T[:3, 3], turn])

    def distance(self, start: Array, goal: Array) -> float:
        """Length of the way from the pose `start` to the pose `goal`, (6,) each, [m]."""
        turn = Rotation.from_rotvec(goal[3:]) * Rotation.from_rotvec(start[3:]).inv()
        straight = float(np.linalg.norm(goal[:3] - start[:3]))
        return max(straight, _RADIUS * float(turn.magnitude()))

    def between(self, start: Array, goal: Array, share: float) -> Array:
        """The pose at a share, 0 to 1, of the way from start to goal, (6,) each."""
        first = Rotation.from_rotvec(start[3:])
        turn = (Rotation.from_rotvec(goal[3:]) * first.inv()).as_rotvec()
        rotation = Rotation.from_rotvec(share * turn) * first
        return np.concatenate([start[:3] + share * (goal[:3] - start[:3]), rotation.as_rotvec()])


def transform(pose: Sequence[float] | Array) -> Array:
    """The homogeneous transform of a pose, (6,)."""
    T = np.eye(4)
    T[:3, :3] = Rotation.from_rotvec(np.asarray(pose)[3:]).as_matrix()
    T[:3, 3] = np.asarray(pose)[:3]
    return T


def pose_of(T: Array) -> Array:
    """Position [m] and rotation vector [rad] of a transform T, (4, 4)."""
    return np.array([*T[:3, 3].tolist(), *_rotation_vector(T[:3, :3].tolist())])


def _rotation_vector(R: list[list[float]]) -> tuple[float, float, float]:
    """The rotation vector of a matrix, [rad]; ten times as fast as SciPy's for a single one.

    The quaternion (w, x, y, z) is found from its largest component (Shepperd), so that no
    difference of nearly equal numbers occurs.
    """
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R
    trace = xx + yy + zz
    largest = max(trace, xx, yy, zz)
    if largest == trace:
        quaternion = (1 + trace, zy - yz, xz - zx, yx - xy)
    elif largest == xx:
        quaternion = (zy - yz, 1 + xx - yy - zz, yx + xy, xz + zx)
    elif largest == yy:
        quaternion = (xz - zx, yx + xy, 1 + yy - xx - zz, zy + yz)
    else:
        quaternion = (yx - xy, xz + zx, zy + yz, 1 + zz - xx - yy)
    w, x, y, z = quaternion
    sine = math.sqrt(x * x + y * y + z * z)
    if sine == 0:
        return 0.0, 0.0, 0.0
    angle = 2 * math.atan2(sine, abs(w))
    scale = math.copysign(angle / sine, w)
    return scale * x, scale * y, scale * z
