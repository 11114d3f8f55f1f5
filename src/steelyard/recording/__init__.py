"""Time lives here: a Recording is what was measured, Samples are what can be fitted.

A `Recording` holds signals exactly as they came, in SI units, on one clock that starts at 0:
jitter, repeated rows and holes included. `steelyard.signals` turns it into `Samples`, which prove
by their type that they are uniform, finite and differentiated, and say how. Which column of a table
is which signal is said in `columns`.
"""

from steelyard.recording._layout import AXES, CHANNELS, WrenchConvention
from steelyard.recording._recording import (
    Library,
    Recording,
    checked_clock,
    data_frame,
    default_gap_s,
    imported,
    is_data_frame,
    median_rate_hz,
    recording_of,
    recording_of_arrays,
)
from steelyard.recording._samples import DEFAULT_CUTOFF_HZ, Preparation, Samples

__all__ = [
    "AXES",
    "CHANNELS",
    "DEFAULT_CUTOFF_HZ",
    "Library",
    "Preparation",
    "Recording",
    "Samples",
    "WrenchConvention",
    "checked_clock",
    "data_frame",
    "default_gap_s",
    "imported",
    "is_data_frame",
    "median_rate_hz",
    "recording_of",
    "recording_of_arrays",
]
