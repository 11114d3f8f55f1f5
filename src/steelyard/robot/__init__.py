"""Robots: kinematics, dynamics, drives and base parameters. The only room that imports Pinocchio."""

from steelyard.robot.basis import ParameterBasis
from steelyard.robot.dh import DHTable
from steelyard.robot.drive import DriveModel
from steelyard.robot.kinematics import FrameMotion
from steelyard.robot.library import load_robot, robot_names
from steelyard.robot.limits import JointLimits
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
