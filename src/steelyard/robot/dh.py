"""Denavit-Hartenberg tables, modified (Craig, Khalil) and classic, as frames for a rigid-body model.

With q added to theta (revolute) or to d (prismatic), frame i follows frame i-1 by

    modified:  RotX(alpha_i) TransX(a_i) RotZ(theta_i) TransZ(d_i)
    classic:   RotZ(theta_i) TransZ(d_i) TransX(a_i) RotX(alpha_i)

where row i of a modified table holds its own alpha and a (some books write them as alpha_{i-1}, a_{i-1}).
In a modified table joint i turns about the z axis of frame i; in a classic one about that of frame i-1, and
frame i sits at the far end of the link. A rigid-body model wants a frame on the joint axis, so each link has

    joint frame  on the axis, moving with the link      link frame  that of the table, T_joint_link behind it

which are the same for a modified table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from steelyard.arrays import Array
from steelyard.errors import InvalidRobot

Convention = Literal["modified", "classic"]
JointType = Literal["revolute", "prismatic", "continuous"]


@dataclass(frozen=True, eq=False)
class DHTable:
    """A table of Denavit-Hartenberg parameters, one row for each joint.

    Attributes:
        alpha: twist about x, (n,) [rad]
        a: length along x, (n,) [m]
        d: offset along z, (n,) [m]
        theta: constant added to q, (n,) [rad]
        convention: 'modified' or 'classic'
        joint_types: 'revolute', 'prismatic' or 'continuous' for each joint; all revolute when empty
    """

    alpha: Array
    a: Array
    d: Array
    theta: Array
    convention: Convention = "modified"
    joint_types: Sequence[JointType] = ()

    def __post_init__(self) -> None:
        if self.convention not in ("modified", "classic"):
            raise InvalidRobot(f"convention must be 'modified' or 'classic', got '{self.convention}'")
        n = np.size(self.alpha)
        if n == 0:
            raise InvalidRobot("a DH table needs at least one row")
        for name in ("alpha", "a", "d", "theta"):
            column = np.array(getattr(self, name), dtype=float)
            if column.shape != (n,) or not np.isfinite(column).all():
                raise InvalidRobot(f"DH column '{name}' must hold {n} finite numbers, got {column}")
            column.setflags(write=False)
            object.__setattr__(self, name, column)
        types = tuple(self.joint_types) or ("revolute",) * n
        if len(types) != n or not set(types) <= {"revolute", "prismatic", "continuous"}:
            raise InvalidRobot(
                f"joint_types must name {n} of 'revolute', 'prismatic', 'continuous', got {types}"
            )
        object.__setattr__(self, "joint_types", types)

    @classmethod
    def from_rows(cls, rows: ArrayLike, convention: Convention = "modified") -> DHTable:
        """The table of an all-revolute arm.

        Args:
            rows: alpha, a, d, theta of each joint, (n, 4) [rad, m, m, rad]
            convention: 'modified' or 'classic'
        """
        table = np.asarray(rows, dtype=float)
        if table.ndim != 2 or table.shape[1] != 4:
            raise InvalidRobot(f"DH rows are (n, 4): alpha, a, d, theta; got shape {table.shape}")
        return cls(table[:, 0], table[:, 1], table[:, 2], table[:, 3], convention)

    def __len__(self) -> int:
        return len(self.alpha)

    def chain(self, name: str, joint_names: Sequence[str], T_link_flange: Array) -> pin.Model:
        """The massless Pinocchio model of the table, with a frame for each link and one for the flange.

        Args:
            name: of the robot
            joint_names: of the n joints
            T_link_flange: the flange in the last frame of the table, (4, 4)
        """
        model = pin.Model()
        model.name = name
        rows = zip(joint_names, self.joint_types, self.joint_placements, self.T_joint_link, strict=True)
        before = 0  # the frame that the next one hangs from: Pinocchio locks joints by way of them
        for i, (joint_name, kind, placement, T_joint_link) in enumerate(rows):
            joint = pin.JointModelPZ() if kind == "prismatic" else pin.JointModelRZ()
            model.addJoint(i, joint, pin.SE3(placement), joint_name)
            before = model.addJointFrame(i + 1, before)
            link = pin.Frame(f"link{i + 1}", i + 1, before, pin.SE3(T_joint_link), pin.FrameType.BODY)
            before = model.addFrame(link)
        T_joint_flange = pin.SE3(self.T_joint_link[-1] @ T_link_flange)
        model.addFrame(pin.Frame("flange", len(self), before, T_joint_flange, pin.FrameType.OP_FRAME))
        return model

    @property
    def joint_placements(self) -> Array:
        """Each joint frame in the joint frame before it (the base for the first) at q = 0, (n, 4, 4)."""
        if self.convention == "modified":
            return np.array(
                [
                    _rot_x(alpha) @ _translation(a, 0, d) @ _rot_z(theta)
                    for alpha, a, d, theta in zip(self.alpha, self.a, self.d, self.theta, strict=True)
                ]
            )
        return np.concatenate([np.eye(4)[None], self.T_joint_link[:-1]])

    @property
    def T_joint_link(self) -> Array:
        """Each link frame (the one of the table) in its joint frame, (n, 4, 4)."""
        if self.convention == "modified":
            return np.tile(np.eye(4), (len(self), 1, 1))
        return np.array(
            [
                _rot_z(theta) @ _translation(a, 0, d) @ _rot_x(alpha)
                for alpha, a, d, theta in zip(self.alpha, self.a, self.d, self.theta, strict=True)
            ]
        )


def _rot_x(angle: float) -> Array:
    c, s = _cos_sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1.0]])


def _rot_z(angle: float) -> Array:
    c, s = _cos_sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


def _translation(x: float, y: float, z: float) -> Array:
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def _cos_sin(angle: float) -> tuple[float, float]:
    """Cosine and sine, exact for the quarter turns that tables are made of."""
    quarters = angle / (np.pi / 2)
    if abs(quarters - round(quarters)) < 1e-12:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[round(quarters) % 4]
    return float(np.cos(angle)), float(np.sin(angle))
