"""Regression in constant memory: the triangular factor of all rows seen so far.

The least-squares problem min |W (tau - Y theta)|^2 depends on the rows only through the triangular
factor R of [Y tau] (R'R = [Y tau]'[Y tau]), and the factor of more rows is the factor of [R; new
rows]. A recording of any length is therefore reduced piece by piece, without normal equations. Each
joint has a factor of its own, so that weights can be chosen after the rows are discarded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from steelyard._arrays import Array, Mask
from steelyard._codec import Value
from steelyard._kinds import NOT_NEGATIVE, Shape
from steelyard.errors import InvalidSamples
from steelyard.identification._problem import Rows
from steelyard.recording import Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.robot._basis import triangle_with

_CHUNK = 1024  # samples reduced at once


@dataclass(frozen=True, eq=False)
class RegressionFactor(Value, error=InvalidSamples):
    """The triangular factors of all rows of a regression tau = Y theta, joint by joint.

    Attributes:
        R: factor of [Y tau] of each joint, (n, p + 1, p + 1)
        rows: number of rows of each joint, (n,)
    """

    R: Annotated[Array, Shape("parts", "p+1", "p+1")]
    rows: Annotated[NDArray[np.int64], Shape("parts"), NOT_NEGATIVE]

    @classmethod
    def empty(cls, n: int, p: int) -> RegressionFactor:
        """The factor of no rows."""
        return cls(np.zeros((n, p + 1, p + 1)), np.zeros(n, dtype=np.int64))

    @classmethod
    def of(
        cls, robot: RobotModel, basis: ParameterBasis, samples: Iterable[Samples]
    ) -> RegressionFactor:
        """The factor of the base regression of samples, read once, piece by piece.

        Args:
            samples: any number of sets; a generator is read once
        """
        factor = cls.empty(robot.n, len(basis))
        for part in samples:
            for piece, Y in robot.regressor_chunks(part.q, part.v, part.a, _CHUNK):
                factor = factor.add(basis.reduce(Y), part.tau[piece], part.mask[piece])
        return factor

    @classmethod
    def of_rows(cls, parts: Sequence[Rows]) -> RegressionFactor:
        """The factors of several recordings; each joint of each recording is a group of its own."""
        n, p = parts[0].Y.shape[1:]
        factors = [cls.empty(n, p).add(part.Y, part.tau, part.usable) for part in parts]
        return cls(
            np.concatenate([f.R for f in factors]), np.concatenate([f.rows for f in factors])
        )

    @property
    def has_rows(self) -> bool:
        """Whether it is the factor of any rows."""
        return bool(self.rows.any())

    @property
    def p(self) -> int:
        """Number of unknowns."""
        return int(self.R.shape[1]) - 1

    def add(self, Y: Array, tau: Array, usable: Mask | None = None) -> RegressionFactor:
        """The factor with more rows.

        Args:
            Y: regressor, (N, n, p)
            tau: torques, (N, n) [Nm]
            usable: which torques to use, (N, n); all by default
        """
        R = np.zeros_like(self.R)
        rows = self.rows.copy()
        for j in range(len(R)):
            block = np.column_stack([Y[:, j], tau[:, j]])
            if usable is not None and not usable[:, j].all():
                block = block[usable[:, j]]
            R[j] = triangle_with(self.R[j], block)
            rows[j] += len(block)
        return RegressionFactor(R, rows)

    def merge(self, other: RegressionFactor) -> RegressionFactor:
        """The factor of the rows of both."""
        R = np.array([triangle_with(a, b) for a, b in zip(self.R, other.R, strict=True)])
        return RegressionFactor(R, self.rows + other.rows)

    def columns(self, kept: NDArray[np.intp]) -> RegressionFactor:
        """The factor of the same rows with some of the unknowns, the others set to zero.

        Args:
            kept: indices of the unknowns to keep, ascending
        """
        chosen = [*kept.tolist(), self.p]
        none = np.zeros((len(chosen), len(chosen)))
        return RegressionFactor(
            np.array([triangle_with(none, R[:, chosen]) for R in self.R]), self.rows
        )

    def weighted(self, weights: Array) -> Array:
        """One triangular factor of the weighted rows of all joints, (p + 1, p + 1).

        Args:
            weights: of the joints' rows, (n,), usually one over the standard deviation of the noise
        """
        return triangle_with(
            np.zeros((self.p + 1, self.p + 1)),
            (self.R * weights[:, None, None]).reshape(-1, self.p + 1),
        )

    def squared_residuals(self, theta: Array) -> Array:
        """The sum of squared residuals of each joint, (n,) [Nm^2].

        Args:
            theta: the unknowns, (p,)
        """
        return np.asarray(((self.R @ np.append(theta, -1.0)) ** 2).sum(axis=1))
