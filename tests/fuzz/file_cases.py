"""Cases: a broken file and a command that reads it."""

from __future__ import annotations

import io
import random
from collections.abc import Callable

import numpy as np
from breaking import (
    SPIKE,
    Case,
    broken_bytes,
    csv_case,
    json_case,
    npz_case,
    parquet_case,
    toml_case,
)
from sound_files import TORQUE_KG, WRIST_KG

READERS: dict[str, list[str]] = {
    "payload.json": ["export ur {} --force", "export urdf {} --json --force"],
    "wrist.json": [
        "export urdf {} --json --force",
        "contact {} wrist_motion.csv --sensor motion.toml --json -o out.parquet",
    ],
    "model.json": [
        "weigh {} loaded.npz --json",
        "weigh {} loaded.npz -o out.json",
        "collisions {} loaded.npz --json",
    ],
    "state.json": ["track loaded.npz --model model.json --resume {} --json"],
    "wrist_state.json": ["track-wrist wrist_motion.csv --sensor motion.toml --resume {} --json"],
    "design.json": [
        "simulate planar2r --trajectory {} -o out.npz --rate 50",
        "export-motion {} --to csv -o out.csv",
    ],
    "motion.json": ["simulate planar2r --trajectory {} -o out.npz --rate 50"],
    "loaded.npz": [
        "check {}",
        "weigh model.json {} -o out.json",
        "track {} --model model.json --json",
    ],
    "loaded.parquet": ["check {} --json", "weigh model.json {} -o out.json"],
    "loaded.csv": ["check {}", "check {} -o out.npz", "track replay:{} --model model.json --json"],
    "live.arrows": [
        "check {} --json",
        "weigh model.json {} --json",
        "track {} --model model.json --json",
        "record replay:{} -o out.parquet --seconds 0.3 --json",
    ],
    "arm.toml": ["robot {}", "robot {} --json"],
    "arm.urdf": ["robot {}"],
    "limits.toml": ["postures-random planar2r --count 3 --limits {} -o out.csv"],
    "sensor.toml": ["weigh-wrist at-rest wrist.csv --sensor {} -o out.json"],
    "motion.toml": [
        "weigh-wrist in-motion wrist_motion.csv --sensor {} --json",
        "track-wrist wrist_motion.csv --sensor {} --json",
    ],
    "wrist.csv": ["weigh-wrist at-rest {} --sensor sensor.toml -o out.json"],
    "wrist_motion.csv": [
        "weigh-wrist in-motion {} --sensor motion.toml --json",
        "track-wrist {} --sensor motion.toml --json",
    ],
    "wrist_motion.npz": [
        "weigh-wrist in-motion {} --sensor arrays.toml --json",
        "track-wrist {} --sensor arrays.toml --json",
        "contact wrist.json {} --sensor arrays.toml --json -o out.parquet",
    ],
}
"""Sound files, and commands that read them."""

Columns = dict[str, np.ndarray]
LAST_ROW = 300  # of the places of faults in a wrist recording


def file_case(rng: random.Random, sound: dict[str, bytes]) -> Case:
    """A broken file."""
    name = rng.choice(list(READERS))
    ending = name.rpartition(".")[2]
    target = f"broken.{ending}"
    command = rng.choice(READERS[name]).format(target).split()
    made, nonsense, words = _broken(rng, name, sound[name])
    return Case(f"{name}: {words}: {' '.join(command)}", {target: made}, command, nonsense)


def _broken(rng: random.Random, name: str, content: bytes) -> tuple[bytes, bool, str]:
    ending = name.rpartition(".")[2]
    if rng.random() < 0.25 or ending == "arrows":
        return broken_bytes(rng, content), False, "bytes"
    if name == "wrist_motion.npz":
        made, nonsense, words = wrist_arrays(rng, content)
        return made, nonsense, words
    if ending == "json":
        return json_case(rng, name, content)
    if ending == "toml":
        return toml_case(rng, content)
    cases = {"npz": npz_case, "parquet": parquet_case, "csv": csv_case}
    return cases.get(ending, csv_case)(rng, content)


