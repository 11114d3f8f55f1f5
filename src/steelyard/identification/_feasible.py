"""The standard parameters that explain the data best among those that real bodies can have.

Torques determine the base parameters pi = K phi and nothing else of phi, and because of noise the
estimate is often one that no bodies have. With the triangular factor R of the whitened rows [Y_base
tau] / sigma, split into R_1 (its first p columns) and z (its last), the sum of squares of any phi
is |R_1 K phi - z|^2 plus what no parameters explain. It is minimised over all arms that can be
built:

    J_i > 0          for every link, its pseudo-inertia (a 4 x 4 cone; Wensing, Kim, Slotine 2018)
    Ia, Fc, Fv >= 0  and the user's bounds, gaz2017 eq. (36)

in the unknowns x of `feasible_space`, which have no units and are about 1 for the nominal links.

Undecided directions. A = R_1 K dphi/dx has singular values s and directions V; one standard
deviation of the noise moves x by 1/s along each. The nominal arm counts as one more measurement, of
x with a standard deviation of 1, the size of the link itself: minimise

    |A x - z|^2 + lambda |x - x_nominal|^2,       lambda = max(1, (1e-6 max s)^2)

A direction with s^2 < lambda is undecided: the nominal arm determines it. In all others the nominal
arm weighs less than one standard deviation of one row, and its effect is removed afterwards if the
constraints permit.

Whitening. With x = x_0 + V diag(lambda / (s^2 + lambda))^1/2 d, x_0 the minimum without
constraints, the objective is lambda |d|^2: what remains is the shortest d that fulfils the
constraints, whatever the units and the noise. It is a cone program of 14 n unknowns, n cones of 4 x
4 and some rows, for Clarabel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from steelyard._arrays import Array
from steelyard.errors import InvalidRobot, MissingExtra, SolverFailed
from steelyard.identification._feasible_space import (
    BoundRows,
    Coordinates,
    ParameterBounds,
    unit_columns,
)
from steelyard.inertia import InertialParameters
from steelyard.robot import ParameterBasis, RobotModel

AnyArray = TypeVar("AnyArray", bound=NDArray[np.generic])

_PRIOR_WEIGHT = 1.0  # lambda
_MIN_PRIOR_RATIO = 1e-6  # smallest sqrt(lambda) / max s in double precision
_RELATIVE_RANK = 1e-10  # smaller singular values, over the largest, count as zero
_MAX_ROUNDING = 1e-7  # of the torques; smaller residuals are zero
_BOUND_TOLERANCE = 1e-7  # violation of a bound with a row of unit length
_ACTIVE_SLACK = 1e-5  # bounds with a smaller slack are reported as active
_SOLVER_TOLERANCE = 1e-10  # of Clarabel, gap and feasibility
_STEP_SCALES = (1.0, 1e3, 1e6)  # units of d, one after the other; large if bounds contradict data
_INFEASIBILITY_TOLERANCE = 1e-8  # of Clarabel's certificate that no solution exists


@dataclass(frozen=True)
class UndecidedDirections:
    """Directions and parameters that the nominal arm decides, not the data.

    Attributes:
        structure: number of directions of phi that are unobservable with the arm's kinematics
        motion: number of further directions that the motion determines less well than the nominal
            arm
        parameters: names of the standard parameters that these directions involve
    """

    structure: int
    motion: int
    parameters: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class FeasibleArm:
    """The arm of real bodies that explains the data best.

    Attributes:
        robot: the arm, with its links and drives
        base: its base parameters K phi, (p,) [SI]
        extra: values of the columns of R beyond the basis, (p_extra,)
        rms_ratio: RMS of the whitened residuals over that of the fit without constraints, at least
            1
        undecided: directions and parameters that the nominal arm decided
        on_border: which links are as thin, or as light, as the constraints permit, (n,)
        active: bounds that hold with equality, such as 'Fc2 >= 0'
        status: quality of the fit, a sentence
    """

    robot: RobotModel
    base: Array
    extra: Array
    rms_ratio: float
    undecided: UndecidedDirections
    on_border: NDArray[np.bool_]
    active: tuple[str, ...]
    status: str


@dataclass(frozen=True, eq=False)
class _QuadraticCost:
    """The cost |A x - z|^2 with A = U diag(s) V', and its minimum `best`.

    The singular values s and goal = U'z are zero beyond the number of rows. The data determine the
    first `rank` directions, and the first `decided` of them better than the nominal arm.
    """

    A: Array
    z: Array
    s: Array
    V: Array
    goal: Array
    rank: int
    best: float

    @classmethod
    def of(cls, A: Array, z: Array) -> _QuadraticCost:
        U, s, Vt = np.linalg.svd(A)
        missing = np.zeros(A.shape[1] - len(s))
        rank = int((s > _RELATIVE_RANK * s[0]).sum())
        along = U.T @ z
        goal = np.append(along[: len(s)], missing)
        return cls(
            A, z, np.append(s, missing), Vt.T, goal, rank, float(along[rank:] @ along[rank:])
        )

    @property
    def prior(self) -> float:
        """The weight lambda of the nominal arm."""
        return max(_PRIOR_WEIGHT, float((_MIN_PRIOR_RATIO * self.s[0]) ** 2))

    @property
    def decided(self) -> int:
        """The number of directions, the first ones, that the data decide."""
        return int((self.s**2 > self.prior).sum())

    def start_and_step(self, nominal: Array) -> tuple[Array, Array]:
        """x_0 and the matrix of x = x_0 + step d."""
        total = self.s**2 + self.prior
        away = self.s * (self.goal - self.s * (nominal @ self.V)) / total
        return nominal + self.V @ away, self.V * np.sqrt(self.prior / total)

    def fitted(self, x: Array) -> Array:
        """The x nearest to a given one that minimises the cost in the decided directions."""
        V = self.V[:, : self.decided]
        s = self.s[: self.decided]
        goal = self.goal[: self.decided]
        return np.asarray(x + V @ (goal / s - x @ V))

    def rms_ratio(self, x: Array) -> float:
        """RMS of the residuals at x over that of the best fit."""
        floor = float(_MAX_ROUNDING**2 * (self.z @ self.z)) or 1.0
        cost = float(np.sum((self.A @ x - self.z) ** 2))
        return max(float(np.sqrt(max(cost, floor) / max(self.best, floor))), 1.0)


def feasible_parameters(
    robot: RobotModel,
    basis: ParameterBasis,
    R: ArrayLike,
    *,
    bounds: ParameterBounds | None = None,
    nominal: RobotModel | None = None,
) -> FeasibleArm:
    """The arm of real bodies that explains the data best.

    Args:
        robot: kinematics and friction laws
        R: triangular factor of [Y_base tau] / sigma of all rows, as `RegressionFactor.weighted`
            gives it, (p + 1, p + 1); columns of further, free unknowns may stand between those of
            the basis and tau
        bounds: known limits of parameters; by default only that Ia, Fc and Fv are not negative
        nominal: the arm that decides what the data do not, with the kinematics of `robot`, which is
            the default. Links that are no real bodies, such as massless ones, are replaced by
            generic bodies
    """
    R = _checked_factor(robot, basis, R)
    nominal = _same_frames(robot, robot if nominal is None else nominal)
    reduced = _without_extra(R, len(basis))
    coordinates = Coordinates.of(nominal, reduced[:, :-1] @ basis.K, reduced[:, -1])
    K_x = basis.K[:, : len(coordinates.nominal)] @ coordinates.phi_of_x
    fit = _QuadraticCost.of(reduced[:, :-1] @ K_x, reduced[:, -1])
    rows = BoundRows.of(robot, bounds or ParameterBounds(), coordinates)
    if bounds is not None:
        _require_possible(coordinates, rows)
    x = _nearest(fit, coordinates, rows)
    undecided = _undecided(basis, coordinates, fit)
    on_border = coordinates.thickness(x) < 2.0
    slack = rows.slack(x)
    return FeasibleArm(
        robot=_built(robot, coordinates.phi_of_x @ x),
        base=_read_only(K_x @ x),
        extra=_read_only(_extra(R, K_x @ x)),
        rms_ratio=fit.rms_ratio(x),
        undecided=undecided,
        on_border=_read_only(on_border),
        active=tuple(
            name for name, left in zip(rows.names, slack, strict=True) if left < _ACTIVE_SLACK
        ),
        status=_status(robot, fit.rms_ratio(x), undecided, on_border),
    )


# --- checks of the input


def _checked_factor(robot: RobotModel, basis: ParameterBasis, R: ArrayLike) -> Array:
    array = np.array(R, dtype=float)
    p = len(basis)
    if basis.standard_parameters != robot.parameter_table:
        raise InvalidRobot(f"the basis belongs to an arm with other parameters than {robot.name}")
    if array.ndim != 2 or array.shape[0] != array.shape[1] or len(array) <= p:
        raise InvalidRobot(
            f"R must be square with at least {p + 1} columns, got shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise InvalidRobot("R must be finite; noise of zero gives infinite weights")
    return array


def _same_frames(robot: RobotModel, nominal: RobotModel) -> RobotModel:
    pairs = (
        (robot.T_joint_link, nominal.T_joint_link),
        (robot.joint_placements, nominal.joint_placements),
    )
    if nominal.n != robot.n or not all(np.allclose(a, b, atol=1e-6) for a, b in pairs):
        raise InvalidRobot(
            f"the nominal arm {nominal.name} has other link frames than {robot.name}"
        )
    return nominal


def _without_extra(R: Array, p: int) -> Array:
    """The factor of [Y_base tau] after elimination of the free unknowns, (p + 1, p + 1)."""
    if len(R) == p + 1:
        return R
    U, s, _ = np.linalg.svd(unit_columns(R[:, p:-1])[0], full_matrices=False)
    U = U[:, s > _RELATIVE_RANK * s[0]]
    kept = np.delete(R, np.s_[p:-1], axis=1)
    return np.asarray(np.linalg.qr(kept - U @ (U.T @ kept), mode="r"))


# --- the cone program


def _nearest(fit: _QuadraticCost, coordinates: Coordinates, rows: BoundRows) -> Array:
    """The feasible x of least cost, independent of the nominal arm if constraints allow."""
    start, step = fit.start_and_step(coordinates.nominal)
    known = _clarabel().SolverStatus
    found: list[tuple[bool, float, Array]] = []
    for size in _STEP_SCALES:
        solution = _shortest(
            coordinates, rows, start, size * step, impossible=1e-6 * _INFEASIBILITY_TOLERANCE
        )
        if solution.status in (known.Solved, known.AlmostSolved):
            d = size * np.array(solution.x)
            x = np.asarray(start + step @ d)
            found.append((not _feasible(coordinates, rows, x), float(np.linalg.norm(d)), x))
        if solution.status == known.Solved:
            break
    if not found:
        raise SolverFailed(
            f"Clarabel found no feasible parameters, its status is {solution.status}"
        )
    x = min(found, key=lambda one: one[:2])[2]
    fitted = fit.fitted(x)
    if _feasible(coordinates, rows, fitted):
        return fitted
    if _feasible(coordinates, rows, x):
        return x
    correction = _shortest(
        coordinates, rows, x, np.eye(len(x)), impossible=_INFEASIBILITY_TOLERANCE
    )
    x = np.asarray(x + np.array(correction.x))
    if not _feasible(coordinates, rows, x):
        raise SolverFailed(
            f"Clarabel's answer breaks its constraints, its status is {solution.status}"
        )
    return x


def _require_possible(coordinates: Coordinates, rows: BoundRows) -> None:
    """Raises an error for bounds that no real bodies satisfy, with a minimal conflicting set."""
    if not _impossible(coordinates, rows):
        return
    for i in reversed(range(len(rows.names))):
        fewer = rows.without(i)
        if _impossible(coordinates, fewer):
            rows = fewer
    raise InvalidRobot(f"no real bodies satisfy these bounds together: {', '.join(rows.names)}")


def _impossible(coordinates: Coordinates, rows: BoundRows) -> bool:
    start = coordinates.nominal
    solution = _shortest(
        coordinates, rows, start, np.eye(len(start)), impossible=_INFEASIBILITY_TOLERANCE
    )
    known = _clarabel().SolverStatus
    return solution.status in (known.PrimalInfeasible, known.AlmostPrimalInfeasible)


def _shortest(
    coordinates: Coordinates, rows: BoundRows, start: Array, step: Array, *, impossible: float
) -> Any:
    """Clarabel's answer: the shortest d for which x = start + step d is feasible."""
    clarabel = _clarabel()
    f = len(start)
    cone_rows, least = coordinates.cone_rows
    G = np.vstack([rows.C, cone_rows])
    h = np.append(rows.c, least)
    cones = [
        clarabel.ZeroConeT(rows.equal),
        clarabel.NonnegativeConeT(len(rows.c) - rows.equal),
        *(clarabel.PSDTriangleConeT(4) for _ in range(coordinates.n)),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _SOLVER_TOLERANCE
    settings.tol_infeas_abs = settings.tol_infeas_rel = impossible
    P = sparse.csc_matrix(np.eye(f))
    A = sparse.csc_matrix(-G @ step)
    return clarabel.DefaultSolver(P, np.zeros(f), A, G @ start - h, cones, settings).solve()


def _clarabel() -> Any:
    try:
        import clarabel
    except ImportError as error:
        raise MissingExtra.of("clarabel", "identification") from error
    return clarabel


def _feasible(coordinates: Coordinates, rows: BoundRows, x: Array) -> bool:
    thick = coordinates.thickness(x) > 0.5
    kept = rows.slack(x) > -_BOUND_TOLERANCE * (1 + np.abs(rows.c))
    return bool(thick.all() and kept.all())


# --- the answer


def _built(robot: RobotModel, phi: Array) -> RobotModel:
    n = robot.n
    links = [
        InertialParameters.from_vector(phi[10 * i : 10 * i + 10], name)
        for i, name in enumerate(robot.link_names)
    ]
    drive = robot.drive
    if len(phi) > 10 * n:
        Ia, Fc, Fv, B = phi[10 * n :].reshape(-1, n)
        drive = replace(drive, rotor_inertia=Ia, coulomb=Fc, viscous=Fv, offset=B)
    source = f"feasible parameters fitted to data; kinematics: {robot.source}"
    return replace(robot.with_links(links).with_drive(drive), source=source)


def _extra(R: Array, base: Array) -> Array:
    """The free unknowns that go with the base parameters, (p_extra,)."""
    p = len(base)
    unit, length = unit_columns(R[:, p:-1])
    return np.asarray(
        np.linalg.lstsq(unit, R[:, -1] - R[:, :p] @ base, rcond=_RELATIVE_RANK)[0] / length
    )


def _undecided(
    basis: ParameterBasis, coordinates: Coordinates, fit: _QuadraticCost
) -> UndecidedDirections:
    """Directions that the data do not decide, and the parameters that they involve."""
    moved = coordinates.phi_of_x @ fit.V
    size = np.linalg.norm(moved, axis=1)
    hidden = np.linalg.norm(moved[:, fit.rank :], axis=1) > 1e-5 * size
    weak = np.linalg.norm(moved[:, fit.decided :], axis=1) > 0.5 * size
    names = zip(basis.standard_parameters.names, hidden | weak, strict=False)
    structure = len(size) - len(basis)
    return UndecidedDirections(
        structure, len(basis) - fit.decided, tuple(name for name, free in names if free)
    )


def _status(
    robot: RobotModel, ratio: float, undecided: UndecidedDirections, on_border: NDArray[np.bool_]
) -> str:
    thin = ", ".join(np.array(robot.link_names)[on_border])
    if thin:
        border = f"at the limit of physical feasibility: {thin}"
    else:
        border = "no link is at the limit of physical feasibility"
    if undecided.motion:
        motion = f" and {undecided.motion} that this motion hardly shows"
    else:
        motion = ""
    return (
        f"real bodies fit with {100 * (ratio - 1):.2g} % more RMS; {border}; the nominal arm"
        f" decided {undecided.structure} unobservable directions{motion}"
    )


def _read_only(array: AnyArray) -> AnyArray:
    array.setflags(write=False)
    return array
