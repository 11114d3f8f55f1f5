"""Collision detection: simulated contacts of two arms, a real UR10e, and the time of a step.

Simulated: an arm is identified from one run, its payload weighed from another, thresholds are
learned from a third without contact; then 100 runs of 7.5 s with three contacts of 10-60 N each, at
random times, in random directions, on flange and forearm. A contact counts as strong when its true
external torque is beyond twice the threshold on some joint for 50 ms. 30 minutes of free motion are
12 different runs of 7.5 s, each with twenty draws of torque noise.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from figure import Figure

from steelyard.control.collision import (
    Detections,
    Detector,
    Observer,
    Residuals,
    Thresholds,
)
from steelyard.identification import identify
from steelyard.identification.gains import gains_from_targets
from steelyard.inertia import InertialParameters
from steelyard.io import read
from steelyard.recording import Recording, Sample
from steelyard.robot import DriveModel, RobotModel, load_robot
from steelyard.signals import Preparation, prepare
from steelyard.simulation import Push, SensorModel, Simulation, SimulationOptions, simulate
from steelyard.torque import weigh
from steelyard.trajectory import FourierTrajectory
from steelyard_papers.gaz2017.collision import LIMIT_NM, figure_six

DATA = Path(__file__).parents[2] / "shared" / "data"
LOAD = InertialParameters.from_com(3.0, [0.02, -0.01, 0.06], np.diag([0.018, 0.017, 0.008]))
RUNS = 100
FREE_RUNS = 12
DRAWS = 20
FALSE_ALARMS_PER_HOUR = 0.2
STRONG = 2.0
STRONG_S = 0.05
FORCES = ((10, 20), (20, 30), (30, 40), (40, 60))  # [N]


@dataclass(frozen=True, eq=False)
class Bench:
    """A simulated arm with its sensors, and how it moves."""

    name: str
    robot: RobotModel
    sensors: SensorModel
    rate_hz: float
    centre: np.ndarray
    forearm: tuple[str, np.ndarray]
    friction: str
    step_s: float

    def run(self, seed: int, *, load=LOAD, period_s=7.5, pushes=(), quick=False) -> Simulation:
        n = self.robot.n
        motion = FourierTrajectory.random(
            self.centre,
            reach=[1.0 if quick else 0.7] * n,
            speed=[1.5 if quick else 0.8] * n,
            period_s=period_s,
            harmonics=5 if quick else round(3 * period_s / 7.5),
            seed=seed,
        )
        options = SimulationOptions(step_s=self.step_s)
        return simulate(
            self.robot,
            motion,
            payload=load,
            sensors=self.sensors,
            rate_hz=self.rate_hz,
            seed=seed,
            pushes=pushes,
            options=options,
        )


def _midway(robot: RobotModel, link: str, further: str) -> tuple[str, np.ndarray]:
    """A point on a link, halfway to the origin of a frame further out, in the frame of the link."""
    here, there = (robot.forward_kinematics(robot.home, frame) for frame in (link, further))
    return link, 0.5 * (np.linalg.inv(here) @ there)[:3, 3]


def lwr4() -> Bench:
    robot = load_robot("lwr4")
    sensors = SensorModel(torque_std=0.1, torque_side="link", wrist_sensor=False)
    centre = np.array([0.0, 0.6, 0.0, 0.8, 0.0, 0.6, 0.0])
    return Bench(
        "lwr4", robot, sensors, 200.0, centre, _midway(robot, "link4", "link6"), "smooth", 0.0025
    )


def ur10() -> Bench:
    robot = load_robot("ur10")
    noise = np.array([1.3102, 2.5186, 1.1437, 0.3914, 0.2793, 0.3325])
    sensors = SensorModel(torque_std=noise, wrist_sensor=False)
    centre = np.array([0.0, -1.2, 1.0, -1.4, 0.6, 0.0])
    return Bench(
        "ur10", robot, sensors, 125.0, centre, _midway(robot, "link3", "link4"), "power", 0.002
    )


def detectors(bench: Bench) -> tuple[Detector, Detector]:
    """Payload estimated, with learned thresholds; ignored, with a limit above its residuals."""
    if bench.sensors.torque_side == "link":
        how = Preparation(lowest_speed=0.0)
    else:
        how = Preparation()
    empty = prepare(bench.run(1, load=None, period_s=20.0, quick=True).recording, how)
    loaded = prepare(bench.run(2, period_s=10.0, quick=True).recording, how)
    model = identify(bench.robot, empty, friction=bench.friction)
    payload = weigh(model, loaded)
    free = bench.run(3, period_s=60.0).recording
    observer = Observer.of(model, payload)
    learned = Detector.learned(observer, free, false_alarms_per_hour=FALSE_ALARMS_PER_HOUR)
    ignorant = Observer.of(model)
    largest = np.abs(Residuals.of_recording(ignorant, free).residual).max(axis=0)
    return (
        learned,
        Detector(ignorant, Thresholds.fixed(ignorant, 1.1 * largest)),
    )


@dataclass(frozen=True)
class Outcome:
    """One simulated contact and what became of it."""

    force: float
    strong: bool
    delay_s: float


def outcomes(
    detections: Detections, run: Simulation, pushes: Sequence[Push]
) -> tuple[list[Outcome], int]:
    """What became of each contact, and how many other detections there were."""
    t = run.truth.t
    external = np.abs(run.truth.external)
    needed = max(round(STRONG_S / (t[1] - t[0])), 1)
    spent: set[int] = set()
    found = []
    for push in pushes:
        during = (t >= push.start_s) & (t < push.start_s + push.duration_s)
        beyond = external[during] > STRONG * detections.threshold[during]
        strong = any(np.convolve(column, np.ones(needed)).max() >= needed for column in beyond.T)
        last = push.start_s + push.duration_s + 0.1
        mine = [
            i
            for i, c in enumerate(detections.contacts)
            if c.detected_s >= push.start_s and c.start_s <= last
        ]
        spent |= set(mine)
        delay = min(
            (detections.contacts[i].detected_s - push.start_s for i in mine), default=np.inf
        )
        if not (delay <= push.duration_s + 0.1):
            delay = np.inf
        found.append(Outcome(float(np.linalg.norm(push.force_world)), strong, delay))
    return found, len(detections.contacts) - len(spent)


def random_pushes(bench: Bench, rng: np.random.Generator) -> list[Push]:
    pushes = []
    for start in (0.5, 2.8, 5.1):
        direction = rng.normal(size=3)
        force = rng.uniform(10, 60) * direction / np.linalg.norm(direction)
        if rng.random() < 0.5:
            frame, point = bench.forearm
        else:
            frame, point = (bench.robot.flange, np.zeros(3))
        pushes.append(Push(start + rng.uniform(0, 1.5), rng.uniform(0.2, 0.4), frame, force, point))
    return pushes


def contacts(bench: Bench) -> tuple[list[Outcome], list[Outcome], tuple[Detector, Detector]]:
    made = detectors(bench)
    known: list[Outcome] = []
    ignored: list[Outcome] = []
    for k in range(RUNS):
        pushes = random_pushes(bench, np.random.default_rng([7, k]))
        run = bench.run(100 + k, pushes=pushes)
        for detector, out in zip(made, (known, ignored), strict=True):
            out.extend(outcomes(detector.detect(run.recording), run, pushes)[0])
    return known, ignored, made


def false_alarms(bench: Bench, detector: Detector) -> tuple[int, float]:
    """Detections in free motion, and how long it was [min]."""
    count = 0
    minutes = 0.0
    for k in range(FREE_RUNS):
        run = bench.run(1000 + k)
        if bench.sensors.torque_side == "motor":
            side = run.truth.tau
        else:
            side = run.truth.tau_link
        for draw in range(DRAWS):
            rng = np.random.default_rng([k, draw])
            tau = bench.sensors.noisy_torque(side, 1 / bench.rate_hz, rng)
            count += len(detector.detect(replace(run.recording, tau=tau)).contacts)
            minutes += run.recording.duration_s / 60
    return count, minutes


def rate(found: Sequence[Outcome]) -> float:
    if found:
        return 100 * float(np.mean([np.isfinite(o.delay_s) for o in found]))
    return float("nan")


def simulated(bench: Bench) -> Iterator[Figure]:
    known, ignored, made = contacts(bench)
    strong = [o for o in known if o.strong]
    name = bench.name
    words = f"{name}: strong contacts missed, of {len(strong)} ({len(known)} in all)"
    yield Figure(f"{name}_missed", words, 100 - rate(strong), "%", goal=1)
    delays = [o.delay_s for o in strong if np.isfinite(o.delay_s)]
    yield Figure(
        f"{name}_delay", f"{name}: median delay", 1e3 * statistics.median(delays), "ms", goal=30
    )
    count, minutes = false_alarms(bench, made[0])
    yield Figure(
        f"{name}_false",
        f"{name}: false alarms in {minutes:.0f} min of free motion",
        count,
        "",
        goal=0,
    )
    for low, high in FORCES:
        for part, words in ((known, "estimated"), (ignored, "ignored")):
            found = [o for o in part if low <= o.force < high]
            what = f"{name}: contacts of {low}-{high} N found, of {len(found)}, payload {words}"
            yield Figure(f"{name}_{low}_{high}N_{words}", what, rate(found), "%")


@cache
def _ur10e() -> tuple[Detector, DriveModel]:
    names = ("ur-20_02_19_14harm50sec", "ur-20_02_12-50sec_12harm")
    empty = [read(DATA / "ur10e" / "unloaded" / f"{name}.npz") for name in names]
    robot = load_robot("ur10e")
    drive = replace(robot.drive, gain=gains_from_targets(empty).value)
    samples = [prepare(recording, Preparation(cutoff_hz=10.0), drive=drive) for recording in empty]
    model = identify(robot, samples, friction="presliding-load")
    free = read(DATA / "ur10e" / "contact" / "collision_free.npz")
    return Detector.learned(Observer.of(model), free, drive=drive), drive


def real_score(name: str, listed: Sequence[float], within_s: float) -> tuple[int, int]:
    """How many listed contacts of a real recording were missed, and how many others were found."""
    detector, drive = _ur10e()
    recording: Recording = read(DATA / "ur10e" / "contact" / f"{name}.npz")
    found = detector.detect(recording, drive=drive).contacts
    near = [
        {i for i, c in enumerate(found) if c.start_s - within_s <= x <= c.end_s + within_s}
        for x in listed
    ]
    return sum(not hits for hits in near), len(found) - len(set().union(*near))


def real() -> Iterator[Figure]:
    listed = (4.9, 7.2, 11.4, 13.8, 16.2, 20.1, 24.6, 28.6, 39.1, 47.5, 54.6)
    missed, others = real_score("collision_3link", listed, 0.3)
    yield Figure(
        "ur10e_missed", "UR10e collision_3link: contacts missed, of 11", missed, "", goal=1
    )
    yield Figure(
        "ur10e_others", "UR10e collision_3link: other detections in 57 s", others, "", goal=3
    )
    missed, others = real_score("ur-20_01_22-push_pose_1", (2.3, 5.3, 9.0, 12.6), 0.3)
    yield Figure("ur10e_push_missed", "UR10e push_pose_1: pushes missed, of 4", missed, "", goal=0)
    yield Figure(
        "ur10e_push_others", "UR10e push_pose_1: other detections in 18 s", others, "", goal=0
    )


def step_time() -> Figure:
    robot = load_robot("lwr4")
    observer = Observer.of(robot)
    q, v, tau = np.random.default_rng(0).normal(size=(3, 4000, robot.n))
    state = observer.init(Sample(0.0, np.array([q[0], v[0]]), tau[0]))
    times = []
    for i in range(1, len(q)):
        sample = Sample(0.001 * i, np.array([q[i], v[i]]), tau[i])
        began = time.perf_counter()
        state = observer.step(state, sample)
        times.append(time.perf_counter() - began)
    return Figure(
        "step", "observer step, 7 joints, median", 1e6 * statistics.median(times), "us", goal=60
    )


def figures() -> Iterator[Figure]:
    yield step_time()
    six = figure_six()
    words = "gaz2017 Fig. 6: largest residual of free motion, payload estimated / ignored"
    known = six.largest_free(six.known)
    ignored = six.largest_free(six.ignored)
    yield Figure("fig6_free", words, known, "Nm", goal=LIMIT_NM / ignored, reference=ignored)
    missed = int(np.sum(~np.isfinite(six.delays_s(six.known))))
    yield Figure("fig6_missed", "gaz2017 Fig. 6: contacts missed, of 3", missed, "", goal=0)
    for bench in (lwr4(), ur10()):
        yield from simulated(bench)
    if (DATA / "ur10e").is_dir():
        yield from real()
