"""The payload from joint torques, given the identified empty arm.

A payload phi changes the base parameters by J phi, J the payload Jacobian (gaz2017 eq. (27)), so
loaded torques follow tau = Y (pi + J phi) with the regressor Y of the empty arm. The methods differ
in what they compare (`steelyard.torque.methods`); this module makes payloads of their answers.

If motor currents were measured, gains may be wrong in all runs, and may have changed since the
empty runs: each method states how its answer changes with both (see `_prior`).

If the loaded runs move the parameters of the empty arm by more than noise does (friction differs
from day to day), the model is not exact: what its prior contributes to the covariance grows by the
square of that contradiction (Birge).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from steelyard._arrays import Array
from steelyard._units import NORMAL_95, with_interval
from steelyard.errors import InvalidSamples, UnknownName
from steelyard.identification import DynamicModel
from steelyard.identification._problem import require_same_joints, samples_of
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.payload import Evidence, Payload, judge
from steelyard.payload._judgement import influential_joints, large_residual_doubt, model_doubt
from steelyard.recording import Samples
from steelyard.torque._other_causes import OtherCauses, other_causes
from steelyard.torque._prior import enlarged
from steelyard.torque.methods import METHODS, Answer, WeighingProblem
from steelyard.torque.methods._problem import FIXED_WEIGHT, fixed_rows
from steelyard.torque.methods._torque_change import has_same_motions
from steelyard.verdict import Doubt, DoubtKind

AUTOMATIC = "auto"
"""The name of the automatic choice of a method."""

_METHODS_WITH_PRIOR = ("direct", "combined", "pooled")  # whose response to causes is known
_MAX_FIXED_DIFFERENCE_SIGMA = 4.0  # standard deviations between the data and a fixed number
_LEAST_NOISE = 1e-9  # [Nm or N], of a joint that was not used
_INFLUENCE_STEP = 10  # rows between those that show the influence of a joint
_MAX_MOTION_SHIFT_SIGMA = 1.0  # standard deviations that noise of the motion may move a number


def weigh(
    model: DynamicModel,
    samples: Samples | Iterable[Samples],
    *,
    method: str = AUTOMATIC,
    fixed: Mapping[str, float] | None = None,
    empty: Samples | Iterable[Samples] | None = None,
) -> Payload:
    """The payload that the arm carries beyond its load during identification.

    Args:
        model: of the empty arm
        samples: of the loaded arm, one or many
        method: a name of `steelyard.torque.methods.METHODS`, or 'auto': 'torque-change' if an
            empty run has the same motion and its interval of the mass is the narrower one, else
            'direct'
        fixed: known numbers by name of `PARAMETER_NAMES` [SI], such as {"mass": 2.8}; cx, cy, cz
            for the centre of mass [m]; 'inertia' for all six, about the flange's origin
        empty: for the methods that need them: runs of the empty arm ('torque-change' on the same
            motion, 'pooled' on any), or the controller's torque of the empty arm on the same motion
            ('manufacturer')
    """
    if method not in (AUTOMATIC, *METHODS):
        raise UnknownName(
            f"there is no method '{method}'; the methods are {', '.join((AUTOMATIC, *METHODS))}"
        )
    parts = _checked(model.require_compatible, samples, "weigh from")
    require: Callable[[Samples], None] = model.require_compatible
    if method == "manufacturer":  # a controller's torques are neither measured nor from currents
        require = partial(require_same_joints, model.robot)
    others: Sequence[Samples] = ()
    if empty is not None:
        others = _checked(require, empty, "compare with")
    problem = WeighingProblem(model.with_row_cache(), parts, fixed_rows(fixed or {}), others)
    if method == AUTOMATIC:
        weighed = _narrower(problem)
    else:
        weighed = _WidenedAnswer.by(method, problem)
    answer = weighed.answer
    method = weighed.method
    causes = weighed.causes
    plain = InertialParameters.from_vector(answer.value, model.robot.flange)
    body, verdict = judge(
        Evidence(
            plain,
            weighed.covariance,
            answer.unknown,
            expected=answer.expected,
            unobservable=problem.unobservable,
            fixed=tuple(fixed or ()),
            contradiction=answer.contradiction,
            doubts=_doubts(problem, answer, method, fixed or {}, causes.doubts),
            shares=weighed.shares,
            arm=model.robot.name,
            body_covariance=weighed.without_causes,
        )
    )
    assumed = _assumed(plain.mass, weighed.gain_error, weighed.shares)
    parts_of_summary = (verdict.summary, answer.remark, causes.remark, assumed)
    summary = "; ".join(words for words in parts_of_summary if words)
    verdict = replace(verdict, summary=summary)
    return Payload(
        body,
        plain,
        weighed.covariance,
        answer.noise,
        verdict,
        method,
        weighed.gain_error,
        weighed.shares,
    )


@dataclass(frozen=True, eq=False)
class _WidenedAnswer:
    """The answer of a method with its whole uncertainty.

    Attributes:
        method: its name
        answer: what it found
        covariance: of the ten numbers, with systematic errors and other causes, (10, 10)
        without_causes: the same without other causes, (10, 10)
        gain_error: effect of an error of each gain, (10, n); None where gains are exact
        shares: of the variance of the mass, by their origin
        causes: what else may have acted
    """

    method: str
    answer: Answer
    covariance: Array
    without_causes: Array
    gain_error: Array | None
    shares: Mapping[str, float]
    causes: OtherCauses

    @classmethod
    def by(cls, method: str, problem: WeighingProblem) -> _WidenedAnswer:
        """The answer of a method to a problem."""
        answer = METHODS[method](problem)
        without_causes, gain_error, shares = answer.widened(problem)
        causes = _other_causes(problem, answer, without_causes, method)
        covariance = without_causes
        for name, added in causes.added.items():
            covariance, shares = enlarged(covariance, shares, name, added)
        return cls(method, answer, covariance, without_causes, gain_error, shares, causes)


def _narrower(problem: WeighingProblem) -> _WidenedAnswer:
    """The answer with the narrower interval of the mass, with a remark.

    Torques on the same motion are compared directly where there are such runs: what a model does
    not contain is the same in both.
    """
    direct = _WidenedAnswer.by("direct", problem)
    if not has_same_motions(problem):
        return direct
    change = _WidenedAnswer.by("torque-change", problem)
    if not change.covariance[0, 0] < direct.covariance[0, 0]:
        return direct
    half_width = NORMAL_95 * float(np.sqrt(direct.covariance[0, 0]))
    words = (
        "an empty run has the same motion: torques were compared run by run (torque-change); the"
        f" model alone gives {with_interval(direct.answer.value[0], half_width)} kg"
    )
    answer = replace(change.answer, remark=f"{words}; {change.answer.remark}")
    return replace(change, answer=answer)


def _other_causes(
    problem: WeighingProblem, answer: Answer, covariance: Array, method: str
) -> OtherCauses:
    """Other causes of an answer; of methods without a prior, their effect is not known."""
    if method == "static":  # at rest, residuals are friction
        return OtherCauses()
    same = replace(problem, friction_known=answer.friction_known)
    causes = other_causes(same, answer.value, float(np.sqrt(covariance[0, 0])))
    if method in _METHODS_WITH_PRIOR:
        return causes
    return OtherCauses(causes.doubts)


def _assumed(mass: float, gain_error: Array | None, shares: Mapping[str, float]) -> str:
    """The assumed accuracy of torques, in words: a common scale error of all runs is invisible."""
    if not shares or mass <= 0:
        return ""
    if gain_error is None:
        return (
            "assumes exact torques: a common error of 1 % moves the mass by 1 %, and is not in the"
            " interval"
        )
    half = 100 * NORMAL_95 * float(np.linalg.norm(gain_error[0])) / mass
    return (
        f"assumes torques accurate to {half:.2g} % ({100 * shares['gains']:.0f} % of the variance)"
    )


def _doubts(
    problem: WeighingProblem,
    answer: Answer,
    method: str,
    fixed: Mapping[str, float],
    others: Sequence[Doubt],
) -> tuple[Doubt, ...]:
    """Doubts about an answer apart from its own numbers."""
    model = problem.model
    parts = problem.loaded
    residual_doubt = None
    if method != "static":  # at rest, residuals are friction
        torque_rms = np.sqrt(np.mean(np.concatenate([part.tau for part in parts]) ** 2, axis=0))
        residual_doubt = large_residual_doubt(
            model.robot.joint_names,
            answer.noise,
            model.estimate.noise,
            torque_rms,
            influential_joints(_information(problem, answer.noise)),
        )
    doubts = (
        *answer.doubts,
        *{model.preparation_doubt(part) for part in parts},
        model_doubt(model.verdict),
        residual_doubt,
        *others,
        _noisy_motion(answer),
        _contradicted_fixed(problem, method, fixed),
    )
    return tuple(doubt for doubt in doubts if doubt is not None)


def _information(problem: WeighingProblem, noise: Array) -> Array:
    """What each joint tells about mass and first moment, as inverse variances, (n, 4)."""
    robot = problem.model.robot
    information = np.zeros((robot.n, 4))
    for part in problem.loaded:
        some = slice(None, None, _INFLUENCE_STEP)
        Y = robot.payload_regressor(part.q[some], part.v[some], part.a[some])[:, :, :4]
        information += (Y**2).sum(axis=0) / np.maximum(noise, _LEAST_NOISE)[:, None] ** 2
    return information


def _noisy_motion(answer: Answer) -> Doubt | None:
    """A doubt if noise of the motion moves the answer more than noise of the torques."""
    if answer.shift is None:
        return None
    std = np.sqrt(np.diag(answer.covariance))
    share = np.where(
        np.isfinite(std) & ~answer.unknown, np.abs(answer.shift) / np.maximum(std, 1e-300), 0.0
    )
    if share.max() < _MAX_MOTION_SHIFT_SIGMA:
        return None
    words = (
        f"noise of the measured motion may have moved {PARAMETER_NAMES[int(share.argmax())]} by"
        f" {share.max():.1f} standard deviations of the torque noise (the mass by"
        f" {answer.shift[0]:+.3g} kg); use a lower cut-off for both runs, such as 'auto'"
    )
    return Doubt(DoubtKind.NOISY_MOTION, words, blocks=False)


def _checked(
    require: Callable[[Samples], None], samples: Samples | Iterable[Samples], purpose: str
) -> Sequence[Samples]:
    """The samples without torques near reversals, after a check of each."""
    parts = samples_of(samples)
    if not parts:
        raise InvalidSamples(f"there are no samples to {purpose}")
    for part in parts:
        require(part)
    return [part.away_from_reversals() for part in parts]


def _contradicted_fixed(
    problem: WeighingProblem, method: str, fixed: Mapping[str, float]
) -> Doubt | None:
    """A doubt if the data contradict a fixed number."""
    if not len(problem.fixed):
        return None
    without = replace(problem, fixed=np.zeros((0, 11)))
    free = METHODS[method](without)
    if free.unknown.any():
        return None
    rows = problem.fixed / FIXED_WEIGHT
    covariance, _, _ = free.widened(without)
    for added in _other_causes(without, free, covariance, method).added.values():
        covariance = covariance + added
    std = np.sqrt(np.einsum("ki,ij,kj->k", rows[:, :-1], covariance, rows[:, :-1]))
    z = np.abs(rows[:, :-1] @ free.value - rows[:, -1]) / std
    if z.max() < _MAX_FIXED_DIFFERENCE_SIGMA:
        return None
    words = f"the data contradict {', '.join(fixed)} as given by {z.max():.0f} standard deviations"
    return Doubt(DoubtKind.CONTRADICTS_GIVEN, words)
