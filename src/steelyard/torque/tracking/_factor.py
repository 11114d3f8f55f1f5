"""Square-root information: a triangular factor that is updated, forgets, and restarts.

All that samples and the empty arm say about the unknowns x = [payload, friction, arm] is R x = z +
unit noise with R upper triangular; [R z] is kept as one triangle and updated by QR with new rows
divided by their noise. Nothing is ever subtracted, so the information stays positive and symmetric
whatever the rows are. By the order of the unknowns the last rows of R are what is known of the arm
alone (payload and friction integrated out), the first ones what is known of payload and friction
given the arm. So

    forgetting     the first rows times sqrt(lambda): the arm is not forgotten
    a new payload  the first ten rows are removed: exact marginalisation, arm and friction stay
    other friction the covariance of friction given the arm grows by Q, its mean stays

The prior is what the empty runs say about the arm (combinations of parameters where they do not
determine each alone), nothing about friction. "Nothing" is a standard deviation of 1e4 (SI), so
that R can always be solved. What the empty runs say about friction (`friction_knowledge`) joins
only where an answer is read: it is not forgotten, a restart does not spend it, a change is tested
for with the samples alone, and a run with other friction than the empty ones can do without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from scipy.linalg import lapack

from steelyard._arrays import Array, Mask
from steelyard._kinds import Shape
from steelyard.identification import DynamicModel
from steelyard.identification._other_causes import CauseFit
from steelyard.robot import DriveModel
from steelyard.robot._basis import triangle_with
from steelyard.torque._prior import (
    arm_rows,
    friction_rows,
    friction_share,
    widened,
)
from steelyard.torque.tracking._rows import TorqueRows

NOTHING_STD = 1e4
_FRICTION_SHARE = 0.5  # standard deviation of friction that is plausible, over Fc + Fv
_MIN_VARIANCE_SHARE = 1e-9  # of a square that other columns leave; less is rounding
_BLOCK = 8  # columns that LAPACK treats together


class Knowledge(NamedTuple):
    """What is known of the m unknowns: payload, friction, arm.

    Attributes:
        R: factor [R z], (m + 1, m + 1)
    """

    R: Annotated[Array, Shape("m+1", "m+1")]

    @classmethod
    def of_empty_arm(cls, model: DynamicModel, rows: TorqueRows) -> Knowledge:
        """What the empty arm says."""
        variance = np.diag(model.estimate.covariance)[rows.theta_order]
        weak = np.eye(rows.m, rows.m + 1) / NOTHING_STD
        weak[10:, -1] = model.estimate.value[rows.theta_order] / NOTHING_STD
        known = np.concatenate(
            [np.zeros(10 + rows.friction, bool), np.isfinite(variance[rows.friction :])]
        )
        arm = arm_rows(model)
        said = np.zeros((len(arm), rows.m + 1))
        said[:, 10:-1] = arm[:, rows.theta_order]
        said[:, -1] = arm[:, -1]
        stacked = np.vstack([weak[~known], said])
        return cls(np.asfortranarray(triangle_with(np.zeros((rows.m + 1, rows.m + 1)), stacked)))

    @property
    def solution(self) -> Array:
        """The unknowns, (m,)."""
        return np.asarray(lapack.dtrtrs(self.R[:-1, :-1], self.R[:-1, -1])[0])

    @property
    def inverse(self) -> Array:
        """S with the covariance S S' of the unknowns, (m, m)."""
        return np.asarray(lapack.dtrtri(self.R[:-1, :-1])[0])

    def variance(self, H: Array) -> Array:
        """Of H x, (k,).

        Args:
            H: rows, (k, m)
        """
        half = lapack.dtrtrs(self.R[:-1, :-1], H.T, trans=1)[0]
        return np.asarray((half**2).sum(axis=0))

    def plus(self, rows: Array) -> Knowledge:
        """What is known with more rows.

        Args:
            rows: [H tau] over their noise, (N, m + 1)
        """
        return Knowledge(np.asarray(lapack.dtpqrt(0, _BLOCK, self.R, rows)[0]))

    def since(self, before: Knowledge) -> Array:
        """The products [H tau]'[H tau] of the rows since then, over their noise, (m + 1, m + 1).

        Args:
            before: what was known then; nothing was forgotten since
        """
        return np.asarray(self.R.T @ self.R - before.R.T @ before.R)

    def with_column(self, products: Array, square: float) -> CauseFit | None:
        """The fit with one more column X, by one step (see `identification._other_causes`).

        Its response is that of the payload. None if the rows do not determine the column.

        Args:
            products: X'[H tau], rows over their noise, (m + 1,)
            square: X'X
        """
        R = self.R[:-1, :-1]
        x = self.solution
        taken = lapack.dtrtrs(R, products[:-1], trans=1)[0]
        V = square - float(taken @ taken)
        if _MIN_VARIANCE_SHARE * square >= V:
            return None
        e = np.array([float(products[-1] - products[:-1] @ x) / V])
        response = -np.asarray(lapack.dtrtrs(R, taken)[0])[:, None]
        return CauseFit(e, np.array([[1.0 / V]]), x + response @ e, np.array([0]), response[:10])

    def forgotten(self, weight: float, nuisances: int) -> Knowledge:
        """The knowledge after slight forgetting of payload and friction; that of the arm stays.

        Args:
            weight: lambda, what the information so far still counts
            nuisances: number of unknowns that are payload or friction
        """
        faded = self.R.copy(order="F")
        faded[:nuisances] *= np.sqrt(weight)
        weak = np.zeros((nuisances, len(faded)))
        np.fill_diagonal(weak, np.sqrt(1.0 - weight) / NOTHING_STD)
        return Knowledge(faded).plus(weak)

    def restarted(self, friction_change: Array) -> Knowledge:
        """What is known after a change of payload: friction less sure, the arm as before.

        Args:
            friction_change: standard deviation of the change of each friction coefficient, (f,)
                [SI]
        """
        out = self.R.copy(order="F")
        out[:10] = 0.0
        out[range(10), range(10)] = 1.0 / NOTHING_STD
        friction = slice(10, 10 + len(friction_change))
        S = np.linalg.inv(out[friction, friction])
        wider = S @ S.T + np.diag(friction_change**2)
        flip = np.linalg.cholesky(wider[::-1, ::-1])[
            ::-1, ::-1
        ]  # upper triangular U with U U' = wider
        out[friction, 10:] = np.linalg.inv(flip) @ S @ out[friction, 10:]
        out[friction, friction] = np.triu(out[friction, friction])
        return Knowledge(out)


