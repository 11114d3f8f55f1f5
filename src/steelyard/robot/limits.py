"""How far, how fast and how strong a joint may be."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from steelyard.arrays import Array
from steelyard.errors import InvalidRobot


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits of every joint; infinite where none is published.

    Attributes:
        q_min: lowest position, (n,) [rad or m]
        q_max: highest position, (n,) [rad or m]
        v_max: largest speed, (n,) [rad/s or m/s]
        a_max: largest acceleration, (n,) [rad/s^2 or m/s^2]
        tau_max: largest torque, (n,) [Nm or N]
    """

    q_min: Array
    q_max: Array
    v_max: Array
    a_max: Array
    tau_max: Array

    def __post_init__(self) -> None:
        n = np.size(self.q_min)
        for item in fields(self):
            values = np.array(getattr(self, item.name), dtype=float)
            if values.shape != (n,) or np.isnan(values).any():
                raise InvalidRobot(
                    f"limit '{item.name}' must hold {n} numbers (infinite where there is none), got {values}"
                )
            values.setflags(write=False)
            object.__setattr__(self, item.name, values)
        bad = np.flatnonzero(self.q_min >= self.q_max)
        if bad.size:
            j = bad[0]
            raise InvalidRobot(f"joint {j + 1}: q_min {self.q_min[j]:g} is not below q_max {self.q_max[j]:g}")
        for name in ("v_max", "a_max", "tau_max"):
            if (getattr(self, name) <= 0).any():
                raise InvalidRobot(f"limit '{name}' must be positive, got {getattr(self, name)}")

    def __len__(self) -> int:
        return len(self.q_min)

    @property
    def nearest_to_zero(self) -> Array:
        """The allowed posture nearest to zero, (n,) [rad or m]."""
        q = np.clip(np.zeros(len(self)), self.q_min, self.q_max)
        q.setflags(write=False)
        return q

    @classmethod
    def none(cls, n: int) -> JointLimits:
        """No limits for n joints.

        Args:
            n: number of joints
        """
        inf = np.full(n, np.inf)
        return cls(-inf, inf, inf, inf, inf)

    def of_joints(self, which: NDArray[np.bool_]) -> JointLimits:
        """The limits of some of the joints.

        Args:
            which: of the n joints, (n,)
        """
        return JointLimits(*(getattr(self, item.name)[which] for item in fields(self)))
