"""Columns of causes other than a load: what each adds to the torques of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard._arrays import Array
from steelyard.robot import RobotModel

TIME_PARTS = 6
"""Parts of the time in which the weight is compared."""


def forces(robot: RobotModel, q: Array) -> Array:
    """The torque that holds 1 N at the flange along x, y or z of the base, (N, n, 3).

    Args:
        robot: the arm
        q: postures, (N, n) [rad or m]
    """
    return -np.swapaxes(robot.frame_jacobian(q)[:, :3], 1, 2)


def drifts(shape: tuple[int, ...]) -> Array:
    """Offsets that go from -1 to 1 Nm during a run, one column for each joint, (N, n, n).

    Args:
        shape: of the torques, (N, n)
    """
    columns = np.zeros((*shape, shape[1]))
    columns[:, range(shape[1]), range(shape[1])] = np.linspace(-1.0, 1.0, shape[0])[:, None]
    return columns


def in_parts(weight: Sequence[Array]) -> list[Array]:
    """The torque of a weight of 1 N in each part of the time but the first.

    Args:
        weight: its torque throughout each run, (N, n)
    """
    count = sum(map(len, weight))
    columns = []
    first = 0
    for each in weight:
        part = (first + np.arange(len(each))) * TIME_PARTS // count
        columns.append(each[:, :, None] * (part[:, None, None] == np.arange(1, TIME_PARTS)))
        first += len(each)
    return columns
