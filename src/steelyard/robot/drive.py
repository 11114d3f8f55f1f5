"""What stands between motor and link: rotor inertia, friction, offset, gains, and coupled motors.

For the speed v of a drive that carries the torque `load`, the drive itself consumes

    Ia a + (Fc + mu |load| + Fs exp(-(v / vs)^2)) s(v) + Fv |v|^alpha s(v) + B

with s(v) = sign(v), or tanh(v / width) where a smoothing width is given (xu2024 eq. (2) for mu = Fs = 0;
alpha = 1 is the linear model). Fs is the Stribeck excess of friction at rest, mu the share of the carried
torque that a harmonic drive turns into friction.

Where motors drive several joints (the wrist of a Staubli), motor positions are x = C q and, because power is
conserved, joint torques are C' times motor torques. Friction and rotor inertia then act on the drive's own
motion u = U q with U = diag(C)^-1 C: they enter the joints as U' f(U v).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.arrays import Array
from steelyard.errors import InvalidRobot

DRIVE_NAMES = ("Ia", "Fc", "Fv", "B")
"""The linear drive parameters of a joint, in the order of the regressor's columns."""

GAIN_TOLERANCE = 0.02
"""What a maker's gain is worth, relative: magnets and windings differ, and weaken as they warm up."""

_PER_JOINT = (
    "rotor_inertia",
    "coulomb",
    "viscous",
    "offset",
    "exponent",
    "load_coulomb",
    "stribeck",
    "stribeck_speed",
)


def _zero() -> Array:
    return np.zeros(())


def _one() -> Array:
    return np.ones(())


