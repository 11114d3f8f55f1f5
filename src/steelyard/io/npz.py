"""Recordings in NumPy's archives (NPZ): arrays with names, one row for each time."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.arrays import Array
from steelyard.errors import UnreadableFile
from steelyard.io.columns import Wishes, find_layout
from steelyard.io.franka import in_seconds
from steelyard.io.layout import own_layout, pack, piece_of
from steelyard.recording import Recording
from steelyard.saved import replacing

_OWN = "steelyard"  # the array that holds what is known beside the numbers


def read_npz(path: Path, wishes: Wishes) -> Recording:
    """The recording in an archive.

    Args:
        path: the file
        wishes: what the caller knows about it
    """
    place = str(path)
    arrays = _arrays(path)
    own = arrays.pop(_OWN, None)
    columns, odd = _columns(arrays)
    if own is not None:
        layout = wishes.fulfilled(own_layout(str(own), place), place)
        _require_columns(layout.names, columns, place)
    else:
        layout = find_layout(list(columns), wishes, place)
        if odd:
            layout = layout.noting(f"not read, not columns of numbers: {', '.join(odd)}")
    _require_one_length({name: columns[name] for name in layout.names}, place)
    layout = layout if own is not None else in_seconds(layout, columns, place)
    return layout.recording(layout.gather(columns), place)


def write_npz(recording: Recording, path: Path) -> None:
    """Write an archive with an array for each signal, named as in Recording.

    Args:
        recording: what is written
        path: the file; it is replaced whole or not at all
    """
    piece = piece_of(recording)
    names = {
        channel: tuple(f"{channel}[{k}]" for k in range(values.shape[1]))
        for channel, values in piece.items()
        if channel != "t"
    }
    arrays: dict[str, Any] = {**piece, _OWN: np.array(pack(recording, {"t": ("t",), **names}))}
    with replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **arrays)


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


def _columns(arrays: dict[str, NDArray[np.generic] | None]) -> tuple[dict[str, Array], list[str]]:
    """Columns of numbers with names (`q[0]`, ...), and the names of arrays that are none."""
    columns: dict[str, Array] = {}
    odd = []
    for name, array in arrays.items():
        if array is None or array.ndim not in (1, 2) or array.dtype.kind not in "fiu":
            odd.append(name)
        elif array.ndim == 1:
            columns[name] = array.astype(float)
        else:
            columns |= {f"{name}[{k}]": array[:, k].astype(float) for k in range(array.shape[1])}
    return columns, odd


def _require_columns(names: tuple[str, ...], columns: dict[str, Array], place: str) -> None:
    for name in names:
        if name not in columns:
            raise UnreadableFile(f"{place}: steelyard wrote '{name}' into it, but it is gone; write it again")


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
