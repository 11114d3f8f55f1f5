"""Cases of picks: broken tables of parts, and files of shifts."""

from __future__ import annotations

import csv
import io
import json
import random
from typing import Any

from breaking import Case, broken_bytes, csv_case, json_case

PARTS, SHIFT = "parts.csv", "shift.json"
ON_PARTS = (
    "picks loaded.npz --model model.json --parts broken.csv",
    "picks-preview loaded.npz --model model.json --parts broken.csv",
)
CELLS: dict[str, tuple[str, ...]] = {
    "name": ("", "housing", "a\tb", "a\x00b", "a\x1b[31mb"),
    "mass": ("", "x", "nan", "inf", "-1", "0", "1e9", "1e400", "0,5"),
    "tolerance": ("x", "nan", "-1", "1e9"),
    "cx": ("x", "nan", "inf", "80", "-1e300"),
    "com_tolerance": ("x", "0", "-1", "1e6"),
    "size": ("x", "0", "-1", "1e6", "nan"),
}
"""Nonsense for each column of a table of parts."""
CHANGES: dict[str, tuple[Any, ...]] = {
    "number": (0, -1, 1.5, "x", None),
    "close_s": (1e9, None, "x", 1e300),
    "open_s": (-1e9, None, "x"),
    "decision": ("", "fine", None, 1),
    "part": ("no such part", None, 1),
    "fits": ("no such part", None, 1),
    "mass": (1.0, "x", {"value": 1.0}, {"value": 1e9, "std": 0.1, "half_width": 0.196}),
    "relative": ([], {"value": "nan", "std": 0.1, "half_width": 0.196}),
    "early_decision": ("fine", 1),
}
"""Nonsense for each field of a pick."""
OF_SHIFTS: dict[str, tuple[Any, ...]] = {
    "picks": ([], [None], {}, None),
    "parts": ([None], None, [{"name": "lid", "mass": -1.0}]),
    "false_alarms_per_1000": (0, -1, 1e9, None, "x"),
    "common_std": ([], [0.1] * 50, [-1.0], None),
    "friction": ([[1.0]], None, "x"),
    "tool": ("a\nb", None, 1),
}
"""Nonsense for each field of a shift."""


def parts_case(rng: random.Random, sound: dict[str, bytes]) -> Case:
    """A broken table of parts."""
    words = rng.choice(ON_PARTS).split()
    if rng.random() < 0.5:
        words.append("--json")
    content = sound[PARTS]
    kind = rng.randrange(6)
    if kind == 0:
        return Case("parts: bytes", {"broken.csv": broken_bytes(rng, content)}, words)
    if kind == 1:
        made, _, what = csv_case(rng, content)
        return Case(f"parts: {what}", {"broken.csv": made}, words)
    if kind == 2:
        lines = content.decode().splitlines()
        at = rng.randrange(1, len(lines))
        lines[at] += ",1" * (8 - lines[at].count(","))
        return Case("parts: cells too many", _file(lines), words, nonsense=True)
    if kind == 3:
        lines = content.decode().splitlines()
        lines[0] = lines[0].replace("tolerance", "mass", 1)
        return Case("parts: a column twice", _file(lines), words, nonsense=True)
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    column = rng.choice(list(CELLS))
    value = rng.choice(CELLS[column])
    rows[0][column] = value
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    files = {"broken.csv": out.getvalue().encode()}
    return Case(f"parts: {column} = {value!r}", files, words, nonsense=True)


def _file(lines: list[str]) -> dict[str, bytes]:
    return {"broken.csv": "\n".join(lines).encode()}


def shift_case(rng: random.Random, sound: dict[str, bytes]) -> Case:
    """A broken file of a shift, beside a sound one."""
    words = ["fleet", "picks", *rng.choice([["broken.json"], [SHIFT, "broken.json"]])]
    if rng.random() < 0.5:
        words.append("--json")
    kind = rng.randrange(4)
    if kind == 0:
        made = broken_bytes(rng, sound[SHIFT])
        return Case("shift: bytes", {"broken.json": made}, words)
    if kind == 1:
        made, _, what = json_case(rng, SHIFT, sound[SHIFT])
        return Case(f"shift: {what}", {"broken.json": made}, words)
    content = json.loads(sound[SHIFT])
    holder, changes = (content, OF_SHIFTS) if kind == 2 else (content["picks"][0], CHANGES)
    field = rng.choice(list(changes))
    holder[field] = rng.choice(changes[field])
    files = {"broken.json": json.dumps(content).encode()}
    name = f"shift: {field} = {str(holder[field])[:30]}"
    return Case(name, files, words, nonsense=True)
