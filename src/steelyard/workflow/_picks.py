"""The picks of a shift, from a log of ordinary work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard._computing import one_blas_thread
from steelyard._units import NORMAL_95
from steelyard.drawing import Plot
from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.identification._temperature import with_temperature_drift
from steelyard.io._parts import read_parts
from steelyard.payload import Part
from steelyard.picking import Decision, Pick, PickingOptions, Shift
from steelyard.picking._carry import Carry, Mass
from steelyard.picking._dry import DryCycle, DryPath
from steelyard.picking._foresight import Visibility, visible_faults
from steelyard.picking._segments import (
    GripperState,
    Stretch,
    gripper_states,
    require_gripper_signal,
    rests,
)
from steelyard.picking._shift import (
    PickJudge,
    is_contradicted,
    judged_picks,
    unused_known,
)
from steelyard.picking._weigher import StretchWeigher, Weighed, WeigherState
from steelyard.recording import Preparation, Samples
from steelyard.robot import RobotModel, load_robot
from steelyard.workflow._arm import identify
from steelyard.workflow._data import (
    Data,
    Run,
    identified_arm,
    is_robot,
    preparation_for,
    require_motion,
    runs_of,
    temperature_of,
)

if TYPE_CHECKING:
    from steelyard.report import Page

_MAX_ALARM_PLOTS = 10
_MIN_REST_S = 0.15  # between two motions [s]
_MIN_POLARITY_DEVIATIONS = 4.0
_POLARITY_STRETCHES = 6  # of either state
_MAX_CUT_S = 2.0  # of a gap of the log in which the gripper stays closed [s]
_MIN_CARRIED_SHARE = 0.5  # of the lightest part, that a stretch with an open gripper carries
_MIN_LOADED_OPEN = 3  # stretches that carry something with an open gripper, to refuse the log
_MIN_CARRIED_DEVIATIONS = 5.0  # of something carried, where there is no gripper and no table


def any_part() -> Part:
    """A part about which nothing is known."""
    return Part("", 1.0, com_tolerance=0.15)


@dataclass(frozen=True, eq=False)
class _Log:
    """A log without gaps: samples, and the states of the gripper, on the clock of the whole log.

    Attributes:
        samples: prepared as those of the model
        states: of the gripper; None if it was not recorded
        chatter: number of short pulses of the gripper
        holes: beginning and end of the times without numbers of the gripper [s]
    """

    samples: Samples
    states: tuple[GripperState, ...] | None
    chatter: int = 0
    holes: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of(cls, run: Run, start_s: float, options: PickingOptions) -> _Log:
        """The log of a prepared run that starts at a time of the whole log [s]."""
        recording = run.recording
        if recording is None:
            return cls(run.ready, None)
        offset_s = recording.epoch_s - start_s
        samples = replace(run.ready, start_s=run.ready.start_s + offset_s)
        if recording.gripper is None:
            return cls(samples, None)
        require_gripper_signal(recording.gripper)
        signal = _bit(recording.gripper[:, 0], options.bit)
        found = gripper_states(
            recording.t + offset_s,
            signal,
            min_pulse_s=options.min_pulse_s,
            threshold=options.threshold,
        )
        return cls(samples, found.states, found.chatter, found.holes)

    def between(self, start_s: float, end_s: float) -> Samples | None:
        """The samples between two times [s]; None if there are hardly any."""
        first, last = np.searchsorted(self.samples.t, [start_s, end_s])
        if last - first < 2:
            return None
        return self.samples.rows(slice(int(first), int(last)))


def _bit(signal: Array, bit: int | None) -> Array:
    """A bit of a signal of whole numbers, (N,); the signal itself without one."""
    if bit is None:
        return signal
    known = np.isfinite(signal)
    whole = np.where(known, signal, 0.0).astype(np.int64)
    return np.where(known, (whole >> bit) & 1, np.nan)


class _StretchResult(NamedTuple):
    """What was found in a stretch: a carry that was weighed or refused, or neither.

    Attributes:
        state: after the stretch
        number: of the pick, from 1; 0 for a stretch with the gripper open
        weighed: the carry, if it was weighed
        refused: the pick, if its carry cannot be weighed
    """

    state: WeigherState
    number: int = 0
    weighed: Weighed | None = None
    refused: Pick | None = None


@dataclass(frozen=True, eq=False)
class Picking:
    """The steps of `picks`, each computed when it is first needed.

    Attributes:
        model: of the empty arm
        data: of the shift
        parts: of the table; empty if there is none
        options: how picks are found, weighed and judged
        preparation: how recordings become samples; that of the model by default
        dry: recordings of the same path without parts
        model_of_dry: whether the model comes from these recordings, so that it holds on their path
            alone
    """

    model: DynamicModel
    data: Data
    parts: tuple[Part, ...] = ()
    options: PickingOptions = field(default_factory=PickingOptions)
    preparation: Preparation | None = None
    dry: Data = ()
    model_of_dry: bool = False

    @classmethod
    def of(
        cls,
        model: DynamicModel | RobotModel | str | Path,
        data: Data,
        parts: tuple[Part, ...] = (),
        options: PickingOptions | None = None,
        preparation: Preparation | None = None,
        dry: Data = (),
    ) -> Picking:
        """The steps with a model; with a robot alone, its model comes from the dry recordings.

        Args:
            model: of the empty arm or its file; or a robot, its name or its file
            data: of the shift
            parts: of the table; empty if there is none
            options: how picks are found, weighed and judged
            preparation: how recordings become samples
            dry: recordings of the same path without parts
        """
        options = options or PickingOptions()
        if not is_robot(model) or _is_missing(dry):
            known = identified_arm(model)
            return cls(known, data, parts, options, preparation, dry)
        robot = model if isinstance(model, RobotModel) else load_robot(str(model))
        known = identify(robot, dry, friction="linear", preparation=preparation)
        return cls(known, data, parts, options, preparation, dry, model_of_dry=True)

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The log, prepared, in pieces without gaps."""
        return self._prepared(self.data)

    def _prepared(self, data: Data) -> tuple[Run, ...]:
        how = preparation_for(self.model, self.preparation)
        robot = self.model.robot
        runs = runs_of(data, robot, how=how)
        require_motion(runs, "show picks")
        return tuple(run.prepared(how, run.drive_for(self.model), robot.limits) for run in runs)

    @cached_property
    def _dry_motions(self) -> list[Stretch]:
        """The motions without parts; empty if none were recorded."""
        return [
            stretch
            for run in self._prepared(self.dry)
            for stretch in self._motions(_Log(run.ready, None))
            if stretch.counting_s >= self.options.min_carry_s
        ]

    @cached_property
    def _dry_cycle(self) -> DryCycle | None:
        """The misfit of the model on the path without parts; None if it was not recorded."""
        if self.model_of_dry or not self._dry_motions:
            return None
        return DryCycle.of(self.weigher, self._dry_motions)

    @cached_property
    def _dry_path(self) -> DryPath | None:
        """The path on which alone the model holds; None for a model that holds everywhere."""
        if not self.model_of_dry:
            return None
        if not self._dry_motions:
            raise InvalidSamples(
                f"no motion of {self.options.min_carry_s:g} s and more was found in the dry cycle"
            )
        return DryPath.of(self._dry_motions)

    @cached_property
    def logs(self) -> tuple[_Log, ...]:
        """The pieces of the log on one clock."""
        recorded = [run.recording for run in self.runs if run.recording is not None]
        start_s = min((recording.epoch_s for recording in recorded), default=0.0)
        return tuple(_Log.of(run, start_s, self.options) for run in self.runs)

    @cached_property
    def weigher(self) -> StretchWeigher:
        """Weighs stretches."""
        model, _ = with_temperature_drift(self.model, temperature_of(self.runs))
        return StretchWeigher.of(
            model,
            self.parts or (any_part(),),
            early_s=self.options.early_s,
            margin_s=self.options.margin_s,
        )

    @cached_property
    def _found(self) -> list[_StretchResult]:
        return list(self._weighed_stretches())

    @cached_property
    @one_blas_thread()
    def shift(self) -> Shift:
        """The picks."""
        judge = PickJudge(self.parts, self.options)
        found = self._found
        state = found[-1].state if found else self.weigher.init()
        carries = [(one.number, one.weighed) for one in found if one.weighed is not None]
        judged = [(pick.number, (pick, common)) for pick, common in judged_picks(judge, carries)]
        refused = [(one.refused.number, (one.refused, 0.0)) for one in found if one.refused]
        pairs = [pair for _, pair in sorted([*judged, *refused], key=itemgetter(0))]
        if any(log.states is not None for log in self.logs):
            _require_empty_stretches(state, self._lightest([pick for pick, _ in pairs]))
        times = np.array([row[0] for row in state.friction])
        n = self.model.robot.n
        return Shift(
            tuple(pick for pick, _ in pairs),
            self.parts,
            self.options.false_alarms_per_1000,
            times,
            np.array([row[1:] for row in state.friction]).reshape(-1, n),
            tuple(common for _, common in pairs),
            self.model.robot.joint_names,
            (*self._notes(state, [pick for pick, _ in pairs]), *state.notes),
            self.runs[0].name,
            self.options.tool,
        )

    def _lightest(self, picks: Sequence[Pick]) -> float:
        """Mass of the lightest part; without a table the median of what was picked [kg]."""
        if self.parts:
            return min(part.mass for part in self.parts)
        masses = [abs(pick.mass.value) for pick in picks if pick.mass is not None]
        return float(np.median(masses)) if masses else 0.0

    @property
    def visible(self) -> tuple[Visibility, ...]:
        """Which faults would be noticed on this motion, taken as a dry cycle without parts.

        As in the shift, what is known of friction comes from the stretches with an open gripper
        alone. Without the signal of a gripper, parts may be carried on the first of two motions or
        on the second; the less certain one counts.
        """
        stretches = [
            stretch
            for log in self.logs
            for stretch in self._dry_stretches(log)
            if stretch.counting_s >= self.options.min_carry_s
        ]
        if all(log.states is None for log in self.logs):
            ways = [_alternating(stretches, first) for first in (0, 1)[: len(stretches)]]
        else:
            ways = [stretches]
        if not any(stretch.closed for way in ways for stretch in way):
            raise InvalidSamples(
                f"no motion of {self.options.min_carry_s:g} s and more was found in the dry cycle"
            )
        found = [self._visible_on(way) for way in ways]
        return tuple(max(same, key=attrgetter("given")) for same in zip(*found, strict=True))

    def _visible_on(self, stretches: Sequence[Stretch]) -> tuple[Visibility, ...]:
        """Which faults would be noticed where some stretches of a dry cycle carry parts.

        Args:
            stretches: in the order of time; closed where they carry parts
        """
        state = self.weigher.init()
        for stretch in stretches:
            if stretch.closed:
                state, _ = self.weigher.weighed(state, stretch)
            else:
                state = self.weigher.with_empty(state, stretch)
        carries = [stretch for stretch in stretches if stretch.closed]
        return visible_faults(self.weigher, state, carries, self.options.limits)

    def _dry_stretches(self, log: _Log) -> Iterator[Stretch]:
        """The stretches of a dry cycle; without a stated polarity the gripper closes at high."""
        if log.states is None:
            yield from self._motions(log)
            return
        for gripper in log.states:
            samples = log.between(gripper.start_s, gripper.end_s)
            if samples is not None:
                closed = gripper.high == (self.options.closed != "low")
                yield self._stretch(samples, gripper, closed=closed)

    def page(self) -> Page:
        """The report on the shift."""
        from steelyard.report._picks import picks_page

        return picks_page(self.shift, self._alarm_torques())

    def _alarm_torques(self) -> dict[int, Plot]:
        """Torques of the load of the first alarms, by number of the pick."""
        alarms = {pick.number: pick for pick in self.shift.alarms[:_MAX_ALARM_PLOTS]}
        return {
            one.number: self._load_torques(one.state, one.weighed.stretch, alarms[one.number])
            for one in self._found
            if one.number in alarms and one.weighed is not None
        }

    def _load_torques(self, state: WeigherState, stretch: Stretch, pick: Pick) -> Plot:
        """The measured torques less those of the empty arm, beside those of the expected part."""
        arm = self.weigher.arm
        before = arm.at(state.arm, stretch.weighed_s)
        rows = arm.model.rows(stretch.samples, before.value)
        counting = stretch.counting
        curves = {"measured": (rows.tau - rows.Y @ before.value)[counting]}
        part = next((one for one in self.parts if one.name == pick.part), None)
        if part is not None:
            by_part = rows.Y @ (arm.jacobian @ part.body().vector)
            curves["expected"] = by_part[counting]
        return Plot.over_time(
            f"Pick {pick.number}, {pick.decision}: torques of the load, without those of the arm.",
            stretch.samples.t[counting],
            curves,
            self.model.robot.joint_names,
            units="torque [Nm]",
        )

    def _weighed_stretches(self) -> Iterator[_StretchResult]:
        """What was found in each stretch of the shift."""
        state = self.weigher.init()
        number = 0
        for each in self._stretches():
            stretch = each
            if self._dry_cycle is not None:
                stretch = self._dry_cycle.subtracted(each)
            refusal = self._refusal(stretch)
            if not stretch.closed:
                if not refusal:
                    state = self.weigher.with_empty(state, stretch)
                yield _StretchResult(state)
                continue
            number += 1
            if refusal:
                yield _StretchResult(state, number, refused=_not_weighed(number, stretch, refusal))
            else:
                state, weighed = self.weigher.weighed(state, stretch)
                yield _StretchResult(state, number, weighed)

    def _refusal(self, stretch: Stretch) -> str:
        """Why a stretch cannot be weighed, in words; empty if it can."""
        if stretch.counting_s < self.options.min_carry_s:
            return f"only {stretch.counting_s:.2f} s of motion count"
        if self._dry_path is not None and not self._dry_path.covers(stretch):
            return "it leaves the path of the dry cycle, on which alone the arm is known"
        return ""

    def _stretches(self) -> Iterator[Stretch]:
        """The stretches of the log in the order of time."""
        if all(log.states is None for log in self.logs):
            yield from self._stretches_between_rests()
            return
        yield from _with_whole_carries(self._gripper_stretches())

    def _gripper_stretches(self) -> Iterator[Stretch]:
        """The stretches between edges of the gripper, cut at the gaps of the log."""
        closed_high = self._closed_is_high()
        for log in self.logs:
            for gripper in log.states or ():
                samples = log.between(gripper.start_s, gripper.end_s)
                if samples is not None:
                    yield self._stretch(samples, gripper, closed=gripper.high == closed_high)

    def _stretch(self, samples: Samples, gripper: GripperState, *, closed: bool) -> Stretch:
        return Stretch.of(
            samples,
            closed=closed,
            start_s=gripper.start_s,
            end_s=gripper.end_s,
            margin_s=self.options.margin_s,
        )

    # --- which state of the gripper is closed

    def _closed_is_high(self) -> bool:
        """Whether the gripper is closed where its signal is high."""
        if self.options.closed != "auto":
            return self.options.closed == "high"
        high, low = (self._masses(is_high) for is_high in (True, False))
        if not high or not low:
            raise InvalidSamples(
                "it is not clear which value of the gripper means closed: no stretch of one of its"
                f" values has {self.options.min_carry_s:g} s of motion, after"
                f" {self.options.margin_s:g} s and before {self.options.margin_s:g} s that do not"
                " count; give `closed='high'` or `closed='low'`"
            )
        difference, std = _difference(high, low)
        if abs(difference) < _MIN_POLARITY_DEVIATIONS * std:
            raise InvalidSamples(
                "it is not clear which value of the gripper means closed: the arm carries"
                f" {difference:.3f} +- {NORMAL_95 * std:.3f} kg more where it is high; give"
                " `closed='high'` or `closed='low'`"
            )
        return difference > 0

    def _masses(self, high: bool) -> list[Mass]:
        """What the arm seems to carry in the first stretches of a state of the gripper."""
        found: list[Mass] = []
        state = self.weigher.init()
        part = self.weigher.parts[0]
        for log in self.logs:
            for gripper in log.states or ():
                samples = log.between(gripper.start_s, gripper.end_s)
                if gripper.high != high or samples is None or len(found) >= _POLARITY_STRETCHES:
                    continue
                stretch = self._stretch(samples, gripper, closed=False)
                if stretch.counting_s >= self.options.min_carry_s:
                    found.append(Carry.of(self.weigher.arm, state.arm, stretch, part).mass)
        return found

    # --- without a gripper

    def _stretches_between_rests(self) -> Iterator[Stretch]:
        """Motions between rests; successive motions with a part are one carry."""
        state = self.weigher.init()
        pending: Stretch | None = None
        for log in self.logs:
            for stretch in self._motions(log):
                if stretch.counting_s < self.options.min_carry_s:
                    continue
                if self._carries(state, stretch):
                    if pending is None:
                        pending = replace(stretch, closed=True)
                    else:
                        pending = self._joined(log, pending, stretch)
                    continue
                if pending is not None:
                    yield pending
                    pending = None
                state = self.weigher.with_empty(state, stretch)
                yield stretch
        if pending is not None:
            yield pending

    def _motions(self, log: _Log) -> Iterator[Stretch]:
        """The motions of a log between its rests, taken as empty."""
        still = rests(log.samples, min_rest_s=_MIN_REST_S)
        t = log.samples.t
        ends = [float(t[0]), *(0.5 * (a + b) for a, b in still), float(t[-1])]
        for start_s, end_s in pairwise(ends):
            samples = log.between(start_s, end_s)
            if samples is not None:
                gripper = GripperState(high=False, start_s=start_s, end_s=end_s, whole=True)
                yield self._stretch(samples, gripper, closed=False)

    def _joined(self, log: _Log, first: Stretch, second: Stretch) -> Stretch:
        """Two motions with the same part as one carry; the later one alone after a gap."""
        samples = log.between(first.start_s, second.end_s)
        if samples is None or samples.t[0] > first.start_s + 1.0:
            return replace(second, closed=True)
        return Stretch.of(
            samples,
            closed=True,
            start_s=first.start_s,
            end_s=second.end_s,
            margin_s=self.options.margin_s,
        )

    def _carries(self, state: WeigherState, stretch: Stretch) -> bool:
        """Whether something is carried along a motion."""
        part = self.weigher.parts[0]
        carry = Carry.of(self.weigher.arm, state.arm, stretch, part, noise=state.noise)
        if not self.parts:
            mass = carry.mass
            return mass.value > _MIN_CARRIED_DEVIATIONS * mass.std * state.widening
        nothing = carry.fitted(0.0, 1e-3 * part.mass).log_evidence
        return any(
            carry.fitted(one.mass, max(one.tolerance, 0.05 * one.mass), one).log_evidence > nothing
            for one in self.parts
        )

    # --- notes

    def _notes(self, state: WeigherState, picks: Sequence[Pick]) -> Iterator[str]:
        """Remarks about the log, one sentence without a full stop each."""
        yield from dict.fromkeys(run.cut for run in self.runs if run.cut)
        chatter = sum(log.chatter for log in self.logs)
        if chatter:
            yield (
                f"{chatter} pulses of the gripper shorter than {self.options.min_pulse_s:g} s were"
                " taken as chatter"
            )
        holes = [hole for log in self.logs for hole in log.holes]
        if holes:
            missing_s = sum(end_s - start_s for start_s, end_s in holes)
            yield (
                f"the gripper column holds no numbers for {missing_s:.1f} s in all, from"
                f" {holes[0][0]:.1f} s on: picks of that time may be missing here"
            )
        if all(log.states is None for log in self.logs):
            yield (
                "there is no gripper column: carries were found by rests and by their mass, so a"
                " missing part cannot be distinguished from an unloaded stretch"
            )
        if picks and not state.blanks:
            yield (
                "there is no unloaded stretch: friction of this shift is not known beyond the"
                " model, and intervals are wide"
            )
        if self.model_of_dry:
            yield (
                "the arm is known from the dry cycle alone: friction that grows with the load is"
                " not, and may change all masses by some percent; give known picks"
            )
        if not self.parts:
            yield (
                "there is no table of parts: picks are compared with the median of earlier ones,"
                " within 5 %"
            )
        yield from _indistinguishable(self.parts)
        if len(self.parts) > 1 and not self.options.expect:
            yield "any part of the table counts as good; name the expected ones to notice others"
        for pick in picks:
            if pick.mass is not None and self._is_contradicted(pick):
                known = self.options.known[pick.number]
                yield (
                    f"pick {pick.number} weighs {pick.mass.words}, but {known:g} kg is given:"
                    " it is not used as a reference"
                )
        yield from unused_known(self.options.known, picks)

    def _is_contradicted(self, pick: Pick) -> bool:
        """Whether the given mass of a pick is far from what it weighs."""
        known = self.options.known.get(pick.number)
        if known is None or pick.mass is None:
            return False
        return is_contradicted(pick.mass, known)


