"""Other causes of the torques: columns that should count for nothing, tried beside a fit.

A fit with wrong data widens its own interval, as it leaves larger residuals. A cause that is named is tested
instead: its columns X join the regression, tau = Y theta + X e, and e = 0 unless the cause is there. What it
explains is not left in the residuals, so widening cannot hide it; a friction law that does not fit leaves
residuals of its own, and the covariance C of e, which allows for correlation in time, is as wide as these
ask for. The cause is sure where e'C^-1 e, chi-square, is so large that chance does it once in 2,000 times.

Of the empty arm, gravity is tried: g (1 + e) in size, and in two directions across. Links show their masses
twice, by weight and by inertia; where these disagree gravity is another one, or the clock runs at another
rate (inertia goes with the square of it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri

from steelyard.arrays import Array
from steelyard.identification.covariance import correlated_covariance
from steelyard.identification.factor import RegressionFactor
from steelyard.identification.least_squares import solve_weighted
from steelyard.identification.problem import Rows, kinds
from steelyard.recording import Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.verdict import Doubt, DoubtKind

ENOUGH_ROWS = 2500
"""Of samples to try causes with; of more, one in so many is taken."""

_CHANCE = 5e-4  # that a cause seems to be there; 3.5 standard deviations of one column
_DRIVES = ("Ia", "Fc", "Fv", "B", "Fs", "Fl")
_EARTH = (9.75, 9.85)  # [m/s^2], from the equator to the poles, with a little to spare
_LEAST_SIZE = 0.02  # of gravity: local gravity differs by 0.005
_LEAST_TILT = np.radians(1.0)


@dataclass(frozen=True, eq=False)
class Tried:
    """A fit with a cause beside it.

    Attributes:
        e: how large the cause is, (k,)
        covariance: of it, (k, k)
        value: the m unknowns of the fit with the cause, (m,)
    """

    e: Array
    covariance: Array
    value: Array

    @classmethod
    def beside(
        cls,
        rows: Sequence[Rows],
        cause: Sequence[Array],
        prior: Array | None = None,
        mixing: Array | None = None,
    ) -> Tried:
        """A fit of rows with a cause beside it.

        Args:
            rows: of each run, in the order of time, in p columns
            cause: its columns in each run, (N, n, k)
            prior: rows [Z z] of what was known before with unit noise, (r, m + 1)
            mixing: the p combinations of the m unknowns, (p, m); the identity by default
        """
        p, k = rows[0].Y.shape[2], cause[0].shape[2]
        mixed = np.eye(p) if mixing is None else mixing
        known = np.zeros((0, mixed.shape[1] + 1)) if prior is None else prior
        wide = np.zeros((p + k, mixed.shape[1] + k))
        wide[:p, :-k], wide[p:, -k:] = mixed, np.eye(k)
        said = np.insert(known, np.full(k, known.shape[1] - 1), 0.0, axis=1)
        both = [
            Rows(np.concatenate([part.Y, X], axis=2), part.tau, part.usable)
            for part, X in zip(rows, cause, strict=True)
        ]
        solution = solve_weighted(RegressionFactor.of_rows(both), said, wide)
        found = cls(solution.value[-k:], solution.inverse[-k:, -k:], solution.value[:-k])
        if not found.sure():  # by white noise; correlation makes it less so
            return found
        covariance, _ = correlated_covariance(both, solution, prior=said, mixing=wide)
        return replace(found, covariance=covariance[-k:, -k:])

    def sure(self, besides: float = 0.0) -> bool:
        """Whether the cause is there.

        Args:
            besides: standard deviation that each number may have for another reason
        """
        C = self.covariance + besides**2 * np.eye(len(self.e))
        if not np.isfinite(C).all() or not (np.diag(C) > 0).all():
            return False
        return bool(self.e @ np.linalg.solve(C, self.e) > chdtri(len(self.e), _CHANCE))


def gravity_doubts(
    robot: RobotModel, parts: Sequence[Samples], rows: Sequence[Rows], names: Sequence[str], theta: Array
) -> list[Doubt]:
    """Doubts where the empty arm feels another gravity than the robot says.

    Args:
        parts: samples of the empty arm
        rows: of them
        names: of the p unknowns
        theta: their values, (p,)
    """
    size = float(np.linalg.norm(robot.gravity_base))
    if not size:
        return []
    if not _EARTH[0] <= size <= _EARTH[1]:
        words = f"gravity is given as {size:.4g} m/s^2, on Earth it is {_EARTH[0]} to {_EARTH[1]}"
        return [Doubt(DoubtKind.GRAVITY, words)]
    every = -(-sum(map(len, parts)) // ENOUGH_ROWS)
    few = [part.thinned(every) for part in rows]
    down = robot.gravity_base
    across = np.linalg.svd(down[None])[2][1:] * size
    links = np.where(np.isin(kinds(names), _DRIVES), 0.0, theta)
    weights = [[_weight(robot, part.q[::every], g, links) for g in (down, *across)] for part in parts]
    larger = Tried.beside(few, [np.stack(each[:1], axis=2) for each in weights])
    if larger.sure() and abs(larger.e[0]) > _LEAST_SIZE:
        words = (
            f"weight and inertia of the links contradict each other: gravity would be {1 + larger.e[0]:.2f}"
            " times as large as stated; is the clock of the recording right, and gravity?"
        )
        return [Doubt(DoubtKind.GRAVITY, words)]
    aside = Tried.beside(few, [np.stack(each[1:], axis=2) for each in weights])
    if aside.sure() and np.linalg.norm(aside.e) > _LEAST_TILT:
        words = (
            f"the base seems to be tilted by {np.degrees(np.linalg.norm(aside.e)):.1f} degrees against the"
            " stated gravity: level it, or give its direction"
        )
        return [Doubt(DoubtKind.TILTED_BASE, words)]
    return []


def _weight(robot: RobotModel, q: Array, gravity: Array, links: Array) -> Array:
    """The torque of the links' weight where things fall along some gravity, (N, n) [Nm or N]."""
    still, basis = np.zeros_like(q), ParameterBasis.of(robot)
    Y = basis.reduce(robot.with_gravity(gravity).regressor(q, still, still))
    return np.asarray(Y @ links[: Y.shape[2]])
