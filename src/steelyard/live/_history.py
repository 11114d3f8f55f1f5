"""The history of payloads that were set on controllers: a file that is only added to.

Before a payload is sent, the history gets an entry with the payloads before and after. Afterwards
it gets a second one with the outcome. `PayloadHistory.last_change` is the newest change that was
not restored yet, so that undoing twice goes back by two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Self

from steelyard import _saved
from steelyard._codec import FileValue, Value
from steelyard._kinds import AS_TABLE
from steelyard.errors import InvalidInertia, SourceFailed
from steelyard.live._controller import ControllerPayload, SettingState
from steelyard.recording import ArmIdentity

_SENT = "sent"
_Payload = Annotated[ControllerPayload, AS_TABLE]


@dataclass(frozen=True)
class PayloadChange(Value, error=InvalidInertia):
    """An entry of the history.

    Attributes:
        time: when, as ISO 8601 in UTC
        source: address of the controller
        arm: the arm behind it
        old: the payload before
        new: the payload that was sent
        restores: whether it restored an earlier payload
        state: 'sent', or the outcome as in `SettingState`
        reported: the payload that the controller reported afterwards; None where it is unknown
    """

    time: str
    source: str
    arm: ArmIdentity
    old: _Payload
    new: _Payload
    restores: bool = False
    state: str = _SENT
    reported: _Payload | None = None

    @classmethod
    def sent_to(
        cls,
        source: str,
        arm: ArmIdentity,
        *,
        old: ControllerPayload,
        new: ControllerPayload,
        restores: bool,
    ) -> PayloadChange:
        """The entry of a payload that is about to be sent now.

        Args:
            source: address of the controller
            arm: the arm behind it
            old: the payload set on it
            new: the payload to send
            restores: whether it restores an earlier payload
        """
        return cls(_now(), source, arm, old, new, restores)

    def with_outcome(
        self, state: SettingState, reported: ControllerPayload | None
    ) -> PayloadChange:
        """The entry of the outcome.

        Args:
            state: the outcome
            reported: the payload that the controller reports
        """
        return replace(self, time=_now(), state=state.value, reported=reported)


@dataclass(frozen=True)
class PayloadHistory(FileValue, error=InvalidInertia, kind="payload history"):
    """All payloads that were sent, oldest first.

    Attributes:
        entries: two for each payload: before it was sent, and with the outcome
    """

    entries: tuple[PayloadChange, ...] = ()

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The history in a file; an empty one where there is no file.

        Args:
            path: a file that `append` wrote
        """
        if not Path(path).exists():
            return cls()
        return super().load(path)

    @classmethod
    def append(cls, path: str | Path, entry: PayloadChange) -> None:
        """Adds an entry to the history in a file, which keeps all earlier ones.

        Two programs that set payloads at once do not lose an entry of each other.

        Args:
            path: the file; made where it does not exist
            entry: the entry to add
        """
        with _saved.locked(path):
            cls((*cls.load(path).entries, entry)).save(path)

    @property
    def last_change(self) -> PayloadChange | None:
        """The newest change that was not restored; None where there is none."""
        changes: list[PayloadChange] = []
        for number, entry in enumerate(self.entries):
            if entry.state != _SENT or self._failed(number):
                continue
            if not entry.restores:
                changes.append(entry)
            elif changes:
                changes.pop()
        if changes:
            return changes[-1]
        return None

    def _failed(self, number: int) -> bool:
        """Whether the outcome of a sent entry says that nothing was set.

        Another program may have added its own entries in between.
        """
        sent = self.entries[number]
        for entry in self.entries[number + 1 :]:
            if replace(entry, time=sent.time, state=sent.state, reported=sent.reported) == sent:
                return entry.state == SettingState.NOT_SET
        return False


def required_change(path: str | Path) -> PayloadChange:
    """The newest change in a file that was not restored; raises `SourceFailed` without one.

    Args:
        path: a file of a history
    """
    if not Path(path).exists():
        raise SourceFailed(f"there is no file {path}: nothing can be restored")
    change = PayloadHistory.load(path).last_change
    if change is None:
        raise SourceFailed(f"{path}: every change was restored already")
    return change


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
