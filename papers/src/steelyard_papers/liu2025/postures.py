"""Postures of an arm for given orientations of its flange, as those of liu2025's Algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array
from steelyard.errors import InfeasibleDesign
from steelyard.excitation import DesignLimits, PostureSet, inverse_kinematics
from steelyard.robot import RobotModel


def postures_for(
    robot: RobotModel,
    R_base_flange: ArrayLike,
    *,
    limits: DesignLimits | None = None,
    joints: Sequence[int] | None = None,
    position: ArrayLike | None = None,
) -> PostureSet:
    """Joint positions for orientations of the flange, in their order.

    Args:
        robot: the arm
        R_base_flange: orientations, (N, 3, 3)
        limits: to keep; those of the robot by default
        joints: that may move, from 0; all by default
        position: of the flange, (3,) [m], in the base frame; any by default
    """
    R = np.asarray(R_base_flange, dtype=float)
    bounds = limits or DesignLimits.of(robot)
    reach = partial(
        inverse_kinematics, robot, position=position, joints=joints, limits=bounds.joints
    )
    q: list[Array] = []
    for k, target in enumerate(R):
        try:
            q.append(reach(target, near=q[-1] if q else robot.home))
        except InfeasibleDesign as error:
            raise InfeasibleDesign(f"orientation {k + 1} of {len(R)}: {error}") from error
    found = np.array(q)
    _require_inside(robot, bounds, found)
    return PostureSet.at(robot, found)


def _require_inside(robot: RobotModel, limits: DesignLimits, q: Array) -> None:
    margin = limits.margin_at_rest(robot, q)
    k = int(margin.argmin())
    if margin[k] < -1e-6:
        raise InfeasibleDesign(
            f"posture {k + 1} breaks a limit: {limits.closest_at_rest(robot, q[k]).sentence}"
        )
