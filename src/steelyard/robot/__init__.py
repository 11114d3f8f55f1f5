"""Robots: kinematics, dynamics, drives and base parameters; the only importer of Pinocchio."""

from steelyard.robot._basis import ParameterBasis
from steelyard.robot._chain import FrameMotion, JointLimits
from steelyard.robot._dh import DHTable
from steelyard.robot._drive import DriveModel
from steelyard.robot._library import load_robot, robot_names
from steelyard.robot._model import RobotModel
from steelyard.robot._parameters import Parameter, ParameterKind, ParameterTable

__all__ = [
    "DHTable",
    "DriveModel",
    "FrameMotion",
    "JointLimits",
    "Parameter",
    "ParameterBasis",
    "ParameterKind",
    "ParameterTable",
    "RobotModel",
    "load_robot",
    "robot_names",
]
