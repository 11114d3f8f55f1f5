"""Touches of the load that the tracker of a wrist sensor reports: false ones and missed ones.

Four arms with friction rest in eight postures, pause for 5 s, and then move all of their joints for
22 s in MuJoCo, each along its own random motion: joints turn round, and the wrench jumps there.
Readings have the rate, the noise and
the encoders of the table below, each run its own zero drift. One run has no contact. In the other a
force in a random direction touches the load five times for 0.4 s, with a size of 1, 2, 4, 8 or 16
times the noise of a reading, after 7 s of learning. A touch is seen if a window within it, or up to
0.2 s later, is not used.

liu2025's cell is one of them: its postures, its excitation of the wrist alone, its load of 40 kg,
and 4 times as many seeds. The jump term and the weights of samples next to a jump were chosen with
that cell, seeds below 10; reported are others. The 95 % intervals of the ten inertial parameters at
the end of the runs without contact are compared with the true load.
`python benchmarks/run.py touches`; more seeds: `SEEDS=8`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from figure import Figure

from steelyard._units import NORMAL_95
from steelyard.inertia import InertialParameters
from steelyard.robot import load_robot
from steelyard.simulation import SensorModel, SimulationOptions, Truth, simulate
from steelyard.trajectory import FourierTrajectory
from steelyard.wrist import WristSensor
from steelyard.wrist.tracking import WristPath, WristTracker, WristTrackerState
from steelyard_papers.liu2025.motions import FromRest, planned_motions
from steelyard_papers.liu2025.world import LOAD, STEP, run_world
from steelyard_papers.visit import Visit

SEEDS = int(os.environ.get("SEEDS", "3"))
FIRST_SEED = int(os.environ.get("SEED", "500"))
LENGTH_S = 22.0
GAP_S = 5.0
TOUCH_S = 0.4
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Of the touching force, in standard deviations of a reading."""


@dataclass(frozen=True)
class Cell:
    """An arm, its load, and its sensor."""

    arm: str
    mass: float
    noise: float  # of a force [N]; torques have a tenth of it in Nm
    rate_hz: float
    encoder: float  # step, [rad]
    speed: float  # of the joints, [rad/s]
    size: float  # of the load, [m]

    @property
    def load(self) -> InertialParameters:
        if self == LIU2025:
            return LOAD
        size = self.size
        inertia = np.diag([1.0, 0.4, 1.2]) * self.mass * size**2 / 6
        return InertialParameters.from_com(self.mass, [0.05, -0.02, 0.08], inertia)

    @property
    def noises(self) -> np.ndarray:
        return self.noise * np.repeat([1.0, 0.1], 3)


CELLS = (
    Cell("kr60ha", 40.0, 0.5, 250.0, 6e-6, 1.0, 0.8),
    Cell("ur10", 5.0, 0.1, 125.0, 1e-6, 0.6, 0.5),
    Cell("ur10", 1.0, 0.1, 500.0, 5e-5, 0.8, 0.15),
    Cell("panda", 2.0, 0.05, 200.0, 2e-6, 1.0, 0.3),
    Cell("tx60", 2.0, 0.05, 250.0, 2e-6, 1.5, 0.3),
)


class Run(NamedTuple):
    """Time, joint positions and wrench of a run, without noise."""

    t: np.ndarray
    q: np.ndarray
    wrench: np.ndarray


LIU2025 = Cell("kr60ha", 40.173, 0.5, 250.0, STEP, 1.0, 1.0)


@cache
def liu2025_run() -> Run:
    """Postures and excitation of the paper, which are the same for all seeds."""
    robot = load_robot("kr60ha")
    motions = planned_motions(robot, starts=1, effort=0.4)
    world = run_world(robot, motions, progress=lambda share: None)
    return _joined(world.rest, world.excitation)


def _joined(rest: Truth, moving: Truth) -> Run:
    return Run(
        np.concatenate([rest.t, moving.t + rest.t[-1] + GAP_S]),
        np.concatenate([rest.q, moving.q]),
        np.concatenate([rest.wrench, moving.wrench]),
    )


@cache
def run_of(cell: Cell, seed: int) -> Run:
    """Postures at rest, a gap of 5 s, and a motion of all joints."""
    if cell == LIU2025:
        return liu2025_run()
    robot = load_robot(cell.arm)
    n = robot.n
    motion = FourierTrajectory.random(
        robot.home,
        reach=[0.7] * n,
        speed=[cell.speed] * n,
        period_s=LENGTH_S,
        harmonics=10,
        seed=seed,
    )
    rng = np.random.default_rng([seed, 2])
    postures = Visit(robot.home + rng.uniform(-0.7, 0.7, (8, n)), rest_s=1.2, move_s=1.5)
    steps = int(np.ceil(1 / (cell.rate_hz * 0.002) - 1e-9))
    options = SimulationOptions(step_s=1 / (cell.rate_hz * steps))
    rest, moving = (
        simulate(
            robot,
            path,
            payload=cell.load,
            sensors=SensorModel.ideal(),
            rate_hz=cell.rate_hz,
            options=options,
        ).truth
        for path in (postures, FromRest(motion, duration_s=LENGTH_S))
    )
    return _joined(rest, moving)


