"""Recordings in binary files, ours and those of others: Parquet and NumPy's archives (NPZ).

Parquet has a column for each scalar signal, called `t`, `q.<joint>`, `tau.<joint>`, `wrench.fx`, so that
any tool shows what they are. Its rows lie in groups of `GROUP_ROWS`, so that a recording of hours is read
piece by piece. NPZ has an array for each signal, named as in Recording, one row for each time. What is known
beside the numbers is JSON in Parquet's metadata, and a text of its own in NPZ.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.arrays import Array
from steelyard.errors import MissingExtra, UnreadableFile
from steelyard.io.columns import Requested, find_layout
from steelyard.io.layout import Layout, Piece
from steelyard.quality import DAMAGED_END
from steelyard.recording import Recording
from steelyard.saved import replacing

GROUP_ROWS = 2**14
"""Rows in a group: half a minute at 500 Hz, 7 MB of an arm with every channel."""

_OWN = "steelyard"  # under which name a file holds what is known beside the numbers


def _read_parquet(path: Path, requested: Requested) -> Recording:
    """The recording in a Parquet file."""
    layout = _parquet_layout(path, requested)
    with _opened(path) as file:
        table = file.read(columns=list(layout.names))
    if table.num_rows == 0:
        raise UnreadableFile(f"{path}: it has columns, but no rows; nothing was recorded")
    return layout.recording(layout.gather(_numbers(table, layout, path)), str(path))


def parquet_pieces(path: Path, requested: Requested) -> tuple[Layout, Iterator[Piece]]:
    """The layout of a Parquet file, and its rows, some at a time."""
    layout = _parquet_layout(path, requested)
    return layout, (layout.gather(columns) for columns in _batches(path, layout))


def _write_parquet(recording: Recording, path: Path) -> None:
    """Writes a Parquet file that holds every field of the recording, whole or not at all."""
    pq = pyarrow("parquet")
    names = {channel: recording.column_names(channel) for channel in recording.signals}
    facts = {_OWN: Layout.of(recording, names).to_json()}
    table = recording.to_arrow().replace_schema_metadata(facts)
    with replacing(path) as part:
        pq.write_table(table, part, row_group_size=GROUP_ROWS, compression="zstd", use_dictionary=False)


def _read_arrows(path: Path, requested: Requested) -> Recording:
    """The recording in a stream of Arrow's batches; one that was cut short, up to its last whole batch."""
    ipc, batches, cut = pyarrow("ipc"), [], False
    import pyarrow as pa

    try:
        reader = ipc.open_stream(path.read_bytes())
    except (pa.ArrowException, OSError) as error:
        raise UnreadableFile(f"{path}: it holds no stream of Arrow's batches ({error})") from error
    try:
        batches += reader
    except (pa.ArrowException, OSError):
        cut = True
    if not batches:
        raise UnreadableFile(f"{path}: it has columns, but no rows; nothing was recorded")
    table = pa.Table.from_batches(batches)
    found = recording_of_table(table, requested, place=str(path))
    words = f"{DAMAGED_END}: its writer was stopped; the last, broken batch is left out"
    return replace(found, notes=(*found.notes, words)) if cut else found


def _read_npz(path: Path, requested: Requested) -> Recording:
    """The recording in an archive."""
    arrays = _arrays(path)
    own = arrays.pop(_OWN, None)
    return _recording(arrays, requested, str(path), own=None if own is None else str(own))


def _write_npz(recording: Recording, path: Path) -> None:
    """Writes an archive that holds every field of the recording, whole or not at all."""
    piece = recording.signals
    names = {
        channel: ("t",) if channel == "t" else tuple(f"{channel}[{k}]" for k in range(values.shape[1]))
        for channel, values in piece.items()
    }
    arrays: dict[str, Any] = {**piece, _OWN: np.array(Layout.of(recording, names).to_json())}
    with replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _parquet_layout(path: Path, requested: Requested) -> Layout:
    with _opened(path) as file:
        schema = file.schema_arrow
    own = (schema.metadata or {}).get(_OWN.encode())
    layout = find_layout(schema.names, requested, str(path), own=None if own is None else own.decode())
    nothing = {name: np.empty(0) for name in layout.names}
    return layout.in_seconds(lambda: next(_batches(path, layout), nothing), str(path))


