"""The motions that a design chooses from: Fourier series of the joints that move, as free numbers u.

Joint j has the coefficients c_j = [a_j1 ... a_jL, b_j1 ... b_jL, q0_j]; position, velocity and
acceleration are linear in them: q_j = P_q c_j, v_j = P_v c_j, a_j = P_a c_j. Wishes for the ends are
linear, too:

    at rest at both ends:   sum a_l = 0,   sum w l b_l = 0    (v = a = 0 at t = 0 and t = T; xu2024 eq. (18))
    from a given posture:   q0 - sum b_l / (w l) = q_start

so c_j = c0_j + Z diag(scale_j) u_j with Z a basis of what they leave free, and u is free of conditions.
c0 is the arm at rest in its centre posture; shrinking u to zero shrinks the motion to that posture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from steelyard.arrays import Array
from steelyard.trajectory import FourierTrajectory


@dataclass(frozen=True, eq=False)
class Sampled:
    """The matrices that give position, velocity and acceleration at certain times, each (N, 2 L + 1).

    Attributes:
        q: positions from coefficients
        v: velocities from coefficients
        a: accelerations from coefficients
    """

    q: Array
    v: Array
    a: Array


@dataclass(frozen=True, eq=False)
class MotionSpace:
    """Fourier series with L harmonics around a centre posture, for the joints that move.

    Attributes:
        centre: posture of the arm when u = 0, (n,) [rad or m]
        joints: indices of the m joints that move, (m,)
        harmonics: L
        period_s: of the base frequency, [s]
        at_rest: whether the arm is at rest at both ends
        fixed_start: whether it starts and ends in the centre posture
        scale: how large a coefficient of each moving joint may be expected, (m,) [rad/s or m/s]
    """

    centre: Array
    joints: NDArray[np.intp]
    harmonics: int
    period_s: float
    at_rest: bool
    fixed_start: bool
    scale: Array

    @property
    def n(self) -> int:
        """Number of joints of the arm."""
        return len(self.centre)

    @property
    def free(self) -> Array:
        """Z, the basis of free coefficients of a joint, (2 L + 1, r)."""
        L = self.harmonics
        w = 2 * np.pi / self.period_s * np.arange(1, L + 1)
        zero = np.zeros(L)
        conditions = np.zeros((0, 2 * L + 1))
        if self.at_rest:
            conditions = np.vstack([np.r_[zero + 1, zero, 0], np.r_[zero, w / w[0], 0]])
        if self.fixed_start:
            conditions = np.vstack([conditions, np.r_[zero, -1 / w, 1]])
        if not len(conditions):
            return np.eye(2 * L + 1)
        Z = np.asarray(null_space(conditions), dtype=float)
        return np.asarray(Z * np.sign(Z[np.abs(Z).argmax(axis=0), np.arange(Z.shape[1])]))

    @property
    def size(self) -> int:
        """Number of free numbers u."""
        return int(len(self.joints) * self.free.shape[1])

    def sampled(self, t: Array) -> Sampled:
        """The matrices for given times.

        Args:
            t: times, (N,) [s]
        """
        w = 2 * np.pi / self.period_s * np.arange(1, self.harmonics + 1)
        phase = t[:, None] * w
        s, c, one = np.sin(phase), np.cos(phase), np.ones((len(t), 1))
        return Sampled(
            np.hstack([s / w, -c / w, one]),
            np.hstack([c, s, 0 * one]),
            np.hstack([-s * w, c * w, 0 * one]),
        )

    def coefficients(self, u: Array) -> Array:
        """The coefficients c of the moving joints, (m, 2 L + 1).

        Args:
            u: free numbers, (size,)
        """
        Z = self.free
        C = (u.reshape(len(self.joints), -1) * self.scale[:, None]) @ Z.T
        C[:, -1] += self.centre[self.joints]
        return np.asarray(C)

    def free_numbers(self, trajectory: FourierTrajectory) -> Array:
        """The u nearest to a trajectory with as many harmonics, (size,).

        Args:
            trajectory: of n joints
        """
        C = np.column_stack([trajectory.sine, trajectory.cosine, trajectory.offset - self.centre])
        return np.asarray((C[self.joints] @ np.linalg.pinv(self.free).T / self.scale[:, None]).ravel())

    def trajectory(self, u: Array) -> FourierTrajectory:
        """The motion of all n joints.

        Args:
            u: free numbers, (size,)
        """
        L, C = self.harmonics, self.coefficients(u)
        sine, cosine, offset = np.zeros((self.n, L)), np.zeros((self.n, L)), self.centre.copy()
        sine[self.joints], cosine[self.joints], offset[self.joints] = C[:, :L], C[:, L:-1], C[:, -1]
        return FourierTrajectory(sine, cosine, offset, self.period_s)

    def motion(self, u: Array, at: Sampled) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration of all joints, each (N, n).

        Args:
            u: free numbers, (size,)
            at: the times
        """
        C = self.coefficients(u)
        q = np.tile(self.centre, (len(at.q), 1))
        v, a = np.zeros_like(q), np.zeros_like(q)
        q[:, self.joints], v[:, self.joints], a[:, self.joints] = at.q @ C.T, at.v @ C.T, at.a @ C.T
        return q, v, a

    def gradient(self, at: Sampled, gq: Array, gv: Array, ga: Array) -> Array:
        """The gradient by u of something whose gradients by q, v and a are known, (size,).

        Args:
            at: the times
            gq: gradient by positions, (N, n)
            gv: gradient by velocities, (N, n)
            ga: gradient by accelerations, (N, n)
        """
        j = self.joints
        by_c = gq[:, j].T @ at.q + gv[:, j].T @ at.v + ga[:, j].T @ at.a
        return np.asarray((by_c @ self.free * self.scale[:, None]).ravel())

    def jacobian(self, at: Sampled, by_motion: Array) -> Array:
        """The derivatives by u of quantities at each time, (N * k, size).

        Args:
            at: the times
            by_motion: derivatives by q, v and a of all joints, (N, k, 3, n)
        """
        basis = np.stack([at.q, at.v, at.a], axis=1) @ self.free  # (N, 3, r)
        J = np.einsum("tkdj,tdr->tkjr", by_motion[..., self.joints], basis)
        J *= self.scale[:, None]
        return np.asarray(J.reshape(-1, self.size))
