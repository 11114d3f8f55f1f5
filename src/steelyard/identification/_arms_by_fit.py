"""Which arm a log may be of, by its positions and torques.

The torques of each arm are fitted by ordinary least squares, each joint over its own standard
deviation: y = Y theta. The share of the torques that an arm leaves unexplained is

    |y - Y theta| / |y|,

and the smallest share comes first. Friction is not fitted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard._arrays import Array
from steelyard.recording import Samples
from steelyard.robot import RobotModel

_MAX_ROWS = 300  # that arms are compared on


def arms_by_fit(
    arms: Sequence[RobotModel], q: Array, samples: Samples | None
) -> tuple[RobotModel, ...]:
    """Arms, the likeliest first; equal ones in the given order.

    Args:
        arms: to compare, with as many joints as the log
        q: positions of the log, (N, n) [rad or m]; an arm whose limits they exceed comes after
            those whose limits contain them
        samples: of the log; None if its torques are not known
    """
    return tuple(sorted(arms, key=lambda arm: _unexplained_share(arm, samples) + _outside(arm, q)))


def _outside(arm: RobotModel, q: Array) -> float:
    """1 where positions are outside of an arm's limits, else 0."""
    inside = (q >= arm.limits.q_min) & (q <= arm.limits.q_max)
    return float(not inside.all())


def _unexplained_share(arm: RobotModel, samples: Samples | None) -> float:
    """Share of the torques that no parameters of an arm explain; 1 where they are not known."""
    if samples is None:
        return 1.0
    rows = np.linspace(0, len(samples.q) - 1, min(_MAX_ROWS, len(samples.q))).astype(int)
    Y = arm.regressor(samples.q[rows], samples.v[rows], samples.a[rows])
    tau = samples.tau[rows]
    scale = tau.std(axis=0) + np.finfo(float).tiny
    Y = (Y / scale[:, None]).reshape(tau.size, -1)
    y = (tau / scale).ravel()
    solution = np.linalg.lstsq(Y, y, rcond=None)[0]
    return float(np.sqrt(np.mean((y - Y @ solution) ** 2) / np.mean(y**2)))
