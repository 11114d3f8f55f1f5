"""Other causes of loaded torques than a load, tried beside the fit (see `identification.other_causes`).

    scale     torques of the loaded runs e times larger: gains, units or another arm
    force     a constant force at the flange, three directions: a hand, a cable, weight without inertia
    drift     offsets of the joints that go with time
    weight    the weight in six parts of the time, against the first: a load that changed, a hand for a while

A cause counts against an answer where it is sure, and where without it the answer is another one: by more
than a standard deviation of the mass as stated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.arrays import Array
from steelyard.identification import RegressionFactor
from steelyard.identification.least_squares import solve_weighted
from steelyard.identification.other_causes import ENOUGH_ROWS, Tried
from steelyard.robot import RobotModel
from steelyard.torque.methods.problem import WeighingProblem
from steelyard.verdict import Doubt, DoubtKind

_PARTS = 6
_FEWEST_ROWS = 100
_MATTERS = 1.0  # standard deviations of the mass


def other_causes(problem: WeighingProblem, value: Array, mass_std: float) -> tuple[Doubt, ...]:
    """Doubts where something else than a load explains the loaded torques better.

    Args:
        value: the ten numbers as they were found, (10,)
        mass_std: standard deviation of the mass, with all that may be wrong, [kg]
    """
    every = -(-sum(len(part) for part in problem.loaded) // ENOUGH_ROWS)
    theta = problem.model.estimate.value + problem.jacobian @ value
    rows = [problem.model.rows(part, theta).thinned(every) for part in problem.loaded]
    if sum(int(part.usable.any(axis=1).sum()) for part in rows) < _FEWEST_ROWS or not np.isfinite(mass_std):
        return ()
    prior, mixing, p = problem.prior(), problem.mixing, len(theta)
    before = solve_weighted(RegressionFactor.of_rows(rows), prior, mixing).value
    pull = [_forces(problem.model.robot, part.q[::every]) for part in problem.loaded]
    scale = Tried.beside(rows, [(part.Y @ (mixing @ before))[:, :, None] for part in rows], prior, mixing)
    force = Tried.beside(rows, pull, prior, mixing)
    drift = Tried.beside(rows, [_drifts(part.tau.shape) for part in rows], prior, mixing)
    weight = Tried.beside(rows, _in_parts(problem.model.robot, pull), prior, mixing)
    least, of_gains = _MATTERS * mass_std, problem.model.robot.drive.gain_drift or 0.0
    doubts = (
        _of_scale(scale, scale.value[p] - before[p], least, of_gains),
        _of_force(force, force.value[p] - before[p], least),
        _of_drift(drift, drift.value[p] - before[p], least),
        _of_weight(weight, least * float(np.linalg.norm(problem.model.robot.gravity_base))),
    )
    return tuple(doubt for doubt in doubts if doubt is not None)


def _of_scale(found: Tried, moved: float, least: float, drift: float) -> Doubt | None:
    if abs(moved) < least or not found.sure(drift):
        return None
    words = (
        f"the loaded torques are {1 + found.e[0]:.3f} times what the empty arm says, which moves the mass by"
        f" {moved:+.3g} kg: have gains or units changed since the empty run, or the arm?"
    )
    return Doubt(DoubtKind.TORQUE_SCALE, words)


def _of_force(found: Tried, moved: float, least: float) -> Doubt | None:
    if abs(moved) < least or not found.sure():
        return None
    words = (
        "weight and inertia of the load contradict each other: a steady force of"
        f" {np.linalg.norm(found.e):.2g} N would explain it, and move the mass by {moved:+.3g} kg;"
        " did nothing touch the arm, and does its base stand as stated?"
    )
    return Doubt(DoubtKind.STEADY_FORCE, words)


def _of_drift(found: Tried, moved: float, least: float) -> Doubt | None:
    if abs(moved) < least or not found.sure():
        return None
    words = (
        f"offsets of the torques drift by up to {2 * np.abs(found.e).max():.2g} Nm during the run,"
        f" which moves the mass by {moved:+.3g} kg: let the arm warm up, or zero its sensors"
    )
    return Doubt(DoubtKind.DRIFT_MOVES, words)


def _of_weight(found: Tried, least: float) -> Doubt | None:
    j = int(np.abs(found.e).argmax())
    if abs(found.e[j]) < least or not found.sure():
        return None
    words = (
        f"the weight changes by {found.e[j]:+.2g} N in part {j + 2} of {_PARTS} of the run: was the load"
        " changed, or the arm touched?"
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
    return np.stack([robot.with_gravity(g).payload_regressor(q, still, still)[:, :, 0] for g in np.eye(3)], 2)


def _in_parts(robot: RobotModel, pull: Sequence[Array]) -> list[Array]:
    """The torque of a weight of 1 N in each part of the time but the first, (N, n, parts - 1)."""
    down = robot.gravity_base / max(float(np.linalg.norm(robot.gravity_base)), 1e-300)
    count, columns, first = sum(map(len, pull)), [], 0
    for each in pull:
        part = (first + np.arange(len(each))) * _PARTS // count
        columns.append((each @ down)[:, :, None] * (part[:, None, None] == np.arange(1, _PARTS)))
        first += len(each)
    return columns
