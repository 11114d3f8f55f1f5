"""Payloads while the arm moves: `init`, `step`, `estimate`; states are values."""

from steelyard.payload._tracking import Counts, Episode
from steelyard.torque.tracking._estimator import TorqueTracker
from steelyard.torque.tracking._interface import JointTorqueTracker
from steelyard.torque.tracking._rows import TorqueRows
from steelyard.torque.tracking._state import TorqueTrackerOptions, TorqueTrackerState

__all__ = [
    "Counts",
    "Episode",
    "JointTorqueTracker",
    "TorqueRows",
    "TorqueTracker",
    "TorqueTrackerOptions",
    "TorqueTrackerState",
]
