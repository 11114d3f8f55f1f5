"""Dynamics of an arm for contact observers, their uncertainty, and forces at frames.

An identified arm has base parameters pi = K phi only. Torques depend on phi through pi alone, so
any phi with K phi = pi has the dynamics of the arm (its links need not be real bodies):

    phi = phi_0 + E (pi - K phi_0),   E puts base parameters at the columns they are named after

with a small mass in every link of phi_0, because Pinocchio stores first moments as mass times
centre. All of phi must be used together: masses of links that slide against gravity are regrouped
into offsets, so B is also that of phi, not that of pi. A payload is added to the last link.

Friction is that of the identified law, or of the robot's own drives. If it grows with the torque
that a gear transmits, the measured torque is used, which includes contacts.

The predicted torque is linear in the parameters, tau = Y(q, v, a) theta, so with their covariance S
the torque of joint j has the standard deviation

    std_j^2 = noise_j^2 + Y_j (S + J S_payload J') Y_j'

which is large in fast motion if friction or inertia are poorly known. noise_j is the residual of
the fit: model errors that no parameter explains. Friction that has changed since identification may
change again: the change is one further standard deviation of Fc, Fv and B.

A force F and a torque N at the origin of a frame produce the joint torques tau = J' (F, N). Only
the joints between the base and that frame have such torques. Directions that J' does not determine
(a force through an axis, more unknowns than joints) are zero in the answer, the minimum-norm
solution, and a sentence names them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array, Indices
from steelyard.control._compensation import flange_body
from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.robot import RobotModel
from steelyard.robot._momentum import MomentumDynamics
from steelyard.robot._parameters import ParameterKind
from steelyard.robot._terms import require_no_terms
from steelyard.robot._transmission import JointFriction
from steelyard.torque.tracking._rows import TorqueRows

_MIN_LEVER_ARM = 0.05  # [m], for torques [1]; shorter ones leave a direction undetermined
_MIN_UNKNOWN_SHARE = 1e-6  # squared component in an undetermined direction
_MIN_VARIANCE = 1e-12  # [Nm^2]
_SMALL_MASS = 0.1  # [kg], of each link in phi_0
_MAX_SHARE_STD = 0.1  # of Fl; less certain load shares are not used


@dataclass(frozen=True, eq=False)
class ArmDynamics:
    """Rigid-body dynamics and friction of a loaded arm.

    Attributes:
        rigid: links, payload and rotors
        friction: of the drives
        model: of the empty arm; None if links and drives are given
        payload: in the flange frame; None for none
    """

    rigid: MomentumDynamics
    friction: JointFriction
    model: DynamicModel | None = None
    payload: Payload | InertialParameters | None = None

    @classmethod
    def of(
        cls, model: DynamicModel | RobotModel, payload: Payload | InertialParameters | None = None
    ) -> ArmDynamics:
        """The arm of a model with a payload.

        Args:
            model: identified, or a robot with known links and drives
            payload: in the flange frame; None for none
        """
        if isinstance(model, RobotModel):
            robot = model
        else:
            require_no_terms(model.robot, "collision detection")
            robot = _rigid_robot(model)
        offset = robot.drive.offset
        if payload is not None:
            robot = robot.with_payload(flange_body(robot, payload, inertia_needed=False))
        U = robot.drive.transmission.matrix
        rigid = MomentumDynamics(robot, U.T @ (robot.drive.rotor_inertia[:, None] * U))
        if isinstance(model, RobotModel):
            return cls(rigid, robot.drive.joint_friction, None, payload)
        return cls(rigid, replace(_with_known_shares(model), offset=offset), model, payload)

    @property
    def robot(self) -> RobotModel:
        """The arm with its payload."""
        return self.rigid.robot

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.rigid.robot.n

    def with_friction_change(self, change: Array) -> ArmDynamics:
        """The arm with changed friction.

        Args:
            change: of Fc, Fv and B of the drives, (3, n)
        """
        coefficients = self.friction.coefficients.copy()
        coefficients[:2] += change[:2]
        offset = self.friction.offset + change[2]
        return replace(
            self, friction=replace(self.friction, coefficients=coefficients, offset=offset)
        )


@dataclass(frozen=True, eq=False)
class TorqueUncertainty:
    """Standard deviation of the predicted torque of a model, at any state.

    Attributes:
        rows: regressor of the model; None if links and drives are given, with standard deviation 1
        x: payload and parameters in the order of `rows`, (10 + p,)
        root: a square root of their covariance, covariance = root @ root.T, (p, p)
        noise: of each joint's torque in the fit, (n,) [Nm or N]
        friction: indices of the parameters Fc, Fv and B, in this order, (3 n,)
        friction_change: additional standard deviation of these, (3, n)
    """

    rows: TorqueRows | None
    x: Array
    root: Array
    noise: Array
    friction: Indices
    friction_change: Array

    @classmethod
    def of(cls, arm: ArmDynamics, friction_change: Array | None = None) -> TorqueUncertainty:
        """The uncertainty of an arm with its payload.

        Args:
            arm: the loaded arm; the covariance of a `Payload` is included
            friction_change: of Fc, Fv and B since identification, (3, n); none by default
        """
        if friction_change is None:
            change = np.zeros((3, arm.n))
        else:
            change = np.abs(friction_change)
        model = arm.model
        payload = arm.payload
        if model is None:
            nothing = np.zeros(0)
            return cls(
                None, nothing, np.zeros((0, 0)), np.ones(arm.n), nothing.astype(np.intp), change
            )
        covariance = np.array(model.estimate.covariance)
        load = np.zeros(10)
        if payload is not None:
            load = (payload.body if isinstance(payload, Payload) else payload).vector
        if isinstance(payload, Payload):
            known = np.isfinite(payload.std)
            J = model.basis.payload_jacobian[:, known]
            covariance[: len(J), : len(J)] += J @ payload.covariance[np.ix_(known, known)] @ J.T
        rows = TorqueRows.of(model)
        x = np.concatenate([load, model.estimate.value[rows.theta_order]])
        friction = np.flatnonzero(
            model.estimate.parameters.of_kind(
                ParameterKind.COULOMB, ParameterKind.VISCOUS, ParameterKind.OFFSET
            )
        )
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return cls(rows, x, root, np.array(model.estimate.noise), friction, change)

    def std(self, motion: Array, memory: Array, weights: Array | None = None) -> Array:
        """Standard deviation of each torque without and with the change of friction, (k, 2, m).

        Args:
            motion: q, v and a of each sample in the order of time, (k, 3, n)
            memory: state of friction before the motion, (2, n)
            weights: of the joints in m sums of torques, (k, m, n); by default each joint is one sum
        """
        if self.rows is None:
            if weights is None:
                m = motion.shape[2]
            else:
                m = weights.shape[1]
            return np.ones((len(motion), 2, m))
        Y, _ = self.rows.regressor(motion, memory, self.x)
        columns = Y @ self.root
        changed = Y[:, :, self.friction] * self.friction_change.ravel()
        noise = np.broadcast_to(self.noise**2, Y.shape[:2])
        if weights is not None:
            columns = weights @ columns
            changed = weights @ changed
            noise = weights**2 @ self.noise**2
        plain = np.einsum("kjp,kjp->kj", columns, columns) + noise
        both = np.stack([plain, plain + np.einsum("kjp,kjp->kj", changed, changed)], axis=1)
        return np.asarray(np.sqrt(np.maximum(both, _MIN_VARIANCE)))


def _rigid_robot(model: DynamicModel) -> RobotModel:
    """A robot with the dynamics of an identified one, without friction; links need not be real."""
    basis = model.basis
    n = model.robot.n
    robot = model.robot
    known = np.isfinite(model.estimate.std) & np.isfinite(model.estimate.value)
    unknown = np.array(model.estimate.names)[~known]
    if unknown.size:
        raise InvalidSamples(
            f"{', '.join(unknown)} are unknown in the model: identify it from a motion that excites"
            " all joints, or drop these parameters (steelyard.identification.essential)"
        )
    pi = model.estimate.value[: len(basis)]
    phi = np.zeros(14 * n)
    phi[: 10 * n : 10] = _SMALL_MASS
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


def _with_known_shares(model: DynamicModel) -> JointFriction:
    """The friction of a model without load shares Fl that are uncertain."""
    friction = model.friction
    estimate = model.estimate
    if not model.law.load:
        return friction
    coefficients = friction.coefficients.copy()
    shares = estimate.parameters.of_kind(ParameterKind.LOAD_SHARE)
    coefficients[-1, estimate.std[shares] >= _MAX_SHARE_STD] = 0.0
    return replace(friction, coefficients=coefficients)


@dataclass(frozen=True, eq=False)
class FrameForce:
    """Force and torque of a contact at a frame.

    Attributes:
        frame: at whose origin the contact acts
        force_base: (3,) [N], in the axes of the base frame
        torque_base: (3,) [Nm], in the axes of the base frame; 0 for a pure force
        std: standard deviations of force and torque, (6,) [N, Nm]; infinite if undetermined
        unexplained: joint torques that no such contact produces, (n,) [Nm or N]
        status: which components the posture determines, a sentence
    """

    frame: str
    force_base: Array
    torque_base: Array
    std: Array
    unexplained: Array
    status: str

    @classmethod
    def of(
        cls,
        robot: RobotModel,
        q: ArrayLike,
        external: ArrayLike,
        *,
        frame: str | None = None,
        kind: Literal["force", "wrench"] = "force",
        torque_std: ArrayLike = 1.0,
    ) -> FrameForce:
        """The contact at a frame that explains external joint torques.

        Args:
            robot: the arm
            q: joint positions, (n,) [rad or m]
            external: torque at the joints, positive along the axes, (n,) [Nm or N]
            frame: at whose origin the contact acts; the flange by default
            kind: 'force' for a force through the frame's origin, 'wrench' for force and torque
            torque_std: standard deviation of the external torques, () or (n,) [Nm or N]
        """
        torque = np.asarray(external, dtype=float)
        std = np.broadcast_to(np.asarray(torque_std, dtype=float), (robot.n,))
        if torque.shape != (robot.n,) or not np.isfinite(torque).all() or not (std > 0).all():
            raise InvalidSamples(
                f"external must be {robot.n} finite numbers and torque_std positive, got {torque}"
                f" and {std}"
            )
        if kind not in ("force", "wrench"):
            raise InvalidSamples(f"kind must be 'force' or 'wrench', got '{kind}'")
        if kind == "force":
            unknowns = 3
        else:
            unknowns = 6
        A = robot.frame_jacobian(q, frame)[:unknowns].T
        value, deviation, undetermined = _minimum_norm_solution(
            A / std[:, None], torque / std, _MIN_LEVER_ARM / std.max()
        )
        full = np.zeros(6)
        full_std = np.zeros(6)
        full[:unknowns] = value
        full_std[:unknowns] = deviation
        name = frame or robot.flange
        unexplained = np.asarray(torque - A @ value)
        return cls(
            name, full[:3], full[3:], full_std, unexplained, _status(name, kind, undetermined)
        )


def _minimum_norm_solution(A: Array, b: Array, smallest: float) -> tuple[Array, Array, Array]:
    """Minimum-norm solution, standard deviations, and undetermined directions, (k, columns)."""
    left, size, right = np.linalg.svd(A, full_matrices=True)
    size = np.concatenate([size, np.zeros(A.shape[1] - len(size))])
    determined = size > smallest
    count = min(A.shape)
    inverse = np.where(determined, 1.0 / np.where(determined, size, 1.0), 0.0)
    value = right.T[:, :count] @ (inverse[:count] * (left.T[:count] @ b))
    deviation = np.sqrt(((right * inverse[:, None]) ** 2).sum(axis=0))
    undetermined = right[~determined]
    involved = (undetermined**2).sum(axis=0) > _MIN_UNKNOWN_SHARE
    return np.asarray(value), np.where(involved, np.inf, deviation), undetermined


def _status(frame: str, kind: str, undetermined: Array) -> str:
    if not len(undetermined):
        return f"this posture determines the whole {kind} at {frame}"
    words = []
    for direction in undetermined:
        if np.abs(direction[:3]).max() > 0.5:
            part = direction[:3]
            what = "force"
        else:
            part = direction[-3:]
            what = "torque"
        numbers = ", ".join(f"{x:.2f}" for x in part / np.linalg.norm(part))
        words.append(f"{what} along ({numbers})")
    return (
        f"this posture does not determine {' and '.join(words)} at {frame} (base axes): assumed"
        " to be zero"
    )