def _with_whole_carries(stretches: Iterable[Stretch]) -> Iterator[Stretch]:
    """The stretches; a carry that a short gap of the log cuts is one, with its longer part."""
    before: Stretch | None = None
    for stretch in stretches:
        if before is None:
            before = stretch
        elif before.closed and stretch.closed and stretch.start_s - before.end_s < _MAX_CUT_S:
            longer = max(before, stretch, key=lambda one: one.counting_s)
            before = replace(longer, start_s=before.start_s, end_s=stretch.end_s)
        else:
            yield before
            before = stretch
    if before is not None:
        yield before


def _alternating(stretches: Sequence[Stretch], first: int) -> list[Stretch]:
    """The stretches, of which every other one carries a part, from the first or second one on."""
    return [replace(stretch, closed=k % 2 == first) for k, stretch in enumerate(stretches)]


def _require_empty_stretches(state: WeigherState, lightest: float) -> None:
    """Raises an error where most stretches with an open gripper carry about a part.

    Args:
        state: after the shift
        lightest: mass of the lightest part [kg]
    """
    tried = state.blanks + len(state.not_empty)
    carrying = sum(abs(mass) > _MIN_CARRIED_SHARE * lightest for mass in state.not_empty)
    if carrying < _MIN_LOADED_OPEN or 2 * carrying <= tried:
        return
    raise InvalidSamples(
        f"in {carrying} of {tried} stretches with an open gripper the arm seems to carry a part:"
        " either this is not the column of the gripper, or `closed` is wrong, or the model is not"
        " that of the arm with its empty gripper"
    )


