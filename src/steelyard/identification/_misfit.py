"""How large causes appear in runs of the empty arm, where none of them acts.

A friction law never fits exactly, and what it leaves is no noise: it depends on the motion, and
looks like a scale of the torques or a force. The standard error of a cause in a loaded run
(`_other_causes`) is therefore compared with what the same fit finds in runs of the empty arm. Each
run in turn is left out (the halves of a single one), and weighed like a loaded one with the others
as prior knowledge of the links. The true cause is e = 0, so that

    kappa = e'C^-1 e / k,      k columns, C the covariance of e by its own fit

is about 1 if C is right, and larger if misfit acts. With the mean over all that was left out, C of
a loaded run becomes

    (nu_0 + f kappa) / (nu_0 + f) C      with f = k times the number of left-out runs,

never smaller than C, and e has the tails of Student's t with nu_0 + f degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from steelyard._arrays import Array
from steelyard._codec import Value
from steelyard._kinds import NOT_NEGATIVE
from steelyard.identification._cause_columns import forces
from steelyard.identification._other_causes import CauseFit, Fitted
from steelyard.identification._problem import Rows
from steelyard.recording import Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.robot._parameters import ParameterTable

_MAX_ROWS = 2500  # more samples are thinned
_MAX_GROUPS = 6  # of runs that are left out together
_MIN_ROWS = 60  # of a left-out run
_PRIOR_FREEDOM = 4.0  # nu_0
_NOTHING = 1e-9  # smaller rows of prior knowledge, over the largest, are dropped


@dataclass(frozen=True)
class CauseMisfit(Value):
    """The size of a cause in left-out runs of the empty arm.

    Attributes:
        ratio: mean square of the cause over the variance of its fit, kappa
        freedom: number of columns times number of left-out runs, f
    """

    ratio: Annotated[float, NOT_NEGATIVE] = 1.0
    freedom: Annotated[float, NOT_NEGATIVE] = 0.0

    @property
    def widening(self) -> float:
        """The factor of the covariance of the cause in another run."""
        known = _PRIOR_FREEDOM + self.freedom * self.ratio
        return max(1.0, known / self.tail_freedom)

    @property
    def tail_freedom(self) -> float:
        """Degrees of freedom of Student's t for the cause in another run."""
        return _PRIOR_FREEDOM + self.freedom


@dataclass(frozen=True)
class Misfit(Value):
    """The sizes of all causes in left-out runs of the empty arm.

    Attributes:
        scale: of the torques
        force: vertical, at the flange
    """

    scale: CauseMisfit = CauseMisfit()
    force: CauseMisfit = CauseMisfit()


@dataclass(frozen=True, eq=False)
class _Piece:
    """Rows that are left out together, and their postures, (N, n)."""

    rows: Rows
    q: Array


def misfit_of(
    robot: RobotModel,
    parts: Sequence[Samples],
    rows: Sequence[Rows],
    parameters: ParameterTable,
    noise: Array,
) -> Misfit:
    """The sizes of causes in runs of the empty arm that are left out.

    Args:
        robot: the arm
        parts: samples of the empty arm
        rows: of them
        parameters: the p unknowns
        noise: of each joint, widened by its correlation in time, (n,) [Nm or N]
    """
    pieces = _pieces(parts, rows)
    found: list[dict[str, CauseFit]] = []
    for group in _groups(len(pieces)):
        left_out = [pieces[i] for i in group]
        others = [pieces[i].rows for i in range(len(pieces)) if i not in group]
        usable = sum(int(piece.rows.usable.any(axis=1).sum()) for piece in left_out)
        if usable >= _MIN_ROWS:
            found.append(_causes(robot, left_out, _links_by(others, parameters, noise), parameters))
    return Misfit(*(_ratio([each[name] for each in found]) for name in vars(Misfit())))


def _pieces(parts: Sequence[Samples], rows: Sequence[Rows]) -> list[_Piece]:
    """The runs, or the halves of a single one, thinned and without torques near reversals."""
    every = -(-sum(map(len, parts)) // _MAX_ROWS)
    pieces = []
    for part, each in zip(parts, rows, strict=True):
        clear = Rows(each.Y, each.tau, part.away_from_reversals().mask).thinned(every)
        pieces.append(_Piece(clear, part.q[::every]))
    if len(pieces) > 1:
        return pieces
    whole = pieces[0]
    middle = len(whole.q) // 2
    return [_cut(whole, slice(0, middle)), _cut(whole, slice(middle, None))]


def _cut(piece: _Piece, which: slice) -> _Piece:
    rows = piece.rows
    return _Piece(Rows(rows.Y[which], rows.tau[which], rows.usable[which]), piece.q[which])


def _groups(count: int) -> list[list[int]]:
    """The pieces that are left out together, each group in turn."""
    which = np.arange(count) * min(count, _MAX_GROUPS) // count
    return [np.flatnonzero(which == group).tolist() for group in range(int(which[-1]) + 1)]


def _links_by(rows: Sequence[Rows], parameters: ParameterTable, noise: Array) -> Array:
    """Rows [Z z] of unit noise: what some runs say about links and rotors, (r, p + 11)."""
    p = len(parameters)
    weights = np.maximum(noise, 1e-12) ** -2.0
    gram = sum(np.einsum("j,jab->ab", weights, each.grams) for each in rows)
    daily = np.flatnonzero(parameters.daily)
    firm = np.flatnonzero(~parameters.daily)
    order = np.concatenate([daily, firm, [p]])
    length = np.sqrt(np.diag(gram)[order])
    scale = np.where(length > 0, length, 1.0)
    unit = gram[np.ix_(order, order)] / np.outer(scale, scale)
    s, V = np.linalg.eigh(unit)
    root = np.sqrt(np.maximum(s, 0.0))[:, None] * V.T
    triangle = np.linalg.qr(root)[1][len(daily) : p, len(daily) :] * scale[len(daily) :]
    triangle = triangle * (length > 0)[len(daily) :]
    out = np.zeros((len(triangle), p + 11))
    out[:, firm] = triangle[:, :-1]
    out[:, -1] = triangle[:, -1]
    size = np.abs(triangle[:, :-1]).max(axis=1, initial=0.0)
    return np.asarray(out[size > _NOTHING * size.max(initial=0.0)])


def _causes(
    robot: RobotModel, pieces: Sequence[_Piece], prior: Array, parameters: ParameterTable
) -> dict[str, CauseFit]:
    """The causes that the fit of left-out rows finds."""
    basis = ParameterBasis.of(robot)
    jacobian = np.zeros((len(parameters), 10))
    jacobian[: len(basis)] = basis.payload_jacobian
    mixing = np.column_stack([np.eye(len(parameters)), jacobian])
    fit = Fitted.of([piece.rows for piece in pieces], prior, mixing)
    pull = [forces(robot, piece.q) for piece in pieces]
    down = robot.gravity_base / max(float(np.linalg.norm(robot.gravity_base)), 1e-300)
    columns = {
        "scale": [torque[:, :, None] for torque in fit.torque],
        "force": [(each @ down)[:, :, None] for each in pull],
    }
    return {name: fit.step(each) for name, each in columns.items()}


def _ratio(found: Sequence[CauseFit]) -> CauseMisfit:
    """The mean over left-out runs; runs that do not determine a cause are not counted."""
    squares = 0.0
    freedom = 0
    for each in found:
        size = each.squared_size()
        if np.isfinite(size):
            squares += size
            freedom += len(each.e)
    if not freedom:
        return CauseMisfit()
    return CauseMisfit(squares / freedom, float(freedom))
