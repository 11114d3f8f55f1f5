"""Joint angles for an orientation of the flange, and a position where one is wanted, within limits.

Bounded least squares on the rotation vector of R_target' R(q) (and the position error), from the home
posture and from random ones. The Jacobian is that of the flange: its velocity for unit speed of each
joint; with e the rotation vector, d e = J_r^-1(e) w dt, and J_r^-1 is close to the identity where e is
small, which suffices for descent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from steelyard.arrays import Array
from steelyard.errors import InfeasibleDesign
from steelyard.robot import JointLimits, RobotModel

_LENGTH = 1.0  # metres that count as much as one radian
_REACHED = 1e-6
_TRIES = 8


def inverse_kinematics(
    robot: RobotModel,
    R_base_flange: ArrayLike,
    *,
    position: ArrayLike | None = None,
    joints: Sequence[int] | None = None,
    near: ArrayLike | None = None,
    limits: JointLimits | None = None,
) -> Array:
    """Joint positions that turn (and bring) the flange where it is wanted, (n,) [rad or m].

    Args:
        robot: the arm
        R_base_flange: wanted orientation, (3, 3)
        position: wanted position of the flange, (3,) [m], in the base frame; any by default
        joints: that may move, from 0; all by default
        near: posture to start from and to stay at otherwise, (n,); home by default
        limits: of the joints; those of the robot by default
    """
    R = np.asarray(R_base_flange, dtype=float)
    p = None if position is None else np.asarray(position, dtype=float)
    moving = np.arange(robot.n) if joints is None else np.array(sorted(joints), dtype=np.intp)
    base = np.array(robot.home if near is None else near, dtype=float)
    bounds = robot.limits if limits is None else limits
    low, high = (
        np.maximum(bounds.q_min, base - 2 * np.pi)[moving],
        np.minimum(bounds.q_max, base + 2 * np.pi)[moving],
    )
    rng = np.random.default_rng(0)
    best, smallest = base, np.inf
    for k in range(_TRIES):
        guess = np.clip(base[moving], low, high) if k == 0 else rng.uniform(low, high)
        x0 = np.clip(guess, low + 1e-9, high - 1e-9)
        found = least_squares(
            lambda x: _error(robot, _posture(base, moving, x), R, p),
            x0,
            jac=lambda x: _jacobian(robot, _posture(base, moving, x), R, p)[:, moving],
            bounds=(low, high),
            xtol=1e-14,
            ftol=1e-14,
            gtol=1e-14,
        )
        size = float(np.abs(found.fun).max())
        if size < smallest:
            best, smallest = _posture(base, moving, found.x), size
        if smallest < _REACHED:
            return best
    raise InfeasibleDesign(
        f"{robot.name} cannot bring its flange there: the nearest posture found within the limits misses by"
        f" {np.degrees(smallest):.3g} degrees{'' if p is None else f' or {smallest * _LENGTH:.3g} m'}"
    )


def _posture(base: Array, moving: NDArray[np.intp], x: Array) -> Array:
    q = base.copy()
    q[moving] = x
    return q


def _error(robot: RobotModel, q: Array, R: Array, position: Array | None) -> Array:
    T = robot.forward_kinematics(q)
    turn = Rotation.from_matrix(R.T @ T[:3, :3]).as_rotvec()
    return turn if position is None else np.concatenate([turn, (T[:3, 3] - position) / _LENGTH])


def _jacobian(robot: RobotModel, q: Array, R: Array, position: Array | None) -> Array:
    n = robot.n
    motion = robot.frame_motion(np.tile(q, (n, 1)), np.eye(n), np.zeros((n, n)))
    if position is None:
        return np.asarray(motion.angular_velocity.T)
    linear = robot.forward_kinematics(q)[:3, :3] @ motion.linear_velocity.T / _LENGTH
    return np.vstack([motion.angular_velocity.T, linear])
