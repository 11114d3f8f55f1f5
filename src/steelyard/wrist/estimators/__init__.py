"""Estimators of the dynamic stage: one file each, one interface (`steelyard.wrist.problem`)."""

from steelyard.wrist.estimators.least_squares import LeastSquares
from steelyard.wrist.estimators.likelihood import MaximumLikelihood
from steelyard.wrist.estimators.recursive_restricted import (
    RecursiveRestricted,
    RecursiveRestrictedTotalLeastSquares,
)
from steelyard.wrist.estimators.recursive_total import RecursiveTotalLeastSquares
from steelyard.wrist.estimators.restricted import RestrictedTotalLeastSquares
from steelyard.wrist.estimators.total import TotalLeastSquares
from steelyard.wrist.estimators.weighted import WeightedLeastSquares
from steelyard.wrist.problem import WrenchEstimator

__all__ = [
    "ESTIMATORS",
    "LeastSquares",
    "MaximumLikelihood",
    "RecursiveRestricted",
    "RecursiveRestrictedTotalLeastSquares",
    "RecursiveTotalLeastSquares",
    "RestrictedTotalLeastSquares",
    "TotalLeastSquares",
    "WeightedLeastSquares",
]

ESTIMATORS: dict[str, WrenchEstimator] = {
    "ls": LeastSquares(),
    "wls": WeightedLeastSquares(),
    "tls": TotalLeastSquares(),
    "rtls": RecursiveTotalLeastSquares(),
    "restricted": RestrictedTotalLeastSquares(),
    "rrtls": RecursiveRestrictedTotalLeastSquares(),
    "ml": MaximumLikelihood(),
}
"""Every estimator by the name that the command line knows."""
