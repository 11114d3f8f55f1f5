"""What an arm carries, as a value that judges itself."""

from steelyard.payload.judgement import Evidence, judge
from steelyard.payload.payload import HALF_WIDTH, Payload, Quantity
from steelyard.payload.physical import nearest_physical

__all__ = ["HALF_WIDTH", "Evidence", "Payload", "Quantity", "judge", "nearest_physical"]
