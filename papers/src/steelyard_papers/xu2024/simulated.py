"""xu2024's experiment in MuJoCo: an identified arm with tracking errors and stiction.

The UR10 has the paper's kinematics, friction (Table VI) and gains, and nominal links. Its empty
runs along Table IV are identified with the power law of friction, on the commanded motion as the
paper does; then it runs with the payload of Table VII. With the payload, friction is the one that
the paper reports for it: exponents of Table IX and, for joint 2, the coefficients in the text of
Fig. 7 (for the other joints none are printed). Torque noise is that of Table VIII, nonlinear,
without and with payload. Postures at rest are visited one after the other; there friction holds
what the controller has not yet taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidRecording
from steelyard.identification import DynamicModel, identify
from steelyard.recording import Recording, Sample, Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.signals import Preparation, prepare
from steelyard.simulation import SensorModel, Simulation, SimulationOptions, simulate
from steelyard.torque.methods._static import postures_at_rest
from steelyard.torque.tracking import TorqueTracker
from steelyard.trajectory import FourierTrajectory, Trajectory
from steelyard_papers.sharing import Progress
from steelyard_papers.visit import Visit
from steelyard_papers.xu2024.arm import ur10
from steelyard_papers.xu2024.printed import ALPHA, JOINT_2, TABLE_8, TRUTH
from steelyard_papers.xu2024.published import RATE_HZ, algorithm_1, plain_estimate, static_payload
from steelyard_papers.xu2024.recursion import recursion_of

ENCODER_STEP = 1e-4
"""Step of the encoders that the page assumes for Algorithm 1: 16 bits per turn, [rad]."""

ENCODER_STEPS = (1e-5, 5e-5, ENCODER_STEP, 1.15e-4, 1.2e-4, 1.5e-4)
"""Steps that Algorithm 1 is tried with, [rad]; the paper prints none."""

_COMMANDED = Preparation(kinematics="commanded")
_RAW = Preparation(cutoff_hz=None, lowest_speed=0.0)
_EMPTY_RUNS = 3
_OTHER_MOTION_SEED = 8


class PairOfRuns(NamedTuple):
    """The same motion without and with the payload.

    Attributes:
        robot: the empty arm as it is
        empty: recording and truth without the payload
        loaded: recording and truth with it
    """

    robot: RobotModel
    empty: Simulation
    loaded: Simulation


@dataclass(frozen=True, eq=False)
class World:
    """The true signals of the experiment, and its recordings.

    Attributes:
        robot: the empty arm as it is
        carrier: the arm as it is with the payload: its friction is another one
        empty: run along Table IV: what the sensors would say without torque noise, and the truth
        loaded: the same with the payload
        other: an empty run along another motion
        rest: visits of postures at rest, empty and loaded
    """

    robot: RobotModel
    carrier: RobotModel
    empty: Simulation
    loaded: Simulation
    other: Simulation
    rest: tuple[Simulation, Simulation]

    @property
    def pair(self) -> PairOfRuns:
        """The runs along Table IV."""
        return PairOfRuns(self.robot, self.empty, self.loaded)


def loaded_arm(robot: RobotModel) -> RobotModel:
    """The arm with the friction that the paper reports with its payload.

    Args:
        robot: the empty arm
    """
    drive = robot.drive
    coulomb = drive.coulomb.copy()
    viscous = drive.viscous.copy()
    offset = drive.offset.copy()
    coulomb[1], viscous[1], offset[1] = JOINT_2["with", "power"]
    changed = replace(
        drive, coulomb=coulomb, viscous=viscous, offset=offset, exponent=ALPHA["with"]
    )
    return robot.with_drive(changed)


def run_pair(*, step_s: float = 0.001) -> PairOfRuns:
    """The runs along Table IV alone.

    Args:
        step_s: of the simulation, [s]
    """
    robot = ur10()
    motion = FourierTrajectory.load("xu2024")
    empty, loaded = (
        _simulated(arm, motion, step_s, carries=carries)
        for arm, carries in ((robot, False), (loaded_arm(robot), True))
    )
    return PairOfRuns(robot, empty, loaded)


def _simulated(
    robot: RobotModel, motion: Trajectory, step_s: float, *, carries: bool
) -> Simulation:
    return simulate(
        robot,
        motion,
        payload=TRUTH if carries else None,
        sensors=SensorModel(torque_std=0.0, wrist_sensor=False),
        rate_hz=RATE_HZ,
        options=SimulationOptions(step_s=step_s),
    )


def run_world(*, step_s: float = 0.001, postures: int = 12, progress: Progress) -> World:
    """All runs.

    Args:
        step_s: of the simulation; at least 4 ms for the postures at rest, [s]
        postures: at rest
        progress: called with the share that is done
    """
    robot = ur10()
    carrier = loaded_arm(robot)
    published = FourierTrajectory.load("xu2024")
    other = FourierTrajectory.random(
        robot.home,
        reach=[0.8] * 6,
        speed=[1.2] * 6,
        period_s=10.0,
        harmonics=5,
        seed=_OTHER_MOTION_SEED,
    )
    q = np.random.default_rng(1).uniform(-0.7, 0.7, (postures, 6)) + robot.home
    visit = Visit(q, rest_s=0.6, move_s=1.2)
    done = []
    cases: tuple[tuple[RobotModel, Trajectory, bool], ...] = (
        (robot, published, False),
        (carrier, published, True),
        (robot, other, False),
        (robot, visit, False),
        (carrier, visit, True),
    )
    for k, (arm, motion, carries) in enumerate(cases):
        own_step_s = step_s
        if motion is visit:
            own_step_s = max(step_s, 0.004)
        done.append(_simulated(arm, motion, own_step_s, carries=carries))
        progress((k + 1) / len(cases))
    empty, loaded, elsewhere, *rest = done
    return World(robot, carrier, empty, loaded, elsewhere, (rest[0], rest[1]))


def noisy(run: Simulation, noise: Array, seed: int) -> Recording:
    """A run with torque noise.

    Args:
        run: recording and truth
        noise: standard deviation of each joint, (6,) [Nm]
        seed: of the noise
    """
    drawn = np.random.default_rng([seed, 7]).normal(size=run.truth.tau.shape)
    return replace(run.recording, tau=run.truth.tau + noise * drawn, current=None)


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """The friction of one world by one law.

    Attributes:
        model: fitted to all parameters at once
        v: speeds, (N, 6) [rad/s]
        measured: torque less links and rotors, (N, 6) [Nm]
        modelled: friction by the law, (N, 6) [Nm]
        rmse: of the difference where torques count, (6,) [Nm]
    """

    model: DynamicModel
    v: Array
    measured: Array
    modelled: Array
    rmse: Array

    def joint_2(self) -> tuple[float, float, float]:
        """Fc, Fv, B of joint 2."""
        estimate = self.model.estimate
        found = dict(zip(estimate.names, estimate.value, strict=True))
        return found["Fc2"], found["Fv2"], found["B2"]


def friction_fits(world: World, seed: int = 0) -> dict[tuple[str, str], FrictionFit]:
    """Table VIII and IX: both laws, without and with the payload.

    Args:
        world: and its runs
        seed: of the noise
    """
    found = {}
    for payload, run in (("without", world.empty), ("with", world.loaded)):
        samples = prepare(noisy(run, TABLE_8[payload, "power"], seed))
        for law in ("linear", "power"):
            model = identify(world.robot, samples, friction=law)
            found[payload, law] = friction_fit(model, samples)
    return found


def linear_misfit(runs: PairOfRuns, noise: Array, seed: int) -> Array:
    """RMSE of friction by the linear law without the payload, (6,) [Nm].

    Args:
        runs: along Table IV
        noise: standard deviation of the torques, (6,) [Nm]
        seed: of the noise
    """
    samples = prepare(noisy(runs.empty, noise, seed))
    model = identify(runs.robot, samples, friction="linear")
    return friction_fit(model, samples).rmse


def friction_fit(model: DynamicModel, samples: Samples) -> FrictionFit:
    """How well the model's friction law fits the samples; not how well it predicts others.

    Args:
        model: fitted to them
        samples: of the arm
    """
    measured, modelled = model.friction_torque(samples)
    squares = np.where(samples.mask, (measured - modelled) ** 2, 0.0).sum(axis=0)
    rmse = np.sqrt(squares / np.maximum(samples.mask.sum(axis=0), 1))
    return FrictionFit(model, samples.v, measured, modelled, rmse)


def identified(world: World, seed: int) -> DynamicModel:
    """The empty arm from three runs, on the commanded motion.

    Args:
        world: and its runs
        seed: of the noise
    """
    return identify(world.robot, _empties(world, seed), friction="power")


def _empties(world: World, seed: int) -> list[Samples]:
    noise = TABLE_8["without", "power"]
    runs = [noisy(world.empty, noise, 100 * seed + k) for k in range(_EMPTY_RUNS)]
    return [prepare(run, _COMMANDED) for run in runs]


def simulated_answers(
    world: World, seeds: Sequence[int], *, progress: Progress
) -> list[dict[str, Array]]:
    """For each seed the ten numbers by every method, NaN where a method gives none, (10,) each.

    Args:
        world: and its runs
        seeds: of the noise
        progress: called with the share that is done
    """
    models = []
    runs = []
    found = []
    for k, seed in enumerate(seeds):
        empties = _empties(world, seed)
        model = identify(world.robot, empties, friction="power")
        loaded = prepare(noisy(world.loaded, TABLE_8["with", "power"], 100 * seed + 50), _COMMANDED)
        found.append(
            {
                "Algorithm 1": algorithm_1_on_raw_rows(world.pair, seed, ENCODER_STEP),
                "Algorithm 2": np.append(_static(world, model, seed), np.full(6, np.nan)),
                "ours": _ours(model, loaded),
            }
        )
        models.append(model)
        runs.append(loaded)
        progress((k + 1) / len(seeds))
    published = recursion_of(models, runs).payloads()
    return [answer | {"proposed": published[k]} for k, answer in enumerate(found)]


def algorithm_1_on_raw_rows(
    runs: PairOfRuns, seed: int, encoder_step: float, noise_factor: float = 1.0
) -> Array:
    """Khalil's method as the paper feeds it: measured positions, differenced, no filter, (10,).

    Encoder steps become noise of the accelerations, and noise of a regressor makes the estimate
    too small.

    Args:
        runs: along Table IV
        seed: of the noise
        encoder_step: [rad]
        noise_factor: of the torques, in those of Table VIII
    """
    robot = runs.robot
    basis = ParameterBasis.of(robot)
    with_load, without = (noise_factor * TABLE_8[key, "power"] for key in ("with", "without"))
    q = np.round(runs.loaded.truth.q / encoder_step) * encoder_step
    recording = noisy(runs.loaded, with_load, 100 * seed + 50)
    loaded = prepare(replace(recording, q=q), _RAW)
    empty = noisy(runs.empty, without, 100 * seed)
    if empty.tau is None:
        raise InvalidRecording("the empty run has no torques")
    YJ = basis.reduce(robot.regressor(loaded.q, loaded.v, loaded.a)) @ basis.payload_jacobian
    return algorithm_1(YJ, loaded.tau - empty.tau)


def algorithm_1_by_step(world: World, seeds: Sequence[int]) -> dict[float, Array]:
    """The ten numbers by Algorithm 1 on raw rows, (seeds, 10), by step of the encoders [rad].

    Args:
        world: and its runs
        seeds: of the noise
    """
    return {
        step: np.array([algorithm_1_on_raw_rows(world.pair, seed, step) for seed in seeds])
        for step in ENCODER_STEPS
    }


def _static(world: World, model: DynamicModel, seed: int) -> Array:
    held = []
    for k, (run, payload) in enumerate(zip(world.rest, ("without", "with"), strict=True)):
        recording = noisy(run, TABLE_8[payload, "power"], 100 * seed + 60 + k)
        held.append(postures_at_rest(prepare(recording, Preparation(lowest_speed=0.0))))
    (q, empty), (_, loaded) = held
    return static_payload(world.robot, model.basis, q, empty, loaded)


def _ours(model: DynamicModel, loaded: Samples) -> Array:
    ours = TorqueTracker(model, "commanded")
    own = ours.init()
    for row in zip(loaded.t, loaded.q, loaded.v, loaded.a, loaded.tau, strict=True):
        own = ours.step(own, Sample.of_joints(*row))
    return plain_estimate(ours, own)[0]
