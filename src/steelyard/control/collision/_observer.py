"""External torque without a torque sensor: the generalised-momentum observer and two others.

From the balance of momentum (gaz2017 eq. (48), `steelyard.robot._momentum`)

    dp/dt = tau + tau_external - f + C' v - g

the residual r = K (p - integral(tau - f + C' v - g + r)) follows dr/dt = K (tau_external - r): it
is the external torque after a first-order filter of K 1/s, without acceleration and without
inverting M. Between two samples, h apart, the mean external torque is

    e = (p_1 - p_0) / h - (b_0 + b_1) / 2,      b = tau - f + C' v - g

and the pole of the filter is integrated exactly, so any h is stable, even if it varies:

    r_1 = exp(-K h) r_0 + (1 - exp(-K h)) e

The other two share filter and interface and differ in e only:

    inverse-dynamics   e = M a + C v + g + f - tau, with a = (v_1 - v_0) / h   joint torques, (n,)
    energy             e = (E_1 - E_0) / h - v' (tau - f)                      power, (1,) [W]

Power vanishes at rest and does not tell the joint. Positive r pushes along the joint's axis.

At rest and at reversals, friction can be anything between -F and F = Fc + Fs + Fl |L| (plus the
speed law at the speed w_0, steep for a small exponent), whatever the law F s says. Its possible
deviation from the law, times the weight of rest

    exp(-|w| / w_0),    w the speed of the drive,
    w_0 = 2 widths, or for presliding 3 widths in the filter's time

is the slack that no observer can distinguish from a contact. The time of a reversal between two
samples is unknown: the mean of both may be wrong by half the difference, which adds to the slack.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np

from steelyard._arrays import Array
from steelyard.control.collision._dynamics import ArmDynamics
from steelyard.errors import InvalidSamples, UnknownName
from steelyard.identification import DynamicModel
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Sample
from steelyard.robot import RobotModel
from steelyard.robot._transmission import JointFriction

_SETTLING_FILTER_TIMES = 8.0  # after which the initial state of an observer has no effect
_SLIDING_WIDTHS = 3.0  # of a presliding law, in w_0
_SMOOTH_WIDTHS = 2.0  # of a smooth sign, in w_0
_MIN_REST_SPEED = 0.01  # [rad/s], lower limit of w_0
ObserverKind = Literal["momentum", "inverse-dynamics", "energy"]
_FORMER_NAMES = {"direct": "inverse-dynamics"}  # former names of observers


class ObserverState(NamedTuple):
    """The state of an observer.

    Attributes:
        t: time, [s]
        residual: external torque at the joints, (n,) [Nm or N], or power, (1,) [W]
        store: balanced quantity: momentum, (n,), velocity, (n,), or energy, (1,)
        supply: rate of change of `store` without contacts
        slack: part of the residual that unknown friction may explain, downwards and upwards, (2, n)
            or (2, 1), >= 0
        memory: state of friction, (2, n): its direction, between -1 and 1, and the drives'
            positions
        v: joint velocity, (n,) [rad/s or m/s]
        a: joint acceleration after the same filter, (n,) [rad/s^2 or m/s^2]
    """

    t: float
    residual: Array
    store: Array
    supply: Array
    slack: Array
    memory: Array
    v: Array
    a: Array

    @property
    def beyond_friction(self) -> Array:
        """The part of the residual that no friction at rest explains, like `residual`."""
        return np.asarray(self.residual - np.clip(self.residual, -self.slack[0], self.slack[1]))


class _Slack(NamedTuple):
    """Possible deviation of friction from its law, at rest and at reversals."""

    friction: JointFriction
    at_rest: Array  # Fc + Fs of each drive, (n,) [Nm]
    slow: Array  # friction of the speed law at the speed w_0, (n,) [Nm]
    share: Array | None  # Fl, (n,); None for a law without load
    rest_speed: Array  # w_0, (n,) [rad/s]

    @classmethod
    def of(cls, friction: JointFriction, filter_s: float) -> _Slack:
        law = friction.law
        if law.direction == "presliding":
            speed = _SLIDING_WIDTHS * law.width / filter_s
        else:
            if law.direction == "exact":
                widths = 0.0
            else:
                widths = _SMOOTH_WIDTHS
            speed = np.maximum(widths * law.width, _MIN_REST_SPEED)
        size = np.abs(friction.coefficients)
        at_rest = (size * law.breakaway(0.0)).sum(axis=0)
        slow = (size * law.breakaway(speed)).sum(axis=0) - at_rest
        if law.load:
            share = size[-1]
        else:
            share = None
        return cls(friction, at_rest, slow, share, speed)

    def at(self, before: Array, s: Array, v: Array, load: Array) -> Array:
        """Slack of a residual at the joints, downwards and upwards, (2, n) [Nm].

        Args:
            before: previous directions of the drives, between -1 and 1, (n,)
            s: directions of the drives, between -1 and 1, (n,)
            v: joint velocity, (n,) [rad/s or m/s]
            load: torque that the gears transmit, (n,) [Nm]
        """
        drives = self.friction.transmission
        if self.share is None:
            most = self.at_rest
        else:
            most = self.at_rest + self.share * np.abs(load)
        weight = (most + self.slow) * np.exp(-np.abs(drives.to_drives(v)) / self.rest_speed)
        turned = 0.5 * most * np.abs(s - before)
        up = weight * (1.0 + s) + turned
        down = weight * (1.0 - s) + turned  # less friction looks like a push
        if not drives.is_coupled:
            return np.array([down, up])
        along = np.maximum(drives.matrix, 0.0)
        against = np.maximum(-drives.matrix, 0.0)
        return np.array([down @ along + up @ against, up @ along + down @ against])


@dataclass(frozen=True, eq=False)
class Observer(ABC):
    """An observer of external torque: `init`, `step`, and its filter.

    Attributes:
        arm: loaded, with friction
        gain_hz: K / (2 pi), the cut-off frequency of the filter, [Hz]
        longest_gap_s: longest permitted time between two samples, [s]
    """

    arm: ArmDynamics
    gain_hz: float = 5.0
    longest_gap_s: float = 0.1
    _unknown_friction: _Slack = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.gain_hz < np.inf or not 0 < self.longest_gap_s < np.inf:
            raise InvalidSamples(
                f"gain_hz and longest_gap_s must be positive, got {self.gain_hz} and"
                f" {self.longest_gap_s}"
            )
        slack = _Slack.of(self.arm.friction, 1.0 / (2 * np.pi * self.gain_hz))
        object.__setattr__(self, "_unknown_friction", slack)

    @staticmethod
    def of(
        model: DynamicModel | RobotModel,
        payload: Payload | InertialParameters | None = None,
        *,
        kind: ObserverKind = "momentum",
        gain_hz: float = 5.0,
        longest_gap_s: float = 0.1,
    ) -> Observer:
        """The observer of an arm and its payload.

        Args:
            model: an identified arm, or a robot with known links and drives
            payload: in the flange frame; None for none
            kind: 'momentum', 'inverse-dynamics' or 'energy'
            gain_hz: K / (2 pi), [Hz]
            longest_gap_s: longest permitted time between two samples, [s]
        """
        name = _FORMER_NAMES.get(kind, kind)
        if name not in _OBSERVERS:
            raise UnknownName(
                f"no observer '{kind}'; there are {', '.join(get_args(ObserverKind))}"
            )
        return _OBSERVERS[name](ArmDynamics.of(model, payload), gain_hz, longest_gap_s)

    @property
    def settling_s(self) -> float:
        """Time after which the initial state of the filter has no effect, [s]."""
        return _SETTLING_FILTER_TIMES / (2 * np.pi * self.gain_hz)

    @property
    def of_momentum(self) -> Observer:
        """The momentum observer of the same arm with the same filter."""
        return _OBSERVERS["momentum"](self.arm, self.gain_hz, self.longest_gap_s)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each residual, that of its joint by default."""
        return self.arm.robot.joint_names

    @property
    def unit(self) -> str:
        """Unit of the residual."""
        return "Nm"

    def torque_weights(self, v: Array) -> Array | None:
        """Weights of joint torques in the residuals, (k, m, n); None if residuals are torques.

        Args:
            v: joint velocities, (k, n) [rad/s or m/s]
        """
        return None

    @abstractmethod
    def _balance(self, q: Array, v: Array, tau: Array, friction: Array) -> tuple[Array, Array]:
        """The balanced quantity and its rate of change without contacts."""

    def _mean_external(self, state: ObserverState, store: Array, supply: Array, h: float) -> Array:
        return np.asarray((store - state.store) / h - 0.5 * (supply + state.supply))

    def _slack(self, before: Array, s: Array, v: Array, load: Array) -> Array:
        return self._unknown_friction.at(before, s, v, load)

    def init(self, sample: Sample[Array]) -> ObserverState:
        """The state at the first sample, without a contact.

        Args:
            sample: joint positions and velocities, (2, n), and torques; accelerations are not used
        """
        q, v, tau = self._checked(sample)
        memory, friction, load = self.arm.friction.step(self.arm.friction.init(q, v), q, v, tau)
        store, supply = self._balance(q, v, tau, friction)
        slack = self._slack(memory[0], memory[0], v, load)
        zero = np.zeros(len(self.names))
        return ObserverState(
            float(sample.t), zero, store, supply, slack, memory, v, np.zeros(self.arm.n)
        )

    def step(self, state: ObserverState, sample: Sample[Array]) -> ObserverState:
        """The next state; a repeated time changes nothing.

        Args:
            sample: as for `init`
        """
        q, v, tau = self._checked(sample)
        h = sample.t - state.t
        if h == 0:
            return state
        if not 0 < h <= self.longest_gap_s:
            raise InvalidSamples(
                f"the time step after t = {state.t:.4f} s is {h:.4g} s, but must be positive and at"
                f" most {self.longest_gap_s:g} s: initialise the observer again after a pause"
            )
        memory, friction, load = self.arm.friction.step(state.memory, q, v, tau)
        store, supply = self._balance(q, v, tau, friction)
        kept = np.exp(-2 * np.pi * self.gain_hz * h)
        external = self._mean_external(state, store, supply, h)
        residual = kept * state.residual + (1.0 - kept) * external
        slack = kept * state.slack + (1.0 - kept) * self._slack(state.memory[0], memory[0], v, load)
        a = kept * state.a + (1.0 - kept) / h * (v - state.v)
        return ObserverState(float(sample.t), residual, store, supply, slack, memory, v, a)

    def _checked(self, sample: Sample[Array]) -> tuple[Array, Array, Array]:
        q, v = np.array(sample.motion, dtype=float)[:2]
        tau = np.array(sample.effort, dtype=float)
        if q.shape != (self.arm.n,) or tau.shape != q.shape:
            raise InvalidSamples(
                f"{self.arm.robot.name} has {self.arm.n} joints, the sample has positions of shape"
                f" {q.shape} and torques of shape {tau.shape}"
            )
        if not np.isfinite(q @ q + v @ v + tau @ tau):
            raise InvalidSamples(f"the sample at t = {sample.t} s is not finite")
        return q, v, tau


