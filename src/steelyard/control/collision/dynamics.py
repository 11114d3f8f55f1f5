"""What an observer needs to know of an arm: links and rotors as a rigid arm, and its friction.

An identified arm knows base parameters pi = K phi only. Torques depend on phi through pi alone, so any phi
with K phi = pi moves like the arm (its links need not be real bodies):

    phi = phi_0 + E (pi - K phi_0),   E puts base parameters at the columns they are named after

with a little mass in every link of phi_0, because Pinocchio keeps first moments as mass times centre. All of
phi belongs together: masses of links that slide against gravity regroup into offsets, so B is that of phi,
too, not that of pi. A payload adds to the last link.

Friction is that of the identified law, or of the robot's own drives. Where it grows with the torque that a
gear carries, it takes that from the measured torque, contact included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from steelyard.control.carried import flange_body
from steelyard.control.collision.spread import ModelSpread
from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.identification.problem import kinds
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.robot import RobotModel
from steelyard.robot.drive import JointFriction
from steelyard.robot.momentum import MomentumDynamics

_LITTLE_MASS = 0.1  # [kg]
_UNCERTAIN_SHARE = 0.1  # standard deviation of Fl beyond which the gear's load is not used


@dataclass(frozen=True, eq=False)
class ArmDynamics:
    """A loaded arm as observers see it.

    Attributes:
        rigid: links, payload and rotors
        friction: of the drives
        spread: how uncertain its torque is; None for a robot whose numbers are given
    """

    rigid: MomentumDynamics
    friction: JointFriction
    spread: ModelSpread | None

    @property
    def robot(self) -> RobotModel:
        """The arm with its payload."""
        return self.rigid.robot

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.rigid.robot.n


def arm_dynamics(
    model: DynamicModel | RobotModel, payload: Payload | InertialParameters | None = None
) -> ArmDynamics:
    """The arm of a model with a payload.

    Args:
        model: an identified arm, or a robot whose links and drives are known
        payload: in the flange frame; none by default
    """
    robot = model if isinstance(model, RobotModel) else rigid_robot(model)
    offset = robot.drive.offset
    if payload is not None:
        robot = robot.with_payload(flange_body(robot, payload, inertia_needed=False))
    U = robot.drive.transmission.matrix
    rigid = MomentumDynamics(robot, U.T @ (robot.drive.rotor_inertia[:, None] * U))
    if isinstance(model, RobotModel):
        return ArmDynamics(rigid, robot.drive.joint_friction, None)
    friction = replace(_with_sure_shares(model), offset=offset)
    return ArmDynamics(rigid, friction, ModelSpread.of(model, payload))


def rigid_robot(model: DynamicModel) -> RobotModel:
    """A robot that moves as the identified one does, its drives without friction; links need not be real.

    Args:
        model: the identified arm
    """
    robot, basis = model.robot, model.basis
    n = robot.n
    p = len(basis)
    pi = model.estimate.value[:p]
    if not np.isfinite(pi).all():
        raise InvalidSamples("the model holds parameters that are not finite; identify it anew")
    phi = np.zeros(14 * n)
    phi[: 10 * n : 10] = _LITTLE_MASS
    phi[basis.independent] += pi - basis.K @ phi
    links = [
        InertialParameters.from_vector(phi[10 * j : 10 * j + 10], name)
        for j, name in enumerate(robot.link_names)
    ]
    drive = type(robot.drive)(
        phi[10 * n : 11 * n],
        offset=phi[13 * n :],
        gain=robot.drive.gain,
        coupling=robot.drive.coupling,
    )
    return robot.with_links(links).with_drive(drive)


def _with_sure_shares(model: DynamicModel) -> JointFriction:
    """The friction of a model, without Fl where its value is uncertain."""
    friction, estimate = model.friction, model.estimate
    if not model.law.load:
        return friction
    coefficients = friction.coefficients.copy()
    coefficients[-1, estimate.std[kinds(estimate.names) == "Fl"] >= _UNCERTAIN_SHARE] = 0.0
    return replace(friction, coefficients=coefficients)
