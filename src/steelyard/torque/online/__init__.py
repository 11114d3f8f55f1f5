"""Payloads while the arm moves: `init`, `step`, `estimate`; states are values."""

from steelyard.signals import OnlineSample
from steelyard.torque.online.estimator import OnlineEstimator
from steelyard.torque.online.state import Counts, Episode, OnlineOptions, OnlineState

__all__ = [
    "Counts",
    "Episode",
    "OnlineEstimator",
    "OnlineOptions",
    "OnlineSample",
    "OnlineState",
]
