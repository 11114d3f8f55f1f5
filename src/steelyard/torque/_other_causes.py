"""Causes of loaded torques other than a load (see `identification._other_causes`).

    scale     torques of the loaded runs larger by the factor 1 + e: gains, units or another arm
    drives    the same for one joint: its gain
    force     a constant force at the flange, three directions: a hand, a cable
    drift     offsets of the joints that change linearly in time
    weight    the weight in six parts of the time, relative to the first: a load that changed

A cause gives a doubt if it is significant and if it shift_ratio the mass by more than one of its
stated standard deviations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import chdtri

from steelyard._arrays import Array
from steelyard.identification._other_causes import FALSE_ALARM_PROBABILITY, Fitted
from steelyard.robot import RobotModel
from steelyard.torque.methods._problem import WeighingProblem
from steelyard.verdict import Doubt, DoubtKind

_MAX_ROWS = 2500  # more samples are thinned
_TIME_PARTS = 6  # in which the weight is compared
_MIN_ROWS = 100  # fewer are not tested
_MIN_EFFECT_SIGMA = 1.0  # smallest relevant change of the mass, in standard deviations


def other_causes(problem: WeighingProblem, value: Array, mass_std: float) -> tuple[Doubt, ...]:
    """Doubts if something other than a load explains the loaded torques better.

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
        return ()
    prior = np.vstack([problem.prior(), problem.friction_prior])
    fit = Fitted.of(rows, prior, problem.mixing)
    pull = [_forces(robot, part.q[::every]) for part in problem.loaded]
    gravity = float(np.linalg.norm(robot.gravity_base))
    down = robot.gravity_base / max(gravity, 1e-300)
    least = _MIN_EFFECT_SIGMA * mass_std
    doubts = (
        _scale_test(fit, len(theta), least, robot),
        _force_test(fit, pull, len(theta), least),
        _drift_test(fit, len(theta), least),
        _weight_test(fit, [each @ down for each in pull], least * gravity),
    )
    return tuple(doubt for doubt in doubts if doubt is not None)


def _scale_test(fit: Fitted, mass: int, least: float, robot: RobotModel) -> Doubt | None:
    """A doubt if all torques have another scale, or else those of one joint."""
    n = robot.n
    drift = robot.drive.gain_drift or 0.0
    torque = fit.torque
    effect = fit.shift_ratio(mass, least)
    found = fit.with_cause([each[:, :, None] for each in torque], effect, extra_std=drift)
    which = "the loaded torques"
    for j in range(n if found is None else 0):
        only = np.arange(n) == j
        one = fit.with_cause(
            [(each * only)[:, :, None] for each in torque], effect, extra_std=drift, tests=n
        )
        if one is not None and (found is None or abs(one.e[0]) > abs(found.e[0])):
            found = one
            which = f"the loaded torques of {robot.joint_names[j]}"
    if found is None:
        return None
    moved = float(found.value[mass] - fit.value[mass])
    return scale_doubt(float(found.e[0]), float(found.covariance[0, 0]), moved, least, which)


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
    words = (
        f"{which} are {1 + e:.3f} times as large as the model of the empty arm predicts, which"
        f" moves the mass by {moved:+.3g} kg: check whether gains, units or the arm have changed"
        " since the empty run"
    )
    return Doubt(DoubtKind.TORQUE_SCALE, words)


def _force_test(fit: Fitted, pull: Sequence[Array], mass: int, least: float) -> Doubt | None:
    found = fit.with_cause(pull, fit.shift_ratio(mass, least))
    if found is None:
        return None
    words = (
        "weight and inertia of the load contradict each other: a steady force of"
        f" {np.linalg.norm(found.e):.2g} N would explain it, and move the mass by"
        f" {found.value[mass] - fit.value[mass]:+.3g} kg; check that nothing touches the arm, and"
        " that its base is mounted as stated"
    )
    return Doubt(DoubtKind.STEADY_FORCE, words)


def _drift_test(fit: Fitted, mass: int, least: float) -> Doubt | None:
    drifts = [_drifts(part.tau.shape) for part in fit.rows]
    found = fit.with_cause(drifts, fit.shift_ratio(mass, least))
    if found is None:
        return None
    words = (
        f"offsets of the torques drift by up to {2 * np.abs(found.e).max():.2g} Nm during the run,"
        f" which moves the mass by {found.value[mass] - fit.value[mass]:+.3g} kg: let the arm warm"
        " up, or zero its sensors"
    )
    return Doubt(DoubtKind.DRIFT_MOVES, words)


def _weight_test(fit: Fitted, weight: Sequence[Array], least: float) -> Doubt | None:
    """A doubt if the weight changes between parts of the time by more than `least` [N]."""
    found = fit.with_cause(
        _in_parts(weight), lambda x: float(np.abs(x.e).max(initial=0.0)) / max(least, 1e-300)
    )
    if found is None:
        return None
    j = int(np.abs(found.e).argmax())
    words = (
        f"the weight changes by {found.e[j]:+.2g} N in part {j + 2} of {_TIME_PARTS} of the run:"
        " check whether the load changed or the arm was touched"
    )
    return Doubt(DoubtKind.LOAD_CHANGED, words)


def _drifts(shape: tuple[int, ...]) -> Array:
    """Offsets that go from -1 to 1 Nm during a run, one column for each joint, (N, n, n)."""
    columns = np.zeros((*shape, shape[1]))
    columns[:, range(shape[1]), range(shape[1])] = np.linspace(-1.0, 1.0, shape[0])[:, None]
    return columns


def _forces(robot: RobotModel, q: Array) -> Array:
    """The torque that holds 1 N at the flange along x, y or z of the base, (N, n, 3)."""
    still = np.zeros_like(q)
    return np.stack(
        [robot.with_gravity(g).payload_regressor(q, still, still)[:, :, 0] for g in np.eye(3)], 2
    )


def _in_parts(weight: Sequence[Array]) -> list[Array]:
    """The torque of a weight of 1 N, (N, n) of each run, in each part of the time but the first."""
    count = sum(map(len, weight))
    columns = []
    first = 0
    for each in weight:
        part = (first + np.arange(len(each))) * _TIME_PARTS // count
        columns.append(each[:, :, None] * (part[:, None, None] == np.arange(1, _TIME_PARTS)))
        first += len(each)
    return columns
