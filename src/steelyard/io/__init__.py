"""Files in and out: the only package that knows foreign names, units and orders."""

from steelyard.io._recordings import read, recording_blocks, write
from steelyard.io._values import load

__all__ = ["load", "read", "recording_blocks", "write"]
