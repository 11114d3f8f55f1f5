"""What was weighed: ten numbers with their covariance, in the flange frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.inertia import PARAMETER_NAMES, InertialParameters


@dataclass(frozen=True, eq=False)
class Payload:
    """What was weighed, in the flange frame.

    Attributes:
        body: the answer, in the flange frame; physical where all ten numbers were excited
        unconstrained: the plain estimate, in the flange frame, which no real body may have
        covariance: of its ten numbers in the order of `PARAMETER_NAMES`, (10, 10); infinite where unknown
        noise: standard deviation of the torque residuals of each joint, (n,) [Nm]
        status: how good it is, a sentence
        method: of weighing
        gain_error: how one standard deviation of each drive's gain moves the ten numbers, (10, n), which is
            in the covariance too; None where torques were measured
    """

    body: InertialParameters
    unconstrained: InertialParameters
    covariance: Array
    noise: Array
    status: str
    method: str = "direct"
    gain_error: Array | None = None

    @property
    def std(self) -> Array:
        """Standard deviation of the ten numbers in the order of `PARAMETER_NAMES`, (10,) [SI]."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def com_std(self) -> Array:
        """Standard deviation of the centre of mass, (3,) [m]; infinite where there is no mass."""
        if self.body.mass == 0:
            return np.full(3, np.inf)
        slope = np.column_stack([-self.body.com, np.eye(3)]) / self.body.mass
        known = np.where(np.isfinite(self.covariance[:4, :4]), self.covariance[:4, :4], 0.0)
        spread = np.sqrt(np.diag(slope @ known @ slope.T))
        return np.where(np.isfinite(self.std[1:4]) & np.isfinite(self.std[0]), spread, np.inf)

    @property
    def excited(self) -> tuple[str, ...]:
        """Names of the numbers that the motion, or what was fixed, tells, of `PARAMETER_NAMES`."""
        return tuple(name for name, std in zip(PARAMETER_NAMES, self.std, strict=True) if np.isfinite(std))

    @property
    def trusted(self) -> bool:
        """Whether its method tells what it can tell, and nothing speaks against it."""
        return "do not trust" not in self.status and "do not use" not in self.status

    def together_with(self, tool: Payload) -> Payload:
        """The tool and this part as one load, their uncertainties added.

        Args:
            tool: that the arm carried when its model was identified, in the same frame
        """
        if tool.body.frame != self.body.frame:
            raise InvalidSamples(
                f"the tool is given in frame '{tool.body.frame}', the part in '{self.body.frame}':"
                " express both in one frame first"
            )
        mine, others = self.gain_error, tool.gain_error
        covariance, gain_error = self.covariance + tool.covariance, mine if others is None else others
        if mine is not None and others is not None:  # a gain that is wrong is wrong for both
            gain_error = mine + others
            covariance = covariance + mine @ others.T + others @ mine.T
        return Payload(
            InertialParameters.from_vector(self.body.vector + tool.body.vector, self.body.frame),
            InertialParameters.from_vector(
                self.unconstrained.vector + tool.unconstrained.vector, self.body.frame
            ),
            covariance,
            self.noise,
            f"tool and part together; the part: {self.status}; the tool: {tool.status}",
            self.method,
            gain_error,
        )
