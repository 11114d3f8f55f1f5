"""A designed motion on the arm, from its present posture into the motion and back.

The way into the motion and out of it is a smooth polynomial in joint space
(`ApproachedTrajectory`). A motion is refused when it begins far from the present posture, when it
breaks a limit of the arm or collides with the arm itself, when it cannot brake to rest along its
path within `_MAX_BRAKING_S`, and when the controller is not ready. Obstacles around the arm are
checked where limits with surroundings are given, without what the arm carries.

Braking slows the time of the path down: with the path q(s) and s' falling from 1 to 0 at the pace
1 / T, the joints accelerate by

    q'' = a(s) s'^2 - v(s) / T,     |q''| <= |a| + |v| / T,

so that T = max |v| / (limit - |a|) over the path keeps the limit wherever the braking begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from steelyard._arrays import Array
from steelyard._kinds import Range, require_number
from steelyard.errors import InvalidRobot, InvalidTrajectory, SourceFailed
from steelyard.excitation import (
    Design,
    DesignLimits,
    DesignSettings,
    PayloadOptimal,
    Surroundings,
    design,
)
from steelyard.identification import DynamicModel
from steelyard.live._controller import MovableController, PathCommand, movable_of
from steelyard.live._same_arm import reports_flange, require_same_arm
from steelyard.live._setting import require_same_identity
from steelyard.live._source import Stream
from steelyard.recording import ArmIdentity
from steelyard.robot import JointLimits, RobotModel
from steelyard.trajectory import ApproachedTrajectory, FourierTrajectory

DEFAULT_TOOL_SPEED = 0.25
"""Largest speed of the tool unless another one is requested, [m/s]."""

_MAX_DISTANCE = 0.5  # of a joint from the first posture of the motion, [rad]
_ENTRY_SPEED = 0.5  # [rad/s]
_ENTRY_ACCELERATION = 1.0  # [rad/s^2]
_DEFAULT_ACCELERATION = 8.0
"""Largest acceleration of a joint whose robot file has no `a_max`, [rad/s^2]. It is our assumption:
makers leave the acceleration to the program (URScript's `movej` takes 1.4 rad/s^2 by default) and
state no limit of their arms."""

TOOL_SPEEDS = Range(0.0, 10.0, above=True)
"""Speeds of a tool that a user may ask for, [m/s]."""

_PERIODS = Range(1, 10_000)
_MIN_BRAKING_S = 0.1
_MAX_BRAKING_S = 0.25
_MAX_POSTURE_CHANGE = 0.002  # of a joint between the question and the start, [rad]
_MAX_PATH_ERROR = 5e-5  # of straight lines between the points that are sent, [rad]
_MAX_SPACING_S = 0.1  # of these points
_DESIGN_SPEED = 1.5  # largest speed of a motion that is designed here, [rad/s]
_DESIGN_ACCELERATION = 4.0  # [rad/s^2]
_DESIGN_TIME_S = 8.0
_DESIGN_RATE_HZ = 500.0
_CERTIFICATE_RATE_HZ = 250.0


@dataclass(frozen=True)
class MotionRequest:
    """What a user may choose about a motion.

    Attributes:
        periods: how often the motion runs
        tool_speed: largest speed of the tool, [m/s]; a faster motion is slowed down
        limits: limits of the motion and obstacles around the arm, beside the limits of the arm and
            collisions with itself; without obstacles its surroundings are not checked
        replace_program: whether the motion may replace a program that runs
        serial: serial number of the arm; needed where the robot or the controller has none
    """

    periods: int = 1
    tool_speed: float = DEFAULT_TOOL_SPEED
    limits: DesignLimits | None = None
    replace_program: bool = False
    serial: str = ""

    def __post_init__(self) -> None:
        require_number(self.tool_speed, TOOL_SPEEDS, "tool_speed", InvalidTrajectory)
        require_number(self.periods, _PERIODS, "periods", InvalidTrajectory)


@dataclass(frozen=True, eq=False)
class MotionExtent:
    """How far and how fast a motion goes.

    Attributes:
        travel: range of each joint, (n,) [rad or m]
        tool_speed: largest speed of the tool, [m/s]
        box: smallest and largest x, y, z of the tool, (2, 3) [m], in the base frame
    """

    travel: Array
    tool_speed: float
    box: Array

    @classmethod
    def of(
        cls, robot: RobotModel, trajectory: ApproachedTrajectory, *, tool: Array, rate_hz: float
    ) -> MotionExtent:
        """The extent of a motion.

        Args:
            robot: the arm
            trajectory: the motion
            tool: the tool's centre point in the flange frame, (3,) [m]
            rate_hz: instants per second that are looked at, [Hz]
        """
        q = _sampled(trajectory, rate_hz)
        poses = [robot.forward_kinematics(x) for x in q]
        points = np.array([T[:3, :3] @ tool + T[:3, 3] for T in poses])
        speeds = np.linalg.norm(np.diff(points, axis=0), axis=1) * rate_hz
        box = np.array([points.min(axis=0), points.max(axis=0)])
        return cls(np.ptp(q, axis=0), float(speeds.max()), box)


@dataclass(frozen=True, eq=False)
class MotionStart:
    """An arm that may be moved: it is ready, it is the expected one, and its program may end.

    Attributes:
        row: the newest row, by the names of the columns
        posture: where the arm stands, (n,) [rad]
        replaces: the program that runs and would be replaced; empty where none runs
        arm: the arm behind the controller
        reported: the same as the controller itself reports it
    """

    row: Mapping[str, float]
    posture: Array
    replaces: str
    arm: ArmIdentity
    reported: ArmIdentity

    @classmethod
    def of(cls, stream: Stream, robot: RobotModel, request: MotionRequest) -> MotionStart:
        """The start of a motion, with all checks that need no motion.

        Args:
            stream: rows of the controller
            robot: the expected arm
            request: what the user has chosen

        Raises:
            SourceFailed: the controller accepts no motion, is not ready, or runs a program
            InvalidTrajectory: the arm has another number of joints
            InvalidRobot: it is another arm, or nothing tells which kind of arm it is
        """
        controller = movable_of(stream.source)
        row = ready_row_of(stream, robot)
        replaces = controller.running_program(row)
        if replaces and not request.replace_program:
            raise SourceFailed(
                f"{controller} runs {replaces}: stop it first, or let the motion replace it with"
                " `replace_program`"
            )
        reported = stream.identity()
        arm = require_same_identity(
            controller, reported, robot.arm, "the motion", serial=request.serial
        )
        if not (reported.kind and robot.arm.kind):
            _require_comparable(controller, robot, row)
        return cls(row, controller.posture(row), replaces, arm, reported)


@dataclass(frozen=True, eq=False)
class MotionPlan:
    """A motion from the present posture of an arm that was checked and not sent yet.

    Attributes:
        controller: the controller of the arm
        robot: the arm
        core: the motion, as it was designed
        trajectory: from the present posture into the motion, and back, slowed down where needed
        rate_hz: commands per second, [Hz]
        braking_s: time in which the arm brakes to rest along the path, [s]
        extent: how far and how fast it goes
        replaces: the program that runs and would be replaced; empty where none runs
        tool: the tool's centre point in the flange frame, (3,) [m]
        arm: the arm behind the controller
        reported: the same as the controller itself reports it
        request: what the user has chosen
    """

    controller: MovableController
    robot: RobotModel
    core: FourierTrajectory
    trajectory: ApproachedTrajectory
    rate_hz: float
    braking_s: float
    extent: MotionExtent
    replaces: str
    tool: Array
    arm: ArmIdentity
    reported: ArmIdentity
    request: MotionRequest

    @classmethod
    def of(
        cls,
        stream: Stream,
        robot: RobotModel,
        core: FourierTrajectory,
        request: MotionRequest | None = None,
    ) -> MotionPlan:
        """The plan of a motion from the present posture.

        Args:
            stream: rows of the controller
            robot: the arm that the motion is for
            core: the motion
            request: what the user has chosen; the defaults of `MotionRequest` without one

        Raises:
            SourceFailed: the controller accepts no motion, is not ready, or runs a program
            InvalidTrajectory: the motion begins too far away, breaks a limit, or collides
        """
        request = request or MotionRequest()
        controller = movable_of(stream.source)
        start = MotionStart.of(stream, robot, request)
        row = start.row
        q = start.posture
        _require_near(robot, core, q)
        rate_hz = controller.command_rate_hz(stream.version)
        whole = _approached(core, q, periods=request.periods)
        tool = controller.tool_offset(row)
        extent = MotionExtent.of(robot, whole, tool=tool, rate_hz=rate_hz)
        if extent.tool_speed > request.tool_speed:
            whole = _slowed(whole, extent.tool_speed / request.tool_speed)
            extent = replace(extent, tool_speed=request.tool_speed)
        _require_within_limits(robot, whole, request)
        braking_s = braking_time_s(robot, whole, rate_hz=rate_hz)
        return cls(
            controller,
            robot,
            core,
            whole,
            rate_hz=rate_hz,
            braking_s=braking_s,
            extent=extent,
            replaces=start.replaces,
            tool=tool,
            arm=start.arm,
            reported=start.reported,
            request=request,
        )

    @property
    def obstacles(self) -> tuple[str, ...]:
        """Names of the obstacles that the motion was checked against; the payload was not."""
        limits = self.request.limits
        if limits is None or limits.surroundings is None:
            return ()
        return tuple(body.name for body in limits.surroundings.obstacles)

    @property
    def path(self) -> PathCommand:
        """The motion as the controller gets it."""
        _, _, a = self.trajectory.at(np.arange(0.0, self.trajectory.duration_s, 1 / self.rate_hz))
        spacing_s = np.sqrt(8 * _MAX_PATH_ERROR / np.abs(a).max())
        steps = int(np.clip(spacing_s * self.rate_hz, 1, _MAX_SPACING_S * self.rate_hz))
        q = _sampled(self.trajectory, self.rate_hz / steps)
        return PathCommand(q, self.rate_hz, steps, self.braking_s)

    def renewed(self, stream: Stream) -> MotionPlan:
        """This plan where arm, posture, program and tool are still the same, otherwise a new one.

        The new plan begins where the arm stands now, with all checks from there.

        Args:
            stream: rows of the controller
        """
        same_arm = stream.identity() == self.reported  # takes longest, so it comes first
        row = ready_row_of(stream, self.robot)
        change = np.abs(self.controller.posture(row) - self.trajectory.posture)
        same_program = self.controller.running_program(row) == self.replaces
        same_tool = np.array_equal(self.controller.tool_offset(row), self.tool)
        same = same_program and same_tool and same_arm
        if same and change.max() <= _MAX_POSTURE_CHANGE:
            return self
        return MotionPlan.of(stream, self.robot, self.core, self.request)


def _sampled(trajectory: ApproachedTrajectory, rate_hz: float) -> Array:
    """Joint positions from the start to the end, (N, n) [rad]."""
    steps = int(np.ceil(trajectory.duration_s * rate_hz))
    q, _, _ = trajectory.at(np.arange(steps + 1) / rate_hz)
    return q


def _require_near(robot: RobotModel, core: FourierTrajectory, q: Array) -> None:
    """Raises `InvalidTrajectory` where a motion begins far from the present posture."""
    first = core.at([0.0])[0][0]
    distance = np.abs(first - q)
    if distance.max() > _MAX_DISTANCE:
        k = int(distance.argmax())
        raise InvalidTrajectory(
            f"{robot.joint_names[k]} stands {distance[k]:.2f} rad from where the motion begins,"
            f" more than {_MAX_DISTANCE:g}: move the arm by hand first, to"
            f" {np.round(first, 3).tolist()} rad"
        )


def _approached(core: FourierTrajectory, q: Array, *, periods: int) -> ApproachedTrajectory:
    """A motion with an entry from a posture and an exit to it."""
    _, v, a = core.amplitudes
    v_max = np.maximum(_ENTRY_SPEED, v)
    a_max = np.maximum(_ENTRY_ACCELERATION, a)
    return ApproachedTrajectory.within(core, q, v_max=v_max, a_max=a_max, periods=periods)


def _slowed(whole: ApproachedTrajectory, factor: float) -> ApproachedTrajectory:
    """The same path in a multiple of the time."""
    slow = whole.core.with_period(whole.core.period_s * factor)
    return ApproachedTrajectory(
        slow, whole.posture, whole.entry_s * factor, whole.exit_s * factor, whole.periods
    )


def _require_within_limits(
    robot: RobotModel, whole: ApproachedTrajectory, request: MotionRequest
) -> None:
    """Raises `InvalidTrajectory` where a motion breaks a limit or collides."""
    limits = motion_limits(robot, request.limits)
    certificate = limits.certify(robot, whole, rate_hz=_CERTIFICATE_RATE_HZ)
    if not certificate.holds:
        raise InvalidTrajectory(
            f"the motion breaks a limit of {robot.name}: {certificate.worst.sentence}"
        )


def motion_limits(robot: RobotModel, limits: DesignLimits | None) -> DesignLimits:
    """The limits of every motion of an arm: its own, collisions with itself, and given ones.

    Args:
        robot: the arm
        limits: further limits, and obstacles around the arm; None for none
    """
    if limits is None:
        return replace(DesignLimits.of(robot), surroundings=Surroundings())
    return replace(
        limits.narrowed(robot.limits, joint_names=robot.joint_names),
        surroundings=limits.surroundings or Surroundings(),
    )


def braking_time_s(robot: RobotModel, whole: ApproachedTrajectory, *, rate_hz: float) -> float:
    """Shortest time in which an arm brakes to rest anywhere on a path within its limits, [s].

    Args:
        robot: the arm
        whole: the motion
        rate_hz: instants per second that are looked at, [Hz]

    Raises:
        InvalidTrajectory: the time would be too long
    """
    limit = np.where(np.isfinite(robot.limits.a_max), robot.limits.a_max, _DEFAULT_ACCELERATION)
    _, v, a = whole.at(np.arange(0.0, whole.duration_s, 1 / rate_hz))
    left = np.maximum(limit - np.abs(a), 1e-6)
    needed_s = np.abs(v) / left
    braking_s = float(needed_s.max())
    if braking_s > _MAX_BRAKING_S:
        k = int(needed_s.max(axis=0).argmax())
        raise InvalidTrajectory(
            f"{robot.joint_names[k]} is too fast to brake within {_MAX_BRAKING_S:g} s at"
            f" {limit[k]:g} rad/s^2: choose a lower tool speed"
        )
    return max(braking_s, _MIN_BRAKING_S)


def ready_row_of(stream: Stream, robot: RobotModel) -> Mapping[str, float]:
    """The newest row of an arm that is ready to move, by the names of the columns.

    Args:
        stream: rows of the controller
        robot: the expected arm

    Raises:
        SourceFailed: the controller accepts no motion, or is not ready
        InvalidTrajectory: the arm has another number of joints
        InvalidRobot: it is another arm
    """
    controller = movable_of(stream.source)
    row = controller.ready_row(stream)
    joints = len(controller.posture(row))
    if robot.n != joints:
        raise InvalidTrajectory(
            f"the motion is for {robot.name} with {robot.n} joints, {controller} has {joints}"
        )
    require_same_arm(robot, _as_arrays(row), str(controller))
    return row


def _require_comparable(
    controller: MovableController, robot: RobotModel, row: Mapping[str, float]
) -> None:
    """Raises `InvalidRobot` where a row has no pose of the flange to compare with the model's."""
    if not reports_flange(_as_arrays(row)):
        raise InvalidRobot(
            f"nothing was moved: it is not known whether {controller} is {robot.name}, because one"
            " of them does not tell the kind of arm, and the controller does not send"
            " actual_TCP_pose and tcp_offset, by which their flanges are compared"
        )


def _as_arrays(row: Mapping[str, float]) -> dict[str, Array]:
    """A row as the columns of a table with one row."""
    return {name: np.array([x]) for name, x in row.items()}


def payload_motion(
    model: DynamicModel,
    posture: Array,
    *,
    period_s: float = 6.0,
    reach: float = 0.6,
    tool_speed: float = DEFAULT_TOOL_SPEED,
    limits: DesignLimits | None = None,
) -> Design:
    """A short motion from a posture and back that determines a payload best, with certificate.

    Args:
        model: of the empty arm
        posture: where the arm stands, (n,) [rad]
        period_s: length of the motion, [s]
        reach: largest distance of a joint to either side, [rad]
        tool_speed: largest speed of the flange, [m/s]
        limits: further limits, and obstacles around the arm; none by default
    """
    own = model.robot.limits
    near = JointLimits(
        posture - reach,
        posture + reach,
        np.minimum(own.v_max, _DESIGN_SPEED),
        np.minimum(own.a_max, _DESIGN_ACCELERATION),
        own.tau_max,
    )
    limits = limits or DesignLimits.of(model.robot)
    speed = np.minimum(limits.linear_speed, tool_speed / np.sqrt(3))
    narrow = limits.narrowed(near, joint_names=model.robot.joint_names)
    return design(
        model.robot,
        harmonics=3,
        period_s=period_s,
        objective=PayloadOptimal(model.estimate.noise.tolist()),
        limits=replace(narrow, linear_speed=speed),
        start=posture,
        settings=DesignSettings(starts=1, rate_hz=_DESIGN_RATE_HZ, time_limit_s=_DESIGN_TIME_S),
    )
