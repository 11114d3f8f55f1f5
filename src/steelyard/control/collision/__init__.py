"""Collision detection: observers of external torque, thresholds, contacts and reactions."""

from steelyard.control.collision._detection import Contact, Detections, Detector, DetectorState
from steelyard.control.collision._dynamics import ArmDynamics, FrameForce, TorqueUncertainty
from steelyard.control.collision._observer import Observer, ObserverState
from steelyard.control.collision._reaction import Guard, Pace, Reaction
from steelyard.control.collision._residuals import Residuals
from steelyard.control.collision._thresholds import FreeMotion, PeakTail, Thresholds

__all__ = [
    "ArmDynamics",
    "Contact",
    "Detections",
    "Detector",
    "DetectorState",
    "FrameForce",
    "FreeMotion",
    "Guard",
    "Observer",
    "ObserverState",
    "Pace",
    "PeakTail",
    "Reaction",
    "Residuals",
    "Thresholds",
    "TorqueUncertainty",
]
