"""Base parameters in symbols, for any DH table, as Gautier and Khalil (1990) group them.

Torques know phi only through the entries of the mass matrix M(q) and the gravity torques G(q). With
the twist S_j of joint j, the twists S_i of the joints before it and gravity g, all seen from joint
frame j, and the composite body C_j of the links j..n,

    M_ij = S_i' I(C_j) S_j   (i <= j),        G_j = -g' I(C_j) S_j

are linear in the ten numbers of C_j, which are the links' own numbers brought into frame j,

    C_j = phi_j + A(q_j+1) phi_j+1 + A(q_j+1) A(q_j+2) phi_j+2 + ...

Each A, and each change of frame of a twist, is a sum over a few independent functions of its own
joint's position, A = A0 + sum_k f_k(q) A_k (with f = cos, sin, sin^2, cos sin; or q, q^2 for a
sliding joint), and functions of different joints multiply without mixing. So phi shows exactly
through the coefficients of these products. The coefficients in which j is the first link are the
functionals

    F_j = { u' I S_j : u a coefficient of -g or a twist S_i, i <= j, in frame j } + { L A_k : L in
    E_j-1 }

and each of them goes on to the outer links as [L, L A0, L A0 A0, ...], so that those that reach
link j are E_j = F_j + { L A0 : L in E_j-1 }. Rotor inertia joins the constant coefficient of M_ij
as (U' diag(Ia) U)_ij, the offset that of G_j as (U' B)_j; coupled motors move by u = U q (`drive`).
These rows span the base space. Their reduced echelon form, with the columns in the order of
`ParameterBasis`, is unique: the K of pi = K phi.

Table entries are symbols and quarter turns exact, so coefficients are rational functions over the
rationals; the table's numbers only decide which are zero. Theta of a turning and d of a sliding
joint shift q: left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from steelyard._arrays import Array, Mask
from steelyard.errors import InvalidRobot, MissingExtra
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.robot._basis import ParameterBasis
from steelyard.robot._dh import DHTable
from steelyard.robot._model import RobotModel
from steelyard.robot._parameters import DRIVE_KINDS, LINK_KINDS, Parameter, ParameterKind

try:
    import sympy as sp
    from sympy.polys import fields, rings
except ImportError as error:
    raise MissingExtra.of("sympy", "robot") from error


_Exact = NDArray[np.object_]  # rationals and polynomials
_Row = dict[int, Any]  # column -> rational function or SymPy expression, zeros left out

_ANGLES = ("alpha", "theta")
_MAX_ANGLE_ROUNDING = 1e-5  # [rad]
_NEGLIGIBLE = 1e-9
_LINK_PARAMETERS = len(LINK_KINDS)
_INERTIA_KINDS = LINK_KINDS[4:]
_rationals = np.vectorize(
    lambda x: sp.QQ.from_sympy(sp.Rational(x).limit_denominator(10**6)), [object]
)


@dataclass(frozen=True, eq=False)
class SymbolicBasis:
    """Base parameters as expressions in the symbols of links, drives and table.

    Attributes:
        expressions: pi_1 .. pi_p, SymPy expressions in `symbols` and the keys of `geometry`
        symbols: the k parameters phi, named as `RobotModel.parameter_names`, links in the table's
            frames
        geometry: the value of each table entry (a3, d4, alpha2) and gravity component (gz, in the
            base frame) that occurs, by symbol [m, rad, m/s^2]
        independent: index of the parameter that each base parameter is named after, (p,)
    """

    expressions: tuple[sp.Expr, ...]
    symbols: tuple[sp.Symbol, ...]
    geometry: Mapping[sp.Symbol, float]
    independent: tuple[int, ...]
    _rows: tuple[_Row, ...] = field(repr=False)

    @classmethod
    def of(cls, robot: RobotModel, *, drive: bool = True, on_axes: bool = False) -> SymbolicBasis:
        """The base parameters as expressions, by default those of `ParameterBasis.of(robot)`.

        All expressions are in the links' numbers in the frames of the table. In a classic table
        such a frame sits at the far end of the link, while grouping is simplest in a frame on the
        joint's axis: `on_axes` takes the reduced form there, then puts in the numbers of the
        table's frames and makes first terms positive, as gaz2017 eq. (29), (38) do. It spans the
        same space; a modified table has one form only.
        """
        if robot.dh is None:
            raise InvalidRobot(
                f"{robot.name} has no DH table to take symbols from; its base parameters are known"
                " as numbers only"
            )
        on_axes = on_axes and robot.dh.convention == "classic"
        chain = _ExactChain.of(robot.dh, robot.gravity_base)
        if drive:
            U = _rationals(robot.drive.transmission.matrix)
        else:
            U = np.zeros((0, robot.n), object)
        rows = _base_rows(chain, U)
        if not on_axes:
            rows = _in_table_frames(rows, chain)
        order = ParameterBasis.column_order(robot.n, drive=drive)
        reduced, kept = chain.letters.echelon(rows, order.tolist())
        if on_axes:
            reduced = _in_table_frames(reduced, chain)
        symbols = tuple(sp.Symbol(name) for name in robot.parameter_names)
        written = [chain.letters.written(row) for row in reduced]
        if on_axes:
            rows = [_positive(row, symbols) for row in written]
        else:
            rows = written
        groups = [_groups(row, symbols, i) for row, i in zip(rows, kept, strict=True)]
        used = {symbol for row in rows for x in row.values() for symbol in x.free_symbols}
        return cls(
            expressions=tuple(
                sp.Add(*(factor * sp.Add(*same) for factor, same in row)) for row in groups
            ),
            symbols=symbols,
            geometry=MappingProxyType(
                {x: value for x, value in chain.letters.numbers.items() if x in used}
            ),
            independent=tuple(kept),
            _rows=tuple(rows),
        )

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def names(self) -> tuple[str, ...]:
        """What each base parameter is made of, as 'Ixx2 - Iyy2 - a3^2 (m3 + m4)'."""
        pairs = zip(self._rows, self.independent, strict=True)
        return tuple(_in_words(_groups(row, self.symbols, kept)) for row, kept in pairs)

    def lines(self) -> tuple[str, ...]:
        """The base parameters one by one, as 'pi_7 = mx2 + a3 (m3 + m4 + m5 + m6)'."""
        return tuple(f"pi_{i} = {name}" for i, name in enumerate(self.names, start=1))

    def matrix(self) -> sp.Matrix:
        """The matrix K of pi = K phi in symbols, (p, k)."""
        return sp.Matrix(len(self), len(self.symbols), lambda i, j: self._rows[i].get(j, 0))

    def numeric_matrix(self) -> Array:
        """The matrix K of pi = K phi with the table's numbers put in, (p, k)."""
        K = np.zeros((len(self), len(self.symbols)))
        for i, row in enumerate(self._rows):
            K[i, [*row]] = sp.lambdify([*self.geometry], [*row.values()], "math")(
                *self.geometry.values()
            )
        return K


