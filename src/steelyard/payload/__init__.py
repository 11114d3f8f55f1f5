"""What an arm carries, as a value that judges itself, and parts that it may carry."""

from steelyard.payload._judgement import Evidence, judge, nearest_physical
from steelyard.payload._part import Part
from steelyard.payload._payload import Payload, Quantity
from steelyard.payload._tracking import ContactWrench, Progress, Tracker, TrackerState

__all__ = [
    "ContactWrench",
    "Evidence",
    "Part",
    "Payload",
    "Progress",
    "Quantity",
    "Tracker",
    "TrackerState",
    "judge",
    "nearest_physical",
]