@dataclass(frozen=True)
class Outcome:
    """What the tracker said about one run."""

    false_windows: int  # that were not used, outside of touches
    loads: int  # changes of the load that it reported
    held: np.ndarray  # intervals of the load at the end that contain the truth, (10,)
    seen: dict[float, bool]  # touches, by their size


def outcome(cell: Cell, seed: int, *, touched: bool) -> Outcome:
    """One run: five touches, or none."""
    run = run_of(cell, seed)
    rng = np.random.default_rng([seed, int(touched)])
    drift = rng.normal(size=6) * np.repeat([10.0, 0.5], 3)
    wrench = run.wrench + drift + cell.noises * rng.normal(size=run.wrench.shape)
    starts = {}
    length_s = LENGTH_S
    if cell == LIU2025:
        length_s = 11.5
    if touched:
        for k, size in enumerate(rng.permutation(SIZES)):
            start = run.t[-1] - length_s * (0.8 - 0.16 * k - rng.uniform(0.0, 0.08))
            direction = rng.normal(size=3)
            inside = (run.t >= start) & (run.t < start + TOUCH_S)
            wrench[inside, :3] += size * cell.noise * direction / np.linalg.norm(direction)
            starts[float(size)] = start
    phase = rng.uniform(size=run.q.shape[1])
    q = np.round(run.q / cell.encoder + phase) * cell.encoder
    times, tracker, state = tracked(cell, run.t, q, wrench)
    inside = {size: (times > s) & (times < s + TOUCH_S + 0.25) for size, s in starts.items()}
    of_touches = np.any([*inside.values(), np.zeros(len(times), bool)], axis=0)
    seen = {size: bool(x.any()) for size, x in inside.items()}
    found = tracker.estimate(state, physical=False)
    held = np.abs(found.unconstrained.vector - cell.load.vector) <= NORMAL_95 * found.std
    return Outcome(int((~of_touches).sum()), len(state.history), held, seen)


def tracked(
    cell: Cell, t: np.ndarray, q: np.ndarray, wrench: np.ndarray
) -> tuple[np.ndarray, WristTracker, WristTrackerState]:
    """Ends of the windows that the load does not explain, [s], the tracker, and its last state."""
    first = t < 1.0
    robot = load_robot(cell.arm)
    sensor = WristSensor(noise=cell.noises)
    path = WristPath.calibrated(t[first], q[first], wrench[first], sensor, robot=robot)
    tracker = WristTracker(path.noise)
    at = path.init()
    state = tracker.init()
    times = []
    for row in zip(t, q, wrench, strict=True):
        at, ready = path.step(at, *row)
        for sample in ready:
            before = state.unexplained + state.contacts + len(state.history)
            state = tracker.step(state, sample)
            if state.unexplained + state.contacts + len(state.history) != before:
                times.append(sample.t)
    return np.array(times), tracker, state


def figures() -> Iterator[Figure]:
    """False and missed touches, over the arms and in liu2025's cell."""
    seeds = range(FIRST_SEED, FIRST_SEED + SEEDS)
    yield from figures_of("arms", [(cell, seed) for cell in CELLS for seed in seeds])
    more = range(FIRST_SEED, FIRST_SEED + 4 * SEEDS)
    yield from figures_of("liu2025", [(LIU2025, seed) for seed in more])


def figures_of(name: str, runs: Sequence[tuple[Cell, int]]) -> Iterator[Figure]:
    free = [outcome(cell, seed, touched=False) for cell, seed in runs]
    wrong = sum(bool(each.false_windows or each.loads) for each in free)
    words = f"{name}: runs without contact that are called touched, of {len(free)}"
    yield Figure(f"{name}_false_runs", words, wrong, "runs", 0)
    held = np.array([each.held for each in free])
    words = f"{name}: 95 % intervals that miss the truth, of {held.size}"
    yield Figure(f"{name}_misses", words, int((~held).sum()), "intervals", round(0.07 * held.size))
    touched = [outcome(cell, seed, touched=True) for cell, seed in runs]
    others = sum(each.false_windows for each in touched)
    words = f"{name}: unused windows outside of touches"
    yield Figure(f"{name}_false_windows", words, others, "windows", 0)
    for size in SIZES:
        missed = sum(not each.seen[size] for each in touched)
        words = f"{name}: touches of {size:g} times the noise that are missed, of {len(touched)}"
        yield Figure(f"{name}_missed_{size:g}", words, missed, "touches")
