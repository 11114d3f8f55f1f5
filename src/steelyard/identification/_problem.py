"""The regression of samples: rows of torque, linear in the unknowns, for a friction law.

    tau = Y theta + D d
    theta = [base parameters of links, rotors, Fc, Fv, B;  terms of plug-ins;  Fs, Fa, Fl]

with d a step of the logarithms of the law's shapes and D the derivative of the torque by them.
Columns of links, rotors and offsets do not depend on the law. They and their inner products are
computed once and cached, without the zeros of links before a joint; beyond a limit of samples they
are computed in every iteration. Of the Gram matrices [Y D tau]'[Y D tau], an iteration computes
only the few rows of friction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard._arrays import Array, Indices, Mask
from steelyard.errors import InvalidSamples
from steelyard.recording import Recording, Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.robot._friction import FrictionLaw
from steelyard.robot._parameters import Parameter, ParameterKind, ParameterTable
from steelyard.robot._terms import term_columns, term_count

_NOISE_POSTURES = 60  # samples over which the effect of acceleration noise is averaged


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one set of samples.

    Attributes:
        Y: regressor, (N, n, p)
        tau: torques, (N, n) [Nm or N]
        usable: which torques are used, (N, n)
    """

    Y: Array
    tau: Array
    usable: NDArray[np.bool_]

    @property
    def grams(self) -> Array:
        """The inner products [Y tau]'[Y tau] of each joint's usable rows, (n, p + 1, p + 1)."""
        _, n, p = self.Y.shape
        out = np.zeros((n, p + 1, p + 1))
        for j in range(n):
            there = np.flatnonzero(self.Y[:, j].any(axis=0))
            columns = np.column_stack([self.Y[:, j, there], self.tau[:, j]])
            columns[~self.usable[:, j]] = 0.0
            places = np.append(there, p)
            out[j][np.ix_(places, places)] = columns.T @ columns
        return out

    def thinned(self, every: int) -> Rows:
        """The rows of every k-th instant, k = `every`."""
        return Rows(self.Y[::every], self.tau[::every], self.usable[::every])


@dataclass(frozen=True, eq=False)
class _Fixed:
    """The columns of one joint that do not depend on the friction law.

    Attributes:
        places: indices of their unknowns, (r,)
        Y: the columns and the torque, (N, r + 1)
        usable: which rows are used, (N,)
    """

    places: Indices
    Y: Array
    usable: Mask

    @cached_property
    def gram(self) -> Array:
        """The inner products of the usable rows, (r + 1, r + 1)."""
        if self.usable.all():
            used = self.Y
        else:
            used = self.Y[self.usable]
        return np.asarray(used.T @ used)

    def torque(self, theta: Array) -> Array:
        """The part of the joint's torque that these columns give, (N,) [Nm or N]."""
        return np.asarray(self.Y[:, :-1] @ theta[self.places])


