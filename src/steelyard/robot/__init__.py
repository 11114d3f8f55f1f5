"""Robots: kinematics, dynamics, drives and base parameters. The only room that imports Pinocchio."""

from steelyard.robot.basis import ParameterBasis
from steelyard.robot.chain import FrameMotion, JointLimits
from steelyard.robot.dh import DHTable
from steelyard.robot.drive import DriveModel
from steelyard.robot.library import load_robot, robot_names
from steelyard.robot.model import RobotModel

__all__ = [
    "DHTable",
    "DriveModel",
    "FrameMotion",
    "JointLimits",
    "ParameterBasis",
    "RobotModel",
    "load_robot",
    "robot_names",
]
