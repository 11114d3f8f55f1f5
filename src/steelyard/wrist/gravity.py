"""Gravity of a tilted base: two angles U and V against the gravity that the robot model states.

An arm that stands upright has gravity_base = (0, 0, -g). Tilted by U about x and V about y (liu2025 eq. (6)),

    gravity_base = g (cos U sin V, -sin U, -cos U cos V)                               liu2025 eq. (10)

and back, with the signs that the paper lost in eq. (19),

    U = arcsin(-y / g),   V = arctan2(x, -z).

For an arm on a wall or a ceiling the same two angles are taken in the frame whose -z is its nominal gravity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from steelyard.arrays import Array
from steelyard.errors import InvalidRobot


def tilted_gravity(nominal: Array, angles: ArrayLike) -> Array:
    """Where things fall when the base is tilted, (3,) [m/s^2], in the base frame.

    Args:
        nominal: gravity without a tilt, (3,) [m/s^2], in the base frame
        angles: U and V, (2,) [rad]
    """
    U, V = np.asarray(angles, dtype=float)
    direction = [np.cos(U) * np.sin(V), -np.sin(U), -np.cos(U) * np.cos(V)]
    return np.asarray(_upright(nominal) @ direction * np.linalg.norm(nominal))


def tilted_gravity_slope(nominal: Array, angles: ArrayLike) -> Array:
    """The derivative of the tilted gravity by U and V, (3, 2) [m/s^2], in the base frame.

    Args:
        nominal: gravity without a tilt, (3,) [m/s^2], in the base frame
        angles: U and V, (2,) [rad]
    """
    U, V = np.asarray(angles, dtype=float)
    by_U = [-np.sin(U) * np.sin(V), -np.cos(U), np.sin(U) * np.cos(V)]
    by_V = [np.cos(U) * np.cos(V), 0.0, np.cos(U) * np.sin(V)]
    return np.asarray(_upright(nominal) @ np.column_stack([by_U, by_V]) * np.linalg.norm(nominal))


def inclination(nominal: Array, gravity_base: Array) -> Array:
    """The angles U and V of a gravity vector of any length, (2,) [rad].

    Args:
        nominal: gravity without a tilt, (3,) [m/s^2], in the base frame
        gravity_base: gravity as it is, (3,), in the base frame
    """
    x, y, z = _upright(nominal).T @ gravity_base / np.linalg.norm(gravity_base)
    return np.array([np.arcsin(np.clip(-y, -1.0, 1.0)), np.arctan2(x, -z)])


def checked_gravity(gravity_base: ArrayLike) -> Array:
    """A gravity vector, or a refusal, (3,) [m/s^2].

    Args:
        gravity_base: where things fall, (3,) [m/s^2], in the base frame
    """
    g = np.array(gravity_base, dtype=float)
    if g.shape != (3,) or not np.isfinite(g).all() or not np.linalg.norm(g) > 0:
        raise InvalidRobot(f"gravity_base must be three finite numbers, not all zero [m/s^2], got {g}")
    return g


def _upright(nominal: Array) -> Array:
    """The frame with -z along the nominal gravity, in the base, (3, 3); the identity for an upright arm."""
    up = -np.asarray(nominal, dtype=float) / np.linalg.norm(nominal)
    z = np.array([0.0, 0.0, 1.0])
    axis, cosine = np.cross(z, up), up[2]
    if cosine < -1 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    S = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.asarray(np.eye(3) + S + S @ S / (1 + cosine))
