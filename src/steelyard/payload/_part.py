"""A part that a gripper carries: what is known about it before it is weighed.

The centre of mass and the inertia of a part in the gripper are known from its drawing, up to how it
lies in the fingers. With the mass m unknown, its ten numbers are

    phi = m [1, c, k] + e,     k = (inertia about the flange's origin) / mass

where e has the standard deviation mass * s_c for the first moments (s_c from `com_tolerance`), and
for the inertia about the flange's origin half of the part's own inertia, and what the error of
the centre does to it, 2 |c| s_c + s_c^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, TypeAlias

import numpy as np

from steelyard._arrays import Array
from steelyard._codec import Value
from steelyard._kinds import ONE_LINE, Range
from steelyard._units import NORMAL_95
from steelyard.errors import InvalidInertia
from steelyard.inertia import InertialParameters
from steelyard.payload._plausibility import CARRIED_MASSES

_INERTIA_STD = 0.5  # of the part's own inertia, relative: a cube stands in for its shape
_FREE_MASS_STD = 10.0  # of a mass that is not known beforehand, in masses of the part
_MIN_FREE_MASS_STD = 5.0  # [kg]
_TOLERANCES = Range(0.0, CARRIED_MASSES.high)  # [kg]
_COORDINATES = Range(-10.0, 10.0)  # of a centre of mass [m]
_LENGTHS = Range(0.0, 10.0, above=True)  # [m]
_Coordinate: TypeAlias = Annotated[float, _COORDINATES]


@dataclass(frozen=True)
class Part(Value, error=InvalidInertia, partial=True):
    """A part that is expected in the gripper.

    Attributes:
        name: of the part
        mass: of a good part [kg]
        tolerance: largest deviation of the mass of a good part [kg]
        com: centre of mass when it is gripped, (x, y, z) [m], in the flange frame
        com_tolerance: 95 % half-width of each coordinate of the centre [m]
        size: edge of a cube of the same mass whose inertia is about that of the part [m]
    """

    name: Annotated[str, ONE_LINE]
    mass: Annotated[float, CARRIED_MASSES]
    tolerance: Annotated[float, _TOLERANCES] = 0.0
    com: tuple[_Coordinate, _Coordinate, _Coordinate] = (0.0, 0.0, 0.0)
    com_tolerance: Annotated[float, _LENGTHS] = 0.1
    size: Annotated[float, _LENGTHS] = 0.1

    def body(self, mass: float | None = None, flange: str = "flange") -> InertialParameters:
        """The part in the gripper, in the flange frame.

        Args:
            mass: instead of its own [kg]
            flange: name of the flange frame
        """
        if mass is None:
            mass = self.mass
        own = mass * self.size**2 / 6 * np.eye(3)
        return InertialParameters.from_com(mass, np.array(self.com), own, flange)

    @cached_property
    def shape(self) -> Array:
        """The ten numbers for a mass of 1 kg, (10,)."""
        return np.asarray(self.body(1.0).vector)

    @property
    def free_mass_std(self) -> float:
        """Standard deviation of a mass about which nothing is known [kg]."""
        return max(_FREE_MASS_STD * self.mass, _MIN_FREE_MASS_STD)

    def covariance(self, mass_std: float) -> Array:
        """Covariance of the ten numbers before they are weighed, (10, 10).

        Args:
            mass_std: standard deviation of the mass [kg]
        """
        com_std = self.com_tolerance / NORMAL_95
        own = _INERTIA_STD * self.size**2 / 6
        by_centre = 2 * float(np.linalg.norm(self.com)) * com_std + com_std**2
        std = np.zeros(10)
        std[1:4] = self.mass * com_std
        std[4:] = self.mass * (own + by_centre)
        return mass_std**2 * np.outer(self.shape, self.shape) + np.diag(std**2)
