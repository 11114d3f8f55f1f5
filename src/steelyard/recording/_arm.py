"""Which physical arm something belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass

from steelyard._codec import Value
from steelyard.errors import InvalidRecording

_KNOWN_ARM_KIND = re.compile(r"ur\d+e?|panda|fr3")


@dataclass(frozen=True)
class ArmIdentity(Value, error=InvalidRecording):
    """The kind of an arm and its serial number, where they are known.

    Attributes:
        kind: as its maker calls it, in small letters, such as 'ur10e'; empty where unknown
        serial: its serial number; empty where unknown
    """

    kind: str = ""
    serial: str = ""

    @classmethod
    def named(cls, name: str, serial: str = "") -> ArmIdentity:
        """The identity that a name of a robot file tells; other names than makers use tell nothing.

        Args:
            name: name of the robot, such as 'ur10e'
            serial: its serial number
        """
        kind = name.strip().lower()
        if _KNOWN_ARM_KIND.fullmatch(kind) is None:
            kind = ""
        return cls(kind, serial)

    def __str__(self) -> str:
        parts = [self.kind or "an arm of unknown kind"]
        if self.serial:
            parts.append(f"number {self.serial}")
        return ", ".join(parts)

    def completed(self, other: ArmIdentity) -> ArmIdentity:
        """This identity, with what is unknown from another one.

        Args:
            other: another statement about the same arm
        """
        return ArmIdentity(self.kind or other.kind, self.serial or other.serial)

    def differs_from(self, other: ArmIdentity) -> bool:
        """Whether both tell the kind or the number, and these are not the same.

        Args:
            other: the identity of another thing
        """
        kinds = {self.kind, other.kind} - {""}
        serials = {self.serial, other.serial} - {""}
        return len(kinds) > 1 or len(serials) > 1


UNKNOWN_ARM = ArmIdentity()
"""The identity of an arm of which nothing is known."""
