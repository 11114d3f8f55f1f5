"""The ten inertial parameters of a rigid body, their order, and conversions between notations.

A body with mass m, centre of mass c and inertia I_c about c (axes of the frame) has, in a frame
with origin O, the first moment h = m c and the inertia about O

    I = I_c + m (c'c 1 - c c')                                                    (Steiner)

so that (m, h, I) is linear in the mass distribution: bodies in one frame add up. The pseudo-inertia

    J = [ S  h ; h' m ],   S = tr(I)/2 1 - I  =  integral x x' dm,   I = tr(S) 1 - S

is the second moment of the homogeneous points (x, 1); it transforms as J_new = T J_old T' and a
body is physical exactly when J is positive definite (Wensing, Kim, Slotine 2018). Its log-Cholesky
parameters (Rucker, Wensing 2022) are ten free numbers, every choice of which is a physical body:

    J = U U',   U = e^alpha [ e^d1 s12 s13 t1 ; 0 e^d2 s23 t2 ; 0 0 e^d3 t3 ; 0 0 0 1 ]

This module is the only one that knows the order of the ten numbers (Pinocchio's).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array
from steelyard._codec import Value, checked
from steelyard._kinds import RIGID, SYMMETRIC, Shape
from steelyard.errors import InvalidInertia

PARAMETER_NAMES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""The order of the ten numbers: m, m c (3), then the inertia about the frame's origin."""

MASS = 0
FIRST_MOMENT = slice(1, 4)
INERTIA = slice(4, 10)
"""Places of the mass, the first moment and the inertia among the ten numbers."""

_INERTIA_ENTRIES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
_MIN_RELATIVE_EIGENVALUE = 1e-9  # of the second moment of a real body, over the largest one
_SECOND_MOMENT_TOLERANCE = 1e-14  # of the second moment, over the largest entry of the inertia
_MIN_DEPENDENCE = 1e-12  # smaller entries of a change of frames are rounding errors


