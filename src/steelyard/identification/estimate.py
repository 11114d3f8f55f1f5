"""An answer that judges itself: value, covariance, names, and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from steelyard.arrays import Array


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated parameters with their covariance.

    Attributes:
        value: (p,) [SI]
        covariance: (p, p); infinite on the diagonal where the data say nothing
        names: of the parameters
        noise: standard deviation of the torque residuals of each joint, (n,) [Nm]
        inflation: how much the correlation of the residuals in time has widened the covariance, (n,)
        condition: condition number of the weighted regression, columns scaled to unit length
        status: how good it is, a sentence
    """

    value: Array
    covariance: Array
    names: Sequence[str]
    noise: Array
    inflation: Array
    condition: float
    status: str

    def __post_init__(self) -> None:
        for name in ("value", "covariance", "noise", "inflation"):
            array = np.array(getattr(self, name), dtype=float)
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def std(self) -> Array:
        """Standard deviation of each parameter, (p,) [SI]."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def relative_std(self) -> Array:
        """Standard deviation of each parameter over its size, (p,)."""
        return np.asarray(self.std / np.maximum(np.abs(self.value), 1e-300))

    def weak(self, largest_relative_std: float = 0.3) -> tuple[str, ...]:
        """Names of the parameters that the data hardly tell.

        Args:
            largest_relative_std: beyond it a parameter is weak
        """
        flags = zip(self.names, self.relative_std, strict=True)
        return tuple(name for name, relative in flags if relative > largest_relative_std)

    def interval(self, level: float = 0.95) -> Array:
        """Lower and upper end of the interval of each parameter, (p, 2) [SI].

        Args:
            level: probability that it contains the truth
        """
        half = ndtri(0.5 + level / 2) * self.std
        return np.column_stack([self.value - half, self.value + half])
