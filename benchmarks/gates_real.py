"""The real recordings of `bench_gates.py`, in a folder beside the repository.

Few loads were weighed. Where only runs of the empty arm exist, one of them is left out, the torque
of a known payload is added to it, and it is weighed with the model of the others: friction, noise
and clock are real, and the truth is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from bench_arms import recording as read_arrays

import steelyard as sy
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Recording
from steelyard.robot import RobotModel, load_robot

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
    "a fifth of the load lost half way": _lost,
}


@dataclass(frozen=True, eq=False)
class RealCase:
    """A loaded run with the empty runs of the same arm.

    Attributes:
        name: of the case
        robot: the arm
        empty: runs of the empty arm, by name
        loaded: run to weigh
        payload: that is added to it; None if the arm carried one
        truth: mass of the payload, [kg]
    """

    name: str
    robot: RobotModel
    empty: dict[str, Recording]
    loaded: Recording
    payload: InertialParameters | None
    truth: float

    @property
    def arm(self) -> str:
        return self.robot.name

    @property
    def corruptions(self) -> Sequence[str]:
        return tuple(CORRUPTIONS)

    def model(self, kept: Kept) -> sy.DynamicModel:
        """The model of the empty arm, kept by the names of its runs."""
        name = "+".join([self.robot.name, *self.empty])
        return kept(name, lambda: sy.identify(self.robot, list(self.empty.values())))

    def weighed(self, model: sy.DynamicModel, kind: str) -> Payload:
        run = self.loaded
        if self.payload is not None:
            samples = sy.prepare(
                replace(run, current=None, tau=np.array(run.q)),
                sy.Preparation(cutoff_hz=8.0, lowest_speed=0.0, trim_s=0.0),
            )
            torque = model.robot.payload_regressor(samples.q, samples.v, samples.a)
            there = np.arange(len(samples.q)) / samples.rate_hz
            t = run.t - run.t[0]
            load = torque @ self.payload.vector
            columns = [np.interp(t, there, column) for column in load.T]
            run = _added(model.robot, run, np.column_stack(columns))
        return sy.weigh(model, CORRUPTIONS[kind](model.robot, self.truth, run))


def body(robot: RobotModel, mass: float) -> InertialParameters:
    """A compact body of a mass at the flange."""
    size = 0.06 * mass ** (1 / 3)
    inertia = mass * size**2 * np.diag([0.3, 0.35, 0.25])
    return InertialParameters.from_com(
        mass, size * np.array([0.3, -0.2, 0.8]), inertia, robot.flange
    )


def real_cases() -> Iterator[RealCase]:
    """All cases."""
    if not DATA.is_dir():
        return
    yield from _ur10e()
    yield from _left_out("kr300", "arm.toml", ("A", "B", "C"), 40.0)
    yield from _left_out("xmate7p", "arm.urdf", ("p1_t1", "p1_t2", "p1_t3"), 2.0)
    yield from _left_out("xmate7p", "arm.urdf", ("p3_t1", "p3_t2", "p3_t3"), 2.0)
    yield from _halves_of_a_panda()


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


def _left_out(folder: str, file: str, names: Sequence[str], mass: float) -> Iterator[RealCase]:
    robot = load_robot(str(DATA / "arms" / folder / file))
    runs = {name: read_arrays(robot, DATA / "arms" / folder / f"{name}.npz") for name in names}
    for name, run in runs.items():
        others = {other: runs[other] for other in runs if other != name}
        yield RealCase(f"{folder}.{name}", robot, others, run, body(robot, mass), mass)


def _halves_of_a_panda() -> Iterator[RealCase]:
    robot = load_robot("panda")
    whole = sy.read(DATA / "panda" / "exciting_traj1.npz")
    middle = whole.duration_s / 2
    halves = {
        "first": whole.between(0.0, middle),
        "second": whole.between(middle, 2 * middle),
    }
    for name, other in (("first", "second"), ("second", "first")):
        empty = {other: halves[other]}
        yield RealCase(f"panda.{name}", robot, empty, halves[name], body(robot, 1.5), 1.5)
