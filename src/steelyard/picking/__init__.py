"""Picks of a shift: each part weighed during ordinary work, and judged."""

from steelyard.picking._decide import MassLimits
from steelyard.picking._foresight import Visibility
from steelyard.picking._pick import Decision, EarlyAnswer, EarlyRow, Measured, Pick, PickRow
from steelyard.picking._shift import Batch, PickingOptions, Shift

__all__ = [
    "Batch",
    "Decision",
    "EarlyAnswer",
    "EarlyRow",
    "MassLimits",
    "Measured",
    "Pick",
    "PickRow",
    "PickingOptions",
    "Shift",
    "Visibility",
]
