"""xu2024 section 4.4 in simulation: track the payload, set it, guide the arm by hand.

The payload has the mass (3.223 kg) and the centre of mass that the paper gives, and the inertia of
a block of that mass, because the one printed is that of no body. The motion is that of Table IV,
the noise of the torques that of Table VIII. The empty arm is identified, and the payload is then
weighed sample by sample along the commanded motion: by the recursion of the paper, of which the
controller gets mass and centre of mass as a UR10's does, and by ours. Then a hand drags the arm
along a rectangle: without the payload known, and with each of the two.

The paper does not print place and size of the rectangle, the speed and tremor of the hand, or the
share of friction that teach mode compensates. Three assumptions are therefore compared. Settings
were chosen with seeds 0 to 4, the results have others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard.control._guiding import GuidingComparison, RectanglePath, TeachMode
from steelyard.identification import DynamicModel, identify
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Recording, Sample, Samples
from steelyard.robot import DriveModel, RobotModel
from steelyard.signals import Preparation, prepare
from steelyard.simulation import SensorModel, Simulation, SimulationOptions, simulate
from steelyard.simulation._guided import GuidedOptions, GuidedRun, Hand
from steelyard.torque import weigh
from steelyard.torque.tracking import TorqueTracker
from steelyard.trajectory import FourierTrajectory
from steelyard_papers.xu2024.arm import FLANGE, ur10
from steelyard_papers.xu2024.recursion import recursion_of

Progress = Callable[[float], None]

XU2024_MEAN_REDUCTION = (0.1299, 0.2575, 0.4424)
"""By how much the mean force fell in the paper with the payload compensated, x, y, z."""
XU2024_VARIANCE_REDUCTION = (0.5184, 0.5683, 0.6458)
"""By how much the variance of the force fell in the paper, x, y, z."""

_TORQUE_NOISE = (
    1.3102,
    2.5186,
    1.1437,
    0.3914,
    0.2793,
    0.3325,
)  # Table VIII, nonlinear, no payload, [Nm]
_MASS = 3.223
_COM = (-0.024, -0.006, 0.045)  # section 4.4, [kg], [m]
_SENSORS = SensorModel(torque_std=np.array(_TORQUE_NOISE))
_BLOCK = np.array([0.12, 0.12, 0.10])  # [m]
_COMMANDED = Preparation(kinematics="commanded")


ASSUMPTIONS: dict[str, tuple[str, TeachMode, Hand]] = {
    "eased": ("95 % of the friction taken off; the hand trembles by a tenth", TeachMode(), Hand()),
    "half": ("half of the friction taken off", TeachMode(friction_share=0.5), Hand()),
    "steady": (
        "95 % of the friction taken off; the hand does not tremble",
        TeachMode(),
        Hand(unsteadiness=0.0),
    ),
}
"""By key: in words, what the drives do, and the hand."""
_PATH = RectanglePath(sides=np.array([0.15, 0.15]), speed=0.1)
WIDE_SIDES = np.array([0.3, 0.4])
"""Sides of the rectangle of the map, [m]."""
FRICTION_SHARES = (0.0, 0.1, 0.25, 0.5, 0.95)
"""Shares of the friction that the drives take off, in the map."""
SPEEDS = (0.15, 0.25, 0.35)
"""Speeds of the hand in the map, [m/s]."""
NARROW = RectanglePath(sides=np.array([0.25, 0.45]), speed=0.1)
"""The rectangle that comes nearest to the printed reductions, nothing taken off."""
_MAP_SEEDS = 1
_NARROW_SEEDS = 3
_FIRST_SEED = 10
_STEADY_SEEDS = 3


@dataclass(frozen=True, eq=False)
class GuidingReproduction:
    """One payload weighed online, and the hand's force with and without its compensation.

    Attributes:
        robot: the arm as it really is
        truth: what it really carries, in the flange frame
        published: mass and centre of mass by the paper's recursion, a point mass in the flange
            frame
        ours: weighed sample by sample by ours
        comparisons: by assumption: the hand's force with the published payload compensated and
            without; that of a steady hand for the first seeds alone
        with_ours: the same with ours compensated, first assumption
    """

    robot: RobotModel
    truth: InertialParameters
    published: InertialParameters
    ours: Payload
    comparisons: dict[str, GuidingComparison]
    with_ours: GuidingComparison


def reproduce_xu2024_guiding(
    *, seeds: int = 8, path: RectanglePath = _PATH, progress: Progress | None = None
) -> list[GuidingReproduction]:
    """Fig. 10 to 12 in simulation, one for each seed.

    Args:
        seeds: of all noise
        path: of the hand
        progress: called with the share that is done
    """
    robot = ur10()
    truth = _truth()
    runs = [_simulated(robot, payload, 0, None) for payload in (None, truth)]
    found = []
    for k in range(seeds):
        found.append(_guided(runs, _FIRST_SEED + k, path))
        if progress is not None:
            progress((k + 1) / seeds)
    return found


class WeighedArm(NamedTuple):
    """An identified arm and its payload, as the recursion of the paper weighed it.

    Attributes:
        model: of the empty arm
        published: the payload, by the paper's recursion
        truth: the payload as it is
        seed: of all noise
    """

    model: DynamicModel
    published: InertialParameters
    truth: InertialParameters
    seed: int

    def reduction(self, share: float, speed: float, sides: Array = WIDE_SIDES) -> Array:
        """By how much the payload's compensation reduces the mean force, (3,) [%].

        Args:
            share: of the friction that the drives take off
            speed: of the hand, [m/s]
            sides: of the rectangle, (2,) [m]
        """
        return 100 * self.comparison(share, speed, sides).mean_reduction

    def comparison(
        self, share: float, speed: float, sides: Array = WIDE_SIDES
    ) -> GuidingComparison:
        """The runs behind `reduction`.

        Args:
            share: of the friction that the drives take off
            speed: of the hand, [m/s]
            sides: of the rectangle, (2,) [m]
        """
        without, compensated = (
            TeachMode(friction_share=share).guide(
                ur10(),
                self.model,
                payload_true=self.truth,
                payload_known=known,
                path=RectanglePath(sides=sides, speed=speed),
                hand=Hand(),
                options=_options(self.seed),
            )
            for known in (None, self.published)
        )
        return GuidingComparison(without, compensated)


def weighed_arms(seeds: int) -> list[WeighedArm]:
    """Arms that were identified and weighed with independent noise.

    Args:
        seeds: how many
    """
    robot = ur10()
    truth = _truth()
    runs = [_simulated(robot, payload, 0, None) for payload in (None, truth)]
    found = []
    for seed in range(_FIRST_SEED, _FIRST_SEED + seeds):
        model, published, _ = _known(runs, seed)
        found.append(WeighedArm(model, published, truth, seed))
    return found


class GuidingMap(NamedTuple):
    """By how much the mean force falls, over what the paper does not print.

    Attributes:
        wide: by share of friction that is taken off and speed [m/s], (seeds, 3) [%]
        narrow: with the rectangle `NARROW` and no friction taken off, (seeds, 3) [%]
    """

    wide: dict[tuple[float, float], Array]
    narrow: Array


def guiding_map(*, seeds: int = _MAP_SEEDS, narrow_seeds: int = _NARROW_SEEDS) -> GuidingMap:
    """The reductions for two rectangles, which are larger than in the tables.

    Args:
        seeds: of all noise, wide rectangle
        narrow_seeds: the same, narrow rectangle
    """
    arms = weighed_arms(max(seeds, narrow_seeds))
    wide = {
        (share, speed): np.array([arm.reduction(share, speed) for arm in arms[:seeds]])
        for share in FRICTION_SHARES
        for speed in SPEEDS
    }
    few = arms[:narrow_seeds]
    narrow = np.array([arm.reduction(0.0, NARROW.speed, NARROW.sides) for arm in few])
    return GuidingMap(wide, narrow)


def _options(seed: int) -> GuidedOptions:
    return GuidedOptions(seed=seed, step_s=0.004, control_every=2, rows_every=2, taking_hold_s=1.0)


def _known(
    runs: Sequence[Simulation], seed: int
) -> tuple[DynamicModel, InertialParameters, Payload]:
    """The model of the empty arm, and the payload by the paper's recursion and by ours."""
    robot = ur10()
    empty, loaded = (
        prepare(_with_other_noise(run, robot.drive, 2 * seed + k), _COMMANDED, drive=robot.drive)
        for k, run in enumerate(runs)
    )
    model = identify(robot, empty, friction="power")
    return model, *_weighed(model, loaded)


