"""Files in and out; the only room that knows foreign names, units and orders."""

from steelyard.io.binary import recording_of_table
from steelyard.io.recordings import read_recording, recording_blocks, write_recording

__all__ = ["read_recording", "recording_blocks", "recording_of_table", "write_recording"]
