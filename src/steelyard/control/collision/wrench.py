"""The force of a contact at a chosen frame, from the external torque at the joints.

A force F and a torque N at the origin of a frame turn the joints by tau = J' (F, N). Only the joints between
the base and that frame feel it, so the others must show nothing. What J' cannot tell apart (a force through
an axis, more unknowns than joints) is left out of the answer, which is the smallest one that explains the
torques, and told in a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.robot import RobotModel

_SMALLEST_ARM = 0.05  # [m], and for torques [1]: joints that turn a direction with less cannot tell it
_UNKNOWN_SHARE = 1e-6
_AXES = ("x", "y", "z")


@dataclass(frozen=True, eq=False)
class ContactWrench:
    """What a contact does to the arm at a frame.

    Attributes:
        frame: at whose origin it acts
        force_base: (3,) [N], in the base frame's axes
        torque_base: (3,) [Nm], in the base frame's axes; 0 where a pure force was asked for
        std: standard deviations of force and torque, (6,); infinite where the posture does not tell
        unexplained: joint torques that no such contact makes, (n,) [Nm or N]
        status: what the posture can tell, a sentence
    """

    frame: str
    force_base: Array
    torque_base: Array
    std: Array
    unexplained: Array
    status: str


def contact_wrench(
    robot: RobotModel,
    q: ArrayLike,
    external: ArrayLike,
    *,
    frame: str | None = None,
    kind: Literal["force", "wrench"] = "force",
    torque_std: ArrayLike = 1.0,
) -> ContactWrench:
    """The contact at a frame that explains external joint torques.

    Args:
        robot: the arm
        q: joint positions, (n,) [rad or m]
        external: torque at the joints, positive along the axes, (n,) [Nm or N]
        frame: where it acts; the flange by default
        kind: 'force' for a force through the frame's origin, 'wrench' for force and torque
        torque_std: standard deviation of the external torques, () or (n,) [Nm or N]
    """
    torque = np.asarray(external, dtype=float)
    std = np.broadcast_to(np.asarray(torque_std, dtype=float), (robot.n,))
    if torque.shape != (robot.n,) or not np.isfinite(torque).all() or not (std > 0).all():
        raise InvalidSamples(
            f"external must be {robot.n} finite numbers and torque_std positive, got {torque} and {std}"
        )
    if kind not in ("force", "wrench"):
        raise InvalidSamples(f"kind must be 'force' or 'wrench', got '{kind}'")
    unknowns = 3 if kind == "force" else 6
    A = robot.frame_jacobian(q, frame)[:unknowns].T
    value, spread, hidden = _smallest_solution(A / std[:, None], torque / std, _SMALLEST_ARM / std.max())
    full = np.zeros(6)
    full[:unknowns] = value
    deviation = np.zeros(6)
    deviation[:unknowns] = spread
    name = frame or robot.flange
    return ContactWrench(
        name, full[:3], full[3:], deviation, np.asarray(torque - A @ value), _status(name, kind, hidden)
    )


def _smallest_solution(A: Array, b: Array, smallest: float) -> tuple[Array, Array, Array]:
    """Least squares with what A tells; standard deviations; directions that A does not tell, (k, cols)."""
    left, size, right = np.linalg.svd(A, full_matrices=True)
    size = np.concatenate([size, np.zeros(A.shape[1] - len(size))])
    told = size > smallest
    count = min(A.shape)
    inverse = np.where(told, 1.0 / np.where(told, size, 1.0), 0.0)
    value = right.T[:, :count] @ (inverse[:count] * (left.T[:count] @ b))
    spread = np.sqrt(((right * inverse[:, None]) ** 2).sum(axis=0))
    hidden = right[~told]
    lost = (hidden**2).sum(axis=0) > _UNKNOWN_SHARE
    return np.asarray(value), np.where(lost, np.inf, spread), hidden


def _status(frame: str, kind: str, hidden: Array) -> str:
    if not len(hidden):
        return f"this posture tells the whole {kind} at {frame}"
    words = []
    for direction in hidden:
        part, what = (
            (direction[:3], "force") if np.abs(direction[:3]).max() > 0.5 else (direction[-3:], "torque")
        )
        numbers = ", ".join(f"{x:.2f}" for x in part / np.linalg.norm(part))
        words.append(f"{what} along ({numbers})")
    return f"this posture does not tell {' and '.join(words)} at {frame} (base axes): taken as zero"
