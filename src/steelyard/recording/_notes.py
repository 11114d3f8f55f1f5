"""Notes of a recording: sentences about its origin, with a code for programs."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class NoteKind(StrEnum):
    """What a note reports."""

    GENERAL = "general"
    DAMAGED_END = "damaged_end"  # the file was read only up to its last complete row
    TRUSTED = "trusted"  # the user vouches for a signal that would be refused
    UNCLEAR_EFFORT = "unclear_effort"  # columns were not read: torques or currents


class Note(str):
    """A sentence with a code; plain strings are general notes.

    Attributes:
        kind: what the note reports
    """

    kind: NoteKind

    def __new__(cls, words: str, kind: NoteKind = NoteKind.GENERAL) -> Self:
        """The note.

        Args:
            words: the sentence
            kind: what it reports
        """
        note = super().__new__(cls, words)
        note.kind = kind
        return note

    def __reduce__(self) -> tuple[type[Note], tuple[str, NoteKind]]:
        return Note, (str(self), self.kind)


def has_kind(note: str, kind: NoteKind) -> bool:
    """Whether a note, or a plain sentence, is of a kind."""
    return isinstance(note, Note) and note.kind is kind
