"""A serial chain as a Pinocchio model: joint limits, frames and their motion."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from steelyard._arrays import Array, Mask, freeze, read_only
from steelyard._codec import Value
from steelyard._kinds import INFINITE, POSITIVE, Shape
from steelyard.errors import InvalidRobot, UnknownName
from steelyard.robot._dh import JointType

_NO_LIMIT = 1e100  # larger numbers stand for no limit
Limit = Annotated[Array, Shape("n"), INFINITE]
_LIMITS = ("q_min", "q_max", "v_max", "a_max", "tau_max")


@dataclass(frozen=True, eq=False)
class JointLimits(Value, error=InvalidRobot):
    """Limits of every joint; infinite where none is published.

    Attributes:
        q_min: lowest position, (n,) [rad or m]
        q_max: highest position, (n,) [rad or m]
        v_max: largest speed, (n,) [rad/s or m/s]
        a_max: largest acceleration, (n,) [rad/s^2 or m/s^2]
        tau_max: largest torque, (n,) [Nm or N]
    """

    q_min: Limit
    q_max: Limit
    v_max: Annotated[Limit, POSITIVE]
    a_max: Annotated[Limit, POSITIVE]
    tau_max: Annotated[Limit, POSITIVE]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in _LIMITS:
            values = getattr(self, name)
            if not (np.isinf(values) | (np.abs(values) < _NO_LIMIT)).all():
                raise InvalidRobot(
                    f"'{name}' must be numbers, infinite where there is no limit, got {values}"
                )
        self.require_order(self.q_min, self.q_max, [f"joint {j + 1}" for j in range(len(self))])

    @staticmethod
    def require_order(q_min: Array, q_max: Array, names: Sequence[str]) -> None:
        """Raises an error that names the joint if q_min is not below q_max, (n,) each."""
        bad = np.flatnonzero(q_min >= q_max)
        if bad.size:
            j = bad[0]
            raise InvalidRobot(f"{names[j]}: q_min {q_min[j]:g} is not below q_max {q_max[j]:g}")

    def __len__(self) -> int:
        return len(self.q_min)

    @property
    def nearest_to_zero(self) -> Array:
        """The allowed posture nearest to zero, (n,) [rad or m]."""
        return read_only(np.clip(np.zeros(len(self)), self.q_min, self.q_max))

    @classmethod
    def none(cls, n: int) -> JointLimits:
        """No limits for n joints."""
        inf = np.full(n, np.inf)
        return cls(-inf, inf, inf, inf, inf)

    def of_joints(self, which: Mask) -> JointLimits:
        """The limits of some of the joints, `which` (n,)."""
        return JointLimits(*(getattr(self, name)[which] for name in _LIMITS))


@dataclass(frozen=True, eq=False)
class FrameMotion:
    """How a frame moves, in its own coordinates, gravity not included.

    Attributes:
        linear_velocity: of its origin, (N, 3) [m/s], in the frame
        angular_velocity: (N, 3) [rad/s], in the frame
        linear_acceleration: of its origin relative to the base, (N, 3) [m/s^2], in the frame
        angular_acceleration: (N, 3) [rad/s^2], in the frame
    """

    linear_velocity: Array
    angular_velocity: Array
    linear_acceleration: Array
    angular_acceleration: Array


class _WorkSpace(threading.local):
    """Where Pinocchio computes: each thread has its own, because results stay there for a while.

    Attributes:
        data: intermediate results
    """

    def __init__(self, model: pin.Model) -> None:
        self._model = model
        self.data: pin.Data = model.createData()

    def __reduce__(self) -> tuple[type[_WorkSpace], tuple[pin.Model]]:
        return _WorkSpace, (self._model,)


@dataclass(frozen=True, eq=False, repr=False)
class KinematicChain:
    """The kinematics of a `RobotModel`, its base class; not constructed by itself.

    Motion is given as joint positions q [rad or m], velocities v [rad/s or m/s] and accelerations a
    [rad/s^2 or m/s^2], each (N, n).
    """

    name: str
    flange: str
    limits: JointLimits
    _pin: pin.Model = field(repr=False)
    T_joint_link: Array = field(repr=False)
    link_names: tuple[str, ...] = field(repr=False)
    _work_space: _WorkSpace = field(init=False, repr=False)

    def __post_init__(self) -> None:
        freeze(self, "T_joint_link")
        object.__setattr__(self, "_work_space", _WorkSpace(self._pin))

    @property
    def _data(self) -> pin.Data:
        """Where Pinocchio computes, for the calling thread alone."""
        return self._work_space.data

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {self.name}, {', '.join(self.joint_names)}; flange"
            f" '{self.flange}'>"
        )

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
        pairs = zip(self._pin.joints[1:], np.isinf(self.limits.q_min), strict=True)
        return tuple(
            "prismatic" if _subspace(joint)[0].any() else "continuous" if unlimited else "revolute"
            for joint, unlimited in pairs
        )

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of all frames that `forward_kinematics` and `frame_motion` know."""
        return tuple(f.name for f in self._pin.frames)

    @property
    def last_links(self) -> tuple[str, ...]:
        """Names of the link frames behind the last joint, which can be the flange."""
        return links_behind_last_joint(self._pin)

    @property
    def joint_placements(self) -> Array:
        """Each joint frame in the joint frame before it at q = 0, (n, 4, 4)."""
        return np.array([placement.homogeneous for placement in self._pin.jointPlacements[1:]])

    @property
    def joint_axes(self) -> Array:
        """Axis of each joint, (n, 3), in its joint frame."""
        return np.array([_subspace(joint).sum(axis=0) for joint in self._pin.joints[1:]])

    @property
    def T_joint_flange(self) -> Array:
        """The flange in the last joint frame, (4, 4)."""
        return np.array(self._pin.frames[self._frame(self.flange)].placement.homogeneous)

    def forward_kinematics(self, q: ArrayLike, frame: str | None = None) -> Array:
        """T_base_frame of a frame (default: the flange), (N, 4, 4); (4, 4) of one q (n,)."""
        frame_index = self._frame(frame or self.flange)
        (rows,) = self._rows(q)
        T = np.empty((len(rows), 4, 4))
        for i, qi in enumerate(rows):
            pin.forwardKinematics(self._pin, self._data, qi)
            T[i] = pin.updateFramePlacement(self._pin, self._data, frame_index).homogeneous
        return T[0] if np.ndim(q) == 1 else T

    def joint_frames(self, q: ArrayLike) -> Array:
        """T_base_joint of the base itself and of every joint frame at q (n,), (n + 1, 4, 4)."""
        (qi,) = self._row(q)
        pin.forwardKinematics(self._pin, self._data, qi)
        return np.array([placement.homogeneous for placement in self._data.oMi])

    def frame_motion(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, frame: str | None = None
    ) -> FrameMotion:
        """Velocity and acceleration of a frame along a motion q, v, a, (N, n) each.

        The frame is the flange by default.
        """
        frame_index = self._frame(frame or self.flange)
        rows = self._rows(q, v, a)
        motion = np.empty((4, len(rows[0]), 3))
        for i, (qi, vi, ai) in enumerate(zip(*rows, strict=True)):
            pin.forwardKinematics(self._pin, self._data, qi, vi, ai)
            velocity = pin.getFrameVelocity(self._pin, self._data, frame_index, pin.LOCAL)
            acceleration = pin.getFrameClassicalAcceleration(
                self._pin, self._data, frame_index, pin.LOCAL
            )
            motion[:, i] = (
                velocity.linear,
                velocity.angular,
                acceleration.linear,
                acceleration.angular,
            )
        return FrameMotion(*motion)

    def frame_jacobian(self, q: ArrayLike, frame: str | None = None) -> Array:
        """The Jacobian J of a frame, (6, n) of one q (n,), (N, 6, n) of several q (N, n).

        J v is the frame's velocity, linear and angular, in the base.

        Args:
            q: joint positions, (n,) or (N, n) [rad or m]
            frame: its name; the flange by default
        """
        index = self._frame(frame or self.flange)
        (rows,) = self._rows(q)
        J = np.empty((len(rows), 6, self.n))
        for i, qi in enumerate(rows):
            found = pin.computeFrameJacobian(
                self._pin, self._data, qi, index, pin.LOCAL_WORLD_ALIGNED
            )
            J[i] = found.reshape(6, self.n)  # of one joint Pinocchio returns (6,)
        return J[0] if np.ndim(q) == 1 else J

    def _frame(self, name: str) -> int:
        """The number of a frame; where a joint and a link have its name, that of the link."""
        model = self._pin
        if model.existFrame(name, pin.FrameType.BODY):
            return int(model.getFrameId(name, pin.FrameType.BODY))
        if not model.existFrame(name):
            raise UnknownName(f"{self.name} has no frame '{name}'; it has {', '.join(self.frames)}")
        return int(model.getFrameId(name))

    def _rows(self, *signals: ArrayLike) -> tuple[Array, ...]:
        """Joint signals, each (N, n) or (n,), as (N, n) arrays of one length."""
        rows = tuple(np.atleast_2d(np.asarray(s, dtype=float)) for s in signals)
        for s in rows:
            if s.ndim != 2 or s.shape[1] != self.n or len(s) != len(rows[0]):
                raise InvalidRobot(
                    f"{self.name} has {self.n} joints: joint signals are (N, {self.n}) and of one"
                    f" length, got shapes {', '.join(str(r.shape) for r in rows)}"
                )
        return rows

    def _row(self, *signals: ArrayLike) -> tuple[Array, ...]:
        """Joint signals of one posture, each (n,)."""
        rows = self._rows(*signals)
        if len(rows[0]) != 1:
            raise InvalidRobot(f"give one posture, (n,); got {len(rows[0])} postures")
        return tuple(row[0] for row in rows)


