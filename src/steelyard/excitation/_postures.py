"""Static postures: where to stop and measure, and how the flange gets there.

A greedy D-optimal choice takes from candidates, one after the other, the posture that raises log
det of the information most. For a wrench sensor at rest the unknowns are m g in the base (3), zero
drift of the force (3), first moment (3) and zero drift of the moment (3), with g_s = R' g the
gravity in the sensor,

    f = R' (m g) + f_0,      n = (m c) x g_s + n_0.

Joint positions for an orientation of the flange, and a position where one is requested, come from
bounded least squares on the rotation vector of R_target' R(q) (and the position error), from the
home posture and from random ones. The Jacobian is that of the flange: its velocity for unit speed
of each joint; with e the rotation vector, d e = J_r^-1(e) w dt, and J_r^-1 is close to the identity
where e is small, which suffices for descent.
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

_PRIOR = 1e-6
_LENGTH = 1.0  # metres that count as much as one radian
_REACHED = 1e-6
_TRIES = 8


@dataclass(frozen=True, eq=False)
class PostureSet:
    """Postures of an arm at which to stop and measure.

    Attributes:
        q: joint positions, (N, n) [rad or m]
        R_base_flange: orientation of the flange in each, (N, 3, 3)
        condition_number: of the static equations that they give
        gravity_base: where things fall, (3,) [m/s^2], in the base frame
    """

    q: Array
    R_base_flange: Array
    condition_number: float
    gravity_base: Array = field(default_factory=lambda: np.array(GRAVITY_DOWN))

    def __len__(self) -> int:
        return len(self.q)

    @classmethod
    def at(cls, robot: RobotModel, q: ArrayLike) -> PostureSet:
        """Given postures q, (N, n) [rad or m], judged by the equations of a wrench sensor at the flange."""
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
        """The most informative postures for a wrench sensor within reach, by a greedy D-optimal choice.

        Args:
            limits: to keep, with the workspace; those of the robot by default
            joints: that may move, from 0; all by default
            K: of liu2025's Algorithm 1, which gives the candidates; None for random candidates
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
            limits: to keep, with the workspace; those of the robot by default
            joints: that may move, from 0; all by default
            K: share of gamma_z that gamma_x gets
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
            " more than"
            f" {count}; widen the workspace or let more joints move"
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
                return _held(robot, kept[:count])
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
        """Small moves of the joints around a pick posture (gaz2017 section VI), the most informative first.

        Args:
            pick: the posture, (n,) [rad or m]
            step: of each joint that moves, up or down, [rad or m]
            limits: to keep; those of the robot by default
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
        return _held(robot, q[_chosen(_torque_rows(robot, q), count)])


def _held(robot: RobotModel, q: Array) -> PostureSet:
    """Postures judged by the equations of the joint torques that hold a payload."""
    condition_number = _condition_number(_torque_rows(robot, q))
    return PostureSet(
        q, robot.forward_kinematics(q)[:, :3, :3], condition_number, robot.gravity_base
    )


def _condition_number(rows: Array) -> float:
    """Of rows (N, r, p), for the combinations of unknowns that they determine."""
    values = np.linalg.svd(rows.reshape(-1, rows.shape[2]), compute_uv=False)
    determined = values[values > 1e-9 * values[0]]
    return float(determined[0] / determined[-1])


def _sensor_rows(R: Array, gravity_base: Array) -> Array:
    A = np.zeros((len(R), 6, 12))
    A[:, :3, :3] = np.swapaxes(R, 1, 2)
    A[:, :3, 3:6] = np.eye(3)
    A[:, 3:, 9:] = np.eye(3)
    A[:, 3:, 6:9] = -skew(np.swapaxes(R, 1, 2) @ gravity_base)
    return A


def _torque_rows(robot: RobotModel, q: Array) -> Array:
    """The torques at rest by mass and first moment of a payload, (N, n, 4)."""
    still = np.zeros_like(q)
    return robot.payload_regressor(q, still, still)[:, :, :4]


def _chosen(rows: Array, count: int) -> Indices:
    """The candidates, with rows (N, r, p), that raise log det of the information most, (count,)."""
    scale = np.sqrt((rows**2).sum(axis=(0, 1)).max() / len(rows))
    A = rows / scale
    information = _PRIOR * np.eye(rows.shape[2])
    left = list(range(len(rows)))
    chosen = []
    for _ in range(count):
        inner = np.eye(A.shape[1]) + A[left] @ np.linalg.solve(
            information, np.swapaxes(A[left], 1, 2)
        )
        best = left.pop(int(np.linalg.slogdet(inner)[1].argmax()))
        information = information + A[best].T @ A[best]
        chosen.append(best)
    return np.array(chosen, dtype=np.intp)


def _reached(
    robot: RobotModel, R: Array, limits: DesignLimits, joints: Sequence[int] | None
) -> list[Array]:
    """Postures for those orientations that can be reached inside all limits."""
    found: list[Array] = []
    for orientation in R:
        if found:
            near = found[-1]
        else:
            near = robot.home
        try:
            q = inverse_kinematics(
                robot, orientation, joints=joints, near=near, limits=limits.joints
            )
        except InfeasibleDesign:
            continue
        if _inside(robot, limits, q[None])[0]:
            found.append(q)
    return found


def _inside(robot: RobotModel, limits: DesignLimits, q: Array) -> Mask:
    return limits.room_at_rest(robot, q) >= -1e-6


def inverse_kinematics(
    robot: RobotModel,
    R_base_flange: ArrayLike,
    *,
    position: ArrayLike | None = None,
    joints: Sequence[int] | None = None,
    near: ArrayLike | None = None,
    limits: JointLimits | None = None,
) -> Array:
    """Joint positions that turn (and bring) the flange where it is requested, (n,) [rad or m].

    Args:
        R_base_flange: requested orientation, (3, 3)
        position: requested position of the flange, (3,) [m], in the base frame; any by default
        joints: that may move, from 0; all by default
        near: posture to start from and to stay at otherwise, (n,); home by default
        limits: of the joints; those of the robot by default
    """
    R = np.asarray(R_base_flange, dtype=float)
    if position is None:
        p = None
    else:
        p = np.asarray(position, dtype=float)
    if joints is None:
        moving = np.arange(robot.n)
    else:
        moving = np.array(sorted(joints), dtype=np.intp)
    base = np.array(robot.home if near is None else near, dtype=float)
    if limits is None:
        bounds = robot.limits
    else:
        bounds = limits
    low = np.maximum(bounds.q_min, base - 2 * np.pi)[moving]
    high = np.minimum(bounds.q_max, base + 2 * np.pi)[moving]
    rng = np.random.default_rng(0)
    best = base
    smallest = np.inf
    for k in range(_TRIES):
        if k == 0:
            guess = np.clip(base[moving], low, high)
        else:
            guess = rng.uniform(low, high)
        x0 = np.clip(guess, low + 1e-9, high - 1e-9)
        found = least_squares(
            lambda x: _error(robot, _with_moved(base, moving, x), R, p),
            x0,
            jac=lambda x: _jacobian(robot, _with_moved(base, moving, x), R, p)[:, moving],
            bounds=(low, high),
            xtol=1e-14,
            ftol=1e-14,
            gtol=1e-14,
        )
        size = float(np.abs(found.fun).max())
        if size < smallest:
            best = _with_moved(base, moving, found.x)
            smallest = size
        if smallest < _REACHED:
            return best
    raise InfeasibleDesign(
        f"{robot.name} cannot bring its flange there: the nearest posture found within the limits"
        " misses by"
        f" {np.degrees(smallest):.3g}"
        f" degrees{'' if p is None else f' or {smallest * _LENGTH:.3g} m'}"
    )


def _with_moved(base: Array, moving: Indices, x: Array) -> Array:
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