@dataclass(frozen=True, eq=False)
class _Letters:
    """Rational functions of the table's symbols, and sample values that tell which are zero."""

    entries: dict[str, sp.Expr]  # of table and gravity: symbols, zero or multiples of 90 degrees
    numbers: dict[sp.Symbol, float]
    polynomials: dict[sp.Expr, Any]  # a3, d4, sin(alpha2), cos(alpha2) as generators
    point: list[float]  # their values
    field: Any
    circles: list[Any]  # sin^2 + cos^2 - 1 of each angle

    @classmethod
    def of(cls, numbers: Mapping[str, float]) -> _Letters:
        entries = {name: _exact(name, x) for name, x in numbers.items()}
        known = {entry: numbers[name] for name, entry in entries.items() if entry.is_Symbol}
        angles = [symbol for symbol in known if symbol.name.startswith(_ANGLES)]
        letters = [f(x) for f in (sp.sin, sp.cos) for x in angles] + [
            x for x in known if x not in angles
        ]
        functions = fields.FracField(letters, sp.QQ, "lex")
        polynomials = dict(zip(letters, functions.ring.gens, strict=True))
        circles = [polynomials[sp.sin(x)] ** 2 + polynomials[sp.cos(x)] ** 2 - 1 for x in angles]
        return cls(
            entries, known, polynomials, [float(x.subs(known)) for x in letters], functions, circles
        )

    def exact(self, *entries: sp.Expr) -> list[Any]:
        """Letters as polynomials, numbers as they are."""
        return [self.polynomials[x] if x in self.polynomials else int(x) for x in entries]

    def screw(self, angle: str, length: str) -> list[Any]:
        """Cosine and sine of an angle, and a length."""
        return self.exact(*(f(self.entries[angle]) for f in (sp.cos, sp.sin)), self.entries[length])

    def row(self, entries: Mapping[int, Any]) -> _Row:
        """The entries as rational functions, with sin^2 written as 1 - cos^2, zeros left out."""
        made = {j: self.field.one * x for j, x in entries.items() if x}
        if self.circles:
            parts = {
                j: (x.numer.rem(self.circles), x.denom.rem(self.circles)) for j, x in made.items()
            }
            made = {j: self.field.new(*part) for j, part in parts.items()}
        return {j: x for j, x in made.items() if x}

    def product(self, row: _Row, matrix: _Exact, *, at: int = 0, to: int = 0) -> _Row:
        """A part of the row, from column `at` on, times a matrix, as columns from `to` on."""
        present = [i for i in range(len(matrix)) if at + i in row]
        columns = (
            sum(row[at + i] * column[i] for i in present if column[i]) for column in matrix.T
        )
        return self.row({to + j: x for j, x in enumerate(columns)})

    def is_zero(self, x: Any) -> bool:
        """Whether the terms of x cancel for the numbers of the table."""
        terms = [
            float(c) * math.prod(map(pow, self.point, powers)) for powers, c in x.numer.terms()
        ]
        return abs(sum(terms)) <= _NEGLIGIBLE * sum(map(abs, terms))

    def echelon(self, rows: Iterable[_Row], order: Iterable[int]) -> tuple[list[_Row], list[int]]:
        """The reduced echelon form of the rows, and the column that each of them is named after."""
        rest = list(rows)
        done = list[_Row]()
        kept = list[int]()
        for column in order:
            candidates = [row for row in rest if column in row and not self.is_zero(row[column])]
            if candidates:
                chosen = min(
                    candidates, key=lambda row: (sum(row[column].numer.degrees()), len(row))
                )
                pivot = self.row({j: x / chosen[column] for j, x in chosen.items()})
                rest = [self._cleared(row, pivot, column) for row in rest if row is not chosen]
                done = [*(self._cleared(row, pivot, column) for row in done), pivot]
                kept.append(column)
        return done, kept

    def _cleared(self, row: _Row, pivot: _Row, column: int) -> _Row:
        """The row less the multiple of the pivot row that clears the column."""
        if column not in row:
            return row
        changed = {j: row.get(j, self.field.zero) - row[column] * x for j, x in pivot.items()}
        return {j: x for j, x in row.items() if j not in pivot} | self.row(changed)

    def written(self, row: _Row) -> _Row:
        """The row in SymPy expressions, in the order of the columns."""
        cosines = [x for x in self.polynomials if isinstance(x, sp.cos)]
        sines = {s * (1 - c**2): s * sp.sin(*c.args) ** 2 for c in cosines for s in (1, -1)}
        return {j: sp.factor_terms(x.as_expr()).xreplace(sines) for j, x in sorted(row.items())}


