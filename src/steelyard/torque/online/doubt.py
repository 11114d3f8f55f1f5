"""What is uncertain beyond the noise of the rows: drive gains, and an arm that is not quite as identified.

Where torques are motor currents times gains, a gain that is wrong by a factor is wrong in the empty and in
the loaded runs. The unknowns x solve A x = sum_j H_j'tau_j + Z'z (rows over their noise; Z x = z what the
empty arm tells), so they move with the logarithm of gain j by

    d_j = A^-1 (H_j'tau_j + Z'Z x_j)             x_j: how the empty arm's own parameters move with it,

and sum_j s_j^2 d_j d_j' is added to the covariance, s_j the relative standard deviation of the gain. Loaded
samples that move the arm by more than its own uncertainty tell that the model is not quite right, say because
friction was another one that day: the covariance is widened by the mean square of that move where it exceeds
1 (Birge), as `weigh` does it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.arrays import Array
from steelyard.identification import DynamicModel
from steelyard.torque.methods.direct import empty_response
from steelyard.torque.online.rows import OnlineRows


@dataclass(frozen=True, eq=False)
class Doubt:
    """Drive gains and the empty arm, as things that can be wrong.

    Attributes:
        arm: rows [Z z] of what the empty runs tell about the arm, (r, m + 1)
        gain: relative standard deviation of each gain, (n,); zero where torques were measured
        pull: Z'Z x_j of each gain, (n, m)
    """

    arm: Array
    gain: Array
    pull: Array

    @classmethod
    def of(cls, model: DynamicModel, rows: OnlineRows, prior: Array) -> Doubt:
        """What can be wrong with a model.

        Args:
            model: of the empty arm
            rows: its row maker
            prior: factor of what it tells, (m + 1, m + 1)
        """
        n, drive = model.robot.n, model.robot.drive
        arm = prior[10 + rows.friction : -1]
        if drive.gain is None or drive.gain_std is None or not drive.gain_std.any():
            return cls(arm, np.zeros(n), np.zeros((n, rows.m)))
        moved = np.zeros((rows.m, n))
        moved[10:] = empty_response(model)[rows.theta_order]
        moved[: 10 + rows.friction] = 0.0
        Z = arm[:, :-1]
        return cls(arm, np.abs(drive.gain_std / drive.gain), (Z.T @ (Z @ moved)).T)

    def contradiction(self, x: Array) -> float:
        """How far unknowns are from what the empty arm tells, RMS in standard deviations.

        Args:
            x: the unknowns, (m,)
        """
        return float(np.sqrt(np.mean((self.arm[:, :-1] @ x - self.arm[:, -1]) ** 2)))

    def of_gains(self, S: Array, pull: Array) -> Array:
        """What the gains add to the covariance of the payload, (10, 10).

        Args:
            S: factor of the covariance of all unknowns, S S', (m, m)
            pull: H_j'tau_j of each joint, rows over their noise, (n, m)
        """
        if not self.gain.any():
            return np.zeros((10, 10))
        d = S[:10] @ (S.T @ (pull + self.pull).T) * self.gain
        return np.asarray(d @ d.T)
