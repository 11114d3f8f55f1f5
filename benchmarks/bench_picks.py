"""Picks of simulated shifts: accuracy, intervals, faults, false alarms; real UR10e carries.

A shift has twenty picks of one part with five faults, in one of four worlds of friction that heats:

    law         Coulomb and viscous friction that grows with the load, as the model's law has it
    asymmetric  Coulomb and viscous friction differ by direction, by 10 and 15 %
    memory      Stribeck friction whose speed is delayed by 40 ms, so that it forms a loop
    ripple      Coulomb friction varies by 10 % over the position

The law of the models, `load-asymmetric`, has the friction of the first two, but for the curved
speed law of the ur10.

Torques come from the equations of motion, with noise that remembers 30 ms; `--mujoco` makes shifts
of the first world in MuJoCo instead. Which value of the gripper means closed is stated: noise can
hide the lightest parts from the first stretches, which is then refused. Seeds below 100 chose
thresholds, with the arms ur10e, ur10 and tx60; seeds from 100 on, and the arm iiwa14, chose
nothing.

Whether a missing part, two parts and 8 % more can be noticed is said beforehand by the preview of
the motion, from a dry cycle of its own; 8 % more also by the bound, where it allows 95 % at the
stated rate of false alarms.

    python benchmarks/bench_picks.py --seeds 0-1              to choose
    python benchmarks/bench_picks.py --seeds 300              to report
    python benchmarks/bench_picks.py --seeds 300 --mujoco     to report
    python benchmarks/bench_picks.py --real                   carries of the real UR10e
    python benchmarks/bench_picks.py --row-time               processor time of a row of a stream
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

import steelyard as sy
from steelyard._computing import one_blas_thread
from steelyard._units import NORMAL_95
from steelyard.identification import DynamicModel
from steelyard.live import Row
from steelyard.live._picks import PickWatcher
from steelyard.payload import Part
from steelyard.picking import Pick, PickingOptions
from steelyard.picking._carry import Carry, Mass
from steelyard.picking._dry import DryCycle
from steelyard.picking._foresight import _DETECTED_DEVIATIONS
from steelyard.picking._segments import Stretch
from steelyard.picking._weigher import StretchWeigher
from steelyard.recording import Preparation, Recording, Samples
from steelyard.robot import RobotModel
from steelyard.simulation import (
    PlannedFault,
    SensorModel,
    ShiftPlan,
    TruePick,
    simulate_shift,
)
from steelyard.simulation._sensors import ar1_noise
from steelyard.simulation._shift import _Path
from steelyard.trajectory import FourierTrajectory
from steelyard.workflow._picks import Picking

DATA = Path(__file__).parents[2] / "shared" / "data"
RATE_HZ = 125.0
CORRELATION_S = 0.03
NOISE_SHARE = 0.1  # of the Coulomb friction
WORLDS = ("law", "asymmetric", "memory", "ripple")
TOLERANCE = 0.01  # of a part, relative
MASSES = (0.2, 0.5, 2.0, 5.0)
PATHS = {
    "ur10e": [
        [0.3, -1.3, 1.9, -2.1, -1.57, 0.2],
        [0.6, -1.6, 1.7, -1.7, -1.57, 0.5],
        [1.2, -1.6, 1.7, -1.7, -1.4, 0.9],
        [1.5, -1.25, 1.8, -2.1, -1.57, 1.2],
    ],
    "tx60": [
        [-0.6, 0.5, 1.6, 0.1, 0.9, 0.0],
        [-0.3, 0.1, 1.5, 0.2, 1.2, 0.3],
        [0.5, 0.1, 1.4, 0.2, 1.3, 0.5],
        [0.9, 0.6, 1.5, 0.1, 0.9, 0.8],
    ],
}
PATHS["ur10"] = PATHS["ur10e"]
PATHS["iiwa14"] = [
    [0.2, 0.9, 0.1, -1.3, 0.0, 0.9, 0.2],
    [0.5, 0.6, 0.0, -1.5, 0.1, 1.0, 0.5],
    [1.0, 0.6, -0.1, -1.5, 0.1, 1.1, 0.8],
    [1.4, 0.9, 0.0, -1.2, 0.0, 1.0, 1.1],
]
FAULTS = ("missing", "double", "heavier", "lost", "slipped")
PREVIEWED = {
    "missing": "a missing part instead",
    "double": "two parts instead",
    "heavier": "+8 %",
}


@dataclass(frozen=True)
class Place:
    """An arm in a world, with a seed."""

    arm: str
    world: str
    seed: int


@dataclass(frozen=True)
class Result:
    """One pick beside its truth; `previewed`: faults that are visible by the preview."""

    place: Place
    mass: float
    true: TruePick
    pick: Pick
    bound: float
    previewed: frozenset[str]


@cache
def robot(name: str) -> RobotModel:
    """The arm with friction that grows with the load."""
    arm = sy.load_robot(name)
    coulomb = np.maximum(np.abs(arm.drive.coulomb), 0.5)
    drive = replace(arm.drive, coulomb=coulomb, load_coulomb=np.full(arm.n, 0.03))
    return arm.with_drive(drive)


def torque_std(name: str) -> np.ndarray:
    """Noise of each joint [Nm]."""
    return NOISE_SHARE * np.asarray(robot(name).drive.coulomb)


def unknown_friction(place: Place, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Friction that the law of the model does not contain, (N, n) [Nm]."""
    drive = robot(place.arm).drive
    sign = np.tanh(v / 0.01)
    coulomb = np.asarray(drive.coulomb)
    if place.world == "asymmetric":
        return (v > 0) * (0.10 * coulomb * sign + 0.15 * drive.viscous * v)
    if place.world == "memory":
        kept = np.exp(-1 / (RATE_HZ * 0.04))
        slow = lfilter([1 - kept], [1, -kept], np.abs(v), axis=0)
        return 0.2 * coulomb * np.exp(-((slow / 0.1) ** 2)) * sign
    if place.world == "ripple":
        turns = 9 + 2 * np.arange(q.shape[1])
        return 0.10 * coulomb * np.sin(turns * q) * sign
    return np.zeros_like(v)