@dataclass(frozen=True, eq=False)
class DriveModel:
    """Rotor inertia, friction, gains and coupling of an arm's drives, seen from the joint side.

    A single number counts for every joint; at least one value must be given for each. Change one with
    `dataclasses.replace`.

    Attributes:
        rotor_inertia: Ia, (n,) [kg m^2]
        coulomb: Fc, (n,) [Nm]
        viscous: Fv, (n,) [Nm (s/rad)^alpha]
        offset: B, (n,) [Nm]
        exponent: alpha of the speed law, (n,); 1 is linear
        load_coulomb: mu, friction for each Nm carried, (n,)
        stribeck: Fs, friction at rest beyond Fc, (n,) [Nm]
        stribeck_speed: vs, (n,) [rad/s]
        sign_width: width of the smoothed sign, [rad/s]; 0 is the exact sign
        gain: torque of the drive for each ampere, gear included, (n,) [Nm/A]; None when unknown
        gain_std: standard deviation of the gains, (n,) [Nm/A]; zero where they are exact, as in simulation.
            None says nothing: `identify` then takes `GAIN_TOLERANCE` of them where it is given currents
        coupling: C of motor positions = C joint positions, (n, n); None when each motor turns one joint
    """

    rotor_inertia: Array
    coulomb: Array = field(default_factory=_zero)
    viscous: Array = field(default_factory=_zero)
    offset: Array = field(default_factory=_zero)
    exponent: Array = field(default_factory=_one)
    load_coulomb: Array = field(default_factory=_zero)
    stribeck: Array = field(default_factory=_zero)
    stribeck_speed: Array = field(default_factory=_one)
    sign_width: float = 0.0
    gain: Array | None = None
    gain_std: Array | None = None
    coupling: Array | None = None
    _mixing: Array | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        n = max(np.size(getattr(self, name)) for name in _PER_JOINT)
        for name in _PER_JOINT:
            object.__setattr__(self, name, _per_joint(getattr(self, name), n, name))
        if (self.exponent <= 0).any() or (self.stribeck_speed <= 0).any() or not self.sign_width >= 0:
            raise InvalidRobot("exponent and stribeck_speed must be positive, sign_width not negative")
        if self.gain is not None:
            object.__setattr__(self, "gain", _per_joint(self.gain, n, "gain"))
        if self.gain_std is not None:
            object.__setattr__(self, "gain_std", _per_joint(self.gain_std, n, "gain_std"))
            if self.gain is None or (self.gain_std < 0).any():
                raise InvalidRobot("gain_std belongs to gains, and is not negative")
        if self.coupling is not None:
            C = _checked(self.coupling, (n, n), "coupling")
            if not np.diag(C).all() or np.linalg.matrix_rank(C) < n:
                raise InvalidRobot(f"coupling must be invertible with a non-zero diagonal, got\n{C}")
            object.__setattr__(self, "coupling", C)
            object.__setattr__(self, "_mixing", C / np.diag(C)[:, None])

    @classmethod
    def ideal(cls, n: int) -> DriveModel:
        """Drives of n joints without inertia, friction or offset, and linear laws.

        Args:
            n: number of joints
        """
        return cls(np.zeros(n))

    def of_joints(self, which: NDArray[np.bool_]) -> DriveModel:
        """The drives of some of the joints; coupled drives cannot be taken apart.

        Args:
            which: of the n joints, (n,)
        """
        if self.coupling is not None:
            raise InvalidRobot("coupled drives cannot be taken apart")
        gain = None if self.gain is None else self.gain[which]
        gain_std = None if self.gain_std is None else self.gain_std[which]
        return replace(
            self, gain=gain, gain_std=gain_std, **{name: getattr(self, name)[which] for name in _PER_JOINT}
        )

    def __len__(self) -> int:
        return len(self.rotor_inertia)

    def parameters(self) -> Array:
        """The linear drive parameters as the regressor orders them: all Ia, all Fc, all Fv, all B, (4 n,)."""
        return np.concatenate([self.rotor_inertia, self.coulomb, self.viscous, self.offset])

    def shapes(self, v: Array) -> tuple[Array, Array]:
        """The Coulomb and the viscous shape, s(v) and |v|^alpha s(v), each (N, n).

        Args:
            v: speeds of the drives, (N, n) [rad/s]
        """
        sign = np.sign(v) if self.sign_width == 0 else np.tanh(v / self.sign_width)
        if (self.exponent == 1.0).all():
            return sign, np.abs(v) * sign
        return sign, np.abs(v) ** self.exponent * sign

    def fill_regressor(self, Y: Array, v: Array, a: Array) -> None:
        """Writes the drive columns of the regressor into Y, (N, n, 4 n): torque = Y @ parameters().

        Args:
            Y: where to write, (N, n, 4 n)
            v: joint velocities, (N, n) [rad/s]
            a: joint accelerations, (N, n) [rad/s^2]
        """
        n = len(self)
        U = self._mixing
        drive_v, drive_a = (v, a) if U is None else (v @ U.T, a @ U.T)
        sign, viscous = self.shapes(drive_v)
        Y[:] = 0.0
        for drive, joint in np.argwhere(np.eye(n) if U is None else U):
            share = 1.0 if U is None else U[drive, joint]
            for column, values in enumerate((drive_a, sign, viscous)):
                Y[:, joint, column * n + drive] = share * values[:, drive]
            Y[:, joint, 3 * n + drive] = share

    def friction(self, v: ArrayLike, load: ArrayLike | None = None) -> Array:
        """The torque that friction and offset take from each drive, (N, n) [Nm]; without coupling.

        Args:
            v: speeds of the drives, (N, n) or (n,) [rad/s]
            load: torque that each gear carries, like v [Nm]; needed only where load_coulomb is not zero
        """
        v = np.asarray(v, dtype=float)
        sign, viscous = self.shapes(v)
        carried = self.load_coulomb * np.abs(0.0 if load is None else np.asarray(load, dtype=float))
        at_rest = self.stribeck * np.exp(-((v / self.stribeck_speed) ** 2))
        return np.asarray((self.coulomb + carried + at_rest) * sign + self.viscous * viscous + self.offset)

    def torque(self, v: ArrayLike, a: ArrayLike, load: ArrayLike | None = None) -> Array:
        """The torque that the drives themselves consume, at the joints, (N, n) [Nm].

        Args:
            v: joint velocities, (N, n) or (n,) [rad/s]
            a: joint accelerations, like v [rad/s^2]
            load: torque that the links need at the joints, like v [Nm]; only for load_coulomb
        """
        U = np.eye(len(self)) if self._mixing is None else self._mixing
        drive_v, drive_a = np.asarray(v, dtype=float) @ U.T, np.asarray(a, dtype=float) @ U.T
        carried = None if load is None else np.asarray(load, dtype=float) @ np.linalg.inv(U)
        return np.asarray((self.rotor_inertia * drive_a + self.friction(drive_v, carried)) @ U)

    def torque_from_current(self, current: ArrayLike) -> Array:
        """Joint torque from motor current, (N, n) [Nm].

        Args:
            current: (N, n) or (n,) [A]
        """
        if self.gain is None:
            raise InvalidRobot("motor currents need drive gains [Nm/A] to become torques; give them")
        torque = np.asarray(current, dtype=float) * self.gain
        return torque if self._mixing is None else np.asarray(torque @ self._mixing)

    def joint_position(self, motor_position: ArrayLike) -> Array:
        """Joint positions (or velocities, accelerations) from those of the motors, (N, n).

        Args:
            motor_position: (N, n) or (n,) [rad]
        """
        x = np.asarray(motor_position, dtype=float)
        return x if self.coupling is None else np.asarray(np.linalg.solve(self.coupling, x.T).T)

    def joint_torque(self, motor_torque: ArrayLike) -> Array:
        """Joint torques from those of the motors, (N, n) [Nm].

        Args:
            motor_torque: (N, n) or (n,) [Nm]
        """
        tau = np.asarray(motor_torque, dtype=float)
        return tau if self.coupling is None else tau @ self.coupling


def _per_joint(values: ArrayLike, n: int, name: str) -> Array:
    return _checked(np.full(n, values) if np.ndim(values) == 0 else values, (n,), name)


def _checked(values: ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    array = np.array(values, dtype=float)
    if array.shape != shape or not np.isfinite(array).all():
        raise InvalidRobot(f"drive value '{name}' must be {shape} finite numbers, got {array}")
    array.setflags(write=False)
    return array
