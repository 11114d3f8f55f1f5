"""The kinematic side of an arm: its joints, links and frames, where they are and how they move."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from steelyard.arrays import Array
from steelyard.robot.chain import frame_id, joint_axis, joint_rows, slides
from steelyard.robot.dh import JointType
from steelyard.robot.limits import JointLimits


@dataclass(frozen=True, eq=False)
class FrameMotion:
    """How a frame moves, in its own coordinates, gravity not included.

    Attributes:
        linear_velocity: of its origin, (N, 3) [m/s], in the frame
        angular_velocity: (N, 3) [rad/s], in the frame
        linear_acceleration: of its origin, as an observer at rest sees it, (N, 3) [m/s^2], in the frame
        angular_acceleration: (N, 3) [rad/s^2], in the frame
    """

    linear_velocity: Array
    angular_velocity: Array
    linear_acceleration: Array
    angular_acceleration: Array


@dataclass(frozen=True, eq=False)
class KinematicChain:
    """What `RobotModel` knows without masses; it is not made by itself.

    Attributes:
        name: of the robot
        flange: name of the frame that a payload is fixed to and expressed in
        limits: of the joints
    """

    name: str
    flange: str
    limits: JointLimits
    _pin: pin.Model = field(repr=False)
    _data: pin.Data = field(repr=False)
    _T_joint_link: Array = field(repr=False)
    _link_names: tuple[str, ...] = field(repr=False)

    @property
    def n(self) -> int:
        """Number of joints."""
        return int(self._pin.nv)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, from the base outwards."""
        return tuple(self._pin.names)[1:]

    @property
    def joint_types(self) -> tuple[JointType, ...]:
        """'revolute', 'prismatic' or 'continuous' (revolute without limits) for each joint."""
        unlimited = np.isinf(self.limits.q_min)
        kinds: list[JointType] = []
        for i, joint in enumerate(self._pin.joints[1:]):
            kinds.append("prismatic" if slides(joint) else "continuous" if unlimited[i] else "revolute")
        return tuple(kinds)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Name of the link that each joint moves; also the name of its frame."""
        return self._link_names

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of all frames that `forward_kinematics` and `frame_motion` know."""
        return tuple(f.name for f in self._pin.frames)

    @property
    def joint_placements(self) -> Array:
        """Each joint frame in the joint frame before it at q = 0, (n, 4, 4)."""
        return np.array([placement.homogeneous for placement in self._pin.jointPlacements[1:]])

    @property
    def joint_axes(self) -> Array:
        """Axis of each joint, (n, 3), in its joint frame."""
        return np.array([joint_axis(joint) for joint in self._pin.joints[1:]])

    @property
    def T_joint_link(self) -> Array:
        """Each link frame in its joint frame, (n, 4, 4)."""
        return self._T_joint_link.copy()

    @property
    def T_joint_flange(self) -> Array:
        """The flange in the last joint frame, (4, 4)."""
        return np.array(self._pin.frames[frame_id(self._pin, self.flange)].placement.homogeneous)

    def forward_kinematics(self, q: ArrayLike, frame: str | None = None) -> Array:
        """The pose of a frame in the base, T_base_frame, (N, 4, 4) or (4, 4).

        Args:
            q: joint positions, (N, n) or (n,) [rad or m]
            frame: its name; the flange by default
        """
        frame_index = frame_id(self._pin, frame or self.flange)
        (rows,) = joint_rows(self._pin, q)
        T = np.empty((len(rows), 4, 4))
        for i, qi in enumerate(rows):
            pin.forwardKinematics(self._pin, self._data, qi)
            T[i] = pin.updateFramePlacement(self._pin, self._data, frame_index).homogeneous
        return T[0] if np.ndim(q) == 1 else T

    def frame_motion(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, frame: str | None = None) -> FrameMotion:
        """Velocity and acceleration of a frame, for N samples.

        Args:
            q: joint positions, (N, n) [rad or m]
            v: joint velocities, (N, n) [rad/s or m/s]
            a: joint accelerations, (N, n) [rad/s^2 or m/s^2]
            frame: its name; the flange by default
        """
        frame_index = frame_id(self._pin, frame or self.flange)
        rows = joint_rows(self._pin, q, v, a)
        motion = np.empty((4, len(rows[0]), 3))
        for i, (qi, vi, ai) in enumerate(zip(*rows, strict=True)):
            pin.forwardKinematics(self._pin, self._data, qi, vi, ai)
            velocity = pin.getFrameVelocity(self._pin, self._data, frame_index, pin.LOCAL)
            acceleration = pin.getFrameClassicalAcceleration(self._pin, self._data, frame_index, pin.LOCAL)
            motion[:, i] = velocity.linear, velocity.angular, acceleration.linear, acceleration.angular
        return FrameMotion(*motion)
