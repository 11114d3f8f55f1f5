"""Tables of parts: one row for each part, in a CSV file.

    name,mass,tolerance,cx,cy,cz,com_tolerance,size
    housing,2.0,0.01,0,0.01,0.08,0.01,0.1

Masses are in kg and lengths in m. Only `name` and `mass` are needed.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from steelyard.errors import SteelyardError, UnreadableFile
from steelyard.payload import Part

_NUMBERS = ("mass", "tolerance", "cx", "cy", "cz", "com_tolerance", "size")
_MAX_PARTS = 1000


def read_parts(path: str | Path) -> tuple[Part, ...]:
    """The parts in a CSV file.

    Args:
        path: of the file; columns `name`, `mass` [kg], and where known `tolerance` [kg], `cx`,
            `cy`, `cz` (centre of mass in the flange frame, [m]), `com_tolerance` [m], `size` [m]
    """
    header, rows = _cells(path)
    if not rows or "name" not in header or "mass" not in header:
        raise UnreadableFile(
            f"{path}: a table of parts has the columns name and mass [kg], and where known"
            f" {', '.join(_NUMBERS[1:])}"
        )
    if len(rows) > _MAX_PARTS:
        raise UnreadableFile(f"{path}: {len(rows)} parts are too many")
    _check_columns(header, path)
    parts = tuple(_part(header, cells, f"{path}, line {line}") for line, cells in rows)
    names = [part.name for part in parts]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UnreadableFile(f"{path}: the part '{twice[0]}' is there twice; name each part once")
    return parts


def _cells(path: str | Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The names of the columns, and the cells of each row that has any, with its line."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            table = csv.reader(file, skipinitialspace=True)
            rows = [(table.line_num, [cell.strip() for cell in cells]) for cells in table if cells]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableFile(f"{path}: no table of parts: {error}") from error
    if not rows:
        return [], []
    return rows[0][1], rows[1:]


def _check_columns(header: Sequence[str], path: str | Path) -> None:
    """Refuses columns that a table of parts does not have, or has twice."""
    for name in header:
        if name not in ("name", *_NUMBERS):
            raise UnreadableFile(
                f"{path}: unknown column '{name}'; a table of parts has name, {', '.join(_NUMBERS)}"
            )
        if header.count(name) > 1:
            raise UnreadableFile(f"{path}: the column '{name}' is there twice; remove one")


def _part(header: Sequence[str], cells: Sequence[str], place: str) -> Part:
    """The part of a row; cells that are missing at its end are empty."""
    if len(cells) > len(header):
        raise UnreadableFile(
            f"{place}: it has {len(cells)} cells for {len(header)} columns; a decimal comma would"
            " be one cause"
        )
    row = dict(zip(header, cells, strict=False))
    numbers = {}
    for name in _NUMBERS:
        text = row.get(name, "")
        if not text:
            continue
        try:
            numbers[name] = float(text)
        except ValueError:
            raise UnreadableFile(f"{place}: {name} is '{text[:40]}', not a number") from None
    com = tuple(numbers.pop(name, 0.0) for name in ("cx", "cy", "cz"))
    label = row.get("name", "")
    if not label or "mass" not in numbers:
        raise UnreadableFile(f"{place}: a part needs a name and a mass [kg]")
    try:
        return Part.from_dict({"name": label, "com": com, **numbers})
    except SteelyardError as error:
        raise UnreadableFile(f"{place}: {error}") from error