def friction_std(model: DynamicModel, rows: TorqueRows, share: float) -> Array:
    """A share of Fc + Fv of the drive for each of its friction coefficients, (f,) [SI].

    Args:
        share: of Fc + Fv
    """
    of_drive = np.maximum(np.abs(model.friction.coefficients[:2]).sum(axis=0), 1e-3)
    drives = rows.parameters.joints[: rows.friction]
    return np.asarray(share * of_drive[drives])


def plausible_friction(model: DynamicModel, rows: TorqueRows) -> Array:
    """Rows [Z z] of friction that may be half as large as that of the model again, (f, m + 1).

    They stand beside samples that show little of friction where a change is tested for.
    """
    std = friction_std(model, rows, _FRICTION_SHARE)
    said = np.zeros((rows.friction, rows.m + 1))
    said[:, 10 : 10 + rows.friction] = np.diag(1.0 / std)
    said[:, -1] = model.estimate.value[rows.theta_order[: rows.friction]] / std
    return said


def friction_knowledge(model: DynamicModel, rows: TorqueRows) -> Array:
    """Rows [Z z] of the friction of another run, given the arm, (f, m + 1)."""
    known = friction_rows(model)
    said = np.zeros((len(known), rows.m + 1))
    said[:, 10:-1] = known[:, rows.theta_order]
    said[:, -1] = known[:, -1]
    return said


@dataclass(frozen=True, eq=False)
class SystematicErrors:
    """Drive gains and the empty arm: what can be wrong beyond the noise of the rows (see `prior`).

    Attributes:
        arm: rows [Z z] of what the empty runs determine about the arm, (r, m + 1)
        drive: with what may be wrong with its gains
        pull: Z'Z x_j of each gain, (n, m)
        friction: which unknowns are friction, (m,)
    """

    arm: Array
    drive: DriveModel
    pull: Array
    friction: Mask

    @classmethod
    def of(
        cls, model: DynamicModel, rows: TorqueRows, prior: Knowledge, of_friction: Array
    ) -> SystematicErrors:
        """Those of a model.

        Args:
            prior: what is known of the arm
            of_friction: rows [Z z] of what is known of its friction, (f, m + 1)
        """
        moved = np.zeros((rows.m, model.robot.n))
        moved[10:] = model.gain_response[rows.theta_order]
        arm = prior.R[10 + rows.friction : -1]
        Z = np.vstack([arm, of_friction])[:, :-1]
        unknowns = np.arange(rows.m)
        friction = (unknowns >= 10) & (unknowns < 10 + rows.friction)
        return cls(arm, model.robot.drive, (Z.T @ (Z @ moved)).T, friction)

    @property
    def by_gains(self) -> bool:
        """Whether gains may be wrong, or may have changed."""
        return bool(self.drive.gain_errors.any() or self.drive.gain_drift)

    def widened(
        self, covariance: Array, inverse: Array, pull: Array, *, contradicted: Array
    ) -> tuple[Array, Array | None, dict[str, float]]:
        """Covariance of the payload with systematic errors, effect of gains, shares of variance.

        Args:
            covariance: of the payload, by noise, (10, 10)
            inverse: A^-1, (m, m)
            pull: H_j'tau_j of each joint, rows over their noise, (n, m)
            contradicted: what contradictions of the prior add to the covariance, (10, 10)
        """
        return widened(
            covariance,
            self.drive,
            per_gain=inverse[:10] @ (pull + self.pull).T,
            per_drift=inverse[:10] @ pull.T,
            contradicted=contradicted,
            friction=friction_share(inverse, 0, self.friction),
        )
