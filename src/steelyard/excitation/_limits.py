"""The limits of a designed motion, and the certificate that a motion keeps them.

Limits of position, velocity and acceleration have two forms. The form of the papers is
conservative: sums of amplitudes stay within the limits for all phases (xu2024 eq. (18), liu2025 eq.
(42)). The exact form bounds the signals themselves and allows larger motions. All other limits are
exact: torque by the robot model; height, linear and angular speed of the flange for each axis of
the base (ding2019 eq. (9), Table II); orientations (liu2025 eq. (42)); and clearance between the
arm's bodies, floor, walls and boxes.

A certificate checks every limit on a dense grid and at peaks between its points, by code that the
design does not use (no JAX). It also lists what was not checked: joints without a limit, collisions
with the surroundings or of the arm with itself, and shapes that were assumed.
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
    active_limits,
    closest_checks,
)
from steelyard.excitation._workspace import OrientationWorkspace, Surroundings
from steelyard.robot import JointLimits, RobotModel
from steelyard.robot._geometry import CollisionModel
from steelyard.trajectory import FourierTrajectory, Trajectory

RESERVE = 0.01
"""Share of a limit that covers peaks between the points of a design's grid."""

_CERTIFICATE_RATE_HZ = 1000.0
_POINTS_AROUND_PEAK = 801
_ROUNDING_FACTOR = 1 + 1e-10  # covers rounding errors of a peak
_HEIGHT_SCALE = 0.2  # [m]
_ANGLE_RESERVE = 0.005  # [rad]


