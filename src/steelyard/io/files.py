"""What a recording's file is, before its content is believed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from steelyard.errors import UnreadableFile

FileKind = Literal["parquet", "npz", "text", "bag"]

SUFFIXES: dict[str, FileKind] = {
    ".parquet": "parquet",
    ".npz": "npz",
    ".csv": "text",
    ".tsv": "text",
    ".txt": "text",
    ".db3": "bag",
    ".mcap": "bag",
}
"""What a recording's file may be called; a ROS 2 bag may be a folder too."""

_PARQUET = b"PAR1"
_ZIP = b"PK"
_SQLITE = b"SQLi"
_MCAP = b"\x89MCA"
_LOOKS = {
    _PARQUET: "Parquet (.parquet)",
    _ZIP: "a zip archive, as NPZ (.npz) and spreadsheets are",
    _SQLITE: "an SQLite database, as bags (.db3) are",
    _MCAP: "a bag (.mcap)",
}
_MAGIC = {".parquet": _PARQUET, ".npz": _ZIP, ".db3": _SQLITE, ".mcap": _MCAP}
_MCAP_END = b"P0\r\n"


def file_kind(path: Path) -> FileKind:
    """What a file is, from its name, once its first and last bytes agree.

    Args:
        path: the file
    """
    suffix = path.suffix.lower()
    kind = SUFFIXES.get(suffix)
    if kind in (None, "bag") and path.is_dir():
        _require_bag(path)
        return "bag"
    if not suffix:
        _ends(path)  # a folder that is not there, as a rule
    if kind is None:
        raise UnreadableFile(
            f"{path}: a recording is not read from '{path.suffix}' files; known are {', '.join(SUFFIXES)}"
            " and the folders of ROS 2 bags"
        )
    first, last = _ends(path)
    looks = next(
        (words for magic, words in _LOOKS.items() if first.startswith(magic)),
        "neither Parquet nor NPZ nor a bag",
    )
    if not first.startswith(_MAGIC.get(suffix, b"")) or (kind == "text" and first.startswith(tuple(_LOOKS))):
        raise UnreadableFile(
            f"{path}: it is not what its name says, it begins like {looks}; rename it or export it again"
        )
    if kind == "parquet" and last != _PARQUET:
        raise UnreadableFile(
            f"{path}: it was not finished by its writer (a Parquet file ends with its footer, this one does"
            " not); copy it again from where it was written, or record again"
        )
    if suffix == ".mcap" and last != _MCAP_END:
        raise UnreadableFile(
            f"{path}: it was not finished by its recorder (its end is missing); copy it again,"
            " or repair it with mcap recover"
        )
    return kind


def _require_bag(path: Path) -> None:
    if (path / "metadata.yaml").is_file():
        return
    files = sorted(file.name for file in path.iterdir() if SUFFIXES.get(file.suffix.lower()) == "bag")
    hint = (
        f"it was not finished by its recorder; give the file itself ({files[0]}), or ros2 bag reindex"
        if files
        else "give a file"
    )
    raise UnreadableFile(f"{path}: it is a folder, but no ROS 2 bag (metadata.yaml is missing); {hint}")


def _ends(path: Path) -> tuple[bytes, bytes]:
    """The first and the last four bytes."""
    try:
        with path.open("rb") as file:
            first = file.read(4)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 4, 0))
            last = file.read(4)
    except FileNotFoundError as error:
        raise UnreadableFile(f"{path}: no such file; look at the path (now in {Path.cwd()})") from error
    except OSError as error:
        raise UnreadableFile(f"{path}: it cannot be opened: {error.strerror}") from error
    if size == 0:
        raise UnreadableFile(f"{path}: the file is empty; nothing was recorded, or nothing was copied")
    return first, last
