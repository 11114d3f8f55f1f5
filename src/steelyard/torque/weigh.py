"""The payload from joint torques, given the identified empty arm.

A payload phi changes the base parameters by J phi, J the payload Jacobian (gaz2017 eq. (27)), so loaded
torques follow tau = Y (pi + J phi) with the regressor Y of the empty arm. The methods differ in what they
compare (`steelyard.torque.methods`); here their answers become payloads.

Where motor currents were measured, the gains of the drives are known to a relative standard deviation s_j
only. A gain that is wrong is wrong in the empty and in the loaded runs, so each method says how its answer
moves with the logarithm of each gain, d_j, and sum_j s_j^2 d_j d_j' is added to the covariance.

Loaded runs that move the empty arm by more than its own uncertainty (friction was another one that day) tell
that the model is not quite right: the covariance is widened by the square of that contradiction (Birge).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import InvalidSamples, UnknownName
from steelyard.identification import DynamicModel
from steelyard.identification.problem import samples_of
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.payload import Payload
from steelyard.payload.physical import nearest_physical
from steelyard.recording import Samples
from steelyard.torque.methods import METHODS, Answer, WeighingProblem
from steelyard.torque.methods.problem import CERTAIN, fixed_rows

_Z95 = 1.96
_FAR = 4.28  # standard deviations: beyond, the estimate of ten numbers is off with 95 % probability
_STRANGE = 5.0  # times the empty arm's residuals
_CONTRADICTED = 3.0  # standard deviations of the empty arm
_UNLIKE = 4.0  # standard deviations
_STRANGE_SHARE = 0.01  # of the torque


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
        method: a name of `steelyard.torque.methods.METHODS`
        fixed: numbers that are known, by name of `PARAMETER_NAMES` [SI], say {"mass": 2.8}; cx, cy, cz for
            the centre of mass [m]; 'inertia' for all six, about the flange's origin
        empty: for the methods that need them: runs of the empty arm ('torque-change' on the same motion,
            'joint' on any), or the controller's torque of the empty arm on the same motion ('manufacturer')
    """
    if method not in METHODS:
        raise UnknownName(f"there is no method '{method}'; the methods are {', '.join(METHODS)}")
    parts = _checked(model, samples, "weigh from")
    others = () if empty is None else _checked(model, empty, "compare with")
    problem = WeighingProblem(model, parts, fixed_rows(fixed or {}), others)
    answer = METHODS[method](problem)
    gain_error = _gain_error(model, answer)
    covariance = max(1.0, answer.contradiction) ** 2 * answer.covariance
    if gain_error is not None:
        covariance = covariance + gain_error @ gain_error.T
    plain = InertialParameters.from_vector(answer.value, model.robot.flange)
    body, status = _judged(plain, covariance, answer, tuple(fixed or ()))
    doubt = _strangeness(model, parts, answer, method) or _unlike_fixed(problem, method, fixed or {})
    return Payload(body, plain, covariance, answer.noise, f"{status}{doubt}", method, gain_error)


def _checked(model: DynamicModel, samples: Samples | Iterable[Samples], purpose: str) -> Sequence[Samples]:
    parts = samples_of(samples)
    if not parts:
        raise InvalidSamples(f"there are no samples to {purpose}")
    for part in parts:
        model.require_alike(part)
    return parts


def _gain_error(model: DynamicModel, answer: Answer) -> Array | None:
    """How one standard deviation of each gain moves the ten numbers, (10, n)."""
    drive = model.robot.drive
    if drive.gain is None or drive.gain_std is None or not drive.gain_std.any():
        return None
    return np.asarray(answer.per_gain * np.abs(drive.gain_std / drive.gain))


def _unlike_fixed(problem: WeighingProblem, method: str, fixed: Mapping[str, float]) -> str:
    """A sentence where the data speak against a number that was given."""
    if not len(problem.fixed):
        return ""
    free = METHODS[method](replace(problem, fixed=np.zeros((0, 11))))
    if free.unknown.any():
        return ""
    rows = problem.fixed / CERTAIN
    spread = max(1.0, free.contradiction) ** 2 * free.covariance
    if (error := _gain_error(problem.model, free)) is not None:
        spread = spread + error @ error.T
    std = np.sqrt(np.einsum("ki,ij,kj->k", rows[:, :-1], spread, rows[:, :-1]))
    z = np.abs(rows[:, :-1] @ free.value - rows[:, -1]) / std
    if z.max() < _UNLIKE:
        return ""
    return (
        f"; do not trust this: the data speak against {', '.join(fixed)} as given,"
        f" by {z.max():.0f} standard deviations"
    )


def _judged(
    plain: InertialParameters, spread: Array, answer: Answer, fixed: tuple[str, ...]
) -> tuple[InertialParameters, str]:
    """The body to answer with, and a sentence about it."""
    half = _Z95 * float(np.sqrt(spread[0, 0]))
    if not answer.unknown[0] and abs(plain.mass) < half:
        return plain, (
            f"do not trust this: {plain.mass:.3g} +- {half:.3g} kg cannot be told from nothing;"
            " the arm carries what it did when it was identified, or too little more to weigh"
        )
    if not answer.unknown[0] and plain.mass <= 0:
        return plain, (
            f"do not trust this: the mass is {plain.mass:.4g} kg; is the model that of the empty arm,"
            " and was the load taken after it was identified?"
        )
    if answer.unknown.any():
        names = ", ".join(np.array(PARAMETER_NAMES)[answer.unknown])
        if answer.notes:
            return plain, f"nothing is known about {names}: {'; '.join(answer.notes)}"
        return plain, f"the motion says nothing about {names}; do not use these numbers"
    body, distance = nearest_physical(plain, spread)
    told = (
        f"with {', '.join(fixed)} as given all others were excited"
        if fixed
        else "all ten parameters were excited"
    )
    if distance == 0.0:
        return body, f"{told}, and a real body can have them"
    if distance < _FAR:
        return body, (
            f"{told}; this is the nearest real body,"
            f" {distance:.1f} standard deviations from the plain estimate"
        )
    if fixed:
        return plain, f"do not trust this: {told}, but no real body has them: {plain.why_not_physical}"
    return plain, (
        f"do not trust this: the nearest real body is {distance:.0f} standard deviations away;"
        f" {plain.why_not_physical}"
    )


def _strangeness(model: DynamicModel, parts: Sequence[Samples], answer: Answer, method: str) -> str:
    """A sentence where the loaded torques do not look like those of the arm that was identified."""
    if "do not trust" in model.estimate.status:
        return f"; do not trust this: the model of the empty arm says {model.estimate.status}"
    if answer.contradiction > _CONTRADICTED:
        return (
            f"; do not trust this: the loaded torques contradict the empty arm by {answer.contradiction:.0f}"
            " standard deviations: is the model that of this arm, and did nothing touch it?"
        )
    if method == "static":  # friction at rest is no residual of a motion
        return ""
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
