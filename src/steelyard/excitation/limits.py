"""Everything that a designed motion must keep to.

Position, velocity and acceleration have two forms. The papers' is conservative: sums of amplitudes stay
within the limits (xu2024 eq. (18), liu2025 eq. (42)), whatever the phases are. The exact form bounds the
signals themselves and leaves more room. Everything else is exact: torque by the robot model; height,
linear and angular speed of the flange for each axis of the base (ding2019 eq. (9), Table II);
orientations (liu2025 eq. (42)); and clearance between the arm's bodies, floor, walls and boxes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import InvalidTrajectory
from steelyard.excitation.workspace import OrientationWorkspace
from steelyard.robot import JointLimits, RobotModel
from steelyard.robot.geometry import Body, CollisionModel
from steelyard.trajectory import FourierTrajectory

_ENVELOPE_HZ = 1000.0


@dataclass(frozen=True, eq=False)
class Scene:
    """What the arm must not touch.

    Attributes:
        obstacles: floor, walls, boxes (`steelyard.robot.geometry`)
        bodies: shapes of the arm; capsules of `radius` along its links when empty
        radius: of these capsules, one or one a link, [m]
        clearance: smallest distance, [m]
        self_collision: whether the arm must also keep clear of itself
    """

    obstacles: tuple[Body, ...] = ()
    bodies: tuple[Body, ...] = ()
    radius: float | tuple[float, ...] = 0.06
    clearance: float = 0.02
    self_collision: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.clearance < np.inf:
            raise InvalidTrajectory(f"clearance must not be negative, got {self.clearance}")

    def model(self, robot: RobotModel) -> CollisionModel:
        """The distances to keep.

        Args:
            robot: the arm
        """
        bodies = self.bodies or Body.capsules(robot, np.asarray(self.radius))
        return CollisionModel(
            robot, bodies, self.obstacles, self_collision=self.self_collision, clearance=self.clearance
        )


def _free() -> Array:
    return np.full(3, np.inf)


@dataclass(frozen=True, eq=False)
class DesignLimits:
    """The limits of a design; infinite or None where there is none.

    Attributes:
        joints: position, velocity, acceleration and torque of each joint
        form: 'exact', or 'amplitude' for the papers' conservative form of position, velocity, acceleration
        height: lowest and highest z of the flange in the base frame, [m]
        linear_speed: of the flange along x, y, z of the base, (3,) [m/s]
        angular_speed: of the flange about x, y, z of the base, (3,) [rad/s]
        workspace: orientations of the flange
        scene: what must not be touched
    """

    joints: JointLimits
    form: Literal["exact", "amplitude"] = "exact"
    height: tuple[float, float] = (-np.inf, np.inf)
    linear_speed: Array = field(default_factory=_free)
    angular_speed: Array = field(default_factory=_free)
    workspace: OrientationWorkspace | None = None
    scene: Scene | None = None

    def __post_init__(self) -> None:
        if self.form not in ("exact", "amplitude"):
            raise InvalidTrajectory(f"form must be 'exact' or 'amplitude', got '{self.form}'")
        low, high = self.height
        if not low < high:
            raise InvalidTrajectory(
                f"height: the lowest ({low:g} m) lies {low - high:g} m above the highest ({high:g} m)"
            )
        for name in ("linear_speed", "angular_speed"):
            values = np.array(getattr(self, name), dtype=float)
            values = np.full(3, values) if values.ndim == 0 else values
            if values.shape != (3,) or not (values > 0).all():
                raise InvalidTrajectory(f"{name} must be three positive numbers, got {values}")
            values.setflags(write=False)
            object.__setattr__(self, name, values)

    @classmethod
    def of(cls, robot: RobotModel) -> DesignLimits:
        """The limits that the robot itself has.

        Args:
            robot: the arm
        """
        return cls(robot.limits)

    def with_joints(self, joints: JointLimits) -> DesignLimits:
        """The same limits with other ones of the joints.

        Args:
            joints: of n joints
        """
        return replace(self, joints=joints)


def envelope(trajectory: FourierTrajectory, *, torque: Array | None = None) -> JointLimits:
    """The limits within which another trajectory stays: its peaks of position, velocity and acceleration.

    Args:
        trajectory: the other one
        torque: limits of torque to keep, (n,) [Nm or N]; none by default
    """
    count = round(trajectory.duration_s * _ENVELOPE_HZ) + 1
    q, v, a = trajectory.at(np.linspace(0, trajectory.duration_s, count))
    none = np.full(trajectory.n, np.inf)
    still = np.flatnonzero(q.max(axis=0) - q.min(axis=0) <= 0)
    if still.size:
        raise InvalidTrajectory(
            f"an envelope needs a motion of every joint; joint {still[0] + 1} stands still"
        )
    return JointLimits(
        q.min(axis=0),
        q.max(axis=0),
        np.abs(v).max(axis=0),
        np.abs(a).max(axis=0),
        none if torque is None else torque,
    )


def intersection(first: JointLimits, second: JointLimits) -> JointLimits:
    """The limits that keep both.

    Args:
        first: of n joints
        second: of as many
    """
    if len(first) != len(second):
        raise InvalidTrajectory(f"limits of {len(first)} and of {len(second)} joints cannot be combined")
    low, high = np.maximum(first.q_min, second.q_min), np.minimum(first.q_max, second.q_max)
    gap = low - high
    if (gap >= 0).any():
        j = int(gap.argmax())
        raise InvalidTrajectory(
            f"contradictory limits: joint {j + 1} must be above {low[j]:g} and below {high[j]:g};"
            f" they miss each other by {gap[j]:.4g}"
        )
    rest = (np.minimum(getattr(first, x), getattr(second, x)) for x in ("v_max", "a_max", "tau_max"))
    return JointLimits(low, high, *rest)
