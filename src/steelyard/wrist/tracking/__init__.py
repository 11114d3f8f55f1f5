"""What hangs on a wrist sensor while the arm moves: rows, samples, `init`, `step`, `estimate`."""

from steelyard.wrist.tracking._estimator import WristTracker
from steelyard.wrist.tracking._path import WristPath, WristRow, WristSample, rows_of
from steelyard.wrist.tracking._state import WristTrackerOptions, WristTrackerState

__all__ = [
    "WristPath",
    "WristRow",
    "WristSample",
    "WristTracker",
    "WristTrackerOptions",
    "WristTrackerState",
    "rows_of",
]
