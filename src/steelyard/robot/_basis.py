"""Base parameters: the combinations of the parameters phi that torques distinguish.

The columns of the regressor Y are linearly dependent for every motion. With the independent columns
B and the dependent ones D, Y_D = Y_B beta, the torque depends on phi only through

    tau = Y phi = Y_B pi,      pi = phi_B + beta phi_D = K phi

Columns are tried one after the other, in an order that prefers those which Gautier and Khalil
(1990) keep: Ixx, Ixy, Ixz, Iyz, Izz, mx, my of each link, then the drives, then Iyy, mz, m. A
column is independent when its distance from the span of those kept so far exceeds a share of its
own length (both scaled to unit length, so that units do not matter; a column that is as short as
that beside the longest of its unit is zero). URDF angles are rounded to 1e-6 or so; the share must
lie above that and below the true smallest distance: `weakest_kept` and `strongest_dropped` show the
gap.

For an arm in modified DH frames this gives the base parameters that the papers print, in their
order. The columns of the last link in K say how a payload shows in them (`payload_jacobian`;
gaz2017 eq. (27), xu2024 appendix).

Rank decisions, like least squares, need of the rows A only their triangular factor R, R'R = A'A,
and the factor of more rows is the factor of [R; new rows] (`triangle_with`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from steelyard._arrays import Array, Indices, freeze
from steelyard.errors import InvalidRobot
from steelyard.inertia import PARAMETER_NAMES, frame_change_matrix
from steelyard.robot._model import RobotModel
from steelyard.robot._parameters import DRIVE_KINDS, Parameter, ParameterTable

_PREFERRED_SYMBOLS = ("Ixx", "Ixy", "Ixz", "Iyz", "Izz", "mx", "my")
_REGROUPED_SYMBOLS = ("Iyy", "mz", "m")
_MAX_ROUNDING = 1e-10  # coefficients below are zero
_BASES: WeakKeyDictionary[RobotModel, dict[tuple[bool, float, int], ParameterBasis]]
_BASES = WeakKeyDictionary()  # bases that were computed, by robot and by arguments of `of`
_MIN_NAMED_COEFFICIENT = 1e-5  # smaller ones come from rounded URDF files
_ROWS_PER_STEP = 1024  # more do not fit into the cache
_LAPACK_BLOCK = 8  # columns; fastest of 8, 16, 32 for 30 to 90 columns


@dataclass(frozen=True, eq=False)
class ParameterBasis:
    """Independent columns of a regressor and the regrouping matrix K.

    Attributes:
        independent: indices of the kept columns in the order of pi, (p,)
        K: pi = K phi, (p, k)
        standard_parameters: the k parameters phi of links and drives
        weakest_kept: smallest relative distance of a kept column from the others
        strongest_dropped: largest relative distance of a dropped column from the kept ones
    """

    independent: Indices
    K: Array
    standard_parameters: ParameterTable
    weakest_kept: float
    strongest_dropped: float
    _payload_columns: Array = field(repr=False)

    def __post_init__(self) -> None:
        freeze(self, "K", "_payload_columns")
        self.independent.setflags(write=False)

    @classmethod
    def of(
        cls, robot: RobotModel, *, drive: bool = True, tolerance: float = 1e-4, seed: int = 0
    ) -> ParameterBasis:
        """The base parameters of a robot, from its structure alone.

        Args:
            drive: with rotor inertia, friction and offset, or the links only
            tolerance: relative distance below which a column counts as dependent
            seed: of the random postures that probe the structure
        """
        known = _BASES.setdefault(robot, {})
        key = (drive, tolerance, seed)
        if key not in known:
            rng = np.random.default_rng(seed)
            count = 40 + 4 * robot.n
            q = rng.uniform(-np.pi, np.pi, (count, robot.n))
            v, a = rng.uniform(-2.0, 2.0, (2, count, robot.n))
            Y = robot.regressor(q, v, a)
            known[key] = cls.of_regressor(robot, Y, drive=drive, tolerance=tolerance)
        return known[key]

    @classmethod
    def of_regressor(
        cls, robot: RobotModel, Y: ArrayLike, *, drive: bool = True, tolerance: float = 1e-4
    ) -> ParameterBasis:
        """The parameters that a given motion distinguishes.

        Args:
            Y: regressor of the robot along the motion, (N, n, k)
            drive: with rotor inertia, friction and offset, or the links only
            tolerance: relative distance below which a column counts as dependent
        """
        if not 0 < tolerance < 1:
            raise InvalidRobot(f"tolerance must lie between 0 and 1, got {tolerance}")
        order = cls.column_order(robot.n, drive=drive)
        k = 14 * robot.n
        if np.shape(Y)[-1:] != (k,) or not np.isfinite(Y).all():
            raise InvalidRobot(f"Y must be finite with {k} columns, got shape {np.shape(Y)}")
        columns = np.asarray(Y, dtype=float).reshape(-1, k)[:, order]
        R = triangle_with(np.zeros((len(order), len(order))), columns)
        length = np.linalg.norm(R, axis=0)
        length[length < tolerance * _longest_alike(length, order, robot.n)] = 0.0
        R = np.where(length > 0, R / np.where(length > 0, length, 1.0), 0.0)
        kept, distance = cls.independent_columns(R, tolerance)
        beta = np.linalg.lstsq(R[:, kept], R, rcond=None)[0]
        beta[np.abs(beta) < _MAX_ROUNDING] = 0.0
        K = np.zeros((len(kept), k))
        K[:, order] = beta * length / length[kept][:, None]
        K[:, order[kept]] = np.eye(len(kept))
        dropped = np.delete(distance, kept)
        T_link_flange = np.linalg.inv(robot.T_joint_link[-1]) @ robot.T_joint_flange
        payload = K[:, 10 * (robot.n - 1) : 10 * robot.n] @ frame_change_matrix(T_link_flange)
        return cls(
            independent=order[kept],
            K=K,
            standard_parameters=robot.parameter_table,
            weakest_kept=float(distance[kept].min(initial=1.0)),
            strongest_dropped=float(dropped.max(initial=0.0)),
            _payload_columns=np.where(np.abs(payload) < _MAX_ROUNDING, 0.0, payload),
        )

    @staticmethod
    def column_order(n: int, *, drive: bool) -> Indices:
        """Indices of the regressor's columns, preferred ones first, with or without the drives."""
        at = {name: i for i, name in enumerate(PARAMETER_NAMES)}
        first = [10 * j + at[name] for j in range(n) for name in _PREFERRED_SYMBOLS]
        if drive:
            drives = list(range(10 * n, (10 + len(DRIVE_KINDS)) * n))
        else:
            drives = []
        last = [10 * j + at[name] for j in range(n) for name in _REGROUPED_SYMBOLS]
        return np.array([*first, *drives, *last], dtype=np.intp)

    @staticmethod
    def independent_columns(R: Array, tolerance: float) -> tuple[Indices, Array]:
        """Columns of R that are independent of those before them, and all relative distances.

        Args:
            R: triangular factor of columns of unit length, (k, k)
            tolerance: distance below which a column counts as dependent
        """
        Q = np.zeros((len(R), 0))
        kept: list[int] = []
        distance = np.zeros(R.shape[1])
        for j, column in enumerate(R.T):
            rest = column - Q @ (Q.T @ column)
            rest -= Q @ (Q.T @ rest)
            distance[j] = np.linalg.norm(rest)
            if distance[j] > tolerance:
                Q = np.column_stack([Q, rest / distance[j]])
                kept.append(j)
        return np.array(kept, dtype=np.intp), distance

    def __len__(self) -> int:
        return len(self.independent)

    @property
    def payload_jacobian(self) -> Array:
        """How the base parameters change with a payload in the flange frame, (p, 10)."""
        return self._payload_columns

    @property
    def names(self) -> tuple[str, ...]:
        """What each base parameter is made of, as 'Ixx2 - Iyy2 - 0.3745 m3 - ...'."""
        names = self.standard_parameters.names
        return tuple(_sum_in_words(row, i, names) for row, i in self._rows())

    @cached_property
    def parameters(self) -> ParameterTable:
        """The kept parameter of each base parameter, regrouped where others belong to it."""
        table = []
        for row, i in self._rows():
            kept = self.standard_parameters[i]
            table.append(Parameter(kept.kind, kept.joint, regrouped=len(_named(row)) > 1))
        return ParameterTable(tuple(table))

    def reduce(self, Y: ArrayLike) -> Array:
        """The base regressor Y_B, (N, n, p), of the regressor Y, (N, n, k): tau = Y_B pi."""
        return np.take(np.asarray(Y, dtype=float), self.independent, axis=-1)

    def _rows(self) -> list[tuple[Array, int]]:
        return list(zip(self.K, self.independent.tolist(), strict=True))


