"""One instant of filtered signals: what trackers and observers take."""

from __future__ import annotations

import math
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array
from steelyard._kinds import Shape

M = TypeVar("M")


class Sample(NamedTuple, Generic[M]):
    """Motion and effort of one instant, filtered and differentiated.

    Attributes:
        t: time, [s], on any clock that goes forwards
        motion: of joints: position, velocity and acceleration, (3, n) [rad or m, s], for observers
            of contacts also without acceleration, (2, n); of a wrist sensor: see
            `steelyard.wrist.tracking.SensorMotion`
        effort: torque that the drive applies to each joint, (n,) [Nm or N]; or what the load does
            to a wrist sensor, (6,) [N, Nm], in the sensor frame
        fault: why it cannot be used, a name of the tracker's counts; empty for a usable sample
    """

    t: float
    motion: M
    effort: Annotated[Array, Shape("effort")]
    fault: str = ""

    @classmethod
    def of_joints(
        cls, t: float, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike
    ) -> Sample[Array]:
        """The sample of an arm.

        Args:
            t: time, [s]
            q: joint position, (n,) [rad or m]
            v: joint velocity, (n,) [rad/s or m/s]
            a: joint acceleration, (n,) [rad/s^2 or m/s^2]
            tau: torque that the drive applies to the joint, (n,) [Nm or N]
        """
        return Sample(t, np.array([q, v, a], dtype=float), np.asarray(tau, dtype=float))

    @classmethod
    def unusable(cls, fault: str) -> Sample[Any]:
        """A sample without content, which a tracker counts and skips.

        Args:
            fault: why there is no content, a name of the tracker's counts
        """
        return Sample(math.nan, None, np.zeros(0), fault)