def joints_in_a_row(
    name: str,
    joints: Iterable[tuple[str, str, Array, Array, str, Array]],
    flange: str,
    T_joint_flange: Array,
) -> pin.Model:
    """A massless Pinocchio model with a frame for each link and one for the flange.

    Args:
        name: of the robot
        joints: for each joint its name, type, axis (3,), placement at q = 0 (4, 4), the name of
            its link, and T_joint_link (4, 4)
        flange: name of the flange frame, which may be that of the last link
        T_joint_flange: the flange in the last joint frame, (4, 4)
    """
    model = pin.Model()
    model.name = name
    before = 0  # parent of the next frame, which Pinocchio needs to lock joints
    for i, (joint, kind, axis, T, link, T_link) in enumerate(joints):
        if np.array_equal(axis, (0, 0, 1)):
            if kind == "prismatic":
                moves = pin.JointModelPZ()
            else:
                moves = pin.JointModelRZ()
        else:
            slides = kind == "prismatic"
            moves = (
                pin.JointModelPrismaticUnaligned if slides else pin.JointModelRevoluteUnaligned
            )(axis)
        model.addJoint(i, moves, pin.SE3(T), joint)
        before = model.addJointFrame(i + 1, before)
        before = model.addFrame(pin.Frame(link, i + 1, before, pin.SE3(T_link), pin.FrameType.BODY))
    if not model.existFrame(flange):
        frame = pin.Frame(flange, model.nv, before, pin.SE3(T_joint_flange), pin.FrameType.OP_FRAME)
        model.addFrame(frame)
    return model


