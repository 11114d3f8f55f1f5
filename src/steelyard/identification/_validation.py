"""How well a model predicts unseen recordings, and the choice of a friction law by prediction.

Measures for a recording that was not fitted: the root mean square of the residuals (ding2019 eq.
(12)), the correlation of measured and predicted torque (eq. (13)), and the relative residual
|tau - predicted| / |tau|, for each joint over all samples, including those at rest.

A friction law is chosen by cross-validation: each recording (or each quarter of a single one) is
predicted from the others. The mean relative residual over the joints is the score that is shown.

Laws are compared on the same stretches s of what was predicted: with the squared residuals E_sj of
joint j, and e_j a hundredth of the joint's RMS torque,

    l_s = mean over joints of log((E_sj + e_j^2) / (E'_sj + e_j^2)) / 2

says how much worse one law predicts a stretch than another. Stretches that are difficult for both
cancel, and logarithms keep one wild stretch from hiding what all others say. The best law has the
smallest mean of l against any other. A law is not worse if its mean of l against the best is within
one standard error of that mean (Breiman 1984, with paired differences), or below 1 %: stretches of
one recording share their motion and the friction of the day, so that their standard error is too
small for other recordings. Of the laws that are not worse the simplest is chosen; one with Coulomb
or viscous friction that is negative beyond its error (jackknife over the folds) only if all of them
have that. The chosen law is then compared with itself with friction that differs by direction, by
the same rule.

The rule was chosen on 144 simulated arms (four arms, nine kinds of friction, five of them outside
the laws, 8 to 60 s of motion). On 72 others it predicts other motions 5 % worse than the best law
in hindsight (geometric mean), as one standard error of the scores themselves does. But the chosen
law is worse than the linear one by more than 2 % on 4 instead of 15 of 100 arms. The smallest gain
does no harm: on 30 simulated recordings of 15 s (three arms, five kinds of friction) other motions
are predicted 0.3 to 0.6 % worse than by the best law in hindsight, with any from 0 to 3 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard._computing import Progress, interruptible
from steelyard._kinds import INFINITE, NOT_NEGATIVE
from steelyard._units import NORMAL_95
from steelyard.errors import InvalidSamples
from steelyard.identification._fit import fit_shapes
from steelyard.identification._problem import RowMaker
from steelyard.recording import Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.robot._friction import FrictionLaw
from steelyard.robot._parameters import ParameterKind

_STRETCHES = 4  # of each recording
_MAX_FOLDS = 4  # of cross-validation
_MIN_STRETCH_SAMPLES = 100
_MIN_RESIDUAL = 0.01  # of a joint's RMS torque; smaller differences of laws do not count
_MIN_GAIN = 0.01  # smallest mean of l, a logarithm, by which a law is worse
_NEGLIGIBLE_FRICTION = 0.02  # beside the joint's other coefficient at 1 rad/s
_LAWS = (
    *("linear", "band", "smooth", "power", "smooth-power", "stribeck", "load"),
    *("presliding", "presliding-power", "presliding-load"),
)


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
    laws: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> FrictionChoice:
    """The simplest friction law of those that predict unseen recordings best.

    A KeyboardInterrupt ends the comparison with the best law so far, if there is one.

    Args:
        parts: sets of samples, each in the order of time
        laws: names to choose from, simple ones first; by default all bundled laws, and the chosen
            one with friction that differs by direction
    """
    folds, words = _folds(parts)
    names = _LAWS if laws is None else laws
    count = len(names) + (laws is None)
    comparison = _Comparison(RowMaker(robot, ParameterBasis.of(robot)), folds, count, progress)
    try:
        for name in names:
            comparison.add(FrictionLaw.named(name, robot.n))
        chosen = _simplest(comparison.predicted)
        if laws is None:
            chosen = comparison.by_direction(chosen)
    except KeyboardInterrupt:
        if not comparison.predicted:
            raise
        chosen = _simplest(comparison.predicted)
    scores = {name: own.score for name, own in comparison.predicted.items()}
    every = dict.fromkeys((*names, comparison.trying))
    not_compared = tuple(name for name in every if name not in scores)
    return FrictionChoice(chosen, scores, words, not_compared)


@dataclass(eq=False)
class _Comparison:
    """Laws that are compared on the same folds.

    Attributes:
        maker: of the rows
        folds: sets of samples that are left out in turn
        count: of laws that will be compared
        progress: a callback
        predicted: by name of the law
        trying: name of the law that is compared now, or was the last one
    """

    maker: RowMaker
    folds: Sequence[Sequence[Samples]]
    count: int
    progress: Progress | None
    predicted: dict[str, _LeftOut] = field(default_factory=dict)
    trying: str = ""

    def add(self, law: FrictionLaw) -> None:
        """Predicts each fold from the others; can be stopped once there is another law."""
        self.trying = law.name
        tried = len(self.predicted)
        if self.progress is not None:
            words = f"law {tried + 1} of {self.count}: {law.name}{_best_so_far(self.predicted)}"
            self.progress(tried / self.count, words)
        with interruptible() if self.predicted else nullcontext():
            self.predicted[law.name] = _LeftOut.of(self.maker, self.folds, law)

    def by_direction(self, name: str) -> str:
        """The name of a law, with friction that differs by direction if it predicts better."""
        wider = self.predicted[name].law.by_direction
        self.add(wider)
        return _simplest({one: self.predicted[one] for one in (name, wider.name)})


def _simplest(predicted: Mapping[str, _LeftOut]) -> str:
    """The name of the simplest law that predicts not worse than the best one.

    Args:
        predicted: by name of the law, simple ones first
    """
    first = next(iter(predicted.values()))
    best = min(predicted.values(), key=lambda own: own.worse_than(first).mean())
    good = [name for name, own in predicted.items() if _not_worse(own, best)]
    possible = [name for name in good if not predicted[name].impossible]
    return (possible or good)[0]


def _not_worse(own: _LeftOut, best: _LeftOut) -> bool:
    """Whether a law predicts as well as the best, but for one standard error or `_MIN_GAIN`."""
    worse = own.worse_than(best)
    standard_error = worse.std(ddof=1) / np.sqrt(len(worse))
    return bool(worse.mean() <= max(standard_error, _MIN_GAIN))


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """What a law predicts of stretches that were left out.

    Attributes:
        residuals: squared, summed over each stretch, (stretches, n) [Nm^2 or N^2]
        torques: the same of the torques, (stretches, n)
        friction: Fc and Fv of each fit, (folds, 2, n)
        law: with the shapes of the last fit
    """

    residuals: Array
    torques: Array
    friction: Array
    law: FrictionLaw

    @classmethod
    def of(cls, maker: RowMaker, folds: Sequence[Sequence[Samples]], law: FrictionLaw) -> _LeftOut:
        """The predictions of each fold from the others."""
        n = maker.robot.n
        kinds = (ParameterKind.COULOMB, ParameterKind.VISCOUS)
        squares = []
        friction = []
        starts: Sequence[FrictionLaw] = law.starts
        for k, fold in enumerate(folds):
            others = [part for i, other in enumerate(folds) if i != k for part in other]
            law, theta = fit_shapes(maker, others, starts)
            starts = (law,)  # the next fold starts where this one ended
            friction.append(maker.parameters(law).of_kinds_by_joint(theta, kinds, n))
            for part in fold:
                both = np.array([part.tau - maker.torque(part, law, theta), part.tau]) ** 2
                pieces = np.array_split(both, _STRETCHES, axis=1)
                squares += [stretch.sum(axis=1) for stretch in pieces]
        residuals, torques = np.stack(squares, axis=1)
        return cls(residuals, torques, np.array(friction), law)

    @property
    def score(self) -> float:
        """The relative residual, mean over the joints."""
        residual = self.residuals.sum(axis=0)
        torque = self.torques.sum(axis=0)
        return float(np.sqrt(residual / np.maximum(torque, 1e-12)).mean())

    @property
    def impossible(self) -> bool:
        """Whether friction is negative beyond its 95 % interval and not negligible."""
        mean = self.friction.mean(axis=0)
        count = len(self.friction)
        std = np.sqrt((count - 1) / count * ((self.friction - mean) ** 2).sum(axis=0))
        negligible = _NEGLIGIBLE_FRICTION * np.abs(mean[::-1])
        return bool(((mean + NORMAL_95 * std < 0) & (-mean > negligible)).any())

    def worse_than(self, other: _LeftOut) -> Array:
        """How much larger residuals are than those of another law, as a logarithm, (stretches,)."""
        least = _MIN_RESIDUAL**2 * self.torques.mean(axis=0) + 1e-300
        ratio = (self.residuals + least) / (other.residuals + least)
        return np.asarray(0.5 * np.log(ratio).mean(axis=1))


def _best_so_far(predicted: Mapping[str, _LeftOut]) -> str:
    if not predicted:
        return ""
    best = min(predicted, key=lambda name: predicted[name].score)
    return f", best so far {best} {100 * predicted[best].score:.1f} %"


def _folds(parts: Sequence[Samples]) -> tuple[list[list[Samples]], str]:
    if len(parts) > 1:
        count = min(len(parts), _MAX_FOLDS)
        folds = [list(parts[k::count]) for k in range(count)]
        return folds, f"{len(parts)} recordings in {count} folds"
    (part,) = parts
    length = len(part) // _STRETCHES
    if length < _MIN_STRETCH_SAMPLES:
        raise InvalidSamples(
            f"{len(part)} samples are too few to choose a friction law by prediction: record a"
            " longer motion, 10 s or more, or state `friction`"
        )
    stretches = [[part.rows(slice(k * length, (k + 1) * length))] for k in range(_STRETCHES)]
    return stretches, f"{_STRETCHES} stretches of one recording"
