"""The method of ding2019 and ours on the same recordings.

ding2019 (section III): Butterworth filters of order 5 on positions and torques, a Fourier series
fitted to the positions and differentiated, torques of joints slower than a threshold left out,
ordinary least squares for links, rotors, Coulomb and viscous friction; no offsets. Cut-off and
threshold are not printed: 10 Hz and 0.05 rad/s here. (A bandwidth of 0.25 Hz, which is printed,
would remove the harmonics at 0.3 to 0.5 Hz.)

Ours, with the defaults of steelyard: torques as measured, positions filtered at 20 Hz and
differentiated as they are (tracking errors move the arm, too), a threshold of 0.01 rad/s, joints
weighted by their noise, offsets, the friction law that predicts unseen stretches best, and a
covariance that knows of correlation in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.identification import (
    DynamicModel,
    Validation,
    choose_friction,
    identify,
    solved_again,
)
from steelyard.identification._validation import FrictionChoice, validation_of
from steelyard.recording import Recording
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.signals import Preparation, prepare
from steelyard_papers.ding2019.world import HARMONICS, PERIOD_S, World
from steelyard_papers.sharing import Progress, part_of

PAPER = Preparation(
    cutoff_hz=10.0,
    torque_cutoff_hz=10.0,
    order=5,
    fourier_period_s=PERIOD_S,
    fourier_harmonics=HARMONICS,
    lowest_speed=0.05,
)
OURS = Preparation()
LAWS = ("band", "smooth", "load")


@dataclass(frozen=True, eq=False)
class Answer:
    """What one method found in one world.

    Attributes:
        models: one for each run
        mean: of the parameters over the runs, eq. (14), (p,)
        std: of the parameters over the runs, eq. (15), (p,)
        predicted: torque of the verification run by the mean parameters, (N, n) [Nm]
        validation: of that prediction against the torque as measured
        by_run: the same by the parameters of each run alone
    """

    models: tuple[DynamicModel, ...]
    mean: Array
    std: Array
    predicted: Array
    validation: Validation
    by_run: tuple[Validation, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the parameters, without the r of regrouped ones."""
        return tuple(parameter.symbol for parameter in self.models[0].estimate.parameters)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Both methods in one world.

    Attributes:
        world: and its recordings
        t: time of the verification run, (N,) [s]
        measured: its torques, (N, n) [Nm]
        v: its speeds, (N, n) [rad/s]
        paper: the method of ding2019
        ours: our method
        floor: what the true torque leaves
        choice: of the friction law
    """

    world: World
    t: Array
    measured: Array
    v: Array
    paper: Answer
    ours: Answer
    floor: Validation
    choice: FrictionChoice


def true_parameters(robot: RobotModel) -> dict[str, float]:
    """The base parameters of a robot, by name without the r of regrouped ones.

    Args:
        robot: the arm as it is
    """
    basis = ParameterBasis.of(robot)
    values = basis.K @ robot.parameters
    values = np.where(np.abs(values) < 1e-12, 0.0, values)  # rounding of a sum that cancels
    symbols = (parameter.symbol for parameter in basis.parameters)
    return dict(zip(symbols, values.tolist(), strict=True))


def scatter(models: Sequence[DynamicModel]) -> tuple[Array, Array]:
    """Mean and standard deviation of each parameter over repeated runs (eq. (14), (15)), each (p,).

    Args:
        models: of the same arm and friction law, one for each run
    """
    if len(models) < 2 or len({tuple(model.estimate.names) for model in models}) > 1:
        raise InvalidSamples("scatter needs two or more models with the same parameters")
    values = np.array([model.estimate.value for model in models])
    return values.mean(axis=0), values.std(axis=0, ddof=1)


def compare(
    world: World, nominal: RobotModel, *, laws: Sequence[str] = LAWS, progress: Progress
) -> Comparison:
    """Both methods on the recordings of a world.

    Args:
        world: and its recordings
        nominal: the arm as the methods know it: kinematics only count
        laws: of friction that our method chooses from
        progress: called with the share that is done
    """
    part = part_of(progress, 0.0, 0.5)
    first = [prepare(world.runs[0], OURS)]
    choice = choose_friction(nominal, first, laws=laws, progress=lambda share, _: part(share))
    paper = [
        solved_again(
            identify(nominal, prepare(run, PAPER), friction="linear", method="ordinary"),
            offsets=False,
            equal_weights=True,
        )
        for run in world.runs
    ]
    ours = []
    for k, run in enumerate(world.runs):
        ours.append(identify(nominal, prepare(run, OURS), friction=choice.law))
        progress(0.5 + 0.5 * (k + 1) / len(world.runs))
    samples = prepare(world.verification, OURS)
    return Comparison(
        world,
        world.verification.t,
        samples.tau,
        samples.v,
        _answer(paper, world.verification, PAPER),
        _answer(ours, world.verification, OURS),
        validation_of(samples.tau, world.true_torque),
        choice,
    )


def _answer(models: Sequence[DynamicModel], verification: Recording, how: Preparation) -> Answer:
    """The verification with kinematics made as the method makes them, torques as measured."""
    mean, std = scatter(models)
    averaged = replace(models[0], estimate=replace(models[0].estimate, value=mean))
    samples = prepare(verification, replace(how, torque_cutoff_hz=None, lowest_speed=0.0))
    predicted = np.asarray(averaged.rows(samples).Y @ mean)
    by_run = [validation_of(samples.tau, m.rows(samples).Y @ m.estimate.value) for m in models]
    return Answer(
        tuple(models), mean, std, predicted, validation_of(samples.tau, predicted), tuple(by_run)
    )
