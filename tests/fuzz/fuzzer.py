"""Malformed files and arguments, some cases in each forked process: what goes wrong is counted.

Usage: python tests/fuzz/fuzzer.py [CASES] [SEED] [--keep FOLDER]

A case is a sound file of some kind, broken in one way, and a command that reads it. Counted are
tracebacks (exit code 70 or a signal), hangs, memory, files that a refused command leaves behind,
refusals that are not one line, and nonsense that is accepted. All must be zero.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import tempfile
import tomllib
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

import typer.main

from steelyard import cli

LIMIT_S, LIMIT_MB = 30, 1500
IN_A_FORK, SPIKE = 25, "a spike"
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
    """A broken file, the command that reads it, and whether it must be refused."""

    name: str
    files: dict[str, bytes]
    words: list[str]
    nonsense: bool


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    stdout: str
    stderr: str
    megabytes: float
    left: list[str]


# --- sound files


def run(words: list[str]) -> tuple[int, str, str]:
    """A command in this process."""
    said, complained = io.StringIO(), io.StringIO()
    sys.argv = ["steelyard", *words]
    code = 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        try:
            cli.run()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, said.getvalue(), complained.getvalue()


def make_sound_files() -> None:
    """One of each kind, of a small arm, in the working directory."""
    import numpy as np

    from steelyard import _saved
    from steelyard.robot import load_robot
    from steelyard.trajectory import FourierTrajectory
    from steelyard.trajectory._fourier import DESIGN_VERSION

    motion = FourierTrajectory.random(
        np.zeros(2), reach=1.5, speed=2.0, period_s=4.0, harmonics=3, seed=1
    )
    motion.save("motion.json")
    design = {"robot": "planar2r", "trajectory": motion.to_dict(), "condition_number": 9.0}
    _saved.save(design, "design", "design.json", version=DESIGN_VERSION, sealed=True)
    arms = Path(load_robot.__code__.co_filename).parent / "arms"
    shutil.copy(arms / "planar2r.toml", "arm.toml")
    for words in (
        "simulate planar2r --trajectory motion.json --rate 100 -o empty.npz",
        "simulate planar2r --trajectory motion.json --rate 100 --mass 0.5 --seed 1 -o loaded.npz",
        "check loaded.npz -o loaded.parquet",
        "identify planar2r empty.npz -o model.json --friction linear",
        "weigh model.json loaded.npz -o payload.json",
        "track loaded.npz --model model.json --save-state state.json",
        "export-arm urdf model.json -o arm.urdf --force",
    ):
        code, _, complaint = run(words.split())
        if code > 1:
            raise RuntimeError(f"{words}: {complaint}")
    with np.load("loaded.npz") as archive:
        table = np.column_stack([archive["t"], archive["q"], archive["tau"]])
    names = "t,q_0,q_1,tau_0,tau_1"
    np.savetxt("loaded.csv", table, delimiter=",", header=names, comments="", fmt="%.6f")
    wrist_files(np)
    run(["weigh-wrist", "at-rest", "wrist.csv", "--sensor", "sensor.toml", "-o", "wrist.json"])
    Path("limits.toml").write_text(
        'form = "exact"\nv_max = [2.0, 1.5]\nheight = [-3.0, 3.0]\n[[cone]]\naxis = "x"\n'
        "direction = [1, 0, 0]\nhalf_angle_deg = 170\n[scene]\nclearance = 0.01\nradius = 0.01\n"
    )


def wrist_files(np: Any) -> None:
    """Postures of a wrist sensor in a table, and what the sensor is."""
    from scipy.spatial.transform import Rotation

    rng = np.random.default_rng(0)
    turns = Rotation.random(24, rng=rng)
    force = turns.inv().apply([0, 0, -9.81 * 1.5])
    moment = np.cross([0.01, 0.02, 0.06], force)
    rows = np.column_stack([turns.as_quat(), force, moment + rng.normal(size=moment.shape) * 1e-3])
    names = "x,y,z,w,fx,fy,fz,tx,ty,tz"
    np.savetxt("wrist.csv", rows, delimiter=",", header=names, comments="", fmt="%.6f")
    Path("sensor.toml").write_text(
        'name = "ft"\nconvention = "load_on_sensor"\npostures = true\ngravity_base = [0, 0,'
        " -9.81]\n"
        "noise = [0.1, 0.1, 0.1, 0.01, 0.01, 0.01]\n[columns]\n"
        'quaternion = ["x", "y", "z", "w"]\nwrench = ["fx", "fy", "fz", "tx", "ty", "tz"]\n'
    )


READERS: dict[str, list[str]] = {
    "payload.json": ["export ur {} --force", "export urdf {} --json --force"],
    "wrist.json": ["export urdf {} --json --force"],
    "model.json": ["weigh {} loaded.npz --json", "weigh {} loaded.npz -o out.json"],
    "state.json": ["track loaded.npz --model model.json --resume {} --json"],
    "design.json": [
        "simulate planar2r --trajectory {} -o out.npz --rate 50",
        "export-motion {} --to csv -o out.csv",
    ],
    "motion.json": ["simulate planar2r --trajectory {} -o out.npz --rate 50"],
    "loaded.npz": ["check {}", "weigh model.json {} -o out.json"],
    "loaded.parquet": ["check {} --json", "weigh model.json {} -o out.json"],
    "loaded.csv": ["check {}", "check {} -o out.npz"],
    "arm.toml": ["robot {}", "robot {} --json"],
    "arm.urdf": ["robot {}"],
    "limits.toml": ["postures-random planar2r --count 3 --limits {} -o out.csv"],
    "sensor.toml": ["weigh-wrist at-rest wrist.csv --sensor {} -o out.json"],
    "wrist.csv": ["weigh-wrist at-rest {} --sensor sensor.toml -o out.json"],
}
ARGUMENTS = (
    "weigh model.json loaded.npz --cutoff {}",
    "weigh model.json loaded.npz --fix mass={}",
    "track loaded.npz --model model.json --accuracy {}",
    "check loaded.npz --between 0,{}",
    "check loaded.csv --column tau={}",
    "robot planar2r --gravity 0,0,{}",
    "robot planar2r --lock joint_1={}",
    "simulate planar2r --mass {} -o out.npz --trajectory motion.json",
    "simulate planar2r --mass 1 --com {},0,0 -o out.npz --trajectory motion.json",
    "simulate planar2r --rate {} -o out.npz --trajectory motion.json",
    "simulate planar2r --seed {} -o out.npz --trajectory motion.json",
    "postures-random planar2r --count {}",
    "export ur payload.json --largest-mass-error {}",
    "export {} payload.json",
    "export ur payload.json --tool-frame '0,0,{},0,0,0'",
    "identify planar2r empty.npz --friction linear -o out.json --torque-cutoff {}",
    "identify planar2r empty.npz --friction {} -o out.json",
    "weigh model.json loaded.npz -o {}",
    "weigh model.json loaded.npz --report {}",
    "robot {}",
    "check {}",
)
VALUES = (
    "nan",
    "inf",
    "-inf",
    "-1",
    "0",
    "1e308",
    "1e-308",
    "x",
    "''",
    "1" * 500,
    "model.json",
    "/dev/null",
    ".",
)


# --- ways to break them


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


_MAY_BE_ABSENT = ("arm",)  # recordings of other programs do not say which arm they are of
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
    words = key.strip() in ("title", "source", "link_source", "name", "frame")
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


def make_case(rng: random.Random, sound: dict[str, bytes]) -> Case:
    """A random case."""
    if rng.random() < 0.15:
        value = rng.choice(VALUES)
        words = [word.strip("'") for word in rng.choice(ARGUMENTS).format(value).split()]
        return Case(" ".join(words)[:150], {}, words, False)
    name = rng.choice(list(READERS))
    ending = name.rpartition(".")[2]
    content = sound[name]
    if rng.random() < 0.25:
        made, nonsense, words = broken_bytes(rng, content), False, "bytes"
    elif ending == "json":
        made, nonsense, words = json_case(rng, name, content)
    elif ending == "toml":
        made, nonsense, words = toml_case(rng, content)
    else:
        cases = {"npz": npz_case, "parquet": parquet_case, "csv": csv_case}
        made, nonsense, words = cases.get(ending, csv_case)(rng, content)
    target = f"broken.{ending}"
    command = rng.choice(READERS[name]).format(target).split()
    return Case(f"{name}: {words}: {' '.join(command)}", {target: made}, command, nonsense)


# --- running and judging


def attempts(cases: list[Case], folder: Path) -> list[Outcome]:
    """Runs the cases in forked processes in a folder of sound files; replaces dead processes."""
    ends: list[Outcome] = []
    while len(ends) < len(cases):
        ends += batch(cases[len(ends) :], folder)
    return ends


def batch(cases: list[Case], folder: Path) -> list[Outcome]:
    """The outcomes of the first cases, at least one, up to the first that ended the process."""
    sound = set(os.listdir(folder))
    with tempfile.TemporaryFile("w+b") as said, tempfile.TemporaryFile("w+b") as complained:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            code = 99
            try:
                os.close(reading)
                os.chdir(folder)
                os.dup2(said.fileno(), 1)
                os.dup2(complained.fileno(), 2)
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                with open(writing, "wb") as pipe:
                    follow(cases, pipe)
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        ends = []
        with open(reading, "rb") as pipe, contextlib.suppress(EOFError):
            while True:
                ends.append(pickle.load(pipe))
        _, status, usage = os.wait4(child, 0)
        if os.waitstatus_to_exitcode(status) != 0:
            texts = [read_back(file.fileno()) for file in (said, complained)]
            left = cleaned(folder, sound, cases[len(ends)])
            megabytes = usage.ru_maxrss / 1024
            ends.append(Outcome(os.waitstatus_to_exitcode(status), *texts, megabytes, left))
    return ends


def follow(cases: list[Case], pipe: IO[bytes]) -> None:
    """Runs cases in this process and writes each outcome; ends when its memory grows too large."""
    for case in cases:
        for name, content in case.files.items():
            Path(name).write_bytes(content)
        sound = set(os.listdir()) - set(case.files)
        for stream in (1, 2):
            os.ftruncate(stream, 0)
            os.lseek(stream, 0, os.SEEK_SET)
        signal.alarm(LIMIT_S)
        code, out, err = run(case.words)
        signal.alarm(0)
        left = cleaned(Path(), sound, case)
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        pickle.dump(Outcome(code, read_back(1) + out, read_back(2) + err, megabytes, left), pipe)
        pipe.flush()
        if megabytes > LIMIT_MB:
            return


def read_back(stream: int) -> str:
    """What was written to a file."""
    return os.pread(stream, 10**6, 0).decode("utf-8", "replace")


def cleaned(folder: Path, sound: set[str], case: Case) -> list[str]:
    """Removes what a case left behind and what it was given; the names of the former."""
    there = set(os.listdir(folder)) - sound
    for name in there:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return sorted(there - set(case.files))


def judged(case: Case, end: Outcome) -> str:
    """What is wrong with an outcome, in a word; empty where nothing is."""
    complaints = [line for line in end.stderr.splitlines() if line.startswith("error: ")]
    if end.code == -signal.SIGALRM:
        return "hang"
    if end.code not in (0, 1, 2) or "Traceback" in end.stderr:
        return "traceback"
    if end.megabytes > LIMIT_MB:
        return "memory"
    if any(name.endswith(".part") for name in end.left) or (end.code == 2 and end.left):
        return "left behind"
    if end.code == 2 and (len(complaints) != 1 or not end.stderr.rstrip().endswith(complaints[0])):
        return "not one line"
    if "--json" in case.words and not is_json(end.stdout):
        return "not JSON"
    said = (
        SPIKE in case.name and "impossible for an arm" in end.stdout + end.stderr
    )  # it is left out then
    return "accepted nonsense" if case.nonsense and end.code == 0 and not said else ""


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=lambda word: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return False
    return True


def fuzz(cases: int, seed: int, folder: Path) -> Counter[str]:
    """Counts of what went wrong, and of exit codes; each finding is printed."""
    os.chdir(folder)
    os.environ.pop("STEELYARD_DEBUG", None)
    cli._app, typer.main.get_command = (
        cache(cli._app),
        cache(typer.main.get_command),
    )  # made for each process
    make_sound_files()
    sound = {name: Path(name).read_bytes() for name in READERS}
    rng, counts = random.Random(seed), Counter[str]()
    gc.collect()
    gc.freeze()  # so that forks share what is there
    every = [make_case(rng, sound) for _ in range(cases)]
    ends = (
        end
        for k in range(0, cases, IN_A_FORK)
        for end in attempts(every[k : k + IN_A_FORK], folder)
    )
    for k, (case, end) in enumerate(zip(every, ends, strict=True)):
        wrong = judged(case, end)
        counts[f"exit {end.code}"] += 1
        counts["wrong"] += bool(wrong)
        if wrong:
            counts[wrong] += 1
            print(
                f"{k} {wrong}: {case.name[:160]} -> {end.code}, {end.megabytes:.0f} MB, left"
                f" {end.left}"
            )
            print("    " + end.stderr[-300:].replace("\n", "\n    "), flush=True)
    return counts


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as place:
        found = fuzz(many, first, Path(place))
    print(", ".join(f"{name}: {count}" for name, count in sorted(found.items())))
    sys.exit(1 if found["wrong"] else 0)
