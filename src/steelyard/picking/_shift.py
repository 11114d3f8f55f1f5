"""A shift: its picks, judged one after the other, and the values that describe them all.

A measured mass is compared with the expected part in two ways.

- **Absolute**: the mass from the arm's model, with all errors. It needs nothing but the model.
- **Relative**: against picks of known mass, or against the median of the last good picks of the
  same part. Errors that are common to all picks cancel, so its interval is narrower. The median
  alone would hide a lot that is wrong as a whole, so the mean of the lot is judged by its absolute
  mass.

Misfit of the model on a path is the same in each cycle. The deviation of a single pick contains it,
the scatter of picks on this path does not. With z_i the distance of k good picks from their median
in their own deviations, the deviation of the relative mass is therefore multiplied by the root of

    f = (nu_0 + sum z_i^2) / (nu_0 + k - 1),     nu_0 = 8,

and its limits are those of Student's t with nu_0 + k - 1 degrees of freedom.

The narrower of the two decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard._codec import FileValue
from steelyard._kinds import NOT_NEGATIVE, ONE_LINE, Range, Shape
from steelyard._units import printable
from steelyard.errors import InvalidSamples, UnknownName
from steelyard.payload import Part
from steelyard.picking._carry import Mass
from steelyard.picking._decide import Judged, MassLimits, judged_by_mass
from steelyard.picking._pick import Decision, EarlyAnswer, Measured, Pick, PickRow
from steelyard.picking._weigher import Weighed
from steelyard.recording import Library, data_frame

_MIN_MEDIAN_PICKS = 5
_MEDIAN_PICKS = 50
_MEDIAN_VARIANCE = 1.571  # of a median of k values, over that of their mean: pi / 2
_ASSUMED_PICKS = 8.0  # nu_0 above: the deviations of single picks count as much as this many
_UNKNOWN_PART_TOLERANCE = 0.05  # of the median, where no table of parts is given
_MIN_UNKNOWN_PICKS = 3
_MAX_MODEL_ERROR = 0.2  # of a mass, relative, that known picks may correct
_MAX_KNOWN_DEVIATIONS = 6.0  # standard deviations of the weighed mass, in addition


@dataclass(frozen=True)
class PickingOptions:
    """How picks are found, weighed and judged.

    Attributes:
        false_alarms_per_1000: stated rate of false alarms among 1,000 good picks
        expect: names of the parts that are picked in turn; empty if any part of the table is fine
        known: masses of picks that were weighed otherwise, by number of the pick [kg]
        closed: whether the gripper is closed where its signal is 'high' or 'low'; 'auto' to find
            out from the torques
        bit: of a gripper column that holds a field of digital outputs, from 0; None for the column
            itself
        threshold: value of the gripper between open and closed; None for the middle between the two
            levels of a log, and for a stream of zeros and ones
        margin_s: time that does not count after gripping or lifting, and before placing [s]
        min_pulse_s: shorter pulses of the gripper are chatter [s]
        min_carry_s: shorter carries are not weighed [s]
        early_s: time into the lift of the early answer [s]
        tool: name of the gripper, for comparisons of shifts
    """

    false_alarms_per_1000: float = 1.0
    expect: tuple[str, ...] = ()
    known: Mapping[int, float] = field(default_factory=dict)
    closed: Literal["auto", "high", "low"] = "auto"
    bit: int | None = None
    threshold: float | None = None
    margin_s: float = 0.1
    min_pulse_s: float = 0.05
    min_carry_s: float = 0.3
    early_s: float = 0.3
    tool: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.false_alarms_per_1000 < 1000:
            raise InvalidSamples(
                "`false_alarms_per_1000` must lie between 0 and 1000, got"
                f" {self.false_alarms_per_1000:g}"
            )
        if self.closed not in ("auto", "high", "low"):
            raise UnknownName(f"`closed` is auto, high or low, got '{self.closed}'")
        for name in ("margin_s", "min_pulse_s", "min_carry_s", "early_s"):
            if not getattr(self, name) >= 0:
                raise InvalidSamples(f"`{name}` must not be negative, got {getattr(self, name):g}")
        if self.bit is not None and not 0 <= self.bit < 63:
            raise InvalidSamples(f"`bit` lies between 0 and 62, got {self.bit}")
        if self.threshold is not None:
            self._check_threshold(self.threshold)
        for number, mass in self.known.items():
            if number < 1 or not mass >= 0:
                raise InvalidSamples(
                    "`known` picks are a number from 1 and a mass that is not negative, got"
                    f" {number} and {mass:g} kg"
                )

    def _check_threshold(self, threshold: float) -> None:
        if not np.isfinite(threshold):
            raise InvalidSamples(f"`threshold` must be a finite number, got {threshold:g}")
        if self.bit is not None:
            raise InvalidSamples("`threshold` is for a position; a `bit` is 0 or 1 already")

    @property
    def limits(self) -> MassLimits:
        """The limits with the stated rate of false alarms."""
        return MassLimits(self.false_alarms_per_1000 / 1000)


def require_different_names(parts: Sequence[Part]) -> None:
    """Refuses parts of which two have one name.

    Args:
        parts: of a table
    """
    names = [part.name for part in parts]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidSamples(f"the part '{twice[0]}' is there twice; name each part once")


class Compared(NamedTuple):
    """A mass compared with those of other picks.

    Attributes:
        mass: relative to them
        freedom: degrees of freedom of its standard deviation; infinite where it is known
    """

    mass: Measured
    freedom: float


def is_contradicted(mass: Mass | Measured, known: float) -> bool:
    """Whether a given mass is too far from the weighed one to belong to the same pick.

    Args:
        mass: that was weighed
        known: that is given [kg]
    """
    possible = _MAX_MODEL_ERROR * max(known, abs(mass.value)) + _MAX_KNOWN_DEVIATIONS * mass.std
    return abs(mass.value - known) > possible


@dataclass(frozen=True)
class References:
    """What relative masses are compared with.

    Attributes:
        known: errors of picks whose mass is known, and their own deviations [kg]
        recent: absolute masses of the last good picks of each part and their own deviations, by
            name [kg]
    """

    known: tuple[tuple[float, float], ...] = ()
    recent: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)

    def compared(self, mass: Mass, part: Part) -> Compared | None:
        """The mass relative to known picks, or to recent ones of the part; None without them."""
        if self.known:
            errors = np.array(self.known)
            weights = 1.0 / np.maximum(errors[:, 1], 1e-9) ** 2
            error = float(weights @ errors[:, 0] / weights.sum())
            std = float(np.hypot(mass.own_std, weights.sum() ** -0.5))
            return Compared(Measured(mass.value - error, std), np.inf)
        recent = self.recent.get(part.name, ())
        k = len(recent)
        if k < _MIN_MEDIAN_PICKS:
            return None
        median = self.median(part.name)
        z = [(value - median) / max(own_std, 1e-9) for value, own_std in recent]
        freedom = _ASSUMED_PICKS + k - 1
        scale = (_ASSUMED_PICKS + float(np.square(z).sum())) / freedom
        std = mass.own_std * float(np.sqrt(scale * (1 + _MEDIAN_VARIANCE / k)))
        return Compared(Measured(mass.value - median + part.mass, std), freedom)

    def median(self, name: str) -> float:
        """The median of the recent masses of a part [kg]."""
        return float(np.median([value for value, _ in self.recent[name]]))

    def with_known(self, mass: Mass, known: float) -> References:
        """The references with one more pick of known mass [kg], unless it is contradicted."""
        if is_contradicted(mass, known):
            return self
        return replace(self, known=(*self.known, (mass.value - known, mass.own_std)))

    def with_good(self, mass: Mass, name: str) -> References:
        """The references with one more good pick of a part."""
        pair = (mass.value, mass.own_std)
        kept = (*self.recent.get(name, ()), pair)[-_MEDIAN_PICKS:]
        return replace(self, recent={**self.recent, name: kept})


@dataclass(frozen=True, eq=False)
class PickJudge:
    """Decides what picks are.

    Attributes:
        parts: of the table; empty if there is none
        options: with the stated rate of false alarms
    """

    parts: tuple[Part, ...]
    options: PickingOptions

    def __post_init__(self) -> None:
        require_different_names(self.parts)
        names = [part.name for part in self.parts]
        if self.options.expect and not names:
            raise UnknownName("`expect` names parts of a table: give the table as `parts`")
        for name in self.options.expect:
            if name not in names:
                raise UnknownName(
                    f"`expect`: there is no part '{name}' in the table, but {', '.join(names)}"
                )

    def expected(self, number: int, references: References) -> list[Part]:
        """The parts that a pick may be, by its number from 1; empty if nothing is known."""
        if self.options.expect:
            name = self.options.expect[(number - 1) % len(self.options.expect)]
            return [part for part in self.parts if part.name == name]
        if self.parts:
            return list(self.parts)
        recent = references.recent.get("", ())
        if len(recent) < _MIN_UNKNOWN_PICKS:
            return []
        mass = references.median("")
        return [Part("", max(mass, 1e-6), _UNKNOWN_PART_TOLERANCE * mass)]

    def judged(
        self, number: int, weighed: Weighed, references: References
    ) -> tuple[Pick, References]:
        """A pick, and the references after it.

        Args:
            number: of the pick, from 1
            weighed: the carry
            references: before
        """
        expected = self.expected(number, references)
        stretch = weighed.stretch
        if not expected:
            return self._without_part(number, weighed, references)
        part, mass = self._best(expected, weighed.masses)
        compared = references.compared(mass, part)
        found = self._judged(mass, compared, expected)
        found = self._changed(weighed, expected) or found
        early = self.early(number, stretch.start_s, weighed.early, references)
        pick = Pick(
            number,
            stretch.start_s,
            stretch.end_s,
            found.decision,
            part.name,
            found.fits,
            Measured(mass.value, mass.std),
            None if compared is None else compared.mass,
            early.mass,
            early.decision,
            (*found.reasons, *_remarks(weighed), *self._known_remarks(number, mass)),
        )
        if found.decision is Decision.GOOD:
            references = references.with_good(mass, part.name)
        return pick, references

    def early(
        self, number: int, close_s: float, masses: Sequence[Mass], references: References
    ) -> EarlyAnswer:
        """What a pick seems to be at the beginning of its lift.

        Args:
            number: of the pick, from 1
            close_s: when the gripper closed [s]
            masses: with the centre and the inertia of each part of the table
            references: before
        """
        expected = self.expected(number, references)
        if not expected:
            mass = Measured(masses[0].value, masses[0].std)
            empty = self.options.limits.fits(mass.value, mass.std, 0.0, 0.0)
            decision = Decision.MISSING if empty else Decision.UNCLEAR
            return EarlyAnswer(number, close_s, decision, "", mass)
        part, found = self._best(expected, masses)
        mass = Measured(found.value, found.std)
        decision = self._judged_by_mass(mass, expected).decision
        return EarlyAnswer(number, close_s, decision, part.name, mass)

    def mass_of(self, number: int, weighed: Weighed, references: References) -> Mass:
        """The mass of a carry, with the centre and the inertia of the part that it seems to be.

        Args:
            number: of the pick, from 1
            weighed: the carry
            references: before
        """
        expected = self.expected(number, references)
        if not expected:
            return weighed.masses[0]
        return self._best(expected, weighed.masses)[1]

    def _known_remarks(self, number: int, mass: Mass) -> tuple[str, ...]:
        """What to know about the given mass of a pick."""
        known = self.options.known.get(number)
        if known is None or not is_contradicted(mass, known):
            return ()
        return (f"{known:g} kg is given as its mass, which is not used as a reference",)

    def _best(self, expected: Sequence[Part], masses: Sequence[Mass]) -> tuple[Part, Mass]:
        """The expected part that is nearest to what was weighed with its centre, and the mass."""
        limits = self.options.limits
        pairs = [(part, self._mass(part, masses)) for part in expected]
        return min(
            pairs,
            key=lambda pair: limits.distance(
                pair[1].value, pair[1].std, pair[0].mass, pair[0].tolerance
            ),
        )

    def _mass(self, part: Part, masses: Sequence[Mass]) -> Mass:
        """The mass of a carry with the centre and the inertia of a part."""
        names = [one.name for one in self.parts]
        if part.name in names:
            return masses[names.index(part.name)]
        return masses[0]

    def _judged(self, mass: Mass, compared: Compared | None, expected: Sequence[Part]) -> Judged:
        """The decision by the absolute or by the relative mass, the one with narrower limits."""
        absolute = Measured(mass.value, mass.std)
        limits = self.options.limits
        if compared is not None:
            wider = replace(limits, freedom=compared.freedom)
            if wider.deviations * compared.mass.std < limits.deviations * mass.std:
                return judged_by_mass(
                    compared.mass.value, compared.mass.std, expected, self.parts, wider
                )
        return self._judged_by_mass(absolute, expected)

    def _judged_by_mass(self, mass: Measured, expected: Sequence[Part]) -> Judged:
        return judged_by_mass(mass.value, mass.std, expected, self.parts, self.options.limits)

    def _changed(self, weighed: Weighed, expected: Sequence[Part]) -> Judged | None:
        """The decision on a part that was lost or slipped on the way; None for neither.

        A part that slips keeps its mass, so a slip counts only where its mass is then right.
        """
        limit = self.options.limits.change_evidence
        lost = weighed.lost
        slipped = weighed.slipped
        if lost.evidence > limit and lost.evidence >= slipped.evidence:
            return Judged(Decision.LOST, "", (f"nothing carried after {lost.time_s:.2f} s",))
        if slipped.evidence <= limit:
            return None
        mass = Measured(slipped.mass.value, slipped.mass.std)
        by_mass = self._judged_by_mass(mass, expected)
        if by_mass.decision is not Decision.GOOD:
            return None
        words = f"its centre of mass moved at about {slipped.time_s:.2f} s"
        return Judged(Decision.SLIPPED, by_mass.fits, (words,))

    def _without_part(
        self, number: int, weighed: Weighed, references: References
    ) -> tuple[Pick, References]:
        """A pick where neither a table nor earlier picks say what to expect."""
        mass = weighed.masses[0]
        early = self.early(number, weighed.stretch.start_s, weighed.early, references)
        empty = self.options.limits.fits(mass.value, mass.std, 0.0, 0.0)
        found = Judged(Decision.UNCLEAR, "", ("no part is known to compare it with yet",))
        if empty:
            found = Judged(Decision.MISSING, "", ("nothing carried",))
        else:
            references = references.with_good(mass, "")
        pick = Pick(
            number,
            weighed.stretch.start_s,
            weighed.stretch.end_s,
            found.decision,
            mass=Measured(mass.value, mass.std),
            early=early.mass,
            early_decision=early.decision,
            reasons=found.reasons,
        )
        return pick, references


def _remarks(weighed: Weighed) -> tuple[str, ...]:
    """What else to know about a pick."""
    if weighed.blank:
        return ("no unloaded stretch came before: its interval is wider",)
    return ()


@dataclass(frozen=True)
class Batch:
    """All good picks of a part together.

    Attributes:
        part: its name
        picks: their number
        mass: mean of the absolute masses, weighted by their accuracy; its interval holds the errors
            that all picks share
        scatter: standard deviation of single picks [kg]
        is_alarm: whether the mean lies outside the tolerance
        words: what it means, a sentence without a full stop
    """

    part: str
    picks: int
    mass: Measured
    scatter: float
    is_alarm: bool
    words: str


@dataclass(frozen=True, eq=False)
class Shift(FileValue, error=InvalidSamples, kind="shift", version=1):
    """The picks of a log.

    Attributes:
        picks: in the order of time
        parts: of the table; empty if there was none
        false_alarms_per_1000: stated rate
        friction_t: times of the unloaded stretches, (k,) [s]
        friction: of each joint at 0.5 rad/s over that of the model, (k, n)
        common_std: deviation of the mass that all picks share, of each pick, (N,) [kg]; 0 where it
            was not weighed
        joint_names: n names
        notes: remarks about the log, one sentence without a full stop each
        source: of the log
        tool: name of the gripper, for comparisons of shifts; empty where it is not given
    """

    picks: Annotated[tuple[Pick, ...], Shape("N")]
    parts: tuple[Part, ...]
    false_alarms_per_1000: Annotated[float, Range(0.0, 1000.0, above=True)]
    friction_t: Annotated[Array, Shape("k")]
    friction: Annotated[Array, Shape("k", "n")]
    common_std: Annotated[tuple[Annotated[float, NOT_NEGATIVE], ...], Shape("N")]
    joint_names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    source: str = ""
    tool: Annotated[str, ONE_LINE] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_different_names(self.parts)
        known = {"", *(part.name for part in self.parts)}
        for pick in self.picks:
            for name in (pick.part, pick.fits):
                if name not in known:
                    raise InvalidSamples(
                        f"pick {pick.number} is compared with '{name}', which is none of the parts:"
                        f" {', '.join(sorted(known - {''})) or 'there is no table of parts'}"
                    )

    def __len__(self) -> int:
        return len(self.picks)

    @property
    def alarms(self) -> tuple[Pick, ...]:
        """Picks with a fault."""
        return tuple(pick for pick in self.picks if pick.is_alarm)

    @property
    def has_alarms(self) -> bool:
        """Whether a pick or a whole batch has a fault."""
        return bool(self.alarms) or any(batch.is_alarm for batch in self.batches)

    @property
    def counts(self) -> dict[str, int]:
        """The number of picks by decision."""
        return {
            str(decision): count
            for decision in Decision
            if (count := sum(pick.decision is decision for pick in self.picks))
        }

    @property
    def batches(self) -> tuple[Batch, ...]:
        """The good picks of each part together."""
        names = dict.fromkeys(pick.part for pick in self.picks)
        found = (self._batch(name) for name in names)
        return tuple(batch for batch in found if batch is not None)

    def _batch(self, name: str) -> Batch | None:
        chosen = [
            (pick.mass, common)
            for pick, common in zip(self.picks, self.common_std, strict=True)
            if pick.part == name and pick.decision is Decision.GOOD and pick.mass is not None
        ]
        if not chosen:
            return None
        values = np.array([mass.value for mass, _ in chosen])
        own = np.array([max(mass.std**2 - common**2, 1e-12) for mass, common in chosen])
        weights = (1 / own) / np.sum(1 / own)
        common_std = float(weights @ [common for _, common in chosen])
        mean = Measured(float(weights @ values), float(np.sqrt(weights**2 @ own + common_std**2)))
        scatter = _scatter(values - mean.value, weights)
        part = next((part for part in self.parts if part.name == name), None)
        limits = MassLimits(self.false_alarms_per_1000 / 1000)
        alarm = part is not None and not limits.fits(
            mean.value, mean.std, part.mass, part.tolerance
        )
        title = f"'{name}'" if name else "picks"
        words = f"{len(values)} good {title}: mean {mean}, single picks scatter by {scatter:.3f} kg"
        if part is not None and alarm:
            words += f"; the lot as a whole is not {part.mass:.3f} +- {part.tolerance:.3f} kg"
        return Batch(name, len(values), mean, scatter, alarm, words)

    @property
    def summary(self) -> str:
        """The shift in one sentence."""
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        words = f"{len(self.picks)} picks: {counts or 'none'}"
        rate = f"{self.false_alarms_per_1000:g}"
        alarms = "alarm" if rate == "1" else "alarms"
        return f"{words}; at most {rate} false {alarms} per 1,000 good picks"

    def to_dataframe(self, library: Library = "pandas") -> Any:
        """A table with one row per pick; masses in kg, times in s.

        Args:
            library: whose table: 'pandas', 'polars' or 'pyarrow'
        """
        rows = [pick.row() for pick in self.picks]
        columns: dict[str, Sequence[object] | Array] = {}
        for name in PickRow._fields:
            columns[name] = [getattr(row, name) for row in rows]
            if name.startswith(("mass", "relative", "early")) and name != "early_decision":
                columns[name] = np.array(columns[name], dtype=float)
        return data_frame(columns, library)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_dataframe("pyarrow").__arrow_c_stream__(requested_schema)

    def __str__(self) -> str:
        return printable(self.summary)

    def __repr__(self) -> str:
        return f"<Shift: {self}>"


def _scatter(deviations: Array, weights: Array) -> float:
    """The standard deviation of single picks [kg]; 0 for one pick.

    Args:
        deviations: from their weighted mean, (N,) [kg]
        weights: whose sum is 1, (N,)
    """
    freedom = 1 - float(weights @ weights)
    if freedom <= 0:
        return 0.0
    return float(np.sqrt(weights @ deviations**2 / freedom))


def unused_known(known: Mapping[int, float], picks: Sequence[Pick]) -> Iterator[str]:
    """Which given masses belong to no pick that was weighed, one sentence for each.

    Args:
        known: masses by number of the pick [kg]
        picks: of the whole log
    """
    weighed = {pick.number: pick.mass is not None for pick in picks}
    for number in known:
        if number not in weighed:
            yield f"there is no pick {number}, whose mass is given: the log has {len(picks)}"
        elif not weighed[number]:
            yield f"pick {number}, whose mass is given, was not weighed"


def judged_picks(
    judge: PickJudge, weighed: Iterable[tuple[int, Weighed]]
) -> list[tuple[Pick, float]]:
    """The picks of carries, with the deviation that all share [kg]; known ones count for all.

    Args:
        judge: that decides
        weighed: carries with their numbers, from 1
    """
    carries = list(weighed)
    references = References()
    known = judge.options.known
    for number, carry in carries:
        if number in known:
            mass = judge.mass_of(number, carry, references)
            references = references.with_known(mass, known[number])
    out = []
    for number, carry in carries:
        mass = judge.mass_of(number, carry, references)
        pick, references = judge.judged(number, carry, references)
        out.append((pick, mass.common_std))
    return out
