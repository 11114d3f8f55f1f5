"""Writers killed at any moment, malformed files, designs checked by other kinematics.

Usage: python benchmarks/soak_files.py [--kills 150] [--builds 10] [--cases 5000] [--designs 1000]
       [--seed 0]

A writer of each kind (state, design, model, page) is killed again and again while it replaces a
file; after each kill the file must be the old or the new one, whole. A build of a fleet is killed
at any moment and repeated; its models must be those of a build that was not disturbed. Malformed
files, arguments and streams are those of tests/fuzz. Designs are checked by a chain of
Denavit-Hartenberg matrices and differences in time, which share no code with the search:
`--designs 1000` takes an hour, 10000 a night.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from steelyard import _saved
from steelyard.robot import DHTable, load_robot

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE / "tests"))

Writer = Callable[[Path], None]
ARMS = ("ur10", "panda", "tx60", "kr60ha")


def steelyard(words: str) -> None:
    subprocess.run([sys.executable, "-m", "steelyard", *words.split()], stdout=subprocess.DEVNULL)


def writers() -> dict[str, tuple[Writer, Writer]]:
    """What writes an old and a new file of each kind; made in the working directory."""
    from steelyard.excitation import Design
    from steelyard.identification import DynamicModel
    from steelyard.live import track
    from steelyard.workflow._payload import Weighing

    Path("limits.toml").write_text("v_max = 2.0\na_max = 5.0\n")
    steelyard("simulate planar2r -o empty.npz")
    steelyard("simulate planar2r --mass 0.5 --seed 1 -o loaded.npz")
    steelyard("identify planar2r empty.npz --friction linear -o model.json")
    steelyard("design planar2r --limits limits.toml --starts 1 --harmonics 2 -o design.json")
    model = DynamicModel.load("model.json")
    design = Design.load("design.json")
    state = track("loaded.npz", model=model)
    later = replace(state, state=state.state._replace(windows=state.state.windows + 1))
    page = Weighing(model, "loaded.npz").page()
    return {
        "state": (state.save_state, later.save_state),
        "design": (design.save, replace(design, seconds=1.0).save),
        "model": (model.save, replace(model, made_from=("another",)).save),
        "page": (page.write, replace(page, title="Another").write),
    }


def killed(kind: str, pair: tuple[Writer, Writer], kills: int) -> int:
    """How often a file was neither the old nor the new one."""
    path = Path(f"{kind}.out")
    rng = random.Random(kind)
    wrong = 0
    known = []
    for write in pair:
        write(path)
        known.append(path.read_bytes())
    began = time.perf_counter()
    pair[0](path)
    once_s = time.perf_counter() - began
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            while True:
                for write in pair:
                    write(path)
        time.sleep(rng.uniform(0.0, 3 * once_s))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        wrong += path.read_bytes() not in known
    time.sleep(2.5)
    _saved.sweep(path)
    left = [name for name in os.listdir() if name.endswith(".part")]
    print(f"{kind}: {kills} kills, {wrong} broken files, {len(left)} parts left behind", flush=True)
    return wrong + len(left)


def builds(count: int) -> int:
    """How often a fleet whose builds were killed has other models than one without."""
    from fleet_logs import tiny_fleet
    from steelyard.fleet import Fleet

    tiny_fleet(Path(), arms=1, logs=6)
    rng = random.Random(0)
    began = time.perf_counter()
    sound = built("undisturbed")
    once_s = time.perf_counter() - began
    wrong = 0
    for number in range(count):
        for _ in range(3):
            child = os.fork()
            if child == 0:
                Fleet.build("catalogue.csv", f"store{number}", workers=1)
                os._exit(0)
            time.sleep(rng.uniform(0.0, once_s))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        wrong += not np.array_equal(sound, built(f"store{number}"))
    print(f"fleet: {3 * count} killed builds, {wrong} of {count} with other models", flush=True)
    return wrong


def built(store: str) -> np.ndarray:
    """The parameters of the arm of a fleet, from a store that exists or not."""
    from steelyard.fleet import Fleet

    fleet = Fleet.build("catalogue.csv", store, workers=1)
    fleet.identify()
    return np.asarray(fleet.model("arm0").estimate.value)


def heights(table: DHTable, q: np.ndarray) -> np.ndarray:
    """Of the last frame of a table [m], by products of matrices."""
    found = []
    for posture in q:
        T = np.eye(4)
        for alpha, a, d, theta in zip(
            table.alpha, table.a, table.d, table.theta + posture, strict=True
        ):
            ca = np.cos(alpha)
            sa = np.sin(alpha)
            ct = np.cos(theta)
            st = np.sin(theta)
            if table.convention == "modified":
                rows = [
                    [ct, -st, 0, a],
                    [st * ca, ct * ca, -sa, -d * sa],
                    [st * sa, ct * sa, ca, d * ca],
                ]
            else:
                rows = [
                    [ct, -st * ca, st * sa, a * ct],
                    [st, ct * ca, -ct * sa, a * st],
                    [0, sa, ca, d],
                ]
            T = T @ np.array([*rows, [0, 0, 0, 1]])
        found.append(T[2, 3])
    return np.array(found)


def designs(count: int, first: int = 0) -> int:
    """Designed motions that break a given limit by independent kinematics; `first` is a seed."""
    from steelyard.errors import InfeasibleDesign
    from steelyard.excitation import DesignLimits, DesignSettings, design
    from steelyard.robot import JointLimits

    wrong = refused = 0
    for seed in range(first, first + count):
        robot = load_robot(ARMS[seed % len(ARMS)])
        rng = np.random.default_rng(seed)
        free = np.full(robot.n, np.inf)
        n = robot.n
        bounds = JointLimits(-free, free, rng.uniform(0.8, 2.0, n), rng.uniform(2.0, 6.0, n), free)
        limits = DesignLimits.of(robot).narrowed(bounds)
        low = float(heights(robot.dh, robot.home[None])[0]) - rng.uniform(0.2, 0.6)
        limits, joints = replace(limits, height=(low, np.inf)), limits.joints
        settings = DesignSettings(starts=1, seed=seed, effort=0.1, workers=1)
        period_s = float(rng.choice([4, 6, 8, 10, 12]))  # each length is compiled once
        try:
            found = design(robot, harmonics=3, period_s=period_s, limits=limits, settings=settings)
        except InfeasibleDesign as error:  # one start may find none, and says so
            print(f"{robot.name}, seed {seed}: {error}", flush=True)
            refused += 1
            continue
        t = np.linspace(0, period_s, 2001)
        q = found.trajectory.at(t)[0]
        step = t[1]
        v = np.diff(q, axis=0) / step
        a = np.diff(q, 2, axis=0) / step**2
        good = (q > joints.q_min).all() and (q < joints.q_max).all()
        good = (
            good
            and (np.abs(v) < joints.v_max + 1e-6).all()
            and (np.abs(a) < joints.a_max + 1e-3).all()
        )
        if robot.name != "panda":
            flange = heights(robot.dh, q)
        else:
            flange = np.array([np.inf])
        wrong += not (good and flange.min() >= low - 1e-6)
        if (seed - first) % 50 == 49:
            print(f"{seed - first + 1} designs, {wrong} beyond a limit so far", flush=True)
    words = f"beyond a limit of position, speed, acceleration or height, {refused} refused"
    print(f"{count} designs, {wrong} {words}", flush=True)
    return wrong


def main() -> int:
    """The number of things that went wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=150)
    parser.add_argument("--builds", type=int, default=10)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--designs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the cases, and the first design")
    given = parser.parse_args()
    wrong = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for kind, pair in writers().items() if given.kills else ():
            wrong += killed(kind, pair, given.kills)
            tried += given.kills
        if given.builds:
            wrong += builds(given.builds)
            tried += 3 * given.builds
        os.chdir(HERE)
    if given.cases:
        fuzzer = HERE / "tests" / "fuzz" / "fuzzer.py"
        words = [sys.executable, str(fuzzer), str(given.cases), str(given.seed)]
        wrong += subprocess.run(words).returncode
        tried += given.cases
    if given.designs:
        wrong += designs(given.designs, given.seed)
        tried += given.designs
    print(f"{tried} cases, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
