"""Silent wrong numbers: recordings corrupted on purpose, and what becomes of the answer.

Arms are simulated in MuJoCo (power-law friction, noise, encoders), two empty runs and a loaded one
for each arm and seed; corruptions change the arrays. Each is weighed with the friction law that
fits and with one that does not (linear), from torques and from motor currents. Every cell is one of

    refused         an error says why
    doubted         the verdict says: do not use this
    inside          trusted, and the true mass lies in the 95 % interval, widened by half (chance)
    SILENT          trusted, and it does not: what must not be

Usage: python benchmarks/run.py trust; ARMS=ur10e,panda,kr60ha SEEDS=5 for the whole matrix,
KINDS=gains for some rows, ONLINE=1 to weigh sample by sample, LINES=1 to print every cell.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from figure import Figure

import steelyard as sy
from steelyard.errors import SteelyardError
from steelyard.inertia import InertialParameters
from steelyard.recording import Recording
from steelyard.robot import RobotModel, load_robot
from steelyard.simulation import SensorModel, simulate
from steelyard.trajectory import FourierTrajectory

ARMS = os.environ.get("ARMS", "ur10e").split(",")
SEEDS = int(os.environ.get("SEEDS", "1"))
KINDS = os.environ.get("KINDS", "").split(",")
SOURCES = os.environ.get("SOURCES", "torques,currents").split(",")
LINES, ONLINE = (bool(os.environ.get(name)) for name in ("LINES", "ONLINE"))
LAWS = {"fitting": "power", "unfitting": "linear"}
RUN_S = 20.0
RATE_HZ = 125.0
CHANCE = 1.5  # times the half-width: of 1,000 cells without a fault, three lie outside
GRAVITY = 9.81
LOAD_LOST = "a fifth lost half way"


@dataclass(frozen=True)
class Setting:
    """What the simulation knows of an arm: gains, noise relative to friction, and the payload."""

    gain: tuple[float, ...]
    mass: float
    size: float


SETTINGS = {
    "ur10e": Setting((13.0, 13.0, 11.0, 11.0, 11.0, 11.0), 2.5, 0.10),
    "panda": Setting((9.0, 9.0, 9.0, 9.0, 6.0, 6.0, 6.0), 1.5, 0.08),
    "kr60ha": Setting((120.0, 120.0, 110.0, 70.0, 60.0, 40.0), 30.0, 0.25),
}


@dataclass(frozen=True)
class Runs:
    """The recordings of an arm on their way: those of the empty arm, and the loaded one."""

    robot: RobotModel
    empty: tuple[Recording, ...]
    loaded: Recording

    def both(self, change: Callable[[Recording], Recording]) -> Runs:
        return Runs(self.robot, tuple(change(run) for run in self.empty), change(self.loaded))

    def first(self, change: Callable[[Recording], Recording]) -> Runs:
        return replace(self, empty=(change(self.empty[0]), *self.empty[1:]))

    def late(self, change: Callable[[Recording], Recording]) -> Runs:
        return replace(self, loaded=change(self.loaded))


def arm(name: str) -> RobotModel:
    """The arm with power-law friction and gains."""
    robot = load_robot(name)
    drive = replace(robot.drive, exponent=np.full(robot.n, 0.6), gain=np.array(SETTINGS[name].gain))
    if name == "panda":
        drive = replace(drive, coulomb=10 * drive.coulomb, viscous=10 * drive.viscous)
    return robot.with_drive(drive)


def payload(name: str) -> InertialParameters:
    setting = SETTINGS[name]
    com = setting.size * np.array([0.3, -0.2, 0.8])
    inertia = (
        setting.mass
        * setting.size**2
        * np.array([[0.3, 0.03, -0.02], [0.03, 0.35, 0.01], [-0.02, 0.01, 0.25]])
    )
    return InertialParameters.from_com(setting.mass, com, inertia, arm(name).flange)


def motion(robot: RobotModel, series: int) -> FourierTrajectory:
    """A Fourier series of nine harmonics over the run, at rest at its ends."""
    k = np.arange(1, 10)
    sine, cosine = np.random.default_rng(series).normal(size=(2, robot.n, len(k)))
    sine -= sine.mean(axis=1, keepdims=True)  # no speed
    cosine -= (cosine @ k / (k @ k))[:, None] * k  # no acceleration
    low = np.maximum(robot.limits.q_min, -2.5)
    high = np.minimum(robot.limits.q_max, 2.5)
    centre = np.clip(robot.home, low + 1.0, high - 1.0)
    t = np.linspace(0, RUN_S, 500)
    swing = np.abs(FourierTrajectory(sine, cosine, np.zeros(robot.n), RUN_S).at(t)[0]).max(axis=0)
    scale = np.minimum(np.minimum(high - centre, centre - low), 1.5)[:, None] / swing[:, None]
    return FourierTrajectory(scale * sine, scale * cosine, centre, RUN_S)


@cache
def recorded(name: str, seed: int) -> Runs:
    """Two empty runs and a loaded one, without measured speeds."""
    robot = arm(name)
    sensors = SensorModel(
        torque_std=0.03 * np.maximum(robot.drive.coulomb + robot.drive.viscous, 0.1)
    )
    runs = [
        simulate(
            robot,
            motion(robot, 10 * seed + k),
            payload=payload(name) if k == 2 else None,
            sensors=sensors,
            rate_hz=RATE_HZ,
            seed=10 * seed + k,
        ).recording
        for k in range(3)
    ]
    return Runs(robot, tuple(map(_plain, runs[:2])), _plain(runs[2]))


def _plain(recording: Recording) -> Recording:
    return Recording(
        t=recording.t, q=recording.q, joint_names=recording.joint_names, tau=recording.tau
    )


# --- corruptions: a change of torques, of time, of columns


def scaled(factor: float, run: Recording) -> Recording:
    return replace(run, tau=factor * run.tau)


def scaled_one(factor: float, joint: int, run: Recording) -> Recording:
    return replace(run, tau=np.where(np.arange(run.n) == joint, factor, 1.0) * run.tau)


def faster(factor: float, run: Recording) -> Recording:
    return replace(run, t=factor * run.t)


def dropped(share: float, run: Recording) -> Recording:
    """Rows lost at random, the clock counted from those that are left."""
    kept = np.random.default_rng(5).random(len(run)) >= share
    return replace(run, t=run.t[: kept.sum()], q=run.q[kept], tau=run.tau[kept])


def lost(run: Recording) -> Recording:
    """One second lost in the middle, the clock counted on."""
    kept = np.abs(run.t - 0.5 * RUN_S) > 0.5
    return replace(run, t=run.t[: kept.sum()], q=run.q[kept], tau=run.tau[kept])


def truncated(run: Recording) -> Recording:
    return replace(run, tau=np.trunc(run.tau))


def saturated(share: float, run: Recording) -> Recording:
    most = share * np.abs(run.tau).max(axis=0)
    return replace(run, tau=np.clip(run.tau, -most, most))


def drifted(share: float, run: Recording) -> Recording:
    rms = np.sqrt(np.mean(run.tau**2, axis=0))
    return replace(run, tau=run.tau + share * rms * (run.t / run.t[-1])[:, None])


def delayed(delay_s: float, run: Recording) -> Recording:
    tau = np.column_stack([np.interp(run.t - delay_s, run.t, column) for column in run.tau.T])
    return replace(run, tau=tau)


def swapped(channel: str, run: Recording) -> Recording:
    order = [0, 2, 1, *range(3, run.n)]
    return replace(run, **{channel: getattr(run, channel)[:, order]})


def flipped(channel: str, joint: int, run: Recording) -> Recording:
    sign = np.where(np.arange(run.n) == joint, -1.0, 1.0)
    return replace(run, **{channel: sign * getattr(run, channel)})


def turned(run: Recording) -> Recording:
    return replace(run, tau=-run.tau)


def pushed(
    robot: RobotModel, force: float, first_s: float, last_s: float, run: Recording
) -> Recording:
    """A hand that pushes the flange up with a steady force, [N]."""
    still = np.zeros_like(run.q)
    up = robot.payload_regressor(run.q, still, still)[:, :, 0] / GRAVITY
    acting = (run.t >= first_s) & (run.t < last_s)
    return replace(run, tau=run.tau - force * up * acting[:, None])


def tilted(
    robot: RobotModel, gravity: np.ndarray, body: InertialParameters | None, run: Recording
) -> Recording:
    """The same motion where things fall otherwise."""
    if body is None:
        carried = robot
    else:
        carried = robot.with_payload(body)
    change = carried.with_gravity(gravity).gravity_torque(run.q) - carried.gravity_torque(run.q)
    return replace(run, tau=run.tau + change)


def _derivatives(run: Recording) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    samples = sy.prepare(run, sy.Preparation(cutoff_hz=10.0, lowest_speed=0.0))
    return samples.q, samples.v, samples.a


def _load_lost(robot: RobotModel, body: InertialParameters, run: Recording) -> Recording:
    less = 0.2 * (robot.payload_regressor(*_derivatives(run)) @ body.vector)
    return replace(run, tau=run.tau - less * (run.t > 0.5 * RUN_S)[:, None])


def _heavier(robot: RobotModel, run: Recording) -> Recording:
    return replace(run, tau=run.tau + 0.2 * robot.inverse_dynamics(*_derivatives(run)))


def _elsewhere(runs: Runs, body: InertialParameters, gravity: np.ndarray) -> Runs:
    empty = tuple(tilted(runs.robot, gravity, None, run) for run in runs.empty)
    return Runs(runs.robot, empty, tilted(runs.robot, gravity, body, runs.loaded))


def corruptions(name: str) -> dict[str, Callable[[Runs], Runs]]:
    body = payload(name)
    robot = arm(name)
    lean = GRAVITY * np.array([np.sin(np.radians(5.0)), 0.0, -np.cos(np.radians(5.0))])
    local = np.array([0.0, 0.0, -9.78])
    weight = body.mass * GRAVITY
    return {
        "clean": lambda runs: runs,
        "gains x0.8, loaded": lambda runs: runs.late(partial(scaled, 0.8)),
        "gains x1.05, loaded": lambda runs: runs.late(partial(scaled, 1.05)),
        "gain 2 x0.9, loaded": lambda runs: runs.late(partial(scaled_one, 0.9, 1)),
        "gains x0.9, one empty run": lambda runs: runs.first(partial(scaled, 0.9)),
        "time x0.5, both": lambda runs: runs.both(partial(faster, 0.5)),
        "time x0.5, loaded": lambda runs: runs.late(partial(faster, 0.5)),
        "time x0.9, loaded": lambda runs: runs.late(partial(faster, 0.9)),
        "rows dropped 10 %, both": lambda runs: runs.both(partial(dropped, 0.1)),
        "rows dropped 30 %, loaded": lambda runs: runs.late(partial(dropped, 0.3)),
        "a second lost, loaded": lambda runs: runs.late(lost),
        "truncated to 1 Nm, both": lambda runs: runs.both(truncated),
        "saturated at 60 %, both": lambda runs: runs.both(partial(saturated, 0.6)),
        "saturated at 80 %, loaded": lambda runs: runs.late(partial(saturated, 0.8)),
        "saturated at 60 %, loaded": lambda runs: runs.late(partial(saturated, 0.6)),
        "offset drift 5 %, loaded": lambda runs: runs.late(partial(drifted, 0.05)),
        "offset drift 5 %, both": lambda runs: runs.both(partial(drifted, 0.05)),
        "hand up 8 N/2.5 kg, 6 s": lambda runs: runs.late(
            partial(pushed, robot, 0.33 * weight, 7.0, 13.0)
        ),
        "hand down 10 N/2.5 kg": lambda runs: runs.late(
            partial(pushed, robot, -0.41 * weight, 0.0, 99.0)
        ),
        LOAD_LOST: lambda runs: runs.late(partial(_load_lost, robot, body)),
        "empty arm 20 % heavier": lambda runs: replace(
            runs, empty=tuple(_heavier(robot, run) for run in runs.empty)
        ),
        "one empty run 20 % heavier": lambda runs: runs.first(partial(_heavier, robot)),
        "tilted 5 degrees, both": lambda runs: _elsewhere(runs, body, lean),
        "tilted 5 degrees, loaded": lambda runs: runs.late(partial(tilted, robot, lean, body)),
        "g = 9.78": lambda runs: _elsewhere(runs, body, local),
        "--gravity 0,0,-9": lambda runs: replace(
            runs, robot=runs.robot.with_gravity([0.0, 0.0, -9.0])
        ),
        "20 ms late, loaded": lambda runs: runs.late(partial(delayed, 0.02)),
        "20 ms late, both": lambda runs: runs.both(partial(delayed, 0.02)),
        "150 ms late, both": lambda runs: runs.both(partial(delayed, 0.15)),
        "torques swapped, loaded": lambda runs: runs.late(partial(swapped, "tau")),
        "torques swapped, both": lambda runs: runs.both(partial(swapped, "tau")),
        "positions swapped, both": lambda runs: runs.both(partial(swapped, "q")),
        "positions swapped, loaded": lambda runs: runs.late(partial(swapped, "q")),
        "torque 2 flipped, loaded": lambda runs: runs.late(partial(flipped, "tau", 1)),
        "torque 2 flipped, both": lambda runs: runs.both(partial(flipped, "tau", 1)),
        "position 3 flipped, both": lambda runs: runs.both(partial(flipped, "q", 2)),
        "position 3 flipped, loaded": lambda runs: runs.late(partial(flipped, "q", 2)),
        "all torques flipped, both": lambda runs: runs.both(turned),
        "all torques flipped, loaded": lambda runs: runs.late(turned),
    }


# --- outcomes


@cache
def identified(name: str, seed: int, source: str, law: str) -> sy.DynamicModel:
    runs = recorded(name, seed)
    return identify(runs.robot, runs.empty, source, law)


def identify(
    robot: RobotModel, empty: tuple[Recording, ...], source: str, law: str
) -> sy.DynamicModel:
    return sy.identify(robot, [measured(robot, run, source) for run in empty], friction=LAWS[law])


def measured(robot: RobotModel, run: Recording, source: str) -> Recording:
    if source == "torques":
        return run
    return replace(run, tau=None, current=run.tau / np.asarray(robot.drive.gain))


@dataclass(frozen=True)
class Cell:
    """What became of one answer; error and half-width in percent of the mass."""

    outcome: str
    words: str
    error: float = np.nan
    half: float = np.nan


def cell(name: str, seed: int, source: str, law: str, kind: str) -> Cell:
    clean = recorded(name, seed)
    truth = payload(name).mass
    if ONLINE and kind == LOAD_LOST:
        truth *= 0.8  # the answer is the load that is there at the end
    runs = corruptions(name)[kind](clean)
    try:
        if runs.empty is clean.empty and runs.robot is clean.robot:
            model = identified(name, seed, source, law)
        else:
            model = identify(runs.robot, runs.empty, source, law)
        loaded = measured(runs.robot, runs.loaded, source)
        if ONLINE:
            found = sy.track(loaded, model=model).payload
        else:
            found = sy.weigh(model, loaded)
    except SteelyardError as error:
        return Cell("refused", str(error))
    percent = 100 / truth
    error = percent * (found.body.mass - truth)
    half = percent * 1.96 * found.std[0]
    if not found.verdict.ok:
        return Cell(
            "doubted", "; ".join(doubt.words for doubt in found.verdict.blocking), error, half
        )
    inside = abs(error) <= CHANCE * half
    return Cell("inside" if inside else "SILENT", found.status, error, half)


def figures() -> Iterator[Figure]:
    total: Counter[str] = Counter()
    for kind in corruptions(ARMS[0]):
        if not any(part in kind for part in KINDS):
            continue
        count: Counter[str] = Counter()
        for name in ARMS:
            for seed in range(SEEDS):
                for source in SOURCES:
                    for law in LAWS:
                        one = cell(name, seed, source, law, kind)
                        count[one.outcome] += 1
                        if LINES:
                            print(
                                f"{kind:28} {name:7} {seed} {source:9} {law:10} {one.outcome:8}"
                                f" {one.error:+7.1f} +- {one.half:5.1f} %  {one.words[:150]}",
                                flush=True,
                            )
        words = ", ".join(f"{count[x]} {x}" for x in ("refused", "doubted", "inside"))
        total += count if kind != "clean" else Counter()
        yield Figure(
            kind.replace(" ", "_"), f"{kind}: {words}; silently wrong", count["SILENT"], "", goal=0
        )
    yield Figure(
        "silent", f"of {total.total()} corrupted cells, silently wrong", total["SILENT"], "", goal=0
    )
