"""The payload on a wrist sensor, sample by sample: `init`, `step`, `estimate`, `progress`."""

from steelyard.wrist.tracking._estimator import WristTracker
from steelyard.wrist.tracking._path import (
    SensorKinematics,
    SensorMotion,
    WristPath,
    WristPathState,
    motion_of,
)
from steelyard.wrist.tracking._state import WristTrackerOptions, WristTrackerState

__all__ = [
    "SensorKinematics",
    "SensorMotion",
    "WristPath",
    "WristPathState",
    "WristTracker",
    "WristTrackerOptions",
    "WristTrackerState",
    "motion_of",
]
