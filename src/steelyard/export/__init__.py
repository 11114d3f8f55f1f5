"""Payloads in the formats of controllers and simulators."""

from steelyard.export._load import ErrorLimits, Load, Target
from steelyard.export._targets import TARGETS, Export

__all__ = [
    "TARGETS",
    "ErrorLimits",
    "Export",
    "Load",
    "Target",
]
