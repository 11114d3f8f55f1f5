"""Causes of loaded torques other than a load (see `identification._other_causes`).

    scale     torques of the loaded runs larger by the factor 1 + e: gains, units or another arm
    drives    the same for one joint: its gain
    force     a constant force at the flange, three directions: a hand, a cable
    drift     offsets of the joints that change linearly in time
    weight    the weight in six parts of the time, relative to the first: a load that changed

Scale and force change the mass of any load. Their probability decides: proven, they block the
payload; possible, they widen its interval (see `_evidence`). The others give a doubt if they are
significant and move the mass by more than one of its standard deviations.
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
from steelyard.identification._other_causes import FALSE_ALARM_PROBABILITY, CauseFit, Fitted
from steelyard.robot import RobotModel
from steelyard.torque._evidence import PROVEN, Cause, probabilities
from steelyard.torque.methods._problem import WeighingProblem
from steelyard.verdict import Doubt, DoubtKind

_MAX_ROWS = 2500  # more samples are thinned
_MIN_ROWS = 100  # fewer are not tested
_MIN_EFFECT_SIGMA = 1.0  # smallest relevant change of the mass, in standard deviations
_SCALE_STD = 0.05  # of a changed scale of the torques
# Odds: larger ones widen the intervals of sound runs, simulated and real; smaller ones trust more
# wrong answers. Chosen with benchmarks/bench_gates.py (seeds 0 to 8) and the widths of real runs.
_SCALE_ODDS = 0.2
_FORCE_ODDS = 0.1
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
    misfit = problem.model.misfit
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
    least = _MIN_EFFECT_SIGMA * mass_std
    mass = len(theta)
    weight = max(float(value[0]), 0.0) * gravity
    causes = _causes(fit, [(each @ down)[:, :, None] for each in pull], problem, weight)
    found = effect_of(causes, problem.model.runs, mass_std)
    proven = bool(found.doubts)
    tests = (
        None if proven else _joint_scale_doubt(fit, mass, least, robot, misfit.scale.widening),
        None if proven else _force_test(fit, pull, mass, least, misfit.force.widening),
        _drift_test(fit, mass, least),
        _weight_test(fit, [each @ down for each in pull], least * gravity),
    )
    doubts = (*found.doubts, *(doubt for doubt in tests if doubt is not None))
    return OtherCauses(doubts, found.added, found.remark)


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


def scale_cause(found: CauseFit, model: DynamicModel) -> Cause | None:
    """Another scale of the loaded torques as a cause; None if the data do not determine it.

    Args:
        found: the fit with the scale
        model: of the empty arm
    """
    drift = model.robot.drive.gain_drift or 0.0
    return Cause.of(
        "scale",
        found,
        model.misfit.scale,
        prior_std=_SCALE_STD,
        odds=_SCALE_ODDS,
        extra_std=drift,
    )


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
    for cause, probability in zip(causes, found, strict=True):
        more = probability * cause.mean_square
        if more[0, 0] > _MIN_SHARE * mass_std**2:
            added[cause.name] = more
        if more[0, 0] > _MIN_REMARK_SHARE * mass_std**2 and probability > _MIN_REMARK:
            words.append(f"{_NAMES[cause.name]} ({100 * probability:.0f} %)")
    if not words:
        return added, ""
    named = " or ".join(words)
    return added, f"the data do not exclude {named}, so the interval of the mass holds it"


def _causes(
    fit: Fitted, pull: Sequence[Array], problem: WeighingProblem, weight: float
) -> list[Cause]:
    """The scale and a steady vertical force, where the data determine them.

    Args:
        pull: torque that holds 1 N down at the flange, for each run, (N, n, 1)
        weight: of the load, [N]
    """
    model = problem.model
    scale = fit.step([each[:, :, None] for each in fit.torque])
    causes = [scale_cause(scale, model)]
    if weight > 0:
        vertical = fit.step(pull)
        pushed = Cause.of(
            "force",
            vertical,
            model.misfit.force,
            prior_std=_FORCE_SHARE * weight,
            odds=_FORCE_ODDS,
        )
        causes.append(pushed)
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
    fit: Fitted, pull: Sequence[Array], mass: int, least: float, widening: float
) -> Doubt | None:
    """A doubt if there is a steady force in any direction."""
    found = fit.with_cause(pull, fit.shift_ratio(mass, least), widening=widening)
    if found is None:
        return None
    moved = float(found.value[mass] - fit.value[mass])
    return _force_words(float(np.linalg.norm(found.e)), moved)


def _joint_scale_doubt(
    fit: Fitted, mass: int, least: float, robot: RobotModel, widening: float
) -> Doubt | None:
    """A doubt if the torques of one joint have another scale."""
    n = robot.n
    drift = robot.drive.gain_drift or 0.0
    torque = fit.torque
    effect = fit.shift_ratio(mass, least)
    found = None
    which = ""
    for j in range(n):
        only = np.arange(n) == j
        columns = [(each * only)[:, :, None] for each in torque]
        one = fit.with_cause(columns, effect, extra_std=drift, tests=n, widening=widening)
        if one is not None and (found is None or abs(one.e[0]) > abs(found.e[0])):
            found = one
            which = f"the loaded torques of {robot.joint_names[j]}"
    if found is None:
        return None
    return _scale_words(float(found.e[0]), float(found.value[mass] - fit.value[mass]), which)


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


def _drift_test(fit: Fitted, mass: int, least: float) -> Doubt | None:
    columns = [drifts(part.tau.shape) for part in fit.rows]
    found = fit.with_cause(columns, fit.shift_ratio(mass, least))
    if found is None:
        return None
    words = (
        f"offsets of the torques drift by up to {2 * np.abs(found.e).max():.2g} Nm during the run,"
        f" which moves the mass by {found.value[mass] - fit.value[mass]:+.3g} kg; let the arm warm"
        " up, or zero its sensors"
    )
    return Doubt(DoubtKind.DRIFT_MOVES, words)


def _weight_test(fit: Fitted, weight: Sequence[Array], least: float) -> Doubt | None:
    """A doubt if the weight changes between parts of the time by more than `least` [N]."""
    found = fit.with_cause(
        in_parts(weight), lambda x: float(np.abs(x.e).max(initial=0.0)) / max(least, 1e-300)
    )
    if found is None:
        return None
    j = int(np.abs(found.e).argmax())
    words = (
        f"the weight changes by {found.e[j]:+.2g} N in part {j + 2} of {TIME_PARTS} of the run:"
        " check whether the load changed or the arm was touched"
    )
    return Doubt(DoubtKind.LOAD_CHANGED, words)
