"""The interface of a robot controller: its rows, the payload set on it, motions, and stop.

A motion is a `MotionLink`: the program on the controller goes on only while beats come from here.

Each maker has one file that implements it: `_ur`, `_franka`, `_ros2`. Callers know only the
interface. `Source.controller` is None for sources without a controller, and `Controller.movable`
is None for controllers that accept no motion from here; `Capabilities` lists the other differences.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, ClassVar, NamedTuple, Self

import numpy as np

from steelyard._arrays import Array
from steelyard._kinds import NOT_NEGATIVE, Shape
from steelyard.errors import SourceFailed
from steelyard.live._source import Source, Stream, Values
from steelyard.recording import UNKNOWN_ARM, ArmIdentity

MAX_SPEED_AT_REST = 0.01
"""Largest joint speed of an arm that stands still, [rad/s]."""

MAX_ANSWER_S = 0.15
"""Longest time until rows show that the program of a motion has received a beat, [s]. It is above
the silence after which the program brakes by itself, because a busy computer takes its rows late
after one."""

_HOLD_S = 0.3  # a payload that is reported for so long counts as set
_TOLERANCES = (1e-4, 1e-5, 1e-5)  # of mass [kg], centre [m] and inertia [kg m^2] in the echo


class ControllerPayload(NamedTuple):
    """A payload as a controller stores it.

    Attributes:
        mass: [kg]
        cog: centre of gravity, (3,) [m], from the tool flange
        inertia: xx, yy, zz, xy, xz, yz about the centre of gravity, (6,) [kg m^2], axes of the
            flange
    """

    mass: Annotated[float, NOT_NEGATIVE] = 0.0
    cog: Annotated[tuple[float, ...], Shape(3)] = (0.0, 0.0, 0.0)
    inertia: Annotated[tuple[float, ...], Shape(6)] = (0.0,) * 6

    @property
    def inertia_matrix(self) -> Array:
        """Inertia about the centre of gravity, (3, 3) [kg m^2], axes of the flange."""
        xx, yy, zz, xy, xz, yz = self.inertia
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    def is_close(self, other: ControllerPayload, *, with_inertia: bool = True) -> bool:
        """Whether two payloads agree within the resolution of a controller's outputs.

        Args:
            other: the payload to compare with
            with_inertia: False to compare mass and centre only
        """
        if with_inertia:
            count = 3
        else:
            count = 2
        pairs = list(zip(self, other, _TOLERANCES, strict=True))[:count]
        return all(bool(np.abs(np.array(x) - np.array(y)).max() <= close) for x, y, close in pairs)


class SettingState(StrEnum):
    """Outcomes of setting a payload."""

    SET = "set"
    NOT_SET = "not set"
    NOT_KNOWN = "not known"


class SettingOutcome(NamedTuple):
    """What is known after a payload was sent.

    Attributes:
        state: whether it was set
        words: what the controller said, for people
        reported: the payload that the controller reports; None where it reports none
    """

    state: SettingState
    words: str
    reported: ControllerPayload | None = None


class PayloadRequest(NamedTuple):
    """A payload to set.

    Attributes:
        payload: the payload
        before: the payload that is set now, as it was shown; None where it is unknown
        transition_s: time in which the controller changes over, [s], where it can do that
        with_inertia: False to send mass and centre only
        arm: the arm that the controller reported before the question; None for no check
    """

    payload: ControllerPayload
    before: ControllerPayload | None = None
    transition_s: float = 0.5
    with_inertia: bool = True
    arm: ArmIdentity | None = None


class Capabilities(NamedTuple):
    """Optional abilities of a controller.

    Attributes:
        reports_payload: its rows contain the payload set on it, so an old one can be restored
        sets_payload_while_streaming: it accepts a payload while another client reads its rows
        moves: it accepts a motion from here
        stops: it accepts a stop command from here
    """

    reports_payload: bool = False
    sets_payload_while_streaming: bool = False
    moves: bool = False
    stops: bool = False


class ControllerStatus(NamedTuple):
    """Facts that a controller reports while it is ready for a command.

    Attributes:
        payload: the payload set on it; None where it does not report one
        rating_kg: largest payload of the arm, [kg]; 0 where it does not report one
        takes_inertia: whether it accepts an inertia; otherwise mass and centre alone
        note: what a user should know before setting a payload; may be empty
        arm: the arm behind the controller, as far as it reports it
        version: version of its software; empty where it does not report one
    """

    payload: ControllerPayload | None
    rating_kg: float = 0.0
    takes_inertia: bool = True
    note: str = ""
    arm: ArmIdentity = UNKNOWN_ARM
    version: tuple[int, ...] = ()


class Controller(Source):
    """A controller: a source of rows that accepts a payload.

    `str(controller)` is its address and its identity.

    Attributes:
        capabilities: optional abilities
        export_format: name of the export format whose rules apply to its payloads
    """

    capabilities: ClassVar[Capabilities]
    export_format: ClassVar[str]

    @property
    def controller(self) -> Controller:
        """This controller."""
        return self

    @property
    def movable(self) -> MovableController | None:
        """This controller where it accepts motions; None elsewhere."""
        return None

    @abstractmethod
    def status(self) -> ControllerStatus:
        """Facts about a controller that is ready; raises `SourceFailed` where it is not."""

    @abstractmethod
    def set_payload(self, request: PayloadRequest) -> SettingOutcome:
        """Sends a payload and waits for the confirmation.

        Args:
            request: the payload to set

        Raises:
            SourceFailed: nothing was sent, because the controller is not ready, or because its
                payload has changed since it was shown
        """

    def identity(self, version: tuple[int, ...]) -> ArmIdentity:
        """The arm behind the controller, as far as it reports it.

        Args:
            version: version of its software
        """
        return UNKNOWN_ARM

    @abstractmethod
    def joint_speeds(self, row: Mapping[str, float]) -> Sequence[float]:
        """Joint speeds in a row, [rad/s]; empty where the row does not contain them."""

    def obstacle(self, row: Mapping[str, float]) -> str:
        """Why the controller cannot be commanded in the modes of a row; empty where it can."""
        return ""

    def payload_in(self, row: Mapping[str, float]) -> ControllerPayload | None:
        """The payload that a row reports; None where the row does not contain one.

        Args:
            row: values by the names of the columns
        """
        return None

    def ready_row(self, stream: Stream) -> dict[str, float]:
        """The newest row of a controller that is ready for a command and stands still.

        Args:
            stream: rows of this controller

        Raises:
            SourceFailed: it is not ready, or the arm moves
        """
        newest = stream.row()
        row = dict(zip(stream.columns, newest.values, strict=True))
        if reason := newest.waiting or self.obstacle(row):
            raise SourceFailed(f"{self} is not ready: {reason}")
        speeds = self.joint_speeds(row)
        if not speeds:
            raise SourceFailed(f"{self} does not report joint speeds: the arm may move")
        speed = largest_speed(speeds)
        if not speed <= MAX_SPEED_AT_REST:
            raise SourceFailed(f"{self} moves ({speed:.2g} rad/s): stop the arm first")
        return row

    def payload(self, stream: Stream) -> ControllerPayload:
        """The payload set on the controller now.

        Args:
            stream: rows of this controller
        """
        payload = self.payload_in(stream.named_row())
        if payload is None:
            raise SourceFailed(
                f"{self} does not report its payload with mass and centre of gravity: is its"
                " software too old?"
            )
        return payload

    def require_unchanged(self, stream: Stream, before: ControllerPayload | None) -> None:
        """Raises `SourceFailed` where the payload is no longer the one that was shown.

        Args:
            stream: rows of this controller
            before: the payload that was shown; None for no check
        """
        if before is None:
            return
        present = self.payload(stream)
        if not present.is_close(before):
            raise SourceFailed(
                f"nothing was sent: {self} reports {present.mass:.4g} kg now and reported"
                f" {before.mass:.4g} kg before the question; does another program set it?"
            )

    def require_arm(self, stream: Stream, before: ArmIdentity) -> None:
        """Raises `SourceFailed` where the arm is no longer the one before the question.

        Args:
            stream: rows of this controller
            before: the arm that the controller reported
        """
        present = self.identity(stream.version)
        if present != before:
            raise SourceFailed(
                f"nothing was sent: {self} reports {present} now and reported {before} before the"
                " question"
            )

    def setting_outcome(
        self, stream: Stream, request: PayloadRequest, *, timeout_s: float
    ) -> SettingOutcome:
        """What the rows say after a payload was sent.

        It is set when the rows report it for a while without a change, not set when they report
        the payload before until the end, and not known otherwise.

        Args:
            stream: rows of this controller
            request: the payload that was sent
            timeout_s: longest wait, [s]
        """
        end_s = time.monotonic() + timeout_s
        equal_s: float | None = None  # since when the rows report it
        reported = None
        try:
            while equal_s is not None or time.monotonic() < end_s:
                reported = self.payload(stream)
                if not reported.is_close(request.payload, with_inertia=request.with_inertia):
                    equal_s = None
                elif equal_s is None:
                    equal_s = time.monotonic()
                elif time.monotonic() - equal_s > _HOLD_S:
                    words = f"the controller reports a payload of {reported.mass:.3f} kg"
                    return SettingOutcome(SettingState.SET, words, reported)
        except (SourceFailed, KeyboardInterrupt) as error:
            words = f"it is not known whether the payload was set: {str(error) or 'interrupted'}"
            return SettingOutcome(SettingState.NOT_KNOWN, words, reported)
        return self._other_outcome(request, reported)

    def _other_outcome(
        self, request: PayloadRequest, reported: ControllerPayload | None
    ) -> SettingOutcome:
        """The outcome where the rows do not report the payload that was sent."""
        if reported is not None and request.before is not None and reported == request.before:
            words = f"the payload was not set: {self} still reports {reported.mass:.3f} kg"
            return SettingOutcome(SettingState.NOT_SET, words, reported)
        now = "reports none"
        if reported is not None:
            now = f"now says {reported.mass:.3f} kg"
        words = f"it is not known what was set: the controller {now}"
        return SettingOutcome(SettingState.NOT_KNOWN, words, reported)


class PathCommand(NamedTuple):
    """A path for a controller.

    Attributes:
        q: points of the path, (N, n) [rad]; the first is the present posture
        rate_hz: commands per second, [Hz]
        steps_per_point: commands from one point to the next, on a straight line between them
        braking_s: time in which the arm brakes to rest along the path, [s]
    """

    q: Array
    rate_hz: float
    steps_per_point: int
    braking_s: float


class ProgramState(StrEnum):
    """What a row says about the program of a motion."""

    UNSEEN = "unseen"  # it does not run, or another one does
    WAITING = "waiting"  # for the first beat
    MOVING = "moving"
    BRAKING = "braking"  # it heard nothing, or was asked to stop
    FINISHED = "finished"
    REFUSED = "refused"  # it ended before the arm moved
    STOPPED = "stopped"  # it ended on the way


class Observation(NamedTuple):
    """What one row says about a motion.

    Attributes:
        program: state of its program
        speed: largest joint speed, [rad/s]
        q: joint positions, (n,) [rad]
        reason: why the program was refused or stopped, or why it may not start yet
        waits_since_s: when the first beat was sent that the program has not confirmed
            (`time.monotonic`), [s]; infinite where it has confirmed all
        hindrance: why the arm must not go on in the modes of the row; empty where it may
    """

    program: ProgramState
    speed: float
    q: Values
    reason: str = ""
    waits_since_s: float = math.inf
    hindrance: str = ""


class SeenMotion(NamedTuple):
    """What one row says about an arm that should be at rest.

    Attributes:
        reason: why the arm is not at rest; empty where no joint moves and no program runs
        is_known: False where the row does not tell whether the arm moves
    """

    reason: str
    is_known: bool = True


class MotionLink(ABC):
    """A motion on a controller that goes on only while beats come; use it in a `with`.

    Leaving the `with` ends the beats: an arm that still moves brakes by itself.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def start(self) -> None:
        """Sends the program of the motion, which replaces the one that runs."""

    @abstractmethod
    def beat(self) -> None:
        """Tells the program that this computer is well; raises `SourceFailed` where it cannot."""

    @abstractmethod
    def request_stop(self) -> None:
        """Asks the program to brake; raises `SourceFailed` where it cannot."""

    @abstractmethod
    def close(self) -> None:
        """Ends the beats; a second call does nothing."""

    @abstractmethod
    def observer(self, columns: Sequence[str]) -> Callable[[Values], Observation]:
        """A function that tells from the values of a row how the motion goes.

        Args:
            columns: names of the values
        """


