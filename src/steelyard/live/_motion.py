"""A designed motion on the arm, from its present posture into the motion and back.

The way into the motion and out of it is a smooth polynomial in joint space
(`ApproachedTrajectory`). Nothing has checked that way for obstacles. Therefore a motion is refused
when it begins far from the present posture, when it breaks a limit of the arm, and when the
controller does not run with normal safety.

While the arm moves, `MotionProgress` follows the rows of the controller:

    SENT ---program runs---> MOVING ---program ended---> FINISHED
     |                         |----mode not fit-------> INTERRUPTED
     |                         `----too long-----------> OVERDUE
     `----no start in time--> NOT_STARTED
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidTrajectory, SourceFailed
from steelyard.excitation import Design, DesignLimits, DesignSettings, PayloadOptimal, design
from steelyard.identification import DynamicModel
from steelyard.live._controller import MovableController, movable_of
from steelyard.live._source import Event, Row, Stream
from steelyard.live._weigher import require_same_arm
from steelyard.robot import JointLimits, RobotModel
from steelyard.trajectory import ApproachedTrajectory, FourierTrajectory

_MAX_DISTANCE = 0.5  # of a joint from the first posture of the motion, [rad]
_ENTRY_SPEED = 0.5  # [rad/s]
_ENTRY_ACCELERATION = 1.0  # [rad/s^2]
_DESIGN_SPEED = 1.5  # largest speed of a motion that is designed here, [rad/s]
_DESIGN_ACCELERATION = 4.0  # [rad/s^2]
_DESIGN_TIME_S = 8.0
_DESIGN_RATE_HZ = 500.0
_MAX_DELAY_S = 3.0  # of the start and of the end, by the controller's clock
_SILENCE_S = 5.0  # without rows, the connection counts as lost


class MotionState(StrEnum):
    """States of a motion that was sent to a controller."""

    SENT = "sent"
    MOVING = "moving"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    NOT_STARTED = "not started"
    OVERDUE = "overdue"


_ONGOING = (MotionState.SENT, MotionState.MOVING)


@dataclass(frozen=True)
class MotionProgress:
    """Progress of a motion that was sent to a controller; `after` gives the next one.

    Attributes:
        duration_s: of the whole motion, [s]
        state: the present state
        start_s: the controller's time of the first row, [s]; None before it
        reason: why the motion was interrupted; empty otherwise
    """

    duration_s: float
    state: MotionState = MotionState.SENT
    start_s: float | None = None
    reason: str = ""

    @property
    def ongoing(self) -> bool:
        """Whether the motion has neither ended nor failed."""
        return self.state in _ONGOING

    @property
    def latest_end_s(self) -> float:
        """Latest regular end after the first row, [s]."""
        return self.duration_s + _MAX_DELAY_S

    def after(self, row: Row, *, program_runs: bool) -> MotionProgress:
        """The progress after one more row.

        Args:
            row: the next row of the controller
            program_runs: whether the row says that a program moves the arm
        """
        if self.start_s is None:
            return replace(self, start_s=row.t).after(row, program_runs=program_runs)
        moving = self.state is MotionState.MOVING
        elapsed_s = row.t - self.start_s
        if moving and row.waiting:
            return replace(self, state=MotionState.INTERRUPTED, reason=row.waiting)
        if moving and not program_runs:
            return replace(self, state=MotionState.FINISHED)
        if not program_runs and elapsed_s > _MAX_DELAY_S:
            return replace(self, state=MotionState.NOT_STARTED)
        if elapsed_s > self.latest_end_s + _MAX_DELAY_S:
            return replace(self, state=MotionState.OVERDUE)
        if program_runs and not moving:
            return replace(self, state=MotionState.MOVING)
        return self

    def require_good(self, controller: MovableController) -> None:
        """Raises `SourceFailed` in the states of a failed motion.

        Args:
            controller: named in the message
        """
        if self.state is MotionState.INTERRUPTED:
            raise SourceFailed(f"the motion was interrupted: {self.reason}")
        if self.state is MotionState.NOT_STARTED:
            raise SourceFailed(f"{controller} does not move: is it in remote control?")
        if self.state is MotionState.OVERDUE:
            raise SourceFailed(f"the motion did not end within {self.latest_end_s:.0f} s")


@dataclass(frozen=True, eq=False)
class MotionPlan:
    """A motion from the present posture of an arm that was checked and not sent yet.

    Attributes:
        controller: the controller of the arm
        robot: the arm
        trajectory: from the present posture into the motion, and back
        rate_hz: commands per second, [Hz]
    """

    controller: MovableController
    robot: RobotModel
    trajectory: ApproachedTrajectory
    rate_hz: float

    @classmethod
    def of(
        cls, stream: Stream, robot: RobotModel, core: FourierTrajectory, *, periods: int = 1
    ) -> MotionPlan:
        """The plan of a motion from the present posture.

        Args:
            stream: rows of the controller
            robot: the arm that the motion is for
            core: the motion
            periods: how often it runs

        Raises:
            SourceFailed: the controller accepts no motion, or is not ready
            InvalidTrajectory: the motion begins too far away, or breaks a limit
        """
        controller = movable_of(stream.source)
        q = standing_posture(stream, robot)
        first = core.at([0.0])[0][0]
        distance = np.abs(first - q)
        if distance.max() > _MAX_DISTANCE:
            k = int(distance.argmax())
            raise InvalidTrajectory(
                f"{robot.joint_names[k]} stands {distance[k]:.2f} rad from where the motion begins,"
                f" more than {_MAX_DISTANCE:g}: move the arm by hand first, to"
                f" {np.round(first, 3).tolist()} rad"
            )
        _, v, a = core.amplitudes
        v_max = np.maximum(_ENTRY_SPEED, v)
        a_max = np.maximum(_ENTRY_ACCELERATION, a)
        whole = ApproachedTrajectory.within(core, q, v_max=v_max, a_max=a_max, periods=periods)
        certificate = DesignLimits.of(robot).certify(robot, whole)
        if not certificate.holds:
            raise InvalidTrajectory(
                f"the motion breaks a limit of {robot.name}: {certificate.worst.sentence}"
            )
        return cls(controller, robot, whole, controller.command_rate_hz(stream.version))

    @property
    def positions(self) -> Array:
        """Commanded joint positions, (N, n) [rad], one row for each command."""
        steps = int(np.ceil(self.trajectory.duration_s * self.rate_hz))
        q, _, _ = self.trajectory.at(np.arange(steps + 1) / self.rate_hz)
        return q

    def play(self, stream: Stream) -> Iterator[Row | Event]:
        """Moves the arm; gives the rows and events until it has stopped.

        Args:
            stream: rows of the controller

        Raises:
            SourceFailed: the motion does not start, is interrupted, or does not end in time
        """
        runs = self.controller.program_runs(stream.columns)
        self.controller.start_motion(self.positions, rate_hz=self.rate_hz)
        progress = MotionProgress(self.trajectory.duration_s)
        while items := stream.take(_SILENCE_S):
            for item in items:
                yield item
                if not isinstance(item, Row):
                    continue
                progress = progress.after(item, program_runs=runs(item.values))
                progress.require_good(self.controller)
                if not progress.ongoing:
                    return
        raise SourceFailed(f"{self.controller} sent no rows while the arm moved")


def standing_posture(stream: Stream, robot: RobotModel) -> Array:
    """The posture of an arm that is ready to move, (n,) [rad].

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
    q = controller.posture(row)
    if robot.n != len(q):
        raise InvalidTrajectory(
            f"the motion is for {robot.name} with {robot.n} joints, {controller} has {len(q)}"
        )
    values = {name: np.array([x]) for name, x in row.items()}
    require_same_arm(robot, values, str(controller))
    return q


def payload_motion(
    model: DynamicModel, posture: Array, *, period_s: float = 6.0, reach: float = 0.6
) -> Design:
    """A short motion from a posture and back that determines a payload best, with certificate.

    Args:
        model: of the empty arm
        posture: where the arm stands, (n,) [rad]
        period_s: length of the motion, [s]
        reach: largest distance of a joint to either side, [rad]
    """
    limits = model.robot.limits
    near = JointLimits(
        posture - reach,
        posture + reach,
        np.minimum(limits.v_max, _DESIGN_SPEED),
        np.minimum(limits.a_max, _DESIGN_ACCELERATION),
        limits.tau_max,
    )
    return design(
        model.robot,
        harmonics=3,
        period_s=period_s,
        objective=PayloadOptimal(model.estimate.noise.tolist()),
        limits=DesignLimits.of(model.robot).narrowed(near, joint_names=model.robot.joint_names),
        start=posture,
        settings=DesignSettings(starts=1, rate_hz=_DESIGN_RATE_HZ, time_limit_s=_DESIGN_TIME_S),
    )
