"""From a Recording to Samples: the only room that changes measured values.

Whole recordings are prepared without delay (`prepare`), streams one row at a time (`replay`,
`JointPath`); the filters below take any columns with a clock, of joints or of a wrist sensor.
"""

from steelyard.recording import DEFAULT_CUTOFF_HZ, Preparation
from steelyard.signals._causal import FixedLag, JointPath, OnlineSample, RawRow, replay
from steelyard.signals._filters import (
    central_differences,
    low_pass,
    moving_mean,
    noise_gains,
    noise_of_differences,
    resample,
    uniform_clock,
)
from steelyard.signals._prepare import joint_torque, prepare, with_chosen_cutoff

__all__ = [
    "DEFAULT_CUTOFF_HZ",
    "FixedLag",
    "JointPath",
    "OnlineSample",
    "Preparation",
    "RawRow",
    "central_differences",
    "joint_torque",
    "low_pass",
    "moving_mean",
    "noise_gains",
    "noise_of_differences",
    "prepare",
    "replay",
    "resample",
    "uniform_clock",
    "with_chosen_cutoff",
]
