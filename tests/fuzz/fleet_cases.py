"""Cases of a fleet: broken catalogues, and stores with broken rows, models and reductions."""

from __future__ import annotations

import csv
import hashlib
import io
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from breaking import Case, broken_bytes, csv_case, json_case
from sound_files import CATALOGUE, STORE

BROKEN_STORE = "broken_store"
READERS = ("identify", "weigh", "trend")
CELLS: dict[str, tuple[str, ...]] = {
    "robot": ("",),
    "model": ("", "no.urdf", "catalogue.csv", "ur10"),
    "file": ("", "no.npz", "catalogue.csv", "."),
    "load": ("-1", "x", "1e300", "inf"),
    "time": ("x", "1e300", "-1", "2026-13-45", "99999-01-01"),
}
"""Nonsense for each column of a catalogue."""


def catalogue_case(rng: random.Random, sound: dict[str, bytes]) -> Case:
    """A broken catalogue, and a store to build from it."""
    words = f"fleet build broken.csv -o {BROKEN_STORE} --workers 1 --json".split()
    content = sound[CATALOGUE]
    kind = rng.randrange(4)
    if kind == 0:
        return Case("catalogue: bytes", {"broken.csv": broken_bytes(rng, content)}, words)
    if kind == 1:
        made, _, what = csv_case(rng, content)
        return Case(f"catalogue: {what}", {"broken.csv": made}, words)
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    column = rng.choice(list(CELLS))
    value = rng.choice(CELLS[column])
    rows[rng.randrange(len(rows))][column] = value
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    files = {"broken.csv": out.getvalue().encode()}
    return Case(f"catalogue: {column} = {value!r}", files, words, nonsense=True)


def store_case(rng: random.Random, sound: dict[str, bytes]) -> Case:
    """A store in which one file is broken."""
    files = {
        name.replace(STORE, BROKEN_STORE, 1): content
        for name, content in sound.items()
        if name.startswith(f"{STORE}/")
    }
    name = rng.choice(list(files))
    words = f"fleet {rng.choice(READERS)} {BROKEN_STORE} --workers 1".split()
    if rng.random() < 0.6:
        words.append("--json")
    nonsense = False
    if rng.random() < 0.2:
        what = "bytes"
        files[name] = broken_bytes(rng, files[name])
    elif name.endswith(".parquet"):
        files[name], nonsense, what = broken_row(rng, files[name])
    else:
        files[name], _, what = json_case(rng, name, files[name])
    return Case(f"store: {name}: {what}: {' '.join(words)}", files, words, nonsense)


def broken_row(rng: random.Random, content: bytes) -> tuple[bytes, bool, str]:
    """One cell of the rows of a store changed; half of the time with a digest that fits."""
    table = pq.read_table(pa.BufferReader(content), partitioning=None)
    columns: dict[str, list[Any]] = table.to_pydict()
    name = rng.choice(table.column_names)
    row = rng.randrange(len(table))
    old = columns[name][row]
    new = _changed(rng, old)
    # a triangular factor and its negative say the same
    same = new == old or (name == "factor" and new == [-x for x in old])
    columns[name][row] = new
    numbers = name in ("rows", "noise", "widening", "torque", "factor")
    if rng.random() < 0.5:
        columns["digest"][row] = _digest({key: column[row] for key, column in columns.items()})
    try:
        made = pa.table(columns, table.schema)
    except (pa.ArrowException, TypeError, OverflowError, ValueError):
        types = {key: pa.array(column) for key, column in columns.items() if key != name}
        types[name] = pa.array([str(cell) for cell in columns[name]])
        made = pa.table(types).replace_schema_metadata(table.schema.metadata)
    out = io.BytesIO()
    pq.write_table(made, out)
    sound = not numbers or same or not columns["ok"][row]
    return out.getvalue(), not sound, f"{name} = {str(new)[:30]}"


def _changed(rng: random.Random, value: Any) -> Any:
    if isinstance(value, list) and value:
        wrong = [value[:-1], [*value, value[-1]], [], None, [-x for x in value]]
        if isinstance(value[0], float):
            wrong += [[*value[:-1], float("nan")], [1e300] * len(value)]
        return rng.choice(wrong)
    return rng.choice([None, "x", "", -1, 0, 1e300, float("nan"), [], True])


def _digest(row: dict[str, Any]) -> str:
    """As a store computes it, so that only what a row says about itself can be wrong."""
    try:
        digest = hashlib.sha256(np.array(row["factor"], dtype=float).tobytes())
    except (TypeError, ValueError):
        return ""
    for name in ("rows", "noise", "widening", "torque"):
        digest.update(repr(tuple(row[name] or ())).encode())
    return digest.hexdigest()[:24]
