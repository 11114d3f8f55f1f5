"""Estimated parameters: values, covariance, names and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from steelyard._arrays import Array
from steelyard._codec import Value
from steelyard._kinds import COVARIANCE, INFINITE, NOT_NEGATIVE, Inlined, Shape, Size
from steelyard.errors import InvalidSamples
from steelyard.robot import ParameterTable
from steelyard.verdict import Verdict


@dataclass(frozen=True, eq=False)
class Estimate(Value, error=InvalidSamples):
    """Estimated parameters with their covariance.

    Attributes:
        value: (p,) [SI]
        covariance: (p, p); infinite on the diagonal of parameters that the data do not determine
        parameters: kind and joint of each value
        noise: standard deviation of the torque residuals of each joint, (n,) [Nm]
        inflation: factor by which correlation of the residuals in time widens the variance, (n,)
        condition: condition number of the weighted regression, columns scaled to unit length
        verdict: whether they may be used, and what counts against them
    """

    value: Annotated[Array, Shape("p")]
    covariance: Annotated[Array, Shape("p", "p"), INFINITE, COVARIANCE]
    parameters: Annotated[
        ParameterTable, Inlined(ParameterTable.parse, {"names": "names"}), Size("p")
    ]
    noise: Annotated[Array, Shape("n"), NOT_NEGATIVE]
    inflation: Annotated[Array, Shape("n"), INFINITE, NOT_NEGATIVE]
    condition: Annotated[float, INFINITE, NOT_NEGATIVE]
    verdict: Verdict

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.parameters.names

    def __repr__(self) -> str:
        return f"<Estimate: {len(self.names)} parameters. {self.verdict}>"

    @property
    def status(self) -> str:
        """The verdict as a sentence without a full stop."""
        return self.verdict.sentence

    @property
    def std(self) -> Array:
        """Standard deviation of each parameter, (p,) [SI]."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def relative_std(self) -> Array:
        """Standard deviation of each parameter over its size, (p,)."""
        return np.asarray(self.std / np.maximum(np.abs(self.value), 1e-300))

    def weak(self, largest_relative_std: float = 0.3) -> tuple[str, ...]:
        """Names of the parameters that the data hardly determine.

        Args:
            largest_relative_std: a parameter with a larger one is weak
        """
        flags = zip(self.names, self.relative_std, strict=True)
        return tuple(name for name, relative in flags if relative > largest_relative_std)

    def interval(self, level: float = 0.95) -> Array:
        """Lower and upper end of the interval of each parameter, (p, 2) [SI].

        Args:
            level: probability that it contains the truth
        """
        from scipy.special import ndtri

        half = ndtri(0.5 + level / 2) * self.std
        return np.column_stack([self.value - half, self.value + half])
