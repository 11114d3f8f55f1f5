"""Ways to break a sound file: bytes, and the values in JSON, TOML, NPZ, Parquet and text tables."""

from __future__ import annotations

import io
import json
import random
import tomllib
import zipfile
from typing import Any, NamedTuple

SPIKE = "a spike"
FREE = (
    "source",
    "made_from",
    "made_by",
    "words",
    "summary",
    "folds",
    "name",
    "status",
    "method",
    "notes",
)
"""Words for people."""

ODD: list[Any] = [
    None,
    "x",
    "",
    -1,
    0,
    1e308,
    -1e-320,
    10**400,
    [],
    {},
    True,
    "inf",
    "nan",
    [[]],
    [None],
    {"a": 1},
]


class Case(NamedTuple):
    """Broken files, the command that reads them, and whether it must be refused.

    Attributes:
        name: what is broken
        files: their contents, by path in the working directory
        words: of the command
        nonsense: whether an exit code of 0 is wrong
        mass: of the payload, [kg]; an answer far from it must not have an exit code of 0
    """

    name: str
    files: dict[str, bytes]
    words: list[str]
    nonsense: bool = False
    mass: float | None = None


def broken_bytes(rng: random.Random, content: bytes) -> bytes:
    """The bytes with a random fault."""
    at = rng.randrange(len(content) or 1)
    kind = rng.randrange(8)
    if kind == 0:
        return content[:at]
    if kind == 1:
        return b""
    if kind == 2:
        return bytes(rng.randrange(256) for _ in range(300))
    if kind == 3:
        return content[:at] + bytes(rng.randrange(256) for _ in range(20)) + content[at:]
    if kind == 4:
        return content[:at] + content[at : at + 40] * 3 + content[at:]
    if kind == 5:
        return b"\xff\xfe" + content.decode("latin-1").encode("utf-16-le")
    if kind == 6:
        return (
            content.replace(b",", b";").replace(b"\n", b"\r")
            if rng.random() < 0.5
            else b"\xe9" + content
        )
    spot = bytearray(content)
    for _ in range(rng.choice([1, 3, 30])):
        spot[rng.randrange(len(spot))] ^= 1 << rng.randrange(8)
    return bytes(spot)


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the parts of a value are."""
    parts: list[tuple[Any, ...]] = [path] if path else []
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value[:3])
        for name, item in items:
            parts += paths_in(item, (*path, name))
    return parts


_MAY_BE_ABSENT = ("arm", "states", "concerns")
"""Recordings of other programs do not say which arm they are of; files written before verdicts had
states lack these, and they follow from the doubts."""
_ANY_LENGTH = ("doubts", "unchecked", "history", "pending")


def broken_value(rng: random.Random, content: dict[str, Any]) -> tuple[bool, str]:
    """Breaks a part of a nested value in place; whether it must be refused, and what was done."""
    path = rng.choice(paths_in(content))
    *above, last = path
    holder: Any = content
    for name in above:
        holder = holder[name]
    before, free = holder[last], any(name in FREE for name in path)
    kind = rng.randrange(6)
    words = f"{'.'.join(map(str, path))} "
    if kind == 0:
        holder.pop(last)
        sound = free or before in (None, {}, []) or last in _MAY_BE_ABSENT
        return not sound, words + "gone"
    if kind == 1 and isinstance(holder, dict):
        holder["unheard_of"] = before
        return True, words + "doubled under another name"
    if kind == 2:
        holder[last] = nested(rng.choice([30, 200]))
        return True, words + "nested"
    if kind == 3 and isinstance(before, list) and before:
        holder[last] = [*before, before[-1]]
        return not (free or path[-1] in _ANY_LENGTH), words + "longer"
    new = rng.choice(ODD)
    holder[last] = new
    alike = (isinstance(before, int | float) and not isinstance(before, bool)) or before in (
        "inf",
        "-inf",
    )
    number = isinstance(new, int | float) and not isinstance(new, bool) and abs(new) < 1e300
    alike = alike or ("drive" in path and isinstance(before, list))  # one number for every joint
    free = free and isinstance(new, str)
    same = (
        type(new) is type(before)
        or (alike and number)
        or (new in (None, {}, []) and before in (None, {}, []))
    )
    return not (
        free or same or (alike and new in ("inf", "nan"))
    ) and before is not None, words + f"= {str(new)[:20]}"


def nested(depth: int) -> Any:
    value: Any = 1.0
    for _ in range(depth):
        value = [value]
    return value


def json_case(rng: random.Random, name: str, content: bytes) -> tuple[bytes, bool, str]:
    if rng.random() < 0.1:
        return b"[" * rng.choice([1000, 200_000]), True, "deep"
    value = json.loads(content)
    if name == "payload.json" and rng.random() < 0.3:
        field = rng.choice(["mass", "mass_std"])
        value[field] = value[field] * 3.96 + 0.1
        return json.dumps(value).encode(), True, f"{field} contradicts the vector"
    nonsense, words = broken_value(rng, value)
    text = json.dumps(value)
    if name == "motion.json":
        nonsense = False  # a file without our header may hold other things beside
    if name in ("state.json", "design.json"):
        nonsense = value != json.loads(content)  # sealed
    return text.encode(), nonsense, words


def toml_case(rng: random.Random, content: bytes) -> tuple[bytes, bool, str]:
    lines = content.decode().splitlines()
    at = rng.choice([k for k, line in enumerate(lines) if "=" in line])
    key, _, value = lines[at].partition("=")
    kind = rng.randrange(5)
    if kind == 0 and key.strip() in ("a", "alpha", "d", "theta"):
        del lines[at]
        return "\n".join(lines).encode(), True, f"no {key}"
    if kind == 1:
        lines.insert(at, "unheard_of = 3")
        return "\n".join(lines).encode(), True, "an unknown key"
    if kind == 2:
        return b"a = " + b"[" * rng.choice([100, 100_000]), True, "deep"
    odd = rng.choice(
        ["nan", "inf", "-1e400", "1" * 500, '"x"', "[]", "{}", "true", "[[1]]", "1979-05-27"]
    )
    lines[at] = f"{key}= {odd}"
    text = "\n".join(lines).encode()
    tomllib_ok = True
    try:
        tomllib.loads(text.decode())
    except (ValueError, RecursionError):
        tomllib_ok = False
    words = key.strip() in ("title", "source", "link_source", "flange_source", "name", "frame")
    bounds = key.strip() in ("v_max", "height", "linear_speed")
    return (
        text,
        not (words or bounds or value.strip() == odd) or not tomllib_ok,
        f"{key}= {odd[:10]}",
    )


def npz_case(rng: random.Random, content: bytes) -> tuple[bytes, bool, str]:
    import numpy as np

    with np.load(io.BytesIO(content)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    name = rng.choice(["t", "q", "tau", "steelyard"])
    array = arrays[name]
    kind = rng.randrange(10)
    if kind == 9 and array.ndim > 1:
        array[rng.randrange(len(array)), rng.randrange(array.shape[1])] = rng.choice([1e300, -1e8])
        out = io.BytesIO()
        np.savez_compressed(out, **arrays)
        return out.getvalue(), True, f"{SPIKE} in {name}"
    ways = {
        0: lambda: None,
        1: lambda: array.astype(str),
        2: lambda: np.empty((0, 2)),
        3: lambda: np.array(3.0),
        4: lambda: array[: len(array) // 2] if array.ndim else array,
        5: lambda: np.full(array.shape, np.nan) if array.ndim else np.array("{}"),
        6: lambda: np.zeros((3, 20_000)),
        7: lambda: np.array([object()], dtype=object),
        8: lambda: np.zeros(array.shape, dtype=complex),
    }
    new = ways[kind % len(ways)]()
    if new is None:
        arrays.pop(name)
    else:
        arrays[name] = new
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    made = out.getvalue()
    if rng.random() < 0.1:
        return bomb(rng), True, "a bomb"
    return made, name != "steelyard", f"{name} broken by {kind}"


def bomb(rng: random.Random) -> bytes:
    """Gigabytes of zeros in a small archive, beside or in place of a signal."""
    out = io.BytesIO()
    name = rng.choice(["q", "unheard_of"])
    header = (
        f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**28}, 2), }}".ljust(117).encode()
        + b"\n"
    )
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(f"{name}.npy", "w") as file,
    ):
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        for _ in range(64):
            file.write(bytes(2**20))
    return out.getvalue()


def parquet_case(rng: random.Random, content: bytes) -> tuple[bytes, bool, str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(content))
    kind = rng.randrange(5)
    own = json.loads(table.schema.metadata[b"steelyard"])
    nonsense, words = False, f"broken by {kind}"
    if kind == 0:
        table = table.drop_columns([rng.choice(table.column_names)])
        nonsense = False
    elif kind == 1:
        at = rng.randrange(len(table.column_names))
        table = table.set_column(at, table.column_names[at], pa.array(["x"] * len(table)))
    elif kind == 2:
        table = table.slice(0, rng.choice([0, 1, 2]))
    else:
        nonsense, words = broken_value(rng, own)
        table = table.replace_schema_metadata({"steelyard": json.dumps(own)})
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue(), nonsense, words


def csv_case(rng: random.Random, content: bytes) -> tuple[bytes, bool, str]:
    lines = content.decode().splitlines()
    at = rng.randrange(len(lines))
    odd = rng.choice(
        ["", "x", "nan,nan", "1e400" + ",1" * 4, ",,,,,,,,,,", "\x00", "é,ü", "1,2", '"', lines[0]]
    )
    lines[at] = odd
    return "\n".join(lines).encode(rng.choice(["utf-8", "latin-1"])), False, f"line {at} is {odd!r}"
