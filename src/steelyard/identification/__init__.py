"""Identification: from samples to parameters with an honest covariance."""

from steelyard.identification.estimate import Estimate
from steelyard.identification.factor import RegressionFactor
from steelyard.identification.model import DynamicModel, identify

__all__ = ["DynamicModel", "Estimate", "RegressionFactor", "identify"]
