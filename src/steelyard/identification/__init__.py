"""Identification: from samples to parameters with an honest covariance."""

from steelyard.identification._empty_arm import identify
from steelyard.identification._estimate import Estimate
from steelyard.identification._factor import RegressionFactor
from steelyard.identification._feasible import FeasibleArm, UndecidedDirections
from steelyard.identification._feasible_space import ParameterBounds
from steelyard.identification._misfit import CauseMisfit, Misfit
from steelyard.identification._model import DynamicModel
from steelyard.identification._problem import Rows
from steelyard.identification._solved_again import essential, solved_again
from steelyard.identification._validation import FrictionChoice, Validation, choose_friction
from steelyard.robot._friction import FRICTION_MODELS, FrictionLaw

__all__ = [
    "FRICTION_MODELS",
    "CauseMisfit",
    "DynamicModel",
    "Estimate",
    "FeasibleArm",
    "FrictionChoice",
    "FrictionLaw",
    "Misfit",
    "ParameterBounds",
    "RegressionFactor",
    "Rows",
    "UndecidedDirections",
    "Validation",
    "choose_friction",
    "essential",
    "identify",
    "solved_again",
]
