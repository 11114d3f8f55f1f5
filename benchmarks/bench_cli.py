"""How quickly the program starts, and the processor time of commands that should be quick.

`weigh`: an arm of six joints with motor currents, 50 s at 100 Hz. `weigh-wrist in-motion`: a sensor
that turns and swings about, known by its noisy pose alone, 17 s at 1 kHz: the slowest way.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from figure import Figure, alternating_medians_s
from scipy.spatial.transform import Rotation

import steelyard as sy
from steelyard.inertia import InertialParameters
from steelyard.robot import DriveModel
from steelyard.wrist._regressor import features, wrench_regressor

COMMAND = str(Path(sys.executable).parent / "steelyard")
LIBRARIES = (sys.executable, "-c", "import numpy, scipy, pinocchio")
LOAD = InertialParameters.from_com(3.0, [0.02, -0.03, 0.09], np.diag([0.04, 0.05, 0.03]))
SENSOR = """
name = "wrist"
[columns]
t = ["t"]
wrench = ["wrench"]
quaternion = ["quaternion"]
position = ["position"]
"""
PACE = np.array([2.1, 1.7, 2.6])


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def processor_s(*command: str) -> float:
    """The processor time of a command, of all its threads, [s]."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(*command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def beside_libraries_s(command: Sequence[str], runs: int) -> tuple[float, float]:
    """Median processor times of a command and of importing its modules, run alternately, [s]."""
    pairs = [(processor_s(*command), processor_s(*LIBRARIES)) for _ in range(runs)]
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def loaded_arm(folder: Path) -> None:
    """The model of an empty arm, and a recording of it with a load."""
    robot = sy.load_robot("ur10e")
    gain = np.array([13.0, 13.0, 11.0, 11.0, 11.0, 11.0])
    drive = DriveModel(np.full(6, 0.5), coulomb=np.full(6, 5.0), viscous=np.full(6, 3.0), gain=gain)
    robot = robot.with_drive(replace(drive, sign_width=0.02))
    for name, arm, seed in (("empty", robot, 1), ("loaded", robot.with_payload(LOAD), 2)):
        series = sy.FourierTrajectory.random(
            robot.home,
            reach=np.full(6, 1.2),
            speed=np.full(6, 1.5),
            period_s=25,
            harmonics=8,
            seed=seed,
        )
        q, v, a = series.at(np.arange(0, 50, 0.01))
        current = arm.torque(q, v, a) / gain + 0.05 * np.random.default_rng(seed).normal(
            size=q.shape
        )
        recording = sy.Recording(np.arange(len(q)) / 100, q, robot.joint_names, current=current)
        sy.write(recording, folder / f"{name}.parquet")
    sy.identify(robot, folder / "empty.parquet", friction="presliding-load").save(
        folder / "model.json"
    )


def swinging_sensor(folder: Path) -> None:
    """The table of a wrist sensor whose pose is measured, and its description."""
    t = np.arange(17_000) / 1000
    h = 1e-4
    rng = np.random.default_rng(1)

    def turned(at: np.ndarray) -> Rotation:
        return Rotation.from_rotvec(0.8 * np.sin(PACE * at[:, None] + [0, 1, 2]))

    R = turned(t)
    before, w, later = (
        (turned(t + k * h).inv() * turned(t + (k + 2) * h)).as_rotvec() / (2 * h)
        for k in (-2, -1, 0)
    )
    position = 0.1 * np.sin(PACE * t[:, None] + [2, 0, 1])
    a = R.inv().apply(-(PACE**2) * position)
    x = features(
        R.inv().apply(np.tile([0, 0, -9.81], (len(t), 1))), a, w, (later - before) / (2 * h)
    )
    noise = rng.normal(size=(len(t), 6)) * [0.3, 0.3, 0.3, 0.03, 0.03, 0.03]
    np.savez(
        folder / "sensor.npz",
        t=t,
        wrench=wrench_regressor(x) @ LOAD.vector + noise,
        quaternion=(R * Rotation.from_rotvec(2e-5 * rng.normal(size=(len(t), 3)))).as_quat(),
        position=position + 2e-5 * rng.normal(size=position.shape),
    )
    (folder / "sensor.toml").write_text(SENSOR)


def figures() -> Iterator[Figure]:
    def bare() -> None:
        run(sys.executable, "-c", "pass")

    for name, what, goal, command in (
        (
            "import",
            "import steelyard (beside a bare Python; whole process)",
            0.4,
            (sys.executable, "-c", "import steelyard"),
        ),
        ("help", "steelyard --help (beside a bare Python)", 0.6, (COMMAND, "--help")),
    ):
        ours, python = alternating_medians_s(lambda command=command: run(*command), bare)
        yield Figure(f"{name}_s", what + f": {python:.3f} s", ours, "s", goal=goal)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        loaded_arm(folder)
        swinging_sensor(folder)
        weigh = ("weigh", str(folder / "model.json"), str(folder / "loaded.parquet"))
        wrist = (str(folder / "sensor.npz"), "--sensor", str(folder / "sensor.toml"))
        for name, what, goal, words in (
            ("help", "steelyard --help", None, ("--help",)),
            ("weigh", "steelyard weigh, 50 s at 100 Hz", 1.0, weigh),
            (
                "weigh_wrist",
                "steelyard weigh-wrist in-motion, pose, 17 s at 1 kHz",
                8.0,
                ("weigh-wrist", "in-motion", *wrist),
            ),
        ):
            ours, libraries = beside_libraries_s((COMMAND, *words), runs=5)
            what = f"{what}, processor time (libraries alone: {libraries:.2f} s)"
            yield Figure(f"{name}_processor_s", what, ours, "s", goal=goal)
        picture = str(folder / "demo.png")
        ours, _ = alternating_medians_s(lambda: run(COMMAND, "demo", "-o", picture), bare, runs=3)
    yield Figure("demo_s", "steelyard demo, whole process", ours, "s", goal=60)
