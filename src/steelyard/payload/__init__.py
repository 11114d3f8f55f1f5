"""What an arm carries, as a value that judges itself."""

from steelyard.payload.payload import Payload
from steelyard.payload.physical import nearest_physical

__all__ = ["Payload", "nearest_physical"]
