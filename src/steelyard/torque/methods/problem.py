"""What every method of weighing starts from, and what every one answers with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.arrays import Array, Mask
from steelyard.errors import InvalidSamples, UnknownName
from steelyard.identification import DynamicModel, RegressionFactor
from steelyard.identification.least_squares import Solution, solve_weighted
from steelyard.identification.problem import Rows, kinds
from steelyard.inertia import PARAMETER_NAMES
from steelyard.recording import Samples
from steelyard.verdict import Doubt

FRICTION = ("Fc", "Fv", "B", "Fs")
"""What changes from day to day and with the load, so the empty arm does not tell it."""

LOAD_ROUNDS = 4
CERTAIN = 1e5
"""One over the standard deviation of a number that is given, [1/SI]."""

_NOTHING = 1e-12
_SHORT = {"mass": "m"}
_COM = ("cx", "cy", "cz")
_DIAGONAL = ("Ixx", "Iyy", "Izz")


@dataclass(frozen=True, eq=False)
class WeighingProblem:
    """An empty arm that is known, and runs with a load that is not.

    Attributes:
        model: of the empty arm
        loaded: runs of the loaded arm, each in the order of time
        fixed: rows [Z z] of what is known of the ten numbers, (k, 11)
        empty: runs of the empty arm, or what its controller says of it; only some methods need them
    """

    model: DynamicModel
    loaded: Sequence[Samples]
    fixed: Array
    empty: Sequence[Samples] = ()

    @property
    def jacobian(self) -> Array:
        """How the parameters of the model change with the ten numbers of a payload, (p, 10)."""
        columns = np.zeros((len(self.model.estimate.value), 10))
        columns[: len(self.model.basis)] = self.model.basis.payload_jacobian
        return columns

    @property
    def mixing(self) -> Array:
        """The p parameters of the loaded arm from those of the empty arm and the payload, (p, p + 10)."""
        return np.column_stack([np.eye(len(self.model.estimate.value)), self.jacobian])

    @property
    def rounds(self) -> int:
        """How often to solve: friction that grows with the load needs the load."""
        return LOAD_ROUNDS if self.model.law.load else 1

    def prior(self, but: Sequence[str] = FRICTION) -> Array:
        """Rows [Z z] of what the empty runs tell, and of what is fixed, (r, p + 11).

        Args:
            but: kinds of parameters that they do not tell
        """
        told = _arm_rows(self.model, but)
        rows = np.zeros((len(told) + len(self.fixed), told.shape[1] + 10))
        rows[: len(told), : told.shape[1] - 1] = told[:, :-1]
        rows[: len(told), -1] = told[:, -1]
        rows[len(told) :, told.shape[1] - 1 :] = self.fixed
        return rows


@dataclass(frozen=True, eq=False)
class Answer:
    """What a method answers with.

    Attributes:
        value: the ten numbers, (10,)
        covariance: of them, (10, 10); infinite on the diagonal where unknown
        unknown: which of them the data do not tell, (10,)
        noise: standard deviation of the torque residuals of each joint, (n,) [Nm]
        contradiction: how far the loaded runs move the empty arm, RMS in its standard deviations; about 1
            or less when all is well, 0 where a method does not ask
        per_gain: how the ten numbers change with the logarithm of each drive's gain, (10, n)
        expected: why numbers are unknown by the nature of the method; empty where it can tell all ten
        doubts: what speaks against the answer
        remark: what else is to know about how it was found, in words
    """

    value: Array
    covariance: Array
    unknown: Mask
    noise: Array
    contradiction: float
    per_gain: Array
    expected: str = ""
    doubts: tuple[Doubt, ...] = ()
    remark: str = ""


def _arm_rows(model: DynamicModel, but: Sequence[str]) -> Array:
    """Rows [Z z] of unit noise of what the empty runs tell of all parameters but some kinds, (r, p + 1).

    Z'Z is the inverse of the covariance. Where the runs do not tell some of the parameters, they may still
    tell combinations: then the rows are those of the triangular factor, less what the others take, widened
    as much as correlation in time has widened the parameters that are told.
    """
    estimate, p = model.estimate, len(model.estimate.value)
    kept = np.flatnonzero(~np.isin(kinds(estimate.names), but))
    rows = np.zeros((len(kept), p + 1))
    if np.isfinite(np.diag(estimate.covariance)[kept]).all():
        whitening = np.linalg.inv(np.linalg.cholesky(estimate.covariance[np.ix_(kept, kept)]))
        rows[:, kept], rows[:, -1] = whitening, whitening @ estimate.value[kept]
        return rows
    solution = solve_weighted(model.factor)
    known = np.isfinite(np.diag(estimate.covariance)) & (np.diag(solution.inverse) > 0)
    widening = np.median(estimate.std[known] / np.sqrt(np.diag(solution.inverse)[known]))
    others = np.setdiff1d(np.arange(p), kept)
    order = np.concatenate([others, kept, [p]])
    triangle = np.asarray(np.linalg.qr(model.factor.weighted(solution.weights)[:, order])[1])
    rows[:, kept] = triangle[len(others) : p, len(others) : p] / widening
    rows[:, -1] = triangle[len(others) : p, p] / widening
    return np.asarray(rows[np.abs(rows[:, :-1]).max(axis=1) > _NOTHING * np.abs(rows).max()])


def factor_of(rows: Sequence[Rows]) -> RegressionFactor:
    """The triangular factors of runs, one group for each joint of each run.

    Args:
        rows: of each run
    """
    n, p = rows[0].Y.shape[1:]
    empty = RegressionFactor.empty(n, p)
    return RegressionFactor.stacked([empty.add(part.Y, part.tau, part.usable) for part in rows])


def gain_response(factor: RegressionFactor, solution: Solution, mixing: Array, n: int) -> Array:
    """How a solution changes with the logarithm of each joint's gain, which scales its torques, (m, n).

    Args:
        factor: of the rows that it was solved from, in p columns, n groups for each run
        solution: of m unknowns
        mixing: the p combinations of the m unknowns, (p, m)
        n: number of joints
    """
    out = np.zeros((len(solution.value), n))
    for g, (R, weight) in enumerate(zip(factor.R, solution.weights, strict=True)):
        out[:, g % n] += weight**2 * (mixing.T @ (R[:, :-1].T @ R[:, -1]))
    return np.asarray(solution.inverse @ out)


def fixed_rows(fixed: Mapping[str, float]) -> Array:
    """Rows [Z z] that hold known numbers of the payload where they are, (k, 11).

    Args:
        fixed: by name of `PARAMETER_NAMES`, or mass; cx, cy, cz for the centre of mass; 'inertia' for all six
    """
    numbers = {_SHORT.get(name, name): value for name, value in fixed.items() if name != "inertia"}
    if len(numbers) < len(fixed) - ("inertia" in fixed):
        raise InvalidSamples("'m' and 'mass' are the same number: fix one of them")
    if "inertia" in fixed:
        numbers |= dict.fromkeys(PARAMETER_NAMES[4:], fixed["inertia"])
    _require_possible(numbers)
    rows = np.zeros((len(numbers), 11))
    for row, (name, value) in zip(rows, numbers.items(), strict=True):
        if name in _COM:
            row[1 + _COM.index(name)], row[0] = CERTAIN, -CERTAIN * value
        else:
            row[PARAMETER_NAMES.index(name)], row[-1] = CERTAIN, CERTAIN * value
    return rows


def _require_possible(fixed: Mapping[str, float]) -> None:
    """Refuses numbers that no body has."""
    for name, value in fixed.items():
        if name not in (*PARAMETER_NAMES, *_COM):
            raise UnknownName(
                f"'{name}' cannot be fixed; the numbers are {', '.join(PARAMETER_NAMES)}, cx, cy, cz"
                " and inertia (all six)"
            )
        if not np.isfinite(value) or (name == "m" and value <= 0) or (name in _DIAGONAL and value < 0):
            raise InvalidSamples(f"'{name}' cannot be fixed at {value}")
    for first, moment in zip(_COM, ("mx", "my", "mz"), strict=True):
        if {first, moment, "m"} <= set(fixed) and not np.isclose(fixed[moment], fixed["m"] * fixed[first]):
            raise InvalidSamples(
                f"fixed numbers contradict each other: {moment} = {fixed[moment]:g}, but m {first} ="
                f" {fixed['m'] * fixed[first]:g}"
            )
    if set(_DIAGONAL) <= set(fixed):
        moments = sorted(fixed[name] for name in _DIAGONAL)
        if moments[2] > (1 + 1e-9) * (moments[0] + moments[1]):
            raise InvalidSamples(
                f"no body has the fixed inertia: {moments[2]:g} kg m^2 is more than the sum of the other two"
            )
