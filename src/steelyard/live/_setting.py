"""A payload for a controller: checked, shown beside the present one, set on request, restored.

The payload is part of a controller's model of the arm: a wrong one makes the arm drift in
freedrive, and stop when it should not or fail to stop when it should. Therefore nothing is sent
without a request. A proposal is refused where an export would be refused, above the rating of the
arm, on another arm than the payload's, while the arm moves, and in any mode but running with normal
safety. Every payload that is sent has its entries in a history (`_history`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from steelyard._kinds import Range, require_number
from steelyard._units import INERTIA as INERTIA_UNIT
from steelyard.errors import InvalidInertia, InvalidRobot, SourceFailed
from steelyard.export import ErrorLimits, Export
from steelyard.live._controller import (
    Controller,
    ControllerPayload,
    PayloadRequest,
    SettingOutcome,
    SettingState,
    controller_of,
)
from steelyard.live._history import PayloadChange, PayloadHistory, required_change
from steelyard.live._source import Source
from steelyard.payload import Payload
from steelyard.payload._plausibility import CARRIED_MASSES
from steelyard.recording import UNKNOWN_ARM, ArmIdentity

_TRANSITIONS_S = Range(0.0, 60.0)
_QUANTITIES = (
    ("mass", "kg"),
    ("centre of gravity x", "mm"),
    ("centre of gravity y", "mm"),
    ("centre of gravity z", "mm"),
    ("Ixx", INERTIA_UNIT),
    ("Iyy", INERTIA_UNIT),
    ("Izz", INERTIA_UNIT),
    ("Ixy", INERTIA_UNIT),
    ("Ixz", INERTIA_UNIT),
    ("Iyz", INERTIA_UNIT),
)


@dataclass(frozen=True)
class Proposal:
    """A payload for a controller that was checked and not sent yet.

    Attributes:
        controller: the controller
        old: the payload set on it now; None where it does not report one
        new: the payload to set
        with_inertia: whether it accepts an inertia; otherwise mass and centre alone
        note: what a user should know before setting it; may be empty
        arm: the arm behind the controller
        restores: whether the new payload is an earlier one
        reported: the arm as the controller itself reports it; None where it is not checked again
    """

    controller: Controller
    old: ControllerPayload | None
    new: ControllerPayload
    with_inertia: bool = True
    note: str = ""
    arm: ArmIdentity = UNKNOWN_ARM
    restores: bool = False
    reported: ArmIdentity | None = None

    @classmethod
    def of(
        cls,
        source: Source,
        payload: Payload,
        *,
        limits: ErrorLimits | None = None,
        rating_kg: float | None = None,
        serial: str = "",
    ) -> Proposal:
        """The proposal to set a weighed payload.

        Args:
            source: the controller
            payload: the whole payload of the arm, in the frame of the tool flange; for a Franka arm
                without the end effector that its controller knows
            limits: largest uncertainty; 10 % of the mass and 20 mm by default
            rating_kg: largest payload of the arm, [kg]; as the controller reports it by default
            serial: serial number of the arm; needed where the payload or the controller has none

        Raises:
            InvalidInertia: the payload must not be exported, or is above the rating
            InvalidRobot: it belongs to another arm, or this is not known
            SourceFailed: there is no controller, or it is not ready
        """
        controller = controller_of(source)
        export = Export.of(payload.as_load(), controller.export_format, limits=limits)
        export.text()  # raises where the payload must not be exported
        body = export.load.body
        moments = export.load.inertia_com[:3].clip(min=0.0)
        products = export.load.inertia_com[3:]
        inertia = tuple(float(x) for x in (*moments, *products))
        new = ControllerPayload(body.mass, tuple(body.com.tolist()), inertia)
        return cls.to(controller, new, rating_kg=rating_kg, arm=payload.arm, serial=serial)

    @classmethod
    def to(
        cls,
        controller: Controller,
        new: ControllerPayload,
        *,
        rating_kg: float | None = None,
        arm: ArmIdentity = UNKNOWN_ARM,
        serial: str = "",
    ) -> Proposal:
        """The proposal to set given numbers; raises where the controller is not ready.

        Args:
            controller: the controller
            new: the payload to set
            rating_kg: largest payload of the arm, [kg]; as the controller reports it by default
            arm: the arm that the payload belongs to, as far as it is known
            serial: serial number of the arm; needed where `arm` or the controller has none
        """
        if rating_kg is not None:
            require_number(rating_kg, CARRIED_MASSES, "rating_kg", InvalidInertia)
        status = controller.status()
        present = require_same_identity(controller, status.arm, arm, "the payload", serial=serial)
        rating = rating_kg or status.rating_kg
        if not rating:
            raise InvalidInertia(
                f"{controller} does not report the rating of the arm: give its rating in kg"
            )
        if new.mass > rating:
            raise InvalidInertia(
                f"{new.mass:.4g} kg is above the rating of this arm, {rating:.4g} kg"
            )
        return cls(
            controller,
            status.payload,
            new,
            with_inertia=status.takes_inertia,
            note=status.note,
            arm=present,
            reported=status.arm,
        )

    @property
    def cells(self) -> tuple[tuple[str, str, str, str], ...]:
        """Name, old value, new value and unit of each number, for a table."""
        if self.old is None:
            old = ["not reported"] * len(_QUANTITIES)
        else:
            old = _texts(self.old)
        rows = zip(_QUANTITIES, old, _texts(self.new), strict=True)
        return tuple((name, before, after, unit) for (name, unit), before, after in rows)

    def send(self, *, transition_s: float = 0.5) -> SettingOutcome:
        """Sends the payload and awaits the confirmation; raises `SourceFailed` if nothing is sent.

        Ctrl-C meanwhile leaves the payload unknown: a part of the answer may be lost.

        Args:
            transition_s: time in which the controller changes over, [s], where it can do that
        """
        require_number(transition_s, _TRANSITIONS_S, "transition_s", InvalidInertia)
        request = PayloadRequest(
            self.new, self.old, transition_s, self.with_inertia, arm=self.reported
        )
        try:
            return self.controller.set_payload(request)
        except KeyboardInterrupt:
            words = "it is not known whether the payload was set: interrupted"
            return SettingOutcome(SettingState.NOT_KNOWN, words)

    def carry_out(
        self, history_file: Path | None = None, *, transition_s: float = 0.5
    ) -> PayloadSetting:
        """Sends the payload, with its entries in a history.

        Args:
            history_file: where the entries go (.json); None for none. Nothing is written where the
                controller does not report its payload
            transition_s: time in which the controller changes over, [s], where it can do that
        """
        if history_file is None or self.old is None:
            return PayloadSetting(self, self.send(transition_s=transition_s))
        entry = PayloadChange.sent_to(
            str(self.controller), self.arm, old=self.old, new=self.new, restores=self.restores
        )
        PayloadHistory.append(history_file, entry)
        try:
            outcome = self.send(transition_s=transition_s)
        except SourceFailed:
            PayloadHistory.append(history_file, entry.with_outcome(SettingState.NOT_SET, self.old))
            raise
        PayloadHistory.append(history_file, entry.with_outcome(outcome.state, outcome.reported))
        return PayloadSetting(self, outcome, history_file)

    @classmethod
    def undo(cls, source: Source, path: str | Path, *, serial: str = "") -> Proposal:
        """The proposal to restore the payload that a controller had before the last change.

        Args:
            source: the controller
            path: file of the history
            serial: serial number of the arm; needed where the file or the controller has none
        """
        controller = controller_of(source)
        if not controller.capabilities.reports_payload:
            raise _not_restorable(controller)
        change = required_change(path)
        if change.source != str(controller):
            raise SourceFailed(f"{path} is of {change.source}, not of {controller}")
        proposal = cls.to(
            controller, change.old, rating_kg=CARRIED_MASSES.high, arm=change.arm, serial=serial
        )
        present = proposal.old
        if present and not present.is_close(change.new, with_inertia=proposal.with_inertia):
            raise SourceFailed(
                f"{controller} reports {present.mass:.4g} kg now, not the {change.new.mass:.4g} kg"
                " that were set: the payload was changed meanwhile, and nothing is restored"
            )
        return replace(proposal, restores=True)


class UnknownSerial(InvalidRobot):
    """The serial number of an arm is unknown; it may be stated.

    Attributes:
        reason: the message without what to do
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class PayloadSetting(NamedTuple):
    """What became of a proposal to set a payload.

    Attributes:
        proposal: the payloads before and after
        outcome: what is known after it was sent; None where it was not sent
        history_file: file with the history; None where none was written
    """

    proposal: Proposal
    outcome: SettingOutcome | None = None
    history_file: Path | None = None

    @property
    def sent(self) -> bool:
        """Whether the payload was sent."""
        return self.outcome is not None

    @property
    def is_set(self) -> bool:
        """Whether the controller has confirmed the payload."""
        return self.outcome is not None and self.outcome.state is SettingState.SET