@dataclass(frozen=True, eq=False)
class _MomentumObserver(Observer):
    """The generalised-momentum observer."""

    @property
    def of_momentum(self) -> Observer:
        """Itself."""
        return self

    def _balance(self, q: Array, v: Array, tau: Array, friction: Array) -> tuple[Array, Array]:
        p, drift = self.arm.rigid.momentum(q, v)
        return p, tau - friction + drift


@dataclass(frozen=True, eq=False)
class _InverseDynamicsObserver(Observer):
    """Inverse dynamics, with acceleration from velocity differences, less measured torque."""

    def _balance(self, q: Array, v: Array, tau: Array, friction: Array) -> tuple[Array, Array]:
        return np.concatenate([q, v]), tau - friction

    def _mean_external(self, state: ObserverState, store: Array, supply: Array, h: float) -> Array:
        n = self.arm.n
        a = (store[n:] - state.store[n:]) / h
        q, v = np.split(0.5 * (store + state.store), 2)
        return np.asarray(self.arm.rigid.torque(q, v, a) - 0.5 * (supply + state.supply))


@dataclass(frozen=True, eq=False)
class _EnergyObserver(Observer):
    """The power of contacts into the arm; zero at rest, without information on the joint."""

    @property
    def names(self) -> tuple[str, ...]:
        """Name of the only residual."""
        return ("power",)

    @property
    def unit(self) -> str:
        """Unit of the residual."""
        return "W"

    def torque_weights(self, v: Array) -> Array:
        """The velocities, as weights of joint torques in power, (k, 1, n).

        Args:
            v: joint velocities, (k, n) [rad/s or m/s]
        """
        return v[:, None, :]

    def _balance(self, q: Array, v: Array, tau: Array, friction: Array) -> tuple[Array, Array]:
        return np.array([self.arm.rigid.energy(q, v)]), np.array([v @ (tau - friction)])

    def _slack(self, before: Array, s: Array, v: Array, load: Array) -> Array:
        down, up = Observer._slack(self, before, s, v, load)
        along = np.maximum(v, 0.0)
        against = np.maximum(-v, 0.0)
        return np.array([[down @ along + up @ against], [up @ along + down @ against]])


_OBSERVERS: dict[str, Callable[[ArmDynamics, float, float], Observer]] = {
    "momentum": _MomentumObserver,
    "inverse-dynamics": _InverseDynamicsObserver,
    "energy": _EnergyObserver,
}
