"""Robots: kinematics, dynamics, drives and base parameters; the only importer of Pinocchio."""

from steelyard.robot._basis import ParameterBasis
from steelyard.robot._chain import FrameMotion, JointLimits
from steelyard.robot._dh import DHTable
from steelyard.robot._drive import DriveModel
from steelyard.robot._geometry import Body, CollisionModel
from steelyard.robot._library import load_robot, robot_names
from steelyard.robot._model import RobotModel
from steelyard.robot._momentum import MomentumDynamics
from steelyard.robot._parameters import Parameter, ParameterKind, ParameterTable
from steelyard.robot._transmission import JointFriction, Transmission

__all__ = [
    "Body",
    "CollisionModel",
    "DHTable",
    "DriveModel",
    "FrameMotion",
    "JointFriction",
    "JointLimits",
    "MomentumDynamics",
    "Parameter",
    "ParameterBasis",
    "ParameterKind",
    "ParameterTable",
    "RobotModel",
    "Transmission",
    "load_robot",
    "robot_names",
]
