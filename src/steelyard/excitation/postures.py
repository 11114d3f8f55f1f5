"""Static postures: where to stop and measure.

liu2025 Algorithm 1 divides the Z-Y-X angles of the sensor evenly, gamma_z in [0, 2 pi] and gamma_y in
[0, pi] by n = 1, 2, ..., with gamma_x = K gamma_z (or -K (2 pi - gamma_z) beyond pi), and keeps what
lies in the feasible workspace until there are enough. A posture whose gravity direction in the sensor is
there already says nothing new and is left out; so are those that the paper's loop adds again with every
larger n.

A greedy D-optimal choice takes from candidates, one after the other, the posture that raises log det of
the information most. For a wrench sensor at rest the unknowns are m g in the base (3), zero drift of the
force (3), first moment (3) and zero drift of the moment (3), with g_s = R' g the gravity in the sensor,

    f = R' (m g) + f_0,      n = (m c) x g_s + n_0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from steelyard.arrays import Array
from steelyard.errors import InfeasibleDesign, InvalidTrajectory
from steelyard.excitation.inverse import inverse_kinematics
from steelyard.excitation.limits import DesignLimits
from steelyard.excitation.start import posture_margins
from steelyard.excitation.workspace import OrientationWorkspace
from steelyard.inertia import skew
from steelyard.robot import RobotModel

_SAME_DIRECTION = 1e-6
_FINEST = 40
_PRIOR = 1e-6
_GRAVITY = np.array([0.0, 0.0, -9.81])


@dataclass(frozen=True, eq=False)
class PostureSet:
    """Postures of an arm at which to stop and measure.

    Attributes:
        q: joint positions, (N, n) [rad or m]
        R_base_flange: orientation of the flange in each, (N, 3, 3)
        condition_number: of the static equations that they give
    """

    q: Array
    R_base_flange: Array
    condition_number: float

    def __len__(self) -> int:
        return len(self.q)


def liu2025_orientations(
    count: int, *, K: float = -0.2, workspace: OrientationWorkspace | None = None
) -> Array:
    """More than `count` orientations of the sensor by liu2025's Algorithm 1, without repeats, (N, 3, 3).

    Args:
        count: N_target of the paper
        K: share of gamma_z that gamma_x gets
        workspace: feasible orientations; all by default
    """
    _require_count(count)
    kept: list[Array] = []
    for n in range(1, _FINEST + 1):
        level = _level(n, K)
        for R in level if workspace is None else level[workspace.contains(level)]:
            if all(np.linalg.norm(R[2] - other[2]) > _SAME_DIRECTION for other in kept):
                kept.append(R)
        if len(kept) > count:
            return np.array(kept)
    raise InfeasibleDesign(
        f"the workspace holds only {len(kept)} orientations of Algorithm 1 that differ in gravity direction,"
        f" {count - len(kept) + 1} short of more than {count}; widen it"
    )


def _level(n: int, K: float) -> Array:
    """The orientations that the paper's loop makes for one n."""
    gamma_z, gamma_y = np.meshgrid(
        2 * np.pi * np.arange(n + 1) / n, np.pi * np.arange(n + 1) / n, indexing="ij"
    )
    gamma_x = np.where(gamma_z < np.pi, K * gamma_z, -K * (2 * np.pi - gamma_z))
    angles = np.stack([gamma_z.ravel(), gamma_y.ravel(), gamma_x.ravel()], axis=1)
    return np.asarray(Rotation.from_euler("ZYX", angles).as_matrix())


def random_orientations(count: int, *, workspace: OrientationWorkspace | None = None, seed: int = 0) -> Array:
    """Random orientations from the whole workspace, (count, 3, 3).

    Args:
        count: how many
        workspace: feasible orientations; all by default
        seed: of the random numbers
    """
    _require_count(count)
    rng = np.random.default_rng(seed)
    kept = np.zeros((0, 3, 3))
    for _ in range(200):
        R = np.asarray(Rotation.random(5 * count, rng).as_matrix())
        kept = np.concatenate([kept, R if workspace is None else R[workspace.contains(R)]])
        if len(kept) >= count:
            return kept[:count]
    raise InfeasibleDesign(
        f"of {1000 * count} random orientations only {len(kept)} lie in the workspace; widen it"
    )


def wrench_rows(R_base_sensor: ArrayLike) -> Array:
    """The rows of a wrench sensor at rest in each orientation, (N, 6, 12).

    Args:
        R_base_sensor: orientations, (N, 3, 3)
    """
    R = np.asarray(R_base_sensor, dtype=float)
    A = np.zeros((len(R), 6, 12))
    A[:, :3, :3], A[:, :3, 3:6], A[:, 3:, 9:] = np.swapaxes(R, 1, 2), np.eye(3), np.eye(3)
    A[:, 3:, 6:9] = [-skew(g) for g in np.swapaxes(R, 1, 2) @ _GRAVITY]
    return A


def choose_greedily(rows: Array, count: int) -> NDArray[np.intp]:
    """The candidates that raise log det of the information most, one after the other, (count,).

    Args:
        rows: of each candidate, (N, r, p)
        count: how many to choose
    """
    _require_count(count)
    if len(rows) < count:
        raise InvalidTrajectory(f"{count} postures cannot be chosen from {len(rows)} candidates")
    scale = np.sqrt((rows**2).sum(axis=(0, 1)).max() / len(rows))
    A = rows / scale
    information = _PRIOR * np.eye(rows.shape[2])
    left, chosen = list(range(len(rows))), []
    for _ in range(count):
        inner = np.eye(A.shape[1]) + A[left] @ np.linalg.solve(information, np.swapaxes(A[left], 1, 2))
        best = left.pop(int(np.linalg.slogdet(inner)[1].argmax()))
        information = information + A[best].T @ A[best]
        chosen.append(best)
    return np.array(chosen, dtype=np.intp)


