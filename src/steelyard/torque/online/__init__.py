"""Payloads while the arm moves: `init`, `step`, `estimate`; states are values."""

from steelyard.signals import OnlineSample
from steelyard.torque.online.direct import DirectEstimator, DirectOptions
from steelyard.torque.online.sample import Counts
from steelyard.torque.online.state import DirectState, Episode

__all__ = [
    "Counts",
    "DirectEstimator",
    "DirectOptions",
    "DirectState",
    "Episode",
    "OnlineSample",
]