@dataclass(frozen=True, eq=False)
class _ExactChain:
    """An arm as exact transforms: fixed parts of the joint frames, and the table's frames."""

    letters: _Letters
    T_before_joint: list[_Exact]
    T_joint_link: list[_Exact]
    sliding: Mask

    @classmethod
    def of(cls, dh: DHTable, gravity_base: Array) -> _ExactChain:
        sliding = np.array([kind == "prismatic" for kind in dh.joint_types])
        letters = _Letters.of(_numbers(dh, sliding, gravity_base))
        across = [_screw_x(*letters.screw(f"alpha{i}", f"a{i}")) for i in range(1, len(dh) + 1)]
        along = [_screw_z(*letters.screw(f"theta{i}", f"d{i}")) for i in range(1, len(dh) + 1)]
        here = [_screw_x(1, 0, 0)] * len(dh)
        modified = dh.convention == "modified"
        if modified:
            before = across
        else:
            before = [*here[:1], *across[:-1]]
        T_before_joint = [T @ shift for T, shift in zip(before, along, strict=True)]
        return cls(letters, T_before_joint, here if modified else across, sliding)


def _numbers(dh: DHTable, sliding: Mask, gravity_base: Array) -> dict[str, float]:
    """The entries of the table that matter, as alpha1, alpha2, ..., and gravity."""
    columns = {"alpha": dh.alpha, "a": dh.a, "theta": dh.theta * sliding, "d": dh.d * ~sliding}
    pull = np.where(
        np.abs(gravity_base) > _MAX_ANGLE_ROUNDING * np.abs(gravity_base).max(), gravity_base, 0.0
    )
    table = {
        f"{name}{i}": float(x) for name in columns for i, x in enumerate(columns[name], start=1)
    }
    return table | dict(zip(("gx", "gy", "gz"), pull.tolist(), strict=True))


