"""Torque for each ampere: a value that says how it is known and how well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from steelyard.arrays import Array
from steelyard.errors import InvalidRobot
from steelyard.robot.drive import GAIN_TOLERANCE

Origin = Literal["given", "targets", "known mass"]

_TOLERANCE = {"given": GAIN_TOLERANCE, "targets": GAIN_TOLERANCE, "known mass": 0.01}
"""What a gain is worth beyond its own error, relative: a motor differs from its maker's number by magnets and
winding; and all of them weaken as they warm up, by about 0.1 % a kelvin, where ten kelvin are usual."""


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Torque of each drive for each ampere, gear included, with how it is known and how well.

    Attributes:
        value: (n,) [Nm/A]; NaN where the data do not tell
        std: standard deviation, (n,) [Nm/A]; infinite where the data do not tell
        how: 'given', from the controller's 'targets', or from a 'known mass'
        status: how good they are, a sentence
        notes: a sentence for each joint
    """

    value: Array
    std: Array
    how: Origin
    status: str
    notes: Sequence[str]

    def __post_init__(self) -> None:
        value, std = np.array(self.value, dtype=float), np.array(self.std, dtype=float)
        if value.ndim != 1 or std.shape != value.shape or len(self.notes) != len(value):
            raise InvalidRobot(
                "gains, standard deviations and notes must be one for each joint,"
                f" got {value.shape}, {std.shape} and {len(self.notes)}"
            )
        if self.how not in get_args(Origin):
            known = ", ".join(map(repr, get_args(Origin)))
            raise InvalidRobot(f"gains come from {known}, not from '{self.how}'")
        if not np.array_equal(np.isnan(value), np.isinf(std)) or not (std >= 0).all():
            raise InvalidRobot(
                "a standard deviation must not be negative, and is infinite exactly where the gain is unknown"
                f" (NaN); got {std} for {value}"
            )
        for name, array in (("value", value), ("std", std)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "notes", tuple(self.notes))

    @classmethod
    def given(cls, values: ArrayLike, *, std: ArrayLike = 0.0) -> DriveGains:
        """Gains that somebody states.

        Args:
            values: (n,) [Nm/A]; negative for a motor that counts its current the other way
            std: their standard deviations, () or (n,) [Nm/A]; taken as exact by default
        """
        value, spread = np.array(values, dtype=float), np.asarray(std, dtype=float)
        if value.ndim != 1 or not value.size or not np.isfinite(value).all() or not value.all():
            raise InvalidRobot(f"gains must be one finite number other than 0 for each joint, got {value}")
        words = "with the uncertainty that was stated" if spread.any() else "taken as exact"
        return cls(
            value,
            np.full(len(value), spread) if spread.ndim == 0 else spread,
            "given",
            f"gains as given, {words}",
            ("as given",) * len(value),
        )

    def __len__(self) -> int:
        return len(self.value)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which joints have a known gain, (n,)."""
        return np.isfinite(self.std)

    @property
    def working_std(self) -> Array:
        """Standard deviation while the arm works, (n,) [Nm/A]: motors differ, and weaken as they warm up."""
        return np.asarray(np.hypot(self.std, _TOLERANCE[self.how] * np.abs(self.value)))

    def interval(self, level: float = 0.95) -> Array:
        """Lower and upper end of the interval of each gain, (n, 2) [Nm/A]; NaN where unknown.

        Args:
            level: probability that it contains the truth
        """
        half = ndtri(0.5 + level / 2) * np.where(self.known, self.std, np.nan)
        return np.column_stack([self.value - half, self.value + half])
