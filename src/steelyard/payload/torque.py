"""The payload from joint torques, given the identified empty arm.

A payload phi_L changes the base parameters by J phi_L, J the payload Jacobian (gaz2017 eq. (27)), so loaded
torques follow tau = Y (pi + J phi_L) with the same regressor as the empty arm's. Both pi and phi_L are
estimated, weighted by the noise of each joint, with what the empty runs told about pi as a prior: its
uncertainty is carried into the payload. Friction changes with the load and from day to day, so the prior says
nothing about Fc, Fv and B: they are estimated anew (nuisance).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel, RegressionFactor
from steelyard.identification.least_squares import correlation_inflation, covariance, solve_weighted
from steelyard.identification.model import require_same_joints
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.recording import Samples

__all__ = ["Payload", "weigh"]

Array = NDArray[np.float64]

_FRICTION = ("Fc", "Fv", "B")


@dataclass(frozen=True, eq=False)
class Payload:
    """What was weighed, in the flange frame.

    Attributes:
        body: mass, first moment and inertia, in the flange frame
        covariance: of its ten numbers in the order of `PARAMETER_NAMES`, (10, 10); infinite where unknown
        noise: standard deviation of the torque residuals of each joint, (n,) [Nm]
        status: how good it is, a sentence
    """

    body: InertialParameters
    covariance: Array
    noise: Array
    status: str

    @property
    def std(self) -> Array:
        """Standard deviation of the ten numbers in the order of `PARAMETER_NAMES`, (10,) [SI]."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def com_std(self) -> Array:
        """Standard deviation of the centre of mass, (3,) [m]."""
        slope = np.column_stack([-self.body.com, np.eye(3)]) / self.body.mass
        return np.asarray(np.sqrt(np.diag(slope @ self.covariance[:4, :4] @ slope.T)))


def weigh(model: DynamicModel, samples: Samples) -> Payload:
    """What the arm carries, beyond what it carried when the model was identified.

    Args:
        model: of the empty arm
        samples: of the loaded arm
    """
    require_same_joints(model.robot, samples)
    if samples.kinematics != model.kinematics:
        raise InvalidSamples(
            f"the model was fitted to {model.kinematics} motion,"
            f" these samples hold {samples.kinematics} motion"
        )
    basis = model.basis
    factor = RegressionFactor.of(model.robot, basis, [samples])
    mixing = np.column_stack([np.eye(len(basis)), basis.payload_jacobian])
    solution = solve_weighted(factor, _prior(model), mixing)
    predicted = np.concatenate(
        [
            basis.reduce(Y) @ (mixing @ solution.value)
            for _, Y in model.robot.regressor_chunks(samples.q, samples.v, samples.a)
        ]
    )
    inflation = correlation_inflation([samples.tau - predicted])
    spread = covariance(factor, solution, inflation, mixing)
    body = InertialParameters.from_vector(solution.value[-10:], model.robot.flange)
    return Payload(body, spread[-10:, -10:], solution.noise, _status(body, solution.unknown[-10:]))


def _prior(model: DynamicModel) -> Array:
    """Rows [Z z] of what the empty arm tells about all base parameters but friction."""
    names = np.array([name.rstrip("0123456789r") for name in model.basis.short_names])
    kept = ~np.isin(names, _FRICTION) & np.isfinite(np.diag(model.estimate.covariance))
    value = model.estimate.value[kept]
    whitening = np.linalg.inv(np.linalg.cholesky(model.estimate.covariance[np.ix_(kept, kept)]))
    Z = np.zeros((len(value), len(model.basis) + 10))
    Z[:, np.flatnonzero(kept)] = whitening
    return np.column_stack([Z, whitening @ value])


def _status(body: InertialParameters, unknown: NDArray[np.bool_]) -> str:
    if unknown.any():
        return f"the motion says nothing about {', '.join(np.array(PARAMETER_NAMES)[unknown])}"
    if not body.is_physical:
        return f"no real body has these numbers: {body.why_not_physical}"
    return "all ten parameters were excited; a real body can have these numbers"
