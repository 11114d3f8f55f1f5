"""Reads and writes files of recordings.

    recording = read("log.csv", columns={"tau": "effort_"})
    write(recording, "log.parquet")

Parquet and NPZ keep all fields of a Recording. Text tables, ROS 2 bags and files of other programs
hold only named numbers. Missing facts (the frame of a wrench, degrees, the meaning of an effort)
are arguments and never guessed; columns that are not read are listed in `notes`.

A long recording can be read in overlapping blocks, in constant memory. The core of block k covers
the times from k block_s up to (k+1) block_s since the first row. Each block has overlap_s more on
both sides, where a zero-phase filter is inaccurate, to be cut off after filtering.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np

from steelyard._arrays import Array
from steelyard._saved import parsing
from steelyard.errors import InvalidRecording, UnknownName, UnreadableFile
from steelyard.io._binary import COLUMN_READERS, READERS, WRITERS, parquet_pieces
from steelyard.io._signal_files import read_signal_files, signal_files
from steelyard.recording import (
    Recording,
    WrenchConvention,
    recording_of,
    recording_of_arrays,
)
from steelyard.recording._columns import Requested, expanded_names
from steelyard.recording._layout import Layout, Piece
from steelyard.recording._recording import same_joints

FileKind = Literal["parquet", "arrows", "npz", "text", "matlab", "bag", "plug-in"]
_SUFFIXES: dict[str, FileKind] = {  # a ROS 2 bag may be a folder too
    ".parquet": "parquet",
    ".arrows": "arrows",
    ".npz": "npz",
    ".csv": "text",
    ".tsv": "text",
    ".txt": "text",
    ".mat": "matlab",
    ".db3": "bag",
    ".mcap": "bag",
    ".bag": "bag",
}
READER_GROUP = "steelyard.readers"
"""Entry points of readers of other packages."""

_FIRST_BYTES = {
    ".parquet": (b"PAR1", "Parquet (.parquet)"),
    ".npz": (b"PK", "a zip archive, as NPZ (.npz) and spreadsheets are"),
    ".db3": (b"SQLi", "an SQLite database, as bags (.db3) are"),
    ".mcap": (b"\x89MCA", "a bag (.mcap)"),
    ".bag": (b"#ROS", "a ROS 1 bag (.bag)"),
}
"""First bytes of binary files, and the kind of file that has them."""

_PARQUET_END = b"PAR1"
_MCAP_END = b"P0\r\n"


def read(
    path: str | Path,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    joint_names: Sequence[str] = (),
    wrench_frame: str | None = None,
    wrench_convention: WrenchConvention | None = None,
    degrees: bool = False,
    names: str | Sequence[str] = (),
    rate_hz: float | None = None,
) -> Recording:
    """The recording in a file: Parquet, Arrow stream, NPZ, text table, MATLAB file or ROS bag.

    Columns are found by name (`q_0`, `qd_0`, `tau_0`, `actual_q_0`, ...). The `notes` of the
    recording list columns that are not read and a damaged end that was left out. See
    docs/reference/recordings.md.

    Args:
        path: the file, or the folder of a bag; a data frame is for `Recording.from_dataframe`
        columns: for a channel of Recording or 't', the list of its columns, their word without the
            index, or a prefix of their names; an empty list leaves the channel out. A file of
            numbers for each signal is named like a column ({'q': 'ang.txt'}; a list has a file for
            each joint), and `path` is their folder. For a bag, 'q' and 'wrench' are topics, and
            'effort' is given as either 'tau' or 'current'
        joint_names: instead of those in the file; for a bag, the joints to read, in order
        wrench_frame: needed for a wrench in a file that does not state its frame
        wrench_convention: 'load_on_sensor' or 'sensor_on_load'; needed for a wrench in a file that
            steelyard did not write
        degrees: whether joint angles and their derivatives are in degrees; all joints must then be
            revolute
        names: of the columns of a text table without a header, in their order, as one text or as a
            list: 't,q*6,current*6' or ['t', 'q*6', 'current*6']
        rate_hz: rows per second of a table without a time column, [Hz]
    """
    if not isinstance(names, str):
        names = ",".join(names)
    requested = Requested(
        dict(columns or {}),
        tuple(joint_names),
        wrench_frame,
        wrench_convention,
        degrees,
        expanded_names(names) if names else (),
        rate_hz,
    )
    return read_as(path, requested)


def read_as(path: str | Path, requested: Requested) -> Recording:
    """The recording in a file, with the statements of the caller about it."""
    if not isinstance(path, str | Path):
        raise UnreadableFile(
            f"a recording is read from a file, not from {type(path).__name__}; a data frame is for"
            " Recording.from_dataframe"
        )
    path = Path(path)
    if signal_files(path, requested):
        return read_signal_files(path, requested)
    kind = file_kind(path)
    if requested.names and kind != "text":
        raise UnreadableFile(
            f"{path}: `names` are for text tables without a header; this file names its columns"
        )
    return _read(kind, path, requested)


def read_with_joints(
    path: str | Path, requested: Requested, joint_names: Sequence[str]
) -> Recording:
    """The recording in a file, with the joints of an arm in the arm's order where they are named.

    A bag is read by the names of its joints. In other files, the caller's `joint_names` name the
    columns in their order; names that the arm does not have would have no effect, and are refused.

    Args:
        requested: statements of the caller about the file
        joint_names: of the arm; empty where it is not known
    """
    if not joint_names:
        return read_as(path, requested)
    path = Path(path)
    if not signal_files(path, requested) and file_kind(path) == "bag":
        if not requested.joint_names:
            requested = replace(requested, joint_names=tuple(joint_names))
    elif requested.joint_names and not same_joints(requested.joint_names, joint_names):
        raise UnknownName(
            f"{path}: {', '.join(requested.joint_names)} are not the joints of the arm; give"
            f" {', '.join(joint_names)} in the order of the columns as `joint_names`, or leave it"
            " out where they are in the arm's order"
        )
    return read_as(path, requested).named(joint_names)


def _plugged_in(suffix: str) -> EntryPoint | None:
    """The reader of another package for files with an ending; None if there is none.

    Its entry point in the group `steelyard.readers` is named like the ending, without the dot. It
    is a function of the path that returns arrays by name, (N,) or (N, k).
    """
    for entry in entry_points(group=READER_GROUP):
        if f".{entry.name.lower()}" == suffix:
            return entry
    return None


def _read_by_plug_in(path: Path, requested: Requested) -> Recording:
    """The recording in the arrays that the reader of another package returns."""
    entry = _plugged_in(path.suffix.lower())
    if entry is None:
        raise UnreadableFile(f"{path}: no installed package reads such files")
    fault = f"{path}: the plug-in '{entry.name}' ({entry.value}) could not read it"
    with parsing(fault, "check the file, or tell the author of the plug-in"):
        arrays = {name: np.asarray(array) for name, array in entry.load()(path).items()}
    shapes = {name: (array.shape, array.dtype.kind) for name, array in arrays.items()}
    return recording_of_arrays(shapes, lambda wanted: arrays, requested, str(path))


def read_columns(
    path: Path, wanted: Collection[str], names: Sequence[str] = ()
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Columns of a table by name, (N,) or (N, k), and notes about the table.

    Args:
        wanted: names of the columns; missing ones are left out
        names: of all columns of a text table without a header
    """
    kind = file_kind(path)
    if kind == "bag":
        raise UnreadableFile(
            f"{path}: a wrench in a bag has no orientation; give a `robot`, which derives it from"
            " the joints"
        )
    if kind == "text":
        from steelyard.io._tables import text_columns

        return text_columns(path, wanted, names)
    if kind == "matlab":
        from steelyard.io._matlab import matlab_columns

        return matlab_columns(path, wanted)
    return COLUMN_READERS[kind](path, wanted)