def _guided(runs: Sequence[Simulation], seed: int, path: RectanglePath) -> GuidingReproduction:
    robot = ur10()
    truth = runs[1].truth.payload
    model, published, ours = _known(runs, seed)
    options = _options(seed)

    def dragged(key: str, known: Payload | InertialParameters | None) -> GuidedRun:
        _, teach, hand = ASSUMPTIONS[key]
        return teach.guide(
            robot,
            model,
            payload_true=truth,
            payload_known=known,
            path=path,
            hand=hand,
            options=options,
        )

    keys = [key for key in ASSUMPTIONS if key != "steady" or seed < _FIRST_SEED + _STEADY_SEEDS]
    without = {key: dragged(key, None) for key in keys}
    comparisons = {
        key: GuidingComparison(run, dragged(key, published)) for key, run in without.items()
    }
    with_ours = GuidingComparison(without["eased"], dragged("eased", ours))
    return GuidingReproduction(robot, truth, published, ours, comparisons, with_ours)


def _weighed(model: DynamicModel, loaded: Samples) -> tuple[InertialParameters, Payload]:
    """The payload online: by the paper's recursion, as a point mass, and by ours."""
    vector = recursion_of([model], [loaded]).payloads(at_end=True)[0]
    published = InertialParameters.from_com(
        vector[0], vector[1:4] / vector[0], np.zeros((3, 3)), model.robot.flange
    )
    estimator = TorqueTracker(model, "commanded")
    state = estimator.init()
    for row in zip(loaded.t, loaded.q, loaded.v, loaded.a, loaded.tau, strict=True):
        state = estimator.step(state, Sample.of_joints(*row))
    return published, estimator.estimate(state)


