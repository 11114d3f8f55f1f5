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
        drives, p = self.robot.drive.transmission, len(self.basis)
        out = np.zeros((*samples.q.shape, p + len(law.extra_names)))
        out[:, :, :p] = self._fixed_columns(samples)
        columns = law.columns(*self._at_drives(samples, law, theta))
        for values, where in zip(columns, self._places(law), strict=True):
            drives.write(out, values, where)
        return Rows(out, samples.tau, samples.mask)

    def shape_columns(self, samples: Samples, law: FrictionLaw, theta: Array) -> Array:
        """How the torque changes with the logarithm of each free shape, (N, n, shapes * n).

        Args:
            samples: in the order of time
            law: of friction
            theta: the unknowns, (p,)
        """
        motion = self._at_drives(samples, law, theta)
        drives, coefficients = self.robot.drive.transmission, theta[self._places(law)]
        out = np.zeros((*samples.q.shape, law.log_shapes.size))
        here = law.columns(*motion)
        for k in range(len(law.free_shapes)):
            moved = law.log_shapes.copy()
            moved[k] += _SHAPE_STEP
            change = law.with_log_shapes(moved).columns(*motion) - here
            slope = np.einsum("tj,tkj->kj", coefficients, change) / _SHAPE_STEP
            drives.write(out, slope, k * samples.n + np.arange(samples.n))
        return out

    def _fixed_columns(self, samples: Samples) -> Array:
        if id(samples) in self._kept:
            return self._kept[id(samples)][1]
        chunks = self.robot.regressor_chunks(samples.q, samples.v, samples.a)
        Y = np.concatenate([self.basis.reduce(chunk) for _, chunk in chunks])
        if sum(len(kept) for kept, _ in self._kept.values()) + len(Y) <= self.most_kept_samples:
            self._kept[id(samples)] = (samples, Y)
        return Y

    def _at_drives(
        self, samples: Samples, law: FrictionLaw, theta: Array | None
    ) -> tuple[Array, Array, Array | None]:
        """Position and speed of the drives, and the torque of the links that their gears carry, (N, n)."""
        drives = self.robot.drive.transmission
        load = None
        if law.load and theta is not None:
            link = np.flatnonzero(~np.isin(kinds(self.basis.short_names), ("Ia", "Fc", "Fv", "B")))
            load = drives.load(self._fixed_columns(samples)[:, :, link] @ theta[link])
        return drives.to_drives(samples.q), drives.to_drives(samples.v), load

    def _places(self, law: FrictionLaw) -> Indices:
        """Which unknowns are the coefficients of a law's terms, (terms, n)."""
        kind = kinds(self.names(law))
        return np.array([np.flatnonzero(kind == term) for term in law.terms])


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