def write(recording: Recording, path: str | Path) -> None:
    """Writes a recording with all its fields as .parquet or .npz, atomically."""
    path = Path(path)
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise UnreadableFile(
            f"{path}: recordings cannot be written as '{path.suffix}', which would lose names,"
            f" frames and notes; use {' or '.join(WRITERS)}"
        )
    writer(recording, path)


def recording_blocks(
    path: str | Path, *, block_s: float, overlap_s: float, requested: Requested | None = None
) -> Iterator[Recording]:
    """The recording in a file, in blocks; a Parquet file is never in memory as a whole.

    The `epoch_s` of a block is its start on the clock of the file. Blocks without rows in their
    core are left out.

    Args:
        block_s: length of a block without its overlaps, [s]
        overlap_s: additional time on both sides, to be cut off after a zero-phase filter, [s]
        requested: statements about the file, as the arguments of `read`
    """
    if not block_s > 0 or not overlap_s >= 0:
        raise InvalidRecording(
            f"block_s must be positive and overlap_s not negative, got {block_s} and {overlap_s}"
        )
    path = Path(path)
    requested = requested or Requested()
    kind = file_kind(path)
    if kind == "parquet":
        layout, pieces = parquet_pieces(path, requested)
    else:
        recording = _read(kind, path, requested)
        layout = Layout({}, recording.facts)
        pieces = iter([recording.signals])
    return _cut(pieces, layout, block_s=block_s, overlap_s=overlap_s, place=str(path))


def _read(kind: FileKind, path: Path, requested: Requested) -> Recording:
    """The whole recording; readers of text, MATLAB files and bags are imported on demand."""
    if kind == "text":
        from steelyard.io._tables import read_table

        return read_table(path, requested)
    if kind == "matlab":
        from steelyard.io._matlab import read_matlab

        return read_matlab(path, requested)
    if kind == "plug-in":
        return _read_by_plug_in(path, requested)
    if kind == "bag":
        from steelyard.io._rosbag import read_bag

        return read_bag(path, requested)
    return READERS[kind](path, requested)


