"""Causes of loaded torques other than a load (see `identification._other_causes`).

    scale     torques of the loaded runs larger by the factor 1 + e: gains, units or another arm
    drives    the same for one joint: its gain
    force     a constant force at the flange, three directions: a hand, a cable
    drift     offsets of the joints that change linearly in time
    weight    the weight in six parts of the time, relative to the first: a load that changed

Scale and force change the mass of any load. Their probability decides: proven, they block the
payload; possible, they widen its interval (see `_evidence`). The others give a doubt if they are
significant and move the mass by more than one of its standard deviations; it blocks if they move
the mass out of its interval. A weight that changes blocks in any case: there is no single answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import chdtri

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.identification import DynamicModel
from steelyard.identification._cause_columns import TIME_PARTS, drifts, forces, in_parts
from steelyard.identification._misfit import CauseMisfit, Misfit
from steelyard.identification._other_causes import FALSE_ALARM_PROBABILITY, CauseFit, Fitted
from steelyard.torque._evidence import PROVEN, Cause, probabilities, widening_share
from steelyard.torque.methods._problem import WeighingProblem
from steelyard.verdict import Doubt, DoubtKind

_MAX_ROWS = 2500  # more samples are thinned
_MIN_ROWS = 100  # fewer are not tested
_MIN_EFFECT_SIGMA = 1.0  # smallest relevant change of the mass, in standard deviations
_SCALE_STD = 0.05  # of a changed scale of the torques
# Odds: larger ones widen the intervals of sound runs, simulated and real; smaller ones trust more
# wrong answers. Chosen with benchmarks/bench_gates.py (seeds 0 to 32) and the widths of real runs.
_SCALE_ODDS = 0.2
_FORCE_ODDS = 0.25
_MAX_JOINT_STD = 0.2  # of the scale at a single joint, for the comparison of joints
_MAX_JOINT_FORCE_STD = 0.5  # of a force at a single joint, over the weight of the load
_FORCE_SHARE = 0.3  # standard deviation of a steady force, over the weight of the load
_MIN_REMARK_SHARE = 0.2  # of the variance of the mass without a cause, for a remark on it
_MIN_REMARK = 0.05  # probability of a cause, for a remark on it
_NAMES = {"scale": "another scale of the loaded torques", "force": "a steady vertical force"}
_MIN_SHARE = 0.01  # of the variance of the mass; smaller effects of a cause are left out


@dataclass(frozen=True, eq=False)
class OtherCauses:
    """What other causes do to an answer.

    Attributes:
        doubts: about causes that act
        added: what causes that may act add to the covariance of the ten numbers, by name, (10, 10)
        remark: which causes the interval of the mass holds, in words; empty for none
    """

    doubts: tuple[Doubt, ...] = ()
    added: Mapping[str, Array] = field(default_factory=dict)
    remark: str = ""


def other_causes(problem: WeighingProblem, value: Array, mass_std: float) -> OtherCauses:
    """Causes other than a load that explain the loaded torques better, or as well.

    Args:
        value: the ten numbers as they were found, (10,)
        mass_std: standard deviation of the mass by all known errors, [kg]
    """
    robot = problem.model.robot
    every = -(-sum(len(part) for part in problem.loaded) // _MAX_ROWS)
    theta = problem.model.estimate.value + problem.jacobian @ value
    rows = [problem.model.rows(part, theta).thinned(every) for part in problem.loaded]
    usable = sum(int(part.usable.any(axis=1).sum()) for part in rows)
    if usable < _MIN_ROWS or not np.isfinite(mass_std):
        return OtherCauses()
    prior = np.vstack([problem.prior(), problem.friction_prior])
    fit = Fitted.of(rows, prior, problem.mixing)
    pull = [forces(robot, part.q[::every]) for part in problem.loaded]
    gravity = float(np.linalg.norm(robot.gravity_base))
    down = robot.gravity_base / max(gravity, 1e-300)
    weight = max(float(value[0]), 0.0) * gravity
    vertical = [(each @ down)[:, :, None] for each in pull]
    scales = fit.at_joints([each[:, :, None] for each in fit.torque])
    misfit = problem.model.misfit
    scale_misfit = misfit.scale.or_disagreement(*scales.disagreement(_MAX_JOINT_STD))
    force_misfit = misfit.force
    if weight > 0:
        forced = fit.at_joints(vertical)
        force_misfit = force_misfit.or_disagreement(
            *forced.disagreement(_MAX_JOINT_FORCE_STD * weight)
        )
    misfit = Misfit(scale_misfit, force_misfit)
    causes = _causes(fit, vertical, problem.model, misfit, weight)
    found = effect_of(causes, problem.model.runs, mass_std)
    proven = bool(found.doubts)
    effect = _MassEffect(len(theta), mass_std, found.added)
    tests = (
        None if proven else _joint_scale_doubt(fit, effect, problem.model, scales),
        None if proven else _force_test(fit, pull, effect, misfit.force.widening),
        _drift_test(fit, effect),
        _weight_test(
            fit,
            [each @ down for each in pull],
            effect.least * gravity,
            problem.model.misfit.force.widening,
        ),
    )
    doubts = (*found.doubts, *(doubt for doubt in tests if doubt is not None))
    return OtherCauses(doubts, found.added, found.remark)


@dataclass(frozen=True)
class _MassEffect:
    """When the change of the mass by a cause matters.

    Attributes:
        mass: index of the mass among the unknowns of a fit
        std: standard deviation of the mass without other causes, [kg]
        added: what causes that may act add to the covariance, by name
    """

    mass: int
    std: float
    added: Mapping[str, Array]

    @property
    def least(self) -> float:
        """The smallest change that is worth a doubt, [kg]."""
        return _MIN_EFFECT_SIGMA * self.std

    @property
    def half_width(self) -> float:
        """The half-width of the mass with causes that may act; larger changes block, [kg]."""
        variance = self.std**2 + sum(float(more[0, 0]) for more in self.added.values())
        return float(NORMAL_95 * np.sqrt(variance))

    def moved(self, fit: Fitted, found: CauseFit) -> float:
        """The change of the mass by a cause, [kg]."""
        return float(found.value[self.mass] - fit.value[self.mass])

    def judged(self, doubt: Doubt, moved: float) -> Doubt:
        """The doubt; it blocks if the cause moves the mass out of its interval."""
        return replace(doubt, blocks=abs(moved) > self.half_width)


def effect_of(causes: Sequence[Cause], runs: int, mass_std: float) -> OtherCauses:
    """What causes do to an answer: doubts about those that are proven, a wider interval for others.

    Args:
        causes: that exclude each other
        runs: number of runs of the empty arm
        mass_std: standard deviation of the mass without them, [kg]
    """
    found = probabilities(causes, runs)
    doubts = [
        _proven_doubt(cause, float(w), mass_std) for cause, w in zip(causes, found, strict=True)
    ]
    added, remark = _possible(causes, found, mass_std)
    return OtherCauses(tuple(doubt for doubt in doubts if doubt is not None), added, remark)


def tracked_causes(
    model: DynamicModel, scale: CauseFit | None, force: CauseFit | None, *, weight: float
) -> list[Cause]:
    """The causes that a tracker finds: another scale of the torques, a steady vertical force.

    Args:
        model: of the empty arm
        scale: fit with another scale; None if the data do not determine it
        force: fit with a force; None if the data do not determine it
        weight: of the load, [N]
    """
    causes = []
    if scale is not None:
        causes.append(_scale_cause(scale, model, model.misfit.scale.tracked))
    if force is not None and weight > 0:
        causes.append(_force_cause(force, model.misfit.force.tracked, weight))
    return [cause for cause in causes if cause is not None]


def _scale_cause(found: CauseFit, model: DynamicModel, misfit: CauseMisfit) -> Cause | None:
    """Another scale of the loaded torques as a cause; None if the data do not determine it."""
    return Cause.of(
        "scale",
        found,
        misfit,
        prior_std=_SCALE_STD,
        odds=_SCALE_ODDS,
        extra_std=model.robot.drive.gain_drift or 0.0,
    )


def _force_cause(found: CauseFit, misfit: CauseMisfit, weight: float) -> Cause | None:
    """A steady vertical force beside a load of some weight [N] as a cause."""
    prior_std = _FORCE_SHARE * weight
    return Cause.of("force", found, misfit, prior_std=prior_std, odds=_FORCE_ODDS)


def _possible(
    causes: Sequence[Cause], found: Array, mass_std: float
) -> tuple[dict[str, Array], str]:
    """What causes that may act add to the covariance, by name, and a remark.

    Args:
        found: probability of each cause, (c,)
        mass_std: standard deviation of the mass without them, [kg]
    """
    added = {}
    words = []
    share = widening_share(causes, found, mass_std)
    for cause, probability in zip(causes, found, strict=True):
        more = share * probability * cause.mean_square
        if more[0, 0] > _MIN_SHARE * mass_std**2:
            added[cause.name] = more
        if more[0, 0] > _MIN_REMARK_SHARE * mass_std**2 and probability > _MIN_REMARK:
            words.append(f"{_NAMES[cause.name]} ({100 * probability:.0f} %)")
    if not words:
        return added, ""
    named = " or ".join(words)
    return added, f"the data do not exclude {named}, so the interval of the mass holds it"


def _causes(
    fit: Fitted, pull: Sequence[Array], model: DynamicModel, misfit: Misfit, weight: float
) -> list[Cause]:
    """The scale and a steady vertical force, where the data determine them.

    Args:
        pull: torque that holds 1 N down at the flange, for each run, (N, n, 1)
        model: of the empty arm
        misfit: by the empty runs and by this one
        weight: of the load, [N]
    """
    scale = fit.step([each[:, :, None] for each in fit.torque])
    causes = [_scale_cause(scale, model, misfit.scale)]
    if weight > 0:
        causes.append(_force_cause(fit.step(pull), misfit.force, weight))
    return [cause for cause in causes if cause is not None]


def _proven_doubt(cause: Cause, probability: float, mass_std: float) -> Doubt | None:
    """A doubt if a cause is proven; it blocks if it moves the mass by more than its half-width.

    Args:
        probability: of the cause
        mass_std: standard deviation of the mass without the cause, [kg]
    """
    moved = float(cause.shift[0])
    if probability < PROVEN or abs(moved) < _MIN_EFFECT_SIGMA * mass_std:
        return None
    if cause.name == "scale":
        doubt = _scale_words(float(cause.e[0]), moved, "the loaded torques")
    else:
        doubt = _force_words(float(np.linalg.norm(cause.e)), moved)
    return replace(doubt, blocks=abs(moved) > NORMAL_95 * mass_std)


def _force_words(size: float, moved: float) -> Doubt:
    words = (
        f"weight and inertia of the load contradict each other: a steady force of {size:.2g} N"
        f" would explain it and move the mass by {moved:+.3g} kg; check that nothing touches the"
        " arm, and how its base is mounted"
    )
    return Doubt(DoubtKind.STEADY_FORCE, words)


def _force_test(
    fit: Fitted, pull: Sequence[Array], effect: _MassEffect, widening: float
) -> Doubt | None:
    """A doubt if there is a steady force in any direction."""
    relevant = fit.shift_ratio(effect.mass, effect.least)
    found = fit.with_cause(pull, relevant, widening=widening)
    if found is None:
        return None
    moved = effect.moved(fit, found)
    return effect.judged(_force_words(float(np.linalg.norm(found.e)), moved), moved)


def _joint_scale_doubt(
    fit: Fitted, effect: _MassEffect, model: DynamicModel, scales: CauseFit
) -> Doubt | None:
    """A doubt if the torques of one joint have another scale: of that which moves the mass most.

    Args:
        scales: of all joints, each with a scale of its own; if the other joints contradict each
            other, it is misfit
    """
    robot = model.robot
    n = robot.n
    drift = robot.drive.gain_drift or 0.0
    torque = fit.torque
    relevant = fit.shift_ratio(effect.mass, effect.least)
    found: dict[float, Doubt] = {}
    for j in range(n):
        only = np.arange(n) == j
        columns = [(each * only)[:, :, None] for each in torque]
        misfit = model.misfit.scale
        if len(scales.e) == n:
            misfit = misfit.or_disagreement(*scales.disagreement(_MAX_JOINT_STD, without=j))
        widening = misfit.widening
        one = fit.with_cause(columns, relevant, extra_std=drift, tests=n, widening=widening)
        if one is not None:
            moved = effect.moved(fit, one)
            which = f"the loaded torques of {robot.joint_names[j]}"
            found[abs(moved)] = effect.judged(_scale_words(float(one.e[0]), moved, which), moved)
    if not found:
        return None
    return found[max(found)]


def scale_doubt(
    e: float, variance: float, moved: float, least: float, which: str = "the loaded torques"
) -> Doubt | None:
    """A doubt if torques have another scale than the empty arm predicts.

    Args:
        e: relative excess of the torques
        variance: of e
        moved: change of the mass by e, [kg]
        least: smallest relevant change of the mass, [kg]
        which: the torques, in words
    """
    if abs(moved) < least or e**2 <= chdtri(1, FALSE_ALARM_PROBABILITY) * variance:
        return None
    return _scale_words(e, moved, which)


def _scale_words(e: float, moved: float, which: str) -> Doubt:
    words = (
        f"{which} are {1 + e:.3f} times as large as the model of the empty arm predicts; this moves"
        f" the mass by {moved:+.3g} kg; check whether gains, units or the arm have changed"
    )
    return Doubt(DoubtKind.TORQUE_SCALE, words)


def _drift_test(fit: Fitted, effect: _MassEffect) -> Doubt | None:
    columns = [drifts(part.tau.shape) for part in fit.rows]
    found = fit.with_cause(columns, fit.shift_ratio(effect.mass, effect.least))
    if found is None:
        return None
    moved = effect.moved(fit, found)
    words = (
        f"offsets of the torques drift by up to {2 * np.abs(found.e).max():.2g} Nm during the run,"
        f" which moves the mass by {moved:+.3g} kg; let the arm warm up, or zero its sensors"
    )
    return effect.judged(Doubt(DoubtKind.DRIFT_MOVES, words), moved)


def _weight_test(
    fit: Fitted, weight: Sequence[Array], least: float, widening: float
) -> Doubt | None:
    """A doubt if the weight changes between parts of the time.

    Args:
        weight: torque of 1 N throughout each run, (N, n)
        least: smallest relevant change, [N]
        widening: of the variance of a vertical force by misfit, in runs of the empty arm
    """
    found = fit.with_cause(
        in_parts(weight),
        lambda x: float(np.abs(x.e).max(initial=0.0)) / max(least, 1e-300),
        widening=widening,
    )
    if found is None:
        return None
    j = int(np.abs(found.e).argmax())
    words = (
        f"the weight changes by {found.e[j]:+.2g} N in part {j + 2} of {TIME_PARTS} of the run:"
        " check whether the load changed or the arm was touched"
    )
    return Doubt(DoubtKind.LOAD_CHANGED, words)
