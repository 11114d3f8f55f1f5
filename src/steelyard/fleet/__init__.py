"""Logs of many arms: each is reduced once; models, payloads and changes come from the store."""

from steelyard.fleet._fleet import Fleet
from steelyard.fleet._picks import PickChange, PickTrends, ShiftPart, pick_trends
from steelyard.fleet._rows import LogPayload, LogRow, SeriesChange, to_table
from steelyard.fleet._trend import ArmTrend, ChangePoint, Trends

__all__ = [
    "ArmTrend",
    "ChangePoint",
    "Fleet",
    "LogPayload",
    "LogRow",
    "PickChange",
    "PickTrends",
    "SeriesChange",
    "ShiftPart",
    "Trends",
    "pick_trends",
    "to_table",
]
