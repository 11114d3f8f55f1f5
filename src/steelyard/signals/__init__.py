"""From a Recording to Samples: the only room that changes measured values."""

from steelyard.signals.causal import CausalDecimation, CausalDerivative, CausalLowPass, CausalMean
from steelyard.signals.filters import central_differences, low_pass, moving_mean, resample
from steelyard.signals.prepare import Preparation, joint_torque, prepare, split_at_gaps

__all__ = [
    "CausalDecimation",
    "CausalDerivative",
    "CausalLowPass",
    "CausalMean",
    "Preparation",
    "central_differences",
    "joint_torque",
    "low_pass",
    "moving_mean",
    "prepare",
    "resample",
    "split_at_gaps",
]
