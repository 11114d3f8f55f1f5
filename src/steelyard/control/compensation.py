"""The torque that an arm needs for a motion, with what it carries: feed-forward for a controller.

    tau = gravity(q) + inertia(q, v, a) + friction(q, v) + offset
    gravity = Y(q, 0, 0) pi,   inertia = (Y(q, v, a) - Y(q, 0, 0)) pi,   pi = pi_empty + J phi

with phi the ten numbers of the payload and J the payload Jacobian (gaz2017 eq. (27)). Gravity takes the
columns of the links, so base parameters suffice; the offset B of a drive is not gravity, though it does not
vanish at rest. A joint that slides always the same way against gravity carries a constant weight, which no
motion tells from its offset: regrouping adds the masses to B ("B1 + 7.4 m1 + ..."). Where columns of links
reach B, all of it counts as gravity, the drive's own offset included; only their sum is known. Inertia holds
rotors, Coriolis and centrifugal torques too. What a payload changes is

    d tau = W phi (1 + Fl s sign(L)),   cov d tau = G Sigma G',   G = d(d tau) / d phi

W the payload regressor, Sigma the covariance of phi; the bracket is there only where friction grows with the
torque L that a gear carries. The covariance is that of the payload alone: the arm's own model error comes on
top of it, with the payload or without.

Sample by sample: `init`, `step`; the state is a value. It holds what friction remembers (presliding).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.arrays import Array
from steelyard.control.carried import flange_body
from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.identification.problem import kinds
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.robot import RobotModel
from steelyard.torque.online.rows import OnlineRows

_CHUNK = 2048
_ROUNDING = 1e-12
_HARDLY = 1e-3  # of gravity [N/kg]: a joint that slides level but for rounding
_STEP = 1e-6  # of the ten numbers [SI], for the slope of friction


class CompensationState(NamedTuple):
    """What is kept from sample to sample.

    Attributes:
        memory: direction z and position u of the drives for friction that remembers, (2, n); None before
            the first sample
    """

    memory: Array | None = None


@dataclass(frozen=True, eq=False)
class FeedForward:
    """The torque that the drives shall apply, and its parts, (n,) or (N, n) each [Nm or N].

    Attributes:
        gravity: holds links and payload
        inertia: moves links, payload and rotors, Coriolis and centrifugal torques with it
        friction: what friction takes
        offset: constant torque of each drive; part of gravity where no motion tells it from a weight
    """

    gravity: Array
    inertia: Array
    friction: Array
    offset: Array

    def __post_init__(self) -> None:
        for item in fields(self):
            array = np.array(getattr(self, item.name), dtype=float)
            array.setflags(write=False)
            object.__setattr__(self, item.name, array)

    @property
    def total(self) -> Array:
        """The sum of all parts, (n,) or (N, n) [Nm or N]."""
        return np.asarray(self.gravity + self.inertia + self.friction + self.offset)


@dataclass(frozen=True, eq=False)
class TorqueChange:
    """What changes in torque because of a payload, (N, n) each [Nm or N].

    Attributes:
        gravity: more torque to hold it
        inertia: more torque to move it
        friction: more friction because gears carry more; 0 where friction does not know of load
        std: standard deviation of the sum, from the payload's covariance; NaN where the payload has none,
            infinite where a number that counts was not excited
    """

    gravity: Array
    inertia: Array
    friction: Array
    std: Array

    @property
    def total(self) -> Array:
        """The sum of all parts, (N, n) [Nm or N]."""
        return np.asarray(self.gravity + self.inertia + self.friction)


@dataclass(frozen=True, eq=False)
class Compensator:
    """Feed-forward torque of an arm and what it carries.

    Attributes:
        model: the empty arm, identified or described
        payload: what it carries, in the flange frame; None for nothing
    """

    model: DynamicModel | RobotModel
    payload: Payload | InertialParameters | None = None
    body: InertialParameters = field(init=False)
    _arm: _IdentifiedArm | _DescribedArm = field(init=False, repr=False)

    def __post_init__(self) -> None:
        body = flange_body(self.robot, self.payload)
        arm: _IdentifiedArm | _DescribedArm
        if isinstance(self.model, RobotModel):
            arm = _DescribedArm.of(self.model, body)
        else:
            arm = _IdentifiedArm.of(self.model, body)
        object.__setattr__(self, "body", body)
        object.__setattr__(self, "_arm", arm)

    @property
    def robot(self) -> RobotModel:
        """The kinematics of the arm."""
        return self.model if isinstance(self.model, RobotModel) else self.model.robot

    @property
    def mixing(self) -> Array | None:
        """U of drive motion u = U q, (n, n); drives take U' f at the joints. None without coupling."""
        C = self.robot.drive.coupling
        return None if C is None else np.asarray(C / np.diag(C)[:, None])

    def slow_friction(self, speed: float) -> Array:
        """The friction of each drive at a low speed, without what the load adds, (n,) [Nm or N].

        Args:
            speed: positive, the same for all, [rad/s or m/s]
        """
        return np.maximum(self._arm.slow_friction(speed), 0.0)

    def init(self) -> CompensationState:
        """The state before the first sample."""
        return CompensationState()

    def step(
        self, state: CompensationState, q: ArrayLike, v: ArrayLike, a: ArrayLike
    ) -> tuple[CompensationState, FeedForward]:
        """The next state, and the torque of one sample, (n,) each.

        Args:
            state: as `init` or `step` gave it
            q: joint positions, (n,) [rad or m]
            v: joint velocities, (n,) [rad/s or m/s]
            a: joint accelerations, (n,) [rad/s^2 or m/s^2]
        """
        motion = np.array([[q, v, a]], dtype=float)
        if motion.shape != (1, 3, self.robot.n) or not np.isfinite(motion).all():
            raise InvalidSamples(
                f"a sample of {self.robot.name} is {self.robot.n} finite numbers each for q, v and a"
            )
        parts, memory = self._arm.parts(motion, state.memory)
        return CompensationState(memory), FeedForward(*(part[0] for part in parts))

    def batch(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> FeedForward:
        """The torque along a motion in the order of time, (N, n) each.

        Args:
            q: joint positions, (N, n) [rad or m]
            v: joint velocities, (N, n) [rad/s or m/s]
            a: joint accelerations, (N, n) [rad/s^2 or m/s^2]
        """
        motion = _checked_motion(self.robot, q, v, a)
        memory: Array | None = None
        done = []
        for start in range(0, len(motion), _CHUNK):
            parts, memory = self._arm.parts(motion[start : start + _CHUNK], memory)
            done.append(parts)
        return FeedForward(*(np.concatenate(part) for part in zip(*done, strict=True)))

    def gravity(self, q: ArrayLike) -> Array:
        """The torque that holds arm and payload against gravity, (N, n) or (n,) [Nm or N].

        Args:
            q: joint positions, (N, n) or (n,) [rad or m]
        """
        rows = np.atleast_2d(np.asarray(q, dtype=float))
        checked = _checked_motion(self.robot, rows, np.zeros_like(rows), np.zeros_like(rows))[:, 0]
        tau = self._arm.gravity(checked)
        return tau[0] if np.ndim(q) == 1 else tau


def loaded_robot(robot: RobotModel, payload: Payload | InertialParameters) -> RobotModel:
    """A new model of the arm with the payload as part of its last link; the given one stays as it is.

    Args:
        robot: the empty arm
        payload: in the flange frame
    """
    return robot.with_payload(flange_body(robot, payload))


def torque_change(
    model: DynamicModel | RobotModel,
    payload: Payload | InertialParameters,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
) -> TorqueChange:
    """What changes in the torque of each joint because of a payload, with its standard deviation.

    Args:
        model: the empty arm, identified or described
        payload: in the flange frame
        q: joint positions, in the order of time, (N, n) [rad or m]
        v: joint velocities, (N, n) [rad/s or m/s]
        a: joint accelerations, (N, n) [rad/s^2 or m/s^2]
    """
    empty = Compensator(model)
    robot = empty.robot
    body = flange_body(robot, payload)
    motion = _checked_motion(robot, q, v, a)
    q, v, a = motion[:, 0], motion[:, 1], motion[:, 2]
    at_rest = robot.payload_regressor(q, np.zeros_like(v), np.zeros_like(a))
    W = robot.payload_regressor(q, v, a)

    def friction(phi: Array) -> Array:
        body = InertialParameters.from_vector(phi, robot.flange)
        return Compensator(model, body).batch(q, v, a).friction

    carries = _knows_load(model)
    extra = friction(body.vector) - friction(np.zeros(10)) if carries else np.zeros_like(q)
    G = W + _slope(friction, body.vector) if carries else W
    sigma = payload.covariance if isinstance(payload, Payload) else None
    return TorqueChange(at_rest @ body.vector, (W - at_rest) @ body.vector, extra, _std(G, sigma))


class _IdentifiedArm(NamedTuple):
    """The parts of an identified arm's torque: rows of `OnlineRows`, parameters with the payload in them."""

    rows: OnlineRows
    unknowns: Array
    theta: Array
    weight: NDArray[np.intp]
    rigid: NDArray[np.intp]
    offsets: NDArray[np.intp]
    friction: NDArray[np.intp]
    viscous: NDArray[np.intp]

    @classmethod
    def of(cls, model: DynamicModel, body: InertialParameters) -> _IdentifiedArm:
        rows = OnlineRows.of(model)
        unknowns = np.concatenate([body.vector, model.estimate.value[rows.theta_order]])
        kind = kinds(model.estimate.names)
        is_weight = _holds_weight(model, kind)
        offsets = np.flatnonzero((kind == "B") & ~is_weight)
        friction = np.flatnonzero(np.isin(kind, ("Fc", "Fv", "Fs", "Fl")))
        rigid = np.flatnonzero(~np.isin(kind, ("Fc", "Fv", "Fs", "Fl", "B")) | is_weight)
        viscous = np.flatnonzero(kind == "Fv")
        weight = np.concatenate([rows.links, np.flatnonzero(is_weight)])
        return cls(rows, unknowns, rows.theta(unknowns), weight, rigid, offsets, friction, viscous)

    def parts(self, motion: Array, memory: Array | None) -> tuple[tuple[Array, ...], Array | None]:
        U = self.rows.mixing
        if memory is None:
            first = motion[0, 0] if U is None else U @ motion[0, 0]
            memory = np.array([np.zeros_like(first), first])
        Y, memory = self.rows.regressor(motion, memory, self.unknowns)
        gravity = self.gravity(motion[:, 0])
        inertia = Y[:, :, self.rigid] @ self.theta[self.rigid] - gravity
        friction = Y[:, :, self.friction] @ self.theta[self.friction]
        return (gravity, inertia, friction, Y[:, :, self.offsets] @ self.theta[self.offsets]), memory

    def gravity(self, q: Array) -> Array:
        rest = np.zeros_like(q)
        Y = self.rows.robot.regressor(q, rest, rest)[:, :, self.rows.columns[self.weight]]
        return np.asarray(Y @ self.theta[self.weight])

    def slow_friction(self, speed: float) -> Array:
        law, n, p = self.rows.law, self.rows.robot.n, len(self.rows.columns)
        Fc, Fv = self.theta[self.rows.coulomb], self.theta[self.viscous]
        Fs = self.theta[p : p + n] if law.stribeck else np.zeros(n)
        exponent = law.exponent if law.curved else np.ones(n)
        return np.asarray(Fc + Fv * speed**exponent + Fs * np.exp(-((speed / law.stribeck_speed) ** 2)))


class _DescribedArm(NamedTuple):
    """The parts of the torque of an arm whose links and drives are given."""

    robot: RobotModel
    plain: RobotModel

    @classmethod
    def of(cls, robot: RobotModel, body: InertialParameters) -> _DescribedArm:
        loaded = robot.with_payload(body)
        drive = replace(robot.drive, offset=np.zeros(robot.n))
        return cls(loaded, loaded.with_drive(drive))

    def parts(self, motion: Array, memory: Array | None) -> tuple[tuple[Array, ...], Array | None]:
        q, v, a = motion[:, 0], motion[:, 1], motion[:, 2]
        gravity = self.gravity(q)
        links = self.robot.inverse_dynamics(q, v, a)
        friction = self.plain.drive.torque(v, np.zeros_like(a), load=links)
        rotors = self.plain.drive.torque(v, a, load=links) - friction
        offset = self.robot.drive.torque(v, a, load=links) - rotors - friction
        return (gravity, links + rotors - gravity, friction, offset), memory

    def gravity(self, q: Array) -> Array:
        return self.robot.gravity_torque(q)

    def slow_friction(self, speed: float) -> Array:
        return self.plain.drive.friction(np.full(self.robot.n, speed))


def _checked_motion(robot: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Position, velocity and acceleration of each sample, (N, 3, n)."""
    shapes = {np.shape(signal) for signal in (q, v, a)}
    shape = next(iter(shapes))
    if len(shapes) > 1 or len(shape) != 2 or shape[1] != robot.n or not shape[0]:
        raise InvalidSamples(
            f"a motion of {robot.name} is (N, {robot.n}) each for q, v and a, got"
            f" {', '.join(str(np.shape(signal)) for signal in (q, v, a))}"
        )
    motion = np.stack([np.asarray(signal, dtype=float) for signal in (q, v, a)], axis=1)
    if not np.isfinite(motion).all():
        raise InvalidSamples("a motion must be finite numbers")
    return motion


def _holds_weight(model: DynamicModel, kind: NDArray[np.str_]) -> NDArray[np.bool_]:
    """Which parameters are offsets that hold the weight of links, because these slide against gravity."""
    reach = np.zeros(len(kind))
    reach[: len(model.basis)] = np.abs(model.basis.K[:, : 10 * model.robot.n]).max(axis=1)
    return np.asarray((kind == "B") & (reach > _HARDLY * np.linalg.norm(model.robot.gravity_base)))


def _knows_load(model: DynamicModel | RobotModel) -> bool:
    if isinstance(model, RobotModel):
        return bool(model.drive.load_coulomb.any())
    return model.law.load


def _slope(friction: Callable[[Array], Array], phi: Array) -> Array:
    """How friction changes with each of the ten numbers, (N, n, 10)."""
    steps = _STEP * np.eye(10)
    columns = [(friction(phi + step) - friction(phi - step)) / (2 * _STEP) for step in steps]
    return np.stack(columns, axis=-1)


def _std(G: Array, sigma: Array | None) -> Array:
    """Standard deviation of G phi, (N, n); infinite where a number that counts has no finite variance."""
    if sigma is None:
        return np.full(G.shape[:2], np.nan)
    known = np.isfinite(np.diag(sigma))
    part = G[:, :, known]
    variance = np.einsum("nji,ik,njk->nj", part, sigma[np.ix_(known, known)], part)
    counts = (np.abs(G[:, :, ~known]) > _ROUNDING * np.abs(G).max()).any(axis=-1)
    return np.where(counts, np.inf, np.sqrt(np.maximum(variance, 0.0)))