@dataclass(frozen=True, eq=False)
class DesignLimits:
    """The limits of a design; infinite or None for no limit.

    Attributes:
        joints: limits of position, velocity, acceleration and torque of each joint
        form: 'exact', or 'amplitude' for the papers' conservative form of position, velocity and
            acceleration
        height: lowest and highest z of the flange in the base frame, [m]
        linear_speed: largest speed of the flange along x, y, z of the base, (3,) [m/s]
        angular_speed: largest speed of the flange about x, y, z of the base, (3,) [rad/s]
        workspace: feasible orientations of the flange
        surroundings: obstacles and shapes of the arm
    """

    joints: JointLimits
    form: Literal["exact", "amplitude"] = "exact"
    height: tuple[float, float] = (-np.inf, np.inf)
    linear_speed: Array = field(default_factory=lambda: np.full(3, np.inf))
    angular_speed: Array = field(default_factory=lambda: np.full(3, np.inf))
    workspace: OrientationWorkspace | None = None
    surroundings: Surroundings | None = None

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
        """The limits of the robot itself."""
        return cls(robot.limits)

    @classmethod
    def envelope(
        cls, trajectory: FourierTrajectory, *, joint_names: Sequence[str] = ()
    ) -> DesignLimits:
        """The extremes of position, velocity and acceleration of another trajectory, as limits.

        Args:
            trajectory: a motion of every joint
            joint_names: names for messages; numbers by default
        """
        count = round(trajectory.duration_s * _CERTIFICATE_RATE_HZ) + 1
        t = np.linspace(0, trajectory.duration_s, count)
        extremes = [k for x in trajectory.at(t) for k in (x.argmin(axis=0), x.argmax(axis=0))]
        near = np.linspace(-1, 1, _POINTS_AROUND_PEAK) / _CERTIFICATE_RATE_HZ
        between = (t[np.unique(extremes)][:, None] + near).ravel()
        q, v, a = trajectory.at(np.clip(between, 0, trajectory.duration_s))
        still = np.flatnonzero(q.max(axis=0) - q.min(axis=0) <= 0)
        if still.size:
            name = dict(enumerate(joint_names)).get(still[0], f"joint {still[0] + 1}")
            raise InvalidTrajectory(
                f"an envelope needs a motion of every joint; {name} stands still"
            )
        v_max, a_max = (_ROUNDING_FACTOR * np.abs(x).max(axis=0) for x in (v, a))
        low = q.min(axis=0)
        high = q.max(axis=0)
        unlimited = np.full(trajectory.n, np.inf)
        margin = (_ROUNDING_FACTOR - 1) * (high - low)
        return cls(JointLimits(low - margin, high + margin, v_max, a_max, unlimited))

    def narrowed(self, joints: JointLimits, *, joint_names: Sequence[str] = ()) -> DesignLimits:
        """These limits combined with further limits of the joints; the narrower ones count.

        Args:
            joints: further limits of the same joints
            joint_names: names for messages; numbers by default
        """
        present = self.joints
        if len(present) != len(joints):
            raise InvalidTrajectory(
                f"limits of {len(present)} and of {len(joints)} joints cannot be combined"
            )
        low = np.maximum(present.q_min, joints.q_min)
        high = np.minimum(present.q_max, joints.q_max)
        gap = low - high
        if (gap >= 0).any():
            j = int(gap.argmax())
            name = joint_names[j] if joint_names else f"joint {j + 1}"
            raise InvalidTrajectory(
                f"contradictory limits: {name} must be above {low[j]:g} and below {high[j]:g};"
                f" they miss each other by {gap[j]:.4g}"
            )
        others = (
            np.minimum(getattr(present, name), getattr(joints, name))
            for name in ("v_max", "a_max", "tau_max")
        )
        return replace(self, joints=JointLimits(low, high, *others))

    @property
    def bounds_torque_or_flange(self) -> bool:
        """Whether torque, or height, speed or orientation of the flange, is limited."""
        finite = (self.joints.tau_max, self.height, self.linear_speed, self.angular_speed)
        regions = () if self.workspace is None else self.workspace.regions
        return len(regions) > 0 or any(np.isfinite(x).any() for x in finite)

    def flange_quantities(self, R: Any, p: Any, u: Any, w: Any, xp: Any) -> list[Any]:
        """The limited quantities of the flange, each (N, k); `flange_scales` converts to slacks.

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
        """Offset and factor, (k,), of the flange's slacks: shares of the limit, positive inside."""
        offset: list[float] = []
        factor: list[float] = []
        for bound, sign in zip(self.height, (1.0, -1.0), strict=True):
            if np.isfinite(bound):
                offset.append(-sign * bound / _HEIGHT_SCALE - RESERVE)
                factor.append(sign / _HEIGHT_SCALE)
        for speed in (self.linear_speed, self.angular_speed):
            limited = speed[np.isfinite(speed)]
            offset += [1 - RESERVE] * (2 * len(limited))
            factor += [*-1 / limited, *1 / limited]
        if self.workspace is not None:  # its slacks are relative already
            count = self.workspace.slacks(np.eye(3)[None], np).shape[1]
            offset = [*offset, *[-_ANGLE_RESERVE] * count]
            factor = [*factor, *[1.0] * count]
        return np.array(offset), np.array(factor)

    def certify(
        self, robot: RobotModel, trajectory: Trajectory, *, rate_hz: float = _CERTIFICATE_RATE_HZ
    ) -> Certificate:
        """The certificate of a motion on a grid of `rate_hz` [Hz]; it may report violations."""
        if not (np.isfinite(rate_hz) and rate_hz > 0):
            raise InvalidTrajectory(f"rate_hz must be positive, got {rate_hz}")
        count = int(np.ceil(trajectory.duration_s * rate_hz)) + 1
        t = np.linspace(0, trajectory.duration_s, count)
        model = None if self.surroundings is None else self.surroundings.model(robot)
        checks = closest_checks(
            lambda times: list(self._bounded(robot, *trajectory.at(times), model=model)), t
        )
        if self.form == "amplitude" and isinstance(trajectory, FourierTrajectory):
            checks += [limit.closest(limit.shares) for limit in self._amplitudes(robot, trajectory)]
        unchecked = tuple(_unchecked(self, robot))
        if model is None or self.surroundings is None:
            return Certificate(tuple(checks), rate_hz, unchecked)
        bodies = tuple(dict.fromkeys(body.words for body in self.surroundings.bodies_of(robot)))
        return Certificate(tuple(checks), rate_hz, unchecked, bodies, model.left_out)

    def margin_at_rest(self, robot: RobotModel, q: Array) -> Array:
        """Scaled distances of postures q, (N, n), to the limits at rest, negative outside, (N,)."""
        margin = [limit.margin.min(axis=1) for limit in self._bounded(robot, q)]
        if margin:
            return np.asarray(np.min(margin, axis=0))
        return np.ones(len(q))

    def closest_at_rest(self, robot: RobotModel, q: Array) -> LimitCheck:
        """The closest or most violated limit of one posture q, (n,) [rad or m], at rest."""
        limit = min(self._bounded(robot, q[None]), key=lambda one: one.margin.min())
        return limit.closest(limit.margin)

    def _bounded(
        self,
        robot: RobotModel,
        q: Array,
        v: Array | None = None,
        a: Array | None = None,
        *,
        model: CollisionModel | None = None,
    ) -> Iterator[Bounded]:
        """Every limit with the bounded values of N postures, at rest or along a motion."""
        joints = self.joints
        names = robot.joint_names
        unit = "rad or m" if "prismatic" in robot.joint_types else "rad"
        yield from active_limits(
            Bounded("upper position", names, q, joints.q_max, unit),
            Bounded("lower position", names, q, joints.q_min, unit, low=True),
        )
        if v is not None and a is not None:
            yield from active_limits(
                Bounded("velocity", names, np.abs(v), joints.v_max, f"{unit}/s"),
                Bounded("acceleration", names, np.abs(a), joints.a_max, f"{unit}/s^2"),
            )
        if np.isfinite(joints.tau_max).any():
            still = np.zeros_like(q)
            tau = np.abs(robot.torque(q, still if v is None else v, still if a is None else a))
            scale = np.where(np.isfinite(joints.tau_max), joints.tau_max, 1.0)
            yield Bounded("torque", names, tau, joints.tau_max, "Nm", scale=scale)
        yield from self._of_flange(robot, q, v, a)
        if self.surroundings is not None:
            model = model or self.surroundings.model(robot)
            least = np.full(len(model.pair_names), self.surroundings.clearance)
            pairs = model.pair_names
            if pairs:
                distance = model.distances(q)
                yield Bounded("clearance", pairs, distance, least, "m", low=True, scale=0.3)

    def _of_flange(
        self, robot: RobotModel, q: Array, v: Array | None, a: Array | None
    ) -> Iterator[Bounded]:
        regions = () if self.workspace is None else self.workspace.regions
        if regions or np.isfinite(self.height).any():
            T = robot.forward_kinematics(q)
            low, high = np.array(self.height)[:, None]
            yield from active_limits(
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
            motion = robot.frame_motion(q, v, a)
            linear, angular = (
                np.abs(np.einsum("tab,tb->ta", R, x))
                for x in (motion.linear_velocity, motion.angular_velocity)
            )
            yield from active_limits(
                Bounded("linear speed", ("x", "y", "z"), linear, self.linear_speed, "m/s"),
                Bounded("angular speed", ("x", "y", "z"), angular, self.angular_speed, "rad/s"),
            )

    def _amplitudes(self, robot: RobotModel, trajectory: FourierTrajectory) -> Iterator[Bounded]:
        """The sums of amplitudes of the papers' conservative form."""
        q, v, a = (x[None] for x in trajectory.amplitudes)
        joints = self.joints
        names = robot.joint_names
        offset = trajectory.offset
        return active_limits(
            Bounded("upper amplitude of position", names, offset + q, joints.q_max, "rad"),
            Bounded("lower amplitude of position", names, q - offset, -joints.q_min, "rad"),
            Bounded("amplitude of velocity", names, v, joints.v_max, "rad/s"),
            Bounded("amplitude of acceleration", names, a, joints.a_max, "rad/s^2"),
        )


def _unchecked(limits: DesignLimits, robot: RobotModel) -> Iterator[str]:
    """Descriptions of everything that a moving arm may violate and that has no limit."""
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
    for name, limited in families.items():
        if not limited.any():
            yield f"{name} of the joints"
        elif not limited.all():
            yield f"{name} of {', '.join(robot.joint_names[j] for j in np.flatnonzero(~limited))}"
    if limits.surroundings is None or not limits.surroundings.obstacles:
        yield "floor, walls and other things around the arm"
    if limits.surroundings is None or not limits.surroundings.self_collision:
        yield "the arm against itself"
    if limits.surroundings is not None:
        yield from limits.surroundings.assumed(robot)
