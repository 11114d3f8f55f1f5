"""Collision detection: observers of external torque, thresholds, contacts and reactions."""

from steelyard.control.collision._detection import Contact, Detections, Detector
from steelyard.control.collision._dynamics import ArmDynamics, FrameForce
from steelyard.control.collision._observer import Observer, ObserverState
from steelyard.control.collision._reaction import Guard, Pace, Reaction
from steelyard.control.collision._residuals import Residuals
from steelyard.control.collision._thresholds import Thresholds

__all__ = [
    "ArmDynamics",
    "Contact",
    "Detections",
    "Detector",
    "FrameForce",
    "Guard",
    "Observer",
    "ObserverState",
    "Pace",
    "Reaction",
    "Residuals",
    "Thresholds",
]
