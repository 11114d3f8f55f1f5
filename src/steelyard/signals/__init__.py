"""From a Recording to Samples; the only package that changes measured values.

`prepare` filters a whole recording without delay; `replay` and `JointPath` filter a stream one row
at a time, and an `UnfilteredPath` takes its rows as they are. The filters accept any columns with a
clock, from joints or from a wrist sensor.
"""

from steelyard.recording import DEFAULT_CUTOFF_HZ, Preparation
from steelyard.signals._causal import FixedLag, JointPath, PathState, path_of, replay
from steelyard.signals._filters import (
    central_differences,
    low_pass,
    moving_mean,
    noise_gains,
    noise_of_differences,
    resample,
    uniform_clock,
)
from steelyard.signals._grid import ROWS_TO_INTERPOLATE, UniformGrid
from steelyard.signals._prepare import joint_torque, prepare, with_chosen_cutoff
from steelyard.signals._row_path import RowPath
from steelyard.signals._unfiltered import UnfilteredPath

__all__ = [
    "DEFAULT_CUTOFF_HZ",
    "ROWS_TO_INTERPOLATE",
    "FixedLag",
    "JointPath",
    "PathState",
    "Preparation",
    "RowPath",
    "UnfilteredPath",
    "UniformGrid",
    "central_differences",
    "joint_torque",
    "low_pass",
    "moving_mean",
    "noise_gains",
    "noise_of_differences",
    "path_of",
    "prepare",
    "replay",
    "resample",
    "uniform_clock",
    "with_chosen_cutoff",
]
