"""Recordings in binary files of any origin: Parquet, Arrow streams, NumPy's archives (NPZ).

Parquet has a column for each scalar signal, called `t`, `q.<joint>`, `tau.<joint>`, `wrench.fx`,
which any tool can show. Its rows are stored in groups of `GROUP_ROWS`, so that a long recording can
be read in pieces. NPZ has an array for each signal, named as in Recording, one row for each time.
The layout is JSON, in the metadata of Parquet and in a text array of NPZ.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._arrays import Array
from steelyard._saved import parsing, replacing
from steelyard.errors import UnreadableFile
from steelyard.recording import (
    UNKNOWN_ARM,
    ArmIdentity,
    Recording,
    imported,
    recording_of,
    recording_of_arrays,
)
from steelyard.recording._columns import Requested, find_layout
from steelyard.recording._layout import ARM_KEY, Layout, Piece, arm_from_json
from steelyard.recording._notes import Note, NoteKind

GROUP_ROWS = 2**14
"""Rows of a group: half a minute at 500 Hz, 7 MB for an arm with every channel."""

_LAYOUT_KEY = "steelyard"  # of the layout in metadata or archive
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
MAX_UNPACKED_BYTES = 2**30
"""Of the signals in a compressed file."""


def _read_parquet(path: Path, requested: Requested) -> Recording:
    """The recording in a Parquet file."""
    layout = _parquet_layout(path, requested)
    with _opened_parquet(path) as file:
        table = file.read(columns=list(layout.names))
    if table.num_rows == 0:
        raise UnreadableFile(f"{path}: it has columns, but no rows; nothing was recorded")
    return recording_of(layout, layout.gather(_numbers(table, layout.names, path)), str(path))


def parquet_pieces(path: Path, requested: Requested) -> tuple[Layout, Iterator[Piece]]:
    """The layout of a Parquet file, and its rows in pieces."""
    layout = _parquet_layout(path, requested)
    return layout, (layout.gather(columns) for columns in _batches(path, layout))


def _write_parquet(recording: Recording, path: Path) -> None:
    """Writes a Parquet file with all fields of the recording, atomically."""
    pq = imported("pyarrow.parquet")
    names = {channel: recording.column_names(channel) for channel in recording.signals}
    facts = {_LAYOUT_KEY: Layout(names, recording.facts).to_json()}
    table = recording.to_dataframe("pyarrow").replace_schema_metadata(facts)
    with replacing(path) as part:
        pq.write_table(
            table, part, row_group_size=GROUP_ROWS, compression="zstd", use_dictionary=False
        )


def _read_arrows(path: Path, requested: Requested) -> Recording:
    """The recording in an Arrow stream."""
    table, notes = _arrows_table(path)
    columns = {name: np.asarray(table[name]) for name in table.column_names}
    shapes = {name: (column.shape, column.dtype.kind) for name, column in columns.items()}
    found = recording_of_arrays(shapes, lambda wanted: columns, requested, str(path))
    return replace(found, notes=(*found.notes, *notes), arm=_recorded_arm(table.schema, path))


def _recorded_arm(schema: Any, path: Path) -> ArmIdentity:
    """The arm that a live recorder wrote into the metadata of a table."""
    text = (schema.metadata or {}).get(ARM_KEY.encode())
    if text is None:
        return UNKNOWN_ARM
    return arm_from_json(text.decode("utf-8", errors="replace"), str(path))


def _arrows_table(path: Path) -> tuple[Any, tuple[str, ...]]:
    """The table in an Arrow stream, up to its last complete batch, and notes about it."""
    ipc = imported("pyarrow.ipc")
    batches = []
    cut = False
    with parsing(f"{path}: it is not an Arrow stream", "record again"):
        reader = ipc.open_stream(path.read_bytes())
    try:
        batches += reader
    except Exception:  # whatever a damaged batch makes of pyarrow's reader
        cut = True
    if not batches:
        raise UnreadableFile(f"{path}: it has columns, but no rows; nothing was recorded")
    table = imported("pyarrow").Table.from_batches(batches)
    if not cut:
        return table, ()
    words = "damaged end: its writer was stopped; the last, incomplete batch is left out"
    return table, (Note(words, NoteKind.DAMAGED_END),)


def _read_npz(path: Path, requested: Requested) -> Recording:
    """The recording in an archive."""
    shapes = _npz_shapes(path)
    if _LAYOUT_KEY in shapes:
        own = _npz_arrays(path, {_LAYOUT_KEY})[_LAYOUT_KEY]
    else:
        own = None
    if own is not None and (own.dtype.kind != "U" or own.ndim):
        raise UnreadableFile(
            f"{path}: the description that steelyard wrote into the file is damaged; write it again"
        )
    shapes.pop(_LAYOUT_KEY, None)
    if own is None:
        text = None
    else:
        text = str(own)
    return recording_of_arrays(shapes, partial(_npz_arrays, path), requested, str(path), own=text)


def _write_npz(recording: Recording, path: Path) -> None:
    """Writes an archive with all fields of the recording, atomically."""
    piece = recording.signals
    names = {
        channel: ("t",)
        if channel == "t"
        else tuple(f"{channel}[{k}]" for k in range(values.shape[1]))
        for channel, values in piece.items()
    }
    arrays: dict[str, Any] = {
        **piece,
        _LAYOUT_KEY: np.array(Layout(names, recording.facts).to_json()),
    }
    with replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _parquet_layout(path: Path, requested: Requested) -> Layout:
    with _opened_parquet(path) as file:
        schema = file.schema_arrow
    own = (schema.metadata or {}).get(_LAYOUT_KEY.encode())
    if own is None:
        text = None
    else:
        text = own.decode("utf-8", errors="replace")
    layout = find_layout(schema.names, requested, str(path), own=text)
    if text is None:
        arm = _recorded_arm(schema, path)
        layout = replace(layout, facts={**layout.facts, "arm": arm})
    nothing = {name: np.empty(0) for name in layout.names}
    return layout.in_seconds(lambda: next(_batches(path, layout), nothing), str(path))


def _batches(path: Path, layout: Layout) -> Iterator[dict[str, Array]]:
    """The columns as they are written, a group of rows at a time."""
    with _opened_parquet(path) as file:
        for batch in file.iter_batches(GROUP_ROWS, columns=list(layout.names)):
            if batch.num_rows:
                yield _numbers(batch, layout.names, path)


def _numbers(table: Any, names: Sequence[str], path: Path) -> dict[str, Array]:
    """The columns as numbers; empty cells are NaN."""
    columns = {}
    for name in names:
        column = table.column(table.schema.get_field_index(name))
        try:
            columns[name] = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
        except (ValueError, NotImplementedError) as error:
            raise UnreadableFile(
                f"{path}: column '{name}' holds {column.type}, not numbers; convert it"
            ) from error
    return columns


def _measured_numbers(table: Any, names: Sequence[str], path: Path) -> dict[str, Array]:
    """The columns as numbers; flags, which a gripper has but no sensor, are refused."""
    for name in names:
        if str(table.schema.field(name).type) == "bool":
            raise UnreadableFile(
                f"{path}: column '{name}' holds true and false, not numbers; convert it"
            )
    return _numbers(table, names, path)


@contextmanager
def _opened_parquet(path: Path) -> Iterator[Any]:
    """The open file; errors of pyarrow become those of steelyard.

    Nothing is read ahead, which would keep the whole file in memory.

    Args:
        path: of the file
    """
    pq = imported("pyarrow.parquet")
    with (
        parsing(f"{path}: the Parquet file is damaged", "copy it again"),
        pq.ParquetFile(path, buffer_size=2**16, pre_buffer=False) as file,
    ):
        yield file


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """The open archive; errors of its reader become those of steelyard."""
    fault = f"{path}: the archive is damaged or was not finished by its writer"
    with (
        parsing(fault, "copy it again from its origin"),
        zipfile.ZipFile(path) as archive,
    ):
        names = archive.namelist()
        if len(set(names)) < len(names):
            raise zipfile.BadZipFile("two arrays have the same name")
        yield archive


def _npz_shapes(path: Path) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and kind of number of each array in an archive; only headers are read."""
    with _archive(path) as archive:
        found: dict[str, tuple[tuple[int, ...], str]] = {}
        for member in archive.namelist():
            with archive.open(member) as file:
                name = member.removesuffix(".npy")
                try:
                    read = _HEADERS[np.lib.format.read_magic(file)]
                    shape, _, dtype = read(file)
                    found[name] = (shape, dtype.kind)
                except (ValueError, KeyError, SyntaxError, TypeError, RecursionError, MemoryError):
                    found[name] = ((), "O")  # not an array
        return found


