"""A fleet of simulated arms: how quickly its logs become factors, and whether planted changes are found.

Motions and the torques of the links come from MuJoCo, for two arms of one type with other link masses, empty
and with three loads; friction, gains, temperature and noise of each log are its own. Planted are rising
friction, a changed tool, a wrong configured payload, a scaled gain, a log of another arm, and broken files.
"""

from __future__ import annotations

import csv
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from steelyard.inertia import InertialParameters
from steelyard.io import write_recording
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.simulation import simulate
from steelyard.trajectory import FourierTrajectory

ARMS, LOGS, DURATION_S, RATE_HZ = 40, 50, 60.0, 125.0
TOOL, LOAD = 0.7, 2.0
"""What a changed tool weighs more, and the part that is carried, [kg]."""
RATE = 0.05
MOTIONS, VARIANTS = 2, 2
START = datetime(2026, 1, 1, 6, tzinfo=UTC)


@dataclass(frozen=True)
class Planted:
    """What is wrong with an arm, from which log on, and with which of its series."""

    kind: str
    joint: int
    start: int


def planted(arms: int, logs: int) -> dict[int, Planted]:
    """Arms with changes, two of each kind where there are enough arms."""
    middle = logs // 2
    kinds = [
        Planted("Fc", 2, middle),
        Planted("tool", 0, middle + logs // 8),
        Planted("load", 0, 0),
        Planted("gain", 3, middle),
    ]
    chosen = [*kinds, *(replace(k, joint=k.joint and k.joint - 1) for k in kinds)]
    return {1 + 4 * i: what for i, what in enumerate(chosen) if 1 + 4 * i < arms}


def _simulated(variant: int, motion: int, load: float, duration_s: float) -> dict[str, np.ndarray]:
    """Motion and torque behind the gears, by MuJoCo."""
    robot = _arm(variant)
    low, high = np.clip(robot.limits.q_min, -2.0, 2.0), np.clip(robot.limits.q_max, -2.0, 2.0)
    speed = np.minimum(robot.limits.v_max, 1.5)
    series = FourierTrajectory.random(
        (low + high) / 2,
        reach=(high - low) / 2,
        speed=speed,
        period_s=duration_s,
        harmonics=10,
        seed=7 + motion,
    )
    body = InertialParameters.from_com(load, (0.02, -0.01, 0.09), 0.004 * load * np.eye(3), robot.flange)
    truth = simulate(robot, series, payload=body if load else None, rate_hz=RATE_HZ).truth
    return {"t": truth.t, "q": truth.q, "v": truth.v, "a": truth.a, "tau": truth.tau_link}


def _arm(variant: int):
    """The arm; another one of its type has other link masses."""
    robot = load_robot("ur10")
    if variant == 0:
        return robot
    links = [
        InertialParameters.from_vector(body.vector * (1.12 if k % 2 else 0.9), body.frame)
        for k, body in enumerate(robot.links)
    ]
    return robot.with_links(links)


def _log(
    base: dict[str, np.ndarray], friction: float, rising: np.ndarray, gain: np.ndarray, seed: int
) -> Recording:
    """A log of a simulated motion with friction, gains and noise of its own."""
    robot, rng = load_robot("ur10"), np.random.default_rng(seed)
    drive = replace(
        robot.drive,
        coulomb=(np.abs(robot.drive.coulomb) + 1.0) * friction * rising,
        viscous=robot.drive.viscous * friction,
    )
    tau = base["tau"] + drive.rotor_inertia * base["a"] + drive.friction(base["v"])
    white, slow = rng.normal(size=(2, *tau.shape))
    smooth = np.apply_along_axis(lambda x: np.convolve(x, np.full(25, 0.2), "same"), 0, slow)
    noise = np.array([0.6, 0.8, 0.4, 0.15, 0.15, 0.1])
    tau = (tau + noise * (0.8 * white + 0.6 * smooth)) * gain
    q = base["q"] + 1e-5 * rng.normal(size=tau.shape)
    return Recording(base["t"], q, robot.joint_names, tau=tau)


def make_fleet(folder: Path, arms: int, logs: int, duration_s: float = DURATION_S, *, first: int = 0) -> Path:
    """Logs of a fleet and their catalogue; from log `first` on, those before are there."""
    folder.mkdir(exist_ok=True)
    loads = (0.0, TOOL, LOAD, LOAD + TOOL)
    cases = [(v, m, load, duration_s) for v in range(VARIANTS) for m in range(MOTIONS) for load in loads]
    with ProcessPoolExecutor(2) as pool:
        bases = dict(zip(cases, pool.map(_simulated, *zip(*cases, strict=True)), strict=True))
    wrong = planted(arms, first or logs)
    rows = []
    for arm in range(arms):
        rows += _arm_logs(folder, arm, range(first, first + logs), wrong.get(arm), bases, duration_s)
    path = folder / f"catalogue-{first}.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def _arm_logs(folder, arm, logs, wrong, bases, duration_s):
    rng = np.random.default_rng(1000 + arm)
    own, warm = rng.uniform(0.85, 1.15), 18 + 8 * np.sin(np.arange(10_000) / 9 + arm)
    here = folder / f"arm{arm:02d}"
    here.mkdir(exist_ok=True)
    for k in logs:
        draw = np.random.default_rng([arm, k])
        kind = wrong.kind if wrong is not None and k >= wrong.start else ""
        temperature = warm[k] + draw.normal() - 8 * (k % 7 == 0)
        friction = own * (1 - 0.006 * (temperature - 20)) * (1 + 0.01 * draw.normal())
        rising, gain = np.ones(6), np.ones(6)
        if kind == "Fc":
            rising[wrong.joint - 1] += 0.5 * (k - wrong.start) / 25
        if kind == "gain":
            gain[wrong.joint - 1] = 1.04
        configured = LOAD if k % 5 in (1, 3) else 0.0
        carried = configured + (TOOL if kind == "tool" else 0.0)
        if kind == "load" and configured:
            configured = LOAD - 0.7
        foreign = arm == 2 and k == 20
        base = bases[1 if foreign else 0, k % MOTIONS, carried, duration_s]
        path = here / f"{k:04d}.parquet"
        write_recording(_log(base, friction, rising, gain, 100_000 * arm + k), path)
        if (arm + k) % 97 == 5:
            _spoil(path, k)
        when = (START + timedelta(days=k)).isoformat()
        yield {
            **{"robot": f"arm{arm:02d}", "model": "ur10", "file": f"{here.name}/{path.name}", "time": when},
            **{"load": configured, "temperature": round(float(temperature), 2)},
        }


def _spoil(path: Path, k: int) -> None:
    """A file as disks and recorders leave them."""
    if k % 3 == 0:
        path.unlink()
    elif k % 3 == 1:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        path.write_bytes(os.urandom(1000))
