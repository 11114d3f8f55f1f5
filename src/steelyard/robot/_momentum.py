"""Generalised momentum and energy of an arm at single instants, fast.

    p = (M(q) + B) v,      dp/dt = tau + tau_external - friction + C(q, v)' v - g(q)
    E = v' (M(q) + B) v / 2 + U(q),      dE/dt = v' (tau + tau_external - friction)

B is the inertia of the rotors at the joints; it is constant and does not contribute to C (C + C' =
dM/dt). M v is the inverse dynamics for acceleration v at zero velocity, minus gravity.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from steelyard._arrays import Array, finite
from steelyard.errors import InvalidRobot
from steelyard.robot._model import RobotModel


@dataclass(frozen=True, eq=False)
class MomentumDynamics:
    """Links and rotors of an arm for momentum observers; arguments are not checked.

    All are of one instant: q [rad or m], v [rad/s or m/s] and a [rad/s^2 or m/s^2] are (n,).

    Attributes:
        robot: the arm, with its payload
        rotor: inertia of the rotors at the joints, (n, n) [kg m^2]
    """

    robot: RobotModel
    rotor: Array
    _zero: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n = self.robot.n
        object.__setattr__(self, "rotor", finite(self.rotor, (n, n), "rotor", InvalidRobot))
        object.__setattr__(self, "_zero", np.zeros(self.robot.n))

    def momentum(self, q: Array, v: Array) -> tuple[Array, Array]:
        """The momentum p and the drift C' v - g at q, each (n,)."""
        model = self.robot._pin
        data = self.robot._data
        gravity = pin.computeGeneralizedGravity(model, data, q)
        p = pin.rnea(model, data, q, self._zero, v) - gravity + self.rotor @ v
        return p, v @ pin.computeCoriolisMatrix(model, data, q, v) - gravity

    def energy(self, q: Array, v: Array) -> float:
        """Kinetic and potential energy at q and v, [J]."""
        model = self.robot._pin
        data = self.robot._data
        p = pin.rnea(model, data, q, self._zero, v) - pin.computeGeneralizedGravity(model, data, q)
        kinetic = 0.5 * v @ (p + self.rotor @ v)
        return float(kinetic + pin.computePotentialEnergy(model, data, q))

    def torque(self, q: Array, v: Array, a: Array) -> Array:
        """The torque that moves links and rotors, (n,) [Nm or N]."""
        return np.asarray(pin.rnea(self.robot._pin, self.robot._data, q, v, a) + self.rotor @ a)
