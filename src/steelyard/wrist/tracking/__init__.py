"""The payload on a wrist sensor, sample by sample: `init`, `step`, `estimate`, `progress`."""

from steelyard.wrist.tracking._estimator import WristTracker
from steelyard.wrist.tracking._path import SensorMotion, WristPath, motion_of
from steelyard.wrist.tracking._state import WristTrackerOptions, WristTrackerState

__all__ = [
    "SensorMotion",
    "WristPath",
    "WristTracker",
    "WristTrackerOptions",
    "WristTrackerState",
    "motion_of",
]
