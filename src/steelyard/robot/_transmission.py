"""Coupling of drives and joints: motion, torque, and friction as seen by the joints.

Where motors drive several joints (the wrist of a Staubli), motor positions are x = C q and, because
power is conserved, joint torques are C' times motor torques. Friction and rotor inertia then act on
the drive's own motion u = U q with U = diag(C)^-1 C: they enter the joints as U' f(U v).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from steelyard._arrays import Array, Indices, freeze
from steelyard.robot._friction import FrictionLaw


@dataclass(frozen=True, eq=False)
class Transmission:
    """Coupling: drive motion is U times joint motion, joint torque U' times drive torque.

    Attributes:
        matrix: U, (n, n); the identity where each motor turns one joint
    """

    matrix: Array
    is_coupled: bool = field(init=False)
    _inverse: Array = field(init=False, repr=False)
    _pairs: Indices = field(init=False, repr=False)

    def __post_init__(self) -> None:
        freeze(self, "matrix")
        object.__setattr__(
            self, "is_coupled", not np.array_equal(self.matrix, np.eye(len(self.matrix)))
        )
        object.__setattr__(self, "_inverse", np.linalg.inv(self.matrix))
        object.__setattr__(self, "_pairs", np.argwhere(self.matrix).T)

    def to_drives(self, x: Array) -> Array:
        """Positions, speeds or accelerations of drives from those of joints x, (..., n)."""
        if self.is_coupled:
            return x @ self.matrix.T
        return x

    def load(self, tau: Array) -> Array:
        """The torques of the drives that produce torques tau at the joints, (..., n) [Nm]."""
        if self.is_coupled:
            return tau @ self._inverse
        return tau

    def to_joints(self, f: Array) -> Array:
        """The torques at the joints that torques f of the drives produce, (..., n) [Nm]."""
        if self.is_coupled:
            return f @ self.matrix
        return f

    def most_at_joints(self, f: Array) -> Array:
        """Bounds of the torques at the joints for drive torques within +-f, (..., n) [Nm]."""
        if self.is_coupled:
            return f @ np.abs(self.matrix)
        return f

    def write(self, out: Array, values: Array, columns: Indices) -> None:
        """Writes values of each drive, (N, n), into its column of a regressor, (N, n, p).

        Args:
            out: the regressor
            columns: where to, for each drive, (n,)
        """
        drives, joints = self._pairs
        if self.is_coupled:
            values = values[:, drives] * self.matrix[drives, joints]
        out[:, joints, columns[drives]] = values


@dataclass(frozen=True, eq=False)
class JointFriction:
    """Friction of an arm's drives, transmitted to its joints: a law with coefficients.

    A motion is joint positions q [rad or m] and velocities v [rad/s or m/s], each (k, n), or (n,)
    for one.

    Attributes:
        law: of the drives
        coefficients: of its terms, (terms, n)
        offset: B of the drives, (n,) [Nm or N]
        transmission: from drives to joints
    """

    law: FrictionLaw
    coefficients: Array
    offset: Array
    transmission: Transmission
    _share: Array | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        freeze(self, "coefficients", "offset")
        carries = self.law.load and bool(self.coefficients[-1].any())
        object.__setattr__(self, "_share", self.coefficients[-1] if carries else None)

    def init(self, q: Array, v: Array | None = None) -> Array:
        """The memory before the first row at q, (2, n); without v its direction is unknown."""
        to_drives = self.transmission.to_drives
        return self.law.init(to_drives(q), None if v is None else to_drives(v))

    def along(self, memory: Array, q: Array, v: Array, load: Array) -> tuple[Array, Array]:
        """The memory after rows q, v, (2, n), and friction without offset at joints, (k, n).

        Args:
            memory: as `init`, `along` or `step` gave it
            load: torque that the links need at the joints, (k, n) [Nm or N]
        """
        drives = self.transmission
        memory, columns = self.law.step(
            memory,
            drives.to_drives(q),
            drives.to_drives(v),
            drives.load(load) if self.law.load else None,
        )
        return memory, drives.to_joints(np.einsum("tj,tkj->kj", self.coefficients, columns))

    def step(self, memory: Array, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array]:
        """The memory after one row q, v, friction with offset at joints, and the gears' load.

        Their shapes are (2, n), (n,) [Nm] and (n,) [Nm]; the last one belongs to the drives.

        Args:
            memory: as `init`, `along` or `step` gave it
            tau: torque that the drives apply to the joints, (n,) [Nm or N]
        """
        drives = self.transmission
        memory, columns = self.law.step(memory, drives.to_drives(q), drives.to_drives(v))
        f = np.einsum("tj,tj->j", self.coefficients, columns) + self.offset
        load = drives.load(tau) - f
        if self._share is not None:
            load, slope = self.law.carried_torque(load, self._share, memory[0])
            f += slope * load
        return memory, drives.to_joints(f), load