def _batches(path: Path, layout: Layout) -> Iterator[dict[str, Array]]:
    """The columns as they are written, a group of rows at a time."""
    with _opened(path) as file:
        for batch in file.iter_batches(GROUP_ROWS, columns=list(layout.names)):
            if batch.num_rows:
                yield _numbers(batch, layout, path)


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
    pq = pyarrow("parquet")
    from pyarrow import ArrowException

    try:
        with pq.ParquetFile(path, buffer_size=2**16, pre_buffer=False) as file:
            yield file
    except (ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UnreadableFile(f"{path}: the Parquet file is damaged ({reason}); copy it again") from error


def pyarrow(module: str) -> Any:
    """A module of pyarrow ('csv', 'ipc' or 'parquet'), which is an extra."""
    try:
        return import_module(f"pyarrow.{module}")
    except ImportError as error:
        raise MissingExtra("pyarrow", "io") from error


def _arrays(path: Path) -> dict[str, NDArray[np.generic] | None]:
    """Every array of the archive, None for one that NumPy does not read without running code."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: _array(archive, name) for name in archive.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise UnreadableFile(
            f"{path}: the archive is damaged or was not finished by its writer ({error});"
            " copy it again from where it was written"
        ) from error


def _array(archive: np.lib.npyio.NpzFile, name: str) -> NDArray[np.generic] | None:
    try:
        return np.asarray(archive[name])
    except ValueError:  # Python objects
        return None


def _recording(
    arrays: dict[str, NDArray[np.generic] | None], requested: Requested, place: str, own: str | None = None
) -> Recording:
    """The recording in arrays, (N,) or (N, k), by name; those that hold no numbers are noted."""
    columns: dict[str, Array] = {}
    odd = []
    for name, array in arrays.items():
        if array is None or array.ndim not in (1, 2) or array.dtype.kind not in "fiu":
            odd.append(name)
        elif array.ndim == 1:
            columns[name] = array.astype(float)
        else:
            columns |= {f"{name}[{k}]": array[:, k].astype(float) for k in range(array.shape[1])}
    layout = find_layout(list(columns), requested, place, own=own)
    if odd and own is None:
        layout = layout.noting(f"not read, not columns of numbers: {', '.join(odd)}")
    _require_one_length({name: columns[name] for name in layout.names}, place)
    layout = layout.in_seconds(lambda: columns, place)
    return layout.recording(layout.gather(columns), place)


def _require_one_length(columns: dict[str, Array], place: str) -> None:
    rows = {name: len(column) for name, column in columns.items()}
    first = next(iter(rows))
    for name, count in rows.items():
        if count != rows[first]:
            raise UnreadableFile(
                f"{place}: {first} has {rows[first]} rows, but {name} has {count};"
                " every signal needs one row for each time (transpose it if rows are joints)"
            )
    if rows[first] == 0:
        raise UnreadableFile(f"{place}: the arrays have no rows; nothing was recorded")


def recording_of_table(
    table: Any, requested: Requested | None = None, *, place: str = "the table"
) -> Recording:
    """The recording in a table with named columns: a data frame of pandas or Polars, a table of Arrow.

    Args:
        table: of numbers; columns are found by name as in files
        requested: what the caller says about it
        place: what it is called in messages
    """
    if not hasattr(table, "columns") and not hasattr(table, "column_names"):
        raise UnreadableFile(
            f"{place}: a recording is read from a file or a table, not from {type(table).__name__}"
        )
    names = [str(name) for name in getattr(table, "column_names", None) or list(table.columns)]
    return _recording({name: np.asarray(table[name]) for name in names}, requested or Requested(), place)


READERS = {"parquet": _read_parquet, "npz": _read_npz, "arrows": _read_arrows}
"""What reads a recording from a path, with what is requested, by the kind of file."""

WRITERS = {".parquet": _write_parquet, ".npz": _write_npz}
"""What writes a recording to a path, by how its name ends."""
