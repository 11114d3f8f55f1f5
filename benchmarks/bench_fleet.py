"""A fleet of simulated arms: time from logs to factors, and which planted changes are found.

Motions and the torques of the links come from MuJoCo, for two arms of one type with other link
masses, empty and with three loads; friction, gains, temperature and noise of each log are its own.
Planted are rising friction, a changed tool, a wrong configured payload, a scaled gain, a log of
another arm, and broken files.
"""

from __future__ import annotations

import csv
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import psutil
from figure import Figure

from steelyard.fleet import Fleet
from steelyard.fleet._catalogue import Entry
from steelyard.fleet._reduce import Reduction, reduce_log
from steelyard.inertia import InertialParameters
from steelyard.io import write
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.simulation import simulate
from steelyard.trajectory import FourierTrajectory

ARMS = 40
LOGS = 50
DURATION_S = 60.0
RATE_HZ = 125.0
TOOL = 0.7
LOAD = 2.0
"""What a changed tool weighs more, and the part that is carried, [kg]."""
RATE = 0.05
MOTIONS = 2
VARIANTS = 2
FOREIGN = "arm02/0020.parquet"
START = datetime(2026, 1, 1, 6, tzinfo=UTC)


@dataclass(frozen=True)
class Planted:
    """What is wrong with an arm, from which log on, and with which of its series."""

    kind: str
    joint: int
    start: int


