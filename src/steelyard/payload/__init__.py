"""What an arm carries, as a value that judges itself."""

from steelyard.payload._judgement import Evidence, judge, nearest_physical
from steelyard.payload._payload import Payload, Quantity

__all__ = ["Evidence", "Payload", "Quantity", "judge", "nearest_physical"]
