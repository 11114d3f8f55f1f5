"""xu2024 section 4.4 in simulation: identify the empty UR10, weigh what it carries, drag it with a hand.

The payload has the mass (3.223 kg) and the centre of mass that the paper gives, and the inertia of a block of
that mass, because the one printed is that of no body. The motion is that of Table IV, the noise of the
torques that of Table VIII. The controller knows only what was identified and weighed from these two runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from steelyard.control.guiding import GuidingComparison, RectanglePath, TeachMode, compare_guiding
from steelyard.identification import DynamicModel, identify
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Samples
from steelyard.robot import RobotModel, load_robot
from steelyard.signals import prepare
from steelyard.simulation import SensorModel, SimulationOptions, simulate
from steelyard.simulation.guided import GuidedOptions, Hand
from steelyard.torque import weigh
from steelyard.trajectory import load_trajectory

Progress = Callable[[float], None]

XU2024_MEAN_REDUCTION = (0.1299, 0.2575, 0.4424)
"""By how much the mean force fell in the paper with the payload compensated, x, y, z."""
XU2024_VARIANCE_REDUCTION = (0.5184, 0.5683, 0.6458)
"""By how much the variance of the force fell in the paper, x, y, z."""

_TORQUE_NOISE = (1.3102, 2.5186, 1.1437, 0.3914, 0.2793, 0.3325)  # Table VIII, nonlinear, no payload, [Nm]
_MASS, _COM = 3.223, (-0.024, -0.006, 0.045)  # section 4.4, [kg], [m]
_BLOCK = np.array([0.12, 0.12, 0.10])  # [m]
_SHARE_OF_RUNS = 0.1  # of the time, for each run without a hand


@dataclass(frozen=True, eq=False)
class GuidingReproduction:
    """What the controller knows, and what it is worth to the hand.

    Attributes:
        robot: the arm as it really is
        model: as identified from a simulated empty run
        payload: as weighed from a simulated loaded run
        truth: what it really carries, in the flange frame
        comparison: the hand's force with that payload compensated and without; Fig. 12
    """

    robot: RobotModel
    model: DynamicModel
    payload: Payload
    truth: InertialParameters
    comparison: GuidingComparison


def xu2024_guided_arm(
    *, seed: int = 0, progress: Progress | None = None
) -> tuple[RobotModel, DynamicModel, Payload, InertialParameters]:
    """The arm, its identified model, the payload as weighed and as it is, from two simulated runs.

    Args:
        seed: of the torque noise
        progress: called with the share that is done
    """
    robot = load_robot("ur10")
    spread = np.diag((_BLOCK @ _BLOCK - _BLOCK**2) * _MASS / 12)
    truth = InertialParameters.from_com(_MASS, _COM, spread, robot.flange)
    empty = _run(robot, None, 2 * seed, _part(progress, 0.0, 0.5))
    loaded = _run(robot, truth, 2 * seed + 1, _part(progress, 0.5, 0.5))
    model = identify(robot, empty, friction="power")
    return robot, model, weigh(model, loaded), truth


def reproduce_xu2024_guiding(
    *,
    seed: int = 0,
    path: RectanglePath | None = None,
    hand: Hand | None = None,
    teach: TeachMode | None = None,
    progress: Progress | None = None,
) -> GuidingReproduction:
    """Fig. 12 in simulation: the hand's force with the estimated payload compensated, and without.

    Args:
        seed: of all noise
        path: of the hand; `RectanglePath()` by default
        hand: that drags; `Hand()` by default
        teach: what the drives do; `TeachMode()` by default
        progress: called with the share that is done
    """
    known = 2 * _SHARE_OF_RUNS
    robot, model, payload, truth = xu2024_guided_arm(seed=seed, progress=_part(progress, 0.0, known))
    comparison = compare_guiding(
        model,
        payload,
        robot=robot,
        payload_true=truth,
        path=path,
        hand=hand,
        teach=teach,
        options=GuidedOptions(seed=seed, progress=_part(progress, known, 1.0 - known)),
    )
    return GuidingReproduction(robot, model, payload, truth, comparison)


def _run(
    robot: RobotModel, payload: InertialParameters | None, seed: int, progress: Progress | None
) -> Samples:
    run = simulate(
        robot,
        load_trajectory("xu2024"),
        payload=payload,
        sensors=SensorModel(torque_std=np.array(_TORQUE_NOISE)),
        seed=seed,
        options=SimulationOptions(progress=progress),
    )
    return prepare(run.recording, drive=robot.drive)


def _part(progress: Progress | None, start: float, share: float) -> Progress | None:
    return None if progress is None else lambda done: progress(start + share * done)
