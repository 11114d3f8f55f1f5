"""Whether a controller's arm is the arm of a model, by the pose of its flange."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array
from steelyard.errors import InvalidRobot
from steelyard.robot import RobotModel

_MAX_FLANGE_ERROR = 0.02  # [m], between two arms of one type


def require_same_arm(robot: RobotModel, values: dict[str, Array], name: str) -> None:
    """Raises an error if the flange is not where the model predicts it.

    A rotation of the base about the vertical axis is ignored. Rows without a pose of the flange are
    accepted.

    Args:
        robot: the arm of the model
        values: of one row or several, by RTDE's or libfranka's names
        name: of the source
    """
    if (found := _flange_of(values)) is None:
        return
    there, q = found
    ours = robot.forward_kinematics(q)
    places = [(np.hypot(T[0, 3], T[1, 3]), T[2, 3]) for T in (there, ours)]
    if max(abs(x - y) for x, y in zip(*places, strict=True)) > _MAX_FLANGE_ERROR:
        words = [
            f"{1e3 * out:.0f} mm from the vertical axis and {1e3 * up:.0f} mm high"
            for out, up in places
        ]
        raise InvalidRobot(
            f"{name} is not the arm of the model: its flange is {words[0]}, that of"
            f" {robot.name} would be {words[1]}"
        )


def reports_flange(values: dict[str, Array]) -> bool:
    """Whether rows contain a pose of the flange, which `require_same_arm` can compare.

    Args:
        values: of one row or several, by RTDE's or libfranka's names
    """
    return _flange_of(values) is not None


def _flange_of(values: dict[str, Array]) -> tuple[Array, Array] | None:
    """The reported pose of the flange, (4, 4), and the joint positions; None without a pose."""

    def first(word: str, count: int) -> Array:
        return np.array([values.get(f"{word}_{k}", [np.nan])[0] for k in range(count)])

    pose = first("actual_TCP_pose", 6)
    offset = first("tcp_offset", 6)
    if np.isfinite([*pose, *offset]).all() and pose.any():
        return _transform(pose) @ np.linalg.inv(_transform(offset)), first("actual_q", 6)
    tool, tip = (first(word, 16).reshape(4, 4).T for word in ("O_T_EE", "F_T_EE"))
    if np.isfinite([*tool, *tip]).all() and tool.any():
        return tool @ np.linalg.inv(tip), first("q", 7)
    return None


def _transform(pose: Array) -> Array:
    """The transform of a position [m] and a rotation vector, (4, 4)."""
    T = np.eye(4)
    T[:3, 3] = pose[:3]
    T[:3, :3] = Rotation.from_rotvec(pose[3:]).as_matrix()
    return T
