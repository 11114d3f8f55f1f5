"""Wrenches that are not what they are said to be: another sign, another frame, an orientation upside down.

At rest the force is f = R' kappa + f0 with kappa = m g_base (liu2025 eq. (13)), six unknowns in all. A wrong
sign turns kappa against gravity, so the mass is negative. A wrong frame or an inverted rotation leaves
residuals of the size of the weight; where another reading of the same numbers fits several times better, the
message names it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import InvalidRecording
from steelyard.wrist.rest import Postures

_POOR = 0.05  # of the weight: a residual that no sensor at rest has
_UPRIGHT = 0.9  # cosine between the weight of another reading and gravity
_BETTER = 5.0  # times smaller: another reading of the numbers is the right one
_READINGS: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "were already rotated into the base frame: say frame = 'base'": lambda f, R: (_back(f, R), R),
    "were measured in the sensor frame and not rotated: say frame = 'sensor'": lambda f, R: (_forth(f, R), R),
    "fit an orientation that is the inverse of the stated one: turn the rotation round": (
        lambda f, R: (f, R.transpose(0, 2, 1))
    ),
}


def force_fit(force: Array, R_base_sensor: Array) -> tuple[Array, float]:
    """The six unknowns (kappa, f0) of the forces at rest, and the root mean square of the residuals, [N].

    Args:
        force: (N, 3) [N], in the sensor frame
        R_base_sensor: (N, 3, 3)
    """
    N = len(force)
    B = np.concatenate([R_base_sensor.transpose(0, 2, 1), np.tile(np.eye(3), (N, 1, 1))], axis=2)
    rows = B.reshape(-1, 6)
    value = np.linalg.lstsq(rows, force.ravel(), rcond=1e-9)[0]
    freedom = max(3 * N - 6, 1)
    return value, float(np.sqrt(((force.ravel() - rows @ value) ** 2).sum() / freedom))


def require_plausible(postures: Postures, nominal: Array) -> None:
    """Refuses wrenches whose forces contradict the stated sign or frame, where the data can tell.

    Args:
        postures: at rest
        nominal: gravity without a tilt, (3,) [m/s^2], in the base frame
    """
    if len(postures) < 3:
        return
    force, R = postures.wrench[:, :3], postures.R_base_sensor
    value, residual = force_fit(force, R)
    weight = float(np.linalg.norm(value[:3]))
    if residual > _POOR * weight and len(postures) > 3:
        for words, reading in _READINGS.items():
            other, other_residual = force_fit(*reading(force, R))
            upright = abs(other[:3] @ nominal) > _UPRIGHT * np.linalg.norm(other[:3]) * np.linalg.norm(
                nominal
            )
            if _BETTER * other_residual < residual and upright:
                raise InvalidRecording(
                    f"the forces do not fit the stated frame (residual {residual:.3g} N); they {words}"
                    f" (residual {other_residual:.3g} N)"
                )
    along = float(value[:3] @ nominal / np.linalg.norm(nominal))
    if along < -0.5 * weight and weight > 3 * residual:
        mass = along / np.linalg.norm(nominal)
        raise InvalidRecording(
            f"the load weighs {mass:.3f} kg: the wrench has the other sign than stated; say"
            " convention = 'sensor_on_load' instead of 'load_on_sensor' (or the reverse), or, for an arm that"
            " hangs from the ceiling, give its gravity"
        )


def _back(force: Array, R: Array) -> Array:
    return np.asarray(np.einsum("nji,nj->ni", R, force))


def _forth(force: Array, R: Array) -> Array:
    return np.asarray(np.einsum("nij,nj->ni", R, force))
