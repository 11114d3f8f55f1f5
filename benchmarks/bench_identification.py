"""Speed of identification; one hour at 500 Hz to the triangular factor, in constant memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from figure import Figure, median_s

from steelyard.identification import identify
from steelyard.identification._feasible import feasible_parameters
from steelyard.identification._least_squares import solve_weighted
from steelyard.io import write
from steelyard.recording import Recording, Samples
from steelyard.robot import load_robot
from steelyard.trajectory import FourierTrajectory

RATE = 500.0

REDUCE = """
import json, re, sys, time
from pathlib import Path
from steelyard.identification import RegressionFactor
from steelyard.io import recording_blocks
from steelyard.robot import ParameterBasis, load_robot
from steelyard.signals import Preparation, prepare

robot = load_robot("ur10")
basis = ParameterBasis.of(robot)
how = Preparation(cutoff_hz=20.0, trim_s=2.0)
began = time.perf_counter()
blocks = recording_blocks(sys.argv[1], block_s=60.0, overlap_s=2.0)
factor = RegressionFactor.of(robot, basis, (prepare(block, how) for block in blocks))
seconds = time.perf_counter() - began
# of this process alone: getrusage would also count the memory of the process that started it
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text()).group(1)) / 1024
print(json.dumps({"seconds": seconds, "peak_mb": peak, "rows": int(factor.rows[0])}))
"""


def write_hour(path: Path, hours: float) -> None:
    """The published trajectory again and again, with noise."""
    robot = load_robot("ur10")
    q, v, a = FourierTrajectory.load("xu2024").at(np.arange(0, 10, 1 / RATE))
    tau = robot.torque(q, v, a)
    repeats = round(hours * 360)
    rng = np.random.default_rng(0)
    t = np.arange(repeats * len(q)) / RATE
    noisy = np.tile(tau, (repeats, 1))
    noisy += rng.normal(size=noisy.shape)
    write(
        Recording(t=t, q=np.tile(q, (repeats, 1)), tau=noisy, joint_names=robot.joint_names), path
    )


def reduce(path: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", REDUCE, str(path)], check=True, capture_output=True, text=True
    )
    return dict(json.loads(done.stdout))


def speed() -> Iterator[Figure]:
    """Ten runs of 2,500 samples of a UR10."""
    robot = load_robot("ur10")
    q, v, a = FourierTrajectory.load("xu2024").at(np.arange(0, 10, 1 / 250))
    tau = robot.torque(q, v, a)
    noise = [1.3102, 2.5186, 1.1437, 0.3914, 0.2793, 0.3325]
    rng = np.random.default_rng(0)
    runs = [
        Samples(
            q, v, a, tau + noise * rng.normal(size=q.shape), 250.0, robot.joint_names, "measured"
        )
        for _ in range(10)
    ]
    for law, goal in (("linear", 1.0), ("power", 5.0)):
        seconds = median_s(lambda law=law: identify(robot, runs, friction=law), runs=3)
        yield Figure(
            f"{law}_s",
            f"10 runs of 2,500 samples, 6 joints, {law} friction",
            seconds,
            "s",
            goal=goal,
        )
    model = identify(robot, runs, friction="linear")
    R = model.factor.weighted(solve_weighted(model.factor).weights)
    seconds = median_s(lambda: feasible_parameters(robot, model.basis, R), runs=3)
    yield Figure("feasible_s", "feasible parameters of that fit", seconds, "s", goal=5.0)


def figures() -> Iterator[Figure]:
    yield from speed()
    with tempfile.TemporaryDirectory() as folder:
        runs = {}
        for hours in (0.25, 1.0):
            path = Path(folder) / f"{hours}.parquet"
            write_hour(path, hours)
            runs[hours] = reduce(path)
    hour = runs[1.0]
    quarter = runs[0.25]
    words = f"one hour at 500 Hz ({hour['rows']:.0f} samples used) to the factor, file included"
    yield Figure("hour_s", words, hour["seconds"], "s", goal=40)
    yield Figure("hour_mb", "its peak memory", hour["peak_mb"], "MB", goal=700)
    yield Figure(
        "hour_growth",
        "its time beside four times a quarter of an hour's",
        hour["seconds"],
        "s",
        goal=1.25,
        reference=4 * quarter["seconds"],
    )
    yield Figure(
        "memory_growth",
        "its memory beside that of a quarter of an hour",
        hour["peak_mb"],
        "MB",
        goal=1.1,
        reference=quarter["peak_mb"],
    )
