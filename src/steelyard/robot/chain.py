"""Joints in a row as a Pinocchio model: how it is made from a DH table, and what is asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from steelyard.arrays import Array
from steelyard.errors import InvalidRobot, UnknownName
from steelyard.inertia import InertialParameters, frame_change_matrix
from steelyard.robot.dh import DHTable

STANDARD_GRAVITY = (0.0, 0.0, -9.81)
"""Gravity in the base frame of an arm that stands upright, [m/s^2]."""


def chain_of_table(name: str, joint_names: Sequence[str], dh: DHTable, T_link_flange: Array) -> pin.Model:
    """The massless model of a DH table, with a frame for each link and one for the flange.

    Args:
        name: of the robot
        joint_names: of the n joints
        dh: the table
        T_link_flange: the flange in the last DH frame, (4, 4)
    """
    model = pin.Model()
    model.name = name
    model.gravity.linear = np.array(STANDARD_GRAVITY)
    rows = zip(joint_names, dh.joint_types, dh.joint_placements, dh.T_joint_link, strict=True)
    before = 0  # the frame that the next one hangs from: Pinocchio locks joints by way of them
    for i, (joint_name, kind, placement, T_joint_link) in enumerate(rows):
        joint = pin.JointModelPZ() if kind == "prismatic" else pin.JointModelRZ()
        model.addJoint(i, joint, pin.SE3(placement), joint_name)
        before = model.addJointFrame(i + 1, before)
        link = pin.Frame(f"link{i + 1}", i + 1, before, pin.SE3(T_joint_link), pin.FrameType.BODY)
        before = model.addFrame(link)
    T_joint_flange = pin.SE3(dh.T_joint_link[-1] @ T_link_flange)
    model.addFrame(pin.Frame("flange", len(dh), before, T_joint_flange, pin.FrameType.OP_FRAME))
    return model


def checked_gravity(gravity_base: ArrayLike) -> Array:
    """A copy of a gravity vector, or a refusal when it is none, (3,) [m/s^2].

    Args:
        gravity_base: where things fall, (3,) [m/s^2], in the base frame
    """
    gravity = np.array(gravity_base, dtype=float)
    if gravity.shape != (3,) or not np.isfinite(gravity).all():
        raise InvalidRobot(f"gravity_base must be three finite numbers, got {gravity}")
    return gravity


def pinocchio_inertia(body: InertialParameters) -> pin.Inertia:
    """The body as Pinocchio writes it.

    Args:
        body: in the frame of its joint
    """
    if body.mass != 0.0:
        return pin.Inertia.FromDynamicParameters(body.vector)
    if body.first_moment.any():
        raise InvalidRobot(f"a link without mass cannot have the first moment {body.first_moment} kg m")
    return pin.Inertia(0.0, np.zeros(3), body.inertia)


def joint_axis(joint: pin.JointModel) -> Array:
    """The axis of a one-dimensional joint, (3,), in its joint frame.

    Args:
        joint: of a Pinocchio model
    """
    return np.array(_subspace(joint)[0 if slides(joint) else 1])


def slides(joint: pin.JointModel) -> bool:
    """Whether a one-dimensional joint slides along its axis; else it turns about it.

    Args:
        joint: of a Pinocchio model
    """
    return bool(_subspace(joint)[0].any())


def _subspace(joint: pin.JointModel) -> Array:
    """Linear and angular velocity of the joint at unit speed, (2, 3)."""
    return np.asarray(joint.createData().S, dtype=float).reshape(2, 3)


def require_lockable(locked: Mapping[str, float], joints: Sequence[str], source: str) -> None:
    """Refuses to lock joints that are not there, or at no position.

    Args:
        locked: position of each joint that shall not move, by name [rad or m]
        joints: names of those that can
        source: of the robot, for messages
    """
    for name, position in locked.items():
        if name not in joints:
            raise UnknownName(f"{source} has no movable joint '{name}'; it has {', '.join(joints)}")
        if not np.isfinite(position):
            raise InvalidRobot(f"joint '{name}' cannot be locked at {position}")


def locked_chain(model: pin.Model, locked: Mapping[str, float]) -> pin.Model:
    """The model without some of its joints, which stand still.

    Args:
        model: the Pinocchio model
        locked: position of each joint that shall not move, by name [rad or m]
    """
    if not locked:
        return model
    q = pin.neutral(model)
    for name, position in locked.items():
        q[model.joints[model.getJointId(name)].idx_q] = position
    return pin.buildReducedModel(model, [model.getJointId(name) for name in locked], q)


def frame_id(model: pin.Model, frame: str) -> int:
    """The number of a frame; where a joint and a link have its name, that of the link.

    Args:
        model: the Pinocchio model
        frame: its name
    """
    if model.existFrame(frame, pin.FrameType.BODY):
        return int(model.getFrameId(frame, pin.FrameType.BODY))
    if not model.existFrame(frame):
        known = ", ".join(f.name for f in model.frames)
        raise UnknownName(f"{model.name} has no frame '{frame}'; it has {known}")
    return int(model.getFrameId(frame))


def joint_rows(model: pin.Model, *signals: ArrayLike) -> tuple[Array, ...]:
    """The joint signals as (N, n) arrays of one length.

    Args:
        model: the Pinocchio model of n joints
        signals: each (N, n) or (n,)
    """
    rows = tuple(np.atleast_2d(np.asarray(s, dtype=float)) for s in signals)
    for s in rows:
        if s.ndim != 2 or s.shape[1] != model.nv or len(s) != len(rows[0]):
            raise InvalidRobot(
                f"{model.name} has {model.nv} joints: joint signals are (N, {model.nv}) and of one length,"
                f" got shapes {', '.join(str(r.shape) for r in rows)}"
            )
    return rows


def single_row(model: pin.Model, *signals: ArrayLike) -> tuple[Array, ...]:
    """The joint signals of one posture, each (n,).

    Args:
        model: the Pinocchio model of n joints
        signals: each (n,) or (1, n)
    """
    rows = joint_rows(model, *signals)
    if len(rows[0]) != 1:
        raise InvalidRobot(f"this matrix is for one posture at a time, got {len(rows[0])}")
    return tuple(row[0] for row in rows)


def fill_rigid_regressor(
    Y: Array, model: pin.Model, data: pin.Data, rows: tuple[Array, ...], T_joint_link: Array
) -> None:
    """Writes the columns of the links into Y, each link in its own frame.

    Args:
        Y: where to write, (N, n, 10 n)
        model: the Pinocchio model
        data: its workspace
        rows: q, v and a, each (N, n)
        T_joint_link: each link frame in its joint frame, (n, 4, 4)
    """
    for i, (q, v, a) in enumerate(zip(*rows, strict=True)):
        Y[i] = pin.computeJointTorqueRegressor(model, data, q, v, a)
    for columns, change in _changes_of_frame(T_joint_link.tobytes()):
        Y[:, :, columns] = Y[:, :, columns] @ change


@lru_cache(maxsize=64)
def _changes_of_frame(T_joint_link: bytes) -> tuple[tuple[slice, Array], ...]:
    """Columns of each link whose frame is not its joint's, and their 10 x 10 change; links keep theirs."""
    changes = []
    for j, T in enumerate(np.frombuffer(T_joint_link).reshape(-1, 4, 4)):
        if not np.array_equal(T, np.eye(4)):
            change = frame_change_matrix(T)
            change.setflags(write=False)
            changes.append((slice(10 * j, 10 * (j + 1)), change))
    return tuple(changes)