def require_same_identity(
    controller: Controller,
    present: ArmIdentity,
    expected: ArmIdentity,
    what: str,
    *,
    serial: str = "",
) -> ArmIdentity:
    """The arm behind a controller; refused where something belongs to another arm.

    Args:
        controller: named in the message
        present: the arm behind the controller, as far as it reports it
        expected: the arm that the thing belongs to, as far as it is known
        what: what it is, such as 'the payload'
        serial: serial number of the arm as the user states it, in place of one that is unknown

    Raises:
        InvalidRobot: it is another arm
        UnknownSerial: one of the serial numbers is unknown, and none is stated
    """
    stated = ArmIdentity(serial=serial)
    ours = expected.completed(stated)
    theirs = present.completed(stated)
    if ours.differs_from(theirs):
        raise InvalidRobot(
            f"{what} belongs to another arm: it is of {ours}, {controller} is {theirs}"
        )
    if stated.differs_from(theirs):
        raise InvalidRobot(f"{controller} is {theirs}, not number {serial}")
    without = [name for name, arm in ((what, ours), (str(controller), theirs)) if not arm.serial]
    if without:
        reason = (
            f"{' and '.join(without)}: the serial number of the arm is unknown, so it may be"
            " another arm"
        )
        raise UnknownSerial(f"{reason}: state its number with `serial`", reason)
    return theirs


def _not_restorable(controller: Controller) -> SourceFailed:
    return SourceFailed(f"{controller} does not report its payload: nothing can be restored")


def _texts(payload: ControllerPayload) -> list[str]:
    """The ten numbers of a payload in the units of `_QUANTITIES`, as texts."""
    numbers = [payload.mass, *(1e3 * x for x in payload.cog), *payload.inertia]
    return [f"{x:.4f}" for x in numbers]
