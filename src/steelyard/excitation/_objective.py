"""Objectives of a motion, to be minimised.

All objectives are functions of the Gram matrix G of the rows that a motion contributes
(`_gradients`), with the eigenvalues l_1 <= ... <= l_p. Each has an exact value, and a smooth merit
f(G) with its derivative df/dG:

    condition   (1/2) log(l_p / l_1), smoothed: (1 / 2s) (log sum l^s + log sum l^-s). The smoothed
                value is larger and converges as the sharpness s grows (s = 1 is the A-optimal
                trace). The smallest eigenvalues of a good motion coincide, where the plain
                condition number has no gradient.
    xu2024      eq. (18): 10 cond(Y) + 5 cond(Y_i) + cond(Y_g) + cond(Y_f), with the inertia,
                first-moment and friction columns taken separately
    liu2025     eq. (40): cond(C'C) of the inertial wrench on a sensor at the flange, without weight
    dopt        -(1 / 2p) log det G: the volume of the confidence region
    payload     the mean of log std of the ten payload parameters, with friction changes and offsets
                as nuisance parameters: with C the inverse of G, f = (1 / 20) sum log C_ii and
                df/dG = -(1 / 20) sum C_i C_i' / C_ii

The G of liu2025 is singular if the axes of the moving joints meet in one point (a spherical wrist),
because a point mass there does not move. Only independent columns are kept, and the value is their
condition number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steelyard._arrays import Array, Indices
from steelyard.errors import InvalidTrajectory, UnknownName
from steelyard.excitation._gradients import RegressorRows
from steelyard.excitation._limits import DesignLimits
from steelyard.inertia import PARAMETER_NAMES
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.robot._parameters import (
    FRICTION_AND_OFFSET_KINDS,
    Parameter,
    ParameterKind,
    ParameterTable,
)
from steelyard.trajectory import FourierTrajectory

_MIN_EIGENVALUE = 1e-15  # relative to the largest; smaller ones are rounding errors
_DEPENDENCE_TOLERANCE = 1e-6  # relative distance of a column from the span of others
_NUISANCE_KINDS = (ParameterKind.COULOMB, ParameterKind.VISCOUS, ParameterKind.OFFSET)
_DEFAULT_NOISE_SHARE = 0.005  # of the torque limit
_INERTIA_KINDS = (
    ParameterKind.INERTIA_XX,
    ParameterKind.INERTIA_XY,
    ParameterKind.INERTIA_YY,
    ParameterKind.INERTIA_XZ,
    ParameterKind.INERTIA_YZ,
    ParameterKind.INERTIA_ZZ,
    ParameterKind.ROTOR_INERTIA,
)
_XU_WEIGHT_ALL = 10.0  # weights of the condition numbers in xu2024 eq. (18): of all columns,
_XU_WEIGHT_INERTIA = 5.0  # of moments of inertia,
_XU_WEIGHT_MOMENT = 1.0  # of first moments,
_XU_WEIGHT_FRICTION = 1.0  # and of friction and offsets
_PROBE_SAMPLES = 200

Signals = tuple[Array, Array, Array]  # positions, velocities and accelerations, (N, n) each


@dataclass(frozen=True, eq=False)
class Criterion:
    """An objective for one arm and its moving joints.

    Attributes:
        robot: the arm
        rows: rows that a motion contributes
        names: names of the columns
        merit: smooth value and derivative by G, as a function of G, a sharpness, and numpy (by
            default) or jax.numpy
        exact: exact value as a function of the triangular factor of all rows
    """

    robot: RobotModel
    rows: RegressorRows
    names: tuple[str, ...]
    merit: Callable[..., tuple[Any, Any]]
    exact: Callable[[Array], float]

    def log_det_merit(self, G: Any, sharpness: Any, xp: Any = np) -> tuple[Any, Any]:
        """-(1 / 2p) log det G and its derivative, for starts where other merits have no gradient.

        Args:
            G: (p, p)
            sharpness: has no effect
            xp: numpy or jax.numpy
        """
        return _log_det_merit(G, sharpness, xp)

    def value(self, trajectory: FourierTrajectory, rate_hz: float) -> float:
        """The exact value for a recording of a trajectory.

        Args:
            trajectory: of the arm
            rate_hz: of the recording, [Hz]
        """
        return self.exact(self._factor(trajectory, rate_hz))

    def payload_std(self, trajectory: FourierTrajectory, rate_hz: float) -> dict[str, float]:
        """The standard deviation of each payload parameter, by name; empty for other rows.

        Args:
            trajectory: of the arm
            rate_hz: of the recording, [Hz]
        """
        if self.rows.kind != "payload":
            return {}
        std = zip(self.names, _std(self._factor(trajectory, rate_hz)), strict=True)
        return {name: float(x) for name, x in std if name in PARAMETER_NAMES}

    def _factor(self, trajectory: FourierTrajectory, rate_hz: float) -> Array:
        t = np.arange(round(trajectory.duration_s * rate_hz)) / rate_hz
        A = self.rows.exact(self.robot, *trajectory.at(t))
        return np.asarray(np.linalg.qr(A.reshape(-1, len(self.rows.columns)), mode="r"))


class Objective(ABC):
    """An objective for any arm.

    Attributes:
        name: in `OBJECTIVES`
        drive: with rotor inertia, friction and offset, or the links only
    """

    name: str
    drive: bool = True

    @staticmethod
    def named(name: str) -> Objective:
        """An objective with its defaults, one of `OBJECTIVES`."""
        if name not in OBJECTIVES:
            raise UnknownName(f"no objective '{name}'; there are {', '.join(OBJECTIVES)}")
        return OBJECTIVES[name]()

    def evaluate(
        self,
        robot: RobotModel,
        trajectory: FourierTrajectory,
        *,
        limits: DesignLimits | None = None,
        rate_hz: float = 125.0,
    ) -> float:
        """The exact value of the objective for any trajectory.

        Args:
            robot: the arm
            trajectory: the motion; joints that stand still in it excite nothing
            limits: limits of the joints; those of the robot by default
            rate_hz: rate of the recording, [Hz]
        """
        moving = np.flatnonzero(np.hypot(trajectory.sine, trajectory.cosine).sum(axis=1) > 0)
        possible = self.criterion(
            robot, limits or DesignLimits.of(robot), trajectory.offset, moving
        )
        return possible.value(trajectory, rate_hz)

    def criterion(
        self, robot: RobotModel, limits: DesignLimits, centre: Array, joints: Indices
    ) -> Criterion:
        """The objective for the parameters that the moving joints can excite.

        Args:
            robot: the arm
            limits: limits of the joints
            centre: position of the other joints, (n,) [rad or m]
            joints: indices of the moving joints
        """
        rng = np.random.default_rng(0)
        low = np.maximum(limits.joints.q_min, centre - np.pi)
        high = np.minimum(limits.joints.q_max, centre + np.pi)
        q = np.tile(centre, (_PROBE_SAMPLES, 1))
        v = np.zeros((_PROBE_SAMPLES, robot.n))
        a = np.zeros((_PROBE_SAMPLES, robot.n))
        q[:, joints] = rng.uniform(low[joints], high[joints], (_PROBE_SAMPLES, len(joints)))
        v[:, joints], a[:, joints] = rng.uniform(-2, 2, (2, _PROBE_SAMPLES, len(joints)))
        return self._criterion(robot, (q, v, a))

    @abstractmethod
    def _criterion(self, robot: RobotModel, possible: Signals) -> Criterion:
        """The objective for one arm, with random signals that its moving joints can have."""


@dataclass(frozen=True, eq=False)
class ConditionNumber(Objective):
    """The condition number of the stacked base regressor.

    Attributes:
        weights: factor of each joint's rows, (n,); 1 / noise makes it the weighted one; all 1 by
            default
        drive: with rotor inertia, friction and offset, or the links only
    """

    weights: Sequence[float] | None = None
    drive: bool = True
    name = "condition"

    def _criterion(self, robot: RobotModel, possible: Signals) -> Criterion:
        rows, columns = _base_rows(robot, possible, self.weights, self.drive)
        return Criterion(robot, rows, columns.names, _condition_merit, _condition)


@dataclass(frozen=True, eq=False)
class DOptimal(ConditionNumber):
    """The volume of the confidence region of the base parameters (log det)."""

    name = "dopt"

    def _criterion(self, robot: RobotModel, possible: Signals) -> Criterion:
        return replace(
            super()._criterion(robot, possible), merit=_log_det_merit, exact=_minus_log_det
        )


@dataclass(frozen=True, eq=False)
class Xu2024(Objective):
    """The composite of xu2024 eq. (18): condition numbers of the regressor and of its parts.

    Attributes:
        weights: factor of each joint's rows, (n,), the paper's Lambda_0^(-1/2); all 1 by default
    """

    weights: Sequence[float] | None = None
    name = "xu2024"

    def _criterion(self, robot: RobotModel, possible: Signals) -> Criterion:
        rows, columns = _base_rows(robot, possible, self.weights, True)
        parts = [(factor, part) for factor, part in _xu_parts(columns) if len(part)]

        def merit(G: Any, sharpness: Any, xp: Any = np) -> tuple[Any, Any]:
            total = 0.0
            slope = 0.0
            for factor, part in parts:
                E = np.eye(len(columns))[:, part]
                f, S = _condition_merit(E.T @ G @ E, sharpness, xp)
                total += factor * xp.exp(f)
                slope += factor * xp.exp(f) * (E @ S @ E.T)
            return xp.log(total), slope / total

        def exact(R: Array) -> float:
            return sum(factor * _condition(R[:, part]) for factor, part in parts)

        return Criterion(robot, rows, columns.names, merit, exact)


@dataclass(frozen=True, eq=False)
class Liu2025(Objective):
    """The condition of the inertial wrench of a load on a sensor at the flange (liu2025 eq. (40)).

    Attributes:
        gravity: whether the wrench contains the load's weight; the paper leaves it out
    """

    gravity: bool = False
    name = "liu2025"

    def _criterion(self, robot: RobotModel, possible: Signals) -> Criterion:
        every = RegressorRows("wrench", np.arange(10), np.ones(6), self.gravity)
        columns = independent_columns(every.exact(robot, *possible).reshape(-1, 10))
        rows = RegressorRows("wrench", columns, np.ones(6), self.gravity)
        names = tuple(PARAMETER_NAMES[i] for i in columns)
        return Criterion(robot, rows, names, _condition_merit, lambda R: _condition(R) ** 2)


@dataclass(frozen=True, eq=False)
class PayloadOptimal(Objective):
    """The geometric mean of the standard deviations of a payload's parameters, for a known arm.

    Attributes:
        noise: standard deviation of each joint's torque, (n,) [Nm or N]; by default half a percent
            of the torque limit, or 1 for a joint without one
        nuisance: whether friction and offset of every joint may have changed since the empty run
    """

    noise: Sequence[float] | None = None
    nuisance: bool = True
    name = "payload"

    def _criterion(self, robot: RobotModel, possible: Signals) -> Criterion:
        limit = robot.limits.tau_max
        noise = np.where(np.isfinite(limit), _DEFAULT_NOISE_SHARE * limit, 1.0)
        if self.noise is not None:
            noise = np.asarray(self.noise)
        weights = 1.0 / _per_joint(noise, robot.n, "noise")
        names = [
            *PARAMETER_NAMES,
            *(str(Parameter(kind, j)) for kind in _NUISANCE_KINDS for j in range(robot.n)),
        ]
        if self.nuisance:
            count = 10 + 3 * robot.n
        else:
            count = 10
        every = RegressorRows("payload", np.arange(count), weights)
        columns = independent_columns(every.exact(robot, *possible).reshape(-1, count))
        ten = int((columns < 10).sum())

        def merit(G: Any, sharpness: Any, xp: Any = np) -> tuple[Any, Any]:
            C = gram_inverse(G, xp)
            variance = xp.diag(C)[:ten]
            slope = -(C[:, :ten] / variance) @ C[:ten] / (2 * ten)
            return xp.log(variance).mean() / 2, slope

        def exact(R: Array) -> float:
            return float(np.exp(np.log(_std(R)[:ten]).mean()))

        rows = RegressorRows("payload", columns, weights)
        return Criterion(robot, rows, tuple(names[i] for i in columns), merit, exact)


OBJECTIVES: dict[str, type[Objective]] = {
    "condition": ConditionNumber,
    "dopt": DOptimal,
    "payload": PayloadOptimal,
    "xu2024": Xu2024,
    "liu2025": Liu2025,
}
"""The objectives by their names on the command line."""


def regression_condition(
    robot: RobotModel,
    trajectory: FourierTrajectory,
    *,
    noise: Sequence[float] | None = None,
    rate_hz: float = 125.0,
) -> float:
    """The condition number that `identify` reports: rows over noise, columns of unit length.

    It does not depend on the units of the parameters, unlike `ConditionNumber`.

    Args:
        robot: the arm
        trajectory: the motion
        noise: standard deviation of each joint's torque, (n,) [Nm or N]; equal by default
        rate_hz: rate of the recording, [Hz]
    """
    t = np.arange(round(trajectory.duration_s * rate_hz)) / rate_hz
    weights = None if noise is None else 1.0 / np.asarray(noise)
    rows, _ = _base_rows(robot, trajectory.at(t), weights, True)
    A = rows.exact(robot, *trajectory.at(t)).reshape(-1, len(rows.columns))
    length = np.linalg.norm(A, axis=0)
    return _condition(np.asarray(np.linalg.qr(A / np.where(length > 0, length, 1.0), mode="r")))


def _std(R: Array) -> Array:
    """The standard deviation of each unknown from the factor R of whitened rows, (p,)."""
    return np.asarray(np.sqrt((np.linalg.inv(R) ** 2).sum(axis=1)))


def _log_det_merit(G: Any, sharpness: Any, xp: Any = np) -> tuple[Any, Any]:
    values, vectors = _eigen(G, xp)
    p = len(values)
    return -xp.log(values).sum() / (2 * p), -(vectors / values) @ vectors.T / (2 * p)


def _condition_merit(G: Any, sharpness: Any, xp: Any = np) -> tuple[Any, Any]:
    values, vectors = _eigen(G, xp)
    high = (values / values[-1]) ** sharpness
    low = (values[0] / values) ** sharpness
    f = xp.log(values[-1] / values[0]) + (xp.log(high.sum()) + xp.log(low.sum())) / sharpness
    slope = (high / high.sum() - low / low.sum()) / (2 * values)
    return f / 2, (vectors * slope) @ vectors.T


def _eigen(G: Any, xp: Any) -> tuple[Any, Any]:
    values, vectors = xp.linalg.eigh(G)
    return xp.maximum(values, _MIN_EIGENVALUE * xp.maximum(values[-1], 1e-300)), vectors


def gram_inverse(G: Any, xp: Any = np) -> Any:
    """The inverse of a Gram matrix, computed with columns of unit length.

    Args:
        G: (p, p)
        xp: numpy or jax.numpy
    """
    length = xp.sqrt(xp.maximum(xp.diag(G), 1e-300))
    values, vectors = _eigen(G / xp.outer(length, length), xp)
    return (vectors / values) @ vectors.T / xp.outer(length, length)


def _condition(R: Array) -> float:
    values = np.linalg.svd(R, compute_uv=False)
    if values[-1] > 0:
        return float(values[0] / values[-1])
    return float("inf")


def _minus_log_det(R: Array) -> float:
    sign, log_det = np.linalg.slogdet(R)
    if sign:
        return float(-2 * log_det)
    return float("inf")


def _base_rows(
    robot: RobotModel, possible: Signals, weights: Sequence[float] | Array | None, drive: bool
) -> tuple[RegressorRows, ParameterTable]:
    """The rows of the base regressor, and the parameters of its columns."""
    basis = ParameterBasis.of_regressor(robot, robot.regressor(*possible), drive=drive)
    if weights is None:
        factor = np.ones(robot.n)
    else:
        factor = _per_joint(weights, robot.n, "weights")
    columns = basis.standard_parameters.take(basis.independent)
    return RegressorRows("torque", basis.independent, factor), columns


def _xu_parts(columns: ParameterTable) -> list[tuple[float, Indices]]:
    """The weight and the columns of each term of the composite."""
    inertia = columns.of_kind(*_INERTIA_KINDS)
    friction = columns.of_kind(*FRICTION_AND_OFFSET_KINDS)
    parts = (
        (_XU_WEIGHT_ALL, np.ones(len(columns), dtype=bool)),
        (_XU_WEIGHT_INERTIA, inertia),
        (_XU_WEIGHT_MOMENT, ~inertia & ~friction),
        (_XU_WEIGHT_FRICTION, friction),
    )
    return [(weight, np.flatnonzero(which)) for weight, which in parts]


def independent_columns(A: Array) -> Indices:
    """Indices of the columns of A, (N, p), that are not in the span of earlier columns."""
    length = np.linalg.norm(A, axis=0)
    R = np.asarray(np.linalg.qr(A / np.where(length > 0, length, 1.0), mode="r"))
    R[:, length <= _DEPENDENCE_TOLERANCE * length.max()] = 0.0
    return ParameterBasis.independent_columns(R, _DEPENDENCE_TOLERANCE)[0]


def _per_joint(values: Sequence[float] | Array, n: int, name: str) -> Array:
    array = np.array(values, dtype=float)
    if array.shape != (n,) or not np.isfinite(array).all() or not (array > 0).all():
        raise InvalidTrajectory(f"{name} must be {n} positive numbers, got {array}")
    return array
