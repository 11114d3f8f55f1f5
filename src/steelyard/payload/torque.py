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
from steelyard.payload.physical import nearest_physical
from steelyard.recording import Samples

__all__ = ["Payload", "weigh"]

Array = NDArray[np.float64]

_FRICTION = ("Fc", "Fv", "B")
_FAR = 4.28  # standard deviations: beyond, the estimate of ten numbers is off with 95 % probability


@dataclass(frozen=True, eq=False)
class Payload:
    """What was weighed, in the flange frame.

    Attributes:
        body: the answer, in the flange frame; physical where all ten numbers were excited
        unconstrained: the plain estimate, in the flange frame, which no real body may have
        covariance: of its ten numbers in the order of `PARAMETER_NAMES`, (10, 10); infinite where unknown
        noise: standard deviation of the torque residuals of each joint, (n,) [Nm]
        status: how good it is, a sentence
    """

    body: InertialParameters
    unconstrained: InertialParameters
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
    plain = InertialParameters.from_vector(solution.value[-10:], model.robot.flange)
    body, status = _judged(plain, spread[-10:, -10:], solution.unknown[-10:])
    return Payload(body, plain, spread[-10:, -10:], solution.noise, status)


def _prior(model: DynamicModel) -> Array:
    """Rows [Z z] of what the empty arm tells about all base parameters but friction."""
    names = np.array([name.rstrip("0123456789r") for name in model.basis.short_names])
    kept = ~np.isin(names, _FRICTION) & np.isfinite(np.diag(model.estimate.covariance))
    value = model.estimate.value[kept]
    whitening = np.linalg.inv(np.linalg.cholesky(model.estimate.covariance[np.ix_(kept, kept)]))
    Z = np.zeros((len(value), len(model.basis) + 10))
    Z[:, np.flatnonzero(kept)] = whitening
    return np.column_stack([Z, whitening @ value])


def _judged(
    plain: InertialParameters, spread: Array, unknown: NDArray[np.bool_]
) -> tuple[InertialParameters, str]:
    """The body to answer with, and a sentence about it."""
    if unknown.any():
        names = ", ".join(np.array(PARAMETER_NAMES)[unknown])
        return plain, f"the motion says nothing about {names}; do not use these numbers"
    body, distance = nearest_physical(plain, spread)
    if distance == 0.0:
        return body, "all ten parameters were excited, and a real body can have them"
    if distance < _FAR:
        return body, (
            "all ten parameters were excited; this is the nearest real body,"
            f" {distance:.1f} standard deviations from the plain estimate"
        )
    return plain, (
        f"do not trust this: the nearest real body is {distance:.0f} standard deviations away;"
        f" {plain.why_not_physical}"
    )
