"""Numbers that no tool or part has: usually a wrong unit, scale or arm.

A body whose second moments are those of a sphere of radius r, r^2 = 5 / 3 of its squared radius of
gyration, is nowhere less dense than that sphere. The largest principal moment gives the largest r,
so that the density is a lower limit.
"""

from __future__ import annotations

import numpy as np

from steelyard._arrays import Array
from steelyard._kinds import Range
from steelyard._units import NORMAL_95
from steelyard.inertia import INERTIA, InertialParameters
from steelyard.verdict import Doubt, DoubtKind

RATED_MASS = {
    "ur3": 3.0, "ur3e": 3.0, "ur5": 5.0, "ur5e": 5.0, "ur7e": 7.5, "ur10": 10.0, "ur10e": 12.5,
    "ur12e": 12.5, "ur15": 15.0, "ur16e": 16.0, "ur20": 20.0, "ur30": 30.0, "panda": 3.0,
    "fr3": 3.0, "lwr4": 7.0, "tx60": 9.0, "kr60ha": 60.0,
}  # fmt: skip
"""Largest payload of arms by name, as their makers state it, [kg]."""

CARRIED_MASSES = Range(0.0, 5000.0, above=True)
"""Masses that an arm can carry at all, [kg]; the largest arms carry less than half of it."""

MAX_MASS = 2300.0
"""Largest mass that an arm carries, [kg]."""

MAX_SIZE = 2.0
"""Largest distance of a centre of mass from the flange, and radius of gyration, [m]."""

_MAX_OVERLOAD = 1.5  # of the rating
_MIN_MASS = 1e-4  # [kg]; an arm feels no smaller weight, but units may be wrong
_MAX_DENSITY = 22_600.0  # [kg/m^3], osmium


def implausible_doubt(body: InertialParameters, covariance: Array, arm: str = "") -> Doubt | None:
    """A doubt if a mass, a size or a density is that of no tool or part, beyond its uncertainty.

    Args:
        body: the estimate; its mass is positive
        covariance: of its ten numbers, (10, 10); infinite where unknown
        arm: name of the arm; empty if unknown
    """
    std = np.sqrt(np.diag(covariance))
    least = body.mass - NORMAL_95 * float(std[0])
    rated = RATED_MASS.get(arm.lower(), np.inf)
    words = ""
    if least > _MAX_OVERLOAD * rated:
        words = f"{body.mass:.4g} kg is far above the rating of {arm}, {rated:g} kg"
    elif least > MAX_MASS:
        words = f"no arm carries {body.mass:.4g} kg"
    elif body.mass + NORMAL_95 * float(std[0]) < _MIN_MASS:
        words = f"no arm weighs as little as {body.mass:.2g} kg"
    elif _com_distance(body, covariance) > MAX_SIZE:
        words = f"the centre of mass is {np.linalg.norm(body.com):.2g} m away"
    elif np.isfinite(std).all():
        words = _implausible_size(body, std)
    if not words:
        return None
    return Doubt(DoubtKind.IMPLAUSIBLE, f"{words}: check units, signs and scale of the readings")


def _com_distance(body: InertialParameters, covariance: Array) -> float:
    """The least distance of the centre of mass from the origin within its interval, [m]."""
    variances = np.diag(body.com_covariance(covariance))
    half = NORMAL_95 * float(np.sqrt(np.maximum(variances, 0.0).max()))
    return float(np.linalg.norm(body.com)) - half


def _implausible_size(body: InertialParameters, std: Array) -> str:
    """What is wrong with the radius of gyration or the density; empty if nothing is."""
    moment = float(body.principal_moments[-1])
    half = NORMAL_95 * float(std[INERTIA].max())
    if moment - half > body.mass * MAX_SIZE**2:
        return f"an inertia of {moment:.2g} kg m^2 needs a load of several metres"
    radius = np.sqrt(5.0 * max(moment + half, 0.0) / (2.0 * body.mass))
    density = body.mass / (4.0 / 3.0 * np.pi * max(radius, 1e-9) ** 3)
    if density > _MAX_DENSITY:
        return f"a density of at least {density:.2g} kg/m^3 is that of no material"
    return ""
