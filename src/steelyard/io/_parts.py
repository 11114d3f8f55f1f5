"""Tables of parts: one row for each part, in a CSV file.

    name,mass,tolerance,cx,cy,cz,com_tolerance,size
    housing,2.0,0.01,0,0.01,0.08,0.01,0.1

Masses are in kg and lengths in m. Only `name` and `mass` are needed.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
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
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file, skipinitialspace=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableFile(f"{path}: no table of parts: {error}") from error
    if not rows or "name" not in rows[0] or "mass" not in rows[0]:
        raise UnreadableFile(
            f"{path}: a table of parts has the columns name and mass [kg], and where known"
            f" {', '.join(_NUMBERS[1:])}"
        )
    if len(rows) > _MAX_PARTS:
        raise UnreadableFile(f"{path}: {len(rows)} parts are too many")
    unknown = [name for name in rows[0] if name not in ("name", *_NUMBERS)]
    if unknown:
        raise UnreadableFile(
            f"{path}: unknown column '{unknown[0]}'; a table of parts has name,"
            f" {', '.join(_NUMBERS)}"
        )
    parts = tuple(_part(row, f"{path}, line {k + 2}") for k, row in enumerate(rows))
    names = [part.name for part in parts]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UnreadableFile(f"{path}: the part '{twice[0]}' is there twice; name each part once")
    return parts


def _part(row: Mapping[str, str | None], place: str) -> Part:
    """The part of a row."""
    numbers = {}
    for name in _NUMBERS:
        text = (row.get(name) or "").strip()
        if not text:
            continue
        try:
            numbers[name] = float(text)
        except ValueError:
            raise UnreadableFile(f"{place}: {name} is '{text[:40]}', not a number") from None
    com = tuple(numbers.pop(name, 0.0) for name in ("cx", "cy", "cz"))
    label = (row.get("name") or "").strip()
    if not label or "mass" not in numbers:
        raise UnreadableFile(f"{place}: a part needs a name and a mass [kg]")
    try:
        return Part.from_dict({"name": label, "com": com, **numbers})
    except SteelyardError as error:
        raise UnreadableFile(f"{place}: {error}") from error
