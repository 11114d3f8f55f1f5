"""How often the verdict blocks good answers, and how often it trusts bad ones.

Twelve arms in seven worlds of friction (`gates_runs.py`), in MuJoCo and by Pinocchio alone, weighed
from joint torques, motor currents and wrist sensors, in a batch and sample by sample, clean and
corrupted; and the real recordings beside the repository, clean and corrupted, with payloads whose
torques were added to runs of the empty arm. A cell is one answer:

    good     no corruption, and the true mass inside the interval
    bad      the true mass outside twice the interval
    between  neither

The verdict errs where it blocks a good answer, or trusts a bad one. The first choice of thresholds
uses seeds below 100; reported figures come from seeds of 100 and above.

    python benchmarks/bench_gates.py --seeds 0-9                      to choose
    python benchmarks/bench_gates.py --seeds 100-109                  to report
    python benchmarks/bench_gates.py --seeds 100-109 --report         only the tables
    python benchmarks/bench_gates.py --seeds 100-109 --markdown FILE  the table of the documents

The friction law of an arm in a world is chosen ('auto') once, from a run of its own. Cells are
appended to out/gates.jsonl; cells that are there are not computed again. Models are kept
in a folder (--models), which must be emptied when identification changes.
"""

from __future__ import annotations

import argparse
import json
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
from gates_real import real_cases
from gates_report import Cell, print_report, write_markdown

import steelyard as sy
from steelyard.errors import SteelyardError
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


def judged(key: dict[str, Any], truth: float, weigh: Callable[[], Payload]) -> Cell:
    """The cell of an answer, or of its refusal."""
    began = time.process_time()
    try:
        payload = weigh()
    except SteelyardError as error:
        return Cell(**key, truth=truth, refused=str(error)[:200])
    verdict = payload.verdict
    return Cell(
        **key,
        truth=truth,
        mass=float(payload.body.mass),
        half=1.96 * float(payload.std[0]),
        ok=verdict.ok,
        blocking=sorted({str(doubt.kind) for doubt in verdict.blocking}),
        aside=sorted({str(d.kind) for d in verdict.doubts if d not in verdict.blocking}),
        seconds=time.process_time() - began,
        words="; ".join(doubt.words for doubt in verdict.blocking)[:300],
    )


def cells_of(place: made.Place, settings: Settings, done: set[str]) -> Iterator[Cell]:
    """The cells of a place that are not there yet."""
    there = arm(place.arm)
    asked = [key for key in _keys(place, settings.parts) if Cell.name_of(key) not in done]
    if not asked:
        return
    _, loaded = _kept(settings.models / f"{place.key}.runs", lambda: made.runs(place))
    for key in asked:
        weigh = partial(_weighed, place, settings, key, loaded)
        yield judged(key, _truth(key, there.payload.mass), weigh)


def _truth(key: dict[str, Any], mass: float) -> float:
    """The mass that an answer should have; a tracker gives that of the load at the end."""
    if key["way"] == "tracking" and key["corruption"] == made.LOSS:
        return (1 - made.LOST_SHARE) * mass
    return mass


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
        for kind in (*made.WRENCHES, made.WRIST_CLOCK):
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
    for case in real_cases():
        for kind in case.corruptions:
            key = {
                "place": case.name,
                "arm": case.arm,
                "world": "real",
                "seed": -1,
                "engine": "real",
                "part": "real",
                "way": "batch",
                "corruption": kind,
            }
            if Cell.name_of(key) in done:
                continue
            model = case.model(lambda name, make: _kept(settings.models / f"real.{name}", make))
            yield judged(key, case.truth, lambda c=case, m=model, k=kind: c.weighed(m, k))


# --- all cells


def read_cells(path: Path) -> list[Cell]:
    """The cells of a file; of two with one name, the later."""
    if not path.exists():
        return []
    lines = path.read_text().splitlines()
    cells = [Cell(**json.loads(line)) for line in lines]
    return list({cell.name: cell for cell in cells}.values())


def compute(settings: Settings) -> None:
    """Appends the cells that are missing."""
    settings.out.parent.mkdir(parents=True, exist_ok=True)
    settings.models.mkdir(parents=True, exist_ok=True)
    done = {cell.name for cell in read_cells(settings.out)}

    def every() -> Iterator[Cell]:
        for place in places(settings.seeds):
            yield from cells_of(place, settings, done)
        if "real" in settings.parts:
            yield from real_cells(settings, done)

    with settings.out.open("a") as file:
        for cell in every():
            file.write(json.dumps(vars(cell)) + "\n")
            file.flush()


def chosen(settings: Settings) -> list[Cell]:
    """The cells of the chosen seeds and parts."""
    wanted = {*settings.seeds, -1}
    return [
        cell
        for cell in read_cells(settings.out)
        if cell.seed in wanted and cell.part in settings.parts
    ]


def figures() -> Iterator[Figure]:
    """Both error rates on a few reported seeds, for `benchmarks/run.py`."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings((100, 101), PARTS[:1], Path(folder), Path(folder) / "gates.jsonl")
        compute(settings)
        cells = chosen(settings)
    good = [cell for cell in cells if cell.is_good]
    bad = [cell for cell in cells if cell.is_bad]
    blocked = 100 * np.mean([not cell.trusted for cell in good])
    trusted = 100 * np.mean([cell.trusted for cell in bad])
    yield Figure("good_blocked", f"of {len(good)} good answers, blocked", blocked, "%", goal=1)
    yield Figure("bad_trusted", f"of {len(bad)} bad answers, trusted", trusted, "%", goal=1)


@cache
def _numbers(words: str) -> tuple[int, ...]:
    first, _, last = words.partition("-")
    return tuple(range(int(first), int(last or first) + 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="100-104", help="such as 0-9")
    parser.add_argument("--parts", default=",".join(PARTS), help="some of them, with commas")
    parser.add_argument("--models", default=str(Path(tempfile.gettempdir()) / "gates-models"))
    parser.add_argument("--out", default=str(OUT))
    parser.add_argument("--report", action="store_true", help="compute nothing")
    parser.add_argument("--markdown", default="", help="file for the table of the documents")
    given = parser.parse_args()
    settings = Settings(
        _numbers(given.seeds), tuple(given.parts.split(",")), Path(given.models), Path(given.out)
    )
    if not given.report:
        compute(settings)
    cells = chosen(settings)
    print_report(cells)
    if given.markdown:
        write_markdown(cells, Path(given.markdown))


if __name__ == "__main__":
    main()
