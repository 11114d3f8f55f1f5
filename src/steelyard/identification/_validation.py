"""How well a model predicts unseen recordings, and the choice of a friction law by prediction.

Measures for a recording that was not fitted: the root mean square of the residuals (ding2019 eq.
(12)), the correlation of measured and predicted torque (eq. (13)), and the relative residual
|tau - predicted| / |tau|, for each joint over all samples, including those at rest.

A friction law is chosen by cross-validation: each recording (or each of four stretches of a single
one) is predicted from the others, and the mean relative residual over the joints is the score of
the law. The simplest law is chosen whose score is within one standard error of the best score. It
is the standard error of the difference of both scores, by the jackknife over stretches: Breiman
(1984) takes that of the score itself, but recordings differ more than laws do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard._computing import Progress, interruptible
from steelyard._kinds import INFINITE, NOT_NEGATIVE
from steelyard.errors import InvalidSamples
from steelyard.identification._fit import fit_shapes
from steelyard.identification._problem import RowMaker
from steelyard.recording import Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.robot._friction import FrictionLaw

_STRETCHES = 4  # of each recording, for the jackknife
_MAX_FOLDS = 4  # of cross-validation
_MIN_STRETCH_SAMPLES = 100
_LAWS_WITHOUT_MEMORY = ("band", "smooth", "power", "smooth-power", "stribeck", "load")
_LAWS_WITH_MEMORY = ("presliding", "presliding-power", "presliding-load")


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


class FrictionChoice(NamedTuple):
    """Which friction law predicts best.

    Attributes:
        law: name of the chosen law
        scores: relative residual of unseen stretches, mean over the joints, by name of the law
        folds: how the data were divided for cross-validation, in words
        not_compared: laws that were not evaluated because the user stopped the comparison
    """

    law: str
    scores: dict[str, Annotated[float, INFINITE, NOT_NEGATIVE]]
    folds: str
    not_compared: Sequence[str] = ()


def choose_friction(
    robot: RobotModel,
    parts: Sequence[Samples],
    *,
    laws: Sequence[str] = (*_LAWS_WITHOUT_MEMORY, *_LAWS_WITH_MEMORY),
    progress: Progress | None = None,
) -> FrictionChoice:
    """The simplest friction law of those that predict unseen recordings best.

    A KeyboardInterrupt ends the comparison with the best law so far, if there is one.

    Args:
        parts: sets of samples, each in the order of time
        laws: names to choose from, simple ones first
    """
    folds, words = _folds(parts)
    maker = RowMaker(robot, ParameterBasis.of(robot))
    squares: dict[str, Array] = {}
    try:
        for i, name in enumerate(laws):
            if progress is not None:
                progress(
                    i / len(laws), f"law {i + 1} of {len(laws)}: {name}{_best_so_far(squares)}"
                )
            with interruptible() if squares else nullcontext():
                squares[name] = _unseen_squares(maker, folds, FrictionLaw.named(name, robot.n))
    except KeyboardInterrupt:
        if not squares:
            raise
    best = squares[min(squares, key=lambda name: _score(squares[name]))]
    chosen = next(
        name for name, law_squares in squares.items() if _within_standard_error(law_squares, best)
    )
    scores = {name: _score(law_squares) for name, law_squares in squares.items()}
    return FrictionChoice(
        chosen, scores, words, tuple(name for name in laws if name not in squares)
    )


def _best_so_far(squares: Mapping[str, Array]) -> str:
    if not squares:
        return ""
    scores = {name: _score(law_squares) for name, law_squares in squares.items()}
    best = min(scores, key=lambda name: scores[name])
    return f", best so far {best} {100 * scores[best]:.1f} %"


def _within_standard_error(law_squares: Array, best: Array) -> bool:
    """Whether the score of a law is within one standard error of that of the best."""
    difference = _score(law_squares) - _score(best)
    left_out = [
        _score(np.delete(law_squares, k, axis=1)) - _score(np.delete(best, k, axis=1))
        for k in range(law_squares.shape[1])
    ]
    return bool(difference <= np.sqrt(len(left_out) - 1) * np.std(left_out))


def _unseen_squares(maker: RowMaker, folds: Sequence[Sequence[Samples]], law: FrictionLaw) -> Array:
    """Squared residuals and torques over stretches, each predicted from the other folds.

    Their shape is (2, stretches, n) [Nm^2 or N^2].
    """
    squares = []
    starts: Sequence[FrictionLaw] = law.starts
    for k, fold in enumerate(folds):
        others = [part for i, other in enumerate(folds) if i != k for part in other]
        law, theta = fit_shapes(maker, others, starts)
        starts = (law,)  # the next fold starts where this one ended
        for part in fold:
            both = np.array([part.tau - maker.torque(part, law, theta), part.tau]) ** 2
            squares += [stretch.sum(axis=1) for stretch in np.array_split(both, _STRETCHES, axis=1)]
    return np.stack(squares, axis=1)


def _score(squares: Array) -> float:
    """The relative residual, mean over the joints."""
    residual, torque = squares.sum(axis=1)
    return float(np.sqrt(residual / np.maximum(torque, 1e-12)).mean())


def _folds(parts: Sequence[Samples]) -> tuple[list[list[Samples]], str]:
    if len(parts) > 1:
        count = min(len(parts), _MAX_FOLDS)
        folds = [list(parts[k::count]) for k in range(count)]
        return folds, f"{len(parts)} recordings in {count} folds"
    (part,) = parts
    length = len(part) // _STRETCHES
    if length < _MIN_STRETCH_SAMPLES:
        raise InvalidSamples(
            f"{len(part)} samples are too few to choose a friction law by prediction: state one"
        )
    stretches = [[part.rows(slice(k * length, (k + 1) * length))] for k in range(_STRETCHES)]
    return stretches, f"{_STRETCHES} stretches of one recording"
