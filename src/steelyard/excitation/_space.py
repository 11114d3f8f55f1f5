"""The space of motions of a design: Fourier series of the moving joints, with variables u.

Joint j has the coefficients c_j = [a_j1 ... a_jL, b_j1 ... b_jL, q0_j]; position, velocity and
acceleration are linear in them: q_j = P_q c_j, v_j = P_v c_j, a_j = P_a c_j. Conditions on the ends
are linear too:

    at rest at both ends:   sum a_l = 0,   sum w l b_l = 0   (v = a = 0 at t = 0, T; xu2024 (18))
    from a given posture:   q0 - sum b_l / (w l) = q_start

Hence c_j = c0_j + Z diag(scale_j) u_j, where Z is a basis of their null space and u is
unconstrained. c0 is the arm at rest in its centre posture; as u goes to zero, the motion shrinks to
that posture.

Limits are slacks of u, positive inside. A signal may peak between the points of a grid. For a
trigonometric polynomial of degree L on M equidistant points of its period (Ehlich and Zeller 1964)

    max |f| <= max over the grid |f| / cos(pi L / M),

so limits of position, velocity and acceleration that are tightened by this cosine on the grid hold
at every time. All other limits are kept on their own grid with a small reserve, and the certificate
decides. Their slacks are clipped at `_MAX_SLACK`: distant limits then neither influence the motion
nor need derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.linalg import null_space

from steelyard._arrays import Array, Indices, Mask
from steelyard.excitation._limits import DesignLimits
from steelyard.excitation._solver import Constraint
from steelyard.robot import JointLimits
from steelyard.trajectory import FourierTrajectory

_GRID_POINTS_PER_HARMONIC = 40
_MAX_SLACK = 0.3  # as a share of the limit
_AMPLITUDE_SMOOTHING = 1e-6  # relative to the scale; makes the amplitude differentiable at zero


@dataclass(frozen=True, eq=False)
class MotionSpace:
    """Fourier series with L harmonics around a centre posture, for the moving joints.

    Attributes:
        centre: posture of the arm for u = 0, (n,) [rad or m]
        joints: indices of the m moving joints, (m,)
        harmonics: L
        period_s: period of the base frequency, [s]
        at_rest: whether the arm is at rest at both ends
        fixed_start: whether it starts and ends in the centre posture
        scale: expected size of the coefficients of each moving joint, (m,) [rad/s or m/s]
    """

    centre: Array
    joints: Indices
    harmonics: int
    period_s: float
    at_rest: bool
    fixed_start: bool
    scale: Array

    @cached_property
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
        """Number of variables u."""
        return int(len(self.joints) * self.free.shape[1])

    def signals(self, t: Array) -> Array:
        """P_q, P_v and P_a from coefficients to signals at times t, (N,) [s]: (3, N, 2 L + 1)."""
        w = 2 * np.pi / self.period_s * np.arange(1, self.harmonics + 1)
        phase = t[:, None] * w
        s = np.sin(phase)
        c = np.cos(phase)
        one = np.ones((len(t), 1))
        q = [s / w, -c / w, one]
        v = [c, s, 0 * one]
        a = [-s * w, c * w, 0 * one]
        return np.stack([np.hstack(q), np.hstack(v), np.hstack(a)])

    def coefficients(self, u: Array) -> Array:
        """The coefficients c of the moving joints, (m, 2 L + 1), for variables u, (size,)."""
        C = (u.reshape(len(self.joints), -1) * self.scale[:, None]) @ self.free.T
        C[:, -1] += self.centre[self.joints]
        return np.asarray(C)

    def trajectory(self, u: Array) -> FourierTrajectory:
        """The motion of all n joints for variables u, (size,)."""
        L = self.harmonics
        C = self.coefficients(u)
        sine, cosine = np.zeros((2, len(self.centre), L))
        offset = self.centre.copy()
        sine[self.joints] = C[:, :L]
        cosine[self.joints] = C[:, L:-1]
        offset[self.joints] = C[:, -1]
        return FourierTrajectory(sine, cosine, offset, self.period_s)

    def motion(self, u: Array, at: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration of all joints, each (N, n).

        Args:
            u: variables, (size,)
            at: matrices of `signals` at the requested times, (3, N, 2 L + 1)
        """
        C = self.coefficients(u)
        q = np.tile(self.centre, (at.shape[1], 1))
        v = np.zeros_like(q)
        a = np.zeros_like(q)
        q[:, self.joints] = at[0] @ C.T
        v[:, self.joints] = at[1] @ C.T
        a[:, self.joints] = at[2] @ C.T
        return q, v, a

    def remembered(
        self, gram: Callable[[Array, Array, Array], Array], at: Array
    ) -> Callable[[Array], Array]:
        """`gram` as a function of variables u, (size,), which remembers its last result.

        Args:
            gram: function of position, velocity and acceleration
            at: matrices of `signals` at the requested times, (3, N, 2 L + 1)
        """
        last = np.zeros(0)
        value = np.zeros(0)

        def of(u: Array) -> Array:
            nonlocal last, value
            if not np.array_equal(u, last):
                last = u.copy()
                value = gram(*self.motion(u, at))
            return value

        return of

    def gradient(self, at: Array, gq: Array, gv: Array, ga: Array) -> Array:
        """The gradient by u, (size,), of a function with gradients gq, gv, ga by q, v and a.

        Args:
            at: matrices of `signals` at the requested times, (3, N, 2 L + 1)
            gq: gradient by positions, (N, n)
            gv: gradient by velocities, (N, n)
            ga: gradient by accelerations, (N, n)
        """
        j = self.joints
        by_c = gq[:, j].T @ at[0] + gv[:, j].T @ at[1] + ga[:, j].T @ at[2]
        return np.asarray((by_c @ self.free * self.scale[:, None]).ravel())

    def joint_families(self, limits: DesignLimits, points: int) -> list[_Family]:
        """Position, velocity and acceleration of the moving joints on a grid, relative to bounds.

        Args:
            limits: bounds of the joints
            points: points of the grid per harmonic
        """
        M = points * self.harmonics
        j = self.joints
        bounds = limits.joints
        at = self.signals(np.arange(M) * self.period_s / M)
        share = np.cos(np.pi * self.harmonics / M)
        half = (bounds.q_max[j] - bounds.q_min[j]) / 2
        bounded = np.isfinite(half)
        middle = np.where(bounded, bounds.q_max[j], 0.0) - np.where(bounded, half, 0.0)
        zero = np.zeros(len(j))
        return [
            _Family(matrix @ self.free, bound, offset, self.scale)
            for matrix, bound, offset in (
                (at[0], half * share, self.centre[j] - middle),
                (at[1], bounds.v_max[j] * share, zero),
                (at[2], bounds.a_max[j] * share, zero),
            )
            if np.isfinite(bound).any()
        ]

    def joint_constraint(self, limits: DesignLimits) -> Constraint:
        """The limits of position, velocity and acceleration in their requested form."""
        if limits.form == "amplitude":
            return _Amplitudes(self, limits.joints)
        return _JointGrid(self, self.joint_families(limits, _GRID_POINTS_PER_HARMONIC))

    def motion_constraint(self, slacks: _SampleSlacks) -> Constraint:
        """Limits on functions of q, v and a at each sample."""
        return _OnGrid(self, slacks)


