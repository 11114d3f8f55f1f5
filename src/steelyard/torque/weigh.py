"""The payload from joint torques, given the identified empty arm.

A payload phi changes the base parameters by J phi, J the payload Jacobian (gaz2017 eq. (27)), so loaded
torques follow tau = Y (pi + J phi) with the regressor Y of the empty arm. The methods differ in what they
compare (`steelyard.torque.methods`); here their answers become payloads.

Where motor currents were measured, the gains of the drives are not exactly known: cause c, one drive's own or
shared by all, moves the logarithm of gain j by s_jc. A gain that is wrong is wrong in the empty and in the
loaded runs, so each method says how its answer moves with the logarithm of each gain, D = [d_1 ... d_n], and
D S (D S)' is added to the covariance.

Loaded runs that move the empty arm by more than noise does (friction was another one that day) say that the
model is not quite right: the covariance is widened by the square of that contradiction (Birge).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import InvalidSamples, UnknownName
from steelyard.identification import DynamicModel
from steelyard.identification.problem import require_same_joints, samples_of
from steelyard.inertia import InertialParameters
from steelyard.payload import Evidence, Payload, judge
from steelyard.payload.judgement import doubted_model, strange_residuals
from steelyard.recording import Samples
from steelyard.torque.methods import METHODS, Answer, WeighingProblem
from steelyard.torque.methods.problem import CERTAIN, fixed_rows
from steelyard.verdict import Doubt, DoubtKind

_UNLIKE = 4.0  # standard deviations


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
            'pooled' on any), or the controller's torque of the empty arm on the same motion ('manufacturer')
    """
    if method not in METHODS:
        raise UnknownName(f"there is no method '{method}'; the methods are {', '.join(METHODS)}")
    parts = _checked(model.require_alike, samples, "weigh from")
    alike: Callable[[Samples], None] = model.require_alike
    if method == "manufacturer":  # torques of a controller are neither measured nor made of currents
        alike = partial(require_same_joints, model.robot)
    others = () if empty is None else _checked(alike, empty, "compare with")
    problem = WeighingProblem(model.keeping_rows(), parts, fixed_rows(fixed or {}), others)
    answer = METHODS[method](problem)
    gain_error = _gain_error(model, answer)
    covariance = max(1.0, answer.contradiction) ** 2 * answer.covariance
    if gain_error is not None:
        covariance = covariance + gain_error @ gain_error.T
    plain = InertialParameters.from_vector(answer.value, model.robot.flange)
    body, verdict = judge(
        Evidence(
            plain,
            covariance,
            answer.unknown,
            expected=answer.expected,
            unfelt=problem.unfelt,
            fixed=tuple(fixed or ()),
            contradiction=answer.contradiction,
            doubts=_doubts(problem, answer, method, fixed or {}),
        )
    )
    summary = "; ".join(words for words in (verdict.summary, answer.remark) if words)
    verdict = replace(verdict, summary=summary)
    return Payload(body, plain, covariance, answer.noise, verdict, method, gain_error)


def _doubts(
    problem: WeighingProblem, answer: Answer, method: str, fixed: Mapping[str, float]
) -> tuple[Doubt, ...]:
    """What counts against an answer beside its own numbers."""
    model, parts = problem.model, problem.loaded
    strange = None
    if method != "static":  # friction at rest is no residual of a motion
        torque_rms = np.sqrt(np.mean(np.concatenate([part.tau for part in parts]) ** 2, axis=0))
        strange = strange_residuals(model.robot.joint_names, answer.noise, model.estimate.noise, torque_rms)
    doubts = (
        *answer.doubts,
        *{model.preparation_doubt(part) for part in parts},
        doubted_model(model.verdict),
        strange,
        _unlike_fixed(problem, method, fixed),
    )
    return tuple(doubt for doubt in doubts if doubt is not None)


def _checked(
    require: Callable[[Samples], None], samples: Samples | Iterable[Samples], purpose: str
) -> Sequence[Samples]:
    parts = samples_of(samples)
    if not parts:
        raise InvalidSamples(f"there are no samples to {purpose}")
    for part in parts:
        require(part)
    return parts


def _gain_error(model: DynamicModel, answer: Answer) -> Array | None:
    """How one standard deviation of each cause of wrong gains moves the ten numbers, (10, causes)."""
    errors = model.robot.drive.gain_errors
    return np.asarray(answer.per_gain @ errors) if errors.any() else None


def _unlike_fixed(problem: WeighingProblem, method: str, fixed: Mapping[str, float]) -> Doubt | None:
    """A doubt where the data contradict a number that was given."""
    if not len(problem.fixed):
        return None
    free = METHODS[method](replace(problem, fixed=np.zeros((0, 11))))
    if free.unknown.any():
        return None
    rows = problem.fixed / CERTAIN
    covariance = max(1.0, free.contradiction) ** 2 * free.covariance
    if (error := _gain_error(problem.model, free)) is not None:
        covariance = covariance + error @ error.T
    std = np.sqrt(np.einsum("ki,ij,kj->k", rows[:, :-1], covariance, rows[:, :-1]))
    z = np.abs(rows[:, :-1] @ free.value - rows[:, -1]) / std
    if z.max() < _UNLIKE:
        return None
    words = f"the data contradict {', '.join(fixed)} as given by {z.max():.0f} standard deviations"
    return Doubt(DoubtKind.CONTRADICTS_GIVEN, words)