def recording(place: Place, t: np.ndarray, motion: tuple[np.ndarray, ...], tau: np.ndarray, seed):
    """Readings of the sensors."""
    q, v, _ = motion
    generator = np.random.default_rng([place.seed, seed])
    noise = ar1_noise(tau.shape, 1 / RATE_HZ, correlation_s=CORRELATION_S, generator=generator)
    total = tau + unknown_friction(place, q, v) + torque_std(place.arm) * noise
    encoder = np.round(q / 1e-5) * 1e-5
    return Recording(t, encoder, robot(place.arm).joint_names, tau=total)


def warm(arm: RobotModel, factor: float) -> RobotModel:
    """The arm with other friction."""
    drive = arm.drive
    return arm.with_drive(
        replace(drive, coulomb=factor**0.5 * drive.coulomb, viscous=factor * drive.viscous)
    )


@cache
def model(place: Place) -> DynamicModel:
    """The arm, identified from three empty runs of other days."""
    runs = []
    centre = np.mean(PATHS[place.arm], axis=0)
    t = np.arange(0.0, 15.0, 1 / RATE_HZ)
    for k in range(3):
        motion = FourierTrajectory.random(
            centre, reach=0.9, speed=1.5, period_s=15.0, harmonics=6, seed=1000 * place.seed + k
        ).at(t)
        day = 1 + 0.05 * np.random.default_rng([place.seed, k]).normal()
        tau = warm(robot(place.arm), day).torque(*motion)
        runs.append(recording(place, t, motion, tau, 50 + k))
    how = Preparation(cutoff_hz=8.0)
    return sy.identify(sy.load_robot(place.arm), runs, friction="load-asymmetric", preparation=how)


