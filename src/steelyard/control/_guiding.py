"""Hand guiding: the force of a hand with and without compensated payload (xu2024 section 4.4).

In teach mode the drives hold the arm against gravity and compensate most of its friction:

    tau = gravity(q) + offset + share [r friction(q, v) + (1 - r) f_0 sin(2 pi dither_hz t)],
    r = min(1, |v| / v_0),   f_0 = friction at the speed v_0

Friction acts at the drives: if motors are coupled, v and both frictions in the bracket are those of
the drives, u' = U v, and the joints get U' times the bracket. `gravity` is that of the identified
arm and of the payload that the controller knows; the hand carries an unknown payload. The velocity
of a joint that sticks is zero, so its drive applies an oscillating torque slightly below static
friction: the hand only needs the rest to break it loose (start-up torque compensation: Li et al.,
Robotica 2025). `share` stays below 1: an arm with fully compensated, or by model errors
overcompensated, friction moves by itself. The friction of the simulated UR10, identified from one
run of 10 s, is right within a few per cent, therefore 0.95; real friction changes by more than that
as an arm warms up: use a smaller share there. Inertia is not compensated: acceleration fed forward
to an arm that a person holds is positive feedback.

The table of xu2024 Fig. 12 has, for each axis of the hand's force, as a sensor on the tool measures
it, the mean of |F| (the mean of F itself is nearly zero along x and y on a closed path) and the
variance of F about its own mean. The paper does not say which of the two its mean is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array, read_only
from steelyard.control._compensation import Compensator
from steelyard.errors import InvalidRobot, InvalidTrajectory, UnknownName
from steelyard.excitation._postures import inverse_kinematics
from steelyard.identification import DynamicModel
from steelyard.identification._feasible import feasible_parameters
from steelyard.identification._least_squares import solve_weighted
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.robot import RobotModel
from steelyard.simulation._guided import GuidedOptions, GuidedRun, Hand, drag
from steelyard.verdict import Doubt, DoubtKind, Verdict

ForceFrame = Literal["flange", "base"]

_POSTURES_EACH_SIDE = 3  # of the rectangle
_TOOL_DOWN = np.diag([1.0, -1.0, -1.0])  # orientation of a flange that points down
_SHAPES = {"centre": (3,), "sides": (2,), "R_base_flange": (3, 3)}


@dataclass(frozen=True, eq=False)
class RectanglePath:
    """A rectangle in a horizontal plane, once around from its corner of smallest x and y.

    The default is similar to xu2024 Fig. 10, which states neither place, size nor speed. The point
    comes to rest in every corner and follows each side with minimum jerk, s = 10 x^3 - 15 x^4 + 6
    x^5 for x = 0 ... 1, as hands do (Flash and Hogan 1985).

    Attributes:
        centre: of the rectangle, (3,) [m], in the base frame
        sides: length along x and y, (2,) [m]
        speed: mean speed along a side, [m/s]; 0.05 is that of a person who follows a line carefully
        R_base_flange: orientation of the flange, (3, 3); pointing down by default
    """

    centre: Array = field(default_factory=lambda: np.array([0.6, 0.0, 0.3]))
    sides: Array = field(default_factory=lambda: np.array([0.3, 0.4]))
    speed: float = 0.05
    R_base_flange: Array = field(default_factory=lambda: _TOOL_DOWN.copy())

    def __post_init__(self) -> None:
        for name, shape in _SHAPES.items():
            array = read_only(getattr(self, name))
            if array.shape != shape or not np.isfinite(array).all():
                raise InvalidTrajectory(
                    f"{name} of a rectangle must be {shape} finite numbers, got {array.tolist()}"
                )
            object.__setattr__(self, name, array)
        if not ((self.sides > 0).all() and 0 < self.speed < np.inf):
            raise InvalidTrajectory(
                f"sides and speed of a rectangle must be positive, got {self.sides.tolist()} and"
                f" {self.speed}"
            )
        R = self.R_base_flange
        if not np.allclose(R @ R.T, np.eye(3), atol=1e-6) or np.linalg.det(R) < 0:
            raise InvalidTrajectory(
                f"R_base_flange of a rectangle must be a rotation, got {R.tolist()}"
            )

    @property
    def corners(self) -> Array:
        """The corners in turn, the first one again at the end, (5, 3) [m], in the base frame."""
        signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]])
        return np.asarray(self.centre + np.column_stack([signs * self.sides / 2, np.zeros(5)]))

    @property
    def duration_s(self) -> float:
        """Duration of one round, [s]."""
        return float(2 * self.sides.sum() / self.speed)

    def at(self, t: ArrayLike) -> tuple[Array, Array]:
        """Position [m] and velocity [m/s] of the point to follow, (N, 3) each, in the base frame.

        Args:
            t: times, (N,) [s]
        """
        sides = np.diff(self.corners, axis=0)
        durations_s = np.linalg.norm(sides, axis=1) / self.speed
        starts = np.cumsum(durations_s) - durations_s
        times = np.asarray(t, dtype=float)
        i = np.clip(np.searchsorted(starts, times, side="right") - 1, 0, 3)
        x = np.clip((times - starts[i]) / durations_s[i], 0.0, 1.0)[:, None]
        position = self.corners[i] + sides[i] * (10 * x**3 - 15 * x**4 + 6 * x**5)
        return position, sides[i] * (30 * x**2 * (1 - x) ** 2) / durations_s[i][:, None]


@dataclass(frozen=True)
class TeachMode:
    """Settings of the drives during hand guiding.

    Attributes:
        friction_share: compensated share of the identified friction, from 0 to below 1
        ramp_speed: v_0, below which a drive may stick, [rad/s or m/s]
        dither_hz: frequency of the oscillating torque of a drive that sticks, [Hz]
    """

    friction_share: float = 0.95
    ramp_speed: float = 0.01
    dither_hz: float = 10.0

    def __post_init__(self) -> None:
        if not 0 <= self.friction_share < 1:
            raise InvalidRobot(
                f"friction_share must be at least 0 and below 1, got {self.friction_share}: an arm"
                " with fully compensated friction moves by itself"
            )
        for name in ("ramp_speed", "dither_hz"):
            if not 0 < getattr(self, name) < np.inf:
                raise InvalidRobot(f"{name} must be positive, got {getattr(self, name)}")

    def controller(self, compensator: Compensator) -> Callable[[float, Array, Array], Array]:
        """The torque of the drives as a function of time, position and velocity.

        It has a state: call it in the order of time.

        Args:
            compensator: of the arm and its known payload
        """
        state = compensator.init()
        rest = np.zeros(compensator.robot.n)
        static_friction = compensator.slow_friction(self.ramp_speed)
        drives = compensator.robot.drive.transmission

        def torque(t: float, q: Array, v: Array) -> Array:
            nonlocal state
            state, parts = compensator.step(state, q, v, rest)
            moving = np.minimum(1.0, np.abs(drives.to_drives(v)) / self.ramp_speed)
            dither = static_friction * np.sin(2 * np.pi * self.dither_hz * t)
            friction = moving * drives.load(parts.friction) + (1.0 - moving) * dither
            return np.asarray(
                parts.gravity + parts.offset + self.friction_share * drives.to_joints(friction)
            )

        return torque

    def guide(
        self,
        robot: RobotModel,
        model: DynamicModel | RobotModel,
        *,
        payload_true: InertialParameters,
        payload_known: Payload | InertialParameters | None,
        path: RectanglePath | None = None,
        hand: Hand | None = None,
        options: GuidedOptions | None = None,
    ) -> GuidedRun:
        """The simulated run of an arm that a hand drags along a path, in MuJoCo.

        Args:
            robot: the real arm, with its drives
            model: the arm as known by the controller
            payload_true: the real payload, in the flange frame
            payload_known: the payload as known by the controller, in the flange frame; None for
                none
            path: of the hand; the default rectangle if None
            hand: stiffness and grip; the defaults if None
            options: of the simulation; the defaults if None
        """
        path = path or RectanglePath()
        hand = hand or Hand()
        compensator = Compensator(model, payload_known)
        known = compensator.robot
        if known.n != robot.n or known.flange != robot.flange:
            raise InvalidRobot(
                f"the model is of {known.name} with {known.n} joints and the flange"
                f" '{known.flange}', the arm is {robot.name} with {robot.n} joints and the flange"
                f" '{robot.flange}'"
            )
        postures = _postures(robot, path, hand.grip)
        controller = self.controller(compensator)
        return drag(
            robot, postures, path, controller, payload=payload_true, hand=hand, options=options
        )


@dataclass(frozen=True, eq=False)
class GuidingComparison:
    """Two runs along the same path: without and with compensation of the payload.

    Attributes:
        without: run without compensation
        compensated: run with compensation
        frame: of the forces: 'flange', where the sensor is, or 'base'
    """

    without: GuidedRun
    compensated: GuidedRun
    frame: ForceFrame = "flange"

    def __post_init__(self) -> None:
        if self.frame not in get_args(ForceFrame):
            raise UnknownName(f"frame must be 'flange' or 'base', got '{self.frame}'")

    @property
    def forces(self) -> tuple[Array, Array]:
        """The hand's force without and with compensation, (N, 3) each [N], in `frame`."""
        if self.frame == "base":
            return self.without.force_world, self.compensated.force_world
        return self.without.force_flange, self.compensated.force_flange

    @property
    def mean(self) -> Array:
        """Mean size of the force of each axis, without and with compensation, (2, 3) [N]."""
        return np.array([np.abs(force).mean(axis=0) for force in self.forces])

    @property
    def variance(self) -> Array:
        """Variance of F of each axis, without and with compensation, (2, 3) [N^2]."""
        return np.array([force.var(axis=0) for force in self.forces])

    @property
    def mean_reduction(self) -> Array:
        """Relative reduction of the mean, (3,); negative if it grows."""
        return np.asarray(1 - self.mean[1] / self.mean[0])

    @property
    def variance_reduction(self) -> Array:
        """Relative reduction of the variance, (3,); negative if it grows."""
        return np.asarray(1 - self.variance[1] / self.variance[0])

    @property
    def rows(self) -> tuple[tuple[str, float, float, float, float, float, float], ...]:
        """For each axis: name; mean without and with [N], reduction; variance likewise [N^2]."""
        columns = (*self.mean, self.mean_reduction, *self.variance, self.variance_reduction)
        return tuple((axis, *map(float, row)) for axis, *row in zip("xyz", *columns, strict=True))

    @property
    def verdict(self) -> Verdict:
        """The effect of compensation; a doubt if the total force of the hand grows."""
        worse = [
            axis for axis, change in zip("xyz", self.mean_reduction, strict=True) if change < 0
        ]
        forces = self.without.force_world, self.compensated.force_world
        without, compensated = (np.linalg.norm(force, axis=1).mean() for force in forces)
        words = f"the hand pulls with {compensated:.1f} N instead of {without:.1f} N on average"
        if worse:
            words += f"; the mean grows in {', '.join(worse)}"
        found = Verdict(words)
        if (forces[1] ** 2).sum() < (forces[0] ** 2).sum():
            return found
        against = "compensation does not help: the payload of the controller is wrong"
        return found.doubted(Doubt(DoubtKind.CONTRADICTS_GIVEN, against))


