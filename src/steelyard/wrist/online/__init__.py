"""What hangs on a wrist sensor while the arm moves: rows, samples, `init`, `step`, `estimate`."""

from steelyard.wrist.online._estimator import WristEstimator
from steelyard.wrist.online._path import WristPath, WristRow, WristSample, rows_of
from steelyard.wrist.online._state import WristOptions, WristState

__all__ = [
    "WristEstimator",
    "WristOptions",
    "WristPath",
    "WristRow",
    "WristSample",
    "WristState",
    "rows_of",
]
