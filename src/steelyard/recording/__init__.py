"""Signals over time: a Recording as it was measured, Samples ready to fit.

A `Recording` holds signals exactly as they were measured, in SI units, on one clock that starts at
0, including jitter, repeated rows and gaps. `steelyard.signals` turns it into `Samples`, which are
uniform, finite and differentiated by construction and describe how they were made. Columns of
tables are matched with signals by their names, or by the argument `columns`.
"""

from steelyard.recording._arm import UNKNOWN_ARM, ArmIdentity
from steelyard.recording._columns import Requested
from steelyard.recording._layout import AXES, CHANNELS, Layout, WrenchConvention
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
from steelyard.recording._sample import Sample
from steelyard.recording._samples import DEFAULT_CUTOFF_HZ, Preparation, Samples

__all__ = [
    "AXES",
    "CHANNELS",
    "DEFAULT_CUTOFF_HZ",
    "UNKNOWN_ARM",
    "ArmIdentity",
    "Layout",
    "Library",
    "Preparation",
    "Recording",
    "Requested",
    "Sample",
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
