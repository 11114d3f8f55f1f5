"""Terms of plug-ins: columns that another package adds to the regression of an arm's torques.

A spring, a counterbalance or a cable adds torques that no link, rotor or friction explains. An
installed package names a function under the entry point `steelyard.terms`,

    columns(robot, q, v) -> (N, n, k)

for positions q [rad or m] and velocities v [rad/s or m/s], (N, n) each: k columns that do not
depend on torques. Each has one unknown coefficient, X1, X2, ..., in the order of the arm's terms.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidRobot, UnknownName

if TYPE_CHECKING:
    from steelyard.robot._model import RobotModel

GROUP = "steelyard.terms"
"""Entry points of functions that give columns."""


def term_columns(robot: RobotModel, q: Array, v: Array) -> Array:
    """The columns of all terms of an arm, (N, n, K).

    Args:
        robot: with the names of its terms
        q: positions, (N, n) [rad or m]
        v: velocities, (N, n) [rad/s or m/s]
    """
    parts = [_columns(name, robot, q, v) for name in robot.terms]
    return np.concatenate([np.zeros((*q.shape, 0)), *parts], axis=2)


def term_count(robot: RobotModel) -> int:
    """The number of columns of all terms of an arm."""
    if not robot.terms:
        return 0
    posture = robot.home[None]
    return int(term_columns(robot, posture, np.zeros_like(posture)).shape[2])


def require_no_terms(robot: RobotModel, purpose: str) -> None:
    """Raises an error if an arm has terms of plug-ins, which a purpose does not know.

    Args:
        purpose: as in 'collision detection'
    """
    if robot.terms:
        raise InvalidRobot(
            f"{robot.name} has terms of plug-ins ({', '.join(robot.terms)}), which {purpose} does"
            " not know; they are for identify, validate and weigh"
        )


def _columns(name: str, robot: RobotModel, q: Array, v: Array) -> Array:
    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in known:
        there = ", ".join(sorted(known)) or "none are installed"
        raise UnknownName(
            f"no term '{name}' ({there}): install the package that provides it (entry point"
            f" {GROUP})"
        )
    columns = np.asarray(known[name].load()(robot, q, v), dtype=float)
    if columns.ndim != 3 or columns.shape[:2] != q.shape or not np.isfinite(columns).all():
        raise InvalidRobot(
            f"the term '{name}' must give finite numbers of shape (N, n, k) = ({len(q)},"
            f" {robot.n}, k), got {columns.shape}"
        )
    return columns
