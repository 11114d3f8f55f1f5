"""An arm that a hand drags: a spring and damper between the grip and the point the hand follows.

    f = K (p_hand - p) + D (p_hand' - p') + noise,        torque = K_r e - D_r w

p is the grip, a point fixed to the flange; e is the rotation vector from the present orientation to
the initial one, w the angular velocity: the hand keeps the initial orientation of the tool. K and D
are those of a human arm (about 500 N/m and 100 Ns/m for a careful movement of a tool).

The noise of a muscle's force grows with the force (Harris and Wolpert 1998, Nature 394; van Beers,
Haggard and Wolpert 2004, J. Neurophysiol. 91). The amount and the isotropy of the noise are
assumptions of this module: each axis of the force has AR(1) noise with the standard deviation
`unsteadiness` |f| and the correlation time `noise_correlation_s`, because muscles smooth their
stimulation over about 50 ms. Noise that is slower than hand and arm together moves the arm instead
of changing the force.

The force is that of the hand on the grip, as a sensor between tool and handle measures it (xu2024
Fig. 9). The hand takes hold of the tool for some time before the first row. The drives apply the
torque of a controller, which is any function of time, position and velocity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import NamedTuple, Protocol

import numpy as np

from steelyard._arrays import Array, finite, freeze
from steelyard.errors import InvalidRobot, SimulationFailed
from steelyard.inertia import InertialParameters
from steelyard.robot import RobotModel
from steelyard.simulation._arm import BodyPush, ForwardDynamics
from steelyard.simulation._plant import Plant
from steelyard.simulation._sensors import ar1_noise

Controller = Callable[[float, Array, Array], Array]

_RUNAWAY_SPEED = 50.0  # [rad/s]
_PROGRESS_CALLS = 50
_AXES = np.eye(3)
_LEVER = 0.1  # [m], distance of each of the two forces that make a torque


class _HandPath(Protocol):
    """A path of the grip that can be evaluated at any time."""

    @property
    def duration_s(self) -> float:
        """Duration of the path, [s]."""

    def at(self, t: Array) -> tuple[Array, Array]:
        """Position and velocity of the followed point, (N, 3) [m, m/s], in the base frame."""


@dataclass(frozen=True, eq=False)
class Hand:
    """A hand that holds the tool.

    Attributes:
        stiffness: K of each axis, [N/m]
        damping: D of each axis, [Ns/m]
        turning_stiffness: K_r, [Nm/rad]
        turning_damping: D_r, [Nms/rad]
        grip: point that it holds, (3,) [m], in the flange frame
        unsteadiness: standard deviation of the force's noise over the force; 0 for no noise
        noise_correlation_s: correlation time of that noise, [s]
    """

    stiffness: float = 500.0
    damping: float = 100.0
    turning_stiffness: float = 20.0
    turning_damping: float = 3.0
    grip: Array = field(default_factory=lambda: np.array([0.0, 0.0, 0.1]))
    unsteadiness: float = 0.1
    noise_correlation_s: float = 0.05

    def __post_init__(self) -> None:
        for name in (
            "stiffness",
            "damping",
            "turning_stiffness",
            "turning_damping",
            "noise_correlation_s",
        ):
            if not 0 < getattr(self, name) < np.inf:
                raise InvalidRobot(f"{name} of a hand must be positive, got {getattr(self, name)}")
        if not 0 <= self.unsteadiness < 1:
            raise InvalidRobot(f"unsteadiness of a hand lies in 0 ... 1, got {self.unsteadiness}")
        object.__setattr__(self, "grip", finite(self.grip, (3,), "grip of a hand", InvalidRobot))


@dataclass(frozen=True)
class GuidedOptions:
    """How a guided run is simulated.

    Attributes:
        step_s: time step of engine and hand, [s]
        control_every: number of steps between two calls of the controller
        rows_every: number of steps per row
        taking_hold_s: time before the first row in which the hand takes hold, [s]
        seed: seed of the hand's noise
        progress: called about 50 times with the completed fraction
    """

    step_s: float = 0.002
    control_every: int = 1
    rows_every: int = 4
    taking_hold_s: float = 2.0
    seed: int = 0
    progress: Callable[[float], None] | None = None

    def __post_init__(self) -> None:
        if not (0 < self.step_s < np.inf and 0 <= self.taking_hold_s < np.inf):
            raise InvalidRobot("step_s must be positive, taking_hold_s not negative")
        if self.control_every < 1 or self.rows_every < 1:
            raise InvalidRobot("control_every and rows_every must be 1 or more")


@dataclass(frozen=True, eq=False)
class GuidedRun:
    """The signals of an arm that a hand dragged.

    Attributes:
        t: time, (N,) [s]
        force_world: force of the hand on the grip, (N, 3) [N], in the base frame
        force_flange: the same force, (N, 3) [N], in the flange frame
        torque_world: torque of the hand about the grip, (N, 3) [Nm], in the base frame
        position: position of the grip, (N, 3) [m], in the base frame
        wanted: position of the point that the hand follows, (N, 3) [m], in the base frame
        tilt: angle between the present and the initial orientation, (N,) [rad]
        q: joint positions, (N, n) [rad or m]
        v: joint velocities, (N, n) [rad/s or m/s]
        a: joint accelerations, (N, n) [rad/s^2 or m/s^2]
        tau: torque that the drives apply, (N, n) [Nm or N]
    """

    t: Array
    force_world: Array
    force_flange: Array
    torque_world: Array
    position: Array
    wanted: Array
    tilt: Array
    q: Array
    v: Array
    a: Array
    tau: Array

    def __post_init__(self) -> None:
        freeze(self, *(item.name for item in fields(self)))


def drag(
    robot: RobotModel,
    postures: Array,
    path: _HandPath,
    controller: Controller,
    *,
    payload: InertialParameters | None = None,
    hand: Hand | None = None,
    options: GuidedOptions | None = None,
) -> GuidedRun:
    """The signals of an arm in MuJoCo that a hand drags along a path.

    Args:
        robot: the empty arm with its true drives
        postures: initial posture and further ones near the motion, (G, n) [rad or m]
        path: path of the point that the hand follows
        controller: torque of the drives, (n,) [Nm or N], as a function of time, position and
            velocity; called in the order of time
        payload: body that is fixed to the flange, in the flange frame; none by default
        hand: properties of the hand
        options: time steps, noise and progress
    """
    hand = hand or Hand()
    options = options or GuidedOptions()
    h = options.step_s
    K0 = round(options.taking_hold_s / h)
    K = round(path.duration_s / h) + 1
    wanted, wanted_speed = path.at(np.clip((np.arange(K0 + K) - K0) * h, 0.0, path.duration_s))
    plant = _plant(robot, postures, payload, h)
    generator = np.random.default_rng(options.seed)
    correlation_s = hand.noise_correlation_s
    unit = ar1_noise((K0 + K, 3), h, correlation_s=correlation_s, generator=generator)
    relative_noise = hand.unsteadiness * unit
    feel = _Feel(plant.arm, robot.n + 1, hand)
    plant.arm.move_to(plant.q, plant.v)
    R_held = feel.pose()[1]
    rows = []
    tau = np.zeros(robot.n)
    for k in range(K0 + K):
        plant.arm.move_to(plant.q, plant.v)
        pushes, signals, tilt = feel.touch(R_held, wanted[k], wanted_speed[k], relative_noise[k])
        if k % options.control_every == 0:
            tau = np.asarray(controller(k * h, plant.q, plant.v), dtype=float)
        instant = plant.step(tau, pushes)
        if k >= K0 and (k - K0) % options.rows_every == 0:
            rows.append(((k - K0) * h, *signals, wanted[k], tilt, *instant[:4]))
        _check_and_report(plant, k, K0 + K, options)
    return GuidedRun(*(np.array(column) for column in zip(*rows, strict=True)))


class _Feel(NamedTuple):
    """The hand on the body of the payload."""

    arm: ForwardDynamics
    body: int
    hand: Hand

    def pose(self) -> tuple[Array, Array]:
        """Position and orientation of the flange in the base frame."""
        data = self.arm.data
        return np.array(data.xpos[self.body]), np.array(data.xmat[self.body]).reshape(3, 3)

    def touch(
        self, R_held: Array, wanted: Array, wanted_speed: Array, relative_noise: Array
    ) -> tuple[tuple[BodyPush, ...], tuple[Array, ...], float]:
        """Forces of the hand on MuJoCo's bodies, the signals of a row, and the tilt [rad].

        The signals are the force in the base frame and in the flange frame, the torque and the
        position of the grip.
        """
        hand = self.hand
        data = self.arm.data
        p, R = self.pose()
        spin = np.array(data.cvel[self.body, :3])
        centre = data.subtree_com[self.arm.model.body_rootid[self.body]]
        point = p + R @ hand.grip
        speed = data.cvel[self.body, 3:] + _cross(spin, point - centre)
        pull = hand.stiffness * (wanted - point) + hand.damping * (wanted_speed - speed)
        force = pull + np.sqrt(pull @ pull) * relative_noise
        turn, tilt = _turn(R_held @ R.T)
        torque = hand.turning_stiffness * turn - hand.turning_damping * spin
        return self._pushes(force, torque, R), (force, R.T @ force, torque, point), tilt

    def _pushes(self, force: Array, torque: Array, R: Array) -> tuple[BodyPush, ...]:
        """Two forces at r and -r from the grip; r x (torque x r) / |r|^2 = torque for normal r."""
        across = _cross(torque, _AXES[np.abs(torque).argmin()])
        size = np.sqrt(across @ across)
        if size == 0.0:
            return (BodyPush(self.body, force, self.hand.grip),)
        lever = across * (_LEVER / size)
        twist = _cross(torque, lever) / (2 * _LEVER**2)
        there = R.T @ lever
        return (
            BodyPush(self.body, force / 2 + twist, self.hand.grip + there),
            BodyPush(self.body, force / 2 - twist, self.hand.grip - there),
        )


def _cross(x: Array, y: Array) -> Array:
    """The cross product of two vectors, (3,); faster than NumPy's function for a single pair."""
    x0, x1, x2 = x.tolist()
    y0, y1, y2 = y.tolist()
    return np.array([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0])


