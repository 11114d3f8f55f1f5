"""Files in and out; the only room that knows foreign names, units and orders."""

from steelyard.io._recordings import read_recording, recording_blocks, write_recording

__all__ = ["read_recording", "recording_blocks", "write_recording"]
