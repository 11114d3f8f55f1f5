"""A new user's path, timed: from a URDF with a gripper and bare tables to a patched URDF.

A fresh environment gets the wheel that is built here, with the extras that the way needs. Then five
commands, each a process of its own, as typed by a user who reads what it prints: an option is
used only where the message of the command just before names it (or that command was refused and had
it already), and the first command has none at all.

    steelyard identify arm.urdf empty.csv                                  asks for -o
    steelyard identify arm.urdf empty.csv -o model.json                    asks for --names
    steelyard identify arm.urdf empty.csv -o model.json --names ...   says how to weigh, with a page
    steelyard weigh model.json loaded.csv --names ... -o ... --report ...  says how to export
    steelyard patch payload arm.urdf payload.json -o patched.urdf

`HERE=1` takes the environment that runs this instead of a fresh one. `FRONT_SEEDS=10` walks the
tasks of `front_tasks.py` with ten seeds each (one by default), from `FIRST_SEED` on; the folder of
the package example-robot-data in `EXAMPLE_ROBOT_DATA` adds three URDFs with grippers. Blocked
answers and masses outside of their intervals are counted.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from figure import Figure
from front_tasks import Task, tasks

from steelyard._units import NORMAL_95
from steelyard.robot import robot_names

ROOT = Path(__file__).parents[1]
MASS = 2.2
COM = [0.01, -0.02, 0.06]
MOMENTS = [0.008, 0.009, 0.005]
NOISE = [1.3102, 2.5186, 1.1437, 0.3914, 0.2793, 0.3325]  # of torques [Nm], xu2024 Table VIII
MOST_S = 60.0
GRIPPER = """
  <!-- a gripper -->
  <link name="gripper"><inertial><origin xyz="0 0 0.05"/><mass value="0.9"/>
    <inertia ixx="0.002" ixy="0" ixz="0" iyy="0.002" iyz="0" izz="0.001"/></inertial></link>
  <joint name="gripper_fixed" type="fixed"><parent link="flange"/><child link="gripper"/></joint>
  <link name="left"><inertial><mass value="0.1"/>
    <inertia ixx="0.0001" ixy="0" ixz="0" iyy="0.0001" iyz="0" izz="0.0001"/></inertial></link>
  <joint name="finger_left" type="prismatic"><parent link="gripper"/><child link="left"/>
    <origin xyz="0.03 0 0.1"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="0.04" velocity="1" effort="10"/></joint>
  <link name="right"><inertial><mass value="0.1"/>
    <inertia ixx="0.0001" ixy="0" ixz="0" iyy="0.0001" iyz="0" izz="0.0001"/></inertial></link>
  <joint name="finger_right" type="prismatic"><parent link="gripper"/><child link="right"/>
    <origin xyz="-0.03 0 0.1"/><axis xyz="-1 0 0"/>
    <limit lower="0" upper="0.04" velocity="1" effort="10"/>
    <mimic joint="finger_left"/></joint>
