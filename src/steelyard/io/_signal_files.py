"""Recordings with a file of numbers for each signal, as `columns={'q': 'ang.txt'}` names them.

A file holds a line for each time, with a number for each joint, after any lines of text. Several
files of one signal have a joint each. A file with one number to a line may also hold the joints
one after the other for each time; then the other signals say how many there are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import UnreadableFile
from steelyard.recording import Recording, recording_of_arrays
from steelyard.recording._columns import Requested

SUFFIXES = (".txt", ".csv", ".tsv", ".dat")
"""Of files with the numbers of one signal."""

_BETWEEN = re.compile(r"[;,\t ]+")
_BETWEEN_DECIMAL_COMMAS = re.compile(r"[;\t ]+")
_DECIMAL_COMMA = re.compile(r"\d,\d+[;\t ]|[;\t ]-?\d+,\d")


def signal_files(path: Path, requested: Requested) -> dict[str, list[Path]]:
    """The files that are named as columns, by signal; empty if none is a file.

    Args:
        path: a folder with the files, or one of them
        requested: statements about the recording
    """
    folder = path if path.is_dir() else path.parent
    found: dict[str, list[Path]] = {}
    for signal, names in requested.columns.items():
        listed = [names] if isinstance(names, str) else list(names)
        files = [folder / name for name in listed]
        if listed and all(file.suffix.lower() in SUFFIXES and file.is_file() for file in files):
            found[signal] = files
    return found


def read_signal_files(path: Path, requested: Requested) -> Recording:
    """The recording in files with the numbers of one signal each; see `signal_files`."""
    files = signal_files(path, requested)
    arrays = {signal: _signal(each) for signal, each in files.items()}
    missing = [str(names) for signal, names in requested.columns.items() if signal not in files]
    if missing:
        raise UnreadableFile(
            f"{path}: some `columns` are files, but not {', '.join(missing)}; name a file for each"
        )
    arrays = _with_joints(arrays)
    if "t" in arrays and arrays["t"].shape[1] == 1:
        arrays["t"] = arrays["t"][:, 0]
    shapes = {signal: (array.shape, array.dtype.kind) for signal, array in arrays.items()}
    place = f"{path} ({', '.join(file.name for each in files.values() for file in each)})"
    rest = replace(requested, columns={})
    return recording_of_arrays(shapes, lambda wanted: arrays, rest, place)


def _signal(files: Sequence[Path]) -> Array:
    """The numbers of a signal, (N, k); several files stand side by side."""
    parts = [_numbers(file) for file in files]
    lengths = [len(part) for part in parts]
    if len(set(lengths)) > 1:
        raise UnreadableFile(
            f"{files[0].parent}: the files of one signal have {', '.join(map(str, lengths))} rows"
        )
    return np.hstack(parts)


def _with_joints(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The signals; a single column that holds all joints in turn gets a column for each."""
    rows = min(len(array) for array in arrays.values())
    joints = max(array.shape[1] for signal, array in arrays.items() if signal != "t")
    out = dict(arrays)
    for signal, array in arrays.items():
        if array.shape[1] > 1 or signal == "t" or len(array) == rows:
            continue
        if len(array) % rows == 0 and joints in (1, len(array) // rows):
            out[signal] = array.reshape(rows, -1)
    return out


def _numbers(file: Path) -> Array:
    """The numbers in a file, (N, k); lines of text before them are skipped."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"{file}: it cannot be read as text: {error}") from error
    between = _BETWEEN
    if _DECIMAL_COMMA.search(text) and ("; " in text or ";" in text or "\t" in text):
        between = _BETWEEN_DECIMAL_COMMAS
        text = text.replace(",", ".")
    rows: list[list[float]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        fields = [field for field in between.split(line.strip()) if field]
        try:
            values = [float(field) for field in fields]
        except ValueError:
            if rows:
                raise UnreadableFile(
                    f"{file}: line {number} is not numbers: {line[:40]!r}"
                ) from None
            continue
        if values:
            rows.append(values)
        if len(values) not in (0, len(rows[0]) if rows else 0):
            raise UnreadableFile(
                f"{file}: line {number} has {len(values)} numbers, the first line {len(rows[0])}"
            )
    if not rows:
        raise UnreadableFile(f"{file}: there is no line of numbers")
    return np.array(rows)
