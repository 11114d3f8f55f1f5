"""Estimators of the dynamic stage by name, for a `WrenchRegression`."""

from steelyard.wrist._regression import WrenchEstimator, WrenchFit, WrenchRegression
from steelyard.wrist.estimators._batch import (
    LEAST_SQUARES,
    MAXIMUM_LIKELIHOOD,
    RESTRICTED,
    TOTAL,
    WEIGHTED,
)
from steelyard.wrist.estimators._recursive import (
    RecursiveRestricted,
    RecursiveTotalLeastSquares,
    RestrictedState,
)

__all__ = [
    "ESTIMATORS",
    "RecursiveRestricted",
    "RecursiveTotalLeastSquares",
    "RestrictedState",
    "WrenchEstimator",
    "WrenchFit",
    "WrenchRegression",
]

ESTIMATORS: dict[str, WrenchEstimator] = {
    "ls": LEAST_SQUARES,
    "wls": WEIGHTED,
    "tls": TOTAL,
    "rtls": RecursiveTotalLeastSquares.estimator(),
    "restricted": RESTRICTED,
    "rrtls": RecursiveRestricted.estimator(),
    "ml": MAXIMUM_LIKELIHOOD,
}
"""Every estimator by its name in arguments and options."""
