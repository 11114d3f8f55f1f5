"""Shifts by the equations of motion alone, within milliseconds; MuJoCo has its own test."""

from dataclasses import replace
from functools import cache

import numpy as np

import steelyard as sy
from steelyard.payload import Part
from steelyard.recording import Preparation, Recording
from steelyard.simulation import PlannedFault, ShiftPlan
from steelyard.simulation._shift import _Path
from steelyard.trajectory import FourierTrajectory

RATE_HZ = 125.0
NOISE = np.array([0.8, 0.8, 0.5, 0.25, 0.25, 0.2])
CARRY = [
    [0.3, -1.3, 1.9, -2.1, -1.57, 0.2],
    [0.6, -1.6, 1.7, -1.7, -1.57, 0.5],
    [1.2, -1.6, 1.7, -1.7, -1.4, 0.9],
    [1.5, -1.25, 1.8, -2.1, -1.57, 1.2],
]
HOUSING = Part("housing", 2.0, 0.02, (0.0, 0.01, 0.08), 0.01)
COVER = Part("cover", 1.0, 0.02, (0.0, 0.0, 0.06), 0.01)
FAULTS = (
    PlannedFault(4, "missing"),
    PlannedFault(6, "double"),
    PlannedFault(8, "heavier", share=0.15),
    PlannedFault(10, "lost"),
)


@cache
def arm():
    """The robot."""
    return sy.load_robot("ur10e")


@cache
def model():
    """The identified arm."""
    runs = [empty_run(arm(), seed) for seed in (1, 2)]
    how = Preparation(cutoff_hz=10.0)
    return sy.identify(arm(), runs, friction="linear", preparation=how)


@cache
def faulty():
    """A log with four faults, and what was really picked."""
    return shift(arm(), plan(faults=FAULTS), 11)


def plan(**changes):
    """A shift of twelve picks of one part."""
    given = {"carry": CARRY, "parts": (HOUSING,), "cycles": 12, "mass_std": 0.002}
    return ShiftPlan(**(given | changes))


def empty_run(robot, seed):
    """A run of the empty arm on a random motion."""
    motion = FourierTrajectory.random(
        [0.6, -1.4, 1.5, -1.7, -1.57, 0.5],
        reach=1.0,
        speed=1.5,
        period_s=12.0,
        harmonics=6,
        seed=seed,
    )
    t = np.arange(0.0, 12.0, 1 / RATE_HZ)
    q, v, a = motion.at(t)
    return _recording(robot, t, q, robot.torque(q, v, a), seed)


def shift(robot, made, seed):
    """The recording of a shift, and what was really picked."""
    path = _Path.of(made, robot, seed)
    t = np.arange(0.0, path.duration_s, 1 / RATE_HZ)
    q, v, a = path.at(t)
    changes = sorted(path.changes, key=lambda change: change.t_s)
    tau = robot.torque(q, v, a)
    ends = [change.t_s for change in changes[1:]] + [np.inf]
    for change, end_s in zip(changes, ends, strict=True):
        rows = (t >= change.t_s) & (t < end_s)
        if change.body is not None and rows.any():
            tau[rows] = robot.with_payload(change.body).torque(q[rows], v[rows], a[rows])
    recording = _recording(robot, t, q, tau, seed)
    return replace(recording, gripper=path.gripper(t)[:, None]), path.picks


def _recording(robot, t, q, tau, seed):
    noise = np.random.default_rng([seed, 5]).normal(size=tau.shape) * NOISE
    return Recording(t, q, robot.joint_names, tau=tau + noise)