</robot>"""


OWN_ARM_STEPS = (
    ("identify arm.urdf empty.csv", 2),
    ("identify arm.urdf empty.csv -o model.json", 2),
    ("identify arm.urdf empty.csv -o model.json --names t,q*6,tau*6", 0),
    ("weigh model.json loaded.csv --names t,q*6,tau*6 -o payload.json --report page.html", 0),
    ("patch payload arm.urdf payload.json -o patched.urdf", 0),
)


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder)
        _make_data(there)
        began = time.perf_counter()
        if os.environ.get("HERE"):
            command = [sys.executable, "-m", "steelyard"]
        else:
            command = _installed(there)
        install_s = time.perf_counter() - began
        yield Figure("install", "a fresh environment with the wheel", install_s, "s")
        before = _processor_s()
        spent = _walk(command, there, OWN_ARM_STEPS)
        processor_s = _processor_s() - before
        text = (there / "patched.urdf").read_text()
        _require("a gripper" in text, "a comment of the user's file is gone")
        _require(
            ET.fromstring(text.encode()).find("link[@name='payload']") is not None,
            "no payload in it",
        )
        _require("<canvas" in (there / "page.html").read_text(), "no scene on the page")
    yield Figure(
        "way", "URDF and CSV to page and patched URDF, five commands", spent, "s", goal=MOST_S
    )
    yield Figure("processor", "the same, processor time of all cores", processor_s, "s")
    if os.environ.get("HERE"):
        yield from _task_figures(command)


def _task_figures(command: list[str]) -> Iterator[Figure]:
    """Failed and outside answers of each task."""
    first = int(os.environ.get("FIRST_SEED", "300"))
    seeds = range(first, first + int(os.environ.get("FRONT_SEEDS", "1")))
    wanted = os.environ.get("FRONT_TASKS", "")
    for task in tasks():
        if wanted and wanted not in task.name:
            continue
        failed = 0
        outside = 0
        for seed in seeds:
            with tempfile.TemporaryDirectory() as folder:
                there = Path(folder)
                task.make(there, seed)
                try:
                    _do(command, there, task)
                except SystemExit as error:
                    print(f"seed {seed}: {error}"[:2000], file=sys.stderr, flush=True)
                    failed += 1
                    continue
                outside += not _holds(task, there)
        what = f"{task.name}: {len(seeds)} seeds, "
        yield Figure(f"{task.name} failed", f"{what}blocked or refused", failed, "", goal=0)
        yield Figure(f"{task.name} outside", f"{what}mass outside its interval", outside, "")


def _do(command: list[str], there: Path, task: Task) -> None:
    """Does a task; raises `SystemExit` where it does not go as it must."""
    for steps in task.paths:
        _walk(command, there, steps)
    if task.cells:
        _run_cells(there, task.cells)


def _run_cells(there: Path, cells: Sequence[tuple[str, bool]]) -> None:
    """Runs a notebook; arguments in a cell were named by the error or the outputs before."""
    import nbclient
    import nbformat

    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(source) for source, _ in cells]
    place = {"metadata": {"path": str(there)}}
    client = nbclient.NotebookClient(book, timeout=600, allow_errors=True, resources=place)
    client.execute()
    known = ""
    for cell, (source, raises) in zip(book.cells, cells, strict=True):
        failed = [out for out in cell.outputs if out.output_type == "error"]
        said = " ".join(out.evalue for out in failed)
        _require(bool(failed) == raises, f"{source}: {said}")
        for argument in re.findall(r"(\w+)=", source):
            _require(argument in known, f"no message has named {argument} of '{source}'")
        known += said
    _require("text/html" in book.cells[-4].outputs[-1].data, "a payload is shown without a table")


def _holds(task: Task, there: Path) -> bool:
    """Whether the interval of the weighed mass contains the truth."""
    if task.mass is None:
        return True
    found = json.loads((there / task.payload).read_text())
    return abs(found["mass"] - task.mass) <= NORMAL_95 * found["mass_std"]


def _processor_s() -> float:
    """What the processes that have ended here took, [s]."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _make_data(there: Path) -> None:
    """A user's files: an arm with a gripper, and two tables without a header."""
    from steelyard.inertia import InertialParameters
    from steelyard.io._urdf import write_urdf
    from steelyard.robot import load_robot
    from steelyard.simulation import SensorModel, simulate
    from steelyard.trajectory import FourierTrajectory

    arm = there / "arm.urdf"
    write_urdf(load_robot("ur10"), arm)
    arm.write_text(arm.read_text().replace("</robot>", GRIPPER))
    robot = load_robot(str(arm))
    sensors = SensorModel(torque_std=np.array(NOISE))
    load = InertialParameters.from_com(MASS, COM, np.diag(MOMENTS), robot.flange)
    for seed, (name, payload) in enumerate({"empty": None, "loaded": load}.items()):
        run = simulate(
            robot,
            FourierTrajectory.load("ur10_payload"),
            payload=payload,
            sensors=sensors,
            seed=seed,
        )
        rows = np.column_stack([run.recording.t, run.recording.q, run.recording.tau])
        np.savetxt(there / f"{name}.csv", rows, delimiter=",", fmt="%.6f")


def _installed(there: Path) -> list[str]:
    """The command of a fresh environment that has the wheel of these sources."""
    pip = ["-m", "pip", "--quiet", "--disable-pip-version-check"]
    python = there / "env" / "bin" / "python"
    _run([sys.executable, *pip, "wheel", "--no-deps", "-w", str(there / "wheel"), str(ROOT)])
    (wheel,) = (there / "wheel").glob("steelyard-*.whl")
    _run([sys.executable, "-m", "venv", str(there / "env")])
    pins = ["-c", str(ROOT / "constraints.txt")]
    _run([str(python), *pip, "install", *pins, f"{wheel}[cli,io,report]"])
    return [str(python.with_name("steelyard"))]


def _run(words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, env=_outside())
    _require(
        done.returncode == 0, f"{' '.join(words)}: {done.stderr} (HERE=1 needs no package index)"
    )


def _outside() -> dict[str, str]:
    """The surroundings without what leads to these sources."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def _walk(command: list[str], there: Path, steps: Sequence[tuple[str, int]]) -> float:
    """Seconds of some commands; each uses only what the message just before it has named.

    A command that was refused is typed again with its options, and what the refusal named.
    """
    spent = 0.0
    said = ""
    before = ""
    last_arms: set[str] = set()
    for words, expected in steps:
        for option in re.findall(r"(?<= )-{1,2}\w[\w-]*", words):
            named = re.search(rf"(?<![\w-]){option}\b", said + before)
            _require(
                named is not None, f"the message before has not named {option} of '{words}': {said}"
            )
        arms = set(words.split()) & {*robot_names()}
        if last_arms:
            for arm in arms - last_arms:
                named = re.search(rf"(?<![\w-]){arm}\b", said)
                _require(named is not None, f"the message before has not named {arm}: {said}")
        last_arms = arms
        began = time.perf_counter()
        every = [*command, *words.split()]
        if os.environ.get("HERE"):
            around = None
        else:
            around = _outside()
        done = subprocess.run(
            every,
            cwd=there,
            env=around,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        spent += time.perf_counter() - began
        _require(done.returncode == expected, f"{words}: {done.stdout}{done.stderr}")
        said = done.stdout + done.stderr
        if expected:
            before = words
        else:
            before = ""
    return spent


def _require(holds: bool, words: str) -> None:
    if not holds:
        raise SystemExit(words)
