"""The search space of feasible parameters: dimensionless unknowns, a nominal arm, and bounds.

The reference of each link is a body M = L L' of its own: the nominal link, thickened where it is
thin. Its unknowns are the ten entries of X = L^-1 J L^-T, J being its pseudo-inertia: distances
between them change neither with the units of mass and length nor with the link's frame. A body is
real, with a margin for rounding, if X >= (1e-5 + 1e-6 tr X) 1. The scale of a drive parameter is
its nominal value, or the value that would explain a tenth of all torque if that is larger.

A nominal link that is no real body (a massless one, for example) is replaced by a sphere halfway
between two joints. All such spheres have the same mass: the one that, together with the drives,
explains the torques best.

A bound on a centre of mass is linear too: low <= mx / m means mx - low m >= 0 (gaz2017 eq. (36)).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidRobot, UnknownName
from steelyard.inertia import InertialParameters
from steelyard.robot import RobotModel
from steelyard.robot._parameters import DRIVE_KINDS, Parameter

_NONNEGATIVE_KINDS = DRIVE_KINDS[:3]  # rotor inertia, Coulomb and viscous friction
_RELATIVE_RANK = 1e-10  # smaller singular values, over the largest, count as zero
_MIN_THICKNESS = 1e-5  # smallest eigenvalue of X
_MIN_RELATIVE_THICKNESS = 1e-6  # the same, over tr X
_COM_NAME = re.compile(r"c(?P<axis>[xyz])(?P<link>[0-9]+)")  # such as cx1
_PAIRS = [(i, j) for j in range(4) for i in range(j + 1)]  # upper triangle, column by column


@dataclass(frozen=True)
class ParameterBounds:
    """Known limits of the parameters, gaz2017 eq. (36).

    Attributes:
        limits: lowest and highest value by name; infinite for no limit, equal for a known
            value. Names are those of `RobotModel.parameter_names` (m1, mx1, Izz2 about the link
            frame's origin, Fc3), 'cx1', 'cy1', 'cz1' for centres of mass in the link frame [m],
            'total_mass' for all links together [kg]. Ia, Fc and Fv are at least zero unless bounded
            here.
    """

    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        limits = {name: (float(low), float(high)) for name, (low, high) in self.limits.items()}
        for name, (low, high) in limits.items():
            if not low <= high or low == np.inf or high == -np.inf:
                raise InvalidRobot(f"bound on {name}: no value lies between {low:g} and {high:g}")
        object.__setattr__(self, "limits", MappingProxyType(limits))


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The unknowns x: the ten entries of each X_i, then the drives if the basis has them.

    Attributes:
        phi_of_x: phi = phi_of_x x, (f, f)
        nominal: x of the nominal arm, (f,)
        n: number of links
    """

    phi_of_x: Array
    nominal: Array
    n: int

    @classmethod
    def of(cls, nominal: RobotModel, information: Array, z: Array) -> Coordinates:
        """The unknowns of an arm.

        Args:
            nominal: the arm that gives their scales
            information: |information phi - z|^2 is the cost of standard parameters, (p, k)
            z: (p,)
        """
        n = nominal.n
        generic = _generic_links(nominal)
        links = _physical_links(nominal, generic, information, z)
        drive = nominal.drive.parameters()
        nonnegative = slice(0, len(_NONNEGATIVE_KINDS) * n)
        drive[nonnegative] = np.maximum(drive[nonnegative], 0.0)
        scale = _drive_scales(drive, information[:, 10 * n :], z)
        phi_of_x = np.diag(np.append(np.zeros(10 * n), scale))
        x = np.append(np.zeros(10 * n), drive / scale)
        for i, (body, other) in enumerate(zip(links, generic, strict=True)):
            block = slice(10 * i, 10 * i + 10)
            phi_of_x[block, block] = _vector_of_entries(_reference_body(body, other))
            x[block] = np.linalg.solve(phi_of_x[block, block], body.vector)
        if information[:, 10 * n :].any():
            f = len(x)
        else:
            f = 10 * n
        return cls(phi_of_x[:f, :f], x[:f], n)

    @property
    def cone_rows(self) -> tuple[Array, Array]:
        """G, (10 n, f), and h, (10 n,): G x - h holds X_i - (1e-6 tr(X_i) + 1e-5) 1."""
        unit = np.array([float(i == j) for i, j in _PAIRS])
        G = np.zeros((10 * self.n, len(self.nominal)))
        G[:, : 10 * self.n] = np.kron(
            np.eye(self.n), np.eye(10) - _MIN_RELATIVE_THICKNESS * np.outer(unit, unit)
        )
        return G, np.tile(_MIN_THICKNESS * unit, self.n)

    def thickness(self, x: Array) -> Array:
        """The smallest eigenvalue of X_i - 1e-6 tr(X_i) 1 over 1e-5, (n,); must be 1 or more.

        Args:
            x: (f,)
        """
        values = np.linalg.eigvalsh(_matrices(x[: 10 * self.n].reshape(-1, 10)))
        return np.asarray(
            (values[:, 0] - _MIN_RELATIVE_THICKNESS * values.sum(axis=1)) / _MIN_THICKNESS
        )


@dataclass(frozen=True, eq=False)
class BoundRows:
    """Linear constraints C x >= c, the first `equal` of them C x = c, each row of unit length.

    Attributes:
        C: (r, f)
        c: (r,)
        names: each bound in words, as 'm1 <= 5'
        equal: how many are equations
    """

    C: Array
    c: Array
    names: tuple[str, ...]
    equal: int

    @classmethod
    def of(cls, robot: RobotModel, bounds: ParameterBounds, coordinates: Coordinates) -> BoundRows:
        """The rows of all bounds on an arm."""
        limits = {
            str(Parameter(kind, j)): (0.0, np.inf)
            for kind in _NONNEGATIVE_KINDS
            for j in range(robot.n)
        }
        rows = [
            row
            for name, limit in (limits | dict(bounds.limits)).items()
            for row in _rows(robot, name, *limit)
        ]
        rows.sort(key=lambda row: " = " not in row[0])
        f = len(coordinates.nominal)
        C = (
            np.array([row for _, row, _ in rows]).reshape(-1, 14 * robot.n)[:, :f]
            @ coordinates.phi_of_x
        )
        length = np.linalg.norm(C, axis=1)
        known = length > 0  # zero for drive parameters that are not in the basis
        names = tuple(name for (name, _, _), is_known in zip(rows, known, strict=True) if is_known)
        c = np.array([constant for _, _, constant in rows])[known] / length[known]
        return cls(C[known] / length[known, None], c, names, sum(" = " in name for name in names))

    def without(self, i: int) -> BoundRows:
        """All rows but one."""
        names = (*self.names[:i], *self.names[i + 1 :])
        return BoundRows(
            np.delete(self.C, i, axis=0), np.delete(self.c, i), names, self.equal - (i < self.equal)
        )

    def slack(self, x: Array) -> Array:
        """How far each row is from its bound; negative where broken, (r,).

        Args:
            x: (f,)
        """
        slack = self.C @ x - self.c
        slack[: self.equal] = -np.abs(slack[: self.equal])
        return np.asarray(slack)


def unit_columns(A: Array) -> tuple[Array, Array]:
    """A matrix with its columns scaled to unit length, and their lengths (1 for columns of zeros).

    Args:
        A: (N, k)
    """
    length = np.linalg.norm(A, axis=0)
    length = np.where(length > 0, length, 1.0)
    return A / length, length


def _generic_links(robot: RobotModel) -> list[InertialParameters]:
    """Spheres of 1 kg halfway between the joints, spread over a quarter of the distance."""
    ends = np.array([*robot.joint_placements[1:, :3, 3], robot.T_joint_flange[:3, 3]])
    distance = np.linalg.norm(ends, axis=1)
    mean = distance.mean() or 0.2
    bodies = []
    for name, end, far, T in zip(robot.link_names, ends, distance, robot.T_joint_link, strict=True):
        spread = (max(far, mean) / 4) ** 2
        sphere = InertialParameters.from_com(1.0, end / 2, 2 * spread * np.eye(3), "joint")
        bodies.append(sphere.in_frame(name, np.linalg.inv(T)))
    return bodies


def _physical_links(
    nominal: RobotModel, generic: list[InertialParameters], information: Array, z: Array
) -> list[InertialParameters]:
    """The nominal links; those that are no real bodies become generic ones."""
    links = nominal.links
    known = np.array([body.is_physical for body in links])
    if known.all():
        return list(links)
    n = nominal.n
    given = np.concatenate([body.vector * real for body, real in zip(links, known, strict=True)])
    spheres = np.concatenate(
        [body.vector * (not real) for body, real in zip(generic, known, strict=True)]
    )
    shares, length = unit_columns(
        np.column_stack([information[:, : 10 * n] @ spheres, information[:, 10 * n :]])
    )
    rest = z - information[:, : 10 * n] @ given
    mass = float(np.linalg.lstsq(shares, rest, rcond=_RELATIVE_RANK)[0][0] / length[0])
    if mass <= 0:
        mass = float(np.linalg.norm(rest) / length[0]) or 1.0
    return [
        body if real else InertialParameters.from_vector(mass * sphere.vector, sphere.frame)
        for body, sphere, real in zip(links, generic, known, strict=True)
    ]


def _reference_body(body: InertialParameters, generic: InertialParameters) -> Array:
    """The pseudo-inertia M of a link: the body's, thickened by its mean spread, (4, 4)."""
    own = np.trace(body.inertia_com) / 6
    other = body.mass * np.trace(generic.inertia_com) / 6
    return np.asarray(body.pseudo_inertia + max(own, 0.01 * other) * np.diag([1.0, 1.0, 1.0, 0.0]))


def _drive_scales(drive: Array, columns: Array, z: Array) -> Array:
    """Units of the drives: their nominal values, or what would explain a tenth of all torque."""
    length = np.linalg.norm(columns, axis=0)
    tenth = np.divide(0.1 * np.linalg.norm(z), length, out=np.zeros_like(length), where=length > 0)
    scale = np.maximum(np.abs(drive), tenth)
    return np.where(scale > 0, scale, 1.0)


def _vector_of_entries(M: Array) -> Array:
    """The map from X to the ten numbers of the body J = L X L', with M = L L', (10, 10)."""
    L = np.linalg.cholesky(M)
    J = L @ _matrices(np.eye(10)) @ L.T
    return np.column_stack([InertialParameters.from_pseudo_inertia(one).vector for one in J])


def _matrices(entries: Array) -> Array:
    """Symmetric matrices, (N, 4, 4), from upper triangles with off-diagonals times sqrt(2)."""
    X = np.zeros((len(entries), 4, 4))
    for column, (i, j) in zip(entries.T, _PAIRS, strict=True):
        if i == j:
            X[:, i, j] = X[:, j, i] = column
        else:
            X[:, i, j] = X[:, j, i] = column / np.sqrt(2)
    return X


def _rows(robot: RobotModel, name: str, low: float, high: float) -> list[tuple[str, Array, float]]:
    """A bound as rows (words, row, constant): row phi >= constant, or = if low equals high."""
    above = _row(robot, name, low)
    below = _row(robot, name, high)
    if low == high:
        return [(f"{name} = {low:g}", *above)]
    rows = []
    if low > -np.inf:
        rows.append((f"{name} >= {low:g}", *above))
    if high < np.inf:
        rows.append((f"{name} <= {high:g}", -below[0], -below[1]))
    return rows


def _row(robot: RobotModel, name: str, limit: float) -> tuple[Array, float]:
    """The row and the constant of 'quantity >= limit'."""
    at = dict(zip(robot.parameter_names, np.eye(14 * robot.n), strict=True))
    if name in at:
        return at[name], limit
    if name == "total_mass":
        return np.sum([at[f"m{j + 1}"] for j in range(robot.n)], axis=0), limit
    com = _COM_NAME.fullmatch(name)
    if com is not None and f"m{com['link']}" in at:
        mass = at[f"m{com['link']}"]
        moment = at[f"m{com['axis']}{com['link']}"]
        if not np.isfinite(limit):
            return moment, 0.0
        return moment - limit * mass, 0.0
    raise UnknownName(
        f"{robot.name} has no parameter '{name}' to bound: its parameters are"
        f" {', '.join(robot.parameter_names[:10])}, ..., {robot.parameter_names[-1]}, the centres"
        " of mass cx1, cy1, cz1, ... and total_mass"
    )
