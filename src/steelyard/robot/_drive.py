"""Drives, between motor and link: rotor inertia, friction, offset, gains, coupled motors.

For the speed v of a drive that carries the torque `load`, the drive itself consumes

    Ia a + (Fc + mu |load| + Fs exp(-(v / vs)^2)) s(v) + Fv |v|^alpha s(v) + Fa |v| + B

with s(v) = sign(v), or tanh(v / width) where a smoothing width is given: a law of `friction` whose
Fl is mu. Motors may drive several joints (see `transmission`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array, Mask
from steelyard._codec import Value
from steelyard._kinds import NOT_NEGATIVE, POSITIVE, Shape
from steelyard.errors import InvalidRobot
from steelyard.robot._friction import FrictionLaw
from steelyard.robot._parameters import ParameterKind
from steelyard.robot._transmission import JointFriction, Transmission

GAIN_TOLERANCE = 0.01
"""Standard deviation of one published gain, relative: windings and current sensors differ."""

COMMON_GAIN_TOLERANCE = 0.02
"""Standard deviation that published gains share, relative: magnets, way of measuring."""

GAIN_DRIFT = 0.0015
"""Standard deviation of the change of gains between empty and loaded runs, relative.

Runs of a real UR10e over two months leave
0.1 % at most (RMS, by their likelihood). A cold and a warm arm may be ten kelvins apart (0.01)."""

GAIN_DRIFT_PER_KELVIN = 0.001
"""Change of gains per kelvin between empty and loaded runs, relative: magnets weaken."""

PerJoint = Annotated[Array, Shape("n")]
_FRICTION = ("coulomb", "viscous", "exponent", "load_coulomb", "stribeck", "stribeck_speed")
_PER_JOINT = ("rotor_inertia", *_FRICTION, "asymmetry", "offset")


def _zero() -> Array:
    return np.zeros(())


def _one() -> Array:
    return np.ones(())


@dataclass(frozen=True, eq=False)
class DriveModel(Value, error=InvalidRobot):
    """Rotor inertia, friction, gains and coupling of an arm's drives, seen from the joint side.

    A single number counts for every joint; at least one value must be given for each. Change one
    with `dataclasses.replace`.

    Attributes:
        rotor_inertia: Ia, (n,) [kg m^2]
        coulomb: Fc, (n,) [Nm]
        viscous: Fv, (n,) [Nm (s/rad)^alpha]
        offset: B, (n,) [Nm]
        exponent: alpha of the speed law, (n,); 1 is linear
        load_coulomb: mu, friction for each Nm carried, (n,)
        stribeck: Fs, friction at rest beyond Fc, (n,) [Nm]
        stribeck_speed: vs, (n,) [rad/s]
        asymmetry: Fa, by how much friction differs by direction, (n,) [Nm s/rad]
        sign_width: width of the smoothed sign, [rad/s]; 0 is the exact sign
        gain: torque of the drive per ampere, gear included, (n,) [Nm/A]; None when unknown
        gain_std: standard deviation of each gain for itself, (n,) [Nm/A]; zero where it is exact,
            as in simulation. None where it is not stated, see `with_tolerances`
        gain_common: errors that drives share: how one standard deviation of each cause moves the
            logarithms of the gains, (n, c); a number is one cause that moves all alike
        gain_drift: standard deviation of the change of all gains between empty and loaded runs,
            relative
        coupling: C of motor positions = C joint positions, (n, n); None when each motor turns one
            joint
    """

    rotor_inertia: PerJoint
    coulomb: PerJoint = field(default_factory=_zero)
    viscous: PerJoint = field(default_factory=_zero)
    offset: PerJoint = field(default_factory=_zero)
    exponent: Annotated[PerJoint, POSITIVE] = field(default_factory=_one)
    load_coulomb: PerJoint = field(default_factory=_zero)
    stribeck: PerJoint = field(default_factory=_zero)
    stribeck_speed: Annotated[PerJoint, POSITIVE] = field(default_factory=_one)
    asymmetry: PerJoint = field(default_factory=_zero)
    sign_width: Annotated[float, NOT_NEGATIVE] = 0.0
    gain: PerJoint | None = None
    gain_std: Annotated[PerJoint | None, NOT_NEGATIVE] = None
    gain_common: Annotated[Array | None, Shape("n", "causes")] = None
    gain_drift: Annotated[float | None, NOT_NEGATIVE] = None
    coupling: Annotated[Array | None, Shape("n", "n")] = None
    _friction: JointFriction = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._spread_single_numbers()
        super().__post_init__()
        if self.gain_std is not None and self.gain is None:
            raise InvalidRobot("gain_std needs gains: give `gain` too")
        C = self.coupling
        if C is not None and (not np.diag(C).all() or np.linalg.matrix_rank(C) < len(self)):
            raise InvalidRobot(f"coupling must be invertible with a non-zero diagonal, got\n{C}")
        object.__setattr__(self, "_friction", self._own_friction())

    def _spread_single_numbers(self) -> None:
        """Gives every joint the single numbers that count for all of them."""
        n = max(np.size(getattr(self, name)) for name in _PER_JOINT)
        for name in (*_PER_JOINT, "gain", "gain_std"):
            if _is_single(getattr(self, name)):
                object.__setattr__(self, name, np.full(n, getattr(self, name)))
        if _is_single(self.gain_common):
            object.__setattr__(self, "gain_common", np.full((n, 1), self.gain_common))

    @classmethod
    def ideal(cls, n: int) -> DriveModel:
        """Drives of n joints without inertia, friction or offset, and linear laws."""
        return cls(np.zeros(n))

    def of_joints(self, which: Mask) -> DriveModel:
        """The drives of some of the joints, `which` (n,); coupled drives cannot be taken apart."""
        if self.coupling is not None:
            raise InvalidRobot("coupled drives cannot be taken apart")
        values = {
            name: getattr(self, name) for name in (*_PER_JOINT, "gain", "gain_std", "gain_common")
        }
        return replace(self, **{name: x[which] for name, x in values.items() if x is not None})

    def with_tolerances(self) -> DriveModel:
        """The same drives, with the tolerances of published gains where none are given.

        Where `gain_std` is given without `gain_common`, drives share no error. Gains with zero
        errors are exact and do not drift.
        """
        if self.gain is None:
            return self
        std = self.gain_std
        common = self.gain_common
        drift = self.gain_drift
        if common is None:
            if std is None:
                common = np.full((len(self), 1), COMMON_GAIN_TOLERANCE)
            else:
                common = np.zeros((len(self), 0))
        if std is None:
            std = GAIN_TOLERANCE * np.abs(self.gain)
        if drift is None:
            if std.any() or common.any():
                drift = GAIN_DRIFT
            else:
                drift = 0.0
        return replace(self, gain_std=std, gain_common=common, gain_drift=drift)

    @property
    def gain_errors(self) -> Array:
        """How one standard deviation of each cause moves the logarithms of the gains, (n, causes).

        Errors of single drives come first, then shared ones; there are no causes where gains are
        exact or their errors are not stated.
        """
        own = np.zeros((len(self), 0))
        if self.gain is not None and self.gain_std is not None and self.gain_std.any():
            own = np.diag(self.gain_std / np.abs(self.gain))
        if self.gain_common is None:
            return own
        return np.hstack([own, self.gain_common])

    def __len__(self) -> int:
        return len(self.rotor_inertia)

    def parameters(self) -> Array:
        """The linear drive parameters in the order of the regressor: Ia, Fc, Fv, B, (4 n,)."""
        return np.concatenate([self.rotor_inertia, self.coulomb, self.viscous, self.offset])

    @property
    def joint_friction(self) -> JointFriction:
        """The friction of the drives as the joints feel it."""
        return self._friction

    @property
    def law(self) -> FrictionLaw:
        """The friction law, with the given shapes."""
        return self._friction.law

    @property
    def transmission(self) -> Transmission:
        """The coupling of drives and joints, for motions and torques."""
        return self._friction.transmission

    def with_law(self, law: FrictionLaw, extra: Array) -> DriveModel:
        """The same drives with the speed law and `extra` coefficients of a law, exact direction."""
        found = dict(zip(law.terms[2:], np.reshape(extra, (-1, len(self))), strict=True))
        return replace(
            self,
            exponent=law.exponent if law.curved else _one(),
            stribeck=found.get(ParameterKind.STRIBECK, _zero()),
            stribeck_speed=law.stribeck_speed if law.stribeck else _one(),
            load_coulomb=found.get(ParameterKind.LOAD_SHARE, _zero()),
            asymmetry=found.get(ParameterKind.ASYMMETRY, _zero()),
            sign_width=0.0,
        )

    def fill_regressor(self, Y: Array, v: Array, a: Array) -> None:
        """Writes the drive columns of the regressor into Y, (N, n, 4 n): torque = Y @ parameters().

        Joint velocities v [rad/s] and accelerations a [rad/s^2] are (N, n).
        """
        drives = self.transmission
        Fc, Fv = self.law.at(drives.to_drives(v))[:2]
        Y[:] = 0.0
        for k, values in enumerate((drives.to_drives(a), Fc, Fv, np.ones_like(v))):
            drives.write(Y, values, np.arange(k * len(self), (k + 1) * len(self)))

    def friction(self, v: ArrayLike, load: ArrayLike | None = None) -> Array:
        """The torque that friction and offset take from each drive, (N, n) [Nm], without coupling.

        Speeds v [rad/s] and the load of the gears [Nm], for load_coulomb, are (N, n) or (n,).
        """
        if load is None:
            carried = None
        else:
            carried = np.asarray(load, dtype=float)
        columns = self.law.at(np.asarray(v, dtype=float), carried)
        return np.asarray(
            np.einsum("tj,t...j->...j", self._friction.coefficients, columns) + self.offset
        )

    def torque(self, v: ArrayLike, a: ArrayLike, load: ArrayLike | None = None) -> Array:
        """The torque that the drives themselves consume, at the joints, (N, n) [Nm].

        Joint velocities v [rad/s], accelerations a [rad/s^2] and the links' load [Nm] are (N, n) or
        (n,).
        """
        drives = self.transmission
        speed, acceleration = (drives.to_drives(np.asarray(x, dtype=float)) for x in (v, a))
        if load is None:
            carried = None
        else:
            carried = drives.load(np.asarray(load, dtype=float))
        return drives.to_joints(self.rotor_inertia * acceleration + self.friction(speed, carried))

    def torque_from_current(self, current: ArrayLike) -> Array:
        """Joint torque, (N, n) [Nm], from motor current, (N, n) or (n,) [A]."""
        if self.gain is None:
            raise InvalidRobot(
                "the drives have no gains [Nm/A], which convert motor currents to torques; give"
                " `gain`"
            )
        torque = np.asarray(current, dtype=float) * self.gain
        return self.transmission.to_joints(torque)

    def joint_position(self, motor_position: ArrayLike) -> Array:
        """Joint positions, velocities or accelerations from those of motors, (N, n).

        Args:
            motor_position: position of the motors, (N, n) [rad]; or speed or acceleration
        """
        x = np.asarray(motor_position, dtype=float)
        if self.coupling is None:
            return x
        return np.asarray(np.linalg.solve(self.coupling, x.T).T)

    def joint_torque(self, motor_torque: ArrayLike) -> Array:
        """Joint torques from those of the motors, `motor_torque`, both (N, n) [Nm]."""
        tau = np.asarray(motor_torque, dtype=float)
        if self.coupling is None:
            return tau
        return tau @ self.coupling

    def _own_friction(self) -> JointFriction:
        smooth = self.sign_width > 0
        law = FrictionLaw(
            "given",
            "smooth" if smooth else "exact",
            bool((self.exponent != 1.0).any()),
            bool(self.stribeck.any()),
            bool(self.load_coulomb.any()),
            self.exponent,
            np.full(len(self), self.sign_width or 1.0),
            self.stribeck_speed,
            fixed=True,
            smooth_speed=smooth,
            asymmetric=bool(self.asymmetry.any()),
        )
        value = {
            ParameterKind.COULOMB: self.coulomb,
            ParameterKind.VISCOUS: self.viscous,
            ParameterKind.STRIBECK: self.stribeck,
            ParameterKind.ASYMMETRY: self.asymmetry,
            ParameterKind.LOAD_SHARE: self.load_coulomb,
        }
        coefficients = np.array([value[kind] for kind in law.terms])
        if self.coupling is None:
            C = np.eye(len(self))
        else:
            C = self.coupling
        return JointFriction(law, coefficients, self.offset, Transmission(C / np.diag(C)[:, None]))


def _is_single(value: Any) -> bool:
    return np.ndim(value) == 0 and isinstance(value, int | float | np.number | np.ndarray)
