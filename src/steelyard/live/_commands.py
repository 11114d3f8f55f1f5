"""Commands to a controller as functions: move the arm, set a payload, restore the old one.

Each function asks before it sends anything: `confirm` gets the checked plan or proposal and answers
whether to carry it out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from steelyard.errors import InvalidTrajectory
from steelyard.live._controller import controller_of, movable_of
from steelyard.live._motion import MotionPlan, MotionRequest
from steelyard.live._playing import MotionRun, Moved
from steelyard.live._recorder import Recorded, Recorder, record
from steelyard.live._setting import PayloadSetting, Proposal
from steelyard.live._source import Source, Stream
from steelyard.live._stop import StopReport
from steelyard.payload import Payload
from steelyard.robot import RobotModel
from steelyard.trajectory import FourierTrajectory


class MotionReport(NamedTuple):
    """A motion that was carried out.

    Attributes:
        plan: the motion
        rows: number of rows that came meanwhile
        missing: number of rows that the sender skipped
        moved: whether the arm was seen moving
        files: files that were recorded
    """

    plan: MotionPlan
    rows: int
    missing: int
    moved: Moved
    files: tuple[Path, ...] = ()


def move(
    source: Source,
    robot: RobotModel,
    motion: FourierTrajectory,
    *,
    confirm: Callable[[MotionPlan], bool],
    request: MotionRequest | None = None,
    output: Path | None = None,
    on_report: Callable[[Recorded], None] | None = None,
    on_stop: Callable[[StopReport], None] | None = None,
) -> MotionReport:
    """Moves the arm along a designed motion, from its present posture and back.

    Args:
        source: the controller
        robot: the arm that the motion is for
        motion: the designed motion
        confirm: called with the checked plan; the arm moves only when it returns True. It is called
            again with a new plan where the arm was moved meanwhile
        request: what the user has chosen; the defaults of `MotionRequest` without one
        output: file for every row (.parquet or .arrows); None to record nothing
        on_report: called several times per second while the arm moves
        on_stop: called with what was seen of the arm after Ctrl-C or an exception

    Raises:
        MotionFailed: the motion did not start, was interrupted, or got lost
    """
    with ExitStack() as resources:
        stream = resources.enter_context(Stream(movable_of(source)))
        plan = confirmed_plan(MotionPlan.of(stream, robot, motion, request), stream, confirm)
        recorder = None
        if output is not None:
            recorder = resources.enter_context(Recorder(output, stream.columns, plan.arm))
        run = resources.enter_context(MotionRun(plan, stream, on_stop=on_stop))
        for report in record(run, recorder):
            if on_report is not None:
                on_report(report)
    files: tuple[Path, ...] = ()
    if recorder is not None:
        files = tuple(recorder.files)
    moved = Moved.NOT_KNOWN
    if run.progress is not None:
        moved = run.progress.moved
    return MotionReport(plan, report.rows, report.missing, moved, files)


def confirmed_plan(
    plan: MotionPlan, stream: Stream, confirm: Callable[[MotionPlan], bool]
) -> MotionPlan:
    """A confirmed plan that begins where the arm stands now.

    Args:
        plan: the motion
        stream: rows of the controller
        confirm: called with each plan; a new one where the arm was moved since the last

    Raises:
        InvalidTrajectory: the motion was not confirmed
    """
    asked = None
    while plan is not asked:
        asked = plan
        if not confirm(plan):
            raise InvalidTrajectory("nothing was moved: the motion was not confirmed")
        plan = plan.renewed(stream)
    return plan


def set_payload(
    source: Source,
    payload: Payload,
    *,
    confirm: Callable[[Proposal], bool],
    history_file: Path | None = None,
    rating_kg: float | None = None,
    transition_s: float = 0.5,
    serial: str = "",
) -> PayloadSetting:
    """Sets a weighed payload on a controller and waits for its confirmation.

    The outcome is one of three: set, not set, or not known.

    Args:
        source: the controller
        payload: the whole payload of the arm, in the frame of the tool flange
        confirm: called with the checked proposal; it is sent only when this returns True
        history_file: file for the payloads before and after (.json), for `restore_payload`; it is
            only added to. Nothing is written where the controller does not report its payload
        rating_kg: largest payload of the arm, [kg]; as the controller reports it by default
        transition_s: time in which the controller changes over, [s], where it can do that
        serial: serial number of the arm; needed where the payload or the controller has none
    """
    proposal = Proposal.of(controller_of(source), payload, rating_kg=rating_kg, serial=serial)
    if not confirm(proposal):
        return PayloadSetting(proposal)
    return proposal.carry_out(history_file, transition_s=transition_s)


def restore_payload(
    source: Source,
    history_file: Path,
    *,
    confirm: Callable[[Proposal], bool],
    transition_s: float = 0.5,
    serial: str = "",
) -> PayloadSetting:
    """Restores the payload that a controller had before `set_payload`.

    Args:
        source: the controller
        history_file: file that `set_payload` wrote
        confirm: called with the checked proposal; it is sent only when this returns True
        transition_s: time in which the controller changes over, [s], where it can do that
        serial: serial number of the arm; needed where the file or the controller has none
    """
    proposal = Proposal.undo(source, history_file, serial=serial)
    if not confirm(proposal):
        return PayloadSetting(proposal)
    return proposal.carry_out(history_file, transition_s=transition_s)
