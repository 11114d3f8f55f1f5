"""Friction that changes between runs, as on the paper's arm: temperature and gear load.

A drive warms up by the power that its friction turns into heat, and cools towards the ambient,

    C T' = friction power - (T - T_0) / R,       Fv(T) = Fv exp(-k (T - T_0))

with the power of the published motion by the friction law of Table VI, ten runs of 10 s with pauses
of 10 s as in section 4.3, all from 25.5 degrees. C and R are one pair for all drives, chosen so
that the warmest drive ends at the 30 degrees of Fig. 8 and would settle after half an hour; k, 2 %
for a degree, is assumed: grease gets thinner.

Worlds from kind to harsh: the friction that the paper prints without and with its payload; the
loaded run warmer by as much as Fig. 8 spans; by 20 degrees (an arm identified in the morning), with
friction that grows by 5 % of the torque that a gear carries, and offsets of the torque sensing that
have moved by a tenth of the Coulomb friction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from steelyard._arrays import Array
from steelyard.robot import RobotModel
from steelyard.simulation import SensorModel, Simulation, SimulationOptions, simulate
from steelyard.trajectory import FourierTrajectory, Trajectory
from steelyard_papers.sharing import Progress, part_of
from steelyard_papers.visit import Visit
from steelyard_papers.xu2024.arm import ur10
from steelyard_papers.xu2024.printed import TRUTH
from steelyard_papers.xu2024.published import RATE_HZ
from steelyard_papers.xu2024.simulated import World, loaded_arm, simulated_answers

AMBIENT = 25.5
WARMEST = 30.0
"""Of Fig. 8, [degrees C]."""
THINNING = 0.02  # k, [1/K], assumed
_RUNS = 10
_PERIOD_S = 20.0
_RUN_S = 10.0
_SETTLING_S = 600.0  # R C
_POSTURES = 8
_OFFSET_SHARE = 0.1
_FIRST_SEED = 700


@dataclass(frozen=True, eq=False)
class Warming:
    """The temperatures of ten runs.

    Attributes:
        t: (N,) [s]
        temperature: of each drive, (N, 6) [degrees C]
        power: of each drive's friction along the motion, at ambient temperature, (6,) [W]
    """

    t: Array
    temperature: Array
    power: Array


def warming() -> Warming:
    """Fig. 8: ten runs of the published motion."""
    robot = ur10()
    motion = FourierTrajectory.load("xu2024")
    v = motion.at(np.arange(1250) / 125.0)[1]
    drive = robot.drive
    share = np.mean((drive.friction(v) - drive.offset) * v, axis=0)
    viscous = np.mean(drive.viscous * np.abs(v) ** (drive.exponent + 1), axis=0)
    t = np.arange(0.0, _RUNS * _PERIOD_S, 0.5)

    def rise(heat: float) -> Array:
        """Temperature rise [K] of each drive if one watt warms it by `heat` kelvins in the end."""
        now = np.zeros(6)
        found = []
        for at in t:
            found.append(now)
            moves = at % _PERIOD_S < _RUN_S
            if moves:
                power = share + viscous * (np.exp(-THINNING * now) - 1)
            else:
                power = np.zeros(6)
            now = now + 0.5 / _SETTLING_S * (heat * power - now)
        return np.array(found)

    low = 0.0
    high = 100.0
    for _ in range(40):
        heat = (low + high) / 2
        if rise(heat).max() < WARMEST - AMBIENT:
            low, high = (heat, high)
        else:
            low, high = (low, heat)
    return Warming(t, AMBIENT + rise(heat), share)


@dataclass(frozen=True)
class Change:
    """The differences between the empty and the loaded run.

    Attributes:
        name: in words
        warmer: the loaded run, [K]
        load: friction over the torque that a gear carries, in both runs
        offset: change of the torque offsets over the Coulomb friction
    """

    name: str
    warmer: float = 0.0
    load: float = 0.0
    offset: float = 0.0


CHANGES = (
    Change("friction as printed without and with the payload"),
    Change(f"and {WARMEST - AMBIENT:g} K warmer (Fig. 8)", WARMEST - AMBIENT),
    Change(
        "and 20 K warmer, 5 % friction of the carried torque, offsets moved",
        20.0,
        0.05,
        _OFFSET_SHARE,
    ),
)


def harsh_world(change: Change, *, step_s: float = 0.002) -> World:
    """The runs of one world.

    Args:
        change: between them
        step_s: of the motions; the visits of postures take twice as much, [s]
    """
    robot = ur10()
    published = FourierTrajectory.load("xu2024")
    empty = _changed(robot, change, warm=False)
    loaded = _changed(loaded_arm(robot), change, warm=True)
    postures = np.random.default_rng(1).uniform(-0.7, 0.7, (_POSTURES, 6)) + robot.home
    visit = Visit(postures, rest_s=0.6, move_s=1.2)
    runs = [
        _run(arm, motion, arm is loaded, step_s if motion is published else 2 * step_s)
        for motion in (published, visit)
        for arm in (empty, loaded)
    ]
    return World(robot, loaded, runs[0], runs[1], runs[0], (runs[2], runs[3]))


def _changed(robot: RobotModel, change: Change, *, warm: bool) -> RobotModel:
    drive = robot.drive
    if warm:
        kelvins = change.warmer
    else:
        kelvins = 0.0
    moved = change.offset * drive.coulomb * np.random.default_rng(4).choice([-1.0, 1.0], 6) * warm
    changed = replace(
        drive,
        viscous=drive.viscous * np.exp(-THINNING * kelvins),
        load_coulomb=np.full(robot.n, change.load),
        offset=drive.offset + moved,
    )
    return robot.with_drive(changed)


def _run(robot: RobotModel, motion: Trajectory, carries: bool, step_s: float) -> Simulation:
    return simulate(
        robot,
        motion,
        payload=TRUTH if carries else None,
        sensors=SensorModel(torque_std=0.0, wrist_sensor=False),
        rate_hz=RATE_HZ,
        options=SimulationOptions(step_s=step_s),
    )


def harsh_answers(seeds: int, *, progress: Progress) -> dict[str, list[dict[str, Array]]]:
    """By world: for each seed the ten numbers by every method.

    Args:
        seeds: how many
        progress: called with the share that is done
    """
    found = {}
    for k, change in enumerate(CHANGES):
        world = harsh_world(change)
        done = part_of(progress, (k + 0.5) / len(CHANGES), (k + 1) / len(CHANGES))
        found[change.name] = simulated_answers(
            world, range(_FIRST_SEED, _FIRST_SEED + seeds), progress=done
        )
    return found
