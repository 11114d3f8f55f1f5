"""`weigh-live` over payloads from nothing to 9 kg: is its mass right on average, and its interval?

The simulated controller, its program, its rows and the weigher are those of the command, without
sockets and as fast as they go. Each of 20 models, identified from three runs, designs a motion
from a posture of its own and weighs two payloads with it. As the intervals assume, friction and
offsets of the drives are a new draw in every run, empty or loaded; the local gravity is known.

Most of the error is that of the model, so the two answers of a model are hardly more than one: the
standard error of a mean is that of the means of the models. It is still much larger than a bias of
a gram. That is looked for with mirrored draws: all runs of a model are made once more with the
opposite noise, friction and offsets, which are as likely. What is proportional to the draws cancels
in the mean of the four answers, and what does not cancel is a bias.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from bench_live import COLUMNS, POSTURE, arm
from figure import Figure

from steelyard._units import NORMAL_95
from steelyard.identification import DynamicModel, identify
from steelyard.inertia import InertialParameters
from steelyard.live import LiveWeigher, Row, TorqueSetup
from steelyard.live._controller import PathCommand
from steelyard.live._motion import DEFAULT_TOOL_SPEED, braking_time_s, payload_motion
from steelyard.live._ur_programs import LAST_BEAT, motion_program, register_beat
from steelyard.payload import Payload
from steelyard.robot import RobotModel
from steelyard.signals import prepare
from steelyard.simulation import SensorModel, simulate
from steelyard.trajectory import ApproachedTrajectory, FourierTrajectory
from steelyard.twin._backend import SimulatedArm
from steelyard.twin._controller import SimulatedController

MODELS = int(os.environ.get("MODELS", "20"))
MASSES = 10  # 0, 1, ... 9 kg
RATE_HZ = 500.0
BEAT_REGISTER = 47
BEAT_STEPS = 4
FIRST_SEED = int(os.environ.get("FIRST_SEED", "3000"))  # of models, postures and payloads
EMPTY_RUNS = 3
GRAVITY = (0.0, 0.0, -9.8123)  # [m/s^2], a local value
COULOMB_SPREAD = 0.01  # standard deviation between runs, relative; as a UR10e over weeks
VISCOUS_SPREAD = 0.05  # the same
OFFSET_SPREAD = 0.01  # of the offset of a drive between runs, over its Coulomb friction


class MirroredSensors(SensorModel):
    """Sensors whose torques have the opposite noise."""

    def noisy_torque(
        self, tau: np.ndarray, period_s: float, generator: np.random.Generator
    ) -> np.ndarray:
        """Measured torques of true torques tau, (N, n) [Nm]."""
        return 2 * tau - super().noisy_torque(tau, period_s, generator)


SENSORS = {1: SensorModel(), -1: MirroredSensors()}
"""Sensors of the runs as drawn, and of the mirrored ones."""


class Weighed(NamedTuple):
    """A weighed payload.

    Attributes:
        model: number of the model
        sign: 1 for the runs as drawn, -1 for the mirrored ones
        truth_kg: mass on the flange, [kg]
        mass: estimated mass, [kg]
        std: its standard deviation, [kg]
        ok: whether the answer may be used
    """

    model: int
    sign: int
    truth_kg: float
    mass: float
    std: float
    ok: bool

    @property
    def error(self) -> float:
        """Of the mass, [kg]."""
        return self.mass - self.truth_kg

    @property
    def inside(self) -> bool:
        """Whether the 95 % interval contains the true mass."""
        return abs(self.error) <= NORMAL_95 * self.std


def load(mass: float, rng: np.random.Generator, frame: str) -> InertialParameters | None:
    """A box of some size, somewhere in front of the flange; None for no mass."""
    if mass == 0:
        return None
    com = rng.uniform([-0.03, -0.03, 0.03], [0.03, 0.03, 0.12])
    sides = rng.uniform(0.06, 0.2, 3)
    moments = mass / 12 * (np.sum(sides**2) - sides**2)
    return InertialParameters.from_com(mass, com, np.diag(moments), frame)


def local_arm() -> RobotModel:
    """The arm where it stands."""
    return arm().with_gravity(GRAVITY)


def with_friction_of_the_day(robot: RobotModel, rng: np.random.Generator, sign: int) -> RobotModel:
    """The arm with the friction of another run, or with the mirrored one."""
    drive = robot.drive
    coulomb, viscous, offset = sign * rng.normal(size=(3, robot.n))
    changed = replace(
        drive,
        coulomb=(1 + COULOMB_SPREAD * coulomb) * drive.coulomb,
        viscous=(1 + VISCOUS_SPREAD * viscous) * drive.viscous,
        offset=drive.offset + OFFSET_SPREAD * offset * drive.coulomb,
    )
    return robot.with_drive(changed)


def identified(
    robot: RobotModel, rng: np.random.Generator, *, seed: int, sign: int
) -> DynamicModel:
    """The empty arm, from runs on several days."""
    motion = FourierTrajectory.load("xu2024")
    runs = [
        simulate(
            with_friction_of_the_day(robot, rng, sign),
            motion,
            seed=seed + k,
            sensors=SENSORS[sign],
        ).recording
        for k in range(EMPTY_RUNS)
    ]
    return identify(robot, [prepare(run, drive=robot.drive) for run in runs])


def program(model: DynamicModel, posture: np.ndarray) -> str:
    """The program of the motion that `weigh-live` designs from a posture."""
    core = payload_motion(model, posture, tool_speed=DEFAULT_TOOL_SPEED).trajectory
    _, v, a = core.amplitudes
    whole = ApproachedTrajectory.within(
        core, posture, v_max=np.maximum(0.5, v), a_max=np.maximum(1.0, a), periods=1
    )
    braking_s = braking_time_s(model.robot, whole, rate_hz=RATE_HZ)
    q, _, _ = whole.at(np.arange(0.0, whole.duration_s, 5 / RATE_HZ))
    return motion_program(
        PathCommand(q, RATE_HZ, 5, braking_s), register_beat(BEAT_REGISTER), number=1
    )


def rows(controller: SimulatedController, text: str) -> Iterator[Row]:
    """The rows while the program moves the arm."""
    controller.run(text)
    controller.step()
    step = 0
    while controller.program_state == "PLAYING":
        step += 1
        beat = {f"input_int_register_{BEAT_REGISTER}": 1 + step // BEAT_STEPS % LAST_BEAT}
        controller.receive_inputs(beat)
        controller.step()
        out = controller.outputs
        t = out["timestamp"][0]
        yield Row(t, (t, *out["actual_q"], *out["actual_current"]))


def weighed(model: DynamicModel, text: str, world: SimulatedArm) -> Payload:
    """What `weigh-live` says about the payload of a simulated arm."""
    weigher = LiveWeigher(TorqueSetup(model, COLUMNS))
    for row in rows(SimulatedController(world), text):
        weigher.take(row)
    payload = weigher.payload()
    if payload is None:
        raise SystemExit("nothing was weighed")
    return payload


def series(number: int) -> Iterator[Weighed]:
    """Two payloads, weighed with one model and its motion, as drawn and mirrored."""
    seed = FIRST_SEED + 100 * number
    text = ""
    for sign in SENSORS:
        rng = np.random.default_rng(seed)
        robot = local_arm()
        model = identified(robot, rng, seed=seed, sign=sign)
        posture = POSTURE + rng.uniform(-0.3, 0.3, 6)
        text = text or program(model, posture)
        for mass in (number % MASSES, (number + MASSES // 2) % MASSES):
            today = with_friction_of_the_day(robot, rng, sign)
            body = load(float(mass), rng, robot.flange)
            world = SimulatedArm(
                today,
                {0.0: body},
                sensors=SENSORS[sign],
                start=posture,
                seed=seed + 10 + mass,
            )
            answer = weighed(model, text, world)
            std = float(answer.std[0])
            yield Weighed(number, sign, float(mass), answer.mass, std, answer.verdict.ok)


def mean_error(found: Sequence[Weighed]) -> tuple[float, float]:
    """Mean error of masses and its standard error by the means of the models, [kg]."""
    means = [np.mean([one.error for one in found if one.model == k]) for k in range(MODELS)]
    return float(np.mean(means)), float(np.std(means, ddof=1) / np.sqrt(MODELS))


def figures() -> Iterator[Figure]:
    """Mean error, share of intervals that hold the truth, the size of errors, and the bias."""
    both = [one for number in range(MODELS) for one in series(number)]
    found = [one for one in both if one.sign == 1]
    errors = np.array([one.error for one in found])
    mean, standard_error = mean_error(found)
    inside = 100 * float(np.mean([one.inside for one in found]))
    count = f"{len(found)} runs of weigh-live, 0 to 9 kg"
    yield Figure("mean", f"{count}: mean error of the mass", 1e3 * mean, "g")
    yield Figure(
        "mean_ratio", "the same over its standard error", abs(mean) / standard_error, "", 1.0
    )
    yield Figure("rms", "the same: RMS error", 1e3 * float(np.sqrt(np.mean(errors**2))), "g")
    ratios = np.array([one.error / one.std for one in found])
    yield Figure(
        "ratio",
        "the same: error over its standard deviation, RMS",
        float(np.sqrt(np.mean(ratios**2))),
        "",
    )
    yield Figure("outside", "the same: outside the 95 % interval", 100 - inside, "%", 8.0)
    bias, bias_error = mean_error(both)
    yield Figure("bias", "with as many mirrored runs: mean error of the mass", 1e3 * bias, "g")
    yield Figure("bias_error", "the same: its standard error", 1e3 * bias_error, "g")
