"""Estimators of the dynamic stage: one file each, one interface (`steelyard.payload.wrench.problem`)."""

from steelyard.payload.wrench.estimators.least_squares import LeastSquares
from steelyard.payload.wrench.estimators.likelihood import MaximumLikelihood
from steelyard.payload.wrench.estimators.recursive_restricted import (
    RecursiveRestricted,
    RecursiveRestrictedTotalLeastSquares,
)
from steelyard.payload.wrench.estimators.recursive_total import RecursiveTotalLeastSquares
from steelyard.payload.wrench.estimators.restricted import RestrictedTotalLeastSquares
from steelyard.payload.wrench.estimators.total import TotalLeastSquares
from steelyard.payload.wrench.estimators.weighted import WeightedLeastSquares
from steelyard.payload.wrench.problem import WrenchEstimator

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