def plan(place: Place, mass: float, index: int) -> ShiftPlan:
    """A shift: cycles of 3 to 6 s, fixed and varying postures, faults in turn."""
    draw = np.random.default_rng([place.seed, index])
    picks = draw.choice(np.arange(4, 21), len(FAULTS), replace=False)
    carry_s = float(draw.uniform(1.2, 2.5))
    return ShiftPlan(
        carry=PATHS[place.arm],
        parts=(Part("part", mass, TOLERANCE * mass, (0.0, 0.01, 0.08), 0.01),),
        carry_s=carry_s,
        back_s=float(draw.uniform(1.2, 2.5)),
        cycles=20,
        posture_std=0.05 * (index % 2),
        mass_std=0.003,
        com_std=0.003,
        contact_force=10.0,
        cold_friction=0.25,
        faults=tuple(PlannedFault(int(k), kind) for k, kind in zip(picks, FAULTS, strict=True)),
    )


def shift(place: Place, made: ShiftPlan, index: int) -> tuple[Recording, tuple[TruePick, ...]]:
    """The recording of a shift, by the equations of motion."""
    arm = robot(place.arm)
    seed = 100 * place.seed + index
    path = _Path.of(made, arm, seed)
    t = np.arange(0.0, path.duration_s, 1 / RATE_HZ)
    motion = path.at(t)
    changes = sorted(path.changes, key=lambda change: change.t_s)
    times = [change.t_s for change in changes] + [path.duration_s + 1.0]
    tau = np.empty_like(motion[0])
    for start, end, body in zip(
        [0.0, *times[:-1]], times, [None, *(change.body for change in changes)], strict=True
    ):
        rows = (t >= start) & (t < end)
        factor = 1 + made.cold_friction * np.exp(-start / made.warm_up_s)
        now = warm(arm, factor)
        if body is not None:
            now = now.with_payload(body)
        if rows.any():
            tau[rows] = now.torque(*(x[rows] for x in motion))
    _add_contacts(arm, path, t, motion[0], tau)
    log = recording(place, t, motion, tau, index)
    return replace(log, gripper=path.gripper(t)[:, None]), path.picks


def _add_contacts(arm: RobotModel, path: _Path, t: np.ndarray, q: np.ndarray, tau: np.ndarray):
    """Adds the torques of forces while parts are lifted and placed."""
    weight = replace(Part("contact", 1.0)).body(1.0, arm.flange)
    loaded = arm.with_payload(weight)
    for push in path.contacts(arm):
        rows = (t >= push.start_s) & (t < push.start_s + push.duration_s)
        still = np.zeros_like(q[rows])
        pull = loaded.torque(q[rows], still, still) - arm.torque(q[rows], still, still)
        tau[rows] += -push.force_world[2] / 9.81 * pull


def bounds(found: Picking, place: Place) -> list[float]:
    """The Cramer-Rao bound of each carry [kg].

    Noise is the true one; friction is known as after the unloaded stretch before; links are known.
    """
    rho = np.exp(-1 / (RATE_HZ * CORRELATION_S))
    slow = torque_std(place.arm) * np.sqrt((1 + rho) / (1 - rho))
    weigher = found.weigher
    exact = replace(weigher.arm, weights=1 / slow)
    state = weigher.init()
    out = []
    for stretch in found._stretches():
        if stretch.counting_s < found.options.min_carry_s:
            continue
        if stretch.closed:
            out.append(Carry.of(exact, state.arm, stretch, weigher.parts[0]).mass.own_std)
        else:
            carry = Carry.of(exact, state.arm, stretch, weigher.parts[0])
            state = replace(state, arm=carry.before.after(carry.whole, stretch.weighed_s))
    return out


def previewed(place: Place, made: ShiftPlan, index: int) -> frozenset[str]:
    """The faults that would be noticed by a preview of the motion, from a dry cycle."""
    cycles = 4
    nothing = tuple(PlannedFault(k + 1, "missing") for k in range(cycles))
    dry, _ = shift(place, replace(made, cycles=cycles, faults=nothing), 10 + index)
    options = PickingOptions(closed="high")
    found = Picking(model(place), dry, made.parts, options).visible
    visible = {one.fault for one in found if one.visible}
    return frozenset(fault for fault, words in PREVIEWED.items() if words in visible)