def _npz_arrays(path: Path, names: Collection[str]) -> dict[str, NDArray[np.generic]]:
    """Some arrays of an archive, (N,) or (N, k), by name; missing ones are left out.

    Args:
        path: of the archive
        names: of the arrays
    """
    shapes = _npz_shapes(path)
    wanted = [name for name in shapes if name in names]
    if sum(8 * math.prod(shapes[name][0]) for name in wanted) > MAX_UNPACKED_BYTES:
        limit = f"{MAX_UNPACKED_BYTES >> 20} MB"
        raise UnreadableFile(
            f"{path}: its signals need more than {limit} of memory; write Parquet instead"
        )
    found = {}
    with _archive(path) as archive:
        members = {member.removesuffix(".npy"): member for member in archive.namelist()}
        for name in wanted:
            fault = f"{path}: the array '{name}' is damaged"
            with parsing(fault, "copy the file again"), archive.open(members[name]) as file:
                found[name] = np.lib.format.read_array(file, allow_pickle=False)
    return found


def chosen_once(names: Sequence[str], wanted: Collection[str], path: Path) -> list[str]:
    """The wanted names among those of a table; a name that stands in it twice is refused.

    Args:
        names: of all columns
        wanted: those to read
        path: of the table
    """
    chosen = [name for name in names if name in wanted]
    for name in chosen:
        if chosen.count(name) > 1:
            raise UnreadableFile(f"{path}: it has two columns '{name}'; rename or remove one")
    return chosen


