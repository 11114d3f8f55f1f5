"""The input and the output of every method of weighing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard.errors import InvalidSamples, UnknownName
from steelyard.identification import DynamicModel
from steelyard.identification._least_squares import Solution
from steelyard.inertia import INERTIA, PARAMETER_NAMES
from steelyard.recording import Samples
from steelyard.torque._prior import (
    arm_rows,
    by_contradiction,
    by_gravity,
    friction_rows,
    friction_share,
    shifted,
    widened,
)
from steelyard.verdict import Doubt

FIXED_WEIGHT = 1e5
"""One over the standard deviation of a fixed number, [1/SI]."""

_LOAD_ITERATIONS = 4  # of load and friction that depends on it
_MIN_SINGULAR_RATIO = 1e-6  # smaller singular values, over the largest, count as zero
_MIN_INVOLVEMENT = 1e-3  # component of a number in an undetermined direction
_SYMBOLS = {"mass": "m"}
_COM_NAMES = ("cx", "cy", "cz")
_DIAGONAL_NAMES = ("Ixx", "Iyy", "Izz")


@dataclass(frozen=True, eq=False)
class WeighingProblem:
    """The model of the empty arm, and runs with an unknown load.

    Attributes:
        model: of the empty arm
        loaded: runs of the loaded arm, each in the order of time
        fixed: rows [Z z] of fixed numbers of the payload, (k, 11)
        empty: runs of the empty arm, or its controller's torques; only some methods need them
        friction_known: whether friction of the loaded runs is like that of the empty runs
    """

    model: DynamicModel
    loaded: Sequence[Samples]
    fixed: Array
    empty: Sequence[Samples] = ()
    friction_known: bool = True

    @property
    def jacobian(self) -> Array:
        """How the parameters of the model change with the ten numbers of a payload, (p, 10)."""
        columns = np.zeros((len(self.model.estimate.value), 10))
        columns[: len(self.model.basis)] = self.model.basis.payload_jacobian
        return columns

    @property
    def mixing(self) -> Array:
        """Parameters of the loaded arm from those of the empty arm and the payload, (p, p + 10)."""
        return np.column_stack([np.eye(len(self.model.estimate.value)), self.jacobian])

    @property
    def friction(self) -> Mask:
        """Which unknowns of the arm and the payload are friction, (p + 10,)."""
        return np.append(self.model.estimate.parameters.daily, np.zeros(10, bool))

    @property
    def unobservable(self) -> Mask:
        """Which of the ten numbers are unobservable with this arm's kinematics, (10,)."""
        firm = ~self.model.estimate.parameters.daily
        return undetermined(np.vstack([self.jacobian[firm], self.fixed[:, :-1]]))

    @property
    def iterations(self) -> int:
        """Number of solutions: friction that grows with the load needs an iteration."""
        if self.model.law.load:
            return _LOAD_ITERATIONS
        return 1

    def prior(self, without: Mask | None = None) -> Array:
        """Rows [Z z] of the empty runs and of fixed numbers, (r, p + 11).

        Args:
            without: parameters of the arm to leave free, (p,); those that change from day to day by
                default
        """
        arm = arm_rows(self.model, without)
        rows = np.zeros((len(arm) + len(self.fixed), arm.shape[1] + 10))
        rows[: len(arm), : arm.shape[1] - 1] = arm[:, :-1]
        rows[: len(arm), -1] = arm[:, -1]
        rows[len(arm) :, arm.shape[1] - 1 :] = self.fixed
        return rows

    @property
    def friction_prior(self) -> Array:
        """Rows [Z z] of the friction of the loaded run, a draw like that of the empty runs."""
        known = friction_rows(self.model)
        if not self.friction_known:
            known = known[:0]
        return np.insert(known, [known.shape[1] - 1] * 10, 0.0, axis=1)


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer of a method.

    Attributes:
        value: the ten numbers, (10,)
        covariance: of them, (10, 10); infinite on the diagonal where unknown
        unknown: which of the ten the data do not determine, (10,)
        noise: standard deviation of the torque residuals of each joint, (n,) [Nm]
        contradiction: how far the loaded runs move the empty arm, RMS over the RMS expected by
            noise; about 1 if the model is right, 0 if the method does not test it
        per_gain: change of the ten numbers with the logarithm of each drive's gain, (10, n)
        per_drift: the same for gains that change in the loaded runs only, (10, n)
        friction: share of the mass's variance that would vanish if friction were known
        expected: why the method cannot determine some of the ten; empty if it can determine all
        doubts: about the answer
        remark: further information on how it was found, in words
        shift: possible bias of the ten numbers by noise of the measured motion, (10,); None for
            none
        friction_known: whether friction was taken to be like that of the empty runs
        contradicted: what the contradiction adds to the covariance, (10, 10); None if the parts of
            the covariance are not known, all of which then grow
    """

    value: Array
    covariance: Array
    unknown: Mask
    noise: Array
    contradiction: float
    per_gain: Array
    per_drift: Array
    friction: float = 0.0
    expected: str = ""
    doubts: tuple[Doubt, ...] = ()
    remark: str = ""
    shift: Array | None = None
    friction_known: bool = True
    contradicted: Array | None = None

    @classmethod
    def of(
        cls,
        solution: Solution,
        covariance: Array,
        per_gain: Array,
        per_drift: Array,
        *,
        friction: Mask,
        contradiction: float = 0.0,
    ) -> Answer:
        """The answer whose ten numbers are the last of a solution's m unknowns.

        Args:
            solution: of loaded runs, or of empty and then loaded ones
            covariance: of all unknowns, (m, m)
            per_gain: their change with the logarithm of each gain, (m, n)
            per_drift: the same, in the loaded runs only, (m, n)
            friction: which of them are friction, (m,)
            contradiction: see above
        """
        noise = solution.noise.reshape(-1, per_gain.shape[1])
        return cls(
            solution.value[-10:],
            covariance[-10:, -10:],
            solution.unknown[-10:],
            np.sqrt(np.mean(noise**2, axis=0)),
            contradiction,
            per_gain[-10:],
            per_drift[-10:],
            friction_share(solution.inverse, len(friction) - 10, friction & ~solution.unknown),
        )

    def widened(self, problem: WeighingProblem) -> tuple[Array, Array | None, dict[str, float]]:
        """The covariance with all errors, the error by gains, and shares of the mass's variance.

        Args:
            problem: whose answer this is
        """
        contradicted = self.contradicted
        if contradicted is None:
            contradicted = by_contradiction(self.covariance, self.contradiction)
        covariance, gain_error, shares = widened(
            self.covariance,
            problem.model.robot.drive,
            per_gain=self.per_gain,
            per_drift=self.per_drift,
            contradicted=contradicted,
            friction=self.friction,
        )
        if len(problem.fixed):
            gravity = None
        else:
            gravity = by_gravity(problem.model.robot, self.value)
        for name, shift in (("motion", self.shift), ("gravity", gravity)):
            covariance, shares = shifted(covariance, shares, name, shift)
        return covariance, gain_error, shares


def undetermined(rows: Array) -> Mask:
    """Which columns of a set of equations have no certain value, (k,).

    Args:
        rows: of the equations, (r, k)
    """
    length = np.linalg.norm(rows, axis=0)
    _, s, Vt = np.linalg.svd(rows / np.where(length > 0, length, 1.0))
    weak = np.ones(rows.shape[1], bool)
    weak[: len(s)] = s < _MIN_SINGULAR_RATIO * s[0]
    return np.asarray((np.abs(Vt[weak]) > _MIN_INVOLVEMENT).any(axis=0) | (length == 0))


def fixed_rows(fixed: Mapping[str, float]) -> Array:
    """Rows [Z z] that fix known numbers of the payload, (k, 11).

    Args:
        fixed: by name of `PARAMETER_NAMES`, or mass; cx, cy, cz for the centre of mass; 'inertia'
            for all six
    """
    numbers = {
        _SYMBOLS.get(name, name): value for name, value in fixed.items() if name != "inertia"
    }
    if len(numbers) < len(fixed) - ("inertia" in fixed):
        raise InvalidSamples("'m' and 'mass' are the same number: fix one of them")
    if "inertia" in fixed:
        numbers |= dict.fromkeys(PARAMETER_NAMES[INERTIA], fixed["inertia"])
    _require_possible(numbers)
    rows = np.zeros((len(numbers), 11))
    for row, (name, value) in zip(rows, numbers.items(), strict=True):
        if name in _COM_NAMES:
            row[1 + _COM_NAMES.index(name)] = FIXED_WEIGHT
            row[0] = -FIXED_WEIGHT * value
        else:
            row[PARAMETER_NAMES.index(name)] = FIXED_WEIGHT
            row[-1] = FIXED_WEIGHT * value
    return rows


def _require_possible(fixed: Mapping[str, float]) -> None:
    """Raises an error for fixed numbers that no body has."""
    for name, value in fixed.items():
        if name not in (*PARAMETER_NAMES, *_COM_NAMES):
            raise UnknownName(
                f"'{name}' cannot be fixed; the numbers are {', '.join(PARAMETER_NAMES)}, cx, cy,"
                " cz and inertia (all six)"
            )
        if (
            not np.isfinite(value)
            or (name == "m" and value <= 0)
            or (name in _DIAGONAL_NAMES and value < 0)
        ):
            raise InvalidSamples(f"'{name}' cannot be fixed at {value}")
    for first, moment in zip(_COM_NAMES, ("mx", "my", "mz"), strict=True):
        if {first, moment, "m"} <= set(fixed) and not np.isclose(
            fixed[moment], fixed["m"] * fixed[first]
        ):
            raise InvalidSamples(
                f"fixed numbers contradict each other: {moment} = {fixed[moment]:g}, but m {first}"
                f" = {fixed['m'] * fixed[first]:g}"
            )
    if set(_DIAGONAL_NAMES) <= set(fixed):
        moments = sorted(fixed[name] for name in _DIAGONAL_NAMES)
        if moments[2] > (1 + 1e-9) * (moments[0] + moments[1]):
            raise InvalidSamples(
                f"no body has the fixed inertia: {moments[2]:g} kg m^2 is more than the sum of the"
                " other two"
            )
