"""The shortest motion that is enough: how short, and whether a weighing then knows what was predicted.

Three arms in MuJoCo, followed by a controller with tracking errors, torques with white noise: that of xu2024
Table VIII on its UR10, what their sensors have on the others. Each arm is identified from three empty runs of
10 s with the friction law that fits, the shortest motion is designed for that model, and then the loaded arm
runs it: with 100 models of fresh noise, four times each. Rows are 8 ms apart, so that accelerations are wrong
where a joint turns round: torques below 0.05 rad/s do not count. Gravity has no nominal size: it is known.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from figure import Figure

import steelyard as sy
from steelyard.excitation import DesignLimits
from steelyard.robot import JointLimits, RobotModel, load_robot
from steelyard.simulation import SensorModel, simulate
from steelyard.torque.prediction import predict
from steelyard.torque.shortest import typical_payload
from steelyard.trajectory import FourierTrajectory, load_trajectory

SEEDS = int(os.environ.get("SEEDS", "100"))
NOISE = (1.3102, 2.5186, 1.1437, 0.3914, 0.2793, 0.3325)  # xu2024 Table VIII [Nm]
PANDA = (0.15, 0.15, 0.15, 0.15, 0.03, 0.03, 0.03)
TX60 = (1.3, 1.0, 0.6, 0.3, 0.2, 0.1)
QUIET = SensorModel(encoder_step=1e-6, torque_std=0.0, wrist_sensor=False)
PER_MODEL = 4  # weighings with each model
GRAVITY = (0.0, 0.0, -9.8123)


@dataclass(frozen=True)
class Case:
    """An arm, what it carries, how well that shall be known, and how fast its joints may change speed."""

    name: str
    mass: float
    percent: float
    a_max: float
    noise: tuple[float, ...]
    centre: tuple[float, ...] = ()

    @cached_property
    def robot(self) -> RobotModel:
        arm = load_robot(self.name).with_gravity(GRAVITY)
        return arm.with_drive(replace(arm.drive, gain=None, gain_std=None))  # torques are measured

    @property
    def limits(self) -> DesignLimits:
        own = self.robot.limits
        joints = JointLimits(own.q_min, own.q_max, own.v_max, np.minimum(own.a_max, self.a_max), own.tau_max)
        return DesignLimits(joints)

    @cached_property
    def empty(self) -> list[sy.Recording]:
        """Runs of the empty arm without noise."""
        return [simulate(self.robot, motion, sensors=QUIET).recording for motion in self.motions]

    @property
    def motions(self) -> list[FourierTrajectory]:
        if self.name == "ur10":
            return [load_trajectory("xu2024")] * 3
        reach, speed = np.full(self.robot.n, 0.9), np.minimum(0.6 * self.robot.limits.v_max, 1.5)
        return [
            FourierTrajectory.random(
                self.centre, reach=reach, speed=speed, period_s=10.0, harmonics=5, seed=seed
            )
            for seed in range(3)
        ]

    def noisy(self, run: sy.Recording, rng: np.random.Generator) -> sy.Recording:
        return replace(run, tau=run.tau + rng.normal(size=run.tau.shape) * self.noise, current=None)

    def model(self, rng: np.random.Generator) -> sy.DynamicModel:
        how = sy.Preparation(lag_s=(0.0,) * self.robot.n, lowest_speed=0.05)
        runs = [self.noisy(run, rng) for run in self.empty]
        return sy.identify(self.robot, runs, friction=None, preparation=how)


CASES = (
    Case("ur10", 3.5, 1.0, 4.0, NOISE),
    Case("panda", 1.5, 6.0, 7.5, PANDA, (0.0, -0.3, 0.0, -1.8, 0.0, 1.6, 0.4)),
    Case("tx60", 2.0, 3.0, 8.0, TX60, (0.0, 0.3, 1.2, 0.2, 0.6, 0.0)),
)


def figures() -> Iterator[Figure]:
    for case in CASES:
        began = time.process_time()
        body = typical_payload(case.robot, case.mass)
        found = sy.shortest_motion(
            case.model(np.random.default_rng(999)),
            sy.Accuracy(mass=case.percent / 100 * case.mass),
            typical=body,
            limits=case.limits,
        )
        words = (
            f"{case.name}, {case.a_max:g} rad/s^2: shortest motion for {case.mass:g} kg to {case.percent:g} %"
        )
        goal = 2.5 if case.name == "ur10" else None
        yield Figure(f"{case.name}_duration", words, found.duration_s, "s", goal=goal)
        spent = time.process_time() - began
        yield Figure(
            f"{case.name}_processor", "  processor time of the search, runs included", spent, "s", 60
        )
        yield from achieved(case, found)


def achieved(case: Case, found: sy.ShortestMotion) -> Iterator[Figure]:
    """What weighings along the motion reach, beside what was predicted."""
    body, motion = found.prediction.body, found.design.trajectory
    loaded = simulate(case.robot, motion, payload=body, sensors=QUIET).recording
    z, off, inside = [], [], []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        model = case.model(rng)
        half = predict(model, motion, body).half_widths
        for _ in range(PER_MODEL):
            weighed = sy.weigh(model, case.noisy(loaded, rng)).unconstrained
            rest = (weighed.vector - body.vector)[4:]
            error = np.concatenate([[weighed.mass - body.mass], weighed.com - body.com, rest])
            z.append(1.96 * error / half)
            off.append(100 * error[0] / body.mass)
            inside.append(abs(error[0]) < half[0])
    rms = np.sqrt(np.mean(np.square(z), axis=0))
    words = f"{case.name}: error of ten numbers / predicted deviation, RMS of {len(z)}: "
    yield Figure(f"{case.name}_most", f"{words}largest", float(rms.max()), "", goal=1.15)
    least = float(rms.min())
    yield Figure(
        f"{case.name}_least", "  smallest (goal: at least 0.9), below by", max(0.9 - least, 0.0), "", 0
    )
    yield Figure(f"{case.name}_mass", "  of the mass", float(rms[0]), "")
    yield Figure(f"{case.name}_rms", "  error of the mass, RMS", float(np.sqrt(np.mean(np.square(off)))), "%")
    yield Figure(f"{case.name}_covered", "  within the predicted interval", 100 * float(np.mean(inside)), "%")
