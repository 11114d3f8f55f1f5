"""Tasks of a new user, each with simulated files and the commands that a reader of messages types.

Every task has command lines with the exit code that each must have, or cells of a notebook, some of
which must raise. As in `bench_front.py` an option (an argument in a cell) is used only where the
message before names it, and so is another arm. `mistakes` has ten typical ones, each followed by
what its message says.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from steelyard.inertia import InertialParameters
from steelyard.recording import Recording
from steelyard.robot import RobotModel, load_robot
from steelyard.simulation import SensorModel, simulate
from steelyard.trajectory import FourierTrajectory

EXAMPLE_ARMS = {
    "kinova": ("kinova_description/robots/kinova.urdf", 1.0),
    "tiago": ("tiago_description/robots/tiago.urdf", 1.5),
    "so101": ("so_arm_description/urdf/so101.urdf", 0.3),
}
"""Arms of the package example-robot-data, and the mass that each carries, [kg]."""
TORQUE_NOISE = 0.01  # of the RMS torque of each joint


Steps: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Task:
    """A task of a new user.

    Attributes:
        name: of the task
        make: writes its files into a folder, for a seed
        paths: lists of command lines with their exit codes; each list begins anew
        cells: of a notebook, and whether each must raise an error
        mass: that is carried, [kg]; None where nothing is weighed
        payload: file of the answer
    """

    name: str
    make: Callable[[Path, int], None]
    paths: tuple[Steps, ...] = ()
    cells: tuple[tuple[str, bool], ...] = ()
    mass: float | None = None
    payload: str = "payload.json"


def tasks() -> list[Task]:
    """All tasks whose files can be made here."""
    found = [_semicolons(), _wrist(), _bag(), _fleet(), _notebook(), _mistakes()]
    root = os.environ.get("EXAMPLE_ROBOT_DATA")
    if root:
        found += [_own_urdf(name, Path(root)) for name in EXAMPLE_ARMS]
    return found


def runs(robot: RobotModel, seed: int, mass: float) -> dict[str, Recording]:
    """Recordings of an arm, empty and loaded, on random motions of ten seconds."""
    com = [0.01, -0.02, 0.05]
    load = InertialParameters.from_com(mass, com, 0.002 * mass * np.eye(3), robot.flange)
    recordings = {}
    for k, (name, payload) in enumerate({"empty": None, "loaded": load}.items()):
        motion = _motion(robot, 2 * seed + k)
        q, v, a = motion.at(np.linspace(0.0, 10.0, 200))
        scale = np.sqrt(np.mean(robot.torque(q, v, a) ** 2, axis=0)) + 1e-3
        sensors = SensorModel(torque_std=TORQUE_NOISE * scale)
        run = simulate(robot, motion, payload=payload, sensors=sensors, seed=2 * seed + k)
        recordings[name] = run.recording
    return recordings


def _extended(robot: RobotModel) -> RobotModel:
    """The arm with links of some extent along every axis; MuJoCo refuses rods and plates."""
    bodies = []
    for body in robot.links:
        wider = body.inertia_com + 0.01 * np.trace(body.inertia_com) * np.eye(3)
        bodies.append(InertialParameters.from_com(body.mass, body.com, wider, body.frame))
    return robot.with_links(bodies)


def _motion(robot: RobotModel, seed: int) -> FourierTrajectory:
    limits = robot.limits
    low = np.clip(limits.q_min, -2.0, 2.0)
    high = np.clip(limits.q_max, -2.0, 2.0)
    return FourierTrajectory.random(
        (low + high) / 2,
        reach=0.8 * (high - low) / 2,
        speed=np.minimum(limits.v_max, 1.5),
        period_s=10.0,
        harmonics=5,
        seed=seed,
    )


def _table(path: Path, run: Recording, *, delimiter: str = ",", header: bool = True) -> None:
    n = run.n
    rows = np.column_stack([run.t, run.q, run.tau])
    names = ["t", *(f"{signal}_{j}" for signal in ("q", "tau") for j in range(n))]
    text = delimiter.join(names) if header else ""
    np.savetxt(path, rows, delimiter=delimiter, header=text, comments="", fmt="%.7g")
    if not header:
        path.write_text(path.read_text().lstrip("\n"))


def _own_urdf(name: str, root: Path) -> Task:
    """An own URDF with a gripper or a hand."""
    file, mass = EXAMPLE_ARMS[name]
    urdf = root / "robots" / file

    def make(there: Path, seed: int) -> None:
        (there / "arm.urdf").write_text(urdf.read_text())
        for case, run in runs(_extended(load_robot(str(there / "arm.urdf"))), seed, mass).items():
            _table(there / f"{case}.csv", run)

    steps = (
        ("identify arm.urdf empty.csv", 2),
        ("identify arm.urdf empty.csv -o model.json", 0),
        ("weigh model.json loaded.csv -o payload.json --report page.html", 0),
        ("patch payload arm.urdf payload.json -o patched.urdf", 0),
    )
    return Task(f"own URDF: {name}", make, (steps,), mass=mass)


def _semicolons() -> Task:
    """Tables without a header, with semicolons and degrees."""

    def make(there: Path, seed: int) -> None:
        for case, run in runs(load_robot("ur10"), seed, 2.2).items():
            turned = Recording(run.t, np.degrees(run.q), tau=run.tau)
            _table(there / f"{case}.csv", turned, delimiter=";", header=False)

    names = "--names t,q*6,tau*6"
    steps = (
        ("start empty.csv ur10", 2),
        ("start empty.csv ur10 --is-empty", 2),
        (f"start empty.csv ur10 --is-empty {names}", 0),
        (f"start loaded.csv ur10 --empty empty-results/model.json {names}", 0),
    )
    payload = "loaded-results/payload.json"
    return Task("semicolons, degrees, no header", make, (steps,), mass=2.2, payload=payload)


def _wrist() -> Task:
    """A table of a wrist sensor with its orientation."""
    mass = 2.0

    def make(there: Path, seed: int) -> None:
        from scipy.spatial.transform import Rotation

        rng = np.random.default_rng(seed)
        R = Rotation.random(15, random_state=rng)
        gravity = R.inv().apply([0, 0, -9.81])
        first_moment = mass * np.array([0.01, -0.03, 0.05])
        wrench = -np.column_stack([mass * gravity, np.cross(first_moment, gravity)])
        noise = rng.normal(size=wrench.shape) * [0.05, 0.05, 0.05, 0.003, 0.003, 0.003]
        drift = np.array([4.0, -2.0, 6.0, 0.2, -0.3, 0.1])
        wrench = wrench + drift + noise
        rows = np.column_stack([wrench, R.as_quat()])
        names = "Fx,Fy,Fz,Tx,Ty,Tz,qx,qy,qz,qw"
        np.savetxt(there / "ft.csv", rows, delimiter=",", header=names, comments="")

    steps = (
        ("start ft.csv", 2),
        ("start ft.csv --sensor-pose 0,0,0.04,0,0,0", 0),
        ("export ur ft-results/payload.json -o payload.script", 2),
        ("export ur ft-results/payload.json -o payload.script --as-mounted", 0),
    )
    payload = "ft-results/payload.json"
    return Task("wrist sensor table", make, (steps,), mass=mass, payload=payload)


def _bag() -> Task:
    """ROS 2 bags of a Panda whose joints have another prefix."""

    def make(there: Path, seed: int) -> None:
        robot = load_robot("panda")
        names = [name.replace("panda", "fer") for name in robot.joint_names]
        for case, run in runs(robot, seed, 1.5).items():
            _write_bag(there / case, names, run)

    effort = "--column tau=effort"
    steps = (
        ("identify panda empty", 2),
        ("identify panda empty -o model.json", 2),
        (f"identify panda empty -o model.json {effort}", 0),
        (f"weigh model.json loaded {effort} -o payload.json --report page.html", 0),
    )
    return Task("Panda bag, other prefix", make, (steps,), mass=1.5)


def _write_bag(path: Path, names: list[str], run: Recording) -> None:
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    kind = "sensor_msgs/msg/JointState"
    time, head, state = (
        store.types[name] for name in ("builtin_interfaces/msg/Time", "std_msgs/msg/Header", kind)
    )
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topic = writer.add_connection("/joint_states", kind, typestore=store)
        for t, q, tau in zip(run.t, run.q, np.asarray(run.tau), strict=True):
            ns = 1_700_000_000_000_000_000 + int(1e9 * t)
            stamp = head(time(ns // 10**9, ns % 10**9), "")
            item = state(stamp, names, q, np.zeros(0), tau)
            writer.write(topic, ns, store.serialize_cdr(item, kind))


def _fleet() -> Task:
    """A folder of logs of two arms."""

    def make(there: Path, seed: int) -> None:
        robot = load_robot("ur5e")
        for k in range(4):
            folder = there / "logs" / f"arm{k % 2}"
            folder.mkdir(parents=True, exist_ok=True)
            run = runs(robot, 100 + 4 * seed + k, 1.0)["empty"]
            _table(folder / f"{k}.csv", run)

    steps = (
        ("fleet build logs", 2),
        ("fleet build logs -o store", 2),
        ("fleet build logs -o store --robot ur5e", 0),
        ("fleet identify store", 0),
        ("fleet weigh store", 0),
        ("fleet trend store", 0),
    )
    return Task("fleet", make, (steps,))


def _notebook() -> Task:
    """A notebook with tables that have neither header nor time."""

    def make(there: Path, seed: int) -> None:
        for case, run in runs(load_robot("ur5e"), seed, 2.0).items():
            rows = np.column_stack([run.q, run.tau])
            np.savetxt(there / f"{case}.txt", rows, fmt="%.7g")
            (there / "rate.txt").write_text(f"{run.rate_hz:g}")

    read = "sy.read('{}.txt', names='q*6,tau*6', rate_hz=float(open('rate.txt').read()))"
    cells = (
        ("import steelyard as sy", False),
        ("sy.identify('ur5e', 'empty.txt')", True),
        ("sy.read('empty.txt', names='q*6,tau*6')", True),
        (f"empty = {read.format('empty')}", False),
        ("sy.weigh('ur5e', empty)", True),
        ("model = sy.identify('ur5e', empty)\nmodel", False),
        (f"payload = sy.weigh(model, {read.format('loaded')})\npayload", False),
        ("payload.to_dataframe()", False),
        ("payload.plot()", False),
        ("payload.save('payload.json')\npayload.report('page.html')", False),
    )
    return Task("notebook", make, cells=cells, mass=2.0)


SMALL_ARM = (
    """<?xml version="1.0"?><robot name="small"><link name="base"/>{links}{joints}</robot>"""
)
LINK = """<link name="{name}"><inertial><origin xyz="0.11 -0.07 0.05"/><mass value="{mass}"/>
<inertia ixx="0.08" ixy="0.004" ixz="-0.003" iyy="0.1" iyz="0.002" izz="0.09"/></inertial></link>"""
JOINT = """<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="0.2 0.1 0.3" rpy="0.4 -0.6 0.8"/><axis xyz="{axis}"/>
<limit lower="-2.5" upper="2.5" velocity="3" effort="150"/></joint>"""


def _small_arm() -> str:
    """The URDF of an arm with three joints."""
    names = ("base", "upper", "lower", "tool0")
    links = [LINK.format(name=name, mass=4.0 - k) for k, name in enumerate(names[1:])]
    axes = {"shoulder": "0 0 1", "elbow": "0 1 0", "wrist": "1 0 0"}
    joints = [
        JOINT.format(name=name, parent=names[k], child=names[k + 1], axis=axis)
        for k, (name, axis) in enumerate(axes.items())
    ]
    return SMALL_ARM.format(links="".join(links), joints="".join(joints))


def _make_mistakes(there: Path, seed: int) -> None:
    """Recordings of a small arm with a mistake each."""
    (there / "arm.urdf").write_text(_small_arm())
    robot = load_robot(str(there / "arm.urdf"))
    found = runs(robot, seed, 1.5)
    for case, run in found.items():
        _table(there / f"{case}.csv", run)
    run = found["empty"]
    _table(there / "degrees.csv", Recording(run.t, np.degrees(run.q), tau=run.tau))
    _table(there / "milliseconds.csv", Recording(1e3 * run.t, run.q, tau=run.tau))
    _table(there / "bare.csv", run, header=False)
    text = (there / "empty.csv").read_text()
    (there / "effort.csv").write_text(text.replace("tau_", "effort_"))
    _table(there / "short.csv", run.rows(slice(0, 60)))
    still = np.tile(run.q[:1], (len(run.t), 1))
    _table(there / "still.csv", Recording(run.t, still, tau=run.tau))
    hung = runs(robot.with_gravity([0.0, 0.0, 9.81]), seed, 1.5)["empty"]
    _table(there / "hung.csv", hung)
    _table(there / "ur10.csv", runs(load_robot("ur10"), seed, 1.0)["empty"])


def _mistakes() -> Task:
    """Ten typical mistakes; what the message says is done, and ends well."""

    def identified(log: str, more: str = "") -> tuple[str, int]:
        return f"identify arm.urdf {log} -o model.json{more}", 0

    def refused(log: str) -> Steps:
        return ((f"identify arm.urdf {log}", 2), (f"identify arm.urdf {log} -o model.json", 2))

    paths = (
        (*refused("degrees.csv"), identified("degrees.csv", " --degrees")),
        (*refused("milliseconds.csv"), identified("milliseconds.csv", " --column t_ms=t")),
        (*refused("bare.csv"), identified("bare.csv", " --names t,q*3,tau*3")),
        (*refused("effort.csv"), identified("effort.csv", " --column tau=effort")),
        (*refused("short.csv"), identified("empty.csv")),
        (*refused("still.csv"), identified("empty.csv")),
        (
            ("identify arm.urdf hung.csv", 2),
            ("identify arm.urdf hung.csv -o model.json", 1),
            identified("hung.csv", " --gravity 0,0,9.81"),
        ),
        (
            ("identify ur10e ur10.csv", 2),
            ("identify ur10e ur10.csv -o model.json", 0),  # torques cannot tell; it says so
            ("identify ur10 ur10.csv -o model.json", 0),
        ),
        (
            ("identify arm.urdf empty.csv", 2),
            identified("empty.csv"),
            ("weigh model.json loaded.csv -o payload.json --report page.pdf", 2),
            ("weigh model.json loaded.csv -o payload.json --report page.html", 0),
        ),
        (
            ("weigh arm.urdf loaded.csv", 2),
            ("identify arm.urdf empty.csv", 2),
            identified("empty.csv"),
            ("weigh model.json loaded.csv -o payload.json", 0),
        ),
    )
    return Task("ten mistakes", _make_mistakes, paths, mass=1.5)
