"""Causes of loaded torques other than a load (see `identification._other_causes`).

    scale     torques of the loaded runs e times larger: gains, units or another arm
    drives    the same of one joint alone: its gain
    force     a constant force at the flange, three directions: a hand, a cable
    drift     offsets of the joints that go with time
    weight    the weight in six parts of the time, against the first: a load that changed

A cause counts against an answer where it is sure, and where without it the answer is another one:
by more than a standard deviation of the mass as stated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import chdtri

from steelyard._arrays import Array
from steelyard.identification._other_causes import CHANCE, Fitted
from steelyard.robot import RobotModel
from steelyard.torque.methods._problem import WeighingProblem
from steelyard.verdict import Doubt, DoubtKind

_MAX_ROWS = 2500  # more samples are thinned
_TIME_PARTS = 6
_MIN_ROWS = 100
_MIN_EFFECT_SIGMA = 1.0  # standard deviations of the mass


def other_causes(problem: WeighingProblem, value: Array, mass_std: float) -> tuple[Doubt, ...]:
    """Doubts where something else than a load explains the loaded torques better.

    Args:
        value: the ten numbers as they were found, (10,)
        mass_std: standard deviation of the mass, with all that may be wrong, [kg]
    """
    robot = problem.model.robot
    every = -(-sum(len(part) for part in problem.loaded) // _MAX_ROWS)
    theta = problem.model.estimate.value + problem.jacobian @ value
    rows = [problem.model.rows(part, theta).thinned(every) for part in problem.loaded]
    if sum(int(part.usable.any(axis=1).sum()) for part in rows) < _MIN_ROWS or not np.isfinite(
        mass_std
    ):
        return ()
    fit = Fitted.of(rows, problem.prior(), problem.mixing)
    pull = [_forces(robot, part.q[::every]) for part in problem.loaded]
    down = robot.gravity_base / max(float(np.linalg.norm(robot.gravity_base)), 1e-300)
    least = _MIN_EFFECT_SIGMA * mass_std
    doubts = (
        _of_scale(fit, len(theta), least, robot),
        _of_force(fit, pull, len(theta), least),
        _of_drift(fit, len(theta), least),
        _of_weight(
            fit, [each @ down for each in pull], least * float(np.linalg.norm(robot.gravity_base))
        ),
    )
    return tuple(doubt for doubt in doubts if doubt is not None)


def _of_scale(fit: Fitted, mass: int, least: float, robot: RobotModel) -> Doubt | None:
    """A doubt where all torques have another scale, or else those of one joint."""
    n = robot.n
    drift = robot.drive.gain_drift or 0.0
    torque = fit.torque
    effect = fit.moves(mass, least)
    found = fit.tried([each[:, :, None] for each in torque], effect, besides=drift)
    which = "the loaded torques"
    for j in range(n if found is None else 0):
        only = np.arange(n) == j
        one = fit.tried(
            [(each * only)[:, :, None] for each in torque], effect, besides=drift, tests=n
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
    """A doubt where torques have another scale than the empty arm says.

    Args:
        e: how much larger they are, relative
        variance: of that
        moved: how far it moves the mass, [kg]
        least: how far counts, [kg]
        which: the torques
    """
    if abs(moved) < least or e**2 <= chdtri(1, CHANCE) * variance:
        return None
    words = (
        f"{which} are {1 + e:.3f} times what the empty arm says, which moves the mass by"
        f" {moved:+.3g} kg: have gains or units changed since the empty run, or the arm?"
    )
    return Doubt(DoubtKind.TORQUE_SCALE, words)


def _of_force(fit: Fitted, pull: Sequence[Array], mass: int, least: float) -> Doubt | None:
    found = fit.tried(pull, fit.moves(mass, least))
    if found is None:
        return None
    words = (
        "weight and inertia of the load contradict each other: a steady force of"
        f" {np.linalg.norm(found.e):.2g} N would explain it, and move the mass by"
        f" {found.value[mass] - fit.value[mass]:+.3g} kg; did nothing touch the arm, and does its"
        " base stand as stated?"
    )
    return Doubt(DoubtKind.STEADY_FORCE, words)


def _of_drift(fit: Fitted, mass: int, least: float) -> Doubt | None:
    drifts = [_drifts(part.tau.shape) for part in fit.rows]
    found = fit.tried(drifts, fit.moves(mass, least))
    if found is None:
        return None
    words = (
        f"offsets of the torques drift by up to {2 * np.abs(found.e).max():.2g} Nm during the run,"
        f" which moves the mass by {found.value[mass] - fit.value[mass]:+.3g} kg: let the arm warm"
        " up, or zero its sensors"
    )
    return Doubt(DoubtKind.DRIFT_MOVES, words)


def _of_weight(fit: Fitted, weight: Sequence[Array], least: float) -> Doubt | None:
    """A doubt if the weight changes between parts of the time by more than `least` [N]."""
    found = fit.tried(
        _in_parts(weight), lambda x: float(np.abs(x.e).max(initial=0.0)) / max(least, 1e-300)
    )
    if found is None:
        return None
    j = int(np.abs(found.e).argmax())
    words = (
        f"the weight changes by {found.e[j]:+.2g} N in part {j + 2} of {_TIME_PARTS} of the run:"
        " was the load changed, or the arm touched?"
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