@dataclass(frozen=True, eq=False)
class InertialParameters(Value, error=InvalidInertia):
    """Mass, first moment and inertia of a rigid body in a named frame.

    Attributes:
        mass: m, [kg]
        first_moment: m times the centre of mass, (3,) [kg m], in `frame`
        inertia: inertia about the origin of `frame`, (3, 3) [kg m^2], in `frame`
        frame: name of the frame that all numbers refer to
    """

    mass: float
    first_moment: Annotated[Array, Shape(3)]
    inertia: Annotated[Array, Shape(3, 3), SYMMETRIC]
    frame: str = "flange"

    @classmethod
    def from_vector(cls, vector: ArrayLike, frame: str = "flange") -> InertialParameters:
        """The body with ten given numbers.

        Args:
            vector: in the order of `PARAMETER_NAMES`, (10,) [SI], in `frame`
            frame: name of the frame
        """
        p = _checked(vector, (10,), "vector")
        return cls(p[MASS], p[FIRST_MOMENT], _symmetric(p[INERTIA]), frame)

    @classmethod
    def from_com(
        cls, mass: float, com: ArrayLike, inertia_com: ArrayLike, frame: str = "flange"
    ) -> InertialParameters:
        """The body with a given centre of mass and inertia about it.

        Args:
            mass: [kg]
            com: centre of mass, (3,) [m], in `frame`
            inertia_com: inertia about the centre of mass along the axes of `frame`, (3, 3) [kg m^2]
        """
        c = _checked(com, (3,), "com")
        inertia = _checked(inertia_com, (3, 3), "inertia_com")
        return cls(mass, mass * c, inertia + mass * (c @ c * np.eye(3) - np.outer(c, c)), frame)

    @classmethod
    def from_pseudo_inertia(
        cls, pseudo_inertia: ArrayLike, frame: str = "flange"
    ) -> InertialParameters:
        """The body with a `pseudo_inertia`, (4, 4) [kg m^2, kg m, kg], in `frame`."""
        J = _checked(pseudo_inertia, (4, 4), "pseudo_inertia", SYMMETRIC)
        second = J[:3, :3]
        return cls(J[3, 3], J[:3, 3], np.trace(second) * np.eye(3) - second, frame)

    @classmethod
    def from_log_cholesky(
        cls, log_cholesky: ArrayLike, frame: str = "flange"
    ) -> InertialParameters:
        """The physical body with given log-Cholesky parameters.

        Args:
            log_cholesky: alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3, any real numbers, (10,)
            frame: name of the frame
        """
        alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = _checked(log_cholesky, (10,), "log_cholesky")
        e1, e2, e3 = np.exp([d1, d2, d3])
        U = np.exp(alpha) * np.array(
            [[e1, s12, s13, t1], [0, e2, s23, t2], [0, 0, e3, t3], [0, 0, 0, 1.0]]
        )
        return cls.from_pseudo_inertia(U @ U.T, frame)

    @classmethod
    def from_points(
        cls, masses: ArrayLike, points: ArrayLike, frame: str = "flange"
    ) -> InertialParameters:
        """The body made of point masses, (N,) [kg], at points, (N, 3) [m], in `frame`."""
        x = _checked(points, (np.size(masses), 3), "points")
        homogeneous = np.column_stack([x, np.ones(len(x))])
        weights = _checked(masses, (len(x),), "masses")
        return cls.from_pseudo_inertia((homogeneous * weights[:, None]).T @ homogeneous, frame)

    @classmethod
    def nothing(cls, frame: str = "flange") -> InertialParameters:
        """No body at all: ten zeros."""
        return cls(0.0, np.zeros(3), np.zeros((3, 3)), frame)

    @property
    def vector(self) -> Array:
        """The ten numbers in the order of `PARAMETER_NAMES`, (10,) [SI], in `frame`."""
        entries = [self.inertia[i, j] for i, j in _INERTIA_ENTRIES]
        return np.concatenate([[self.mass], self.first_moment, entries])

    @property
    def com(self) -> Array:
        """Centre of mass, (3,) [m], in `frame`."""
        if self.mass == 0.0:
            raise InvalidInertia("a body of zero mass has no centre of mass")
        return self.first_moment / self.mass

    def com_covariance(self, covariance: Array) -> Array:
        """The covariance of the centre of mass, (3, 3) [m^2]; infinite where it is unknown.

        Args:
            covariance: of the ten numbers, (10, 10); infinite where unknown
        """
        slope = np.column_stack([-self.com, np.eye(3)]) / self.mass
        finite = np.isfinite(np.diag(covariance)[:4])
        known = np.where(np.outer(finite, finite), covariance[:4, :4], 0.0)
        seen = finite[1:] & finite[0]
        return np.where(np.outer(seen, seen), slope @ known @ slope.T, np.inf)

    def inertia_com_covariance(self, covariance: Array) -> Array:
        """The covariance of xx, yy, zz, xy, xz, yz of `inertia_com`, (6, 6), to first order.

        Args:
            covariance: of the ten numbers, finite, (10, 10)
        """
        m = self.mass
        h = self.first_moment
        one = np.eye(3)
        slope = np.empty((6, 10))
        for i, unit in enumerate(np.eye(10)):
            d = InertialParameters.from_vector(unit)
            dh = d.first_moment
            change = d.inertia + d.mass * (h @ h * one - np.outer(h, h)) / m**2
            change = change - (2 * (h @ dh) * one - np.outer(dh, h) - np.outer(h, dh)) / m
            slope[:, i] = change[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        return np.asarray(slope @ covariance @ slope.T)

    @property
    def inertia_com(self) -> Array:
        """Inertia about the centre of mass along the axes of `frame`, (3, 3) [kg m^2]."""
        c = self.com
        return self.inertia - self.mass * (c @ c * np.eye(3) - np.outer(c, c))

    @property
    def principal_moments(self) -> Array:
        """Principal moments of inertia about the centre of mass, ascending, (3,) [kg m^2]."""
        return np.asarray(np.linalg.eigvalsh(self.inertia_com))

    @property
    def principal_axes(self) -> Array:
        """Principal axes as columns, in the order of `principal_moments`, (3, 3), in `frame`."""
        axes = np.linalg.eigh(self.inertia_com)[1]
        return np.asarray(axes * np.array([1.0, 1.0, np.sign(np.linalg.det(axes))]))

    @property
    def pseudo_inertia(self) -> Array:
        """Second moment of the points (x, 1), (4, 4) [kg m^2, kg m, kg], in `frame`."""
        J = np.empty((4, 4))
        J[:3, :3] = np.trace(self.inertia) / 2 * np.eye(3) - self.inertia
        J[:3, 3] = J[3, :3] = self.first_moment
        J[3, 3] = self.mass
        return J

    @property
    def second_moment_com(self) -> Array:
        """Second moment about the centre of mass, (3, 3) [kg m^2], along the axes of `frame`."""
        return self.pseudo_inertia[:3, :3] - np.outer(self.first_moment, self.com)

    @property
    def log_cholesky(self) -> Array:
        """The ten free numbers of `from_log_cholesky`, (10,); only a physical body has them."""
        if not self.is_physical:
            raise InvalidInertia(
                f"only a physical body has log-Cholesky parameters: {self.why_not_physical}"
            )
        flip = np.eye(4)[::-1]
        U = flip @ np.linalg.cholesky(flip @ self.pseudo_inertia @ flip) @ flip
        scale = U[3, 3]
        U = U / scale
        d = np.log(np.diag(U)[:3])
        return np.array([np.log(scale), *d, U[0, 1], U[1, 2], U[0, 2], U[0, 3], U[1, 3], U[2, 3]])

    @property
    def is_physical(self) -> bool:
        """Whether a real body can have these numbers (pseudo-inertia positive definite)."""
        return not self.why_not_physical

    @property
    def why_not_physical(self) -> str:
        """The reason why no real body can have these numbers; empty where one can."""
        if self.mass <= 0.0:
            return f"the mass is {self.mass:.6g} kg; it must be positive"
        values, vectors = np.linalg.eigh(self.second_moment_com)
        smallest = (
            _MIN_RELATIVE_EIGENVALUE * abs(values[2])
            + _SECOND_MOMENT_TOLERANCE * np.abs(self.inertia).max()
        )
        if values[0] > smallest:
            return ""
        direction = ", ".join(f"{x:g}" for x in np.round(vectors[:, 0], 2) + 0.0)
        moments = ", ".join(f"{moment:.3g}" for moment in self.principal_moments)
        if values[0] > -smallest:
            return (
                f"the mass has no extent along ({direction}) of frame '{self.frame}' (a point, rod"
                f" or plate); the principal moments {moments} kg m^2 are on the border of the"
                " triangle inequality"
            )
        return (
            f"the principal moments {moments} kg m^2 about the centre of mass violate the triangle"
            f" inequality; along ({direction}) of frame '{self.frame}' the mass would have a"
            f" negative second moment of {values[0]:.3g} kg m^2"
        )

    def __add__(self, other: InertialParameters) -> InertialParameters:
        self._require_same_frame(other)
        return InertialParameters.from_vector(self.vector + other.vector, self.frame)

    def __sub__(self, other: InertialParameters) -> InertialParameters:
        self._require_same_frame(other)
        return InertialParameters.from_vector(self.vector - other.vector, self.frame)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InertialParameters):
            return NotImplemented
        return self.frame == other.frame and bool(np.array_equal(self.vector, other.vector))

    __hash__ = None  # type: ignore[assignment]

    def in_frame(self, frame: str, T_new_old: ArrayLike) -> InertialParameters:
        """The same body, expressed in another frame.

        Args:
            frame: name of the new frame
            T_new_old: maps coordinates in the present frame to the new one, (4, 4)
        """
        T = checked_transform(T_new_old)
        return InertialParameters.from_pseudo_inertia(T @ self.pseudo_inertia @ T.T, frame)

    def with_mass(self, mass: float) -> InertialParameters:
        """The same body, lighter or heavier: all ten numbers in proportion."""
        return InertialParameters.from_vector(self.vector * (mass / self.mass), self.frame)

    def renamed(self, frame: str) -> InertialParameters:
        """The same numbers in a frame of another name."""
        return InertialParameters(self.mass, self.first_moment, self.inertia, frame)

    @staticmethod
    def moved_covariance(covariance: Array, T_new_old: ArrayLike) -> Array:
        """The covariance of the ten numbers in another frame, (10, 10).

        A number that depends on an unknown one in the old frame is unknown in the new one.

        Args:
            covariance: in the old frame, (10, 10); infinite where unknown
            T_new_old: maps coordinates in the old frame to the new one, (4, 4)
        """
        A = frame_change_matrix(T_new_old)
        unknown = ~np.isfinite(np.diag(covariance))
        moved = A @ np.where(unknown[:, None] | unknown[None, :], 0.0, covariance) @ A.T
        touched = (np.abs(A[:, unknown]) > _MIN_DEPENDENCE).any(axis=1)
        moved[touched, touched] = np.inf
        return np.asarray(moved)

    def _require_same_frame(self, other: InertialParameters) -> None:
        if self.frame != other.frame:
            raise InvalidInertia(
                f"bodies in frames '{self.frame}' and '{other.frame}' cannot be added or"
                " subtracted; express both in one frame with in_frame()"
            )