@dataclass(frozen=True, eq=False)
class RowMaker:
    """Makes the rows of a regression for any friction law.

    Attributes:
        robot: kinematics and coupling of the drives
        basis: base parameters of links, rotors, Fc, Fv and B
        max_cached_samples: largest number of samples whose fixed columns are cached
    """

    robot: RobotModel
    basis: ParameterBasis
    max_cached_samples: int = 400_000
    _cache: dict[int, tuple[Samples, list[_Fixed]]] = field(default_factory=dict, repr=False)
    _tables: dict[tuple[ParameterKind, ...], ParameterTable] = field(
        default_factory=dict, repr=False
    )

    def parameters(self, law: FrictionLaw) -> ParameterTable:
        """The unknowns: base parameters, terms of plug-ins, what only the friction law has."""
        if law.terms not in self._tables:
            terms = (Parameter(ParameterKind.TERM, k) for k in range(term_count(self.robot)))
            every = (*self.basis.parameters, *terms, *law.extra_parameters)
            self._tables[law.terms] = ParameterTable(every)
        return self._tables[law.terms]

    def rows(
        self,
        samples: Samples,
        law: FrictionLaw,
        theta: Array | None = None,
        *,
        shapes: bool = False,
    ) -> Rows:
        """The rows of a set of samples.

        Args:
            samples: in the order of time
            theta: current estimate of the unknowns, (p,), for the torque that gears transmit; no
                transmitted torque by default
            shapes: whether the columns D of the law's free shapes follow; they need theta
        """
        fixed = self._fixed(samples)
        values, places = self._friction(samples, fixed, law, theta, shapes=shapes)
        out = np.zeros((*samples.q.shape, max(len(self.parameters(law)), places.max() + 1)))
        for j, columns in enumerate(fixed):
            out[:, j, columns.places] = columns.Y[:, :-1]
        for column, unknowns in zip(values, places, strict=True):
            self.robot.drive.transmission.write(out, column, unknowns)
        return Rows(out, samples.tau, samples.mask)

    def grams(self, samples: Samples, law: FrictionLaw, theta: Array | None = None) -> Array:
        """The inner products [Y D tau]'[Y D tau] of each joint's rows, (n, m, m).

        The columns D need theta.

        Args:
            samples: in the order of time
            theta: current estimate of the unknowns, (p,)
        """
        every = self._fixed(samples)
        values, places = self._friction(samples, every, law, theta, shapes=theta is not None)
        m = max(len(self.parameters(law)), int(places.max()) + 1)
        coupling = self.robot.drive.transmission.matrix
        out = np.zeros((samples.n, m + 1, m + 1))
        for j, fixed in enumerate(every):
            drives = np.flatnonzero(coupling[:, j])
            by_drive = values[:, :, drives] * coupling[drives, j]
            C = by_drive.transpose(0, 2, 1).reshape(-1, len(samples))
            if not fixed.usable.all():
                C = C * fixed.usable
            own = places[:, drives].ravel()
            rest = np.append(fixed.places, m)
            across = C @ fixed.Y
            out[j, rest[:, None], rest] = fixed.gram
            out[j, own[:, None], rest] = across
            out[j, rest[:, None], own] = across.T
            out[j, own[:, None], own] = C @ C.T
        return out

    def noise_grams(self, samples: Samples, p: int) -> Array:
        """The mean contribution of acceleration noise to Y'Y of each joint, (n, p, p).

        With s_k the standard deviation of the noise of a_k, and y_jk = dY_j / da_k: sum_k s_k^2
        y_jk'y_jk.
        """
        out = np.zeros((samples.n, p, p))
        if samples.a_noise is None or not samples.a_noise.any():
            return out
        every = -(-len(samples) // _NOISE_POSTURES)
        q = samples.q[::every]
        usable = samples.mask[::every]
        zero = np.zeros_like(q)
        b = len(self.basis)
        at_rest = self.basis.reduce(self.robot.regressor(q, zero, zero))
        for one in np.diag(samples.a_noise):
            moved = self.basis.reduce(self.robot.regressor(q, zero, zero + one)) - at_rest
            used = (moved * usable[:, :, None]).transpose(1, 0, 2)
            out[:, :b, :b] += every * (used.transpose(0, 2, 1) @ used)
        return out

    def torque(self, samples: Samples, law: FrictionLaw, theta: Array) -> Array:
        """The torque that the unknowns predict, (N, n) [Nm or N].

        Args:
            samples: in the order of time
            theta: the unknowns, (p,)
        """
        every = self._fixed(samples)
        values, places = self._friction(samples, every, law, theta, shapes=False)
        friction = np.einsum("tj,tkj->kj", theta[places], values)
        rest = np.column_stack([fixed.torque(theta) for fixed in every])
        return rest + self.robot.drive.transmission.to_joints(friction)

    def _fixed(self, samples: Samples) -> list[_Fixed]:
        """The columns of links, rotors and offsets, joint by joint."""
        if id(samples) in self._cache:
            return self._cache[id(samples)][1]
        chunks = self.robot.regressor_chunks(samples.q, samples.v, samples.a)
        Y = np.concatenate([self.basis.reduce(chunk) for _, chunk in chunks])
        Y = np.concatenate([Y, term_columns(self.robot, samples.q, samples.v)], axis=2)
        changing = np.zeros(Y.shape[2], bool)
        changing[: len(self.basis)] = self.basis.parameters.friction
        fixed = []
        for j in range(samples.n):
            places = np.flatnonzero(Y[:, j].any(axis=0) & ~changing)
            columns = np.column_stack([Y[:, j, places], samples.tau[:, j]])
            fixed.append(_Fixed(places, columns, samples.mask[:, j]))
        if sum(len(kept) for kept, _ in self._cache.values()) + len(Y) <= self.max_cached_samples:
            self._cache[id(samples)] = (samples, fixed)
        return fixed

    def _friction(
        self,
        samples: Samples,
        fixed: Sequence[_Fixed],
        law: FrictionLaw,
        theta: Array | None,
        *,
        shapes: bool,
    ) -> tuple[Array, Indices]:
        """Columns of friction and of its free shapes, (k, N, n), and their unknowns, (k, n)."""
        drives = self.robot.drive.transmission
        parameters = self.parameters(law)
        places = np.array([np.flatnonzero(parameters.of_kind(term)) for term in law.terms])
        u = drives.to_drives(samples.q)
        v = drives.to_drives(samples.v)
        load = None
        if law.load and theta is not None:
            links = np.where(parameters.links, theta, 0.0)
            load = drives.load(np.column_stack([columns.torque(links) for columns in fixed]))
        columns = law.columns(u, v, load)
        if not shapes or theta is None or not law.free_shapes:
            return columns, places
        slopes = law.slopes(u, v, load, columns, theta[places])
        steps = len(parameters) + np.arange(law.log_shapes.size).reshape(-1, samples.n)
        return np.concatenate([columns, slopes]), np.concatenate([places, steps])


def samples_of(given: Samples | Iterable[Samples]) -> list[Samples]:
    """One or many sets of samples as a list; anything else raises an error."""
    if isinstance(given, Samples | Recording | str):
        many = [given]
    else:
        many = list(given)
    for one in many:
        if not isinstance(one, Samples):
            raise InvalidSamples(
                f"expected Samples, got {type(one).__name__}: prepare() the recording first"
            )
    return many


def require_same_joints(robot: RobotModel, samples: Samples) -> None:
    """Raises an error for samples of another number of joints, or of joints in another order."""
    if samples.n != robot.n:
        raise InvalidSamples(
            f"{robot.name} has {robot.n} joints, the samples have {samples.n}:"
            f" {', '.join(samples.joint_names)}"
        )
    named = sorted(samples.joint_names) == sorted(robot.joint_names)
    if named and tuple(samples.joint_names) != tuple(robot.joint_names):
        raise InvalidSamples(
            f"the joints of {robot.name} are in the order {', '.join(robot.joint_names)}, those of"
            f" the samples {', '.join(samples.joint_names)}: prepare the recording"
            " `recording.named(robot.joint_names)`"
        )
