"""Are the postures different enough, and which one is missing?

The forces at rest are m g_s + f0, g_s the direction of gravity in the sensor frame. Weight and drift come
apart when the directions, with a 1 beside each, span four dimensions: D = [g_s 1], (N, 4). The smallest
singular value of D / sqrt(N) says how well (0.5 for directions spread over the sphere, 0 for all in a plane);
the direction d to add is the one with the largest gain d' (D'D)^-1 d.
"""

from __future__ import annotations

import itertools

import numpy as np

from steelyard.arrays import Array
from steelyard.wrist.rest import Postures

_SAME = np.radians(1.0)
_TOO_ALIKE = 0.1


def without_duplicates(postures: Postures, gravity_base: Array) -> Postures:
    """The postures with different gravity directions; of two alike the longer rest stays.

    Args:
        postures: at rest
        gravity_base: (3,) [m/s^2], in the base frame
    """
    directions = _directions(postures, gravity_base)
    keep = np.zeros(len(postures), dtype=bool)
    for k in np.argsort(-postures.rows, kind="stable"):
        apart = directions[keep] @ directions[k]
        keep[k] = not (apart > np.cos(_SAME)).any()
    if keep.all():
        return postures
    note = f"left out {np.sum(~keep)} postures with the same gravity direction as another"
    return postures.take(keep, note)


def spread_of_directions(postures: Postures, gravity_base: Array) -> float:
    """How well weight and drift come apart: the smallest singular value, 0 for not at all.

    Args:
        postures: at rest
        gravity_base: (3,) [m/s^2], in the base frame
    """
    D = _augmented(_directions(postures, gravity_base))
    return float(np.linalg.svd(D / np.sqrt(len(D)), compute_uv=False)[-1]) if len(D) >= 4 else 0.0


def advise(postures: Postures, gravity_base: Array) -> str:
    """What is wrong with the choice of postures and which to add, a sentence; empty when it is good.

    Args:
        postures: at rest
        gravity_base: (3,) [m/s^2], in the base frame
    """
    spread = spread_of_directions(postures, gravity_base)
    if spread >= _TOO_ALIKE:
        return ""
    D = _augmented(_directions(postures, gravity_base))
    best = np.zeros(3)
    gain = -np.inf
    information = D.T @ D + 1e-9 * np.eye(4)
    for corner in itertools.product((-1, 0, 1), repeat=3):
        if not any(corner):
            continue
        d = np.array(corner) / np.linalg.norm(corner)
        row = np.append(d, 1.0)
        value = float(row @ np.linalg.solve(information, row))
        if value > gain * (1 + 1e-9):
            best, gain = d, value
    return (
        f"the postures are too alike (spread {spread:.2f}, 0.3 is good): add one in which gravity points"
        f" along ({best[0]:.1f}, {best[1]:.1f}, {best[2]:.1f}) of the sensor frame"
    )


def _directions(postures: Postures, gravity_base: Array) -> Array:
    return np.asarray(
        np.einsum("nji,j->ni", postures.R_base_sensor, gravity_base / np.linalg.norm(gravity_base))
    )


def _augmented(directions: Array) -> Array:
    return np.column_stack([directions, np.ones(len(directions))])
