"""A small fleet: arms of three joints, logs of ten seconds with friction, load and noise."""

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from conftest import TINY, lively_motion
from steelyard.inertia import InertialParameters
from steelyard.io import write
from steelyard.recording import Recording
from steelyard.robot import DriveModel, RobotModel

START = datetime(2026, 3, 1, 6, tzinfo=UTC)
FRICTION = np.array([3.0, 4.0, 2.0])
NOISE = np.array([0.2, 0.2, 0.1])


def tiny_arm(folder: Path) -> RobotModel:
    """The arm of the tests, and its URDF in a folder."""
    path = folder / "tiny.urdf"
    path.write_text(TINY["revolute"])
    return RobotModel.from_urdf(path)


def log(
    robot, seed, *, load=0.0, friction=FRICTION, gain=1.0, duration_s=10.0, links=1.0
) -> Recording:
    """A recording of the arm; every seed has noise of its own, every second one another motion."""
    rng = np.random.default_rng(seed)
    q, v, a = lively_motion(robot, seed % 2 + 1, duration_s)
    pairs = zip(robot.links, np.broadcast_to(links, 3), strict=True)
    bodies = [
        InertialParameters.from_vector(body.vector * size, body.frame) for body, size in pairs
    ]
    drive = DriveModel(np.zeros(3), friction, 2.0 * np.ones(3), np.array([0.3, -0.2, 0.1]))
    arm = robot.with_links(bodies).with_drive(drive)
    tau = arm.torque(q, v, a)
    if load:
        body = InertialParameters.from_com(
            load, (0.03, 0.02, 0.1), 0.01 * load * np.eye(3), robot.flange
        )
        tau = tau + robot.payload_regressor(q, v, a) @ body.vector
    tau = (tau + NOISE * rng.normal(size=tau.shape)) * gain
    return Recording(0.01 * np.arange(len(q)), q, robot.joint_names, tau=tau)


def write_catalogue(folder: Path, rows, name="catalogue.csv") -> Path:
    """Rows as a table; missing cells stay empty."""
    path = folder / name
    names = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    return path


def tiny_fleet(folder: Path, arms=2, logs=6, **changes) -> tuple[Path, list[dict]]:
    """Logs of some arms, the second, fifth, ... of each loaded with 1.5 kg, and their catalogue.

    `changes[robot](k)` gives what is special about log k of that arm.
    """
    robot, rows = tiny_arm(folder), []
    for i in range(arms):
        for k in range(logs):
            name, special = f"arm{i}", changes.get(f"arm{i}", lambda k: {})(k)
            load = special.pop("configured", 1.5 if k % 3 == 1 else 0.0)
            carried = special.pop("load", load)
            path = folder / f"{name}-{k:02d}.npz"
            write(log(robot, 100 * i + k, load=carried, **special), path)
            rows.append(
                {
                    **{"robot": name, "model": "tiny.urdf", "file": path.name, "load": load},
                    "time": (START + timedelta(days=k)).isoformat(),
                }
            )
    return write_catalogue(folder, rows), rows
