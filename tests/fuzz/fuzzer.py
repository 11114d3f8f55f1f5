"""Malformed files, arguments and streams, some cases in each forked process.

Usage: python tests/fuzz/fuzzer.py [CASES] [SEED] [--only KIND]

A case is a sound file of some kind, broken in one way, and a command that reads it; or a command
with an odd option, address or port; or one that reads from a controller which answers nonsense.
Counted are tracebacks (exit code 70 or a signal), hangs, memory, files that a refused command
leaves behind, refusals that are not one line, output that is not JSON, nonsense that is accepted
and wrong masses that are trusted. All must be zero.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import math
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import IO, NamedTuple

import typer.main
from breaking import SPIKE, Case
from file_cases import READERS, file_case, torque_table_case, wrist_table_case
from fleet_cases import catalogue_case, store_case
from option_cases import address_case, json_output_case, option_case, serving_case
from pick_cases import PARTS, SHIFT, parts_case, shift_case
from sound_files import CATALOGUE, STORE, make_sound_files, run
from stream_cases import broken_controllers, stream_case

from steelyard import cli

LIMIT_S, LIMIT_MB = 30, 1500  # of processor time and memory
WAITING_LIMIT_S = 300  # of wall time: a busy machine is no hang
IN_A_FORK = 25
MAX_MASS_ERROR = 0.1  # of a trusted answer, relative to the truth
MAX_SIGMA = 2.5  # standard deviations of a trusted answer
SHARES = {
    "file": (0.42, file_case),
    "wrist": (0.12, wrist_table_case),
    "torque": (0.05, torque_table_case),
    "catalogue": (0.05, catalogue_case),
    "store": (0.12, store_case),
    "option": (0.15, option_case),
    "address": (0.04, address_case),
    "json": (0.03, json_output_case),
    "parts": (0.05, parts_case),
    "shift": (0.05, shift_case),
    "server": (0.02, serving_case),
    "stream": (0.02, None),
}
"""Kinds of cases: their share, and what makes one."""


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    stdout: str
    stderr: str
    megabytes: float
    left: list[str]


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
        sound = set(os.listdir())
        for name, content in case.files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(content)
        for stream in (1, 2):
            os.ftruncate(stream, 0)
            os.lseek(stream, 0, os.SEEK_SET)
        signal.alarm(WAITING_LIMIT_S)
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
        code, out, err = run(case.words)
        signal.setitimer(signal.ITIMER_PROF, 0)
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
    return sorted(there - {name.partition("/")[0] for name in case.files})


def judged(case: Case, end: Outcome) -> str:
    """What is wrong with an outcome, in a word; empty where nothing is."""
    complaints = [line for line in end.stderr.splitlines() if line.startswith("error: ")]
    if end.code in (-signal.SIGALRM, -signal.SIGPROF):
        return "hang"
    if end.code not in (0, 1, 2) or "Traceback" in end.stderr:
        return "traceback"
    if end.megabytes > LIMIT_MB:
        return "memory"
    if any(name.endswith(".part") for name in end.left) or (end.code == 2 and end.left):
        return "left behind"
    if end.code == 2 and (len(complaints) != 1 or not end.stderr.rstrip().endswith(complaints[0])):
        return "not one line"
    quoted = any(b"`" in content for content in case.files.values())  # names of columns, say
    if not quoted and any("`" in line for line in complaints):
        return "an argument of Python"
    if "--json" in case.words and not is_json(end.stdout):
        return "not JSON"
    if case.name.startswith("sound: ") and end.code == 2:
        return "refused"
    if case.mass is not None and end.code == 0 and is_wrong(end.stdout, case.mass):
        return "wrong mass"
    said = (
        SPIKE in case.name and "impossible for an arm" in end.stdout + end.stderr
    )  # it is left out then
    return "accepted nonsense" if case.nonsense and end.code == 0 and not said else ""


def is_wrong(text: str, mass: float) -> bool:
    """Whether the mass in a JSON output is far from the truth, and outside of its interval."""
    answer = json.loads(text)
    error = abs(answer["vector"][0] - mass)
    return error > MAX_MASS_ERROR * mass and error > MAX_SIGMA * math.sqrt(
        answer["covariance"][0][0]
    )


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=lambda word: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return False
    return True


def make_cases(
    count: int, seed: int, sound: dict[str, bytes], ports: dict[str, int], only: str | None
) -> list[Case]:
    """Random cases of all kinds, or of one."""
    rng = random.Random(seed)
    kinds = [only] if only else list(SHARES)
    shares = [SHARES[kind][0] for kind in kinds]
    makers: dict[str, Callable[[random.Random], Case]] = {
        kind: partial(make, sound=sound) for kind, (_, make) in SHARES.items() if make is not None
    }
    makers["stream"] = partial(stream_case, ports=ports)
    return [makers[kind](rng) for kind in rng.choices(kinds, shares, k=count)]


def sound_contents() -> dict[str, bytes]:
    """The sound files, by path."""
    paths = [Path(name) for name in (*READERS, CATALOGUE, PARTS, SHIFT)]
    paths += [path for path in Path(STORE).rglob("*") if path.is_file()]
    return {str(path): path.read_bytes() for path in paths}


def fuzz(cases: int, seed: int, folder: Path, only: str | None = None) -> Counter[str]:
    """Counts of what went wrong, and of exit codes; each finding is printed."""
    os.chdir(folder)
    os.environ.pop("STEELYARD_DEBUG", None)
    # made for each process
    cli._app = cache(cli._app)
    typer.main.get_command = cache(typer.main.get_command)
    make_sound_files()
    counts = Counter[str]()
    gc.collect()
    gc.freeze()  # so that forks share what is there
    with broken_controllers() as ports:
        every = make_cases(cases, seed, sound_contents(), ports, only)
        ends = (
            end
            for k in range(0, cases, IN_A_FORK)
            for end in attempts(every[k : k + IN_A_FORK], folder)
        )
        for k, (case, end) in enumerate(zip(every, ends, strict=True)):
            counts[f"exit {end.code}"] += 1
            wrong = judged(case, end)
            counts["wrong"] += bool(wrong)
            if wrong:
                counts[wrong] += 1
                show(k, wrong, case, end)
    return counts


def show(number: int, wrong: str, case: Case, end: Outcome) -> None:
    """Prints a finding."""
    place = f"{number} {wrong}: {case.name[:200]}"
    print(f"{place} -> {end.code}, {end.megabytes:.0f} MB, left {end.left}")
    print("    " + end.stderr[-400:].replace("\n", "\n    "), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="?", type=int, default=200)
    parser.add_argument("seed", nargs="?", type=int, default=1)
    parser.add_argument("--only", choices=list(SHARES))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = fuzz(given.cases, given.seed, Path(place), given.only)
    print(", ".join(f"{name}: {count}" for name, count in sorted(found.items())))
    print(f"{given.cases} cases, {found['wrong']} wrong")
    sys.exit(1 if found["wrong"] else 0)
