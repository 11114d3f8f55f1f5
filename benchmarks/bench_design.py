"""The shortest sufficient motion: its length, and whether weighing is as exact as predicted.

Three arms, torques with white noise: that of xu2024 Table VIII on its UR10, what their sensors have
on the others. Each arm is identified from three empty runs of 10 s with the friction law that is
true, the shortest motion is designed for that model, and then the loaded arm runs it: SEEDS times,
each with a model of its own and fresh noise in all runs; arm, payload and motion stay the same.
Torques below 0.05 rad/s do not count. Gravity has no nominal size: it is known. Two worlds: torques
by our own equations along the motion, which is measured exactly, so that nothing but noise is
wrong; and MuJoCo, where a controller follows with errors, joints stick and slip as they turn round,
and encoders of 1e-6 rad are differentiated.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from figure import Figure

import steelyard as sy
from steelyard._units import NORMAL_95
from steelyard.excitation import DesignLimits, DesignSettings
from steelyard.inertia import InertialParameters
from steelyard.recording import Samples
from steelyard.robot import JointLimits, RobotModel, load_robot
from steelyard.simulation import SensorModel, simulate
from steelyard.torque import Accuracy, ShortestMotion, shortest_motion
from steelyard.torque._prediction import predict
from steelyard.torque._shortest import typical_payload
from steelyard.trajectory import FourierTrajectory

SEEDS = int(os.environ.get("SEEDS", "100"))
NOISE = (1.3102, 2.5186, 1.1437, 0.3914, 0.2793, 0.3325)  # xu2024 Table VIII [Nm]
PANDA = (0.15, 0.15, 0.15, 0.15, 0.03, 0.03, 0.03)
TX60 = (1.3, 1.0, 0.6, 0.3, 0.2, 0.1)
LOWEST_SPEED = 0.05  # [rad/s]
QUIET = SensorModel(encoder_step=1e-6, torque_std=0.0, wrist_sensor=False)
FIRST_SEED = 60_000
GRAVITY = (0.0, 0.0, -9.8123)
Run = TypeVar("Run", Samples, sy.Recording)


@dataclass(frozen=True)
class Case:
    """An arm, its payload, the wanted accuracy, and the accelerations that its joints allow."""

    name: str
    mass: float
    percent: float
    a_max: float
    noise: tuple[float, ...]
    rate_hz: float = 125.0
    centre: tuple[float, ...] = ()

    @cached_property
    def robot(self) -> RobotModel:
        arm = load_robot(self.name).with_gravity(GRAVITY)
        return arm.with_drive(replace(arm.drive, gain=None, gain_std=None))  # torques are measured

    @property
    def limits(self) -> DesignLimits:
        own = self.robot.limits
        joints = JointLimits(
            own.q_min, own.q_max, own.v_max, np.minimum(own.a_max, self.a_max), own.tau_max
        )
        return DesignLimits(joints)

    @property
    def motions(self) -> list[FourierTrajectory]:
        if self.name == "ur10":
            return [FourierTrajectory.load("xu2024")] * 3
        reach = np.full(self.robot.n, 0.9)
        speed = np.minimum(0.6 * self.robot.limits.v_max, 1.5)
        return [
            FourierTrajectory.random(
                self.centre, reach=reach, speed=speed, period_s=10.0, harmonics=5, seed=seed
            )
            for seed in range(3)
        ]

    @property
    def preparation(self) -> sy.Preparation:
        return sy.Preparation(lag_s=(0.0,) * self.robot.n, lowest_speed=LOWEST_SPEED)

    def by_equations(
        self, motion: FourierTrajectory, body: InertialParameters | None = None
    ) -> Samples:
        """A run by our own equations, without noise."""
        q, v, a = motion.at(np.arange(round(motion.duration_s * self.rate_hz)) / self.rate_hz)
        if body is None:
            arm = self.robot
        else:
            arm = self.robot.with_payload(body)
        return Samples(
            q=q,
            v=v,
            a=a,
            tau=arm.torque(q, v, a),
            rate_hz=self.rate_hz,
            joint_names=arm.joint_names,
            kinematics="measured",
            usable=np.abs(v) >= LOWEST_SPEED,
            preparation=self.preparation,
        )

    def in_mujoco(
        self, motion: FourierTrajectory, body: InertialParameters | None = None
    ) -> sy.Recording:
        """A run in MuJoCo, without noise of the torques."""
        return simulate(
            self.robot, motion, payload=body, sensors=QUIET, rate_hz=self.rate_hz
        ).recording

    def noisy(self, run: Run, rng: np.random.Generator) -> Run:
        return replace(run, tau=run.tau + rng.normal(size=run.tau.shape) * self.noise)

    def model(self, empty: Sequence[Run], rng: np.random.Generator) -> sy.DynamicModel:
        runs = [self.noisy(run, rng) for run in empty]
        return sy.identify(self.robot, runs, friction=None, preparation=self.preparation)


CASES = (
    Case("ur10", 3.5, 1.0, 4.0, NOISE),
    Case("panda", 1.5, 0.4, 7.5, PANDA, 250.0, (0.0, -0.3, 0.0, -1.8, 0.0, 1.6, 0.4)),
    Case("tx60", 2.0, 2.0, 8.0, TX60, 125.0, (0.0, 0.3, 1.2, 0.2, 0.6, 0.0)),
)


def figures() -> Iterator[Figure]:
    for case in CASES:
        began = time.process_time()
        body = typical_payload(case.robot, case.mass)
        recorded = [case.in_mujoco(motion) for motion in case.motions]
        found = shortest_motion(
            case.model(recorded, np.random.default_rng(999)),
            Accuracy(mass=case.percent / 100 * case.mass),
            typical=body,
            limits=case.limits,
            settings=DesignSettings(rate_hz=case.rate_hz),
        )
        words = (
            f"{case.name}, {case.a_max:g} rad/s^2: shortest motion for {case.mass:g} kg to"
            f" {case.percent:g} %"
        )
        if case.name == "ur10":
            goal = 2.5
        else:
            goal = None
        yield Figure(f"{case.name}_duration", words, found.duration_s, "s", goal=goal)
        spent = time.process_time() - began
        yield Figure(
            f"{case.name}_processor",
            "  processor time of the search, runs included",
            spent,
            "s",
            60,
        )
        motion = found.design.trajectory
        exact = [case.by_equations(each) for each in case.motions]
        yield from achieved(case, found, exact, case.by_equations(motion, body), "equations")
        yield from achieved(case, found, recorded, case.in_mujoco(motion, body), "MuJoCo")


def achieved(
    case: Case, found: ShortestMotion, empty: Sequence[Run], loaded: Run, world: str
) -> Iterator[Figure]:
    """What weighings along the motion reach, beside what was predicted."""
    body = found.prediction.body
    motion = found.design.trajectory
    z = []
    off = []
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        rng = np.random.default_rng(seed)
        model = case.model(empty, rng)
        half = predict(model, motion, body, rate_hz=case.rate_hz).half_widths
        weighed = sy.weigh(model, case.noisy(loaded, rng)).unconstrained
        rest = (weighed.vector - body.vector)[4:]
        error = np.concatenate([[weighed.mass - body.mass], weighed.com - body.com, rest])
        z.append(NORMAL_95 * error / half)
        off.append(100 * error[0] / body.mass)
    rms = np.sqrt(np.mean(np.square(z), axis=0))
    key = f"{case.name}_{world.lower()}"
    all_ten = " ".join(f"{each:.2f}" for each in rms)
    words = (
        f"{case.name}, {world}: error / predicted deviation, RMS of {len(z)}: {all_ten}; largest"
    )
    yield Figure(f"{key}_most", words, float(rms.max()), "", goal=1.15)
    least = max(0.9 - float(rms.min()), 0.0)
    yield Figure(f"{key}_least", "  smallest (goal: at least 0.9), below by", least, "", 0)
    yield Figure(
        f"{key}_mass", "  error of the mass, RMS", float(np.sqrt(np.mean(np.square(off)))), "%"
    )
    covered = 100 * float(np.mean(np.abs(z)[:, 0] < NORMAL_95))
    yield Figure(f"{key}_covered", "  masses within the predicted interval", covered, "%")
    bias = float(np.abs(np.mean(z, axis=0)).max())
    yield Figure(
        f"{key}_bias", "  what does not average out: largest mean of the ten ratios", bias, ""
    )