def planted(arms: int, logs: int) -> dict[int, Planted]:
    """Arms with changes, two of each kind where there are enough arms."""
    middle = logs // 2
    kinds = [
        Planted("Fc", 2, middle),
        Planted("tool", 0, middle + logs // 8),
        Planted("load", 0, 0),
        Planted("gain", 3, middle),
    ]
    chosen = [*kinds, *(replace(k, joint=k.joint and k.joint - 1) for k in kinds)]
    return {1 + 4 * i: what for i, what in enumerate(chosen) if 1 + 4 * i < arms}


def _simulated(variant: int, motion: int, load: float, duration_s: float) -> dict[str, np.ndarray]:
    """Motion and torque behind the gears, by MuJoCo."""
    robot = _arm(variant)
    low = np.clip(robot.limits.q_min, -2.0, 2.0)
    high = np.clip(robot.limits.q_max, -2.0, 2.0)
    speed = np.minimum(robot.limits.v_max, 1.5)
    series = FourierTrajectory.random(
        (low + high) / 2,
        reach=(high - low) / 2,
        speed=speed,
        period_s=duration_s,
        harmonics=10,
        seed=7 + motion,
    )
    body = InertialParameters.from_com(
        load, (0.02, -0.01, 0.09), 0.004 * load * np.eye(3), robot.flange
    )
    truth = simulate(robot, series, payload=body if load else None, rate_hz=RATE_HZ).truth
    return {"t": truth.t, "q": truth.q, "v": truth.v, "a": truth.a, "tau": truth.tau_link}


def _arm(variant: int):
    """The arm; another one of its type has other link masses."""
    robot = load_robot("ur10")
    if variant == 0:
        return robot
    links = [
        InertialParameters.from_vector(body.vector * (1.3 if k % 2 else 0.75), body.frame)
        for k, body in enumerate(robot.links)
    ]
    return robot.with_links(links)


def _log(
    base: dict[str, np.ndarray], friction: float, rising: np.ndarray, gain: np.ndarray, seed: int
) -> Recording:
    """A log of a simulated motion with friction, gains and noise of its own."""
    robot = load_robot("ur10")
    rng = np.random.default_rng(seed)
    drive = replace(
        robot.drive,
        coulomb=(np.abs(robot.drive.coulomb) + 1.0) * friction * rising,
        viscous=robot.drive.viscous * friction,
    )
    tau = base["tau"] + drive.rotor_inertia * base["a"] + drive.friction(base["v"])
    white, slow = rng.normal(size=(2, *tau.shape))
    smooth = np.apply_along_axis(lambda x: np.convolve(x, np.full(25, 0.2), "same"), 0, slow)
    noise = np.array([0.6, 0.8, 0.4, 0.15, 0.15, 0.1])
    tau = (tau + noise * (0.8 * white + 0.6 * smooth)) * gain
    q = base["q"] + 1e-5 * rng.normal(size=tau.shape)
    return Recording(base["t"], q, robot.joint_names, tau=tau)


def make_fleet(
    folder: Path, arms: int, logs: int, duration_s: float = DURATION_S, *, more: int = 0
) -> list[dict[str, object]]:
    """Logs of a fleet, day by day, with their catalogue; some more of the last arm."""
    folder.mkdir(exist_ok=True)
    loads = (0.0, TOOL, LOAD, LOAD + TOOL)
    cases = [
        (v, m, load, duration_s) for v in range(VARIANTS) for m in range(MOTIONS) for load in loads
    ]
    with ProcessPoolExecutor(2) as pool:
        bases = dict(zip(cases, pool.map(_simulated, *zip(*cases, strict=True)), strict=True))
    wrong = planted(arms, logs)
    rows = []
    for arm in range(arms):
        days = range(logs + (more if arm == arms - 1 else 0))
        rows += _arm_logs(folder, arm, days, wrong.get(arm), bases, duration_s)
    return sorted(rows, key=lambda row: str(row["time"]))


def _catalogue(folder: Path, rows: list[dict[str, object]]) -> Path:
    path = folder / "catalogue.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def _arm_logs(folder, arm, logs, wrong, bases, duration_s):
    rng = np.random.default_rng(1000 + arm)
    own = rng.uniform(0.85, 1.15)
    warm = 18 + 8 * np.sin(np.arange(10_000) / 9 + arm)
    here = folder / f"arm{arm:02d}"
    here.mkdir(exist_ok=True)
    for k in logs:
        draw = np.random.default_rng([arm, k])
        if wrong is not None and k >= wrong.start:
            kind = wrong.kind
        else:
            kind = ""
        temperature = warm[k] + draw.normal() - 8 * (k % 7 == 0)
        friction = own * (1 - 0.006 * (temperature - 20)) * (1 + 0.01 * draw.normal())
        rising = np.ones(6)
        gain = np.ones(6)
        if kind == "Fc":
            rising[wrong.joint - 1] += 0.5 * (k - wrong.start) / 25
        if kind == "gain":
            gain[wrong.joint - 1] = 1.04
        if k % 5 in (1, 3):
            configured = LOAD
        else:
            configured = 0.0
        carried = configured + (TOOL if kind == "tool" else 0.0)
        if kind == "load" and configured:
            configured = LOAD - 0.7
        foreign = arm == 2 and k == 20
        base = bases[1 if foreign else 0, k % MOTIONS, carried, duration_s]
        path = here / f"{k:04d}.parquet"
        write(_log(base, friction, rising, gain, 100_000 * arm + k), path)
        if (arm + k) % 97 == 5:
            _spoil(path, k)
        when = (START + timedelta(days=k)).isoformat()
        yield {
            **{
                "robot": f"arm{arm:02d}",
                "model": "ur10",
                "file": f"{here.name}/{path.name}",
                "time": when,
            },
            **{"load": configured, "temperature": round(float(temperature), 2)},
        }


def _spoil(path: Path, k: int) -> None:
    """A file as disks and recorders leave them."""
    if k % 3 == 0:
        path.unlink()
    elif k % 3 == 1:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        path.write_bytes(os.urandom(1000))


def _bare(paths: list[tuple[str, str, str]]) -> float:
    """The same reduction in a plain loop; the processor time that it took, [s]."""
    how = Reduction.of("ur10")
    began = time.process_time()
    content = how.to_dict()
    for robot, file, path in paths:
        reduce_log(Entry(robot, "ur10", file, path), how.key, content)
    return time.process_time() - began


def _without_dask(folder: Path, rows: list[dict[str, object]]) -> np.ndarray:
    """Seconds and seconds of processor time for each log, of two processes that do nothing else."""
    tasks = [(str(r["robot"]), str(r["file"]), str(folder / str(r["file"]))) for r in rows]
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(_bare, [tasks[:2], tasks[2:4]]))  # both have loaded everything
        began = time.perf_counter()
        busy = sum(pool.map(_bare, [tasks[0::2], tasks[1::2]]))
        return np.array([time.perf_counter() - began, busy]) / len(tasks)


def _busy_s(*, running: bool = False) -> float:
    """Processor time of this process and of those that it has ended, and of those that run, [s]."""
    whose = (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)
    ended = sum(x.ru_utime + x.ru_stime for x in map(resource.getrusage, whose))
    if not running:
        return ended
    times = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    return ended + sum(x.user + x.system for x in times)


