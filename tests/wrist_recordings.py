"""Recordings of a wrist sensor for tests of commands: postures at rest, a motion, a table."""

from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard.inertia import InertialParameters
from steelyard.io import write
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.wrist._regressor import features, wrench_regressor

LOAD = InertialParameters.from_com(6.0, [0.02, -0.01, 0.07], np.diag([0.06, 0.05, 0.04]), "flange")
DRIFT = np.array([4.0, -2.0, 6.0, 0.2, -0.3, 0.1])
SENSOR = """
name = "wrist"
noise = [0.1, 0.1, 0.1, 0.01, 0.01, 0.01]
postures = true
[columns]
wrench = ["fx", "fy", "fz", "tx", "ty", "tz"]
quaternion = ["qx", "qy", "qz", "qw"]
"""


def recorded(robot, q, v, a, t, rng):
    motion = robot.frame_motion(q, v, a)
    g = np.einsum("nji,j->ni", robot.forward_kinematics(q)[:, :3, :3], [0, 0, -9.81])
    x = features(
        g, motion.linear_acceleration, motion.angular_velocity, motion.angular_acceleration
    )
    wrench = wrench_regressor(x) @ LOAD.vector + DRIFT
    wrench = wrench + rng.normal(size=wrench.shape) * [0.1, 0.1, 0.1, 0.01, 0.01, 0.01]
    return Recording(
        t,
        q,
        robot.joint_names,
        wrench=wrench,
        wrench_frame="flange",
        wrench_convention="load_on_sensor",
    )


def write_wrist_recordings(path: Path):
    """Two recordings of a UR10 with joints, a table of postures without, and its sensor."""
    rng = np.random.default_rng(4)
    robot = load_robot("ur10")
    postures = rng.uniform(-1.5, 1.5, size=(8, 6)).repeat(150, axis=0)
    zero = np.zeros_like(postures)
    t = np.arange(1200) / 100
    write(recorded(robot, postures, zero, zero, t, rng), path / "rest.parquet")
    t = np.arange(2000) / 250
    w, phase, size = rng.uniform(1.5, 4, 6), rng.uniform(0, 6, 6), 0.5
    q, v = size * np.sin(np.outer(t, w) + phase), size * w * np.cos(np.outer(t, w) + phase)
    write(recorded(robot, q, v, -(w**2) * q, t, rng), path / "move.parquet")
    R = Rotation.random(10, random_state=3)
    u = R.inv().apply(np.tile([0, 0, -9.81], (10, 1)))
    wrench = wrench_regressor(np.column_stack([u, np.zeros((10, 9))])) @ LOAD.vector + DRIFT
    wrench = wrench + 0.01 * rng.normal(size=(10, 6))
    rows = np.column_stack([wrench, R.as_quat()])
    np.savetxt(
        path / "table.csv", rows, delimiter=",", header="fx,fy,fz,tx,ty,tz,qx,qy,qz,qw", comments=""
    )
    (path / "sensor.toml").write_text(SENSOR)