def frame_change_matrix(T_new_old: ArrayLike) -> Array:
    """The matrix A with `vector_new = A @ vector_old` for a change of frame, (10, 10).

    Args:
        T_new_old: maps coordinates in the old frame to the new one, (4, 4)
    """
    T = checked_transform(T_new_old)
    J_of_vector, vector_of_J = _pseudo_inertia_maps()
    return np.asarray(vector_of_J @ np.kron(T, T) @ J_of_vector)


def checked_transform(T: ArrayLike) -> Array:
    """A read-only copy of a transform T, (4, 4), which must be a rotation and a translation."""
    return _checked(T, (4, 4), "transform", RIGID)


def skew(vector: Any, xp: Any = np) -> Any:
    """The matrix S with `S @ x = cross(vector, x)`, (..., 3, 3).

    Args:
        vector: (..., 3)
        xp: numpy or jax.numpy, whose arrays these are
    """
    x, y, z = (vector[..., i] for i in range(3))
    zero = xp.zeros_like(x)
    rows = ((zero, -z, y), (z, zero, -x), (-y, x, zero))
    return xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2)


@cache
def _pseudo_inertia_maps() -> tuple[Array, Array]:
    """The linear maps between the ten numbers and the sixteen of J, (16, 10) and (10, 16)."""
    unit = [InertialParameters.from_vector(e) for e in np.eye(10)]
    forward = np.column_stack([body.pseudo_inertia.ravel() for body in unit])
    return forward, np.asarray(np.linalg.pinv(forward), dtype=float)


def _symmetric(entries: Array) -> Array:
    matrix = np.zeros((3, 3))
    for value, (i, j) in zip(entries, _INERTIA_ENTRIES, strict=True):
        matrix[i, j] = matrix[j, i] = value
    return matrix


def _checked(values: ArrayLike, shape: tuple[int, ...], name: str, *markers: Any) -> Array:
    annotation = Annotated[Array, Shape(*shape), *markers]
    return np.asarray(checked(values, annotation, name, InvalidInertia))
