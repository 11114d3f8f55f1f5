"""Where the signals lie in a file: named columns of numbers, gathered into the channels of a Recording.

Every format comes down to columns with names: a text table has them, Parquet has them, and of an NPZ array
`q` of six columns they are `q[0]` to `q[5]`. A `Layout` says which of them make up which channel, and carries
what is known beside the numbers. A file that steelyard wrote holds its own layout as JSON; for others
`columns` finds it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import InvalidRecording, UnreadableFile
from steelyard.recording import CHANNELS, Recording

Piece = dict[str, Array]
"""Some rows: 't' (N,), and every channel that there is (N, k)."""

FORMAT = 1
"""Version of what steelyard writes beside the numbers."""

_ARRAYS = ("t", *CHANNELS, "wrench")
_ANGLES = ("q", "v", "q_commanded", "v_commanded", "a_commanded")


@dataclass(frozen=True)
class Layout:
    """Which columns make up which channel, and what is known beside the numbers.

    Attributes:
        columns: names of the columns of 't' and of every channel
        facts: the fields of a Recording that are not signals
        degrees: whether angles are to be converted
        time_unit_s: what time is multiplied with, [s]
    """

    columns: Mapping[str, tuple[str, ...]]
    facts: Mapping[str, Any]
    degrees: bool = False
    time_unit_s: float = 1.0

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is needed."""
        return tuple(name for group in self.columns.values() for name in group)

    def noting(self, note: str) -> Layout:
        """The same with one more note.

        Args:
            note: a sentence
        """
        return replace(self, facts={**self.facts, "notes": (*self.facts["notes"], note)})

    def gather(self, values: Mapping[str, Array]) -> Piece:
        """The channels from their columns, in SI.

        Args:
            values: a column of numbers for every name, (N,)
        """
        piece = {
            channel: np.column_stack([values[name] for name in group])
            for channel, group in self.columns.items()
        }
        piece["t"] = piece["t"][:, 0] * self.time_unit_s
        for channel in _ANGLES if self.degrees else ():
            if channel in piece:
                piece[channel] = np.deg2rad(piece[channel])
        return piece

    def recording(self, piece: Piece, place: str) -> Recording:
        """The recording of some rows.

        Args:
            piece: the rows
            place: the file, for the message of a refusal
        """
        arguments: dict[str, Any] = {**piece, **self.facts}
        try:
            return Recording(**arguments)
        except InvalidRecording as error:
            raise UnreadableFile(f"{place}: {error}") from error


def piece_of(recording: Recording) -> Piece:
    """Time and every signal of a recording.

    Args:
        recording: where they are taken from
    """
    return {name: getattr(recording, name) for name in ("t", *recording.channels)}


def facts_of(recording: Recording) -> dict[str, Any]:
    """Everything in a recording that is not a signal.

    Args:
        recording: where it is taken from
    """
    return {
        item.name: getattr(recording, item.name) for item in fields(recording) if item.name not in _ARRAYS
    }


def pack(recording: Recording, columns: Mapping[str, tuple[str, ...]]) -> str:
    """A file's own layout, as JSON.

    Args:
        recording: what the file holds
        columns: names of the columns of 't' and of every channel
    """
    return json.dumps({"format": FORMAT, "columns": columns, "facts": facts_of(recording)})


def own_layout(text: str, place: str) -> Layout:
    """The layout that steelyard wrote into a file.

    Args:
        text: the JSON of `pack`
        place: the file, for the message of a refusal
    """
    try:
        content = json.loads(text)
        version, facts = content["format"], content["facts"]
        columns = {channel: tuple(names) for channel, names in content["columns"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableFile(
            f"{place}: what steelyard wrote beside the numbers is damaged; write it again"
        ) from error
    if version != FORMAT:
        raise UnreadableFile(
            f"{place}: it has format {version}, this steelyard reads format {FORMAT};"
            " use the one that wrote it"
        )
    return Layout(columns, facts)