def _is_missing(data: Data) -> bool:
    """Whether no recordings are given."""
    return isinstance(data, Sequence | Mapping) and not isinstance(data, str) and not len(data)


def _not_weighed(number: int, stretch: Stretch, words: str) -> Pick:
    """A carry that cannot be weighed, and why, in words."""
    return Pick(number, stretch.start_s, stretch.end_s, Decision.NOT_WEIGHED, reasons=(words,))


def _difference(first: Sequence[Mass], second: Sequence[Mass]) -> tuple[float, float]:
    """The difference of the medians of two groups of masses, and its standard deviation [kg]."""
    values = [np.array([mass.value for mass in group]) for group in (first, second)]
    difference = float(np.median(values[0]) - np.median(values[1]))
    variance = sum(
        float(np.mean([mass.own_std**2 for mass in group])) / len(group)
        for group in (first, second)
    )
    return difference, float(np.sqrt(variance))


def _indistinguishable(parts: Sequence[Part]) -> Iterator[str]:
    """Parts whose masses overlap, as a sentence for each pair."""
    for k, one in enumerate(parts):
        for other in parts[k + 1 :]:
            if abs(one.mass - other.mass) <= one.tolerance + other.tolerance:
                yield (
                    f"'{one.name}' and '{other.name}' have masses that cannot be distinguished"
                    f" ({one.mass:g} +- {one.tolerance:g} and {other.mass:g} +-"
                    f" {other.tolerance:g} kg)"
                )


def picks(
    log: Data,
    model: DynamicModel | RobotModel | str | Path,
    *,
    parts: Sequence[Part] | str | Path = (),
    options: PickingOptions | None = None,
    dry: Data = (),
    preparation: Preparation | None = None,
) -> Shift:
    """The picks in a log of ordinary work: what each weighed, and whether it was the right part.

    Args:
        log: a recording with the signal of the gripper (`Recording.gripper`), or its file; without
            it, carries are found by rests and by their mass
        model: of the arm with its empty gripper, or its file; on a path that never changes a robot,
            its name or its file is enough, if `dry` shows this path
        parts: that are picked, or a CSV file of them (`read_parts`)
        options: how picks are found, weighed and judged
        dry: recordings of the same path without parts; the misfit of the model on this path is
            then subtracted
        preparation: how recordings become samples; that of the model by default
    """
    table = read_parts(parts) if isinstance(parts, str | Path) else tuple(parts)
    return Picking.of(model, log, table, options, preparation, dry).shift
