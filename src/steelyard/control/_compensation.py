"""Feed-forward torque of an arm and its payload for a motion.

    tau = gravity(q) + inertia(q, v, a) + friction(q, v) + offset
    gravity = Y(q, 0, 0) pi,   inertia = (Y(q, v, a) - Y(q, 0, 0)) pi,   pi = pi_empty + J phi

with phi the ten numbers of the payload and J the payload Jacobian (gaz2017 eq. (27)). Gravity uses
the columns of the links, so base parameters suffice; the offset B of a drive is not gravity,
although it acts at rest too. A joint that always slides in the same direction against gravity
carries a constant weight, which is unobservable beside its offset: regrouping adds the masses to B
("B1 + 7.4 m1 + ..."). If links are regrouped into B, all of it counts as gravity, including the
drive's own offset; only their sum is known. Inertia includes rotors, Coriolis and centrifugal
torques. A payload adds

    d tau = W phi + Fl s (|L| - |L_empty|),   cov d tau = G Sigma G',   G = W (1 + Fl s sign(L))

W the payload regressor, Sigma the covariance of phi; the terms with Fl apply if friction grows with
the torque L that a gear transmits. The covariance is that of the payload only: the model error of
the arm adds to it.

Sample by sample: `init`, `step`; the immutable state is the memory of friction (presliding).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array, Indices, Mask, freeze
from steelyard.errors import InvalidInertia, InvalidRobot, InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.inertia import INERTIA, PARAMETER_NAMES, InertialParameters
from steelyard.payload import Payload
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.robot._terms import require_no_terms
from steelyard.robot._transmission import JointFriction
from steelyard.verdict import Aspect, DoubtKind

_KNOWN_BY_COVARIANCE = (DoubtKind.NOT_EXCITED, DoubtKind.TOO_UNCERTAIN)

_CHUNK = 2048  # samples computed at once
_ZERO_TOLERANCE = 1e-12  # of the largest entry of a matrix
_MIN_WEIGHT_SHARE = 1e-3  # of gravity [N/kg]; less is rounding of a joint that slides level


@dataclass(frozen=True, eq=False)
class FeedForward:
    """The torque for the drives to apply, or a part of it, (n,) or (N, n) each [Nm or N].

    Attributes:
        gravity: of links and payload
        inertia: of links, payload and rotors, with Coriolis and centrifugal torques
        friction: of the drives
        offset: constant torque of each drive; part of gravity if it is unobservable beside a weight
        std: standard deviation of the sum by the payload's covariance; NaN if the payload has none,
            infinite if a number that matters was not excited; None if it was not computed
    """

    gravity: Array
    inertia: Array
    friction: Array
    offset: Array
    std: Array | None = None

    def __post_init__(self) -> None:
        freeze(self, "gravity", "inertia", "friction", "offset", "std")

    @property
    def total(self) -> Array:
        """The sum of all parts, (n,) or (N, n) [Nm or N]."""
        return np.asarray(self.gravity + self.inertia + self.friction + self.offset)


@dataclass(frozen=True, eq=False)
class Compensator:
    """Feed-forward torque of an arm and of its payload.

    Attributes:
        model: the arm, identified or described
        payload: in the flange frame; None for none
        body: of the payload
    """

    model: DynamicModel | RobotModel
    payload: Payload | InertialParameters | None = None
    body: InertialParameters = field(init=False)
    _arm: _CompensatedArm = field(init=False, repr=False)

    def __post_init__(self) -> None:
        arm: _CompensatedArm
        if isinstance(self.model, RobotModel):
            arm = _DescribedArm.of(self.model, self.payload)
        else:
            arm = _IdentifiedArm.of(self.model, self.payload)
        object.__setattr__(self, "body", arm.body)
        object.__setattr__(self, "_arm", arm)

    @property
    def robot(self) -> RobotModel:
        """The kinematics of the arm."""
        return self._arm.robot

    def slow_friction(self, speed: float) -> Array:
        """The friction of each drive at a low speed, without that of load, (n,) [Nm or N].

        Args:
            speed: [rad/s or m/s]
        """
        ones = np.ones(self.robot.n)
        columns = self._friction.law.at(speed * ones, s=self._arm.slow_direction)
        return np.asarray(np.maximum((self._friction.coefficients * columns).sum(axis=0), 0.0))

    @property
    def _friction(self) -> JointFriction:
        return self._arm.friction

    def init(self) -> Array | None:
        """The state before the first sample."""
        return None

    def step(
        self, state: Array | None, q: ArrayLike, v: ArrayLike, a: ArrayLike
    ) -> tuple[Array, FeedForward]:
        """The next state, and the torque of one sample, (n,) each.

        Args:
            state: from `init` or `step`
            q: joint positions, (n,) [rad or m]
            v: joint velocities, (n,) [rad/s or m/s]
            a: joint accelerations, (n,) [rad/s^2 or m/s^2]
        """
        motion = np.array([[q, v, a]], dtype=float)
        if motion.shape != (1, 3, self.robot.n) or not np.isfinite(motion).all():
            raise InvalidSamples(
                f"q, v and a of a sample of {self.robot.name} must be {self.robot.n} finite numbers"
                " each"
            )
        state, parts = self._parts(state, motion)
        return state, FeedForward(*(part[0] for part in parts))

    def batch(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> FeedForward:
        """The torque along a motion in the order of time, (N, n) each.

        Args:
            q: joint positions, (N, n) [rad or m]
            v: joint velocities, (N, n) [rad/s or m/s]
            a: joint accelerations, (N, n) [rad/s^2 or m/s^2]
        """
        motion = _checked_motion(self.robot, q, v, a)
        state = self.init()
        done = []
        for start in range(0, len(motion), _CHUNK):
            state, parts = self._parts(state, motion[start : start + _CHUNK])
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
        if np.ndim(q) == 1:
            return np.asarray(tau[0])
        return tau

    def payload_torque(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> FeedForward:
        """The torque that the payload adds to each joint, with its standard deviation.

        Args:
            q: joint positions, (N, n) [rad or m]
            v: joint velocities, (N, n) [rad/s or m/s]
            a: joint accelerations, (N, n) [rad/s^2 or m/s^2]
        """
        motion = _checked_motion(self.robot, q, v, a)
        zero = np.zeros_like(motion[:, 1])
        W = self.robot.payload_regressor(motion[:, 0], motion[:, 1], motion[:, 2])
        gravity = self.robot.payload_regressor(motion[:, 0], zero, zero) @ self.body.vector
        inertia = W @ self.body.vector - gravity
        friction = zero
        G = W
        if self._friction.law.load:
            friction, slope = self._load_friction(motion, W)
            G = W + slope
        if isinstance(self.payload, Payload):
            sigma = self.payload.covariance
        else:
            sigma = None
        return FeedForward(gravity, inertia, friction, zero, _std(G, sigma))

    def _parts(self, state: Array | None, motion: Array) -> tuple[Array, tuple[Array, ...]]:
        """The next state, and the parts of a few samples, (k, n) each."""
        q = motion[:, 0]
        v = motion[:, 1]
        if state is None:
            state = self._friction.init(q[0])
        gravity, rigid, offset, load = self._arm.torques(motion)
        state, friction = self._friction.along(state, q, v, load)
        return state, (gravity, rigid - gravity, friction, offset)

    def _load_friction(self, motion: Array, W: Array) -> tuple[Array, Array]:
        """Friction that the payload adds, (N, n), and its derivative, (N, n, 10)."""
        drives = self._friction.transmission
        friction = self._friction
        columns = friction.law.columns(
            drives.to_drives(motion[:, 0]), drives.to_drives(motion[:, 1])
        )
        share = friction.coefficients[-1] * columns[0]
        joint_load = self._arm.torques(motion)[3]
        load = drives.load(joint_load)
        empty = drives.load(joint_load - W @ self.body.vector)
        of_each = drives.load(W.transpose(0, 2, 1)) * (share * np.sign(load))[:, None]
        added = drives.to_joints(share * (np.abs(load) - np.abs(empty)))
        return added, drives.to_joints(of_each).transpose(0, 2, 1)


def flange_body(
    robot: RobotModel, payload: Payload | InertialParameters | None, *, inertia_needed: bool = True
) -> InertialParameters:
    """The body of a payload in the robot's flange frame.

    A payload in another frame, or one that was not weighed well, raises an error. Only the name of
    the frame is compared. A body without a covariance is not checked. None gives ten zeros.

    Args:
        robot: the arm
        payload: on its flange
        inertia_needed: whether to refuse a payload with unknown inertia; else the inertia is taken
            as zero, as in gaz2017 after weighing at rest
    """
    if payload is None:
        return InertialParameters.nothing(robot.flange)
    if isinstance(payload, Payload):
        body = payload.body
    else:
        body = payload
    if body.frame != robot.flange:
        raise InvalidRobot(
            f"the payload is in frame '{body.frame}', the flange of {robot.name} is"
            f" '{robot.flange}': express the payload in this frame with in_frame()"
        )
    if isinstance(payload, Payload):
        _require_well_weighed(robot, payload, inertia_needed=inertia_needed)
    return body


def _require_well_weighed(robot: RobotModel, payload: Payload, *, inertia_needed: bool) -> None:
    aspects = {Aspect.MASS, Aspect.CENTRE}
    if inertia_needed:
        aspects.add(Aspect.INERTIA)
    blocking = [
        doubt
        for doubt in payload.verdict.doubts
        if doubt.blocks and aspects & {*doubt.concerns} and doubt.kind not in _KNOWN_BY_COVARIANCE
    ]
    if blocking:
        reasons = "; ".join(doubt.words for doubt in blocking)
        raise InvalidInertia(
            f"the payload is doubtful: {reasons}; weigh it again, or pass payload.body to use it"
            " in spite of the doubts"
        )
    unknown = ~np.isfinite(payload.std)
    if unknown.any():
        counts = np.abs(ParameterBasis.of(robot).payload_jacobian).max(axis=0) > 0
        counts[INERTIA] &= inertia_needed
        missing = np.array(PARAMETER_NAMES)[unknown & counts]
        if len(missing):
            raise InvalidInertia(
                f"the payload's {', '.join(missing)} were not excited: weigh it with a richer"
                " motion, or pass payload.body if these numbers are known to be right"
            )
    words: str | None = payload.body.why_not_physical
    if unknown.any():  # then only the mass can be checked
        massless = np.isfinite(payload.std[0]) and payload.body.mass <= 0
        if massless:
            words = f"the mass is {payload.body.mass:.4g} kg"
        else:
            words = None
    if words:
        raise InvalidInertia(
            f"the payload is not that of a real body: {words}; weigh it again, or pass payload.body"
            " to use it nevertheless"
        )


class _CompensatedArm(Protocol):
    """An arm with its payload, whose torques are computed."""

    @property
    def robot(self) -> RobotModel:
        """The arm without the payload."""

    @property
    def body(self) -> InertialParameters:
        """Of the payload, in the flange frame."""

    @property
    def friction(self) -> JointFriction:
        """Of its drives."""

    @property
    def slow_direction(self) -> Array | None:
        """Direction s of slow friction, (n,); None where a drive smooths the sign itself."""

    def torques(self, motion: Array) -> tuple[Array, Array, Array, Array]:
        """Gravity; links and rotors; offset; load of the gears: (k, n) each [Nm or N]."""

    def gravity(self, q: Array) -> Array:
        """Of links and payload, (k, n) [Nm or N]."""


class _IdentifiedArm(NamedTuple):
    """Base parameters of an identified arm with its payload, and indices of their groups."""

    robot: RobotModel
    body: InertialParameters
    friction: JointFriction
    theta: Array
    columns: Indices
    links: Indices
    weight: Indices
    rigid: Indices
    offsets: Indices

    @classmethod
    def of(
        cls, model: DynamicModel, payload: Payload | InertialParameters | None
    ) -> _IdentifiedArm:
        body = flange_body(model.robot, payload)
        require_no_terms(model.robot, "compensation")
        theta = (
            model.estimate.value[: len(model.basis)] + model.basis.payload_jacobian @ body.vector
        )
        parameters = model.basis.parameters
        is_weight = _holds_weight(model)
        links = np.flatnonzero(parameters.links)
        return cls(
            model.robot,
            body,
            model.friction,
            theta,
            model.basis.independent,
            links,
            weight=np.concatenate([links, np.flatnonzero(is_weight)]),
            rigid=np.flatnonzero(parameters.rigid | is_weight),
            offsets=np.flatnonzero(parameters.offsets & ~is_weight),
        )

    @property
    def slow_direction(self) -> Array:
        return np.ones(self.robot.n)

    def torques(self, motion: Array) -> tuple[Array, Array, Array, Array]:
        Y = self.robot.regressor(motion[:, 0], motion[:, 1], motion[:, 2])[:, :, self.columns]
        rigid, offset, load = (
            Y[:, :, which] @ self.theta[which] for which in (self.rigid, self.offsets, self.links)
        )
        return self.gravity(motion[:, 0]), rigid, offset, load

    def gravity(self, q: Array) -> Array:
        rest = np.zeros_like(q)
        Y = self.robot.regressor(q, rest, rest)[:, :, self.columns[self.weight]]
        return np.asarray(Y @ self.theta[self.weight])


class _DescribedArm(NamedTuple):
    """Links, payload, rotors and offsets of an arm whose links and drives are given."""

    robot: RobotModel
    body: InertialParameters
    loaded: RobotModel

    @classmethod
    def of(cls, robot: RobotModel, payload: Payload | InertialParameters | None) -> _DescribedArm:
        body = flange_body(robot, payload)
        return cls(robot, body, robot.with_payload(body))

    @property
    def friction(self) -> JointFriction:
        return self.robot.drive.joint_friction

    @property
    def slow_direction(self) -> None:
        return None

    def torques(self, motion: Array) -> tuple[Array, Array, Array, Array]:
        q = motion[:, 0]
        v = motion[:, 1]
        a = motion[:, 2]
        drive = self.robot.drive
        links = self.loaded.inverse_dynamics(q, v, a)
        rotors = drive.transmission.to_joints(drive.rotor_inertia * drive.transmission.to_drives(a))
        offset = np.tile(drive.transmission.to_joints(drive.offset), (len(q), 1))
        return self.gravity(q), links + rotors, offset, links

    def gravity(self, q: Array) -> Array:
        return self.loaded.gravity_torque(q)


def _checked_motion(robot: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Position, velocity and acceleration of each sample, (N, 3, n)."""
    shapes = {np.shape(signal) for signal in (q, v, a)}
    shape = next(iter(shapes))
    if len(shapes) > 1 or len(shape) != 2 or shape[1] != robot.n or not shape[0]:
        raise InvalidSamples(
            f"q, v and a of a motion of {robot.name} must have the shape (N, {robot.n}), got"
            f" {', '.join(str(np.shape(signal)) for signal in (q, v, a))}"
        )
    motion = np.stack([np.asarray(signal, dtype=float) for signal in (q, v, a)], axis=1)
    if not np.isfinite(motion).all():
        raise InvalidSamples("q, v and a of a motion must be finite")
    return motion


def _holds_weight(model: DynamicModel) -> Mask:
    """Which base parameters are offsets into which weights of links are regrouped."""
    by_links = np.abs(model.basis.K[:, : 10 * model.robot.n]).max(axis=1)
    carries_weight = by_links > _MIN_WEIGHT_SHARE * np.linalg.norm(model.robot.gravity_base)
    return np.asarray(model.basis.parameters.offsets & carries_weight)


def _std(G: Array, sigma: Array | None) -> Array:
    """Standard deviation of G phi, (N, n); infinite if a number that matters is unknown."""
    if sigma is None:
        return np.full(G.shape[:2], np.nan)
    known = np.isfinite(np.diag(sigma))
    part = G[:, :, known]
    variance = np.einsum("nji,ik,njk->nj", part, sigma[np.ix_(known, known)], part)
    counts = (np.abs(G[:, :, ~known]) > _ZERO_TOLERANCE * np.abs(G).max()).any(axis=-1)
    return np.where(counts, np.inf, np.sqrt(np.maximum(variance, 0.0)))
