"""Denavit-Hartenberg tables, modified (Craig, Khalil) and classic, as frames of a chain.

With q added to theta (revolute) or to d (prismatic), frame i follows frame i-1 by

    modified:  RotX(alpha_i) TransX(a_i) RotZ(theta_i) TransZ(d_i)
    classic:   RotZ(theta_i) TransZ(d_i) TransX(a_i) RotX(alpha_i)

where row i of a modified table holds its own alpha and a (some books write them as alpha_{i-1},
a_{i-1}). In a modified table joint i turns about the z axis of frame i; in a classic one about that
of frame i-1, and frame i sits at the far end of the link. A rigid-body model wants a frame on the
joint axis, so each link has

    joint frame  on the axis, moving with the link
    link frame   that of the table, T_joint_link behind the joint frame

which are the same for a modified table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array
from steelyard._codec import Value
from steelyard._kinds import Shape
from steelyard.errors import InvalidRobot

Convention = Literal["modified", "classic"]
JointType = Literal["revolute", "prismatic", "continuous"]


@dataclass(frozen=True, eq=False)
class DHTable(Value, error=InvalidRobot):
    """A table of Denavit-Hartenberg parameters, one row for each joint.

    Attributes:
        alpha: twist about x, (n,) [rad]
        a: length along x, (n,) [m]
        d: offset along z, (n,) [m]
        theta: constant added to q, (n,) [rad]
        convention: 'modified' or 'classic'
        joint_types: 'revolute', 'prismatic' or 'continuous' for each joint; all revolute when empty
    """

    alpha: Annotated[Array, Shape("n")]
    a: Annotated[Array, Shape("n")]
    d: Annotated[Array, Shape("n")]
    theta: Annotated[Array, Shape("n")]
    convention: Convention = "modified"
    joint_types: Annotated[Sequence[JointType], Shape("n")] = ()

    def __post_init__(self) -> None:
        if np.size(self.alpha) == 0:
            raise InvalidRobot("a DH table needs at least one row")
        if not self.joint_types:
            object.__setattr__(self, "joint_types", ("revolute",) * np.size(self.alpha))
        super().__post_init__()

    @classmethod
    def from_rows(cls, rows: ArrayLike, convention: Convention = "modified") -> DHTable:
        """The table of an all-revolute arm.

        Args:
            rows: alpha, a, d, theta of each joint, (n, 4) [rad, m, m, rad]
        """
        table = np.asarray(rows, dtype=float)
        if table.ndim != 2 or table.shape[1] != 4:
            raise InvalidRobot(f"DH rows are (n, 4): alpha, a, d, theta; got shape {table.shape}")
        return cls(table[:, 0], table[:, 1], table[:, 2], table[:, 3], convention)

    def __len__(self) -> int:
        return len(self.alpha)

    @property
    def joint_placements(self) -> Array:
        """Each joint frame in the one before it (the base for the first) at q = 0, (n, 4, 4)."""
        if self.convention == "modified":
            return np.array([_rot_x(alpha) @ T @ _rot_z(theta) for alpha, T, theta in self._rows()])
        return np.concatenate([np.eye(4)[None], self.T_joint_link[:-1]])

    @property
    def T_joint_link(self) -> Array:
        """Each link frame (the one of the table) in its joint frame, (n, 4, 4)."""
        if self.convention == "modified":
            return np.tile(np.eye(4), (len(self), 1, 1))
        return np.array([_rot_z(theta) @ T @ _rot_x(alpha) for alpha, T, theta in self._rows()])

    def _rows(self) -> Iterator[tuple[float, Array, float]]:
        """Twist, translation (4, 4) and turn of each row."""
        T = np.tile(np.eye(4), (len(self), 1, 1))
        T[:, 0, 3] = self.a
        T[:, 2, 3] = self.d
        return zip(self.alpha, T, self.theta, strict=True)


def _rot_x(angle: float) -> Array:
    c, s = _cos_sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1.0]])


def _rot_z(angle: float) -> Array:
    c, s = _cos_sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


def _cos_sin(angle: float) -> tuple[float, float]:
    """Cosine and sine, exact for the quarter turns that tables are made of."""
    quarters = angle / (np.pi / 2)
    if abs(quarters - round(quarters)) < 1e-12:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[round(quarters) % 4]
    return float(np.cos(angle)), float(np.sin(angle))
