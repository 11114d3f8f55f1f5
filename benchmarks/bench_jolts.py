"""Jolts: found in real and simulated recordings, and false alarms without one.

Real recordings are read from ../shared/data where they are there. Simulated arms swing all joints,
or move from rest to rest; a jolt is a blow of 40 ms at the flange.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from figure import Figure

from steelyard.quality._jolts import find_jolts
from steelyard.recording import Recording
from steelyard.robot import RobotModel, load_robot, robot_names
from steelyard.simulation import Push, simulate

DATA = Path(__file__).parents[2] / "shared" / "data"
RATES_HZ = {"xmate7p": 50.0, "med7": 100.0}
WITH_JOLTS = ("p3_t1", "p3_t2", "p3_t3")
TOUCHED = ("collision_3link",)
SEEDS = range(300, 303)
DURATION_S = 12.0
BLOW_S = 7.0


class Motion:
    """Sums of sines about the home posture, or moves from rest to rest of 1.5 s each."""

    duration_s = DURATION_S

    def __init__(self, robot: RobotModel, seed: int, *, stops: bool) -> None:
        rng = np.random.default_rng(seed)
        self.home = robot.home
        self.stops = stops
        self.w = 2 * np.pi * np.array([0.2, 0.37, 0.7])
        self.amplitude = rng.uniform(0.4, 0.8, (robot.n, 3)) / self.w / 2
        self.phase = rng.uniform(0, 2 * np.pi, (robot.n, 3))
        self.targets = rng.uniform(-0.4, 0.4, (int(DURATION_S / 1.5) + 2, robot.n))

    def at(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Position, velocity and acceleration."""
        if not self.stops:
            angle = t[:, None, None] * self.w + self.phase
            q = (self.amplitude * np.sin(angle)).sum(-1)
            v = (self.amplitude * self.w * np.cos(angle)).sum(-1)
            return self.home + q, v, -(self.amplitude * self.w**2 * np.sin(angle)).sum(-1)
        k = (t // 1.5).astype(int)
        s = np.clip((t / 1.5 - k) / 0.8, 0, 1)[:, None]
        step = self.targets[k + 1] - self.targets[k]
        q = self.home + self.targets[k] + step * (10 * s**3 - 15 * s**4 + 6 * s**5)
        v = step * (30 * s**2 - 60 * s**3 + 30 * s**4) / 1.2
        return q, v, step * (60 * s - 180 * s**2 + 120 * s**3) / 1.44


def real() -> Iterator[tuple[str, Recording]]:
    """The recordings of joints that are there, by name."""
    files = [*DATA.glob("arms/*/*.npz"), *DATA.glob("ur10e/*/*.npz"), *DATA.glob("panda/*.npz")]
    for path in sorted(files):
        data = np.load(path)
        if "t" in data:
            t = data["t"]
        else:
            t = np.arange(len(data["q"])) / RATES_HZ[path.parent.name]
        effort = {"tau": data["tau"]} if "tau" in data else {"current": data["i"]}
        yield path.stem, Recording(t=t, q=data["q"], **effort)


def blow(robot: RobotModel, rng: np.random.Generator) -> Push:
    """A blow of 40 ms whose force is a tenth of the arm's weight, at least 30 N."""
    force = max(30.0, 0.1 * 9.81 * sum(link.mass for link in robot.links))
    direction = rng.normal(size=3)
    vector = force * direction / np.linalg.norm(direction)
    return Push(BLOW_S, 0.04, robot.flange, vector)


def simulated(*, stops: bool, struck: bool) -> tuple[int, int]:
    """How many simulated runs there are, and in how many a jolt is found (at the blow)."""
    runs = 0
    found = 0
    for name in robot_names():
        robot = load_robot(name)
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            pushes = [blow(robot, rng)] if struck else []
            run = simulate(robot, Motion(robot, seed, stops=stops), pushes=pushes)
            jolts = find_jolts(run.recording)
            if struck:
                jolts = tuple(jolt for jolt in jolts if abs(jolt.peak_s - BLOW_S) < 0.3)
            runs += 1
            found += bool(jolts)
    return runs, found


def figures() -> Iterator[Figure]:
    """Counts of real and of simulated recordings."""
    counts = {name: len(find_jolts(recording)) for name, recording in real()}
    quiet = [name for name in counts if name not in (*WITH_JOLTS, *TOUCHED)]
    if counts:
        false = sum(counts[name] > 0 for name in quiet)
        words = f"{len(quiet)} real recordings without a jolt: false alarms"
        yield Figure("real_false", words, false, "", goal=0)
        missed = sum(counts[name] == 0 for name in WITH_JOLTS)
        yield Figure("real_missed", "3 real recordings with a jolt: missed", missed, "", goal=0)
    for stops, word in ((False, "swinging"), (True, "from rest to rest")):
        runs, found = simulated(stops=stops, struck=False)
        words = f"{runs} simulated runs {word}: false alarms"
        yield Figure(f"false_{stops}", words, found, "", goal=0.01 * runs)
    runs, found = simulated(stops=False, struck=True)
    yield Figure("blows", f"{runs} simulated blows of 40 ms: not found", runs - found, "")
