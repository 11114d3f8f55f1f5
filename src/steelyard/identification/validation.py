"""How well a model predicts what it was not fitted to, and the choice of a friction law by it.

On a recording that the model has not seen: root mean square of the residuals (ding2019 eq. (12)), correlation
of measured and predicted torque (eq. (13)), and the relative residual |tau - predicted| / |tau|, joint by
joint, over all samples, at rest too. A law is chosen by prediction, not by fit: each recording in turn (or
each of four stretches of a single one) is left out, predicted from the others, and the mean over the joints
of the relative residual decides. A simpler law wins against one that is better by less than 2 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.arrays import Array
from steelyard.computing import Progress
from steelyard.errors import InvalidSamples
from steelyard.identification.fit import settle
from steelyard.identification.problem import RowMaker
from steelyard.recording import Recording, Samples
from steelyard.robot import DriveModel, ParameterBasis, RobotModel
from steelyard.robot.friction import FrictionLaw, friction_law
from steelyard.signals import Preparation, prepare

_STRETCHES = 4
_MOST_FOLDS = 4
_WORTH = 0.02
_SIMPLE_FIRST = ("band", "smooth", "power", "smooth-power", "stribeck", "load")
_WITH_MEMORY = ("presliding", "presliding-power", "presliding-load")


@dataclass(frozen=True, eq=False)
class Validation:
    """How well torques were predicted, joint by joint.

    Attributes:
        rms: root mean square of the residuals, (n,) [Nm or N]
        relative: norm of the residuals over that of the torques, (n,)
        correlation: of measured and predicted torque, (n,)
    """

    rms: Array
    relative: Array
    correlation: Array


def validation_of(measured: Array, predicted: Array) -> Validation:
    """How well torques were predicted.

    Args:
        measured: torques, (N, n) [Nm or N]
        predicted: torques, (N, n) [Nm or N]
    """
    error = measured - predicted
    centred = measured - measured.mean(axis=0), predicted - predicted.mean(axis=0)
    lengths = np.linalg.norm(centred[0], axis=0) * np.linalg.norm(centred[1], axis=0)
    return Validation(
        np.sqrt(np.mean(error**2, axis=0)),
        np.linalg.norm(error, axis=0) / np.maximum(np.linalg.norm(measured, axis=0), 1e-12),
        (centred[0] * centred[1]).sum(axis=0) / np.maximum(lengths, 1e-12),
    )


@dataclass(frozen=True, eq=False)
class FrictionChoice:
    """Which friction law predicts best.

    Attributes:
        law: the name of the chosen one
        scores: relative residual of unseen stretches, mean over the joints, by name of the law
        folds: what was left out in turn, in words
    """

    law: str
    scores: dict[str, float]
    folds: str


def choose_friction(
    robot: RobotModel,
    parts: Sequence[Samples],
    *,
    laws: Sequence[str] = (*_SIMPLE_FIRST, *_WITH_MEMORY),
    progress: Progress | None = None,
) -> FrictionChoice:
    """The friction law that predicts unseen recordings best.

    Args:
        robot: the arm
        parts: sets of samples, each in the order of time
        laws: names to choose from, simple ones first
        progress: called with the share that is done and words
    """
    folds, words = _folds(parts)
    maker = RowMaker(robot, ParameterBasis.of(robot))
    scores: dict[str, float] = {}
    for i, name in enumerate(laws):
        if progress is not None:
            progress(i / len(laws), f"law {i + 1} of {len(laws)}: {name}{_best_so_far(scores)}")
        scores[name] = predicted_residual(maker, folds, friction_law(name, robot.n))
    best = min(scores.values())
    chosen = next(name for name in laws if scores[name] <= best * (1 + _WORTH))
    return FrictionChoice(chosen, scores, words)


def _best_so_far(scores: Mapping[str, float]) -> str:
    if not scores:
        return ""
    best = min(scores, key=lambda name: scores[name])
    return f", best so far {best} {100 * scores[best]:.1f} %"


def choose_cutoff(
    robot: RobotModel,
    recordings: Sequence[Recording],
    how: Preparation,
    *,
    drive: DriveModel | None = None,
    law: str = "smooth",
    cutoffs_hz: Sequence[float] = (2.5, 5.0, 10.0, 20.0, 40.0),
) -> tuple[float, dict[float, float]]:
    """The cut-off of the filter on the motion whose samples predict torques best [Hz], and all scores.

    Torques are compared as they were measured, so that a filter cannot make its own task easier.

    Args:
        robot: the arm
        recordings: as measured
        how: to prepare them otherwise
        drive: that makes torques of motor currents; needed where only currents were recorded
        law: name of the friction law to judge with
        cutoffs_hz: to choose from [Hz]; those that the slowest recording cannot have are left out
    """
    slowest = min(recording.rate_hz for recording in recordings)
    scores = {}
    for cutoff in cutoffs_hz:
        if cutoff < 0.45 * slowest:
            parts = [
                prepare(recording, replace(how, cutoff_hz=cutoff), drive=drive) for recording in recordings
            ]
            maker = RowMaker(robot, ParameterBasis.of(robot))
            scores[cutoff] = predicted_residual(maker, _folds(parts)[0], friction_law(law, robot.n))
    if not scores:
        raise InvalidSamples(f"no cut-off of {list(cutoffs_hz)} Hz suits a recording at {slowest:.4g} Hz")
    return min(scores, key=lambda cutoff: scores[cutoff]), scores


def predicted_residual(maker: RowMaker, folds: Sequence[Sequence[Samples]], law: FrictionLaw) -> float:
    """The relative residual of every fold, predicted from the others, mean over the joints.

    Args:
        maker: of rows
        folds: sets of samples that are left out together
        law: of friction, with shapes to start from
    """
    squares = np.zeros((2, maker.robot.n))
    starts: Sequence[FrictionLaw] = law.starts
    for k, fold in enumerate(folds):
        others = [part for i, other in enumerate(folds) if i != k for part in other]
        law, theta = settle(maker, others, starts)
        starts = (law,)  # the next fold starts where this one ended
        for part in fold:
            error = part.tau - maker.torque(part, law, theta)
            squares += [(error**2).sum(axis=0), (part.tau**2).sum(axis=0)]
    return float(np.sqrt(squares[0] / np.maximum(squares[1], 1e-12)).mean())


def _folds(parts: Sequence[Samples]) -> tuple[list[list[Samples]], str]:
    if len(parts) > 1:
        count = min(len(parts), _MOST_FOLDS)
        folds = [list(parts[k::count]) for k in range(count)]
        return folds, f"{len(parts)} recordings in {count} folds"
    (part,) = parts
    length = len(part) // _STRETCHES
    if length < 100:
        raise InvalidSamples(
            f"{len(part)} samples are too few to choose a friction law by prediction; name one"
        )
    stretches = [[part.rows(slice(k * length, (k + 1) * length))] for k in range(_STRETCHES)]
    return stretches, f"{_STRETCHES} stretches of one recording"