class _SampleSlacks(Protocol):
    """Limits of each sample: `MotionSlacks`, or the clearances of a `Scene`."""

    @property
    def points(self) -> int:
        """Points of their grid per harmonic."""

    def slacks(self, q: Array, v: Array, a: Array, /) -> Array:
        """The slacks, (N, k)."""

    def slopes(self, q: Array, v: Array, a: Array, /) -> Array:
        """The derivatives of the slacks by q, v and a, (N, k, 3, n)."""


@dataclass(frozen=True, eq=False)
class _Dense:
    """Slacks at a point with their derivatives.

    Attributes:
        slack: the slacks, (k,)
        J: derivatives of the slacks that have any, (rows, size)
        rows: mask of the slacks that have derivatives, (k,)
    """

    slack: Array
    J: Array
    rows: Mask

    def along(self, du: Array) -> Array:
        """J du, (k,); 0 for slacks without derivatives."""
        out = np.zeros(len(self.slack))
        out[self.rows] = self.J @ du
        return out

    def pull(self, z: Array) -> Array:
        """J' z."""
        return np.asarray(z[self.rows] @ self.J)

    def curvature(self, d: Array) -> Array:
        """J' diag(d) J, (size, size)."""
        return np.asarray((self.J * d[self.rows, None]).T @ self.J)


class _OnGrid:
    """Limits of samples on a grid: torque, height, speed, orientation, clearance."""

    linear = False

    def __init__(self, space: MotionSpace, slacks: _SampleSlacks) -> None:
        points = slacks.points * space.harmonics
        self._space = space
        self._slacks = slacks
        self._at = space.signals(np.arange(points) * space.period_s / points)
        self._basis = np.stack(list(self._at), axis=1) @ space.free  # (N, 3, r)

    def slack(self, u: Array) -> Array:
        slack = self._slacks.slacks(*self._space.motion(u, self._at))
        return np.minimum(slack, _MAX_SLACK).ravel()

    def linearised(self, u: Array) -> _Dense:
        space = self._space
        motion = self._space.motion(u, self._at)
        slack = self._slacks.slacks(*motion)
        near = slack < _MAX_SLACK
        samples = near.any(axis=1)
        by_motion = self._slacks.slopes(*(part[samples] for part in motion))[near[samples]]
        basis = self._basis[np.nonzero(near)[0]]
        J = np.einsum("xdj,xdr->xjr", by_motion[..., space.joints], basis) * space.scale[:, None]
        clipped = np.minimum(slack, _MAX_SLACK).ravel()
        return _Dense(clipped, J.reshape(-1, space.size), near.ravel())


