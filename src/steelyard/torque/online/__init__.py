"""Payloads while the arm moves: `init`, `step`, `estimate`; states are values."""

from steelyard.payload._online import Counts, Episode
from steelyard.signals import OnlineSample
from steelyard.torque.online._estimator import OnlineEstimator
from steelyard.torque.online._state import OnlineOptions, OnlineState

__all__ = [
    "Counts",
    "Episode",
    "OnlineEstimator",
    "OnlineOptions",
    "OnlineSample",
    "OnlineState",
]