def guide(
    model: DynamicModel | RobotModel,
    payload: Payload | InertialParameters,
    *,
    robot: RobotModel | None = None,
    payload_true: InertialParameters | None = None,
    path: RectanglePath | None = None,
    hand: Hand | None = None,
    teach: TeachMode | None = None,
    options: GuidedOptions | None = None,
) -> GuidingComparison:
    """Two runs with the same path, hand and noise: without and with compensation of the payload.

    Args:
        model: the arm as known by the controller
        payload: as known by the controller in the second run, in the flange frame
        robot: the real arm, with its drives; by default that of the controller, for an identified
            arm the real bodies that explain its data best
        payload_true: the real payload, in the flange frame; that of the controller by default
        path: of the hand; the default rectangle if None
        hand: stiffness and grip; the defaults if None
        teach: settings of the drives; the defaults if None
        options: of the simulation; the defaults if None
    """
    options = options or GuidedOptions()
    teach = teach or TeachMode()
    arm = robot or (model if isinstance(model, RobotModel) else _simulable_arm(model))
    carried = payload_true or (payload.body if isinstance(payload, Payload) else payload)
    runs = []
    for k, known in enumerate((None, payload)):
        part = replace(options, progress=_part(options.progress, 0.5 * k, 0.5))
        runs.append(
            teach.guide(
                arm,
                model,
                payload_true=carried,
                payload_known=known,
                path=path,
                hand=hand,
                options=part,
            )
        )
    return GuidingComparison(runs[0], runs[1])


def _simulable_arm(model: DynamicModel) -> RobotModel:
    """An arm of real bodies with the dynamics of an identified one, for the simulation."""
    R = model.factor.weighted(solve_weighted(model.factor).weights)
    found = feasible_parameters(model.robot, model.basis, R)
    drive = found.robot.drive.with_law(model.law, found.extra)
    return found.robot.with_drive(replace(drive, load_coulomb=np.maximum(drive.load_coulomb, 0.0)))


def _postures(robot: RobotModel, path: RectanglePath, grip: Array) -> Array:
    """Postures along the path from its start, (G, n) [rad or m]."""
    t = np.linspace(0.0, path.duration_s, 4 * _POSTURES_EACH_SIDE + 1)
    found = [robot.home]
    for point in path.at(t)[0]:
        flange = point - path.R_base_flange @ grip
        found.append(inverse_kinematics(robot, path.R_base_flange, position=flange, near=found[-1]))
    return np.array(found[1:])


def _part(
    progress: Callable[[float], None] | None, start: float, share: float
) -> Callable[[float], None] | None:
    if progress is None:
        return None
    return lambda done: progress(start + share * done)