class _JointGrid:
    """Limits of position, velocity and acceleration on a grid: exact and linear in u."""

    linear = True

    def __init__(self, space: MotionSpace, families: list[_Family]) -> None:
        self.count = len(space.joints)
        self.size = space.size
        self.families = families

    def slack(self, u: Array) -> Array:
        parts = [family.slack(u.reshape(self.count, -1)).ravel() for family in self.families]
        if parts:
            return np.concatenate(parts)
        return np.zeros(0)

    def linearised(self, u: Array) -> _JointGridAt:
        return _JointGridAt(self.slack(u), self)


class _Family:
    """One signal of all joints with symmetric bounds: |offset + scale P u| <= bound.

    Unbounded joints have an infinite bound, so that their relative signal is zero.
    """

    def __init__(self, P: Array, bound: Array, offset: Array, scale: Array) -> None:
        self.P = P
        self.factor = scale / bound
        self.offset = offset / bound

    def relative(self, U: Array) -> Array:
        return np.asarray((U * self.factor[:, None]) @ self.P.T)

    def slack(self, U: Array) -> Array:
        y = self.relative(U) + self.offset[:, None]
        return np.stack([1 - y, 1 + y])  # (2, joints, M)


@dataclass(frozen=True, eq=False)
class _JointGridAt:
    """The slacks of a joint grid at a point and products with their derivatives."""

    slack: Array
    grid: _JointGrid

    def _parts(self, z: Array) -> list[tuple[_Family, Array]]:
        parts = []
        start = 0
        for family in self.grid.families:
            shape = (2, self.grid.count, len(family.P))
            parts.append((family, z[start : start + np.prod(shape)].reshape(shape)))
            start += int(np.prod(shape))
        return parts

    def along(self, du: Array) -> Array:
        rows = [family.relative(du.reshape(self.grid.count, -1)) for family in self.grid.families]
        parts = [np.stack([-y, y]).ravel() for y in rows]
        if parts:
            return np.concatenate(parts)
        return np.zeros(0)

    def pull(self, z: Array) -> Array:
        out = np.zeros((self.grid.count, self.grid.size // self.grid.count))
        for family, part in self._parts(z):
            out += (part[1] - part[0]) @ family.P * family.factor[:, None]
        return out.ravel()

    def curvature(self, d: Array) -> Array:
        count = self.grid.count
        size = self.grid.size
        H = np.zeros((count, size // count, count, size // count))
        for family, part in self._parts(d):
            weights = (part[0] + part[1]) * family.factor[:, None] ** 2
            for j, w in enumerate(weights):
                H[j, :, j] += (family.P * w[:, None]).T @ family.P
        return H.reshape(size, size)


class _Amplitudes:
    """Limits of the sums of amplitudes, a conservative form (xu2024 (18), liu2025 (42))."""

    linear = False

    def __init__(self, space: MotionSpace, limits: JointLimits) -> None:
        self._space = space
        L = space.harmonics
        j = space.joints
        w = 2 * np.pi / space.period_s * np.arange(1, L + 1)
        # Each row holds a factor of the amplitudes, the sign of the offset, and a bound.
        rows = (
            (1 / w, 1.0, limits.q_max[j]),
            (1 / w, -1.0, -limits.q_min[j]),
            (np.ones(L), 0.0, limits.v_max[j]),
            (w, 0.0, limits.a_max[j]),
        )
        self._rows = [
            (i, factor, sign, bound[i])
            for factor, sign, bound in rows
            for i in range(len(j))
            if np.isfinite(bound[i])
        ]

    def slack(self, u: Array) -> Array:
        return self.linearised(u).slack

    def linearised(self, u: Array) -> _Dense:
        space = self._space
        L = self._space.harmonics
        C = space.coefficients(u)
        r = space.free.shape[1]
        sine = C[:, :L]
        cosine = C[:, L:-1]
        offset = C[:, -1]
        smoothing = _AMPLITUDE_SMOOTHING * space.scale[:, None]
        amplitude = np.sqrt(sine**2 + cosine**2 + smoothing**2)
        slack = np.empty(len(self._rows))
        J = np.zeros((len(self._rows), space.size))
        for k, (i, factor, sign, bound) in enumerate(self._rows):
            largest = factor @ amplitude[i] + sign * offset[i]
            scale = max(abs(bound), 1e-3)
            slack[k] = (bound - largest) / scale
            by_c = np.r_[factor * sine[i] / amplitude[i], factor * cosine[i] / amplitude[i], sign]
            J[k, i * r : (i + 1) * r] = -(by_c @ space.free) * space.scale[i] / scale
        return _Dense(slack, J, np.ones(len(slack), bool))
