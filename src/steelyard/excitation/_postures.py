"""Static postures for measurements at rest, and inverse kinematics.

A greedy D-optimal choice adds candidates one at a time: always the posture that increases log det
of the information most. For a wrench sensor at rest the unknowns are m g in the base frame (3), the
zero drift of the force (3), the first moment (3) and the zero drift of the moment (3). With
g_s = R' g, gravity in the sensor frame,

    f = R' (m g) + f_0,      n = (m c) x g_s + n_0.

Inverse kinematics is bounded least squares on the rotation vector of R_target' R(q), and on the
position error if a position is requested, started from the home posture and from random ones. The
Jacobian is the flange's velocity for unit speed of each joint. With e the rotation vector,
d e = J_r^-1(e) w dt; J_r^-1 is close to the identity for small e, which suffices for descent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array, Indices, Mask, finite
from steelyard._units import GRAVITY_DOWN
from steelyard.errors import InfeasibleDesign, InvalidTrajectory
from steelyard.excitation._limits import DesignLimits
from steelyard.excitation._workspace import OrientationWorkspace
from steelyard.inertia import skew
from steelyard.robot import JointLimits, RobotModel

_PRIOR_INFORMATION = 1e-6  # relative; makes log det finite before the first postures
_METRES_PER_RADIAN = 1.0  # weight of position errors in inverse kinematics
_MAX_POSE_ERROR = 1e-6  # [rad, or m over _METRES_PER_RADIAN]
_MAX_STARTS = 8


@dataclass(frozen=True, eq=False)
class PostureSet:
    """Postures of an arm at which to stop and measure.

    Attributes:
        q: joint positions, (N, n) [rad or m]
        R_base_flange: orientation of the flange in each posture, (N, 3, 3)
        condition_number: condition number of their static equations
        gravity_base: gravity, (3,) [m/s^2], in the base frame
    """

    q: Array
    R_base_flange: Array
    condition_number: float
    gravity_base: Array = field(default_factory=lambda: np.array(GRAVITY_DOWN))

    def __len__(self) -> int:
        return len(self.q)

    @classmethod
    def at(cls, robot: RobotModel, q: ArrayLike) -> PostureSet:
        """The postures q, (N, n) [rad or m], judged for a wrench sensor at the flange."""
        positions = np.array(q, dtype=float)
        R = robot.forward_kinematics(positions)[:, :3, :3]
        return cls(
            positions, R, _condition_number(_sensor_rows(R, robot.gravity_base)), robot.gravity_base
        )

    @property
    def sensor_rows(self) -> Array:
        """The rows of a wrench sensor at the flange at rest in each posture, (N, 6, 12)."""
        return _sensor_rows(self.R_base_flange, self.gravity_base)

    @classmethod
    def for_sensor(
        cls,
        robot: RobotModel,
        count: int,
        *,
        limits: DesignLimits | None = None,
        joints: Sequence[int] | None = None,
        K: float | None = -0.2,
        seed: int = 0,
    ) -> PostureSet:
        """The most informative reachable postures for a wrench sensor (greedy D-optimal choice).

        Args:
            robot: the arm
            count: number of postures
            limits: limits and workspace to keep; those of the robot by default
            joints: indices of the joints that may move, from 0; all by default
            K: parameter of liu2025's Algorithm 1, which generates the candidates; None for random
                candidates
            seed: seed of random candidates
        """
        bounds = limits or DesignLimits.of(robot)
        workspace = bounds.workspace or OrientationWorkspace()
        reached: list[Array] = []
        for many in (2, 8):
            if K is None:
                R = workspace.random_orientations(many * count, seed=seed)
            else:
                R = workspace.liu2025_orientations(many * count // 2, K=K)
            reached = _reached(robot, R, bounds, joints)
            if len(reached) >= count:
                break
        else:
            raise InfeasibleDesign(
                f"{robot.name} reaches {len(reached)} of {len(R)} orientations of the workspace,"
                f" {count - len(reached)} too few; widen the workspace or let more joints move"
            )
        candidates = cls.at(robot, reached)
        return cls.at(robot, candidates.q[_chosen(candidates.sensor_rows, count)])

    @classmethod
    def liu2025(
        cls,
        robot: RobotModel,
        count: int,
        *,
        limits: DesignLimits | None = None,
        joints: Sequence[int] | None = None,
        K: float = -0.2,
    ) -> PostureSet:
        """The postures of liu2025's Algorithm 1 as printed: more than `count`, without repeats.

        Args:
            robot: the arm
            count: N_target of the paper
            limits: limits and workspace to keep; those of the robot by default
            joints: indices of the joints that may move, from 0; all by default
            K: ratio of gamma_x to gamma_z
        """
        bounds = limits or DesignLimits.of(robot)
        workspace = bounds.workspace or OrientationWorkspace()
        for many in (1, 2, 4):
            R = workspace.liu2025_orientations(many * count, K=K)
            reached = _reached(robot, R, bounds, joints)
            if len(reached) > count:
                return cls.at(robot, reached)
        raise InfeasibleDesign(
            f"{robot.name} reaches {len(reached)} of {len(R)} orientations of Algorithm 1, not"
            f" more than {count}; widen the workspace or let more joints move"
        )

    @classmethod
    def random(
        cls, robot: RobotModel, count: int, *, limits: DesignLimits | None = None, seed: int = 0
    ) -> PostureSet:
        """Random postures inside all limits (gaz2017 section V), by default those of the robot."""
        if count < 1:
            raise InvalidTrajectory(f"there must be at least 1 posture, got {count}")
        bounds = limits or DesignLimits.of(robot)
        low = np.maximum(bounds.joints.q_min, robot.home - np.pi)
        high = np.minimum(bounds.joints.q_max, robot.home + np.pi)
        rng = np.random.default_rng(seed)
        kept = np.zeros((0, robot.n))
        for _ in range(50):
            q = rng.uniform(low, high, (4 * count, robot.n))
            kept = np.concatenate([kept, q[_inside(robot, bounds, q)]])
            if len(kept) >= count:
                return _for_torques(robot, kept[:count])
        raise InfeasibleDesign(f"of {200 * count} random postures only {len(kept)} keep all limits")

    @classmethod
    def around(
        cls,
        robot: RobotModel,
        pick: ArrayLike,
        *,
        count: int = 10,
        step: float = np.radians(7.0),
        limits: DesignLimits | None = None,
    ) -> PostureSet:
        """Small moves around a pick posture, the most informative first (gaz2017 section VI).

        Args:
            robot: the arm
            pick: central posture, (n,) [rad or m]
            count: number of postures
            step: move of each joint, up or down, [rad or m]
            limits: limits to keep; those of the robot by default
        """
        bounds = limits or DesignLimits.of(robot)
        centre = finite(pick, (robot.n,), "pick", InvalidTrajectory)
        if count < 1:
            raise InvalidTrajectory(f"there must be at least 1 posture, got {count}")
        signs = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], (20 * count, robot.n))
        moves = np.unique(np.vstack([np.eye(robot.n), -np.eye(robot.n), signs]), axis=0)
        q = centre + step * moves[np.abs(moves).any(axis=1)]
        q = q[_inside(robot, bounds, q)]
        if len(q) < count:
            raise InfeasibleDesign(
                f"only {len(q)} of the moves around the pick posture keep all limits, not {count}"
            )
        return _for_torques(robot, q[_chosen(_torque_rows(robot, q), count)])


def _for_torques(robot: RobotModel, q: Array) -> PostureSet:
    """The postures q, (N, n), judged for joint torques that hold a payload."""
    condition_number = _condition_number(_torque_rows(robot, q))
    return PostureSet(
        q, robot.forward_kinematics(q)[:, :3, :3], condition_number, robot.gravity_base
    )


def _condition_number(rows: Array) -> float:
    """The condition number of rows, (N, r, p), over the unknowns that they determine."""
    values = np.linalg.svd(rows.reshape(-1, rows.shape[2]), compute_uv=False)
    if not values[0] > 0:
        raise InfeasibleDesign("nothing has a weight without gravity: postures cannot weigh it")
    determined = values[values > 1e-9 * values[0]]
    return float(determined[0] / determined[-1])


def _sensor_rows(R: Array, gravity_base: Array) -> Array:
    """The rows of a wrench sensor at rest in orientations R, (N, 3, 3): (N, 6, 12)."""
    force = slice(0, 3)
    moment = slice(3, 6)
    weight, force_drift, first_moment, moment_drift = (slice(k, k + 3) for k in (0, 3, 6, 9))
    R_flange_base = np.swapaxes(R, 1, 2)
    rows = np.zeros((len(R), 6, 12))
    rows[:, force, weight] = R_flange_base
    rows[:, force, force_drift] = np.eye(3)
    rows[:, moment, first_moment] = -skew(R_flange_base @ gravity_base)
    rows[:, moment, moment_drift] = np.eye(3)
    return rows


def _torque_rows(robot: RobotModel, q: Array) -> Array:
    """The regressor at rest for mass and first moment of a payload, (N, n, 4)."""
    still = np.zeros_like(q)
    return robot.payload_regressor(q, still, still)[:, :, :4]


def _chosen(rows: Array, count: int) -> Indices:
    """Indices of the candidates that increase log det of the information most, (count,).

    Args:
        rows: rows of each candidate, (N, r, p)
        count: number of candidates to choose
    """
    scale = np.sqrt((rows**2).sum(axis=(0, 1)).max() / len(rows))
    A = rows / scale
    information = _PRIOR_INFORMATION * np.eye(rows.shape[2])
    remaining = list(range(len(rows)))
    chosen = []
    for _ in range(count):
        columns = np.swapaxes(A[remaining], 1, 2)
        gain = np.eye(A.shape[1]) + A[remaining] @ np.linalg.solve(information, columns)
        best = remaining.pop(int(np.linalg.slogdet(gain)[1].argmax()))
        information = information + A[best].T @ A[best]
        chosen.append(best)
    return np.array(chosen, dtype=np.intp)


def _reached(
    robot: RobotModel, R: Array, limits: DesignLimits, joints: Sequence[int] | None
) -> list[Array]:
    """Postures for the orientations R, (N, 3, 3), that are reachable inside all limits."""
    postures: list[Array] = []
    for orientation in R:
        near = postures[-1] if postures else robot.home
        try:
            q = inverse_kinematics(
                robot, orientation, joints=joints, near=near, limits=limits.joints
            )
        except InfeasibleDesign:
            continue
        if _inside(robot, limits, q[None])[0]:
            postures.append(q)
    return postures


def _inside(robot: RobotModel, limits: DesignLimits, q: Array) -> Mask:
    return limits.margin_at_rest(robot, q) >= -1e-6


def inverse_kinematics(
    robot: RobotModel,
    R_base_flange: ArrayLike,
    *,
    position: ArrayLike | None = None,
    joints: Sequence[int] | None = None,
    near: ArrayLike | None = None,
    limits: JointLimits | None = None,
) -> Array:
    """Joint positions for a requested pose of the flange, (n,) [rad or m].

    Args:
        robot: the arm
        R_base_flange: requested orientation, (3, 3)
        position: requested position of the flange, (3,) [m], in the base frame; free by default
        joints: indices of the joints that may move, from 0; all by default
        near: posture to start from and position of all other joints, (n,); home by default
        limits: limits of the joints; those of the robot by default
    """
    R = np.asarray(R_base_flange, dtype=float)
    p = None if position is None else np.asarray(position, dtype=float)
    moving = np.array(range(robot.n) if joints is None else sorted(joints), dtype=np.intp)
    base = np.array(robot.home if near is None else near, dtype=float)
    bounds = limits or robot.limits
    low = np.maximum(bounds.q_min, base - 2 * np.pi)[moving]
    high = np.minimum(bounds.q_max, base + 2 * np.pi)[moving]
    rng = np.random.default_rng(0)
    best = base
    smallest = np.inf
    for k in range(_MAX_STARTS):
        start = np.clip(base[moving], low, high) if k == 0 else rng.uniform(low, high)
        solution = least_squares(
            lambda x: _pose_error(robot, _with_moved(base, moving, x), R, p),
            np.clip(start, low + 1e-9, high - 1e-9),
            jac=lambda x: _jacobian(robot, _with_moved(base, moving, x), p)[:, moving],
            bounds=(low, high),
            xtol=1e-14,
            ftol=1e-14,
            gtol=1e-14,
        )
        largest = float(np.abs(solution.fun).max())
        if largest < smallest:
            best = _with_moved(base, moving, solution.x)
            smallest = largest
        if smallest < _MAX_POSE_ERROR:
            return best
    error = _pose_error(robot, best, R, p)
    missing = f"{np.degrees(np.linalg.norm(error[:3])):.3g} degrees"
    if p is not None:
        missing += f" and {np.linalg.norm(error[3:]) * _METRES_PER_RADIAN:.3g} m"
    raise InfeasibleDesign(
        f"{robot.name} cannot reach this pose of its flange: the nearest posture within the limits"
        f" misses it by {missing}"
    )


def _with_moved(base: Array, moving: Indices, x: Array) -> Array:
    """The posture `base` with the moving joints at x."""
    q = base.copy()
    q[moving] = x
    return q


def _pose_error(robot: RobotModel, q: Array, R: Array, position: Array | None) -> Array:
    """Rotation vector [rad] and scaled position error of the flange, (3,) or (6,)."""
    T = robot.forward_kinematics(q)
    rotation = Rotation.from_matrix(R.T @ T[:3, :3]).as_rotvec()
    if position is None:
        return np.asarray(rotation)
    return np.concatenate([rotation, (T[:3, 3] - position) / _METRES_PER_RADIAN])


def _jacobian(robot: RobotModel, q: Array, position: Array | None) -> Array:
    """The derivatives of the pose error by q, (3, n) or (6, n), near its zero."""
    n = robot.n
    motion = robot.frame_motion(np.tile(q, (n, 1)), np.eye(n), np.zeros((n, n)))
    if position is None:
        return np.asarray(motion.angular_velocity.T)
    linear = robot.forward_kinematics(q)[:3, :3] @ motion.linear_velocity.T / _METRES_PER_RADIAN
    return np.vstack([motion.angular_velocity.T, linear])