class MovableController(Controller):
    """A controller that moves the arm along joint positions that are sent to it."""

    @property
    def movable(self) -> MovableController:
        """This controller."""
        return self

    @abstractmethod
    def posture(self, row: Mapping[str, float]) -> Array:
        """Joint positions in a row, (n,) [rad]."""

    @abstractmethod
    def command_rate_hz(self, version: tuple[int, ...]) -> float:
        """Commands per second that this version of the controller's software follows, [Hz]."""

    @abstractmethod
    def motion_link(self, path: PathCommand) -> MotionLink:
        """A link for one motion, over which nothing was sent yet.

        Args:
            path: what the arm shall do

        Raises:
            SourceFailed: no link can be opened
        """

    @abstractmethod
    def running_program(self, row: Mapping[str, float]) -> str:
        """The program that runs on the controller, for people; empty where none runs."""

    @abstractmethod
    def motion_in(self, columns: Sequence[str]) -> Callable[[Values], SeenMotion]:
        """A function that tells from the values of a row whether the arm is at rest.

        Args:
            columns: names of the values

        Raises:
            SourceFailed: the rows do not tell it
        """

    @abstractmethod
    def send_stop(self) -> None:
        """Sends a stop command; raises `SourceFailed` where the controller takes none.

        The caller has to look whether the arm stops.
        """

    @abstractmethod
    def tool_offset(self, row: Mapping[str, float]) -> Array:
        """The tool's centre point in the flange frame, (3,) [m].

        Raises:
            SourceFailed: the controller does not report it
        """


def largest_speed(speeds: Sequence[float]) -> float:
    """Largest speed of a joint, [rad/s]; NaN where one of them is not a number.

    Args:
        speeds: of the joints, at least one, [rad/s]
    """
    if any(map(math.isnan, speeds)):
        return math.nan
    return max(map(abs, speeds))


def controller_of(source: Source) -> Controller:
    """The controller of a source; raises `SourceFailed` where there is none."""
    if source.controller is None:
        raise SourceFailed(
            f"{source} cannot be commanded: give ur://HOST, ros2://HOST or franka://HOST"
        )
    return source.controller


def movable_of(source: Source) -> MovableController:
    """The controller of a source that accepts motions; raises `SourceFailed` elsewhere."""
    controller = source.controller
    if controller is None or controller.movable is None:
        raise SourceFailed(
            f"{source} cannot be moved from here: give ur://HOST, or let the arm's own program move"
            " it and track the payload meanwhile"
        )
    return controller.movable
