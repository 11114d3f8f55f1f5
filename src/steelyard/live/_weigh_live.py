"""Weighing with a motion of the arm: a plan that is confirmed, a motion, and the payload.

The motion is given, or designed from where the arm stands. Rows are weighed while the arm moves, as
`track` does, and can be recorded and shown on a page meanwhile. Nothing is set on the controller;
`set_payload` does that with the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from steelyard._arrays import Array
from steelyard._kinds import Range, require_number
from steelyard.errors import InvalidSamples, InvalidTrajectory
from steelyard.excitation import Design, DesignLimits
from steelyard.identification import DynamicModel
from steelyard.live._commands import confirmed_plan
from steelyard.live._controller import movable_of
from steelyard.live._motion import (
    DEFAULT_TOOL_SPEED,
    MotionPlan,
    MotionRequest,
    MotionStart,
    payload_motion,
)
from steelyard.live._page_process import LivePage
from steelyard.live._playing import MotionRun
from steelyard.live._recorder import Recorder
from steelyard.live._source import Source, Stream
from steelyard.live._stop import StopReport
from steelyard.live._torque import TorqueSetup
from steelyard.live._view import Snapshot
from steelyard.live._weigher import LiveWeigher, snapshots_of
from steelyard.payload import Payload
from steelyard.robot import RobotModel
from steelyard.trajectory import FourierTrajectory
from steelyard.workflow._torque_tracking import tracker_named
from steelyard.workflow._tracking import DIRECT

_ALLOWED = {
    "period_s": Range(0.0, 3600.0, above=True),
    "reach": Range(0.0, 20.0, above=True),
    "accuracy": Range(0.0, 10.0, above=True),
}
"""Numbers that a user may ask for."""

_PERIOD_S = 6.0  # of a motion that is designed here
_REACH = 0.6  # of such a motion, [rad]
_CHECKED_INSTANTS = 1000  # of a period


@dataclass(frozen=True, eq=False)
class WeighingRequest:
    """What a user may choose about weighing with a motion.

    Attributes:
        motion: the motion; None for a short one that is designed from where the arm stands
        period_s: length of the motion, [s]; by default that of `motion`, or 6 s for a designed one
        reach: largest distance of a joint from where the arm stands, [rad]; by default 0.6 for a
            designed motion, and not limited for a given one
        tool_speed: largest speed of the tool, [m/s]; a faster motion is slowed down
        replace_program: whether the motion may replace a program that runs
        limits: limits of the motion and obstacles around the arm, as in `MotionRequest`
        serial: serial number of the arm; needed where the model or the controller has none
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
        tracker: 'direct', or the name of one from another package
    """

    motion: FourierTrajectory | None = None
    period_s: float | None = None
    reach: float | None = None
    tool_speed: float = DEFAULT_TOOL_SPEED
    replace_program: bool = False
    limits: DesignLimits | None = None
    serial: str = ""
    accuracy: float = 0.01
    tracker: str = DIRECT

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED.items():
            value = getattr(self, name)
            if value is not None:
                require_number(value, allowed, name, InvalidTrajectory)

    def trajectory(self, model: DynamicModel, posture: Array) -> FourierTrajectory:
        """The motion of an arm that stands in a posture.

        Args:
            model: of the empty arm
            posture: where it stands, (n,) [rad]

        Raises:
            InvalidTrajectory: the given motion goes further than `reach`
        """
        motion = self.motion
        if motion is None:
            return self._designed(model, posture).trajectory
        if self.reach is not None:
            _require_reach(model.robot, motion, posture, self.reach)
        if self.period_s is not None:
            motion = motion.with_period(self.period_s)
        return motion

    def _designed(self, model: DynamicModel, posture: Array) -> Design:
        period_s = _PERIOD_S
        if self.period_s is not None:
            period_s = self.period_s
        reach = _REACH
        if self.reach is not None:
            reach = self.reach
        return payload_motion(
            model,
            posture,
            period_s=period_s,
            reach=reach,
            tool_speed=self.tool_speed,
            limits=self.limits,
        )

    @property
    def motion_request(self) -> MotionRequest:
        """What `MotionPlan` needs to know."""
        return MotionRequest(
            tool_speed=self.tool_speed,
            limits=self.limits,
            replace_program=self.replace_program,
            serial=self.serial,
        )


@dataclass(frozen=True, eq=False)
class LiveWeighing:
    """A payload that was weighed with a motion of the arm.

    Attributes:
        payload: the nearest physical body, with its verdict and the arm that carried it
        plan: the motion
        rows: number of rows that came meanwhile
        missing: number of rows that the sender skipped
        files: files that were recorded
    """

    payload: Payload
    plan: MotionPlan
    rows: int
    missing: int
    files: tuple[Path, ...] = ()


def weigh_live(
    source: Source,
    model: DynamicModel,
    *,
    confirm: Callable[[MotionPlan], bool],
    request: WeighingRequest | None = None,
    output: Path | None = None,
    page: LivePage | None = None,
    on_snapshot: Callable[[Snapshot], None] | None = None,
    on_stop: Callable[[StopReport], None] | None = None,
) -> LiveWeighing:
    """Moves the arm, and weighs what it carries meanwhile; sets nothing on the controller.

    Args:
        source: the controller
        model: of the empty arm
        confirm: called with the checked plan; the arm moves only when it returns True. It is called
            again with a new plan where the arm was moved meanwhile
        request: what the user has chosen; the defaults of `WeighingRequest` without one
        output: file for every row (.parquet or .arrows); None to record nothing
        page: shows the snapshots, too; it stays open
        on_snapshot: called several times per second while the arm moves
        on_stop: called with what was seen of the arm after Ctrl-C or an exception

    Raises:
        InvalidTrajectory: the motion was not confirmed, breaks a limit, or collides
        MotionFailed: the motion did not start, was interrupted, or got lost
        InvalidSamples: nothing could be weighed
        UnknownName: no tracker has that name
    """
    request = request or WeighingRequest()
    tracker_named(request.tracker, model, request.accuracy)  # refused before the arm moves
    controller = movable_of(source)
    with Stream(controller) as before:
        posture = MotionStart.of(before, model.robot, request.motion_request).posture
    motion = request.trajectory(model, posture)
    with ExitStack() as resources:
        stream = resources.enter_context(Stream(controller))
        plan = MotionPlan.of(stream, model.robot, motion, request.motion_request)
        plan = confirmed_plan(plan, stream, confirm)
        recorder = None
        if output is not None:
            recorder = resources.enter_context(Recorder(output, stream.columns, plan.arm))
        setup = TorqueSetup(
            model, stream.columns, str(controller), request.accuracy, tracker=request.tracker
        )
        weigher = LiveWeigher(setup)
        run = resources.enter_context(MotionRun(plan, stream, on_stop=on_stop))
        for snapshot in snapshots_of(run, weigher, recorder=recorder, page=page):
            if on_snapshot is not None:
                on_snapshot(snapshot)
    files: Iterable[Path] = ()
    if recorder is not None:
        files = recorder.files
    return _weighed(weigher, plan, tuple(files))


def _weighed(weigher: LiveWeigher, plan: MotionPlan, files: tuple[Path, ...]) -> LiveWeighing:
    """What a weigher found during a motion; raises `InvalidSamples` where that is nothing."""
    payload = weigher.payload()
    snapshot = weigher.snapshot()
    if payload is None or snapshot is None:
        reason = ""
        if snapshot is not None:
            reason = f" ({snapshot.waiting})"
        raise InvalidSamples(f"{weigher.setup.name}: nothing could be weighed{reason}")
    payload = replace(payload, arm=plan.arm)
    return LiveWeighing(payload, plan, snapshot.rows, snapshot.missing, files)


def _require_reach(
    robot: RobotModel, motion: FourierTrajectory, posture: Array, reach: float
) -> None:
    """Raises `InvalidTrajectory` where a motion goes further from a posture than allowed."""
    q, _, _ = motion.at(np.linspace(0.0, motion.period_s, _CHECKED_INSTANTS))
    distance = np.abs(q - posture).max(axis=0)
    k = int(distance.argmax())
    if distance[k] > reach:
        raise InvalidTrajectory(
            f"the motion takes {robot.joint_names[k]} {distance[k]:.2f} rad from where it stands,"
            f" more than {reach:g}: give a larger `reach` or another motion"
        )
