"""The payload from joint torques, offline: all methods beside the Cramer-Rao bound.

First xu2024's trajectory, parameters, payload and noise (see bench_payload_online), 200 seeds, the
arm known. Methods that want empty runs get them with noise of their own; postures are drawn at
random, noise alike, no static friction. Then MuJoCo with tracking errors, quantised signals and
power-law friction, the arm identified from simulated runs. Last the real UR10e, where its
recordings lie beside the repository.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from bench_payload_online import (
    RATE_HZ,
    SEEDS,
    TABLE_VI,
    TABLE_VII,
    TABLE_VIII,
    TIMES_S,
    Case,
    bound,
    published_case,
)
from figure import Figure

import steelyard as sy
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.recording import Samples
from steelyard.robot import DriveModel, load_robot
from steelyard.signals import Preparation, prepare
from steelyard.simulation import SensorModel, simulate
from steelyard.torque import weigh
from steelyard.torque.methods import METHODS, WeighingProblem
from steelyard.trajectory import FourierTrajectory
from steelyard.workflow import KnownMass

DATA = Path(__file__).parents[2] / "shared" / "data" / "ur10e"
NOTHING_FIXED = np.zeros((0, 11))
LOADED = {"ur-20_02_19_14harm50secLoad": 2.805, "ur-19_12_23_load": 1.069}
"""As weighed on scales, [kg]."""
SAME_DAY = {
    "ur-20_02_19_14harm50secLoad": "ur-20_02_19_14harm50sec",
    "ur-19_12_23_load": "ur-19_12_23_free",
}


def moving(case: Case, tau: np.ndarray, until_s: float = 10.0) -> Samples:
    N = round(until_s * RATE_HZ)
    q, v, a = case.motion[:N].transpose(1, 0, 2)
    return Samples(q, v, a, tau[:N], RATE_HZ, case.model.robot.joint_names, "commanded")


def held(case: Case, postures: int, rng: np.random.Generator) -> Samples:
    """Random postures of the loaded arm, one row each."""
    q = rng.uniform(-2.0, 2.0, size=(postures, 6))
    zero = np.zeros_like(q)
    Y = case.model.basis.reduce(case.model.robot.regressor(q, zero, zero))
    tau = Y @ (TABLE_VI + case.model.basis.payload_jacobian @ TABLE_VII.vector)
    tau += rng.normal(size=q.shape) * TABLE_VIII
    return Samples(q, zero, zero, tau, RATE_HZ, case.model.robot.joint_names, "commanded")


def problem(
    case: Case, method: str, seed: int, until_s: float = 10.0, postures: int = 500
) -> WeighingProblem:
    rng = np.random.default_rng(seed)
    loaded = moving(case, case.tau + rng.normal(size=case.tau.shape) * TABLE_VIII, until_s)
    empty = moving(case, case.Y @ TABLE_VI + rng.normal(size=case.tau.shape) * TABLE_VIII, until_s)
    friction = case.model.estimate.parameters.daily
    said = moving(case, case.Y[:, :, ~friction] @ TABLE_VI[~friction], until_s)
    beside = {"torque-change": [empty], "pooled": [empty], "manufacturer": [said]}
    runs = {"static": [held(case, postures, rng)], "combined": [loaded, held(case, postures, rng)]}
    return WeighingProblem(
        case.model, runs.get(method, [loaded]), NOTHING_FIXED, beside.get(method, ())
    )


def errors_of(
    case: Case, method: str, *, until_s: float = 10.0, postures: int = 500, seeds: int = SEEDS
) -> tuple[np.ndarray, np.ndarray]:
    """Errors and standard deviations of the ten numbers for each seed, each (seeds, 10)."""
    answers = [
        METHODS[method](problem(case, method, seed, until_s, postures)) for seed in range(seeds)
    ]
    errors = np.array([answer.value for answer in answers]) - TABLE_VII.vector
    return errors, np.sqrt([np.diag(answer.covariance) for answer in answers])


def beside_each_other(case: Case) -> Iterator[Figure]:
    percent = 100 / TABLE_VII.mass
    inside = []
    for until_s in TIMES_S:
        errors, std = errors_of(case, "direct", until_s=until_s)
        inside.append(np.abs(errors) < 1.96 * std)
        yield Figure(
            f"direct_{until_s:g}_s",
            f"direct, RMS error of the mass after {until_s:g} s / Cramer-Rao bound",
            percent * float(np.sqrt(np.mean(errors[:, 0] ** 2))),
            "%",
            goal=1.10,
            reference=percent * bound(case, until_s)[0],
        )
    off = 100 * np.abs(np.array(inside)[:, :, 0].mean(axis=1) - 0.95).max()
    yield Figure(
        "coverage_mass", "direct, mass: worst coverage of 95 % intervals, off by", off, "%", goal=3
    )
    yield Figure("coverage", "direct, all ten, all times: coverage", 100 * np.mean(inside), "%")
    reference = percent * bound(case, 10.0)[0]
    for method in METHODS:
        for postures in (10, 500) if method == "static" else (500,):
            if method == "direct":
                continue
            errors, std = errors_of(case, method, postures=postures)
            known = np.isfinite(std[0])
            covered = 100 * np.mean(np.abs(errors[:, known]) < 1.96 * std[:, known])
            words = f"{method}, 10 s"
            if method in ("static", "combined"):
                words = f"{method}, {postures} postures"
            yield Figure(
                f"{method}_{postures}" if method == "static" else method,
                f"{words}: RMS of the mass (coverage {covered:.0f} %)",
                percent * float(np.sqrt(np.mean(errors[:, 0] ** 2))),
                "%",
                reference=reference,
            )


def in_mujoco(seeds: int = 10) -> Iterator[Figure]:
    """A UR10 with tracking errors, quantisation and power-law friction, from 3 empty runs."""
    robot = load_robot("ur10", flange="link6")  # the frame of the published payload
    trajectory = FourierTrajectory.load("xu2024")
    robot = robot.with_drive(
        replace(robot.drive, gain_std=np.zeros(6))
    )  # simulated gains are exact
    sensors = SensorModel(encoder_step=1e-4, torque_std=TABLE_VIII)
    how = Preparation(kinematics="commanded")

    def run(seed: int, load: InertialParameters | None) -> Samples:
        made = simulate(robot, trajectory, payload=load, sensors=sensors, seed=seed)
        return prepare(made.recording, how, drive=robot.drive)

    model = identify(robot, [run(1000 + k, None) for k in range(3)], friction="power")
    found = [weigh(model, run(seed, TABLE_VII)) for seed in range(seeds)]
    mass = 100 * max(abs(p.body.mass / TABLE_VII.mass - 1) for p in found)
    com = 1e3 * max(np.abs(p.body.com - TABLE_VII.com).max() for p in found)
    yield Figure("mujoco_mass", f"MuJoCo ur10, 10 s, worst of {seeds}: mass", mass, "%", goal=0.5)
    yield Figure(
        "mujoco_com", f"MuJoCo ur10, 10 s, worst of {seeds}: centre of mass", com, "mm", goal=3
    )


def light_payload(seeds: int = 10) -> Iterator[Figure]:
    """gaz2017 Table I: 0.144 kg on a LWR 4+ with torque sensors behind the gears."""
    robot = load_robot("lwr4").with_drive(DriveModel.ideal(7))
    centre = np.array([0.0, 0.6, 0.0, 0.8, 0.0, 0.6, 0.0])
    sensors = SensorModel(torque_std=0.1, torque_side="link")
    light = InertialParameters.from_com(0.144, [0, 0, 0.1146], 1e-4 * np.eye(3))

    def run(seed: int, load: InertialParameters | None, series: int) -> Samples:
        motion = FourierTrajectory.random(
            centre, reach=[1.2] * 7, speed=[1.5] * 7, period_s=15.0, harmonics=5, seed=series
        )
        return prepare(
            simulate(robot, motion, payload=load, sensors=sensors, rate_hz=200, seed=seed).recording
        )

    model = identify(robot, [run(1000 + k, None, k) for k in range(3)])
    errors = [
        100 * abs(weigh(model, run(seed, light, 10 + seed)).body.mass / 0.144 - 1)
        for seed in range(seeds)
    ]
    yield Figure(
        "light_mass", f"lwr4, 0.144 kg, 15 s, worst of {seeds}: mass", max(errors), "%", goal=5
    )


def real() -> Iterator[Figure]:
    """Loads on a real UR10e with every baseline, all with the defaults of the command line."""
    runs = {path.stem: path for path in sorted((DATA / "unloaded").glob("*harm*.npz"))}
    runs["ur-19_12_23_free"] = DATA / "unloaded" / "ur-19_12_23_free.npz"
    alone = {name: sy.identify("ur10e", path) for name, path in runs.items()}
    every = sy.identify("ur10e", list(runs.values()))
    yield from nothing_carried({name: (alone[name], path) for name, path in runs.items()})
    of_day = {name: alone[SAME_DAY[name]] for name in LOADED}
    cases = {"baseline of the day": of_day, "all five baselines": dict.fromkeys(LOADED, every)}
    for words, models in cases.items():
        yield from errors_of_loads(words, models)
    found = [offs(model, name) for model in alone.values() for name in LOADED]
    yield from summed_up("each of five baselines alone, both loads", found, "real_each")
    corrected = []
    for other, name in (tuple(LOADED), tuple(LOADED)[::-1]):
        known = KnownMass(LOADED[other], DATA / "loaded" / f"{other}.npz")
        for model, paths in ((of_day[name], runs[SAME_DAY[name]]), (every, list(runs.values()))):
            again = sy.identify("ur10e", paths, friction=model.law.name, gains=known)
            corrected.append(offs(again, name))
    yield from summed_up(
        "gains corrected by the other load, day and all", corrected, "real_known_mass"
    )


def nothing_carried(models: dict[str, tuple[sy.DynamicModel, Path]]) -> Iterator[Figure]:
    """The mass of nothing: every empty run, weighed with the model of every other one."""
    found = [
        sy.weigh(a[0], b[1]) for one, a in models.items() for two, b in models.items() if one != two
    ]
    mass, std = np.array([[one.unconstrained.mass, one.std[0]] for one in found]).T
    words = f"UR10e, {len(found)} pairs of empty runs: RMS mass of nothing"
    yield Figure("real_nothing", words, float(np.sqrt(np.mean(mass**2))), "kg")
    z = float(np.sqrt(np.mean((mass / std) ** 2)))
    yield Figure("real_nothing_z", "  the same in standard deviations", z, "", goal=1.2)


def offs(model: sy.DynamicModel, name: str) -> tuple[float, float, float]:
    """The mass of a load, how far it is off, and half the width of its interval, [kg, %, %]."""
    found = sy.weigh(model, DATA / "loaded" / f"{name}.npz")
    truth = LOADED[name]
    return found.mass, 100 * (found.mass / truth - 1), 196 * found.std[0] / truth


def errors_of_loads(words: str, models: dict[str, sy.DynamicModel]) -> Iterator[Figure]:
    """Each load, and all of them."""
    found = []
    if "day" in words:
        key = words.split()[-1]
    else:
        key = "all"
    for name, truth in LOADED.items():
        mass, off, half = offs(models[name], name)
        found.append((mass, off, half))
        line = f"UR10e {truth} kg, {words}: {mass:.3f} +- {half * truth / 100:.3f} kg, off by"
        yield Figure(f"real_{truth}_{key}", f"{line} ({off:+.1f} %)", abs(off), "%", goal=half)
    yield from summed_up(f"{words}, both loads", found, f"real_{key}", 1.0 if key == "day" else 1.5)
    heavy = max(LOADED, key=lambda name: LOADED[name])
    half = found[list(LOADED).index(heavy)][2]
    yield Figure(
        f"real_{key}_half", "  half-width of the heavy one's interval", half, "%", goal=2.5
    )


def summed_up(
    words: str, found: Sequence[tuple[float, float, float]], key: str, goal: float | None = None
) -> Iterator[Figure]:
    """The mean error of several weighings, and the number of intervals that miss the truth."""
    off = np.abs([x[1] for x in found])
    half = np.array([x[2] for x in found])
    words = f"UR10e, {words}: mean error (worst {off.max():.1f} %)"
    yield Figure(f"{key}_mean", words, float(off.mean()), "%", goal=goal)
    outside = int((off > half).sum())
    yield Figure(
        f"{key}_outside", f"  of {len(found)}, truth outside of the interval", outside, "", goal=0
    )


def figures() -> Iterator[Figure]:
    yield from beside_each_other(published_case())
    yield from in_mujoco()
    yield from light_payload()
    if DATA.is_dir():
        yield from real()