def npz_names(path: Path) -> tuple[str, ...]:
    """Names of the arrays in an NPZ file."""
    return tuple(_npz_shapes(path))


def parquet_names(path: Path) -> tuple[str, ...]:
    """Names of the columns of a Parquet file."""
    with _opened_parquet(path) as file:
        return tuple(file.schema_arrow.names)


def _npz_columns(path: Path, wanted: Collection[str]) -> tuple[dict[str, Array], tuple[str, ...]]:
    columns = {}
    for name, values in _npz_arrays(path, wanted).items():
        if values.dtype.kind not in "iuf":
            raise UnreadableFile(
                f"{path}: the array '{name}' holds {values.dtype}, not numbers; convert it"
            )
        if values.ndim:
            columns[name] = np.asarray(values, dtype=float)
    return columns, ()


def _parquet_columns(
    path: Path, wanted: Collection[str]
) -> tuple[dict[str, Array], tuple[str, ...]]:
    with _opened_parquet(path) as file:
        chosen = chosen_once(file.schema_arrow.names, wanted, path)
        return _measured_numbers(file.read(columns=chosen), chosen, path), ()


def _arrows_columns(
    path: Path, wanted: Collection[str]
) -> tuple[dict[str, Array], tuple[str, ...]]:
    table, notes = _arrows_table(path)
    return _measured_numbers(table, chosen_once(table.column_names, wanted, path), path), notes


COLUMN_READERS = {"parquet": _parquet_columns, "npz": _npz_columns, "arrows": _arrows_columns}
"""Functions that read some columns by name, with notes, for each kind of file."""

READERS = {"parquet": _read_parquet, "npz": _read_npz, "arrows": _read_arrows}
"""Functions that read a recording, for each kind of file."""

WRITERS = {".parquet": _write_parquet, ".npz": _write_npz}
"""Functions that write a recording, for each file extension."""