def results(places: list[Place], *, mujoco: bool) -> list[Result]:
    """All picks of some places."""
    out = []
    for place in places:
        for index, mass in enumerate(MASSES):
            made = plan(place, mass, index)
            if mujoco:
                sensors = SensorModel(
                    torque_std=torque_std(place.arm),
                    torque_correlation_s=CORRELATION_S,
                    wrist_sensor=False,
                )
                simulated = simulate_shift(
                    robot(place.arm), made, sensors=sensors, seed=100 * place.seed + index
                )
                log, truth = simulated.recording, simulated.picks
            else:
                log, truth = shift(place, made, index)
            found = Picking(model(place), log, made.parts, PickingOptions(closed="high"))
            limits = bounds(found, place)
            visible = previewed(place, made, index)
            picks = found.shift.picks
            if len(picks) != len(truth) or len(limits) != len(truth):
                print(f"{place}: {len(picks)} picks of {len(truth)}", flush=True)
                continue
            out += [
                Result(place, mass, true, pick, bound, visible)
                for true, pick, bound in zip(truth, picks, limits, strict=True)
            ]
        print(f"{place}: done", file=sys.stderr, flush=True)
    return out


def report(found: list[Result]) -> None:
    """Prints the tables."""
    print("world       arm    mass  RMS g  bound g  ratio  inside %  picks")
    for world in WORLDS:
        for arm in PATHS:
            for mass in MASSES:
                _accuracy(f"{world:10s}  {arm:6s} {mass:4.1f}", _chosen(found, world, arm, mass))
    for mass in MASSES:
        _accuracy(f"all               {mass:5.1f}", [r for r in found if r.mass == mass])
    _accuracy("all                    ", found)
    for arm in PATHS:
        _accuracy(f"all         {arm:6s}     ", [r for r in found if r.place.arm == arm])
    print("fault      mass  found")
    for fault in FAULTS:
        for mass in MASSES:
            cases = [r for r in found if r.true.fault == fault and r.mass == mass]
            if cases:
                seen = sum(r.pick.is_alarm for r in cases)
                print(f"{fault:9s}  {mass:4.1f}  {seen} of {len(cases)}")
    _report_previews(found)
    _report_bounds(found)
    good = [r for r in found if r.true.fault == "good"]
    false = [r for r in good if r.pick.is_alarm]
    print(f"false alarms: {len(false)} of {len(good)} good picks")
    for r in false:
        print(f"  {r.place} {r.mass} kg: {r.pick.line}")
    unclear = sum(not r.pick.is_alarm and str(r.pick.decision) != "good" for r in good)
    print(f"unclear: {unclear} of {len(good)} good picks")


def _report_previews(found: list[Result]) -> None:
    """Prints how many faults were found where the preview said yes, and where it said no."""
    for fault in PREVIEWED:
        for words, visible in (("yes", True), ("no", False)):
            for mass in MASSES:
                cases = [r for r in found if r.true.fault == fault and r.mass == mass]
                cases = [r for r in cases if (fault in r.previewed) == visible]
                if cases:
                    seen = sum(r.pick.is_alarm for r in cases)
                    print(f"{fault}, preview '{words}'  {mass:4.1f}  {seen} of {len(cases)}")


def _report_bounds(found: list[Result]) -> None:
    """Prints heavier parts beside the deviation that 95 % of them need, and the bound."""
    print("arm     mass  needs g  bound g  8 % more found where the bound allows it, of all")
    limits = PickingOptions().limits
    for arm in PATHS:
        for mass in MASSES:
            cases = [r for r in found if r.true.fault == "heavier" and r.mass == mass]
            cases = [r for r in cases if r.place.arm == arm]
            if not cases:
                continue
            needed = (0.08 - TOLERANCE) * mass / (limits.deviations + _DETECTED_DEVIATIONS)
            bound = float(np.median([r.bound for r in cases]))
            possible = [r for r in cases if r.bound <= needed]
            seen = sum(r.pick.is_alarm for r in possible)
            everywhere = sum(r.pick.is_alarm for r in cases)
            print(
                f"{arm:6s}  {mass:4.1f}  {1e3 * needed:6.1f}  {1e3 * bound:7.1f}"
                f"  {seen} of {len(possible)}, {everywhere} of {len(cases)}"
            )


