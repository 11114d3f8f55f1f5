"""Estimators of the dynamic stage, by name: all solve a `steelyard.wrist.regression.WrenchRegression`."""

from steelyard.wrist.estimators.batch import (
    LEAST_SQUARES,
    MAXIMUM_LIKELIHOOD,
    RESTRICTED,
    TOTAL,
    WEIGHTED,
)
from steelyard.wrist.estimators.recursive import RecursiveRestricted, RecursiveTotalLeastSquares
from steelyard.wrist.regression import WrenchEstimator

__all__ = ["ESTIMATORS", "RecursiveRestricted", "RecursiveTotalLeastSquares", "WrenchEstimator"]

ESTIMATORS: dict[str, WrenchEstimator] = {
    "ls": LEAST_SQUARES,
    "wls": WEIGHTED,
    "tls": TOTAL,
    "rtls": RecursiveTotalLeastSquares.estimator(),
    "restricted": RESTRICTED,
    "rrtls": RecursiveRestricted.estimator(),
    "ml": MAXIMUM_LIKELIHOOD,
}
"""Every estimator by the name that the command line knows."""
