"""A UR10 that carries a known payload, sample by sample, and the model of the empty arm."""

from functools import cache

import numpy as np

from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.recording import Sample, Samples
from steelyard.robot import load_robot
from steelyard.trajectory import FourierTrajectory

BODIES = {
    "LOAD": InertialParameters.from_com(3.5, [0.02, -0.03, 0.06], np.diag([0.02, 0.03, 0.025])),
    "LIGHT": InertialParameters.from_com(1.0, [0.01, 0.02, 0.05], np.diag([2e-3, 2e-3, 2e-3])),
}
LOAD, LIGHT = BODIES.values()
RATE_HZ = 100.0


def motion(seed, name="ur10"):
    robot = load_robot(name)
    series = FourierTrajectory.random(
        np.zeros(robot.n),
        reach=[2.0] * robot.n,
        speed=[1.5] * robot.n,
        period_s=10.0,
        harmonics=5,
        seed=seed,
    )
    return series.at(np.arange(0, 10, 1 / RATE_HZ))


def samples(robot, seed, motion_seed, noise=0.5):
    q, v, a = motion(motion_seed)
    tau = robot.torque(q, v, a) + noise * np.random.default_rng(seed).normal(size=q.shape)
    return Samples(q, v, a, tau, RATE_HZ, robot.joint_names, "measured", usable=np.abs(v) >= 0.01)


@cache
def model():
    robot = load_robot("ur10")
    return identify(robot, [samples(robot, seed, seed + 1) for seed in (0, 1)])


@cache
def stream(motion_seed=3, load="LOAD", seed=5, start_s=0.0):
    robot = load_robot("ur10")
    part = samples(robot.with_payload(BODIES[load]) if load else robot, seed, motion_seed)
    rows = zip(part.t + start_s, part.q, part.v, part.a, part.tau, strict=True)
    return tuple(Sample.of_joints(*row) for row in rows)
