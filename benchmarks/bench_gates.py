r"""How often the verdict blocks good answers, and how often it trusts wrong ones.

Twelve arms in seven worlds of friction (`gates_runs.py`), in MuJoCo and by Pinocchio alone, weighed
from joint torques, motor currents and wrist sensors, in a batch and sample by sample, clean and
corrupted; and the real recordings beside the repository (`gates_real.py`). A cell is one answer;
`gates_cells.py` defines good and wrong ones and both error rates.

Seeds below 100 choose thresholds. Reported seeds are 448 and above: those below were seen while
rules changed. The page [trust](../docs/explanation/trust.md) is made in pieces of any length:

    python benchmarks/bench_gates.py --seeds 448-455 --parts torque,sound --minutes 30
    python benchmarks/bench_gates.py --parts real --out out/real.jsonl --minutes 30
    python benchmarks/bench_gates.py --seeds 448-455 --report --merge out/real.jsonl \
        --keep benchmarks/gates.json --markdown docs/explanation/trust.md

The friction law of an arm in a world is chosen ('auto') once, from a run of its own. Cells are
appended to a file (--out); cells that are there are not computed again, so that a run that was
stopped goes on. Models are kept in a folder (--models), which must be emptied when identification
changes. Two processes need files and folders of their own; --merge puts their cells together.
"""

from __future__ import annotations

import argparse
import json
import math
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from figure import Figure

sys.path.insert(0, str(Path(__file__).parent))

import gates_runs as made
from gates_arms import NAMES, Arm, arm
from gates_cells import (
    Cell,
    Truth,
    good_blocked,
    keep_cells,
    merged,
    read_cells,
    wrong_and_usable,
    wrong_that_are_usable,
)
from gates_real import real_cases
from gates_report import print_report, write_markdown

import steelyard as sy
from steelyard.errors import SteelyardError
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Recording

OUT = Path("out") / "gates.jsonl"
PARTS = ("torque", "sound", "empty", "tracking", "currents", "wrist", "real")
ARMS_PER_SEED = 4
SOUND_RUNS = 9  # further loaded runs of a place without a fault
TRACKED_SOUND_RUNS = 2  # of these, sample by sample
GAIN_STD = 0.01  # of each gain
COMMON_GAIN_STD = 0.02  # of all gains
TRACKED_WRENCHES = ("clean", "fx and fy swapped", "torques in Nmm", "fx x1.1", "readings truncated")
TRACKED_MOTION = "tracked motion"
LAW_SEED = 990  # of the runs from which friction laws are chosen
OTHER_ARMS = {"ur10e": "ur10", "ur10": "ur10e"}


@dataclass(frozen=True)
class Settings:
    """What to compute, and where it is kept."""

    seeds: tuple[int, ...]
    parts: tuple[str, ...]
    models: Path
    out: Path
    minutes: float = math.inf  # after which to stop


