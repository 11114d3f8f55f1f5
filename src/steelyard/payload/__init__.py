"""What an arm carries, as a value that judges itself, and parts that it may carry."""

from steelyard.payload._judgement import Evidence, judge, nearest_physical
from steelyard.payload._part import Part
from steelyard.payload._payload import Payload, Quantity

__all__ = ["Evidence", "Part", "Payload", "Quantity", "judge", "nearest_physical"]
