"""Identification: from samples to parameters with an honest covariance."""

from steelyard.identification.empty_arm import identify
from steelyard.identification.estimate import Estimate
from steelyard.identification.factor import RegressionFactor
from steelyard.identification.model import DynamicModel, essential, load_model, save_model
from steelyard.identification.validation import Validation, choose_friction
from steelyard.robot.friction import FRICTION_MODELS, FrictionLaw

__all__ = [
    "FRICTION_MODELS",
    "DynamicModel",
    "Estimate",
    "FrictionLaw",
    "RegressionFactor",
    "Validation",
    "choose_friction",
    "essential",
    "identify",
    "load_model",
    "save_model",
]
