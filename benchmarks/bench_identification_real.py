"""Identification of real arms from recordings beside the repository; empty without them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from figure import Figure

from steelyard._computing import one_blas_thread
from steelyard.identification import DynamicModel, RegressionFactor, identify
from steelyard.identification._feasible import ParameterBounds, feasible_parameters
from steelyard.identification._least_squares import solve_weighted
from steelyard.identification.gains import gains_from_targets
from steelyard.io import read, write
from steelyard.robot import ParameterBasis, load_robot
from steelyard.signals import Preparation, prepare

DATA = Path(__file__).parents[2] / "shared" / "data"
TRAINING = ("ur-20_02_19_14harm50sec", "ur-20_02_12-50sec_12harm")
UNSEEN = ("ur-20_02_12-40sec_12harm", "ur-20_01_17-ptp_10_points")


def cost(model: DynamicModel, bounds: ParameterBounds | None = None) -> float:
    R = model.factor.weighted(solve_weighted(model.factor).weights)
    return 100 * (feasible_parameters(model.robot, model.basis, R, bounds=bounds).rms_ratio - 1)


def ur10e() -> Iterator[Figure]:
    folder = DATA / "ur10e" / "unloaded"
    raw = {name: read(folder / f"{name}.npz") for name in (*TRAINING, *UNSEEN)}
    gains = gains_from_targets([raw[name] for name in TRAINING])
    known = np.array([12.0, 12.0, 9.83, 10.8, 10.6, 10.5])
    worst = 100 * np.abs(gains.value / known - 1).max()
    yield Figure(
        "ur10e_gains",
        "UR10e gains from targets, worst distance from the trial's",
        worst,
        "%",
        goal=3,
    )
    robot = load_robot("ur10e")
    how = Preparation(cutoff_hz=10.0)
    drive = replace(robot.drive, gain=gains.value)
    samples = {name: prepare(r, how, drive=drive) for name, r in raw.items()}
    parts = [samples[name] for name in TRAINING]
    ours, plain = (identify(robot, parts, friction=law) for law in ("auto", "band"))
    for name, goal in zip(UNSEEN, (0.75, 1.0), strict=True):
        mine, theirs = (100 * m.validate(samples[name]).relative.mean() for m in (ours, plain))
        words = f"UR10e {name[9:]}: residual, {ours.law.name} / dead band"
        yield Figure(f"ur10e_{name[9:]}", words, mine, "%", goal=goal, reference=theirs)
    yield Figure("ur10e_feasible", "UR10e: RMS that real bodies cost", cost(ours), "%", goal=3)


def processor_s(work: Callable[[], object]) -> float:
    """Processor time of a piece of work and of what it starts, [s]."""
    began = os.times()
    work()
    return sum(after - before for after, before in zip(os.times()[:4], began[:4], strict=True))


def speed() -> Iterator[Figure]:
    """`steelyard identify` with the law chosen automatically, imports included, one BLAS thread."""
    folder = DATA / "ur10e" / "unloaded"
    four = [folder / f"{name}.npz" for name in (*TRAINING, *UNSEEN)]
    robot = load_robot("ur10e")
    basis = ParameterBasis.of(load_robot("ur10e"))
    samples = prepare(read(four[0]), drive=replace(robot.drive, gain=np.full(6, 10.0)))
    Y = basis.reduce(robot.regressor(samples.q, samples.v, samples.a))
    bare = RegressionFactor.empty(robot.n, len(basis))
    with one_blas_thread():
        qr_s = processor_s(lambda: [bare.add(Y, samples.tau) for _ in range(20)]) / 20
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as out:
        again = []
        for path in four:
            recording = read(path)
            noisy = recording.current + 0.02 * rng.normal(size=recording.current.shape)
            again.append(Path(out) / f"{path.stem}.parquet")
            write(replace(recording, current=noisy), again[-1])
        for words, logs, goal, ratio in (
            ("two", four[:2], 6, 300),
            ("eight", four + again, 20, 300),
        ):
            command = [sys.executable, "-m", "steelyard", "identify", "ur10e", *map(str, logs)]
            command += ["-o", f"{out}/model.json", "--json"]
            seconds = processor_s(
                lambda command=command: subprocess.run(command, check=True, capture_output=True)
            )
            what = f"UR10e, {words} logs of 50 s, friction chosen: processor time"
            yield Figure(f"{words}_logs_s", what, seconds, "s", goal=goal)
            what = f"the same beside one QR decomposition of the rows of {words} logs"
            reference = len(logs) * qr_s
            yield Figure(f"{words}_logs_in_qr", what, seconds, "s", goal=ratio, reference=reference)


def panda() -> Iterator[Figure]:
    recording = read(DATA / "panda" / "exciting_traj1.npz")
    how = Preparation(cutoff_hz=5.0, torque_cutoff_hz=5.0, rate_hz=500.0, lowest_speed=0.0)
    middle = recording.duration_s / 2
    first, second = (
        prepare(recording.between(*span), how) for span in ((0, middle), (middle, 2 * middle))
    )
    model = identify(load_robot("panda"), first, friction="auto")
    goals = np.array([0.14, 0.20, 0.14, 0.13, 0.075, 0.06, 0.055])
    rms = model.validate(second).rms
    words = (
        f"Panda second half, {model.law.name}: worst RMS over its goal"
        f" ({' '.join(f'{x:.3f}' for x in rms)})"
    )
    yield Figure("panda", words, float((rms / goals).max()), "", goal=1)
    free = ParameterBounds({f"Ia{j}": (-np.inf, np.inf) for j in range(1, 8)})
    yield Figure(
        "panda_feasible",
        "Panda: RMS that real bodies cost (rotors free)",
        cost(model, free),
        "%",
        goal=3,
    )


def figures() -> Iterator[Figure]:
    if DATA.is_dir():
        yield from speed()
        yield from ur10e()
        yield from panda()