def _turn(R: Array) -> tuple[Array, float]:
    """The rotation vector of a rotation by less than half a turn, (3,) [rad], and its norm."""
    twice = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    sine = 0.5 * float(np.sqrt(twice @ twice))
    angle = float(np.arctan2(sine, 0.5 * (R[0, 0] + R[1, 1] + R[2, 2] - 1.0)))
    return twice * (0.5 * angle / sine if sine > 0.0 else 0.5), angle


def _plant(
    robot: RobotModel, postures: Array, payload: InertialParameters | None, step_s: float
) -> Plant:
    """The arm at rest in the first posture; all postures bound the inertia of its drives."""
    q = np.array(postures, dtype=float)
    if q.ndim != 2 or q.shape[1] != robot.n or len(q) < 2 or not np.isfinite(q).all():
        raise InvalidRobot(
            f"postures must be (G, {robot.n}) finite numbers with G >= 2, got {q.shape}"
        )
    still = np.zeros(robot.n)
    return Plant(robot, payload, step_s=step_s, postures=q, start=np.array([q[0], still, still]))


def _check_and_report(plant: Plant, k: int, steps: int, options: GuidedOptions) -> None:
    """Raises an error if the arm runs away; reports progress."""
    if reason := plant.runaway(_RUNAWAY_SPEED):
        raise SimulationFailed(
            f"{plant.robot.name} runs away from the hand {k * options.step_s:.2f} s after the"
            f" start: {reason}; the controller overcompensates, or the hand is too stiff for step_s"
        )
    every = max(1, steps // _PROGRESS_CALLS)
    if options.progress is not None and (k % every == every - 1 or k == steps - 1):
        options.progress((k + 1) / steps)
