"""The accuracy of a weighing as an objective: the largest of achieved over requested widths.

The rows Y of a motion have p columns; the last ten of the m unknowns x are the payload phi, and the
rows in x are Y M. With rows Z of prior knowledge, N samples and white noise, x has the covariance

    C = A^-1,      A = N M' G M + Z'Z,      G = (1/N) sum_t Y_t' W Y_t.

For an identified arm, M = [1 J] with the payload's Jacobian J, and Z holds the information of the
empty runs about the base parameters (`torque._prior`). For an arm that is known without error, the
columns are ten of the payload and 3 n of friction, M = 1 and Z = 0.

Each requested half-width belongs to a combination l'phi: the mass, one coordinate of the centre of
mass, or one moment of inertia. l is divided by the requested standard deviation, so that
r_i = sqrt(l_i'C l_i) is at most 1 for a sufficient motion. The merit is the smoothed largest
logarithm of the r_i, plus a small weight of the mean of all ten deviations, which keeps the other
parameters accurate as well:

    f = (1 / 2s) log sum_i r_i^(2s) + (e / 20) sum_k log C_kk,
    df/dA = -C D C,   D = (1/2) sum_i w_i l_i l_i' + (e / 20) sum_k 1_k 1_k' / C_kk,

w_i = r_i^(2s - 2) / sum r^(2s).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard._arrays import Array, Indices
from steelyard.excitation._gradients import RegressorRows
from steelyard.excitation._objective import (
    Criterion,
    Objective,
    Signals,
    gram_inverse,
    independent_columns,
)
from steelyard.inertia import PARAMETER_NAMES
from steelyard.robot import RobotModel

_OTHERS_WEIGHT = 0.02  # of the parameters without a request


@dataclass(frozen=True, eq=False)
class ArmKnowledge:
    """Knowledge of an arm from its empty runs.

    Attributes:
        columns: indices of the regressor columns of its p base parameters, (p,)
        jacobian: derivatives of the base parameters by the ten payload parameters, (p, 10)
        information: Z'Z of the base parameters, (p, p); zero for what is unknown
    """

    columns: Indices
    jacobian: Array
    information: Array


@dataclass(frozen=True, eq=False)
class PayloadAccuracy(Objective):
    """The largest ratio of an achieved to a requested half-width; 1 is just sufficient.

    Attributes:
        requested: combinations l_i of the ten parameters over their requested standard deviations,
            (k, 10)
        noise: standard deviation of white noise of each joint's torque, (n,) [Nm or N]
        samples: number of samples N of a weighing
        arm: knowledge of the arm; everything except friction by default
    """

    requested: Array
    noise: Array
    samples: float
    arm: ArmKnowledge | None = None
    name = "accuracy"

    def _criterion(self, robot: RobotModel, possible: Signals) -> Criterion:
        weights = 1.0 / self.noise
        if self.arm is None:
            every = RegressorRows("payload", np.arange(10 + 3 * robot.n), weights)
            columns = independent_columns(
                every.exact(robot, *possible).reshape(-1, 10 + 3 * robot.n)
            )
            rows = RegressorRows("payload", columns, weights)
            ten = columns[columns < 10]
            weighing = _WeighingRegression(
                np.eye(len(columns)), np.zeros((len(columns),) * 2), np.arange(len(ten))
            )
            names = tuple(PARAMETER_NAMES[i] for i in ten) + ("",) * (len(columns) - len(ten))
        else:
            p = len(self.arm.columns)
            rows = RegressorRows("torque", self.arm.columns, weights)
            mixing = np.column_stack([np.eye(p), self.arm.jacobian])
            before = np.zeros((p + 10, p + 10))
            before[:p, :p] = self.arm.information
            ten = np.flatnonzero(self.arm.jacobian.any(axis=0))
            weighing = _WeighingRegression(mixing, before, p + ten)
            names = tuple(robot.parameter_names[i] for i in self.arm.columns)
        requested = np.zeros((len(self.requested), weighing.mixing.shape[1]))
        requested[:, weighing.payload] = self.requested[:, ten]
        N = self.samples

        def merit(G: Any, sharpness: Any, xp: Any = np) -> tuple[Any, Any]:
            return weighing.merit(G, N, requested, sharpness, xp)

        def exact(R: Array) -> float:
            C = weighing.covariance(R.T @ R, 1.0)
            return float(np.sqrt(np.einsum("ki,ij,kj->k", requested, C, requested).max()))

        return Criterion(robot, rows, names, merit, exact)


@dataclass(frozen=True, eq=False)
class _WeighingRegression:
    """The regression of a weighing.

    Attributes:
        mixing: M, (p, m)
        before: Z'Z, (m, m)
        payload: indices of the payload among the m unknowns
    """

    mixing: Array
    before: Array
    payload: Indices

    def covariance(self, G: Any, N: float, xp: Any = np) -> Any:
        return gram_inverse(N * self.mixing.T @ G @ self.mixing + self.before, xp)

    def merit(self, G: Any, N: float, requested: Array, sharpness: Any, xp: Any) -> tuple[Any, Any]:
        C = self.covariance(G, N, xp)
        across = requested @ C
        squares = xp.maximum((across * requested).sum(axis=1), 1e-300)
        power = (squares / squares.max()) ** sharpness
        own = xp.diag(C)[self.payload]
        f = (xp.log(squares.max()) + xp.log(power.sum()) / sharpness) / 2
        f += _OTHERS_WEIGHT * xp.log(own).mean() / 2
        weight = power / power.sum() / squares / 2
        slope = -(across * weight[:, None]).T @ across
        beside = C[:, self.payload]
        slope -= _OTHERS_WEIGHT / (2 * len(own)) * (beside / own) @ beside.T
        return f, N * self.mixing @ slope @ self.mixing.T