def _chosen(found: list[Result], world: str, arm: str, mass: float) -> list[Result]:
    return [r for r in found if r.place.world == world and r.place.arm == arm and r.mass == mass]


def _accuracy(words: str, found: list[Result]) -> None:
    kept = [r for r in found if r.true.fault not in ("lost", "slipped") and r.pick.mass]
    kept = [r for r in kept if r.true.number > 1]  # no unloaded stretch came before the first pick
    if not kept:
        return
    error = np.array([r.pick.mass.value - r.true.mass for r in kept])
    std = np.array([r.pick.mass.std for r in kept])
    rms = np.sqrt(np.mean(error**2))
    bound = np.sqrt(np.mean([r.bound**2 for r in kept]))
    inside = np.mean(np.abs(error) < NORMAL_95 * std)
    print(
        f"{words}  {1e3 * rms:5.1f}  {1e3 * bound:6.1f}  {rms / bound:5.2f}"
        f"  {100 * inside:6.1f}  {len(kept)}"
    )


REAL = {
    "ur-20_02_19_14harm50secLoad": ("ur-20_02_19_14harm50sec", 2.805),
    "ur-19_12_23_load": ("ur-19_12_23_free", 1.069),
}
REAL_DAYS = (
    "ur-20_02_05-20sec_8harm",
    "ur-20_02_12-40sec_12harm",
    "ur-20_02_12-50sec_12harm",
    "ur-20_02_19_14harm50sec",
    "ur-19_12_23_free",
)
CARRY_S = 2.3


def real() -> None:
    """Carries of 2.3 s, cut from loaded runs of the real UR10e, each after the empty run's piece.

    The model comes from the empty runs of other days. The centre of the load, which a user would
    know from a drawing, is that of the other half of the loaded run, weighed by itself, with 20 mm
    of tolerance. Masses are compared with those of the scale.
    """
    with_dry = []
    for name, (empty, mass) in REAL.items():
        days = [
            sy.read(DATA / "ur10e" / "unloaded" / f"{day}.npz") for day in REAL_DAYS if day != empty
        ]
        known = sy.identify("ur10e", days, friction="presliding-load")
        for dry in (False, True):
            errors, own, total = _real_carries(known, name, empty, mass, dry=dry)
            inside = 100 * np.mean(np.abs(errors) < NORMAL_95 * total)
            print(
                f"{name}, dry cycle {dry}: {len(errors)} carries of {CARRY_S} s, {mass} kg:"
                f" RMS {1e3 * np.sqrt(np.mean(errors**2)):.0f} g, mean {1e3 * errors.mean():.0f} g,"
                f" scatter {1e3 * errors.std():.0f} g, stated own {1e3 * own:.0f} g, absolute"
                f" inside {inside:.0f} %",
                flush=True,
            )
        with_dry.append(errors)
    together = np.concatenate(with_dry)
    rms = 1e3 * np.sqrt(np.mean(together**2))
    print(f"all {len(together)} carries with a dry cycle: RMS {rms:.0f} g")