def places(seeds: Iterable[int]) -> Iterator[made.Place]:
    """The places of some seeds: four arms each, worlds and engines in turn."""
    worlds = list(made.WORLDS)
    for seed in seeds:
        for k in range(ARMS_PER_SEED):
            count = ARMS_PER_SEED * seed + k
            name = NAMES[count % len(NAMES)]
            world = worlds[(count + count // len(NAMES)) % len(worlds)]
            engine = ("mujoco", "pinocchio")[(seed + k) % 2]
            yield made.Place(name, world, engine, seed, (1, 1, 2, 3)[(seed + k) % 4])


# --- one cell


def judged(key: dict[str, Any], truth: Truth, weigh: Callable[[], Payload]) -> Cell:
    """The cell of an answer, or of its refusal; models that it needs count in its time."""
    began = time.process_time()
    try:
        payload = weigh()
    except SteelyardError as error:
        seconds = time.process_time() - began
        return Cell(**key, truth=truth.mass, refused=str(error)[:200], seconds=seconds)
    return Cell.of(key, truth, payload, time.process_time() - began)


def cells_of(place: made.Place, settings: Settings, done: set[str]) -> Iterator[Cell]:
    """The cells of a place that are not there yet."""
    there = arm(place.arm)
    asked = [key for key in _keys(place, settings.parts) if Cell.name_of(key) not in done]
    if not asked:
        return
    _, loaded = _kept(settings.models / f"{place.key}.runs", lambda: made.runs(place))
    for key in asked:
        weigh = partial(_weighed, place, settings, key, loaded)
        yield judged(key, _truth(key, there.payload), weigh)


def _truth(key: dict[str, Any], body: InertialParameters) -> Truth:
    """What an answer should be; a tracker gives the load at the end."""
    mass = body.mass
    if key["way"] == "tracking" and key["corruption"] == made.LOSS:
        mass *= 1 - made.LOST_SHARE
    return Truth(mass, body.com.tolist())


def _weighed(
    place: made.Place, settings: Settings, key: dict[str, Any], loaded: made.Run
) -> Payload:
    """The answer of a cell."""
    there = arm(place.arm)
    kind = key["corruption"]
    if key["part"] == "wrist":
        return _by_wrist(there, made.wrist_recording(there, loaded, kind), key["way"])
    if key["part"] == "currents":
        return _by_currents(place, settings, there, kind)
    if key["part"] == "sound":
        run = made.another_loaded_run(place, int(key["way"].split()[-1]))
        return sy.weigh(_model(place, settings, "clean"), run.recording)
    if key["part"] == "empty":
        return sy.weigh(_model(place, settings, kind), loaded.recording)
    model = _model(place, settings, "clean")
    if key["way"].startswith(TRACKED_MOTION):
        loaded = made.another_loaded_run(place, int(key["way"].split()[-1]))
    recording = made.LOADED[kind](there, loaded)
    if key["part"] == "tracking":
        return sy.track(recording, model=model).payload
    return sy.weigh(model, recording)


def _keys(place: made.Place, parts: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    base = {"place": place.key, "arm": place.arm, "world": place.world, "seed": place.seed}
    base["engine"] = place.engine
    if "torque" in parts:
        for kind in made.LOADED:
            yield base | {"part": "torque", "way": "batch", "corruption": kind}
    if "sound" in parts:
        for k in range(1, SOUND_RUNS + 1):
            yield base | {"part": "sound", "way": f"motion {k}", "corruption": "clean"}
    if "empty" in parts:
        others = [*made.EMPTY]
        if place.arm in OTHER_ARMS:
            others.append("model of another arm")
        for kind in others:
            yield base | {"part": "empty", "way": "batch", "corruption": kind}
    if "tracking" in parts:
        for kind in made.TRACKED:
            yield base | {"part": "tracking", "way": "tracking", "corruption": kind}
        for k in range(1, TRACKED_SOUND_RUNS + 1):
            way = f"{TRACKED_MOTION} {k}"
            yield base | {"part": "tracking", "way": way, "corruption": "clean"}
    if "currents" in parts and place.seed % 2 == 0:
        for kind in ("clean", "loaded torques x1.05"):
            yield base | {"part": "currents", "way": "batch", "corruption": kind}
    if "wrist" in parts:
        for kind in (*made.WRENCHES, made.WRIST_CLOCK, made.LOSS):
            yield base | {"part": "wrist", "way": "batch", "corruption": kind}
        for kind in TRACKED_WRENCHES:
            yield base | {"part": "wrist", "way": "tracking", "corruption": kind}


def _by_wrist(there: Arm, recording: Recording, way: str) -> Payload:
    if way == "tracking":
        return sy.track_wrist(recording, there.robot).payload
    return sy.weigh_wrist(dynamic=recording, robot=there.robot)


def _by_currents(place: made.Place, settings: Settings, there: Arm, kind: str) -> Payload:
    """Weighed from currents; the true gains differ from the stated ones within the tolerance."""
    rng = np.random.default_rng(5000 + place.seed)
    stated = np.asarray(there.robot.drive.gain)
    true = stated * np.exp(COMMON_GAIN_STD * rng.normal() + GAIN_STD * rng.normal(size=len(stated)))
    empty, loaded = _kept(settings.models / f"{place.key}.runs", lambda: made.runs(place))

    def currents(recording: Recording) -> Recording:
        return replace(recording, tau=None, current=recording.tau / true)

    law = _law(place, settings)
    model = _kept(
        settings.models / f"{place.key}.currents",
        lambda: sy.identify(there.robot, [currents(run.recording) for run in empty], friction=law),
    )
    return sy.weigh(model, currents(made.LOADED[kind](there, loaded)))


def _law(place: made.Place, settings: Settings) -> str:
    """The friction law that is chosen for an arm in a world, from a run of its own."""
    path = settings.models / f"{place.arm}.{place.world}.law"
    return str(_kept(path, lambda: _chosen_law(place)))


def _chosen_law(place: made.Place) -> str:
    empty, _ = made.runs(replace(place, engine="pinocchio", seed=LAW_SEED, empty_runs=1))
    return sy.identify(arm(place.arm).robot, empty[0].recording).law.name


def _model(place: made.Place, settings: Settings, kind: str) -> sy.DynamicModel:
    """The model of the empty arm, with the law of its arm and world."""
    path = settings.models / f"{place.key}.{kind.replace(' ', '_').replace('%', 'percent')}"
    return _kept(path, lambda: _identified(place, settings, kind))


def _identified(place: made.Place, settings: Settings, kind: str) -> sy.DynamicModel:
    there = arm(place.arm)
    empty, _ = _kept(settings.models / f"{place.key}.runs", lambda: made.runs(place))
    law = _law(place, settings)
    if kind == "clean":
        return sy.identify(there.robot, [run.recording for run in empty], friction=law)
    if kind == "model of another arm":
        other = arm(OTHER_ARMS[place.arm]).robot
        runs = [replace(run.recording, joint_names=other.joint_names) for run in empty]
        return sy.identify(other, runs, friction=law)
    return sy.identify(there.robot, [made.EMPTY[kind](there, run) for run in empty], friction=law)


def _kept(path: Path, make: Callable[[], Any]) -> Any:
    """A value from its file, or made and written."""
    if path.exists():
        return pickle.loads(path.read_bytes())
    value = make()
    path.write_bytes(pickle.dumps(value))
    return value


# --- real recordings


def real_cells(settings: Settings, done: set[str]) -> Iterator[Cell]:
    """Cells of real recordings; none where they are absent."""

    def kept(name: str, make: Callable[[], Any]) -> Any:
        return _kept(settings.models / f"real.{name}", make)

    for case in real_cases():
        for way, kind in case.ways:
            key = {
                "place": case.name,
                "arm": case.arm,
                "world": "real",
                "seed": -1,
                "engine": "real",
                "part": "real",
                "way": way,
                "corruption": kind,
            }
            if Cell.name_of(key) not in done:
                weigh = partial(case.weighed, kept, way, kind)
                yield judged(key, case.truth(way, kind), weigh)


# --- all cells


def compute(settings: Settings) -> None:
    """Appends the cells that are missing, until the time is over."""
    settings.out.parent.mkdir(parents=True, exist_ok=True)
    settings.models.mkdir(parents=True, exist_ok=True)
    done = {cell.name for cell in read_cells(settings.out)}
    end_s = time.monotonic() + 60 * settings.minutes

    def every() -> Iterator[Cell]:
        for place in places(settings.seeds):
            yield from cells_of(place, settings, done)
        if "real" in settings.parts:
            yield from real_cells(settings, done)

    with settings.out.open("a") as file:
        for cell in every():
            file.write(json.dumps(vars(cell)) + "\n")
            file.flush()
            if time.monotonic() > end_s:
                print("The time is over; the same command goes on from here.")
                return
    print("All cells are there.")


def chosen(settings: Settings, cells: Iterable[Cell]) -> list[Cell]:
    """The cells of the chosen seeds and parts."""
    wanted = {*settings.seeds, -1}
    return [cell for cell in cells if cell.seed in wanted and cell.part in settings.parts]


def figures() -> Iterator[Figure]:
    """Both error rates on a few reported seeds, for `benchmarks/run.py`."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "gates.jsonl"
        settings = Settings((448, 449), ("torque", "sound"), Path(folder), out)
        compute(settings)
        cells = chosen(settings, read_cells(out))
    blocked = good_blocked(cells)
    words = f"of {blocked.total} good answers, blocked"
    yield Figure("good_blocked", words, blocked.percent, "%", goal=1)
    usable = wrong_and_usable(cells)
    words = f"of {usable.total} corrupted runs, wrong and usable"
    yield Figure("wrong_and_usable", words, usable.percent, "%", goal=1)
    share = wrong_that_are_usable(cells)
    words = f"of {share.total} wrong answers to them, usable"
    yield Figure("wrong_that_are_usable", words, share.percent, "%")


@cache
def _numbers(words: str) -> tuple[int, ...]:
    first, _, last = words.partition("-")
    return tuple(range(int(first), int(last or first) + 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="448-451", help="such as 0-9")
    parser.add_argument("--parts", default=",".join(PARTS), help="some of them, with commas")
    parser.add_argument("--models", default=str(Path(tempfile.gettempdir()) / "gates-models"))
    parser.add_argument("--out", default=str(OUT), help="file of cells; goes on where it ends")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after this time")
    parser.add_argument("--report", action="store_true", help="compute nothing")
    parser.add_argument("--merge", nargs="*", default=[], help="files with cells of other runs")
    parser.add_argument("--keep", default="", help="file for the cells behind the tables")
    parser.add_argument("--markdown", default="", help="file for the tables of the documents")
    given = parser.parse_args()
    settings = Settings(
        seeds=_numbers(given.seeds),
        parts=tuple(given.parts.split(",")),
        models=Path(given.models),
        out=Path(given.out),
        minutes=given.minutes,
    )
    if not given.report:
        compute(settings)
    files = [*map(Path, given.merge), settings.out]
    cells = chosen(settings, merged(*map(read_cells, files)))
    if given.keep:
        keep_cells(cells, Path(given.keep))
        cells = read_cells(Path(given.keep))
    print_report(cells)
    if given.markdown:
        write_markdown(cells, Path(given.markdown))


if __name__ == "__main__":
    main()
