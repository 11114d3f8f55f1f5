"""What hangs on a wrist sensor while the arm moves: rows, samples, `init`, `step`, `estimate`."""

from steelyard.wrist.online.estimator import WristEstimator
from steelyard.wrist.online.path import WristPath, WristRow, WristSample, rows_of
from steelyard.wrist.online.state import WristOptions, WristState

__all__ = [
    "WristEstimator",
    "WristOptions",
    "WristPath",
    "WristRow",
    "WristSample",
    "WristState",
    "rows_of",
]