def _truth() -> InertialParameters:
    spread = np.diag((_BLOCK @ _BLOCK - _BLOCK**2) * _MASS / 12)
    return InertialParameters.from_com(_MASS, _COM, spread, FLANGE)


def xu2024_guided_arm(
    *, seed: int = 0, progress: Progress | None = None
) -> tuple[RobotModel, DynamicModel, Payload, InertialParameters]:
    """The arm, its identified model, weighed and true payload, from two simulated runs, offline.

    Args:
        seed: of the torque noise
        progress: called with the share that is done
    """
    robot = ur10()
    truth = _truth()
    empty = _run(robot, None, 2 * seed, _part(progress, 0.0, 0.5))
    loaded = _run(robot, truth, 2 * seed + 1, _part(progress, 0.5, 0.5))
    model = identify(robot, empty, friction="power")
    return robot, model, weigh(model, loaded), truth


def _run(
    robot: RobotModel, payload: InertialParameters | None, seed: int, progress: Progress | None
) -> Samples:
    return prepare(_simulated(robot, payload, seed, progress).recording, drive=robot.drive)


def _simulated(
    robot: RobotModel, payload: InertialParameters | None, seed: int, progress: Progress | None
) -> Simulation:
    options = SimulationOptions(progress=progress)
    motion = FourierTrajectory.load("xu2024")
    return simulate(robot, motion, payload=payload, sensors=_SENSORS, seed=seed, options=options)


def _with_other_noise(run: Simulation, drive: DriveModel, seed: int) -> Recording:
    """A run as simulated with another seed, which affects the torque noise alone."""
    generator = np.random.default_rng(seed).spawn(2)[0]
    truth = run.truth
    tau = _SENSORS.noisy_torque(truth.tau, float(truth.t[1]), generator)
    return replace(run.recording, tau=tau, current=currents(drive, tau))


def currents(drive: DriveModel, tau: Array) -> Array:
    """Motor currents of torques, (N, n) [A].

    Args:
        drive: with gains
        tau: of the joints, (N, n) [Nm]
    """
    assert drive.gain is not None  # noqa: S101 - the bundled arm has gains
    return np.asarray(drive.transmission.load(tau) / drive.gain)


def _part(progress: Progress | None, start: float, share: float) -> Progress | None:
    if progress is None:
        return None
    return lambda done: progress(start + share * done)
