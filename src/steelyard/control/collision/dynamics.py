"""What an observer needs to know of an arm: links and rotors as a rigid arm, and friction step by step.

An identified arm knows base parameters pi = K phi only. Torques depend on phi through pi alone, so any phi
with K phi = pi moves like the arm (its links need not be real bodies):

    phi = phi_0 + E (pi - K phi_0),   E puts base parameters at the columns they are named after

with a little mass in every link of phi_0, because Pinocchio keeps first moments as mass times centre. All of
phi belongs together: masses of links that slide against gravity regroup into offsets, so B is that of phi,
too, not that of pi. A payload adds to the last link.

Friction is that of `steelyard.robot.friction`, or of the robot's own drives. Friction that grows
with the torque L that a gear carries takes L from the measured torque, contact included:

    tau = L + f_0 + Fl |L| s   =>   L = (tau - f_0) / (1 + Fl s sign(tau - f_0))

At rest and where a joint turns round, friction can be anything between -F and F = Fc + Fs + Fl |L| (and the
speed law at the speed w_0, steep for a small exponent), whatever the law says: F s. What it may be more or
less than that, times the weight of rest

    exp(-|w| / w_0),   w speed of the drive,   w_0 = 2 widths, or 3 widths in the filter's time (presliding)

is the slack that no observer can tell from a contact. Where the direction changes between two samples, nobody
knows when: the mean of both may be wrong by half the difference, which counts as slack, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from steelyard.arrays import Array
from steelyard.control.carried import flange_body
from steelyard.control.collision.spread import ModelSpread
from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.identification.problem import kinds
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.robot import RobotModel
from steelyard.robot.friction import Direction
from steelyard.robot.momentum import MomentumDynamics

_LITTLE_MASS = 0.1  # [kg]
_SLIDING_WIDTHS = 3.0
_BLURRED_WIDTHS = 2.0
_SLOW = 0.01  # [rad/s]
_UNCERTAIN_SHARE = 0.1  # standard deviation of Fl beyond which the gear's load is not used


@dataclass(frozen=True, eq=False)
class JointFriction:
    """Friction of the drives, one instant at a time.

    Attributes:
        direction: how it treats rest and reversal, as in `FrictionLaw`
        width: of the direction, (n,) [rad/s, or rad for presliding]
        coulomb: Fc, (n,) [Nm]
        viscous: Fv, (n,)
        exponent: alpha, (n,)
        offset: B, (n,) [Nm]
        stribeck: Fs, (n,) [Nm]
        stribeck_speed: vs, (n,) [rad/s]
        share: Fl, (n,)
        smooth_speed: whether |v|^alpha is multiplied by s instead of sign(v)
        mixing: U of drive motion u = U q, (n, n); None when each motor turns one joint
    """

    direction: Direction
    width: Array
    coulomb: Array
    viscous: Array
    exponent: Array
    offset: Array
    stribeck: Array
    stribeck_speed: Array
    share: Array
    smooth_speed: bool
    mixing: Array | None
    _at_rest: Array = field(init=False, repr=False)
    _has_stribeck: bool = field(init=False, repr=False)
    _has_share: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_at_rest", np.abs(self.coulomb) + np.abs(self.stribeck))
        object.__setattr__(self, "_has_stribeck", bool(self.stribeck.any()))
        object.__setattr__(self, "_has_share", bool(self.share.any()))

    @property
    def is_absent(self) -> bool:
        """Whether the model knows no friction at all."""
        values = (self.coulomb, self.viscous, self.stribeck, self.share)
        return not any(np.any(x) for x in values)

    @property
    def friction_at_rest(self) -> Array:
        """Fc + Fs of each drive, (n,) [Nm]."""
        return self._at_rest

    def init(self, q: Array, v: Array) -> Array:
        """What it remembers before the first step, (2, n): direction z and position u of the drives.

        Args:
            q: joint positions, (n,) [rad or m]
            v: joint velocities, (n,) [rad/s or m/s]; slower ones than 0.01 leave the direction open
        """
        u, speed = (q, v) if self.mixing is None else (self.mixing @ q, self.mixing @ v)
        return np.array([np.sign(speed) * (np.abs(speed) > _SLOW), u])

    def rest_speed(self, filter_s: float) -> Array:
        """The speed below which friction is not known, (n,) [rad/s].

        Args:
            filter_s: time constant of the observer's filter, [s]
        """
        if self.direction == "presliding":
            return np.asarray(_SLIDING_WIDTHS * self.width / filter_s)
        return np.maximum(_BLURRED_WIDTHS * self.width if self.direction != "exact" else 0.0, _SLOW)

    def step(self, memory: Array, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array]:
        """What it remembers next, the torque that it takes at the joints, and the most it takes at rest.

        Their shapes are (2, n), (n,) [Nm] and (n,) [Nm]; the last one belongs to the drives.

        Args:
            memory: as `init` or `step` gave it
            q: joint positions, (n,) [rad or m]
            v: joint velocities, (n,) [rad/s or m/s]
            tau: torque that the drives apply to the joints, (n,) [Nm or N]
        """
        U = self.mixing
        u, speed = (q, v) if U is None else (U @ q, U @ v)
        memory = self._next(memory, u, speed)
        s = memory[0]
        f = self.coulomb * s + self._speed_part(s, speed) + self.offset
        most = self._at_rest
        if self._has_stribeck:
            f += self.stribeck * np.exp(-((speed / self.stribeck_speed) ** 2)) * s
        if self._has_share:
            carried = (tau if U is None else np.linalg.solve(U.T, tau)) - f
            slope = self.share * s * np.sign(carried)
            carried = carried / (1.0 + slope)
            f += slope * carried
            most = most + np.abs(self.share * carried)
        return memory, f if U is None else f @ U, most

    def slack(self, before: Array, s: Array, v: Array, most: Array, rest_speed: Array) -> Array:
        """How much less and how much more than the law friction may be at the joints, (2, n) [Nm].

        Args:
            before: direction of the drives one sample earlier, (n,)
            s: direction that the law holds for the drives, (n,)
            v: joint velocities, (n,) [rad/s or m/s]
            most: friction at rest, at the drives, (n,) [Nm]
            rest_speed: as `rest_speed` gave it, (n,) [rad/s]
        """
        U = self.mixing
        speed = v if U is None else U @ v
        weight = (most + np.abs(self.viscous) * rest_speed**self.exponent) * np.exp(
            -np.abs(speed) / rest_speed
        )
        turned = 0.5 * most * np.abs(s - before)
        less, more = weight * (1.0 + s) + turned, weight * (1.0 - s) + turned
        if U is None:
            return np.array([less, more])
        along, against = np.maximum(U, 0.0), np.maximum(-U, 0.0)
        return np.array([less @ along + more @ against, more @ along + less @ against])

    def _speed_part(self, s: Array, speed: Array) -> Array:
        size = np.abs(speed) ** self.exponent
        return self.viscous * size * (s if self.smooth_speed else np.sign(speed))

    def _next(self, memory: Array, u: Array, speed: Array) -> Array:
        if self.direction == "presliding":
            way = u - memory[1]
            kept = np.exp(-np.abs(way) / self.width)
            return np.array([kept * memory[0] + np.sign(way) * (1.0 - kept), u])
        if self.direction == "smooth":
            return np.array([np.tanh(speed / self.width), u])
        s = np.sign(speed)
        return np.array([np.where(np.abs(speed) < self.width, 0.0, s) if self.direction == "band" else s, u])


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
    U = _mixing(robot)
    rotor = robot.drive.rotor_inertia
    inertia = np.diag(rotor) if U is None else U.T @ (rotor[:, None] * U)
    rigid = MomentumDynamics(robot, inertia)
    if isinstance(model, RobotModel):
        return ArmDynamics(rigid, _of_drive(robot), None)
    return ArmDynamics(rigid, _of_law(model, offset), ModelSpread.of(model, payload))


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


def _mixing(robot: RobotModel) -> Array | None:
    C = robot.drive.coupling
    return None if C is None else np.asarray(C / np.diag(C)[:, None])


def _of_law(model: DynamicModel, offset: Array) -> JointFriction:
    law, estimate = model.law, model.estimate
    n = model.robot.n
    kind = kinds(estimate.names)
    found = {
        name: estimate.value[kind == name] if (kind == name).any() else np.zeros(n)
        for name in ("Fc", "Fv", "Fs", "Fl")
    }
    share = found["Fl"]
    if law.load:
        share = np.where(estimate.std[kind == "Fl"] < _UNCERTAIN_SHARE, share, 0.0)
    return JointFriction(
        law.direction,
        law.width,
        found["Fc"],
        found["Fv"],
        law.exponent if law.curved else np.ones(n),
        offset,
        found["Fs"],
        law.stribeck_speed,
        share,
        False,
        _mixing(model.robot),
    )


def _of_drive(robot: RobotModel) -> JointFriction:
    drive = robot.drive
    return JointFriction(
        "smooth" if drive.sign_width > 0 else "exact",
        np.full(robot.n, drive.sign_width or 1.0),
        drive.coulomb,
        drive.viscous,
        drive.exponent,
        drive.offset,
        drive.stribeck,
        drive.stribeck_speed,
        drive.load_coulomb,
        True,
        _mixing(robot),
    )
