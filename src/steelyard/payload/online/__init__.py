"""Payloads while the arm moves: `init`, `step`, `estimate`; states are values."""

from steelyard.payload.online.direct import DirectEstimator, DirectOptions
from steelyard.payload.online.sample import Counts, OnlineSample
from steelyard.payload.online.state import DirectState, Episode
from steelyard.payload.online.xu2024 import UR10_ROWS, Xu2024Estimator, Xu2024State

__all__ = [
    "UR10_ROWS",
    "Counts",
    "DirectEstimator",
    "DirectOptions",
    "DirectState",
    "Episode",
    "OnlineSample",
    "Xu2024Estimator",
    "Xu2024State",
]