def wrist_arrays(rng: random.Random, content: bytes) -> tuple[bytes, bool, str]:
    """Arrays of a wrist sensor that hold something else."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    name = rng.choice(list(arrays))
    array = arrays[name]
    ways: dict[str, Callable[[], np.ndarray | None]] = {
        "gone": lambda: None,
        "of texts": lambda: array.astype(str),
        "empty": lambda: array[:0],
        "a number": lambda: np.array(3.0),
        "half as long": lambda: array[: len(array) // 2],
        "not a number": lambda: np.full(array.shape, np.nan),
        "of objects": lambda: np.array([object()] * len(array), dtype=object),
        "complex": lambda: array * 1j,
        "zero": lambda: np.zeros_like(array),
        "infinite": lambda: np.full(array.shape, np.inf),
        "huge": lambda: array * 1e30,
        "cube": lambda: np.stack([array, array]),
        "of flags": lambda: array > 0,
        "with an axis more": lambda: array[..., None],
        "narrow": lambda: array.reshape(len(array), -1)[:, :1],
    }
    way = rng.choice(list(ways))
    new = ways[way]()
    if new is None:
        arrays.pop(name)
    else:
        arrays[name] = new
    out = io.BytesIO()
    np.savez(out, **arrays)
    sound = name == "t" and way in ("narrow", "huge", "with an axis more")  # (N, 1) is a column
    return out.getvalue(), not sound, f"{name} is {way}"


def wrist_table_case(rng: random.Random, sound: dict[str, bytes]) -> Case:
    """A damaged table of a wrist sensor; the answer must be right, or not be trusted."""
    text = sound["wrist_motion.csv"].decode().splitlines()
    names = text[0].split(",")
    rows = np.array([[float(cell) for cell in line.split(",")] for line in text[1:]])
    words, nonsense = _damage(rng, rows, names)
    command = rng.choice(["weigh-wrist in-motion", "track-wrist"])
    lines = [",".join(names), *(",".join(f"{x:.6g}" for x in row) for row in rows)]
    target = {"broken.csv": "\n".join(lines).encode()}
    call = f"{command} broken.csv --sensor motion.toml --json".split()
    return Case(f"wrist table: {words}: {command}", target, call, nonsense, WRIST_KG)


def _damage(rng: random.Random, rows: np.ndarray, names: list[str]) -> tuple[str, bool]:
    """Damages rows and names in place; what was done, and whether it must be refused."""
    row = rng.randrange(5, LAST_ROW)
    column = rng.randrange(len(names))
    few = slice(row, row + rng.choice([1, 3, 30]))
    kind = rng.choice(_DAMAGES)
    if kind == "spike":
        rows[row, column] = rng.choice([1e3, -1e9, 1e300, np.inf])
        return f"{SPIKE} in {names[column]}", False
    if kind == "doubled":
        other = rng.choice([k for k in range(len(names)) if k != column])
        names[column] = names[other]
        return f"column {names[other]} twice", True
    if kind == "renamed":
        names[column] = "unheard_of"
        return f"no column {names[column]}", True
    if kind == "dead":
        rows[:, column] = 0.0
        return f"{names[column]} is zero", names[column] == "t"
    if kind == "absent":
        rows[:, column] = np.nan
        return f"{names[column]} is absent", True
    if kind == "units":
        rows[:, 8:] *= rng.choice([1e3, 1e6, 1e-6])
        return "wrench in other units", False
    _spoil(kind, rows, few, column)
    return kind, False


_DAMAGES = (
    *("spike", "doubled", "renamed", "dead", "absent", "units"),
    *("holes", "repeats", "back in time", "no turn", "turned signs", "gap", "one instant"),
)


def _spoil(kind: str, rows: np.ndarray, few: slice, column: int) -> None:
    """Damages some rows in place."""
    if kind == "holes":
        rows[few, column] = np.nan
    elif kind == "repeats":
        rows[few] = rows[few.start]
    elif kind == "back in time":
        rows[few, 0] -= 1.0
    elif kind == "no turn":
        rows[few, 4:8] = 0.0
    elif kind == "turned signs":
        rows[few, 8:] *= -1
    elif kind == "gap":
        rows[few.stop :, 0] += 30.0
    else:
        rows[few, 0] = rows[few.start, 0]


def torque_table_case(rng: random.Random, sound: dict[str, bytes]) -> Case:
    """Damaged rows of joint torques, read as a file or row by row."""
    text = sound["loaded.csv"].decode().splitlines()
    names = text[0].split(",")
    rows = np.array([[float(cell) for cell in line.split(",")] for line in text[1:]])
    row = rng.randrange(5, LAST_ROW)
    column = rng.randrange(len(names))
    few = slice(row, row + rng.choice([1, 3, 30]))
    kind = rng.choice(["holes", "repeats", "back in time", "gap", "one instant", "spike"])
    if kind == "spike":
        rows[row, column] = rng.choice([1e3, -1e9, 1e300, np.nan])
    else:
        _spoil(kind, rows, few, column)
    lines = [",".join(names), *(",".join(f"{x:.9g}" for x in row) for row in rows)]
    command = rng.choice(["weigh model.json broken.csv", "track broken.csv --model model.json"])
    files = {"broken.csv": "\n".join(lines).encode()}
    name = f"torque table: {kind} in {names[column]}: {command}"
    return Case(name, files, [*command.split(), "--json"], False, TORQUE_KG)
