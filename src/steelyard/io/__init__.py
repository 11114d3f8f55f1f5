"""Files in and out; the only room that knows foreign names, units and orders."""

from steelyard.io._recordings import read, recording_blocks, write

__all__ = ["read", "recording_blocks", "write"]
