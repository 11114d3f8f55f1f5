"""The identified arm: base parameters with covariance, able to predict torque."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.errors import InvalidSamples
from steelyard.identification.estimate import Estimate
from steelyard.identification.factor import RegressionFactor
from steelyard.identification.least_squares import correlation_inflation, covariance, solve_weighted
from steelyard.recording import Samples
from steelyard.robot import ParameterBasis, RobotModel

__all__ = ["DynamicModel", "identify", "require_same_joints"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DynamicModel:
    """An arm whose base parameters are known from measurements.

    Attributes:
        robot: kinematics, and the shape of its friction laws
        basis: which combinations of parameters are identified
        estimate: their values and covariance
        kinematics: whether it was fitted to 'measured' or 'commanded' motion
    """

    robot: RobotModel
    basis: ParameterBasis
    estimate: Estimate
    kinematics: str

    def torque(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """The torque that the drives apply, predicted, (N, n) [Nm or N].

        Args:
            q: joint positions, (N, n) [rad or m]
            v: joint velocities, (N, n) [rad/s or m/s]
            a: joint accelerations, (N, n) [rad/s^2 or m/s^2]
        """
        chunks = self.robot.regressor_chunks(q, v, a)
        return np.concatenate([self.basis.reduce(Y) @ self.estimate.value for _, Y in chunks])


def identify(robot: RobotModel, samples: Samples | Iterable[Samples]) -> DynamicModel:
    """The arm as its motion and torques show it: base parameters of links, rotors and friction.

    Friction exponents and the width of the smoothed sign are taken from `robot.drive`.

    Args:
        robot: kinematics and friction laws
        samples: one or many
    """
    parts: Sequence[Samples] = [samples] if isinstance(samples, Samples) else list(samples)
    if not parts:
        raise InvalidSamples("there are no samples to identify from")
    for part in parts:
        require_same_joints(robot, part)
    kinds = {part.kinematics for part in parts}
    if len(kinds) > 1:
        raise InvalidSamples("some samples hold measured motion, others commanded; use one kind")
    basis = ParameterBasis.of(robot)
    factor = RegressionFactor.of(robot, basis, parts)
    solution = solve_weighted(factor)
    draft = Estimate(
        solution.value, np.eye(len(basis)), basis.short_names, solution.noise, np.ones(robot.n), 1.0, ""
    )
    model = DynamicModel(robot, basis, draft, kinds.pop())
    inflation = correlation_inflation([part.tau - model.torque(part.q, part.v, part.a) for part in parts])
    estimate = Estimate(
        solution.value,
        covariance(factor, solution, inflation),
        basis.short_names,
        solution.noise,
        inflation,
        solution.condition,
        _status(solution.unknown, basis, solution.condition),
    )
    return DynamicModel(robot, basis, estimate, model.kinematics)


def require_same_joints(robot: RobotModel, samples: Samples) -> None:
    """Refuses samples of another number of joints.

    Args:
        robot: the arm
        samples: said to be its
    """
    if samples.n != robot.n:
        raise InvalidSamples(
            f"{robot.name} has {robot.n} joints, the samples have {samples.n}:"
            f" {', '.join(samples.joint_names)}"
        )


def _status(unknown: NDArray[np.bool_], basis: ParameterBasis, condition: float) -> str:
    if unknown.any():
        names = ", ".join(np.array(basis.short_names)[unknown])
        return f"the motion says nothing about {unknown.sum()} of {len(basis)} base parameters: {names}"
    return f"all {len(basis)} base parameters were excited (condition number {condition:.3g})"
