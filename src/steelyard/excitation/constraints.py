"""Limits as the solver sees them: slacks, positive inside, and their derivatives.

Between the points of a grid a signal may peak. For a trigonometric polynomial of degree L on M
equidistant points of its period (Ehlich and Zeller 1964)

    max |f| <= max over the grid |f| / cos(pi L / M),

so limits of position, velocity and acceleration on the grid, tightened by that cosine, hold at every
time. The other limits are kept on their own grid with a small reserve, and the certificate decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from steelyard.arrays import Array
from steelyard.excitation.solver import DenseBlock
from steelyard.excitation.space import MotionSpace, Sampled
from steelyard.robot import JointLimits

_POINTS_PER_HARMONIC = 40
_SMALLEST_AMPLITUDE = 1e-6  # of the scale; keeps the square root of an amplitude smooth


class JointGridBlock:
    """Position, velocity and acceleration of the moving joints on a grid: exact, linear in u.

    Args:
        space: of the motions
        limits: of all joints
    """

    linear = True

    def __init__(self, space: MotionSpace, limits: JointLimits) -> None:
        M = _POINTS_PER_HARMONIC * space.harmonics
        at = space.sampled(np.arange(M) * space.period_s / M)
        share, j = np.cos(np.pi * space.harmonics / M), space.joints
        middle, half = (limits.q_max[j] + limits.q_min[j]) / 2, (limits.q_max[j] - limits.q_min[j]) / 2
        middle = np.where(np.isfinite(middle), middle, 0.0)
        zero = np.zeros(len(j))
        self._families = []
        for matrix, bound, offset in (
            (at.q, half * share, space.centre[j] - middle),
            (at.v, limits.v_max[j] * share, zero),
            (at.a, limits.a_max[j] * share, zero),
        ):
            if np.isfinite(bound).any():
                self._families.append(_Family(matrix @ space.free, bound, offset, space.scale))
        self._size = space.size
        self._count = len(j)

    def slack(self, u: Array) -> Array:
        """How far each limit is away, as a share of itself.

        Args:
            u: the point, (size,)
        """
        parts = [family.slack(u.reshape(self._count, -1)).ravel() for family in self._families]
        return np.concatenate(parts) if parts else np.zeros(0)

    def linearised(self, u: Array) -> _JointGrid:
        """Slacks and derivatives.

        Args:
            u: the point, (size,)
        """
        return _JointGrid(self.slack(u), self._families, self._count, self._size)


class _Family:
    """One signal of all joints between symmetric bounds: |offset + scale P u| <= bound, where bounded."""

    def __init__(self, P: Array, bound: Array, offset: Array, scale: Array) -> None:
        self.P = P
        self.joints = np.flatnonzero(np.isfinite(bound))
        self.factor = scale[self.joints] / bound[self.joints]
        self.offset = offset[self.joints] / bound[self.joints]

    def relative(self, U: Array) -> Array:
        return np.asarray((U[self.joints] * self.factor[:, None]) @ self.P.T)

    def slack(self, U: Array) -> Array:
        y = self.relative(U) + self.offset[:, None]
        return np.stack([1 - y, 1 + y])  # (2, joints, M)


@dataclass(frozen=True, eq=False)
class _JointGrid:
    slack: Array
    families: list[_Family]
    count: int
    size: int

    def _parts(self, z: Array) -> list[tuple[_Family, Array]]:
        parts, start = [], 0
        for family in self.families:
            shape = (2, len(family.joints), len(family.P))
            parts.append((family, z[start : start + np.prod(shape)].reshape(shape)))
            start += int(np.prod(shape))
        return parts

    def along(self, du: Array) -> Array:
        rows = [family.relative(du.reshape(self.count, -1)) for family in self.families]
        parts = [np.stack([-y, y]).ravel() for y in rows]
        return np.concatenate(parts) if parts else np.zeros(0)

    def pull(self, z: Array) -> Array:
        out = np.zeros((self.count, self.size // self.count))
        for family, part in self._parts(z):
            out[family.joints] += (part[1] - part[0]) @ family.P * family.factor[:, None]
        return out.ravel()

    def curvature(self, d: Array) -> Array:
        r = self.size // self.count
        H = np.zeros((self.count, r, self.count, r))
        for family, part in self._parts(d):
            weights = (part[0] + part[1]) * family.factor[:, None] ** 2
            for j, w in zip(family.joints, weights, strict=True):
                H[j, :, j] += (family.P * w[:, None]).T @ family.P
        return H.reshape(self.size, self.size)


class AmplitudeBlock:
    """The papers' conservative form: sums of amplitudes within the limits (xu2024 (18), liu2025 (42)).

    Args:
        space: of the motions
        limits: of all joints
    """

    linear = False

    def __init__(self, space: MotionSpace, limits: JointLimits) -> None:
        self._space = space
        L, j = space.harmonics, space.joints
        w = 2 * np.pi / space.period_s * np.arange(1, L + 1)
        # each row: factor of the amplitudes, sign of the offset, bound
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

    def _evaluated(self, u: Array) -> tuple[Array, Array]:
        space, L = self._space, self._space.harmonics
        C, r = space.coefficients(u), space.free.shape[1]
        tiny = _SMALLEST_AMPLITUDE * space.scale[:, None]
        size = np.sqrt(C[:, :L] ** 2 + C[:, L:-1] ** 2 + tiny**2)
        slack, J = np.empty(len(self._rows)), np.zeros((len(self._rows), space.size))
        for k, (i, factor, sign, bound) in enumerate(self._rows):
            used = factor @ size[i] + sign * C[i, -1]
            room = max(abs(bound), 1e-3)
            slack[k] = (bound - used) / room
            by_c = np.r_[factor * C[i, :L] / size[i], factor * C[i, L:-1] / size[i], sign]
            J[k, i * r : (i + 1) * r] = -(by_c @ space.free) * space.scale[i] / room
        return slack, J

    def slack(self, u: Array) -> Array:
        """How far each limit is away, as a share of itself.

        Args:
            u: the point, (size,)
        """
        return self._evaluated(u)[0]

    def linearised(self, u: Array) -> DenseBlock:
        """Slacks and derivatives.

        Args:
            u: the point, (size,)
        """
        return DenseBlock(*self._evaluated(u))


class MotionBlock:
    """Limits on what follows from q, v and a at each time: torque, height, speed, orientation, clearance.

    Args:
        space: of the motions
        points: of the grid
        slacks: slacks of each sample, (N, k), of q, v and a
        slopes: the same and their derivatives by q, v and a, (N, k) and (N, k, 3, n)
    """

    linear = False

    def __init__(
        self,
        space: MotionSpace,
        points: int,
        slacks: Callable[[Array, Array, Array], Array],
        slopes: Callable[[Array, Array, Array], tuple[Array, Array]],
    ) -> None:
        self._space = space
        self._at: Sampled = space.sampled(np.arange(points) * space.period_s / points)
        self._slacks, self._slopes = slacks, slopes

    def slack(self, u: Array) -> Array:
        """The slacks at all points.

        Args:
            u: the point, (size,)
        """
        return np.asarray(self._slacks(*self._space.motion(u, self._at))).ravel()

    def linearised(self, u: Array) -> DenseBlock:
        """Slacks and derivatives.

        Args:
            u: the point, (size,)
        """
        slack, by_motion = self._slopes(*self._space.motion(u, self._at))
        return DenseBlock(slack.ravel(), self._space.jacobian(self._at, by_motion))
