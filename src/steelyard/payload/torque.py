"""The payload from joint torques, given the identified empty arm.

A payload phi changes the base parameters by J phi, J the payload Jacobian (gaz2017 eq. (27)), so loaded
torques follow tau = Y (pi + J phi) with the regressor Y of the empty arm. The methods differ in what they
compare (`steelyard.payload.methods`); here their answers become payloads.

Where motor currents were measured, the gains of the drives are known to a relative standard deviation s_j
only. A gain that is wrong is wrong in the empty and in the loaded runs, so each method says how its answer
moves with the logarithm of each gain, d_j, and sum_j s_j^2 d_j d_j' is added to the covariance.

Loaded runs that move the empty arm by more than its own uncertainty (friction was another one that day) tell
that the model is not quite right: the covariance is widened by the square of that contradiction (Birge).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import InvalidSamples, UnknownName
from steelyard.identification import DynamicModel
from steelyard.identification.problem import require_same_joints
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.payload.methods import METHODS, Answer, WeighingProblem
from steelyard.payload.methods.problem import fixed_rows
from steelyard.payload.physical import nearest_physical
from steelyard.recording import Samples

__all__ = ["Payload", "weigh"]

Array = NDArray[np.float64]

_FAR = 4.28  # standard deviations: beyond, the estimate of ten numbers is off with 95 % probability
_STRANGE = 5.0  # times the empty arm's residuals, or its own uncertainty
_STRANGE_SHARE = 0.01  # of the torque


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
    """

    body: InertialParameters
    unconstrained: InertialParameters
    covariance: Array
    noise: Array
    status: str
    method: str = "direct"

    @property
    def std(self) -> Array:
        """Standard deviation of the ten numbers in the order of `PARAMETER_NAMES`, (10,) [SI]."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def com_std(self) -> Array:
        """Standard deviation of the centre of mass, (3,) [m]."""
        slope = np.column_stack([-self.body.com, np.eye(3)]) / self.body.mass
        known = np.where(np.isfinite(self.covariance[:4, :4]), self.covariance[:4, :4], 0.0)
        spread = np.sqrt(np.diag(slope @ known @ slope.T))
        return np.where(np.isfinite(self.std[1:4]) & np.isfinite(self.std[0]), spread, np.inf)

    @property
    def excited(self) -> tuple[str, ...]:
        """Names of the numbers that the motion tells, of `PARAMETER_NAMES`."""
        return tuple(name for name, std in zip(PARAMETER_NAMES, self.std, strict=True) if np.isfinite(std))

    @property
    def trusted(self) -> bool:
        """Whether all ten numbers are known and nothing speaks against them."""
        return len(self.excited) == 10 and "do not trust" not in self.status

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
        return Payload(
            InertialParameters.from_vector(self.body.vector + tool.body.vector, self.body.frame),
            InertialParameters.from_vector(
                self.unconstrained.vector + tool.unconstrained.vector, self.body.frame
            ),
            self.covariance + tool.covariance,
            self.noise,
            f"tool and part together; the part: {self.status}; the tool: {tool.status}",
            self.method,
        )


def weigh(
    model: DynamicModel,
    samples: Samples | Iterable[Samples],
    *,
    method: str = "direct",
    fixed: Mapping[str, float] | None = None,
    empty: Samples | Iterable[Samples] | None = None,
) -> Payload:
    """What the arm carries, beyond what it carried when the model was identified.

    Args:
        model: of the empty arm
        samples: of the loaded arm, one or many
        method: a name of `steelyard.payload.methods.METHODS`
        fixed: numbers that are known, by name of `PARAMETER_NAMES` [SI], say {"m": 2.8}; cx, cy, cz for the
            centre of mass [m]; 'inertia' for all six, about the flange's origin
        empty: for the methods that need them: runs of the empty arm ('torque-change' on the same motion,
            'joint' on any), or the controller's torque of the empty arm on the same motion ('manufacturer')
    """
    if method not in METHODS:
        raise UnknownName(f"there is no method '{method}'; the methods are {', '.join(METHODS)}")
    parts = _checked(model, samples, "weigh from")
    others = () if empty is None else _checked(model, empty, "compare with")
    problem = WeighingProblem(model, parts, fixed_rows(fixed or {}), others)
    answer = METHODS[method](problem)
    covariance = max(1.0, answer.contradiction) ** 2 * answer.covariance + _gain_covariance(model, answer)
    plain = InertialParameters.from_vector(answer.value, model.robot.flange)
    body, status = _judged(plain, covariance, answer, tuple(fixed or ()))
    strange = _strangeness(model, parts, answer)
    return Payload(body, plain, covariance, answer.noise, f"{status}{strange}", method)


def _checked(model: DynamicModel, samples: Samples | Iterable[Samples], purpose: str) -> Sequence[Samples]:
    parts = [samples] if isinstance(samples, Samples) else list(samples)
    if not parts:
        raise InvalidSamples(f"there are no samples to {purpose}")
    for part in parts:
        require_same_joints(model.robot, part)
        if part.kinematics != model.kinematics:
            raise InvalidSamples(
                f"the model was fitted to {model.kinematics} motion,"
                f" these samples hold {part.kinematics} motion"
            )
    return parts


def _gain_covariance(model: DynamicModel, answer: Answer) -> Array:
    """What the uncertain gains of the drives add to the covariance, (10, 10)."""
    drive = model.robot.drive
    if drive.gain is None or drive.gain_std is None:
        return np.zeros((10, 10))
    moved = answer.per_gain * np.abs(drive.gain_std / drive.gain)
    return np.asarray(moved @ moved.T)


def _judged(
    plain: InertialParameters, spread: Array, answer: Answer, fixed: tuple[str, ...]
) -> tuple[InertialParameters, str]:
    """The body to answer with, and a sentence about it."""
    if not answer.unknown[0] and plain.mass <= 0:
        return plain, (
            f"do not trust this: the mass is {plain.mass:.4g} kg; is the model that of the empty arm,"
            " and was the load taken after it was identified?"
        )
    if answer.unknown.any():
        names = ", ".join(np.array(PARAMETER_NAMES)[answer.unknown])
        why = "; ".join((*answer.notes, "do not use these numbers"))
        return plain, f"the motion says nothing about {names}; {why}"
    body, distance = nearest_physical(plain, spread)
    told = f"{', '.join(fixed)} as given, the others excited" if fixed else "all ten parameters were excited"
    if distance == 0.0:
        return body, f"{told}, and a real body can have them"
    if distance < _FAR:
        return body, (
            f"{told}; this is the nearest real body,"
            f" {distance:.1f} standard deviations from the plain estimate"
        )
    if fixed:
        return plain, f"{told}; no real body: {plain.why_not_physical}"
    return plain, (
        f"do not trust this: the nearest real body is {distance:.0f} standard deviations away;"
        f" {plain.why_not_physical}"
    )


def _strangeness(model: DynamicModel, parts: Sequence[Samples], answer: Answer) -> str:
    """A sentence where the loaded torques do not look like those of the arm that was identified."""
    if answer.contradiction > _STRANGE:
        return (
            f"; do not trust this: the loaded torques contradict the empty arm by {answer.contradiction:.0f}"
            " standard deviations: is the model that of this arm, and did nothing touch it?"
        )
    size = np.sqrt(np.mean(np.concatenate([part.tau for part in parts]) ** 2, axis=0))
    times = answer.noise / np.maximum(model.estimate.noise, 1e-300)
    strange = (times > _STRANGE) & (answer.noise > _STRANGE_SHARE * size)
    if not strange.any():
        return ""
    j = int(np.where(strange, times, 0.0).argmax())
    return (
        f"; do not trust this: {parts[0].joint_names[j]} deviates {times[j]:.0f} times as much as the empty"
        " arm did: is the model that of this arm, and did nothing touch it?"
    )