def _judged(trends, wrong: dict[int, Planted]) -> tuple[int, int, int]:
    """Planted changes that were found, series that were flagged, and those flagged wrongly."""
    flagged = [change for change in trends.changes if change.flagged]
    found = set()
    false = 0
    for change in flagged:
        arm = int(change.robot.removeprefix("arm"))
        what = wrong.get(arm)
        if what is None:
            false += 1
        elif what.kind in ("tool", "load"):
            found |= {arm} if change.kind == "payload" else set()
            false += change.kind != "payload"
        else:
            found |= {arm} if (change.kind, change.joint) == (what.kind, what.joint) else set()
            false += change.joint != what.joint
    return len(found), len(flagged), false


def figures(arms: int = ARMS, logs: int = LOGS, duration_s: float = DURATION_S) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = Path(name) / "store"
        rows = make_fleet(folder, arms, logs, duration_s, more=20)
        yield from _speed(folder, store, rows[:-20], duration_s)
        began = time.perf_counter()
        Fleet.build(_catalogue(folder, rows), store)
        yield Figure("again", "second run after 20 new logs", time.perf_counter() - began, "s", 20)
        size = sum(path.stat().st_size for path in store.rglob("*.parquet")) / len(rows)
        yield Figure("store", "a log in the store", size / 1024, "kB", 100)
        yield from _truth(store, arms, logs)


def _speed(
    folder: Path, store: Path, rows: list[dict[str, object]], duration_s: float
) -> Iterator[Figure]:
    """One build of all logs, between two bare loops over some of them."""
    total = len(rows)
    sample = rows[: len(rows) // 8]
    steps = (total // 8, total // 4, total // 2, total)
    bare = [_without_dask(folder, sample)]
    seen = [(0.0, 0.0)]

    def progress(share: float, words: str) -> None:
        seen.append((share * total, _busy_s(running=True)))

    catalogue = _catalogue(folder, rows)
    began = time.perf_counter()
    busy_s = _busy_s()
    Fleet.build(catalogue, store, workers=2, progress=progress)
    wall, busy = np.array([time.perf_counter() - began, _busy_s() - busy_s]) / total
    bare.append(_without_dask(folder, sample))
    bare_wall, bare_busy = np.mean(bare, axis=0)
    what = (
        f"reducing {total} logs of {duration_s:g} s, each; a bare loop on two cores before and"
        " after"
    )
    yield Figure("build", what, 1e3 * float(wall), "ms", 1.3, 1e3 * float(bare_wall))
    yield Figure(
        "build_cpu", "processor time of it", 1e3 * float(busy), "ms", 1.3, 1e3 * float(bare_busy)
    )
    done, spent = np.array(seen[1:]).T
    each = np.diff(np.interp(steps, done, spent)) / np.diff(steps)
    what = (
        f"processor time, the last {total // 2} logs over those from {total // 8} to {total // 4}"
    )
    yield Figure("linear", what, float(each[2] / each[0]), "", 1.15)
    whose = (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)
    peak = max(resource.getrusage(who).ru_maxrss for who in whose)
    yield Figure("memory", "peak of a process", peak / 1024, "MB", 1024)


def _truth(store: Path, arms: int, logs: int) -> Iterator[Figure]:
    fleet = Fleet(store, workers=2)
    began = time.perf_counter()
    fleet.identify()
    yield Figure("identify", f"models of {arms} arms", time.perf_counter() - began, "s")
    began = time.perf_counter()
    trends = fleet.trend(rate=RATE)
    yield Figure("trend", f"series and changes of {arms} arms", time.perf_counter() - began, "s")
    wrong = planted(arms, logs)
    found, flagged, false = _judged(trends, wrong)
    yield Figure("missed", f"planted changes not found, of {len(wrong)}", len(wrong) - found, "", 0)
    yield Figure(
        "false", f"share of false alarms among {flagged}", false / max(flagged, 1), "", RATE
    )
    odd = {file for arm in trends.arms for file in arm.left_out}
    wrongly = len(odd ^ ({FOREIGN} if logs > 20 else set()))
    yield Figure("foreign", "logs taken for another arm's, or not, wrongly", wrongly, "", 0)
