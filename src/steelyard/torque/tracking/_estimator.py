"""The payload while the arm moves: the estimate of `weigh`, one sample at a time.

Without forgetting, the estimate equals that of `weigh` with the same noise of the joints
(`tests/contracts/`). The unknowns are the payload, friction and the arm; the empty runs are the
prior of the arm (`_factor`). Samples are processed in blocks of five, and the work is divided: one
step builds the rows, the next updates the factor by QR. After each window of 0.2 s the tracker
tests for a change of the payload (`_change`). After a change it discards the samples since the
window before, and estimates the payload anew; the arm stays known.

Residuals that are wider than the model predicts widen the covariance. With the information A_j from
joint j, whose variance is f_j times the assumed one,

    C = A^-1 + A^-1 sum_j (f_j - 1) A_j A^-1

for the columns of payload and friction, because the arm is known from elsewhere. C is limited to
max_j f_j times A^-1, an upper bound with all columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steelyard._arrays import Array, Mask
from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.inertia import InertialParameters
from steelyard.payload import Evidence, Payload, judge
from steelyard.payload._tracking import Episode, Progress
from steelyard.recording import Preparation, Sample
from steelyard.torque._evidence import Cause
from steelyard.torque._other_causes import effect_of, tracked_causes
from steelyard.torque._prior import (
    MAX_FRICTION_CONTRADICTION,
    by_contradictions,
    by_gravity,
    contradiction,
    enlarged,
    shifted,
    slow_noise,
)
from steelyard.torque.methods._problem import WeighingProblem
from steelyard.torque.tracking._advice import Advice
from steelyard.torque.tracking._change import (
    Creep,
    after_rest,
    still_kept,
    strongest_change,
    with_unexplained,
)
from steelyard.torque.tracking._factor import (
    NOTHING_STD,
    Knowledge,
    SystematicErrors,
    friction_knowledge,
    friction_std,
    plausible_friction,
)
from steelyard.torque.tracking._prospect import Prospect
from steelyard.torque.tracking._rows import TorqueRows
from steelyard.torque.tracking._state import (
    NOT_BEHIND,
    EarlierKnowledge,
    TorqueTrackerOptions,
    TorqueTrackerState,
    Window,
    no_reach,
)

_MAX_EPISODES = 1000
_CLOCK_ROUNDING_S = 1e-4
_MIN_LATE_SAMPLES = 10  # after this many late but ordered samples, the clock was set back
_OUTLIER_RMS = 5.0  # root mean square of a block's residuals, in standard deviations
_UNKNOWN_STD_SHARE = 1e-3  # a number is unknown above this share of the prior's deviation


@dataclass(frozen=True, eq=False)
class TorqueTracker:
    """Weighs the payload of a known arm sample by sample. States are values; `step` changes none.

    Attributes:
        model: of the empty arm
        kinematics: whether the stream holds 'measured' or 'commanded' motion; it must be the
            model's
        noise: standard deviation of each joint's torque that weighs its rows, (n,) [Nm or N]; by
            default that of the model, widened by its correlation in time (see `noise`)
        options: see `TorqueTrackerOptions`
    """

    model: DynamicModel
    kinematics: Literal["measured", "commanded"]
    noise: Array | None = None
    options: TorqueTrackerOptions = field(default_factory=TorqueTrackerOptions)
    _rows: TorqueRows = field(init=False, repr=False)
    _weights: Array = field(init=False, repr=False)
    _prior: Knowledge = field(init=False, repr=False)
    _friction: Array = field(init=False, repr=False)
    _systematic: SystematicErrors = field(init=False, repr=False)
    _systematic_without_friction: SystematicErrors = field(init=False, repr=False)
    _friction_change: Array = field(init=False, repr=False)
    _plausible_friction: Array = field(init=False, repr=False)
    _preparation: Preparation = field(init=False, repr=False)
    _creep: Creep = field(init=False, repr=False)
    _empty: Array = field(init=False, repr=False)
    _unobservable: Mask = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.kinematics != self.model.kinematics:
            raise InvalidSamples(
                f"the model was fitted to {self.model.kinematics} motion, the stream holds"
                f" {self.kinematics} motion"
            )
        n = self.model.robot.n
        noise = np.array(slow_noise(self.model) if self.noise is None else self.noise, dtype=float)
        if noise.shape != (n,) or not (np.isfinite(noise).all() and (noise > 0).all()):
            raise InvalidSamples(f"noise must be {n} positive numbers, got {noise}")
        rows = TorqueRows.of(self.model)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "_rows", rows)
        object.__setattr__(self, "_weights", 1.0 / noise)
        object.__setattr__(self, "_prior", Knowledge.of_empty_arm(self.model, rows))
        object.__setattr__(self, "_friction", friction_knowledge(self.model, rows))
        for name, of_friction in (
            ("_systematic", self._friction),
            ("_systematic_without_friction", self._friction[:0]),
        ):
            systematic = SystematicErrors.of(self.model, rows, self._prior, of_friction)
            object.__setattr__(self, name, systematic)
        object.__setattr__(self, "_empty", self._prior.solution)
        object.__setattr__(
            self, "_unobservable", WeighingProblem(self.model, (), np.zeros((0, 11))).unobservable
        )
        change = friction_std(self.model, rows, self.options.friction_change)
        object.__setattr__(self, "_friction_change", change)
        object.__setattr__(self, "_plausible_friction", plausible_friction(self.model, rows))
        preparation = self.model.preparation or Preparation()
        if self.options.lowest_speed is not None:
            preparation = replace(preparation, lowest_speed=self.options.lowest_speed)
        object.__setattr__(self, "_preparation", preparation)
        creep = Creep.of(self.model, rows, self._weights, preparation.lowest_speed)
        object.__setattr__(self, "_creep", creep)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles compute their derived arrays again, with the same digits."""
        return type(self), (self.model, self.kinematics, self.noise, self.options)

    # --- the interface of a tracker

    def init(self) -> TorqueTrackerState:
        """The state before the first sample."""
        state = TorqueTrackerState.of(self._prior, self.model.robot.n, 10 + self._rows.friction)
        return state._replace(earlier=(self._earlier_knowledge(state, state.window),))

    def step(self, state: TorqueTrackerState, sample: Sample[Array]) -> TorqueTrackerState:
        """The state after one more sample. Bad samples are counted and skipped."""
        if sample.fault:
            return state._replace(counts=state.counts.plus(sample.fault))
        row = self._rows.checked(sample)
        if fault := self._rows.fault(row, state.last_s):
            state = state._replace(counts=state.counts.plus(fault))
            if fault == "late":
                return self._after_late_sample(state, row)
            if fault == "saturated":
                return state._replace(last_s=float(row[0]))
            return state
        if row[0] - state.last_s > self.options.longest_gap_s:
            if state.start_s == -np.inf:
                state = self._with_first_sample(state, row)
            else:
                state = self._paused(state, row[0])
        pending = (*state.pending, row)
        if len(pending) <= self.options.block:
            state = self._with_work_done(state)
            return state._replace(pending=pending, last_s=float(row[0]), behind=NOT_BEHIND)
        while state.prepared or self._window_is_over(state):
            state = self._with_work_done(state)
        state = self._prepared(state, np.array(pending[:-1]), row[-len(self._weights) :])
        return state._replace(pending=(row,), last_s=float(row[0]), behind=NOT_BEHIND)

    def estimate(
        self, state: TorqueTrackerState, *, physical: bool = True, advice: bool = True
    ) -> Payload:
        """What the arm carries now, with all samples of the state.

        Args:
            physical: search for the nearest physical body, which takes much longer than a step;
                else the plain estimate
            advice: search for a motion that would help, and name it in the verdict
        """
        state = self._drained(state)
        return self._payload(state, self._advice(state), physical=physical, advice=advice)

    def _payload(
        self, state: TorqueTrackerState, known: Advice, *, physical: bool, advice: bool
    ) -> Payload:
        """The payload of a state with every sample in its factor."""
        evidence = known.evidence
        doubts = known.doubts(state, self.model, np.asarray(self.noise), self.options)
        body, verdict = judge(replace(evidence, doubts=doubts, look_for_body=physical))
        words = known.words(state, self._rows, accuracy=self.options.accuracy, advice=advice)
        verdict = replace(
            verdict, summary="; ".join(part for part in (words, verdict.summary) if part)
        )
        noise = np.asarray(self.noise) * np.sqrt(state.spread.inflation)
        return Payload(
            body,
            evidence.plain,
            evidence.covariance,
            noise,
            verdict,
            gain_error=known.gain_error,
            shares=evidence.shares,
        )

    def progress(self, state: TorqueTrackerState, *, advice: bool = True) -> Progress:
        """The plain estimate of a state, and with advice what to do to learn more."""
        state = self._drained(state)
        known = self._advice(state)
        payload = self._payload(state, known, physical=False, advice=False)
        next_step = ""
        if advice:
            next_step = known.next_step(state, self._rows, accuracy=self.accuracy)
        needed = known.information_needed(self.accuracy)
        return Progress.of(state, payload, self.accuracy, next_step=next_step, needed=needed)

    def state_from_dict(self, content: Mapping[str, Any]) -> TorqueTrackerState:
        """The state that its `to_dict` wrote; refused where it is of another arm."""
        return TorqueTrackerState.from_dict(content, self.init().sizes)

    @property
    def accuracy(self) -> float:
        """Half-width of the mass's 95 % interval over the mass at which it has converged."""
        return self.options.accuracy

    @property
    def gives_intervals(self) -> bool:
        """Whether estimates have a covariance."""
        return True

    @property
    def takes_raw_rows(self) -> bool:
        """Whether it is fed rows as they come, without our filters."""
        return False

    @property
    def fingerprint(self) -> str:
        """Identifies the numbers of the model."""
        return hashlib.sha256(self.model.estimate.value.tobytes()).hexdigest()[:16]

    # --- views

    def next_step(self, state: TorqueTrackerState) -> str:
        """What to do to learn more, a sentence without a full stop."""
        state = self._drained(state)
        return self._advice(state).next_step(state, self._rows, accuracy=self.options.accuracy)

    def torque(self, state: TorqueTrackerState, sample: Sample[Array]) -> Array:
        """Torque by the estimate and by the empty arm, (2, n) [Nm or N]; NaN at rest.

        Args:
            sample: whose motion counts
        """
        unknowns = (state.known.solution, self._empty)
        slow = self._creep.lowest_speed
        return self._rows.torque(sample, state.memory, *unknowns, lowest_speed=slow)

    def residual(
        self, state: TorqueTrackerState, sample: Sample[Array]
    ) -> tuple[Array, Array] | None:
        """Measured minus estimated torque, and its standard deviation, each (n,) [Nm or N].

        None before the noise is known. Zero where a joint rests or reverses, because its friction
        is not known there.

        Args:
            sample: usable
        """
        if not state.settled:
            return None
        row = self._rows.checked(sample)
        x = state.known.solution
        motion, tau = self._rows.split(row[None])
        H = self._rows.rows(motion, tau, state.memory, self._empty)[0][0] * self._weights[:, None]
        e = (H[:, -1] - H[:, :-1] @ x) / self._weights
        std = np.sqrt(state.spread.inflation + state.known.variance(H[:, :-1])) / self._weights
        counting = self._preparation.is_clear(motion[0, 1], motion[0, 2])
        return np.where(counting, e, 0.0), std

    def converged(self, state: TorqueTrackerState) -> bool:
        """Whether the mass is known to the requested accuracy."""
        return self._advice(self._drained(state)).half_width <= self.options.accuracy

    # --- inside

    def _with_first_sample(self, state: TorqueTrackerState, row: Array) -> TorqueTrackerState:
        """The state when the first sample comes; friction remembers from there."""
        n = self.model.robot.n
        motion, tau = self._rows.split(row[None])
        return state._replace(
            memory=self._rows.law.init(self._rows.drives.to_drives(motion[0, 0])),
            last_tau=tau[0].copy(),
            window=Window.empty(n, self._rows.m, float(row[0])),
            start_s=float(row[0]),
        )

    def _after_late_sample(self, state: TorqueTrackerState, row: Array) -> TorqueTrackerState:
        """The state after a late sample; many of them mean that the clock was set back."""
        before_s, count = state.behind
        if row[0] > before_s:
            count = count + 1
        else:
            count = 1
        if count < _MIN_LATE_SAMPLES:
            return state._replace(behind=(float(row[0]), count))
        state = self._drained(state)
        state = self._changed(state, state.earlier[0], state.last_s)
        state = self._with_first_sample(
            state._replace(counts=state.counts.plus("clocks"), rest=None), row
        )
        return state._replace(pending=(row,), last_s=float(row[0]), behind=NOT_BEHIND)

    def _paused(self, state: TorqueTrackerState, t: float) -> TorqueTrackerState:
        """The state after a gap in the stream: pending samples are used, the window ends."""
        state = self._drained(state)
        if state.window.rows.any():
            state = self._judged(state)
        window = Window.empty(len(self._weights), self._rows.m, float(t))
        if self.options.alarm is not None:
            state = self._rested(state, float(t))
        return state._replace(window=window, counts=state.counts.plus("gaps"))

    def _drained(self, state: TorqueTrackerState) -> TorqueTrackerState:
        """The state with every sample in its factor."""
        if state.prepared:
            state = self._processed(state)
        if not state.pending:
            return state
        rows = np.array(state.pending)
        state = self._prepared(state, rows, rows[-1, -len(self._weights) :])
        return self._processed(state)._replace(pending=())

    def _window_is_over(self, state: TorqueTrackerState) -> bool:
        return state.window.end_s - state.window.start_s > self.options.window_s - _CLOCK_ROUNDING_S

    def _with_work_done(self, state: TorqueTrackerState) -> TorqueTrackerState:
        """The state after one piece of pending work, which keeps each step short."""
        if state.prepared:
            return self._processed(state)
        if self._window_is_over(state):
            return self._judged(state)
        return state

    def _prepared(
        self, state: TorqueTrackerState, block: Array, next_tau: Array
    ) -> TorqueTrackerState:
        """The state with the rows of a block of samples [t q v a tau], (k, 1 + 4 n)."""
        motion, tau = self._rows.split(block)
        rows, memory = self._rows.rows(motion, tau, state.memory, self._empty)
        rows *= self._weights[:, None]
        counting = self._preparation.is_clear(motion[:, 1], motion[:, 2])
        creep = self._creep.pull(rows[:, :, :4] * counting[:, :, None], motion[:, 1])
        held = self._rows.held(motion[:, 0]) * self._weights
        return state._replace(prepared=(rows, block, next_tau, creep, held), memory=memory)

    def _processed(self, state: TorqueTrackerState) -> TorqueTrackerState:
        """The state with its prepared block in the factor."""
        if not state.prepared:
            return state
        rows, block, next_tau, creep, held = state.prepared
        motion, tau = self._rows.split(block)
        usable = self._preparation.is_clear(motion[:, 1], motion[:, 2])
        e = -(rows.reshape(-1, rows.shape[2]) @ np.append(state.x, -1.0)).reshape(usable.shape)
        spikes = self._rows.spikes(e, np.vstack([state.last_tau, tau, next_tau]) * self._weights)
        usable[spikes] = False
        reach = state.reach
        counts = state.counts
        if spikes.any():
            counts = counts.plus("spikes", int(spikes.sum()))
        state = state._replace(
            prepared=(),
            last_tau=tau[-1],
            torque_squares=state.torque_squares + (tau**2).sum(axis=0),
            counts=counts.plus("used", len(block) - int(spikes.sum())),
            reach=np.array(  # one sample of a block is enough for advice
                [
                    np.minimum(reach[0], motion[-1, 0]),
                    np.maximum(reach[1], motion[-1, 0]),
                    np.maximum(reach[2], np.abs(motion[-1, 1])),
                ]
            ),
        )
        if not usable.all():
            rows = rows * usable[:, :, None]
            e = e * usable
            held = held * usable
        state = state._replace(pushed=state.pushed + _products(held, rows))
        state = self._informed(state, rows, e, usable.sum(axis=0), float(block[-1, 0]))
        return state._replace(window=state.window._replace(friction=state.window.friction + creep))

    def _informed(
        self,
        state: TorqueTrackerState,
        rows: Array,
        e: Array,
        count: NDArray[np.int64],
        last_s: float,
    ) -> TorqueTrackerState:
        """The state with rows in its factor and its window; those that do not count are zero."""
        window = state.window
        if not count.any():
            return state._replace(
                window=window._replace(end_s=last_s, samples=window.samples + len(rows))
            )
        known = state.known
        information = state.information
        pull = state.pull
        if self.options.forgetting_s is not None:
            weight = float(np.exp((window.end_s - last_s) / self.options.forgetting_s))
            known = known.forgotten(weight, information.shape[1])
            information = weight * information
            pull = weight * pull
        if self._systematic.by_gains:
            pull = pull + (rows[:, :, -1:] * rows[:, :, :-1]).sum(axis=0)
        flat = rows.reshape(-1, rows.shape[2])
        known = known.plus(flat)
        if ((e**2).sum(axis=0) > _OUTLIER_RMS**2 * count).any():  # rows excite new unknowns
            e = -(flat @ np.append(known.solution, -1.0)).reshape(e.shape)
        near = np.ascontiguousarray(rows[:, :, : information.shape[1]].transpose(1, 0, 2))
        window = Window(
            window.start_s,
            last_s,
            window.payload + flat[:, :4].T @ flat,
            window.joints + rows.sum(axis=0),
            window.friction,
            window.squares + (e**2).sum(axis=0),
            window.rows + count,
            window.samples + len(rows),
        )
        return state._replace(
            known=known,
            information=information + near.transpose(0, 2, 1) @ near,
            pull=pull,
            window=window,
        )

    def _judged(self, state: TorqueTrackerState) -> TorqueTrackerState:
        """The state at the end of a window: another payload, or the same with a window more."""
        window = state.window
        alarm = self.options.alarm
        state = state._replace(window=self._no_samples(window.end_s))
        if not window.rows.any():
            if alarm is not None:
                state = self._rested(state, window.end_s)
            return state
        if alarm is not None and not window.moving:  # the window contains no evidence
            return state
        if alarm is not None:
            state = state._replace(earlier=tuple(before.plus(window) for before in state.earlier))
            state = state._replace(
                unexplained=with_unexplained(state.unexplained, state.earlier, state.all_windows)
            )
            changed = self._compared(state, window, alarm)
            if changed is not None:
                return changed
            if state.rest is not None:
                rest, _ = after_rest(state.rest, window, self._friction_change)
                state = state._replace(rest=rest)
        return self._with_window(state, window)

    def _compared(
        self, state: TorqueTrackerState, window: Window, alarm: float
    ) -> TorqueTrackerState | None:
        """The state after a change of payload; None if there is none.

        Args:
            state: with the window in the comparisons with earlier estimates
            window: that ends now
            alarm: threshold of the statistic
        """
        strongest, statistic = strongest_change(state.earlier, self._friction_change)
        if state.rest is not None:  # the payload was likely changed there
            _, since_rest = after_rest(state.rest, window, self._friction_change)
            if max(statistic, since_rest) > alarm:
                return self._changed(state, state.rest, state.rest.since.start_s)
        if statistic <= alarm:
            return None
        since_s = state.earlier[strongest].since.start_s
        before_change = state.earlier[min(strongest + 1, len(state.earlier) - 1)]
        return self._changed(state, before_change, since_s)

    def _with_window(self, state: TorqueTrackerState, window: Window) -> TorqueTrackerState:
        """The state after a window without a change."""
        x = state.known.solution
        spread = state.spread
        if state.settled:
            total = window.joints[:, -1] - window.joints[:, :-1] @ x
            spread = spread.with_window(total, window.squares, window.rows)
        number = state.all_windows + 1
        now = self._earlier_knowledge(
            state._replace(spread=spread, all_windows=number), self._no_samples(window.end_s)
        )
        return state._replace(
            earlier=(now, *still_kept(state.earlier, number)),
            x=x,
            spread=spread,
            windows=state.windows + 1,
            all_windows=number,
        )

    def _earlier_knowledge(self, state: TorqueTrackerState, since: Window) -> EarlierKnowledge:
        """What is known in a state, for comparisons with later samples."""
        expected = state.known.plus(self._plausible_friction)
        known_s = since.start_s if np.isfinite(since.start_s) else np.inf
        return EarlierKnowledge(
            state.known,
            expected,
            state.spread,
            state.unexplained,
            state.all_windows,
            known_s,
            since,
        )

    def _no_samples(self, start_s: float) -> Window:
        """A window without samples that begins at a time [s]."""
        return Window.empty(len(self._weights), self._rows.m, start_s)

    def _rested(self, state: TorqueTrackerState, now_s: float) -> TorqueTrackerState:
        """The state while the arm rests; later samples are compared with the estimate before."""
        since = self._no_samples(now_s)
        if state.rest is not None and not state.rest.since.rows.any():
            return state._replace(rest=state.rest._replace(since=since))
        before = state.earlier[min(1, len(state.earlier) - 1)]
        return state._replace(rest=before._replace(since=since))

    def _changed(
        self, state: TorqueTrackerState, before_change: EarlierKnowledge, since_s: float
    ) -> TorqueTrackerState:
        """The state after a change of payload: samples since a time are discarded, the arm is kept.

        Residuals since then do not count as noise.

        Args:
            before_change: what was known when the payload had certainly not changed yet
            since_s: begin of the window that contains the change [s]
        """
        before = self._advice(state._replace(known=before_change.known)).evidence
        episode = Episode(state.start_s, since_s, before.plain.vector, before.covariance)
        known = before_change.known.restarted(self._friction_change)
        state = state._replace(
            known=known,
            spread=before_change.spread,
            unexplained=before_change.unexplained,
            all_windows=state.all_windows + 1,
        )
        now = self._earlier_knowledge(state, self._no_samples(state.window.start_s))
        return state._replace(
            at_start=known,
            earlier=(now,),
            x=known.solution,
            information=np.zeros_like(state.information),
            pull=np.zeros_like(state.pull),
            pushed=np.zeros_like(state.pushed),
            reach=no_reach(len(self._weights)),
            rest=None,
            start_s=since_s,
            windows=0,
            history=(*state.history[-_MAX_EPISODES + 1 :], episode),
        )

    def _advice(self, state: TorqueTrackerState) -> Advice:
        """Advice with the friction of the empty runs, unless the samples contradict it."""
        if len(self._friction):
            known = state.known.plus(self._friction)
            advice, by_friction = self._advice_of(state, known, self._systematic, self._friction)
            if by_friction <= MAX_FRICTION_CONTRADICTION:
                return advice
        nothing = self._friction[:0]
        return self._advice_of(state, state.known, self._systematic_without_friction, nothing)[0]

    def _advice_of(
        self,
        state: TorqueTrackerState,
        known: Knowledge,
        systematic: SystematicErrors,
        of_friction: Array,
    ) -> tuple[Advice, float]:
        """Advice from some knowledge, and the contradiction of the friction alone."""
        S = known.inverse
        x = known.solution
        inflation = state.spread.inflation
        near = state.information.shape[1]
        inverse = S @ S.T
        excess = np.tensordot(inflation - 1.0, state.information, axes=1)
        wider = inverse + inverse[:, :near] @ excess @ inverse[:near]
        if (np.diag(wider) < 0.999 * np.diag(inverse)).any():  # hardly anything is known yet
            wider = inflation.max() * inverse
        narrower = np.sqrt(np.minimum(inflation.max() * np.diag(inverse) / np.diag(wider), 1.0))
        wider *= np.outer(narrower, narrower)
        by_arm, by_friction = (
            contradiction(rows, x, inverse, (inverse, wider))
            for rows in (systematic.arm, of_friction)
        )
        larger_contradiction = max(by_arm, by_friction)
        contradicted = by_contradictions(
            wider[:10, :10], inverse[:, :10], [(by_arm, systematic.arm), (by_friction, of_friction)]
        )
        covariance, gain_error, shares = systematic.widened(
            wider[:10, :10], inverse, state.pull, contradicted=contradicted
        )
        covariance, shares = shifted(
            covariance, shares, "gravity", by_gravity(self.model.robot, x[:10])
        )
        unknown = np.diag(inverse)[:10] > (_UNKNOWN_STD_SHARE * NOTHING_STD) ** 2
        covariance[unknown, unknown] = np.inf
        covariance = (covariance + covariance.T) / 2
        if unknown[0]:
            shares = {}
        causes = self._possible_causes(state, known, float(covariance[0, 0]))
        effect = effect_of(causes, self.model.runs, float(np.sqrt(covariance[0, 0])))
        without_causes = covariance
        for name, added in effect.added.items():
            covariance, shares = enlarged(covariance, shares, name, added)
        evidence = Evidence(
            InertialParameters.from_vector(x[:10], self.model.robot.flange),
            covariance,
            unknown,
            unobservable=self._unobservable,
            contradiction=larger_contradiction,
            shares=shares,
            arm=self.model.robot.name,
            body_covariance=without_causes,
        )
        prospect = Prospect(tuple(causes), self.model.runs)
        return Advice(evidence, x, S, self._weights, gain_error, effect, prospect), by_friction

    def _possible_causes(
        self, state: TorqueTrackerState, known: Knowledge, mass_variance: float
    ) -> list[Cause]:
        """Another scale of the torques, and a steady force.

        None of them is tested while little is known, or while samples are forgotten.

        Args:
            known: of the unknowns
            mass_variance: without other causes, [kg^2]
        """
        forgets = self.options.forgetting_s is not None
        if not state.settled or forgets or not np.isfinite(mass_variance):
            return []
        variance = self._cause_variance(state)
        x = known.solution
        products = state.known.since(state.at_start)
        scaled = np.append(x, 0.0) @ products
        columns = (scaled, state.pushed[:-1])
        squares = (float(scaled[:-1] @ x), float(state.pushed[-1]))
        found = [
            None if fit is None else replace(fit, covariance=variance * fit.covariance)
            for fit in map(known.with_column, columns, squares)
        ]
        weight = float(x[0]) * float(np.linalg.norm(self.model.robot.gravity_base))
        return tracked_causes(self.model, *found, weight=weight)

    def _cause_variance(self, state: TorqueTrackerState) -> float:
        """The variance of a cause over that by white noise of the assumed size.

        The residuals of today widen it, joint by joint as they determine the mass. The assumed
        noise exceeds that to which the misfit of the empty arm was compared.
        """
        estimate = self.model.estimate
        compared = estimate.noise**2 * np.maximum(estimate.inflation, 1.0)
        information = np.maximum(state.information[:, 0, 0], 1e-300)
        factor = state.spread.inflation * compared / np.asarray(self.noise) ** 2
        return float(np.average(factor, weights=information))


def _products(column: Array, rows: Array) -> Array:
    """The products X'[H tau X] of a column with rows and with itself, (m + 2,).

    Args:
        column: X, (k, n)
        rows: [H tau], (k, n, m + 1)
    """
    x = column.ravel()
    return np.append(x @ rows.reshape(len(x), -1), x @ x)