def triangle_with(R: Array, rows: Array) -> Array:
    """The triangular factor of [R; rows], (k, k), by LAPACK's `dtpqrt`; zero columns stay zero.

    Args:
        R: triangular factor of the rows so far, zeros for none, (k, k)
        rows: new rows, (N, k)
    """
    columns = np.flatnonzero(R.any(axis=0) | rows.any(axis=0))
    if not columns.size or not len(rows):
        return R
    triangle = R[np.ix_(columns, columns)]
    for start in range(0, len(rows), _ROWS_PER_STEP):
        piece = rows[start : start + _ROWS_PER_STEP, columns]
        triangle, _, _, info = lapack.dtpqrt(
            0, min(_LAPACK_BLOCK, columns.size), triangle, piece, overwrite_b=1
        )
        if info:
            raise np.linalg.LinAlgError(f"LAPACK dtpqrt says {info}")
    out = np.zeros_like(R)
    out[np.ix_(columns, columns)] = np.triu(triangle)
    return out


def _longest_alike(length: Array, order: Indices, n: int) -> Array:
    """For each column the longest one of the same unit (m; mx..mz; Ixx..Izz; each drive term)."""
    kind = np.where(order < 10 * n, np.minimum((order % 10 + 2) // 3, 2), 3 + (order - 10 * n) // n)
    return np.array([length[kind == k].max() for k in kind])


def _sum_in_words(row: Array, kept: int, names: tuple[str, ...]) -> str:
    terms = [names[kept]]
    for i in _named(row):
        if i != kept:
            size = abs(row[i])
            if abs(size - 1) < _MIN_NAMED_COEFFICIENT:
                factor = ""
            else:
                factor = f"{size:.5g} "
            terms.append(f"{'-' if row[i] < 0 else '+'} {factor}{names[i]}")
    return " ".join(terms)


def _named(row: Array) -> Indices:
    """The coefficients that the name of a base parameter shows."""
    return np.flatnonzero(np.abs(row) >= _MIN_NAMED_COEFFICIENT)
