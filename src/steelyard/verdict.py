"""Verdicts: whether an answer may be used, and the doubts about it, each with a code and words.

A verdict is made once, where an answer is judged. Sentences, JSON, exit codes, pages and the
refusal of an export derive from it; no code searches for words in a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter

from steelyard._codec import Value
from steelyard._units import printable


class Aspect(StrEnum):
    """The quantities of a payload, each of which has a verdict of its own."""

    MASS = "mass"
    CENTRE = "centre of mass"
    INERTIA = "inertia"


class Fitness(StrEnum):
    """Whether a quantity may be used."""

    USE = "use"
    CARE = "use with care"
    DO_NOT_USE = "do not use"


EVERYTHING = tuple(Aspect)
"""All quantities of a payload."""


class DoubtKind(StrEnum):
    """The kinds of doubts about an answer."""

    NOT_EXCITED = "not_excited"  # the motion does not determine some of the numbers
    NOTHING_CARRIED = "nothing_carried"  # the mass cannot be distinguished from zero
    NEGATIVE_MASS = "negative_mass"  # the arm seems to carry less than nothing
    IMPLAUSIBLE = "implausible"  # no tool or part has such a mass, size or density
    NOT_PHYSICAL = "not_physical"  # no real body is near the estimate
    NOT_CONVERGED = "not_converged"  # a search or a tracker has not reached what was requested
    STOPPED = "stopped"  # interrupted before all alternatives were compared
    CONTRADICTS_MODEL = "contradicts_model"  # loaded and empty arm do not fit together
    CONTRADICTS_GIVEN = "contradicts_given"  # the data contradict a number that the user gave
    UNEXPLAINED_TORQUE = "unexplained_torque"  # residuals far beyond noise
    DOES_NOT_PREDICT = "does_not_predict"  # a model fails on what it was not fitted to
    CONFIGURED_PAYLOAD = "configured_payload"  # the controller is set to another payload
    OTHER_ROBOT = "other_robot"  # the recording is of another arm than the model
    TILTED_BASE = "tilted_base"  # the base is far from the stated orientation
    GRAVITY = "gravity"  # weight and inertia disagree, or the stated gravity is not Earth's
    STEADY_FORCE = "steady_force"  # a constant force besides the load explains the torques better
    LOAD_CHANGED = "load_changed"  # the load is not the same throughout a run
    TORQUE_SCALE = "torque_scale"  # torques of some runs are scaled differently
    NEGATIVE_FRICTION = "negative_friction"  # a coefficient of friction is below zero
    FRICTION_SHAPE = "friction_shape"  # a shape of the friction law lies at an end of its range
    MODEL_DOUBTED = "model_doubted"  # there are doubts about the model itself
    PREPARED_OTHERWISE = "prepared_otherwise"  # samples and model were prepared differently
    RECORDING = "recording"  # a recording has faults
    NOISY_MOTION = "noisy_motion"  # noise of the motion biases inertias towards zero
    GAINS = "gains"  # drive gains are doubtful
    POSTURES_TOO_ALIKE = "postures_too_alike"  # postures at rest differ too little
    NO_ZERO = "no_zero"  # a wrist sensor was never at rest without contact
    DRIFT_MOVES = "drift_moves"  # the zero of a sensor drifts
    TOO_UNCERTAIN = "too_uncertain"  # the interval is wider than a use allows
    UNKNOWN_FRICTION = "unknown_friction"  # drives have friction that the model does not know
    BEYOND_LEARNED = "beyond_learned"  # the motion exceeds the one for learning
    MOSTLY_CONTACT = "mostly_contact"  # more contact than free motion
    ASSUMED = "assumed"  # a value was assumed, not measured
    NOT_CHECKED = "not_checked"  # limits of the motion were not given
    TOO_SHORT = "too_short"  # the recording ends before an observer has settled


@dataclass(frozen=True)
class Doubt(Value, optional=("concerns",)):
    """One thing that counts against an answer.

    Attributes:
        kind: what it is, for programs
        words: what it is and what to do, a sentence without a full stop, for people
        blocks: whether the quantities that it concerns must not be used because of it; otherwise it
            is worth knowing
        concerns: quantities of a payload; all by default
    """

    kind: DoubtKind
    words: str
    blocks: bool = True
    concerns: tuple[Aspect, ...] = EVERYTHING

    @property
    def reason(self) -> str:
        """The words up to the first colon or semicolon: what it is, without advice."""
        return _first_clause(self.words)

    def __str__(self) -> str:
        return printable(_sentence(self.words))


def _first_clause(words: str) -> str:
    return re.split("[;:] ", words, maxsplit=1)[0]


def _in_sentences(verdict: Verdict) -> str:
    """Summary and doubts with full stops; in files +- stays as it is."""
    return _sentence(verdict.sentence or "there are no doubts")


def _states(verdict: Verdict) -> dict[str, str]:
    return {str(aspect): str(state) for aspect, state in verdict.states.items()}


@dataclass(frozen=True)
class Verdict(
    Value,
    derived={"ok": attrgetter("ok"), "sentence": _in_sentences, "states": _states},
    optional=("states",),
):
    """How good an answer is, as a whole and for each quantity of a payload.

    Attributes:
        summary: what was found, a sentence without a full stop
        doubts: what counts against it
    """

    summary: str = ""
    doubts: tuple[Doubt, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the answer may be used: mass and centre of mass of a payload."""
        return not self.blocking

    @property
    def blocking(self) -> tuple[Doubt, ...]:
        """The doubts because of which it must not be used."""
        needed = {Aspect.MASS, Aspect.CENTRE}
        return tuple(doubt for doubt in self.doubts if doubt.blocks and needed & {*doubt.concerns})

    @property
    def states(self) -> dict[Aspect, Fitness]:
        """Whether each quantity of a payload may be used."""
        return {aspect: self.fitness(aspect) for aspect in Aspect}

    def fitness(self, aspect: Aspect) -> Fitness:
        """Whether a quantity may be used."""
        reasons = self.reasons(aspect)
        if any(doubt.blocks for doubt in reasons):
            return Fitness.DO_NOT_USE
        if reasons:
            return Fitness.CARE
        return Fitness.USE

    def reasons(self, aspect: Aspect) -> tuple[Doubt, ...]:
        """The doubts that concern a quantity."""
        return tuple(doubt for doubt in self.doubts if aspect in doubt.concerns)

    def has(self, *kinds: DoubtKind) -> bool:
        """Whether there is a doubt of one of these kinds."""
        return any(doubt.kind in kinds for doubt in self.doubts)

    def doubted(self, *more: Doubt) -> Verdict:
        """The same verdict with more doubts; those that it has already are not repeated."""
        return Verdict(self.summary, tuple(dict.fromkeys((*self.doubts, *more))))

    @property
    def sentence(self) -> str:
        """Summary and doubts in one sentence without a full stop, blocking doubts first."""
        against = [doubt.words for doubt in self.blocking]
        inertia = [
            doubt.words for doubt in self.doubts if doubt.blocks and doubt not in self.blocking
        ]
        aside = [doubt.words for doubt in self.doubts if not doubt.blocks]
        parts = [self.summary]
        if against:
            parts.insert(0, f"do not use this: {'; '.join(against)}")
        if inertia:
            parts.append(f"do not use the inertia: {'; '.join(inertia)}")
        return "; ".join(words for words in (*parts, *aside) if words)

    def __repr__(self) -> str:
        """The states, in one word where all are equal: a model has no mass of its own."""
        if len(set(self.states.values())) == 1:
            states = str(self.fitness(Aspect.MASS))
        else:
            states = ", ".join(f"{aspect}: {state}" for aspect, state in self.states.items())
        return f"<Verdict: {states}. {self}>"

    def __str__(self) -> str:
        return printable(_in_sentences(self))


def together(summary: str, verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on an answer that rests on several others: all of their doubts."""
    return Verdict(summary).doubted(*(doubt for verdict in verdicts for doubt in verdict.doubts))


def _sentence(words: str) -> str:
    """The words as sentences: semicolons separate them."""
    sentences = [part for part in words.split("; ") if part]
    return " ".join(
        f"{part[0].upper()}{part[1:]}{'' if part.endswith('?') else '.'}" for part in sentences
    )
