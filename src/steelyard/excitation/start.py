"""Where a design may begin: a posture inside all limits, and random motions around it.

If no posture is inside, no motion is, and the error names the limit that stays broken at the best
posture found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.arrays import Array, Indices
from steelyard.errors import InfeasibleDesign, InvalidTrajectory
from steelyard.excitation.limits import DesignLimits
from steelyard.excitation.solver import LinearBlock
from steelyard.excitation.space import MotionSpace
from steelyard.robot import RobotModel

_COMFORTABLE = 0.02
_CANDIDATES, _ROUNDS, _KEPT = 400, 8, 12
_SMALLEST_STROKE = 0.01  # [rad or m]
_PROBES = 200


@dataclass(frozen=True, eq=False)
class Margin:
    """How far postures are inside one limit.

    Attributes:
        limit: in words
        values: negative outside, (N,)
        scale: what counts as one, for comparing limits
        unit: of the values
    """

    limit: str
    values: Array
    scale: float
    unit: str


def require_room(robot: RobotModel, limits: DesignLimits, joints: Indices, period_s: float) -> None:
    """Refuses limits that leave a joint unbounded, or no motion worth its name.

    Args:
        robot: the arm
        limits: to keep
        joints: that move
        period_s: of the motion, [s]
    """
    w = 2 * np.pi / period_s
    v_max, a_max = limits.joints.v_max, limits.joints.a_max
    for j in joints:
        name = f"joint {j + 1} ({robot.joint_names[j]})"
        if np.isinf(v_max[j]) and np.isinf(a_max[j]):
            raise InvalidTrajectory(
                f"{name} of {robot.name} has no limit of velocity or acceleration; give one (--limits)"
            )
        for limit, bound, stroke, power in (
            ("velocity", v_max[j], v_max[j] / w, 1),
            ("acceleration", a_max[j], a_max[j] / w**2, 2),
        ):
            if stroke < _SMALLEST_STROKE:
                needed = period_s * (_SMALLEST_STROKE / stroke) ** (1 / power)
                raise InfeasibleDesign(
                    f"a period of {period_s:g} s is too short for the {limit} limit {bound:g} of {name}:"
                    f" it could swing by {stroke:.2g} only, less than {_SMALLEST_STROKE:g};"
                    f" it needs {needed:.3g} s, {needed - period_s:.3g} s more"
                )


def posture_margins(robot: RobotModel, limits: DesignLimits, q: Array) -> list[Margin]:
    """How far postures at rest are inside each limit.

    Args:
        robot: the arm
        limits: to keep
        q: postures, (N, n) [rad or m]
    """
    joints, found = limits.joints, []
    for j in range(robot.n):
        for side, room in (
            ("below q_max", joints.q_max[j] - q[:, j]),
            ("above q_min", q[:, j] - joints.q_min[j]),
        ):
            bound = joints.q_max[j] if side == "below q_max" else joints.q_min[j]
            if np.isfinite(bound):
                found.append(Margin(f"position of joint {j + 1} {side} {bound:g}", room, 1.0, "rad or m"))
    if np.isfinite(joints.tau_max).any():
        room = joints.tau_max - np.abs(robot.torque(q, np.zeros_like(q), np.zeros_like(q)))
        for j in np.flatnonzero(np.isfinite(joints.tau_max)).tolist():
            bound = joints.tau_max[j]
            found.append(Margin(f"torque of joint {j + 1} at rest ({bound:g})", room[:, j], bound, "Nm"))
    return [*found, *_tool_margins(robot, limits, q)]


def _tool_margins(robot: RobotModel, limits: DesignLimits, q: Array) -> list[Margin]:
    found = []
    low, high = limits.height
    if np.isfinite([low, high]).any() or limits.workspace is not None:
        T = robot.forward_kinematics(q)
        if np.isfinite(low):
            found.append(Margin(f"lowest height of the flange ({low:g} m)", T[:, 2, 3] - low, 0.5, "m"))
        if np.isfinite(high):
            found.append(Margin(f"highest height of the flange ({high:g} m)", high - T[:, 2, 3], 0.5, "m"))
        if limits.workspace is not None:
            margins = limits.workspace.margins(T[:, :3, :3])
            for k, part in enumerate(limits.workspace.regions):
                words = f"workspace of sensor axis {part.axis}"
                found.append(Margin(words, np.degrees(margins[:, k]), 60.0, "degrees"))
    if limits.scene is not None:
        model = limits.scene.model(robot)
        room = model.distances(q) - limits.scene.clearance
        found += [
            Margin(f"clearance between {name}", room[:, k], 0.3, "m")
            for k, name in enumerate(model.pair_names)
        ]
    return found


def centre_posture(
    robot: RobotModel, limits: DesignLimits, joints: Indices, start: Array | None, seed: int
) -> Array:
    """A posture strictly inside all limits, (n,): the given start, else home where it is, else one found.

    Args:
        robot: the arm
        limits: to keep
        joints: that may move; the others stay at home
        start: where the motion must begin and end, (n,), or None
        seed: of the search
    """
    if start is not None:
        worst = _worst(posture_margins(robot, limits, start[None]))
        if worst is not None and worst.values[0] <= 0:
            raise InfeasibleDesign(
                f"the start posture is outside the limits: {worst.limit} is missed"
                f" by {-worst.values[0]:.4g} {worst.unit}"
            )
        return start
    rng = np.random.default_rng(seed)
    low = np.maximum(limits.joints.q_min, robot.home - np.pi)
    high = np.minimum(limits.joints.q_max, robot.home + np.pi)
    low, high = np.minimum(low, high), np.maximum(low, high)
    q = np.tile(robot.home, (_CANDIDATES, 1))
    q[1:, joints] = rng.uniform(low[joints], high[joints], (_CANDIDATES - 1, len(joints)))
    best, inside = _ranked(robot, limits, q)
    for k in range(_ROUNDS):
        if inside[0] > _COMFORTABLE and (k > 1 or np.array_equal(best[0], robot.home)):
            break
        step = (high - low)[joints] * 0.2 * 0.5**k
        near = np.repeat(best[:_KEPT], 20, axis=0)
        near[1:, joints] += rng.normal(size=(len(near) - 1, len(joints))) * step
        near[:, joints] = np.clip(near[:, joints], low[joints], high[joints])
        best, inside = _ranked(robot, limits, near)
    if inside[0] <= 0:
        worst = _worst(posture_margins(robot, limits, best[:1]))
        words = "" if worst is None else f"{worst.limit} is missed by {-worst.values[0]:.4g} {worst.unit}"
        raise InfeasibleDesign(f"no posture of {robot.name} keeps all limits: at the best one found, {words}")
    return np.asarray(best[0])


def _ranked(robot: RobotModel, limits: DesignLimits, q: Array) -> tuple[Array, Array]:
    """The postures, most inside first, and how far; home goes first where it is well inside."""
    margins = posture_margins(robot, limits, q)
    inside = np.min([m.values / m.scale for m in margins], axis=0) if margins else np.ones(len(q))
    order = np.argsort(-inside, kind="stable")
    home = np.flatnonzero((q == robot.home).all(axis=1) & (inside > _COMFORTABLE))
    if home.size:
        order = np.concatenate([home, order[~np.isin(order, home)]])
    return q[order], inside[order]


def _worst(margins: list[Margin]) -> Margin | None:
    return min(margins, key=lambda m: m.values[0] / m.scale, default=None)


def probe(
    robot: RobotModel, limits: DesignLimits, centre: Array, joints: Indices
) -> tuple[Array, Array, Array]:
    """Random positions, velocities and accelerations that the moving joints can have, each (N, n).

    Args:
        robot: the arm
        limits: of its joints
        centre: where the other joints stay, (n,)
        joints: that move
    """
    rng = np.random.default_rng(0)
    low, high = (
        np.maximum(limits.joints.q_min, centre - np.pi),
        np.minimum(limits.joints.q_max, centre + np.pi),
    )
    q, v, a = np.tile(centre, (_PROBES, 1)), np.zeros((_PROBES, robot.n)), np.zeros((_PROBES, robot.n))
    q[:, joints] = rng.uniform(low[joints], high[joints], (_PROBES, len(joints)))
    v[:, joints], a[:, joints] = rng.uniform(-2, 2, (2, _PROBES, len(joints)))
    return q, v, a


def random_start(
    space: MotionSpace, limits: DesignLimits, blocks: list[LinearBlock], rng: np.random.Generator
) -> Array:
    """Random free numbers of a motion strictly inside all limits, (size,).

    Args:
        space: of the motions
        limits: of the joints
        blocks: all limits
        rng: of the random numbers
    """
    u = rng.normal(size=space.size)
    trajectory = space.trajectory(u)
    q, v, a = (x[space.joints] for x in trajectory.amplitudes)
    shift = np.abs(trajectory.offset - space.centre)[space.joints]
    joints, j = limits.joints, space.joints
    room = np.minimum(joints.q_max[j] - space.centre[j], space.centre[j] - joints.q_min[j])
    with np.errstate(divide="ignore"):
        largest = np.minimum.reduce([room / (q + shift), joints.v_max[j] / v, joints.a_max[j] / a])
    u = (u.reshape(len(j), -1) * 0.8 * largest[:, None]).ravel()
    for _ in range(80):
        if all((block.slack(u) > 0).all() for block in blocks):
            return np.asarray(u)
        u = 0.8 * u
    raise InfeasibleDesign("the centre posture is so close to a limit that no motion around it keeps inside")