def links_behind_last_joint(model: pin.Model) -> tuple[str, ...]:
    """Names of the link frames that the last joint carries."""
    return tuple(
        frame.name
        for frame in model.frames
        if frame.parentJoint == model.nv and frame.type == pin.FrameType.BODY
    )


def locked_chain(model: pin.Model, locked: Mapping[str, float], source: str) -> pin.Model:
    """The model without some of its joints, which stand still.

    Args:
        locked: position of each joint that shall not move, by name [rad or m]
        source: of the robot, for messages
    """
    joints = tuple(model.names)[1:]
    q = pin.neutral(model)
    for name, position in locked.items():
        if name not in joints:
            raise UnknownName(f"{source} has no movable joint '{name}'; it has {', '.join(joints)}")
        if not np.isfinite(position):
            raise InvalidRobot(f"joint '{name}' cannot be locked at {position}")
        q[model.joints[model.getJointId(name)].idx_q] = position
    if not locked:
        return model
    numbers = [model.getJointId(name) for name in locked]
    return pin.buildReducedModel(_with_unique_names(model, numbers), numbers, q)


def _with_unique_names(model: pin.Model, joints: Sequence[int]) -> pin.Model:
    """The model in which no link has the name of one of the joints, as Pinocchio needs it.

    Args:
        joints: numbers of the joints that will be locked
    """
    made = model.copy()
    for number in joints:
        name = made.names[number]
        if made.existFrame(name, pin.FrameType.BODY):
            frame = made.getFrameId(name, pin.FrameType.JOINT)
            made.names[number] = f"{name} (joint)"
            made.frames[frame].name = f"{name} (joint)"
    return made


def _subspace(joint: pin.JointModel) -> Array:
    """Linear and angular velocity of a joint at unit speed, (2, 3), in its frame."""
    return np.asarray(joint.createData().S, dtype=float).reshape(2, 3)
