"""Runs of an arm with a known payload, computed by the model itself, with noise on the torques."""

import numpy as np

from conftest import lively_motion
from steelyard.inertia import InertialParameters
from steelyard.recording import Samples

LOAD = InertialParameters.from_com(3.5, [0.02, -0.03, 0.06], np.diag([0.02, 0.03, 0.025]))


def moving(robot, seed, noise, trajectory_seed=1):
    """A motion of all joints; `noise` is the standard deviation of the torques [Nm]."""
    q, v, a = lively_motion(robot, trajectory_seed)
    tau = robot.torque(q, v, a) + noise * np.random.default_rng(seed).normal(size=q.shape)
    return Samples(q, v, a, tau, 100.0, robot.joint_names, "measured")


def held(robot, postures, seed, noise, spread=2.0, noise_seed=None):
    """Random postures within +-spread [rad], 20 rows at rest in each."""
    rng = np.random.default_rng(seed)
    low = np.clip(robot.limits.q_min, -spread, spread)
    high = np.clip(robot.limits.q_max, -spread, spread)
    q = np.repeat(rng.uniform(low, high, size=(postures, robot.n)), 20, axis=0)
    if noise_seed is not None:
        rng = np.random.default_rng(noise_seed)
    tau = robot.gravity_torque(q) + robot.drive.offset + noise * rng.normal(size=q.shape)
    return Samples(q, 0 * q, 0 * q, tau, 100.0, robot.joint_names, "measured")