def file_kind(path: Path) -> FileKind:
    """The kind of a file, by its name; its first and last bytes must agree."""
    suffix = path.suffix.lower()
    kind = _SUFFIXES.get(suffix)
    if kind in (None, "bag") and path.is_dir():
        _require_bag(path)
        return "bag"
    if not suffix:
        _ends(path)  # usually a folder that does not exist
    if kind is None and path.is_file() and _plugged_in(suffix) is not None:
        return "plug-in"
    if kind is None:
        raise UnreadableFile(
            f"{path}: recordings cannot be read from '{path.suffix}' files; known are"
            f" {', '.join(_SUFFIXES)} and the folders of ROS 2 bags"
        )
    first, last = _ends(path)
    looks = [words for begin, words in _FIRST_BYTES.values() if first.startswith(begin)]
    found = looks[0] if looks else "neither Parquet nor NPZ nor a bag"
    if (kind == "text" and looks) or not first.startswith(_FIRST_BYTES.get(suffix, (b"", ""))[0]):
        raise UnreadableFile(
            f"{path}: its content does not match its name, it looks like {found}; rename it or"
            " export it again"
        )
    if kind == "parquet" and last != _PARQUET_END:
        raise UnreadableFile(
            f"{path}: its writer did not finish it (the footer of the Parquet file is missing);"
            " copy it again from its origin, or record again"
        )
    if suffix == ".mcap" and last != _MCAP_END:
        raise UnreadableFile(
            f"{path}: its recorder did not finish it (its end is missing); copy it again,"
            " or repair it with mcap recover"
        )
    return kind


def _require_bag(path: Path) -> None:
    if (path / "metadata.yaml").is_file():
        return
    files = sorted(
        file.name for file in path.iterdir() if _SUFFIXES.get(file.suffix.lower()) == "bag"
    )
    if files:
        hint = (
            f"its recorder did not finish it; give the file itself ({files[0]}), or repair it"
            " with ros2 bag reindex"
        )
    else:
        hint = "give a file, or name a file for each signal: `columns={'q': 'ang.txt'}`"
    raise UnreadableFile(
        f"{path}: it is a folder, but not a ROS 2 bag (metadata.yaml is missing); {hint}"
    )


def _ends(path: Path) -> tuple[bytes, bytes]:
    """The first and the last four bytes."""
    if path.is_fifo():
        raise UnreadableFile(
            f"{path}: it is a pipe, which can be read only once; write the data to a file"
        )
    try:
        with path.open("rb") as file:
            first = file.read(4)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 4, 0))
            last = file.read(4)
    except OSError as error:
        raise UnreadableFile.of(path, error) from error
    if size == 0:
        raise UnreadableFile(f"{path}: the file is empty; record or copy it again")
    return first, last


def _cut(
    pieces: Iterator[Piece], layout: Layout, *, block_s: float, overlap_s: float, place: str
) -> Iterator[Recording]:
    """Blocks of rows that arrive in pieces; blocks without rows in their core are skipped."""
    first = next(pieces, None)
    if first is None:
        raise UnreadableFile(f"{place}: it has columns, but no rows; nothing was recorded")
    start = float(first["t"][0])
    epoch_s = float(layout.facts.get("epoch_s", 0.0)) + start
    layout = replace(layout, facts={**layout.facts, "epoch_s": epoch_s})
    held = {name: x[:0] for name, x in first.items()}
    k = 0

    def block() -> Iterator[Recording]:
        """Yields block k if it has rows; then advances k and drops rows that are done."""
        nonlocal held, k
        t = held["t"]
        begin = k * block_s
        end = (k + 1) * block_s
        i, j = np.searchsorted(t, (begin, end))
        rows = slice(
            *np.searchsorted(t, (begin - overlap_s, np.nextafter(end + overlap_s, np.inf)))
        )
        found = {name: x[rows] for name, x in held.items()}
        if j < len(t):
            k = max(k + 1, int(t[j] // block_s))
        else:
            k = k + 1
        kept = min(np.searchsorted(t, k * block_s - overlap_s), len(t) - 1)
        held = {name: x[kept:] for name, x in held.items()}
        if i < j:
            yield recording_of(layout, found, f"{place}, block from {begin:g} s")

    for piece in _forward(chain([first], pieces), place):
        rows = {**piece, "t": piece["t"] - start}
        held = {name: np.concatenate([held[name], x]) for name, x in rows.items()}
        while held["t"][-1] > (k + 1) * block_s + overlap_s:
            yield from block()
    while k * block_s <= held["t"][-1]:
        yield from block()


def _forward(pieces: Iterable[Piece], place: str) -> Iterator[Piece]:
    """The same pieces, after a check that time increases within and between them."""
    before = -np.inf
    rows = 0
    for piece in pieces:
        t = piece["t"]
        bad = np.flatnonzero(~(np.diff(t, prepend=before) >= 0) | ~np.isfinite(t))
        if bad.size:
            raise UnreadableFile(
                f"{place}: time goes back or is not a number in row {rows + bad[0] + 1}:"
                f" {t[bad[0]]:.6f} s; sort the rows or split the file there"
            )
        before = float(t[-1])
        rows = rows + len(t)
        yield piece
