"""Everything that a designed motion must keep to, and the certificate that a motion keeps it.

Position, velocity and acceleration have two forms. The papers' is conservative: sums of amplitudes
stay within the limits (xu2024 eq. (18), liu2025 eq. (42)), whatever the phases are. The exact form
bounds the signals themselves and leaves more room. Everything else is exact: torque by the robot
model; height, linear and angular speed of the flange for each axis of the base (ding2019 eq. (9),
Table II); orientations (liu2025 eq. (42)); and clearance between the arm's bodies, floor, walls and
boxes.

A certificate checks every limit on a dense grid, and at peaks between its points, by code that the
design does not use (no JAX). It also lists what it does not know: joints without a limit, whether
anything around the arm, or the arm itself, was in the way, and which shapes the arm was taken to
have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from steelyard._arrays import Array, read_only
from steelyard.errors import InvalidTrajectory
from steelyard.excitation._certificate import (
    Bounded,
    Certificate,
    LimitCheck,
    closest_checks,
    given,
)
from steelyard.excitation._workspace import OrientationWorkspace, Scene
from steelyard.robot import JointLimits, RobotModel
from steelyard.robot._geometry import CollisionModel
from steelyard.trajectory import FourierTrajectory, Trajectory

RESERVE = 0.01
"""Share of a limit kept for what happens between the points of a design's grid."""

_DENSE_HZ = 1000.0
_BETWEEN = 801  # points around a peak
_UP = 1 + 1e-10  # above what rounding may do to a peak
_HEIGHT_SCALE = 0.2  # [m]
_ANGLE_RESERVE = 0.005  # [rad]


