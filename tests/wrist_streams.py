"""Streams of a wrist sensor on a UR10 with a known load, computed by Newton-Euler."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.spatial.transform import Rotation

from measured_rows import MeasuredRow, stacked
from steelyard.inertia import InertialParameters
from steelyard.robot import load_robot
from steelyard.trajectory import FourierTrajectory
from steelyard.wrist._recording import WristSensor
from steelyard.wrist._regressor import BaseGravity, features, wrench_regressor
from steelyard.wrist.tracking import WristPath, WristTracker

LOADS = {
    "LOAD": InertialParameters.from_com(
        4.0, [0.02, -0.01, 0.07], np.diag([0.03, 0.025, 0.02]), "sensor"
    ),
    "HEAVY": InertialParameters.from_com(
        6.0, [0.0, 0.03, 0.09], np.diag([0.04, 0.04, 0.02]), "sensor"
    ),
}
NOISE = np.array([0.3, 0.3, 0.3, 0.03, 0.03, 0.03])
DRIFT = np.array([5.0, -3.0, 9.0, 0.4, -0.5, 0.3])
TILT = np.radians([1.5, -2.0])
CENTRE = np.array([0.0, -1.2, 1.0, 0.3, 0.8, 0.0])
RATE_HZ = 100.0


@dataclass(frozen=True)
class Visits:
    """Rests of 1.4 s at random postures, with 0.6 s between."""

    seed: int = 0

    def at(self, t):
        count = int(t[-1] // 2.0) + 2
        turns = np.random.default_rng(self.seed).uniform(-1.3, 1.3, (count, 6)) * [
            0.2,
            0.2,
            0.2,
            1,
            1,
            1,
        ]
        k = (t // 2.0).astype(int)
        x = np.clip((t - 2.0 * k - 1.4) / 0.6, 0, 1)[:, None]
        way = turns[k + 1] - turns[k]
        first, second = (
            (30 * x**2 - 60 * x**3 + 30 * x**4) / 0.6,
            (60 * x - 180 * x**2 + 120 * x**3) / 0.36,
        )
        return (
            CENTRE + turns[k] + (10 * x**3 - 15 * x**4 + 6 * x**5) * way,
            first * way,
            second * way,
        )


@dataclass(frozen=True)
class Jumping:
    """The lively motion; the accelerations of the last two joints jump at random instants."""

    seed: int = 0

    def at(self, t):
        q, v, a = (x.copy() for x in lively(self.seed).at(t))
        rng = np.random.default_rng([self.seed, 7])
        for joint, half_s, size in ((4, 0.85, 4.0), (5, 1.15, 6.0)):
            phase = t + rng.uniform(0, half_s)
            x = phase % half_s - half_s / 2
            sign = size * (-1.0) ** (phase // half_s)
            q[:, joint] += sign * (x**2 / 2 - half_s**2 / 8)
            v[:, joint] += sign * x
            a[:, joint] += sign
        return q, v, a


@dataclass(frozen=True)
class Shaken:
    """The lively motion; friction that changes its sign shakes joint 5 for one row, to and fro."""

    seed: int = 0

    def at(self, t):
        q, v, a = (x.copy() for x in lively(self.seed).at(t))
        pulse_s = 1 / RATE_HZ
        for k, start_s in enumerate(np.arange(6.005, t[-1], 0.77).round(2) - pulse_s / 2):
            size = 100.0 * (-1.0) ** k
            x = np.clip(t - start_s, 0.0, pulse_s)
            q[:, 4] += size * (x**2 / 2 + pulse_s * np.clip(t - start_s - pulse_s, 0.0, None))
            v[:, 4] += size * x
            a[:, 4] += size * ((t > start_s) & (t < start_s + pulse_s))
        return q, v, a


@cache
def lively(seed=0):
    return FourierTrajectory.random(
        CENTRE,
        reach=[0.5, 0.5, 0.5, 1.2, 0.9, 1.5],
        speed=[0.6, 0.6, 0.6, 2, 2, 2.5],
        period_s=10.0,
        harmonics=5,
        seed=seed,
    )


@cache
def motion(seed=0, *, rests=False, seconds=10.0, jumps=False, shaken=False):
    """Time, joint positions and how the flange moves."""
    robot, t = load_robot("ur10"), np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    path = lively(seed)
    if rests:
        path = Visits(seed)
    elif jumps:
        path = Jumping(seed)
    elif shaken:
        path = Shaken(seed)
    q, v, a = path.at(t)
    return t, q, robot.forward_kinematics(q), robot.frame_motion(q, v, a)


def rows(load="LOAD", seed=0, *, kind="joints", noise=1.0, slow=0.0, start_s=0.0, **moving):
    """The rows of a stream; `noise`, and `slow` that lasts half a second, in units of NOISE."""
    t, q, T, moved = motion(seed, **moving)
    rng = np.random.default_rng(100 + seed)
    g = np.einsum("nji,j->ni", T[:, :3, :3], BaseGravity(np.array([0, 0, -9.81])).tilted(TILT))
    x = features(g, moved.linear_acceleration, moved.angular_velocity, moved.angular_acceleration)
    wrench = wrench_regressor(x) @ LOADS[load].vector + DRIFT
    wrench += noise * NOISE * rng.normal(size=(len(t), 6))
    stays = np.exp(-1 / (0.5 * RATE_HZ))
    extra = np.zeros(6)
    for k in range(len(t) if slow else 0):
        extra = stays * extra + np.sqrt(1 - stays**2) * rng.normal(size=6)
        wrench[k] += slow * NOISE * extra
    measured = np.round(q / 6e-6) * 6e-6
    if kind == "pose":
        there = load_robot("ur10").forward_kinematics(measured)
        turn = Rotation.from_matrix(there[:, :3, :3]).as_quat()
        measured = np.hstack([there[:, :3, 3], turn * rng.choice([-1, 1], (len(t), 1))])
    elif kind == "unit":
        noisy = [
            moved.linear_acceleration + 0.02 * rng.normal(size=(len(t), 3)),
            moved.angular_velocity + 0.005 * rng.normal(size=(len(t), 3)),
        ]
        measured = np.hstack([*noisy, Rotation.from_matrix(T[:, :3, :3]).as_quat()])
    times = (t + start_s).tolist()
    return [MeasuredRow(*row) for row in zip(times, measured, wrench, strict=True)]


def path_of(stream, kind="joints", **options):
    robot = load_robot("ur10") if kind == "joints" else None
    return WristPath.calibrated(*stacked(stream[:100]), WristSensor(), robot=robot, **options)


def samples(stream, kind="joints", **options):
    path = path_of(stream, kind, **options)
    state, made = path.init(), []
    for row in stream:
        state, ready = path.step(state, *row)
        made += ready
    return made, WristTracker(path.noise)


def with_jumps(stream, *, times_s):
    """The stream with a jump of the wrench in single rows, as friction makes it at a reversal."""
    jump = np.array([24.0, -12.0, 8.0, 0.4, 2.4, -1.6])
    rows_of_jumps = {round(t * RATE_HZ) for t in times_s}
    return [
        row._replace(effort=row.effort + jump * (k in rows_of_jumps))
        for k, row in enumerate(stream)
    ]