def _real_carries(
    known: DynamicModel, loaded: str, empty: str, mass: float, *, dry: bool
) -> tuple[np.ndarray, float, np.ndarray]:
    """Errors of the carries of a loaded run, their own deviation, and their deviations [kg]."""
    with_load, without = (
        Picking(known, DATA / "ur10e" / folder / f"{name}.npz").runs[0].ready
        for folder, name in (("loaded", loaded), ("unloaded", empty))
    )
    half = len(with_load) // 2
    halves = (slice(0, half), slice(half, len(with_load)))
    pairs = _real_pieces(with_load, without)
    middle_s = CARRY_S * len(pairs)  # empty and loaded pieces alternate
    out = []
    for carried, other in (halves, halves[::-1]):
        com = sy.weigh(known, with_load.rows(other)).body.com
        print(f"  centre from {other}: {np.round(1e3 * com, 1)} mm", flush=True)
        part = Part("load", mass, com=tuple(com.tolist()), com_tolerance=0.02)
        weighed = _weighed_pairs(known, part, pairs, dry=dry)
        out += [
            one
            for (_, second), one in zip(pairs, weighed, strict=True)
            if (second.start_s < middle_s) == (carried.start == 0)
        ]
    errors = np.array([one.value - mass for one in out])
    own = float(np.sqrt(np.mean([one.own_std**2 for one in out])))
    return errors, own, np.array([one.std for one in out])


def _weighed_pairs(
    known: DynamicModel, part: Part, pairs: list[tuple[Stretch, Stretch]], *, dry: bool
) -> list[Mass]:
    """What the carries weigh, each after its unloaded stretch."""
    weigher = StretchWeigher.of(known, [part], early_s=0.3, margin_s=0.0)
    state = weigher.init()
    cycle = DryCycle.of(weigher, [pair[0] for pair in pairs]) if dry else None
    out = []
    for pair in pairs:
        first, second = pair if cycle is None else map(cycle.subtracted, pair)
        state = weigher.with_empty(state, first)
        state, weighed = weigher.weighed(state, second)
        out.append(weighed.masses[0])
    return out


def _real_pieces(with_load: Samples, without: Samples) -> list[tuple[Stretch, Stretch]]:
    """Pieces of the empty and of the loaded run in turn, as an arm at work would move."""
    out = []
    rows = round(CARRY_S * with_load.rate_hz)
    for k in range(min(len(with_load), len(without)) // rows):
        pieces = []
        for samples, closed in ((without, False), (with_load, True)):
            start_s = (2 * k + closed) * CARRY_S
            piece = replace(samples.rows(slice(k * rows, (k + 1) * rows)), start_s=start_s)
            end_s = start_s + CARRY_S
            pieces.append(
                Stretch.of(piece, closed=closed, start_s=start_s, end_s=end_s, margin_s=0.0)
            )
        if min(piece.counting_s for piece in pieces) >= 0.8 * CARRY_S:
            out.append((pieces[0], pieces[1]))
    return out


def row_time() -> None:
    """Prints the processor time of a row of a stream, weighed picks included."""
    place = Place("ur10e", "law", 300)
    known = model(place)
    log, _ = shift(place, plan(place, 2.0, 0), 0)
    joints = range(log.n)
    columns = ("t", *(f"q_{k}" for k in joints), *(f"tau_{k}" for k in joints), "gripper")
    table = np.column_stack([log.t, log.q, log.tau, log.gripper])
    rows = [Row(values[0], tuple(values)) for values in table.tolist()]
    part = Part("part", 2.0, 0.02)
    options = PickingOptions(closed="high")
    with one_blas_thread():
        for _ in range(3):
            watcher = PickWatcher.of(known, (part,), options, columns, "gripper", "the stream")
            began = time.process_time()
            picks = [pick for row in rows for pick in watcher.taken(row)]
            spent = time.process_time() - began
            print(f"{len(rows)} rows, {len(picks)} picks: {1e6 * spent / len(rows):.1f} us a row")


def main() -> None:
    """Reads the options."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="0-0")
    parser.add_argument("--arms", default=",".join(PATHS))
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--mujoco", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--row-time", action="store_true")
    given = parser.parse_args()
    if given.row_time:
        row_time()
        return
    if given.real:
        real()
        return
    worlds = given.worlds.split(",")
    if given.mujoco:
        worlds = ["law"]
    first, _, last = given.seeds.partition("-")
    places = [
        Place(arm, world, seed)
        for seed in range(int(first), int(last or first) + 1)
        for arm in given.arms.split(",")
        for world in worlds
    ]
    report(results(places, mujoco=given.mujoco))


if __name__ == "__main__":
    main()
