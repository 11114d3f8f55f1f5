"""Silent wrong numbers of a wrist sensor: recordings corrupted on purpose, as in `bench_trust`.

A load on a sensor at the flange is moved, computed by Newton-Euler, with noise, a zero drift and a
tilted base. Each corruption is weighed as a whole and sample by sample. Every cell is one of

    refused         an error says why
    doubted         the verdict says: do not use this
    inside          trusted, and the true mass lies in the 95 % interval, widened by half (chance)
    SILENT          trusted, and it does not: what must not be

Usage: python benchmarks/run.py trust_wrist; ARMS=ur10,kr60ha SEEDS=3 WAYS=batch,tracking,
LINES=1 to print every cell, MARKDOWN=docs/explanation/wrist.md to write the table of the documents.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from figure import Figure
from gates_report import write_between

import steelyard as sy
from steelyard.errors import SteelyardError
from steelyard.inertia import InertialParameters
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.trajectory import FourierTrajectory
from steelyard.wrist._regressor import BaseGravity, features, wrench_regressor

ARMS = os.environ.get("ARMS", "ur10,kr60ha").split(",")
SEEDS = int(os.environ.get("SEEDS", "1"))
FIRST_SEED = int(os.environ.get("FIRST_SEED", "0"))
WAYS = os.environ.get("WAYS", "batch,tracking").split(",")
LINES = bool(os.environ.get("LINES"))
MARKDOWN = os.environ.get("MARKDOWN")
START = "<!-- table of checks: written by benchmarks/bench_trust_wrist.py -->"
END = "<!-- end of the table of checks -->"
MASS = {"ur10": 4.0, "panda": 1.5, "kr60ha": 30.0}  # [kg]
RUN_S = 20.0
RATE_HZ = 100.0
TILT = np.radians([1.0, -0.7])
FORCE_NOISE, TORQUE_NOISE = 0.07, 0.007  # [N] and [Nm] per kg of the load
CHANCE = 1.5  # times the half-width: of 1,000 cells without a fault, three lie outside


def body(name: str) -> InertialParameters:
    mass = MASS[name]
    size = 0.1 * (mass / 4.0) ** (1 / 3)
    inertia = mass * size**2 * np.diag([0.5, 0.4, 0.3])
    return InertialParameters.from_com(mass, size * np.array([0.2, -0.1, 0.7]), inertia)


@cache
def recorded(name: str, seed: int) -> Recording:
    """A motion of all joints with the load."""
    robot = load_robot(name)
    rng = np.random.default_rng(seed)
    low = np.maximum(robot.limits.q_min, -2.0)
    high = np.minimum(robot.limits.q_max, 2.0)
    series = FourierTrajectory.random(
        (low + high) / 2,
        reach=0.8 * (high - low) / 2,
        speed=1.5,
        period_s=10.0,
        harmonics=5,
        seed=seed,
    )
    t = np.arange(0, RUN_S, 1 / RATE_HZ)
    q, v, a = series.at(t)
    moved = robot.frame_motion(q, v, a)
    gravity = BaseGravity(np.asarray(robot.gravity_base)).tilted(TILT)
    g = np.einsum("nji,j->ni", robot.forward_kinematics(q)[:, :3, :3], gravity)
    x = features(g, moved.linear_acceleration, moved.angular_velocity, moved.angular_acceleration)
    mass = MASS[name]
    noise = mass * np.repeat([FORCE_NOISE, TORQUE_NOISE], 3)
    drift = mass * np.array([1.2, -0.8, 2.2, 0.1, -0.1, 0.07])
    wrench = wrench_regressor(x) @ body(name).vector + drift + noise * rng.normal(size=(len(t), 6))
    return Recording(
        t,
        q + 2e-5 * rng.normal(size=q.shape),
        robot.joint_names,
        wrench=wrench,
        wrench_frame="flange",
        wrench_convention="load_on_sensor",
    )


# --- corruptions


def ordered(order: list[int], run: Recording) -> Recording:
    return replace(run, wrench=run.wrench[:, order])


def scaled(factors: list[float], run: Recording) -> Recording:
    return replace(run, wrench=np.array(factors) * run.wrench)


def faster(factor: float, run: Recording) -> Recording:
    return replace(run, t=factor * run.t)


def delayed(delay_s: float, run: Recording) -> Recording:
    columns = [np.interp(run.t - delay_s, run.t, column) for column in run.wrench.T]
    return replace(run, wrench=np.column_stack(columns))


def truncated(run: Recording) -> Recording:
    step = 0.05 * np.abs(run.wrench).max(axis=0)
    return replace(run, wrench=np.trunc(run.wrench / step) * step)


def saturated(run: Recording) -> Recording:
    most = 0.7 * np.abs(run.wrench).max(axis=0)
    return replace(run, wrench=np.clip(run.wrench, -most, most))


def drifted(share: float, run: Recording) -> Recording:
    size = share * np.abs(run.wrench).max(axis=0)
    return replace(run, wrench=run.wrench + size * (run.t / run.t[-1])[:, None])


def pushed(newtons: float, first_s: float, last_s: float, run: Recording) -> Recording:
    """A hand that lifts the load, with a force that is steady in the base frame, at its centre."""
    robot = load_robot(_arm_of(run))
    R = robot.forward_kinematics(run.q)[:, :3, :3]
    force = np.einsum("nji,j->ni", R, [0.0, 0.0, newtons])
    moment = np.cross(body(robot.name).com, force)
    acting = ((run.t >= first_s) & (run.t < last_s))[:, None]
    return replace(run, wrench=run.wrench + acting * np.hstack([force, moment]))


def _arm_of(run: Recording) -> str:
    return next(name for name in MASS if load_robot(name).joint_names == run.joint_names)


def load_lost(run: Recording) -> Recording:
    """A fifth of the load falls half way; the zero stays."""
    zero = MASS[_arm_of(run)] * np.array([1.2, -0.8, 2.2, 0.1, -0.1, 0.07])
    less = 0.2 * (run.wrench - zero) * (run.t > RUN_S / 2)[:, None]
    return replace(run, wrench=run.wrench - less)


def dropped(run: Recording) -> Recording:
    """Rows lost at random, the clock counted from those that are left."""
    kept = np.random.default_rng(5).random(len(run.t)) >= 0.2
    return replace(run, t=run.t[: kept.sum()], q=run.q[kept], wrench=run.wrench[kept])


def frozen(run: Recording) -> Recording:
    """The sensor repeats its last reading for two seconds."""
    wrench = run.wrench.copy()
    wrench[600:800] = wrench[600]
    return replace(run, wrench=wrench)


def spiked(run: Recording) -> Recording:
    wrench = run.wrench.copy()
    wrench[::97, 2] += 50 * np.abs(wrench[:, 2]).max()
    return replace(run, wrench=wrench)


def position_broken(run: Recording) -> Recording:
    """A damaged frame: one position of one joint is elsewhere."""
    q = run.q.copy()
    q[1234, 3] += 0.3
    return replace(run, q=q)


def joints_swapped(run: Recording) -> Recording:
    return replace(run, q=run.q[:, [0, 2, 1, *range(3, run.n)]])


def joint_flipped(run: Recording) -> Recording:
    return replace(run, q=run.q * np.where(np.arange(run.n) == 3, -1.0, 1.0))


LOAD_LOST = "a fifth lost half way"
CORRUPTIONS: dict[str, Callable[[Recording], Recording]] = {
    "clean": lambda run: run,
    "fx and fy swapped": partial(ordered, [1, 0, 2, 3, 4, 5]),
    "fy and fz swapped": partial(ordered, [0, 2, 1, 3, 4, 5]),
    "tx and tz swapped": partial(ordered, [0, 1, 2, 5, 4, 3]),
    "forces and torques swapped": partial(ordered, [3, 4, 5, 0, 1, 2]),
    "fz flipped": partial(scaled, [1, 1, -1, 1, 1, 1]),
    "tz flipped": partial(scaled, [1, 1, 1, 1, 1, -1]),
    "all flipped": partial(scaled, [-1, -1, -1, -1, -1, -1]),
    "torques in Nmm": partial(scaled, [1, 1, 1, 1e3, 1e3, 1e3]),
    "forces in mN": partial(scaled, [1e3, 1e3, 1e3, 1, 1, 1]),
    "fx x1.2": partial(scaled, [1.2, 1, 1, 1, 1, 1]),
    "fz x1.1": partial(scaled, [1, 1, 1.1, 1, 1, 1]),
    "fy x0.97": partial(scaled, [1, 0.97, 1, 1, 1, 1]),
    "tx x1.2": partial(scaled, [1, 1, 1, 1.2, 1, 1]),
    "clock x0.9": partial(faster, 0.9),
    "clock x1.1": partial(faster, 1.1),
    "clock x0.5": partial(faster, 0.5),
    "20 ms late": partial(delayed, 0.02),
    "150 ms late": partial(delayed, 0.15),
    "readings truncated": truncated,
    "saturated at 70 %": saturated,
    "zero drifts by 5 %": partial(drifted, 0.05),
    "zero drifts by 30 %": partial(drifted, 0.3),
    "a hand lifts for 6 s": lambda run: pushed(3.0 * MASS[_arm_of(run)], 7.0, 13.0, run),
    "a hand lifts throughout": lambda run: pushed(3.0 * MASS[_arm_of(run)], 0.0, 99.0, run),
    LOAD_LOST: load_lost,
    "a fifth of the rows lost": dropped,
    "frozen for 2 s": frozen,
    "spikes": spiked,
    "one position broken": position_broken,
    "joints swapped": joints_swapped,
    "joint 4 flipped": joint_flipped,
}


# --- outcomes


@dataclass(frozen=True)
class Cell:
    """What became of one answer; error and half-width in percent of the mass."""

    outcome: str
    words: str
    error: float = np.nan
    half: float = np.nan


def cell(name: str, seed: int, way: str, kind: str) -> Cell:
    robot = load_robot(name)
    run = CORRUPTIONS[kind](recorded(name, seed))
    try:
        if way == "tracking":
            found = sy.track_wrist(run, robot).payload
        else:
            found = sy.weigh_wrist(dynamic=run, robot=robot)
    except SteelyardError as error:
        return Cell("refused", str(error))
    truth = MASS[name]
    if kind == LOAD_LOST and way == "tracking":
        truth *= 0.8  # the answer is the load that is there at the end
    percent = 100 / truth
    error = percent * (found.body.mass - truth)
    half = percent * 1.96 * found.std[0]
    if not found.verdict.ok:
        words = "; ".join(doubt.words for doubt in found.verdict.blocking)
        return Cell("doubted", words, error, half)
    inside = abs(error) <= CHANCE * half
    return Cell("inside" if inside else "SILENT", found.status, error, half)


def counted(kind: str, way: str) -> Counter[str]:
    """The outcomes of a corruption over arms and seeds."""
    count: Counter[str] = Counter()
    for name in ARMS:
        for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
            one = cell(name, seed, way, kind)
            count[one.outcome] += 1
            if LINES:
                print(
                    f"{kind:28} {name:7} {seed} {way:9} {one.outcome:8}"
                    f" {one.error:+7.1f} +- {one.half:5.1f} %  {one.words[:150]}",
                    flush=True,
                )
    return count


def figures() -> Iterator[Figure]:
    counts = {(kind, way): counted(kind, way) for way in WAYS for kind in CORRUPTIONS}
    if MARKDOWN:
        write_between(Path(MARKDOWN), START, END, table(counts))
    for way in WAYS:
        total: Counter[str] = Counter()
        for kind in CORRUPTIONS:
            count = counts[kind, way]
            if kind != "clean":
                total += count
            words = ", ".join(f"{count[x]} {x}" for x in ("refused", "doubted", "inside"))
            yield Figure(
                f"{way}_{kind.replace(' ', '_')}",
                f"{way}, {kind}: {words}; silently wrong",
                count["SILENT"],
                "",
                goal=0,
            )
        yield Figure(
            f"{way}_silent",
            f"{way}: of {total.total()} corrupted cells, silently wrong",
            total["SILENT"],
            "",
            goal=0,
        )


def table(counts: dict[tuple[str, str], Counter[str]]) -> list[str]:
    """What became of each corruption: inside / blocked or refused / trusted and wrong."""
    lines = [f"| recording | {' | '.join(WAYS)} |", "|---" * (1 + len(WAYS)) + "|"]
    for kind in CORRUPTIONS:
        entries = []
        for way in WAYS:
            count = counts[kind, way]
            blocked = count["refused"] + count["doubted"]
            entries.append(f"{count['inside']} / {blocked} / {count['SILENT']}")
        lines.append(f"| {kind} | {' | '.join(entries)} |")
    return lines
