"""The regression of one or many sets of samples: rows of torque, linear in the unknowns, for a friction law.

    tau = Y theta,   theta = [base parameters of links, rotors, Fc, Fv, B;  Fs, Fl of the friction law]

The columns of links and rotors do not depend on the friction law, so they are computed once and kept (up to a
limit, beyond which they are computed again in every pass); those of friction are written over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from steelyard.arrays import Array, Indices
from steelyard.errors import InvalidSamples
from steelyard.recording import Recording, Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.robot.friction import FrictionLaw

_SHAPE_STEP = 1e-4


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one set of samples.

    Attributes:
        Y: regressor, (N, n, p)
        tau: torques, (N, n) [Nm or N]
        usable: which torques count, (N, n)
    """

    Y: Array
    tau: Array
    usable: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RowMaker:
    """Makes the rows of a regression for any friction law.

    Attributes:
        robot: kinematics and coupling of the drives
        basis: base parameters of links, rotors, Fc, Fv and B
        most_kept_samples: of how many samples the fixed columns are kept for the next pass
    """

    robot: RobotModel
    basis: ParameterBasis
    most_kept_samples: int = 200_000
    _kept: dict[int, tuple[Samples, Array]] = field(default_factory=dict, repr=False)

    def names(self, law: FrictionLaw) -> tuple[str, ...]:
        """Names of the unknowns.

        Args:
            law: of friction
        """
        return (*self.basis.short_names, *law.extra_names)

    def rows(self, samples: Samples, law: FrictionLaw, theta: Array | None = None) -> Rows:
        """The rows of a set of samples.

        Args:
            samples: in the order of time
            law: of friction
            theta: the unknowns so far, for the torque that gears carry, (p,); none carried when None
        """
        Y = self._fixed_columns(samples)
        load = np.zeros_like(samples.q) if theta is None else self._load(Y, theta)
        u, v = self._drive_motion(samples.q), self._drive_motion(samples.v)
        coulomb, viscous, extra = law.columns(u, v, load)
        p = len(self.basis)
        out = np.zeros((*samples.q.shape, p + len(law.extra_names)))
        out[:, :, :p] = Y
        for values, columns in ((coulomb, self._columns("Fc")), (viscous, self._columns("Fv"))):
            self._write(out, values, columns)
        for i, values in enumerate(extra):
            self._write(out, values, p + i * samples.n + np.arange(samples.n))
        return Rows(out, samples.tau, samples.mask)

    def shape_columns(self, samples: Samples, law: FrictionLaw, theta: Array) -> Array:
        """How the torque changes with the logarithm of each free shape, (N, n, shapes * n).

        Args:
            samples: in the order of time
            law: of friction
            theta: the unknowns, (p,)
        """
        u, v = self._drive_motion(samples.q), self._drive_motion(samples.v)
        load = self._load(self._fixed_columns(samples), theta)
        here = self._friction(law, theta, u, v, load)
        out = np.zeros((*samples.q.shape, law.log_shapes.size))
        for k in range(len(law.free_shapes)):
            moved = law.log_shapes.copy()
            moved[k] += _SHAPE_STEP
            there = self._friction(law.with_log_shapes(moved), theta, u, v, load)
            self._write(out, (there - here) / _SHAPE_STEP, k * samples.n + np.arange(samples.n))
        return out

    def _friction(self, law: FrictionLaw, theta: Array, u: Array, v: Array, load: Array) -> Array:
        coulomb, viscous, extra = law.columns(u, v, load)
        coefficients = theta[len(self.basis) :].reshape(len(extra), u.shape[1])
        total = theta[self._columns("Fc")] * coulomb + theta[self._columns("Fv")] * viscous
        return np.asarray(total + sum(c * column for c, column in zip(coefficients, extra, strict=True)))

    def _fixed_columns(self, samples: Samples) -> Array:
        if id(samples) in self._kept:
            return self._kept[id(samples)][1]
        chunks = self.robot.regressor_chunks(samples.q, samples.v, samples.a)
        Y = np.concatenate([self.basis.reduce(chunk) for _, chunk in chunks])
        if sum(len(kept) for kept, _ in self._kept.values()) + len(Y) <= self.most_kept_samples:
            self._kept[id(samples)] = (samples, Y)
        return Y

    def _load(self, Y: Array, theta: Array) -> Array:
        """The torque that each gear carries, (N, n): that of the links."""
        link = np.flatnonzero(~np.isin(kinds(self.basis.short_names), ("Ia", "Fc", "Fv", "B")))
        tau = Y[:, :, link] @ theta[link]
        return np.asarray(tau if self._mixing is None else tau @ np.linalg.inv(self._mixing))

    @property
    def _mixing(self) -> Array | None:
        C = self.robot.drive.coupling
        return None if C is None else C / np.diag(C)[:, None]

    def _drive_motion(self, x: Array) -> Array:
        return x if self._mixing is None else x @ self._mixing.T

    def _columns(self, kind: str) -> Indices:
        return np.flatnonzero(kinds(self.basis.short_names) == kind)

    def _write(self, out: Array, values: Array, columns: Indices) -> None:
        """Writes one column a drive into the rows of the joints that it acts on."""
        U = np.eye(values.shape[1]) if self._mixing is None else self._mixing
        for drive, joint in np.argwhere(U):
            out[:, joint, columns[drive]] = U[drive, joint] * values[:, drive]


def kinds(names: Sequence[str]) -> NDArray[np.str_]:
    """What each name stands for, without joint number and regrouping: 'Izz1r' is 'Izz'.

    Args:
        names: of unknowns
    """
    return np.array([name.rstrip("r").rstrip("0123456789") for name in names])


def samples_of(given: Samples | Iterable[Samples]) -> list[Samples]:
    """One or many samples as a list; anything else is refused.

    Args:
        given: by a caller
    """
    many = [given] if isinstance(given, Samples | Recording | str) else list(given)
    for one in many:
        if not isinstance(one, Samples):
            raise InvalidSamples(
                f"Samples are wanted, got {type(one).__name__}: prepare() the recording first"
            )
    return many


def require_same_joints(robot: RobotModel, samples: Samples) -> None:
    """Refuses samples of another number of joints, or of the same joints in another order.

    Args:
        robot: the arm
        samples: said to be its
    """
    if samples.n != robot.n:
        raise InvalidSamples(
            f"{robot.name} has {robot.n} joints, the samples have {samples.n}:"
            f" {', '.join(samples.joint_names)}"
        )
    named = sorted(samples.joint_names) == sorted(robot.joint_names)
    if named and tuple(samples.joint_names) != tuple(robot.joint_names):
        raise InvalidSamples(
            f"the joints of {robot.name} are in the order {', '.join(robot.joint_names)},"
            f" those of the samples {', '.join(samples.joint_names)}"
        )
