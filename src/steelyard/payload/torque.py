"""The payload from joint torques, given the identified empty arm.

A payload phi_L changes the base parameters by J phi_L, J the payload Jacobian (gaz2017 eq. (27)), so loaded
torques follow tau = Y (pi + J phi_L) with the same regressor as the empty arm's. Both pi and phi_L are
estimated, weighted by the noise of each joint, with what the empty runs told about pi as a prior: its
uncertainty is carried into the payload. Friction changes with the load and from day to day, so the prior says
nothing about Fc, Fv, B and Fs: they are estimated anew (nuisance). Where the friction law knows that friction
grows with the carried torque (Fl), that share is taken from the empty arm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import InvalidSamples, UnknownName
from steelyard.identification import DynamicModel, RegressionFactor
from steelyard.identification.covariance import correlated_covariance
from steelyard.identification.least_squares import solve_weighted
from steelyard.identification.problem import kinds, require_same_joints
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.payload.physical import nearest_physical
from steelyard.recording import Samples

__all__ = ["Payload", "weigh"]

Array = NDArray[np.float64]

_FRICTION = ("Fc", "Fv", "B", "Fs")
_LOAD_ROUNDS = 4
_CERTAIN = 1e5  # one over the standard deviation of a number that is given, [1/SI]
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


def weigh(
    model: DynamicModel, samples: Samples | Iterable[Samples], *, fixed: Mapping[str, float] | None = None
) -> Payload:
    """What the arm carries, beyond what it carried when the model was identified.

    Args:
        model: of the empty arm
        samples: of the loaded arm, one or many
        fixed: numbers that are known, by name of `PARAMETER_NAMES` [SI], say {"m": 2.8}
    """
    parts = _checked(model, samples)
    mixing = np.column_stack([np.eye(len(model.estimate.value)), _payload_columns(model)])
    prior = np.vstack([_prior(model), _fixed_rows(fixed or {}, mixing.shape[1])])
    theta = model.estimate.value
    for _ in range(_LOAD_ROUNDS if model.law.load else 1):
        rows = [model.rows(part, theta) for part in parts]
        empty = RegressionFactor.empty(model.robot.n, len(theta))
        factor = RegressionFactor.stacked([empty.add(part.Y, part.tau, part.usable) for part in rows])
        solution = solve_weighted(factor, prior, mixing)
        theta = mixing @ solution.value
    spread, _ = correlated_covariance(rows, solution, prior=prior, mixing=mixing)
    plain = InertialParameters.from_vector(solution.value[-10:], model.robot.flange)
    body, status = _judged(plain, spread[-10:, -10:], solution.unknown[-10:], tuple(fixed or ()))
    noise = np.sqrt(np.mean(solution.noise.reshape(len(parts), -1) ** 2, axis=0))
    return Payload(body, plain, spread[-10:, -10:], noise, status)


def _checked(model: DynamicModel, samples: Samples | Iterable[Samples]) -> Sequence[Samples]:
    parts = [samples] if isinstance(samples, Samples) else list(samples)
    if not parts:
        raise InvalidSamples("there are no samples to weigh from")
    for part in parts:
        require_same_joints(model.robot, part)
        if part.kinematics != model.kinematics:
            raise InvalidSamples(
                f"the model was fitted to {model.kinematics} motion,"
                f" these samples hold {part.kinematics} motion"
            )
    return parts


def _fixed_rows(fixed: Mapping[str, float], unknowns: int) -> Array:
    """Rows [Z z] that hold known numbers of the payload where they are."""
    rows = np.zeros((len(fixed), unknowns + 1))
    for row, (name, value) in zip(rows, fixed.items(), strict=True):
        if name not in PARAMETER_NAMES:
            raise UnknownName(f"'{name}' cannot be fixed; the numbers are {', '.join(PARAMETER_NAMES)}")
        if not np.isfinite(value) or (name == "m" and value <= 0):
            raise InvalidSamples(f"'{name}' cannot be fixed at {value}")
        row[unknowns - 10 + PARAMETER_NAMES.index(name)] = _CERTAIN
        row[-1] = _CERTAIN * value
    return rows


def _payload_columns(model: DynamicModel) -> Array:
    """How the parameters of the model change with a payload, (p, 10)."""
    columns = np.zeros((len(model.estimate.value), 10))
    columns[: len(model.basis)] = model.basis.payload_jacobian
    return columns


def _prior(model: DynamicModel) -> Array:
    """Rows [Z z] of what the empty arm tells about all parameters but friction."""
    kept = ~np.isin(kinds(model.estimate.names), _FRICTION) & np.isfinite(np.diag(model.estimate.covariance))
    value = model.estimate.value[kept]
    whitening = np.linalg.inv(np.linalg.cholesky(model.estimate.covariance[np.ix_(kept, kept)]))
    Z = np.zeros((len(value), len(kept) + 10))
    Z[:, np.flatnonzero(kept)] = whitening
    return np.column_stack([Z, whitening @ value])


def _judged(
    plain: InertialParameters, spread: Array, unknown: NDArray[np.bool_], fixed: tuple[str, ...]
) -> tuple[InertialParameters, str]:
    """The body to answer with, and a sentence about it."""
    if unknown.any():
        names = ", ".join(np.array(PARAMETER_NAMES)[unknown])
        return plain, f"the motion says nothing about {names}; do not use these numbers"
    if fixed:
        words = plain.why_not_physical or "a real body can have these numbers"
        return plain, f"{', '.join(fixed)} as given, the others excited; {words}"
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
