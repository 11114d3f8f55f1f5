"""Recordings in MATLAB files (.mat, version 7 and before), by SciPy.

Arrays inside of structs are found by their last name where it is unique in the file (`data.q` is
`q`), else by the whole one. MATLAB often keeps a row for each joint: an array with more columns
than rows is transposed, which is noted. Version 7.3 is another format (HDF5) and is refused.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard._arrays import Array
from steelyard._saved import parsing
from steelyard.errors import UnreadableFile
from steelyard.io._binary import MAX_UNPACKED_BYTES
from steelyard.io._matlab_structure import check_structure
from steelyard.recording import Recording, recording_of_arrays
from steelyard.recording._columns import Requested

_VERSION_5 = 1  # as `matfile_version` counts; 0 is version 4, whose reader is not compiled
_HDF5_VERSION = 2


def read_matlab(path: Path, requested: Requested) -> Recording:
    """The recording in a MATLAB file."""
    arrays, turned = _arrays(path)
    requested = replace(requested, columns=_short_names(requested.columns, arrays))
    shapes = {name: (array.shape, array.dtype.kind) for name, array in arrays.items()}
    found = recording_of_arrays(shapes, lambda wanted: arrays, requested, str(path))
    read = [name for name in turned if name in {"t", *found.channels}]
    if not read:
        return found
    note = f"transposed, because they had a row for each joint: {', '.join(read)}"
    return replace(found, notes=(*found.notes, note))


def _short_names(
    columns: Mapping[str, str | Sequence[str]], arrays: Collection[str]
) -> dict[str, str | Sequence[str]]:
    """Requested columns in which a whole name, `data.q`, is replaced by its unique last part."""

    def short(name: str) -> str:
        last = name.rpartition(".")[2]
        if name not in arrays and last in arrays:
            return last
        return name

    return {
        channel: short(names) if isinstance(names, str) else [short(name) for name in names]
        for channel, names in columns.items()
    }


def matlab_columns(path: Path, wanted: Collection[str]) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Columns of a MATLAB file by name, and no notes."""
    arrays, _ = _arrays(path)
    return {
        name: array.astype(float)
        for name, array in arrays.items()
        if name in wanted and array.dtype.kind in "iuf"
    }, ()


def _arrays(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The arrays of a file by name, (N,) or (N, k), and which of them were transposed."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadWarning, matfile_version

    fault = f"{path}: it is not a MATLAB file, or it is damaged"
    with parsing(fault, "save it again, or copy it again from its origin"):
        version, _ = matfile_version(path)
        if version == _HDF5_VERSION:
            raise UnreadableFile(
                f"{path}: it is a MATLAB file of version 7.3 (HDF5); save it with"
                " save(..., '-v7') in MATLAB"
            )
        if version == _VERSION_5:
            check_structure(path, max_unpacked=MAX_UNPACKED_BYTES)
        with warnings.catch_warnings():
            warnings.simplefilter("error", MatReadWarning)  # two arrays of one name
            content = loadmat(path, simplify_cells=True)
    found = dict(_flat(content))
    last = Counter(name.rpartition(".")[2] for name in found)
    turned = []
    arrays: dict[str, Any] = {}
    for name, array in found.items():
        short = name.rpartition(".")[2]
        if last[short] > 1:
            short = name
        if array.ndim == 2 and array.shape[1] > array.shape[0]:
            turned.append(short)
            array = array.T
        arrays[short] = array
    return arrays, turned


def _flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The arrays in nested structs, with dots in their names."""
    for name, value in content.items():
        if name.startswith("__"):  # of the file itself
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, np.ndarray):
            yield prefix + name, value
