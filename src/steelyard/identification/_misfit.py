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

Friction that grows with the load shows in the loaded run only. There, the joints contradict each
other: a real scale has the same size at all of them. Their chi-square and its freedom
(`CauseFit.disagreement`) stand for f kappa and f, if the widening by them is larger.

A tracker keeps no rows, so that its C is that of white noise, which is widened by the correlation
of the residuals in time alone. Its kappa is measured with this C, and absorbs the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from steelyard._arrays import Array, Indices
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
_MIN_PRIOR_ROW = 1e-9  # smaller rows of prior knowledge, over the largest, are dropped
_MIN_VARIANCE_SHARE = 1e-9  # of a square that other columns leave; less is rounding
_RELATIVE_RANK = 1e-12  # smaller eigenvalues, over the largest, count as zero


@dataclass(frozen=True)
class CauseMisfit(Value):
    """The size of a cause in left-out runs of the empty arm.

    Attributes:
        ratio: mean square of the cause over the variance of its fit, kappa
        freedom: number of columns times number of left-out runs, f
        tracked_ratio: kappa with the variance that a tracker computes
    """

    ratio: Annotated[float, NOT_NEGATIVE] = 1.0
    freedom: Annotated[float, NOT_NEGATIVE] = 0.0
    tracked_ratio: Annotated[float, NOT_NEGATIVE] = 1.0

    @property
    def widening(self) -> float:
        """The factor of the covariance of the cause in another run."""
        known = _PRIOR_FREEDOM + self.freedom * self.ratio
        return max(1.0, known / self.tail_freedom)

    def or_disagreement(self, chi_square: float, freedom: int) -> CauseMisfit:
        """The misfit with the larger widening: this one, or the one that a run shows itself.

        Args:
            chi_square: of the contradiction between joints about the cause, in that run
            freedom: of chi-square
        """
        shown = CauseMisfit(chi_square / max(freedom, 1), float(freedom))
        if shown.widening > self.widening:
            return shown
        return self

    @property
    def tracked(self) -> CauseMisfit:
        """The misfit for the variance that a tracker computes."""
        return CauseMisfit(self.tracked_ratio, self.freedom, self.tracked_ratio)

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
class _LeftOutRows:
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
    every = -(-sum(map(len, parts)) // _MAX_ROWS)
    pieces = _pieces(parts, rows, every)
    found: list[dict[str, _CauseInRows]] = []
    for group in _groups(len(pieces)):
        left_out = [pieces[i] for i in group]
        others = [pieces[i].rows for i in range(len(pieces)) if i not in group]
        usable = sum(int(piece.rows.usable.any(axis=1).sum()) for piece in left_out)
        if usable >= _MIN_ROWS:
            prior = _links_by(others, parameters, noise)
            found.append(_causes(robot, left_out, prior, parameters, noise))
    return Misfit(*(_ratio([each[name] for each in found], every) for name in vars(Misfit())))


def _pieces(parts: Sequence[Samples], rows: Sequence[Rows], every: int) -> list[_LeftOutRows]:
    """The runs, or the halves of a single one, without torques near reversals.

    Args:
        every: which rows are kept
    """
    pieces = []
    for part, each in zip(parts, rows, strict=True):
        clear = Rows(each.Y, each.tau, part.away_from_reversals().mask).thinned(every)
        pieces.append(_LeftOutRows(clear, part.q[::every]))
    if len(pieces) > 1:
        return pieces
    whole = pieces[0]
    middle = len(whole.q) // 2
    return [_cut(whole, slice(0, middle)), _cut(whole, slice(middle, None))]


def _cut(piece: _LeftOutRows, which: slice) -> _LeftOutRows:
    rows = piece.rows
    return _LeftOutRows(Rows(rows.Y[which], rows.tau[which], rows.usable[which]), piece.q[which])


def _groups(count: int) -> list[list[int]]:
    """The pieces that are left out together, each group in turn."""
    which = np.arange(count) * min(count, _MAX_GROUPS) // count
    return [np.flatnonzero(which == group).tolist() for group in range(int(which[-1]) + 1)]


def _links_by(rows: Sequence[Rows], parameters: ParameterTable, noise: Array) -> Array:
    """Rows [Z z] of unit noise: what some runs say about links and rotors, (r, p + 11)."""
    p = len(parameters)
    weights = np.maximum(noise, 1e-12) ** -2.0
    daily = np.flatnonzero(parameters.daily)
    firm = np.flatnonzero(~parameters.daily)
    order = np.concatenate([firm, [p]])
    gram = np.zeros((len(order), len(order)))
    for each in rows:
        gram = gram + _without(np.einsum("j,jab->ab", weights, each.grams), daily, order)
    length = np.sqrt(np.maximum(np.diag(gram), 0.0))
    scale = np.where(length > 0, length, 1.0)
    unit = gram / np.outer(scale, scale)
    s, V = np.linalg.eigh(unit)
    root = np.sqrt(np.maximum(s, 0.0))[:, None] * V.T
    triangle = np.linalg.qr(root)[1][: len(firm)] * (scale * (length > 0))
    out = np.zeros((len(triangle), p + 11))
    out[:, firm] = triangle[:, :-1]
    out[:, -1] = triangle[:, -1]
    size = np.abs(triangle[:, :-1]).max(axis=1, initial=0.0)
    return np.asarray(out[size > _MIN_PRIOR_ROW * size.max(initial=0.0)])


def _without(gram: Array, removed: Indices, kept: Indices) -> Array:
    """Inner products of some columns after a fit has removed others, (kept, kept)."""
    across = gram[np.ix_(removed, kept)]
    length = np.sqrt(np.diag(gram)[removed])
    scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    among = gram[np.ix_(removed, removed)] * np.outer(scale, scale)
    inverse = np.linalg.pinv(among, rcond=_RELATIVE_RANK, hermitian=True) * np.outer(scale, scale)
    return np.asarray(gram[np.ix_(kept, kept)] - across.T @ inverse @ across)


@dataclass(frozen=True, eq=False)
class _CauseInRows:
    """A cause in left-out rows: by their fit, and its square over the variance of a tracker."""

    fit: CauseFit
    tracked_square: float


def _causes(
    robot: RobotModel,
    pieces: Sequence[_LeftOutRows],
    prior: Array,
    parameters: ParameterTable,
    noise: Array,
) -> dict[str, _CauseInRows]:
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
    weights = 1.0 / np.maximum(noise, 1e-12)
    return {
        name: _CauseInRows(fit.step(each), _tracked_square(fit, each, weights))
        for name, each in columns.items()
    }


def _tracked_square(fit: Fitted, cause: Sequence[Array], weights: Array) -> float:
    """The square of a cause over its variance by white noise, as a tracker computes it.

    Args:
        fit: of the left-out rows without the cause
        cause: its column in each run, (N, n, 1)
        weights: of the joints, one over their noise, (n,)
    """
    wide = np.pad(fit.mixing, (0, 1))
    wide[-1, -1] = 1.0
    gram = fit.prior.T @ fit.prior
    across = np.zeros(len(gram))
    square = 0.0
    for part, column in zip(fit.rows, cause, strict=True):
        gram = gram + wide.T @ np.einsum("j,jab->ab", weights**2, part.grams) @ wide
        x = column[:, :, 0] * part.usable * weights**2
        rows = np.concatenate([part.Y, part.tau[:, :, None]], axis=2)
        across = across + wide.T @ np.einsum("ij,ija->a", x, rows)
        square += float(np.sum(x * column[:, :, 0]))
    length = np.sqrt(np.maximum(np.diag(gram)[:-1], 0.0))  # rounding can make a zero negative
    scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    unit = gram[:-1, :-1] * np.outer(scale, scale)
    inverse = np.linalg.pinv(unit, rcond=_RELATIVE_RANK, hermitian=True) * np.outer(scale, scale)
    V = square - float(across[:-1] @ inverse @ across[:-1])
    left = float(across[-1] - across[:-1] @ inverse @ gram[:-1, -1])
    if _MIN_VARIANCE_SHARE * square >= V:
        return float("nan")
    return left**2 / V


def _ratio(found: Sequence[_CauseInRows], every: int) -> CauseMisfit:
    """The mean over left-out runs; runs that do not determine a cause are not counted.

    Args:
        every: which rows were kept; those of a tracker are all of them, and have white noise
    """
    squares = [each.fit.squared_size() for each in found]
    tracked = [every * each.tracked_square for each in found]
    sizes = [square for square in squares if np.isfinite(square)]
    if not sizes:
        return CauseMisfit()
    freedom = sum(len(each.fit.e) for each in found if np.isfinite(each.fit.squared_size()))
    known = [square for square in tracked if np.isfinite(square)]
    per_column = len(sizes) / freedom
    ratio = per_column * float(np.mean(sizes))
    return CauseMisfit(ratio, float(freedom), per_column * float(np.mean(known or sizes)))
