"""How an online estimate came about: points along the way, and when each payload was known as asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steelyard.arrays import Array
from steelyard.torque.online.estimator import OnlineEstimator
from steelyard.torque.online.state import OnlineState


class CurvePoint(NamedTuple):
    """The estimate at one instant.

    Attributes:
        t: time of the last sample, [s] on the stream's clock
        mass: [kg]
        mass_std: its standard deviation, [kg]; infinite where unknown
        com: centre of mass, (3,) [m], in the flange frame; NaN while the mass may be zero
        com_std: its standard deviation, (3,) [m]
        payload: which one, counted from 1
        converged: whether the mass is as sure as was asked for
        status: how good it is, in sentences
    """

    t: float
    mass: float
    mass_std: float
    com: Array
    com_std: Array
    payload: int
    converged: bool
    status: str

    @classmethod
    def of(cls, estimator: OnlineEstimator, state: OnlineState) -> CurvePoint:
        """The plain estimate of a state as a point of a curve; a real body is looked for at the end only."""
        found = estimator.estimate(state, physical=False)
        mass, std = found.body.mass, float(found.std[0])
        com, com_std = np.full(3, np.nan), np.full(3, np.inf)
        if mass > 1.96 * std:
            com, com_std = found.body.com, found.com_std
        sure = bool(1.96 * std <= estimator.options.accuracy * abs(mass))
        number = len(state.history) + 1
        return cls(state.last_s, mass, std, com, com_std, number, sure, found.status)


def convergence_times(points: Sequence[CurvePoint]) -> dict[int, float]:
    """Since when each payload was known as asked for, to its end, [s]; those that never were are left out."""
    since: dict[int, float] = {}
    for point in points:
        if point.converged:
            since.setdefault(point.payload, point.t)
        else:
            since.pop(point.payload, None)
    return since