@dataclass(frozen=True, eq=False)
class DesignLimits:
    """The limits of a design; infinite or None where there is none.

    Attributes:
        joints: position, velocity, acceleration and torque of each joint
        form: 'exact', or 'amplitude' for the papers' conservative form of position, velocity,
            acceleration
        height: lowest and highest z of the flange in the base frame, [m]
        linear_speed: of the flange along x, y, z of the base, (3,) [m/s]
        angular_speed: of the flange about x, y, z of the base, (3,) [rad/s]
        workspace: orientations of the flange
        scene: what must not be touched
    """

    joints: JointLimits
    form: Literal["exact", "amplitude"] = "exact"
    height: tuple[float, float] = (-np.inf, np.inf)
    linear_speed: Array = field(default_factory=lambda: np.full(3, np.inf))
    angular_speed: Array = field(default_factory=lambda: np.full(3, np.inf))
    workspace: OrientationWorkspace | None = None
    scene: Scene | None = None

    def __post_init__(self) -> None:
        if self.form not in ("exact", "amplitude"):
            raise InvalidTrajectory(f"form must be 'exact' or 'amplitude', got '{self.form}'")
        low, high = self.height
        if not low < high:
            raise InvalidTrajectory(
                f"height: the lowest ({low:g} m) lies {low - high:g} m above the highest ({high:g}"
                " m)"
            )
        for name in ("linear_speed", "angular_speed"):
            values = np.array(getattr(self, name), dtype=float)
            if values.ndim == 0:
                values = np.full(3, values)
            if values.shape != (3,) or not (values > 0).all():
                raise InvalidTrajectory(f"{name} must be three positive numbers, got {values}")
            object.__setattr__(self, name, read_only(values))

    @classmethod
    def of(cls, robot: RobotModel) -> DesignLimits:
        """The limits that the robot itself has."""
        return cls(robot.limits)

    @classmethod
    def envelope(
        cls, trajectory: FourierTrajectory, *, joint_names: Sequence[str] = ()
    ) -> DesignLimits:
        """The limits within which another trajectory stays: its peaks of position, velocity, acceleration.

        Args:
            joint_names: for messages; numbers by default
        """
        count = round(trajectory.duration_s * _DENSE_HZ) + 1
        t = np.linspace(0, trajectory.duration_s, count)
        extremes = [k for x in trajectory.at(t) for k in (x.argmin(axis=0), x.argmax(axis=0))]
        near = np.linspace(-1, 1, _BETWEEN) / _DENSE_HZ
        between = (t[np.unique(extremes)][:, None] + near).ravel()
        q, v, a = trajectory.at(np.clip(between, 0, trajectory.duration_s))
        still = np.flatnonzero(q.max(axis=0) - q.min(axis=0) <= 0)
        if still.size:
            name = dict(enumerate(joint_names)).get(still[0], f"joint {still[0] + 1}")
            raise InvalidTrajectory(
                f"an envelope needs a motion of every joint; {name} stands still"
            )
        v_max, a_max = (_UP * np.abs(x).max(axis=0) for x in (v, a))
        low = q.min(axis=0)
        high = q.max(axis=0)
        free = np.full(trajectory.n, np.inf)
        room = (_UP - 1) * (high - low)
        return cls(JointLimits(low - room, high + room, v_max, a_max, free))

    def narrowed(self, joints: JointLimits, *, joint_names: Sequence[str] = ()) -> DesignLimits:
        """These limits, and others of as many joints besides.

        Args:
            joint_names: for messages; numbers by default
        """
        own = self.joints
        if len(own) != len(joints):
            raise InvalidTrajectory(
                f"limits of {len(own)} and of {len(joints)} joints cannot be combined"
            )
        low = np.maximum(own.q_min, joints.q_min)
        high = np.minimum(own.q_max, joints.q_max)
        gap = low - high
        if (gap >= 0).any():
            j = int(gap.argmax())
            if joint_names:
                name = joint_names[j]
            else:
                name = f"joint {j + 1}"
            raise InvalidTrajectory(
                f"contradictory limits: {name} must be above {low[j]:g} and below {high[j]:g};"
                f" they miss each other by {gap[j]:.4g}"
            )
        rest = (
            np.minimum(getattr(own, x), getattr(joints, x)) for x in ("v_max", "a_max", "tau_max")
        )
        return replace(self, joints=JointLimits(low, high, *rest))

    @property
    def bounds_torque_or_flange(self) -> bool:
        """Whether there are limits on torque, or on height, speed or orientation of the flange."""
        finite = (self.joints.tau_max, self.height, self.linear_speed, self.angular_speed)
        regions = () if self.workspace is None else self.workspace.regions
        return len(regions) > 0 or any(np.isfinite(x).any() for x in finite)

    def flange_quantities(self, R: Any, p: Any, u: Any, w: Any, xp: Any) -> list[Any]:
        """What is limited at the flange, each (N, k); `flange_scales` makes slacks of it.

        Args:
            R: orientations of the flange in the base, (N, 3, 3)
            p: positions, (N, 3) [m]
            u: linear velocities, (N, 3) [m/s]
            w: angular velocities, (N, 3) [rad/s]
            xp: numpy or jax.numpy
        """
        columns = [p[:, 2:]] * int(np.isfinite(self.height).sum())
        for speed, bound in ((u, self.linear_speed), (w, self.angular_speed)):
            axes = np.flatnonzero(np.isfinite(bound))
            columns += [speed[:, axes]] * (2 if axes.size else 0)
        if self.workspace is not None:
            columns.append(self.workspace.slacks(R, xp))
        return columns

    @property
    def flange_scales(self) -> tuple[Array, Array]:
        """Offset and factor, (k,), of the flange's smooth slacks: shares of the limit, positive inside."""
        offset: list[float] = []
        factor: list[float] = []
        for bound, sign in zip(self.height, (1.0, -1.0), strict=True):
            if np.isfinite(bound):
                offset.append(-sign * bound / _HEIGHT_SCALE - RESERVE)
                factor.append(sign / _HEIGHT_SCALE)
        for speed in (self.linear_speed, self.angular_speed):
            known = speed[np.isfinite(speed)]
            offset += [1 - RESERVE] * (2 * len(known))
            factor += [*-1 / known, *1 / known]
        if self.workspace is not None:  # whose slacks are shares already
            count = self.workspace.slacks(np.eye(3)[None], np).shape[1]
            offset = [*offset, *[-_ANGLE_RESERVE] * count]
            factor = [*factor, *[1.0] * count]
        return np.array(offset), np.array(factor)

    def certify(
        self, robot: RobotModel, trajectory: Trajectory, *, rate_hz: float = _DENSE_HZ
    ) -> Certificate:
        """The certificate of a motion on a grid of `rate_hz` [Hz]; it may say that a limit is broken."""
        if not (np.isfinite(rate_hz) and rate_hz > 0):
            raise InvalidTrajectory(f"rate_hz must be positive, got {rate_hz}")
        count = int(np.ceil(trajectory.duration_s * rate_hz)) + 1
        t = np.linspace(0, trajectory.duration_s, count)
        if self.scene is None:
            scene = None
        else:
            scene = self.scene.model(robot)
        checks = closest_checks(
            lambda times: list(self._bounded(robot, *trajectory.at(times), scene=scene)), t
        )
        if self.form == "amplitude" and isinstance(trajectory, FourierTrajectory):
            checks += [limit.closest(limit.shares) for limit in self._amplitudes(robot, trajectory)]
        unchecked = tuple(_unchecked(self, robot))
        if scene is None or self.scene is None:
            return Certificate(tuple(checks), rate_hz, unchecked)
        bodies = tuple(dict.fromkeys(body.words for body in self.scene.bodies_of(robot)))
        return Certificate(tuple(checks), rate_hz, unchecked, bodies, scene.left_out)

    def room_at_rest(self, robot: RobotModel, q: Array) -> Array:
        """How far postures q, (N, n) [rad or m], are inside all limits at rest, negative outside, (N,)."""
        room = [limit.room.min(axis=1) for limit in self._bounded(robot, q)]
        if room:
            return np.asarray(np.min(room, axis=0))
        return np.ones(len(q))

    def closest_at_rest(self, robot: RobotModel, q: Array) -> LimitCheck:
        """The limit that one posture q, (n,) [rad or m], comes closest to at rest, or breaks most."""
        limit = min(self._bounded(robot, q[None]), key=lambda one: one.room.min())
        return limit.closest(limit.room)

    def _bounded(
        self,
        robot: RobotModel,
        q: Array,
        v: Array | None = None,
        a: Array | None = None,
        *,
        scene: CollisionModel | None = None,
    ) -> Iterator[Bounded]:
        """Every limit with what it bounds in N postures, at rest or along a motion."""
        joints = self.joints
        names = robot.joint_names
        if "prismatic" not in robot.joint_types:
            unit = "rad"
        else:
            unit = "rad or m"
        yield from given(
            Bounded("upper position", names, q, joints.q_max, unit),
            Bounded("lower position", names, q, joints.q_min, unit, low=True),
        )
        if v is not None and a is not None:
            yield from given(
                Bounded("velocity", names, np.abs(v), joints.v_max, f"{unit}/s"),
                Bounded("acceleration", names, np.abs(a), joints.a_max, f"{unit}/s^2"),
            )
        if np.isfinite(joints.tau_max).any():
            still = np.zeros_like(q)
            tau = np.abs(robot.torque(q, still if v is None else v, still if a is None else a))
            scale = np.where(np.isfinite(joints.tau_max), joints.tau_max, 1.0)
            yield Bounded("torque", names, tau, joints.tau_max, "Nm", scale=scale)
        yield from self._of_flange(robot, q, v, a)
        if self.scene is not None and (model := scene or self.scene.model(robot)).pair_names:
            distance = model.distances(q)
            least = np.full(len(model.pair_names), self.scene.clearance)
            yield Bounded("clearance", model.pair_names, distance, least, "m", low=True, scale=0.3)

    def _of_flange(
        self, robot: RobotModel, q: Array, v: Array | None, a: Array | None
    ) -> Iterator[Bounded]:
        regions = () if self.workspace is None else self.workspace.regions
        if regions or np.isfinite(self.height).any():
            T = robot.forward_kinematics(q)
            low, high = np.array(self.height)[:, None]
            yield from given(
                Bounded("lowest height", ("flange",), T[:, 2:3, 3], low, "m", low=True, scale=0.5),
                Bounded("highest height", ("flange",), T[:, 2:3, 3], high, "m", scale=0.5),
            )
        if regions and self.workspace is not None:
            names = tuple(f"axis {part.axis}" for part in regions)
            zero = np.zeros(len(regions))
            angle = self.workspace.margins(T[:, :3, :3])
            yield Bounded("orientation", names, angle, zero, "rad", low=True, scale=np.pi / 3)
        if (
            v is not None
            and a is not None
            and np.isfinite([self.linear_speed, self.angular_speed]).any()
        ):
            R = robot.forward_kinematics(q)[:, :3, :3]
            moved = robot.frame_motion(q, v, a)
            linear, angular = (
                np.abs(np.einsum("tab,tb->ta", R, x))
                for x in (moved.linear_velocity, moved.angular_velocity)
            )
            yield from given(
                Bounded("linear speed", ("x", "y", "z"), linear, self.linear_speed, "m/s"),
                Bounded("angular speed", ("x", "y", "z"), angular, self.angular_speed, "rad/s"),
            )

    def _amplitudes(self, robot: RobotModel, trajectory: FourierTrajectory) -> Iterator[Bounded]:
        """The papers' sums of amplitudes; joints that stand still have none."""
        q, v, a = (x[None] for x in trajectory.amplitudes)
        joints = self.joints
        names = robot.joint_names
        offset = trajectory.offset
        return given(
            Bounded("upper amplitude of position", names, offset + q, joints.q_max, "rad"),
            Bounded("lower amplitude of position", names, q - offset, -joints.q_min, "rad"),
            Bounded("amplitude of velocity", names, v, joints.v_max, "rad/s"),
            Bounded("amplitude of acceleration", names, a, joints.a_max, "rad/s^2"),
        )


def _unchecked(limits: DesignLimits, robot: RobotModel) -> Iterator[str]:
    """What the limits say nothing about and a moving arm may break."""
    joints = limits.joints
    low = np.isfinite(joints.q_min)
    high = np.isfinite(joints.q_max)
    endless = np.array([kind == "continuous" for kind in robot.joint_types])
    families = {
        "position": (low & high) | (endless & ~low & ~high),
        "velocity": np.isfinite(joints.v_max),
        "acceleration": np.isfinite(joints.a_max),
        "torque": np.isfinite(joints.tau_max),
    }
    for name, known in families.items():
        if not known.any():
            yield f"{name} of the joints"
        elif not known.all():
            yield f"{name} of {', '.join(robot.joint_names[j] for j in np.flatnonzero(~known))}"
    if limits.scene is None or not limits.scene.obstacles:
        yield "floor, walls and other things around the arm"
    if limits.scene is None or not limits.scene.self_collision:
        yield "the arm against itself"
    if limits.scene is not None:
        yield from limits.scene.assumed(robot)