def static_postures(
    robot: RobotModel,
    count: int,
    *,
    limits: DesignLimits | None = None,
    joints: Sequence[int] | None = None,
    K: float | None = -0.2,
    seed: int = 0,
) -> PostureSet:
    """The most telling postures for a wrench sensor that the arm can reach, by a greedy D-optimal choice.

    Args:
        robot: the arm
        count: how many
        limits: to keep, with the workspace; those of the robot by default
        joints: that may move, from 0; all by default
        K: of liu2025's Algorithm 1, which makes the candidates; None for random ones from the whole workspace
        seed: of random candidates
    """
    bounds = limits or DesignLimits.of(robot)
    reached: list[Array] = []
    for many in (2, 8):
        if K is None:
            R = random_orientations(many * count, workspace=bounds.workspace, seed=seed)
        else:
            R = liu2025_orientations(many * count // 2, K=K, workspace=bounds.workspace)
        reached = _reached(robot, R, bounds, joints)
        if len(reached) >= count:
            break
    else:
        raise InfeasibleDesign(
            f"{robot.name} reaches {len(reached)} of {len(R)} orientations of the workspace,"
            f" {count - len(reached)} fewer than wanted; widen the workspace or let more joints move"
        )
    q = np.array(reached)
    R = robot.forward_kinematics(q)[:, :3, :3]
    chosen = choose_greedily(wrench_rows(R), count)
    return _posture_set(robot, q[chosen], wrench_rows(R[chosen]))


def _reached(robot: RobotModel, R: Array, limits: DesignLimits, joints: Sequence[int] | None) -> list[Array]:
    """Postures for those orientations that can be reached inside all limits."""
    found: list[Array] = []
    for target in R:
        near = found[-1] if found else robot.home
        try:
            q = inverse_kinematics(robot, target, joints=joints, near=near, limits=limits.joints)
        except InfeasibleDesign:
            continue
        if _inside(robot, limits, q[None])[0]:
            found.append(q)
    return found


def random_postures(
    robot: RobotModel, count: int, *, limits: DesignLimits | None = None, seed: int = 0
) -> PostureSet:
    """Random postures inside all limits (gaz2017 section V).

    Args:
        robot: the arm
        count: how many
        limits: to keep; those of the robot by default
        seed: of the random numbers
    """
    _require_count(count)
    bounds = limits or DesignLimits.of(robot)
    low = np.maximum(bounds.joints.q_min, robot.home - np.pi)
    high = np.minimum(bounds.joints.q_max, robot.home + np.pi)
    rng = np.random.default_rng(seed)
    kept = np.zeros((0, robot.n))
    for _ in range(50):
        q = rng.uniform(low, high, (4 * count, robot.n))
        kept = np.concatenate([kept, q[_inside(robot, bounds, q)]])
        if len(kept) >= count:
            return _posture_set(robot, kept[:count], _torque_rows(robot, kept[:count]))
    raise InfeasibleDesign(f"of {200 * count} random postures only {len(kept)} keep all limits")


def moves_around(
    robot: RobotModel,
    pick: ArrayLike,
    *,
    count: int = 10,
    step: float = np.radians(7.0),
    limits: DesignLimits | None = None,
) -> PostureSet:
    """Small moves of the joints around a pick posture (gaz2017 section VI), the most telling ones first.

    Args:
        robot: the arm
        pick: the posture, (n,) [rad or m]
        count: how many
        step: of each joint that moves, up or down, [rad or m]
        limits: to keep; those of the robot by default
    """
    bounds = limits or DesignLimits.of(robot)
    centre = np.array(pick, dtype=float)
    if centre.shape != (robot.n,) or not np.isfinite(centre).all():
        raise InvalidTrajectory(f"pick must be {robot.n} finite numbers, got {centre}")
    signs = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], (20 * count, robot.n))
    moves = np.unique(np.vstack([np.eye(robot.n), -np.eye(robot.n), signs]), axis=0)
    q = centre + step * moves[np.abs(moves).any(axis=1)]
    q = q[_inside(robot, bounds, q)]
    if len(q) < count:
        raise InfeasibleDesign(
            f"only {len(q)} of the moves around the pick posture keep all limits, not {count}"
        )
    chosen = q[choose_greedily(_torque_rows(robot, q), count)]
    return _posture_set(robot, chosen, _torque_rows(robot, chosen))


def _torque_rows(robot: RobotModel, q: Array) -> Array:
    """The torques at rest by mass and first moment of a payload, (N, n, 4)."""
    still = np.zeros_like(q)
    return robot.payload_regressor(q, still, still)[:, :, :4]


def _posture_set(robot: RobotModel, q: Array, rows: Array) -> PostureSet:
    values = np.linalg.svd(rows.reshape(-1, rows.shape[2]), compute_uv=False)
    shown = values[values > 1e-9 * values[0]]
    return PostureSet(q, robot.forward_kinematics(q)[:, :3, :3], float(shown[0] / shown[-1]))


def _inside(robot: RobotModel, limits: DesignLimits, q: Array) -> NDArray[np.bool_]:
    margins = posture_margins(robot, limits, q)
    return np.all([m.values >= -1e-6 for m in margins], axis=0) if margins else np.ones(len(q), dtype=bool)


def _require_count(count: int) -> None:
    if count < 1:
        raise InvalidTrajectory(f"there must be at least 1 posture, got {count}")