def _exact(name: str, x: float) -> sp.Expr:
    """The symbol of a table entry, or a number if it is zero or a multiple of 90 degrees."""
    turns = name.startswith(_ANGLES)
    if turns:
        number = round(2 * x / math.pi) * sp.pi / 2
    else:
        number = sp.Integer(0)
    if abs(x - float(number)) < (_MAX_ANGLE_ROUNDING if turns else _NEGLIGIBLE):
        return number
    return sp.Symbol(name)


def _screw_x(c: Any, s: Any, x: Any) -> _Exact:
    return np.array([[1, 0, 0, x], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]], dtype=object)


def _screw_z(c: Any, s: Any, z: Any) -> _Exact:
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, z], [0, 0, 0, 1]], dtype=object)


def _body_change(T_new_old: _Exact) -> _Exact:
    """The matrix A with `vector_new = A @ vector_old`, (10, 10)."""
    J_of_vector, vector_of_J = _pseudo_inertia_maps()
    return np.asarray(vector_of_J @ (np.kron(T_new_old, T_new_old) @ J_of_vector))


def _twist_change(T_old_new: _Exact) -> _Exact:
    """The matrix X with `twist_new = twist_old @ X`, twists (angular, linear) as rows, (6, 6)."""
    R = T_old_new[:3, :3]
    (x, y, z) = T_old_new[:3, 3]
    lever = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=object)
    return np.block([[R, lever @ R], [np.zeros((3, 3), dtype=object), R]])


@cache
def _pseudo_inertia_maps() -> tuple[_Exact, _Exact]:
    """The maps between the ten numbers and the 16 of the pseudo-inertia, (16, 10), (10, 16)."""
    units = [(E + E.T) / 2 for E in np.eye(16).reshape(16, 4, 4)]
    forward = [
        InertialParameters.from_vector(e).pseudo_inertia.ravel() for e in np.eye(_LINK_PARAMETERS)
    ]
    backward = [InertialParameters.from_pseudo_inertia(E).vector for E in units]
    return _rationals(np.transpose(forward)), _rationals(np.transpose(backward))


@cache
def _motion(change: Callable[[_Exact], _Exact], sliding: bool) -> tuple[_Exact, ...]:
    """The matrices A0, A1, ... of a joint's change of frame, A0 for the function 1."""
    ring = rings.PolyRing("q" if sliding else "c,s", sp.QQ, "lex")
    first = ring.gens[0]
    last = ring.gens[-1]
    matrix = change(_screw_z(1, 0, first) if sliding else _screw_z(first, last, 0))
    pieces: dict[Any, _Exact] = {ring.zero_monom: np.zeros(matrix.shape, dtype=object)}
    for at, entry in np.ndenumerate(matrix):
        if sliding:
            x = ring(entry)
        else:
            x = ring(entry).rem([first**2 + last**2 - 1])
        for function, coefficient in x.terms():
            pieces.setdefault(function, np.zeros(matrix.shape, dtype=object))[at] = coefficient
    return tuple(pieces.values())


def _base_rows(chain: _ExactChain, U: _Exact) -> list[_Row]:
    """Rows that span the base space, links in their joint frames, as many drives as U has rows."""
    letters = chain.letters
    k = (_LINK_PARAMETERS + len(DRIVE_KINDS)) * len(chain.sliding)
    reaching = list[_Row]()
    rows = list[_Row]()
    for j, (steady, varying) in enumerate(_twists(chain)):
        body_change = _body_change(chain.T_before_joint[j])
        sliding = chain.sliding[j]
        A0, *A = (body_change @ piece for piece in _motion(_body_change, sliding))
        step = {"at": _LINK_PARAMETERS * (j - 1), "to": _LINK_PARAMETERS * j}
        found = [letters.product(row, piece, **step) for row in reaching for piece in A]
        found += [letters.row(_functional(u, sliding, j)) for u in varying]
        for i, u in enumerate(steady):
            if i:
                share = _of_drives(ParameterKind.ROTOR_INERTIA, U[:, i - 1] * U[:, j])
            else:
                share = _of_drives(ParameterKind.OFFSET, U[:, j])
            found.append(letters.row(_functional(u, sliding, j) | share))
        first, _ = letters.echelon(found, range(_LINK_PARAMETERS * j, k))
        rows = [row | letters.product(row, A0, **step) for row in rows] + first
        reaching = first + [letters.product(row, A0, **step) for row in reaching]
        reaching, _ = letters.echelon(
            reaching, range(_LINK_PARAMETERS * j, _LINK_PARAMETERS * (j + 1))
        )
    motors = np.eye(len(U), dtype=object)
    return rows + [
        letters.row(_of_drives(kind, motor))
        for kind in (ParameterKind.COULOMB, ParameterKind.VISCOUS)
        for motor in motors
    ]


