"""The real recordings of `bench_gates.py`, in a folder beside the repository.

Few loads were weighed. Where only runs of the empty arm exist, one of them is left out, the torque
of a known payload is added to it, and it is weighed with the model of the others: friction, noise
and clock are real, and the truth is known.

A wrist sensor carried the same unknown load in two runs; the mean of both masses counts as true.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from bench_arms import recording as read_arrays
from bench_wrist import panda_recording
from gates_cells import Truth
from gates_runs import LOSS, WRENCHES, WRIST_CLOCK

import steelyard as sy
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Recording
from steelyard.robot import DriveModel, RobotModel, load_robot
from steelyard.wrist import WrenchSamples, weigh_dynamic

DATA = Path(__file__).parents[2] / "shared" / "data"
DAYS = (
    "ur-19_12_23_free",
    "ur-20_02_05-20sec_8harm",
    "ur-20_02_12-40sec_12harm",
    "ur-20_02_12-50sec_12harm",
    "ur-20_02_19_14harm50sec",
)
WEIGHED = {"ur-20_02_19_14harm50secLoad": 2.805, "ur-19_12_23_load": 1.069}
"""Masses that the authors of the recordings weighed, [kg]."""
OTHER_MOTIONS = ("unloaded/ur-20_01_17-ptp_10_points", "contact/collision_free")
FAULTY_MOTIONS = {
    "unloaded/ur-20_01_22-joint_1": "a single joint moves",
    "unloaded/ur-20_01_22-joint_2": "a single joint moves",
    "unloaded/ur-20_01_22-joint_3": "a single joint moves",
    "contact/collision_3link": "a link touched eleven times",
    "contact/ur-20_01_22-push_pose_1": "held still and pushed",
}
TX40_RATIOS = np.array([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
WRIST_RUNS = ("run1", "run3")
WRIST_MASS = 1.15  # [kg], about, for the size of corruptions

Kept = Callable[[str, Callable[[], Any]], Any]
Change = Callable[[RobotModel, float, Recording], Recording]


def _scaled(factor: float, robot: RobotModel, mass: float, run: Recording) -> Recording:
    if run.current is not None:
        return replace(run, current=factor * run.current)
    return replace(run, tau=factor * run.tau)


def _added(robot: RobotModel, run: Recording, torque: np.ndarray) -> Recording:
    if run.current is not None:
        return replace(run, current=run.current + torque / np.asarray(robot.drive.gain))
    return replace(run, tau=run.tau + torque)


def _pushed(newtons: float, robot: RobotModel, mass: float, run: Recording) -> Recording:
    still = np.zeros_like(run.q)
    weight = robot.payload_regressor(run.q, still, still)[:, :, 0] / 9.81
    return _added(robot, run, newtons * mass / 2.5 * weight)


def _lost(robot: RobotModel, mass: float, run: Recording) -> Recording:
    still = np.zeros_like(run.q)
    weight = robot.payload_regressor(run.q, still, still)[:, :, 0]
    later = (run.t - run.t[0] > 0.5 * run.duration_s)[:, None]
    return _added(robot, run, -0.2 * mass * weight * later)


def _clean(robot: RobotModel, mass: float, run: Recording) -> Recording:
    return run


CORRUPTIONS: dict[str, Change] = {
    "clean": _clean,
    "loaded torques x1.05": partial(_scaled, 1.05),
    "loaded torques x0.95": partial(_scaled, 0.95),
    "loaded torques x1.02": partial(_scaled, 1.02),
    "hand of 5 N": partial(_pushed, 5.0),
    "hand of 10 N": partial(_pushed, 10.0),
    LOSS: _lost,
}


TRACKED = ("clean", "loaded torques x1.05", "hand of 10 N", LOSS)
"""Those that are weighed sample by sample, too."""


class Case(Protocol):
    """Real data of one load."""

    @property
    def name(self) -> str: ...

    @property
    def arm(self) -> str: ...

    @property
    def ways(self) -> Sequence[tuple[str, str]]:
        """How it is weighed, and what is done to the data before."""

    def truth(self, way: str, kind: str) -> Truth:
        """What the answer should be."""

    def weighed(self, kept: Kept, way: str, kind: str) -> Payload:
        """The answer."""


@dataclass(frozen=True, eq=False)
class RealCase:
    """A loaded run with the empty runs of the same arm.

    Attributes:
        name: of the case
        robot: the arm
        empty: runs of the empty arm, by name
        loaded: run to weigh
        payload: that is added to it; None if the arm carried one
        mass: of the payload, [kg]
        fault: of the data as they are, in words; empty for sound ones, which are corrupted, too
    """

    name: str
    robot: RobotModel
    empty: dict[str, Recording]
    loaded: Recording
    payload: InertialParameters | None
    mass: float
    fault: str = ""

    @property
    def arm(self) -> str:
        return self.robot.name

    @property
    def ways(self) -> Sequence[tuple[str, str]]:
        if self.fault:
            return [("batch", self.fault)]
        batch = [("batch", kind) for kind in CORRUPTIONS]
        return [*batch, *(("tracking", kind) for kind in TRACKED)]

    def truth(self, way: str, kind: str) -> Truth:
        """What the answer should be; a tracker gives the load at the end."""
        mass = self.mass
        if way == "tracking" and kind == LOSS:
            mass *= 0.8
        if self.payload is None:
            return Truth(mass)
        return Truth(mass, self.payload.com.tolist())

    def weighed(self, kept: Kept, way: str, kind: str) -> Payload:
        """The answer, with a model of the empty arm that is kept by the names of its runs."""
        key = "+".join([self.robot.name, *self.empty])
        model = kept(key, lambda: sy.identify(self.robot, list(self.empty.values())))
        change = CORRUPTIONS.get(kind, _clean)
        run = change(model.robot, self.mass, self._loaded(model.robot))
        if way == "tracking":
            return sy.track(run, model=model).payload
        return sy.weigh(model, run)

    def _loaded(self, robot: RobotModel) -> Recording:
        """The loaded run, with the torque of the payload where it is added."""
        run = self.loaded
        if self.payload is None:
            return run
        samples = sy.prepare(
            replace(run, current=None, tau=np.array(run.q)),
            sy.Preparation(cutoff_hz=8.0, lowest_speed=0.0, trim_s=0.0),
        )
        torque = robot.payload_regressor(samples.q, samples.v, samples.a)
        there = np.arange(len(samples.q)) / samples.rate_hz
        t = run.t - run.t[0]
        load = torque @ self.payload.vector
        columns = [np.interp(t, there, column) for column in load.T]
        return _added(robot, run, np.column_stack(columns))


@dataclass(frozen=True)
class WristCase:
    """A run of a wrist sensor with an inertial unit on a Panda.

    Attributes:
        name: of the case
        run: name of the file
    """

    name: str
    run: str
    arm: str = "panda"

    @property
    def ways(self) -> Sequence[tuple[str, str]]:
        return [("wrist", kind) for kind in (*WRENCHES, WRIST_CLOCK)]

    def truth(self, way: str, kind: str) -> Truth:
        masses = [_weighed_wrist(name, "clean").body.mass for name in WRIST_RUNS]
        return Truth(float(np.mean(masses)))

    def weighed(self, kept: Kept, way: str, kind: str) -> Payload:
        return _weighed_wrist(self.run, kind)


@cache
def _weighed_wrist(name: str, kind: str) -> Payload:
    run = panda_recording(name)
    if kind == WRIST_CLOCK:
        changed = replace(run, t=1.1 * run.t)
    else:
        changed = replace(run, wrench=WRENCHES[kind](np.array(run.wrench), WRIST_MASS))
    return weigh_dynamic(WrenchSamples.from_imu(changed, cutoff_hz=5.0))


def body(robot: RobotModel, mass: float) -> InertialParameters:
    """A compact body of a mass at the flange."""
    size = 0.06 * mass ** (1 / 3)
    inertia = mass * size**2 * np.diag([0.3, 0.35, 0.25])
    return InertialParameters.from_com(
        mass, size * np.array([0.3, -0.2, 0.8]), inertia, robot.flange
    )


def real_cases() -> Iterator[Case]:
    """All cases."""
    if not DATA.is_dir():
        return
    yield from _ur10e()
    yield from _ur10e_faults()
    yield from _left_out("kr300", "arm.toml", ("A", "B", "C"), 40.0)
    yield from _left_out("xmate7p", "arm.urdf", ("p1_t1", "p1_t2", "p1_t3"), 2.0)
    yield from _left_out("xmate7p", "arm.urdf", ("p3_t1", "p3_t2", "p3_t3"), 2.0)
    panda = sy.read(DATA / "panda" / "exciting_traj1.npz")
    yield from _halves("panda", load_robot("panda"), panda, 1.5)
    yield from _halves("tx40", _tx40_robot(), _tx40_run(), 1.5)
    med7 = load_robot(str(DATA / "arms" / "med7" / "arm.urdf"))
    poor = read_arrays(med7, DATA / "arms" / "med7" / "measurements.npz")
    yield from _halves("med7", med7, poor, 2.0, fault="a motion that predicts no other")
    for name in WRIST_RUNS:
        yield WristCase(f"wrist.{name}", name)


@cache
def _ur10e_run(name: str) -> Recording:
    return sy.read(DATA / "ur10e" / f"{name}.npz")


def _ur10e() -> Iterator[RealCase]:
    robot = load_robot("ur10e")
    days = {name: _ur10e_run(f"unloaded/{name}") for name in DAYS}
    for name, mass in WEIGHED.items():
        loaded = _ur10e_run(f"loaded/{name}")
        yield RealCase(f"ur10e.{name}.all", robot, days, loaded, None, mass)
        same_day = {day: run for day, run in days.items() if day[:11] == name[:11]}
        yield RealCase(f"ur10e.{name}.day", robot, same_day, loaded, None, mass)
    for name, run in days.items():
        others = {day: other for day, other in days.items() if day != name}
        yield RealCase(f"ur10e.{name}.added", robot, others, run, body(robot, 2.5), 2.5)
    for name in OTHER_MOTIONS:
        run = _ur10e_run(name)
        yield RealCase(f"ur10e.{Path(name).name}.added", robot, days, run, body(robot, 2.5), 2.5)


def _ur10e_faults() -> Iterator[RealCase]:
    """Runs that cannot be weighed as they are: one joint moves, or a person touches the arm."""
    robot = load_robot("ur10e")
    days = {name: _ur10e_run(f"unloaded/{name}") for name in DAYS}
    for name, fault in FAULTY_MOTIONS.items():
        run = _ur10e_run(name)
        where = f"ur10e.{Path(name).name}.added"
        yield RealCase(where, robot, days, run, body(robot, 2.5), 2.5, fault)


def _left_out(folder: str, file: str, names: Sequence[str], mass: float) -> Iterator[RealCase]:
    robot = load_robot(str(DATA / "arms" / folder / file))
    runs = {name: read_arrays(robot, DATA / "arms" / folder / f"{name}.npz") for name in names}
    for name, run in runs.items():
        others = {other: runs[other] for other in runs if other != name}
        yield RealCase(f"{folder}.{name}", robot, others, run, body(robot, mass), mass)


def _halves(
    arm: str, robot: RobotModel, whole: Recording, mass: float, *, fault: str = ""
) -> Iterator[RealCase]:
    """Each half of a run, weighed with a model of the other half."""
    middle = whole.duration_s / 2
    halves = {
        "first": whole.between(0.0, middle),
        "second": whole.between(middle, 2 * middle),
    }
    for name, other in (("first", "second"), ("second", "first")):
        empty = {f"{arm} {other}": halves[other]}
        yield RealCase(f"{arm}.{name}", robot, empty, halves[name], body(robot, mass), mass, fault)


def _tx40_robot() -> RobotModel:
    """The TX40 of the recording: its wrist is coupled."""
    joints = json.loads((DATA / "tx40" / "kinematics.json").read_text())["joints"]
    parts = ['<robot name="tx40"><link name="link0"/>']
    for i, joint in enumerate(joints):
        xyz = " ".join(map(str, joint["xyz"]))
        rpy = " ".join(map(str, joint["rpy"]))
        axis = " ".join(map(str, joint["axis"]))
        parts.append(
            f'<link name="link{i + 1}"/><joint name="joint{i + 1}" type="continuous">'
            f'<parent link="link{i}"/><child link="link{i + 1}"/>'
            f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/></joint>'
        )
    coupling = np.diag(TX40_RATIOS)
    coupling[5, 4] = TX40_RATIOS[5]
    robot = RobotModel.from_urdf_text("".join([*parts, "</robot>"]))
    return robot.with_drive(DriveModel(np.zeros(6), coupling=coupling))


def _tx40_run() -> Recording:
    """Its run at 250 Hz: means of 20 rows each."""
    robot = _tx40_robot()
    file = np.load(DATA / "tx40" / "tx40.npz")
    zero = np.array([0.0, -np.pi / 2, np.pi / 2, 0.0, 0.0, 0.0])
    q = _means(robot.drive.joint_position(file["motor_pos_rad"]) + zero)
    tau = _means(robot.drive.joint_torque(file["motor_torque_nm"]))
    return Recording(t=np.arange(len(q)) / 250.0, q=q, tau=tau, joint_names=robot.joint_names)


def _means(rows: np.ndarray) -> np.ndarray:
    whole = len(rows) // 20
    return np.asarray(rows[: 20 * whole].reshape(whole, 20, -1).mean(axis=1))
