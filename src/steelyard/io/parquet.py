"""Recordings in Parquet: a column for each scalar signal, everything else in the file's metadata.

The columns are called `t`, `q.<joint>`, `tau.<joint>`, `wrench.fx`, so that any tool shows what they are. The
rows lie in groups of `GROUP_ROWS`, so that a recording of hours is read piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import MissingExtra, UnreadableFile
from steelyard.io.columns import Wishes, find_layout
from steelyard.io.franka import in_seconds, is_franka
from steelyard.io.layout import Layout, Piece, own_layout, pack, piece_of
from steelyard.recording import Recording
from steelyard.saved import replacing

GROUP_ROWS = 2**14
"""Rows in a group: half a minute at 500 Hz, 7 MB of an arm with every channel."""

_OWN = b"steelyard"  # the key of what is known beside the numbers
_AXES = ("fx", "fy", "fz", "tx", "ty", "tz")


def read_parquet(path: Path, wishes: Wishes) -> Recording:
    """The recording in a Parquet file.

    Args:
        path: the file
        wishes: what the caller knows about it
    """
    layout = parquet_layout(path, wishes)
    with _opened(path) as file:
        table = file.read(columns=list(layout.names))
    if table.num_rows == 0:
        raise UnreadableFile(f"{path}: it has columns, but no rows; nothing was recorded")
    return layout.recording(layout.gather(_numbers(table, layout, path)), str(path))


def parquet_layout(path: Path, wishes: Wishes) -> Layout:
    """Which columns of a Parquet file make up which channel.

    Args:
        path: the file
        wishes: what the caller knows about it
    """
    with _opened(path) as file:
        schema = file.schema_arrow
    own = (schema.metadata or {}).get(_OWN)
    if own is None:
        layout = find_layout(schema.names, wishes, str(path))
        return in_seconds(layout, _first_rows(path, layout), str(path)) if is_franka(layout) else layout
    layout = wishes.fulfilled(own_layout(own.decode(), str(path)), str(path))
    for name in layout.names:
        if name not in schema.names:
            raise UnreadableFile(f"{path}: steelyard wrote '{name}' into it, but it is gone; write it again")
    return layout


def parquet_pieces(path: Path, layout: Layout) -> Iterator[Piece]:
    """The rows of a Parquet file, some at a time.

    Args:
        path: the file
        layout: which columns are read
    """
    with _opened(path) as file:
        for batch in file.iter_batches(GROUP_ROWS, columns=list(layout.names)):
            if batch.num_rows:
                yield layout.gather(_numbers(batch, layout, path))


def write_parquet(recording: Recording, path: Path) -> None:
    """Write a Parquet file that holds every field of the recording.

    Args:
        recording: what is written
        path: the file; it is replaced whole or not at all
    """
    pq = _parquet()
    import pyarrow as pa

    piece = piece_of(recording)
    names = {channel: _column_names(channel, recording) for channel in piece}
    flat = {
        name: pa.array(np.ascontiguousarray(column))
        for channel, group in names.items()
        for name, column in zip(group, np.atleast_2d(piece[channel].T), strict=True)
    }
    table = pa.table(flat).replace_schema_metadata({_OWN: pack(recording, names)})
    with replacing(path) as part:
        pq.write_table(table, part, row_group_size=GROUP_ROWS, compression="zstd", use_dictionary=False)


def _first_rows(path: Path, layout: Layout) -> dict[str, Array]:
    with _opened(path) as file:
        batch = next(file.iter_batches(GROUP_ROWS, columns=list(layout.names)), None)
    return {name: np.empty(0) for name in layout.names} if batch is None else _numbers(batch, layout, path)


def _column_names(channel: str, recording: Recording) -> tuple[str, ...]:
    if channel == "t":
        return ("t",)
    joints = recording.joint_names
    if channel != "wrench" and len(set(joints)) < len(joints):
        return tuple(f"{channel}_{k + 1}" for k in range(recording.n))
    return tuple(f"{channel}.{label}" for label in (_AXES if channel == "wrench" else joints))


def _numbers(table: Any, layout: Layout, path: Path) -> dict[str, Array]:
    """The columns as numbers; empty cells are NaN."""
    columns = {}
    for name in layout.names:
        column = table.column(table.schema.get_field_index(name))
        try:
            columns[name] = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
        except (ValueError, NotImplementedError) as error:
            raise UnreadableFile(
                f"{path}: column '{name}' holds {column.type}, not numbers; convert it"
            ) from error
    return columns


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The open file; its own errors become ours. Nothing is read ahead, which would keep the whole file."""
    pq = _parquet()
    from pyarrow import ArrowException

    try:
        with pq.ParquetFile(path, buffer_size=2**16, pre_buffer=False) as file:
            yield file
    except (ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UnreadableFile(f"{path}: the Parquet file is damaged ({reason}); copy it again") from error


def _parquet() -> Any:
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtra("pyarrow", "io") from error
    return pq
