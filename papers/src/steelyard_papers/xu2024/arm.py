"""The arm of the paper, whose payloads are in the last frame of Table III."""

from __future__ import annotations

from steelyard.robot import RobotModel, load_robot

FLANGE = "link6"
"""The frame of a payload."""


def ur10() -> RobotModel:
    """The UR10 with the last frame of Table III as its flange."""
    return load_robot("ur10", flange=FLANGE)