def _twists(chain: _ExactChain) -> Iterator[tuple[list[_Row], list[_Row]]]:
    """For each joint: constant coefficients of -g, S_1 .. S_j, and a basis of the others."""
    letters = chain.letters
    pull = letters.exact(*(letters.entries[name] for name in ("gx", "gy", "gz")))
    steady = [letters.row({3 + i: -g for i, g in enumerate(pull)})]
    varying: list[_Row] = []
    for T, sliding in zip(chain.T_before_joint, chain.sliding, strict=True):
        X0, *X = (_twist_change(T) @ piece for piece in _motion(_twist_change, sliding))
        seen = [letters.product(u, piece) for u in varying for piece in (X0, *X)]
        seen += [letters.product(u, piece) for u in steady for piece in X]
        varying, _ = letters.echelon(seen, range(6))
        steady = [*(letters.product(u, X0) for u in steady), letters.row({5 if sliding else 2: 1})]
        yield steady, varying


def _functional(u: _Row, sliding: bool, j: int) -> _Row:
    """The coefficients of u' I S_j in the ten numbers of body j, S_j along z."""
    wx, wy, wz, vx, vy, vz = (u.get(i, 0) for i in range(6))
    turning = {"mx": vy, "my": -vx, "Ixz": wx, "Iyz": wy, "Izz": wz}
    if sliding:
        named = {"m": vz, "mx": -wy, "my": wx}
    else:
        named = turning
    return {
        _LINK_PARAMETERS * j + PARAMETER_NAMES.index(name): value for name, value in named.items()
    }


def _of_drives(kind: ParameterKind, coefficients: _Exact) -> _Row:
    """The coefficients of one parameter of all drives, as a part of a row."""
    first = (_LINK_PARAMETERS + DRIVE_KINDS.index(kind)) * len(coefficients)
    return dict(enumerate(coefficients, start=first))


def _in_table_frames(rows: list[_Row], chain: _ExactChain) -> list[_Row]:
    """The rows for links in the table's frames instead of the joint frames."""
    drives = np.eye(len(DRIVE_KINDS) * len(chain.sliding), dtype=object)
    change = block_diag(*(_body_change(T) for T in chain.T_joint_link), drives)
    return [chain.letters.product(row, change) for row in rows]


def _positive(row: _Row, symbols: tuple[sp.Symbol, ...]) -> _Row:
    """The row or its negative, so that its first words have no minus."""
    (factor, _), *_ = _groups(row, symbols, kept=-1)
    if factor.could_extract_minus_sign():
        return {j: -x for j, x in row.items()}
    return row


def _groups(row: _Row, symbols: tuple[sp.Symbol, ...], kept: int) -> list[tuple[Any, list[Any]]]:
    """Factors and the parameters that share them, drives first, masses last."""

    def rank(j: int) -> tuple[int, int]:
        kind = Parameter.parse(symbols[j].name).kind
        groups = (
            kind in DRIVE_KINDS,
            j == kept,
            kind in _INERTIA_KINDS,
            kind is not ParameterKind.MASS,
            True,
        )
        return groups.index(True), j

    groups: dict[tuple[sp.Expr, int], list[sp.Symbol]] = {}
    for j in sorted(row, key=rank):
        if row[j] in (1, -1):
            alone = j
        else:
            alone = -1
        groups.setdefault((row[j], alone), []).append(symbols[j])
    return [(factor, same) for (factor, _), same in groups.items()]


def _in_words(groups: list[tuple[Any, list[Any]]]) -> str:
    """The sum as text, as 'Ixx2 - Iyy2 - a3^2 (m3 + m4)'."""
    words = ""
    for factor, same in groups:
        negative = factor.could_extract_minus_sign()
        if negative:
            size = sp.factor_terms(-factor)
        else:
            size = factor
        text = str(size).replace("**", "^").replace("*", " ")
        if size.is_Add or "/" in text:
            text = f"({text})"
        names = " + ".join(symbol.name for symbol in same)
        if len(same) > 1:
            term = f"{text} ({names})".replace(") (", ")(")
        else:
            term = f"{text} {names}"
        words += (" - " if negative else " + ") + (names if size == 1 else term)
    if words.startswith(" + "):
        return words[3:]
    return "-" + words[3:]
