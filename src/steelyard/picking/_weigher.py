"""Weighs the stretches of a shift one after the other; the state is a value.

Unloaded stretches update what is known of the arm. They are also weighed, as if something were
carried: these blank readings should be zero within their own deviations. Where they scatter more
than that, all deviations are widened by the root of

    f = (K_0 + sum z^2) / (K_0 + K),     K_0 = 10,     at least 1,

with K the number of blank readings so far. The size of the torques' noise follows their misfit in
the shift. The misfit counts only after the first unloaded stretch has shown the friction of the
shift; before it, the friction of a cold arm would look like noise. Friction that depends on the
position of a joint is learned from unloaded stretches (`_ripple`) and subtracted from the torques.

An unloaded stretch that weighs far more than its deviation (something hangs in the open gripper, or
the arm was touched) does not update the arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from steelyard._arrays import Array
from steelyard.identification import DynamicModel
from steelyard.payload import Part
from steelyard.picking._arm_state import LONG_PAUSE_S, ArmState, ShiftArm
from steelyard.picking._carry import SUMMED_BLOCKS, Carry, CarryEvent, Mass
from steelyard.picking._ripple import PositionFriction
from steelyard.picking._segments import Stretch

_ASSUMED_BLANKS = 10.0
_MAX_BLANK_DEVIATIONS = 6.0
_MAX_REFUSED_BLANKS = 3  # in a row; after them friction is taken to have changed
_LARGEST_SQUARE = 25.0  # of a blank reading over its deviation, in the mean
_ASSUMED_FREEDOM = 10.0  # of the model's noise, which the shift corrects
_MIN_NOISE = 0.04  # variance over that of the model
_LARGEST_MISFIT = 4.0  # of a stretch, over its degrees of freedom
_KEPT_MISFIT = 0.99  # of its weight after the next stretch
_SHOWN_SPEED = 0.5  # [rad/s or m/s], of the friction that is shown


@dataclass(frozen=True, eq=False)
class Weighed:
    """A carry that was weighed.

    Attributes:
        stretch: of the log
        masses: with the centre and the inertia of each part of the table, in its order
        early: the same masses, from the beginning of the lift
        lost: whether the part was lost on the way
        slipped: whether it slipped on the way
        blank: whether no unloaded stretch came before
    """

    stretch: Stretch
    masses: tuple[Mass, ...]
    early: tuple[Mass, ...]
    lost: CarryEvent
    slipped: CarryEvent
    blank: bool


@dataclass(frozen=True, eq=False)
class WeigherState:
    """What is known after some stretches.

    Attributes:
        arm: the empty arm
        by_position: friction that depends on positions
        misfit: of torques summed over 1, 2 and 4 blocks, chi-square by the noise of the model, (3,)
        misfit_freedom: its degrees of freedom, (3,)
        blanks: number of blank readings
        blank_squares: sum of their squares over their variances
        refused: unloaded stretches in a row that did not update the arm
        not_empty: what all such stretches seem to carry [kg]
        friction: time [s], then friction of each joint over that of the model, per unloaded stretch
        notes: remarks, one sentence without a full stop each
    """

    arm: ArmState
    by_position: PositionFriction
    misfit: Array = field(default_factory=lambda: np.zeros(len(SUMMED_BLOCKS)))
    misfit_freedom: Array = field(default_factory=lambda: np.zeros(len(SUMMED_BLOCKS)))
    blanks: int = 0
    blank_squares: float = 0.0
    refused: int = 0
    not_empty: tuple[float, ...] = ()
    friction: tuple[tuple[float, ...], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def noise(self) -> float:
        """Variance of the torques' noise in the shift over that of the model: the largest scale."""
        mean = (_ASSUMED_FREEDOM + self.misfit) / (_ASSUMED_FREEDOM + self.misfit_freedom)
        return max(float(mean.max()), _MIN_NOISE)

    def with_misfit(self, misfit: Array, freedom: Array) -> WeigherState:
        """The state after one more stretch.

        Args:
            misfit: of its torques, chi-square by the present noise, (3,)
            freedom: its degrees of freedom, (3,)
        """
        misfit = np.minimum(misfit, _LARGEST_MISFIT * freedom) * self.noise
        return replace(
            self,
            misfit=_KEPT_MISFIT * self.misfit + misfit,
            misfit_freedom=_KEPT_MISFIT * self.misfit_freedom + freedom,
        )

    @property
    def widening(self) -> float:
        """Factor of all standard deviations, by the scatter of blank readings; at least 1."""
        mean = (_ASSUMED_BLANKS + self.blank_squares) / (_ASSUMED_BLANKS + self.blanks)
        return float(np.sqrt(max(mean, 1.0)))


@dataclass(frozen=True, eq=False)
class StretchWeigher:
    """Weighs stretches with the model of the empty arm.

    Attributes:
        arm: of the model
        parts: of the table, at least one
        early_s: time into the lift of the early mass [s]
        margin_s: time at the beginning of the motion that does not count [s]
    """

    arm: ShiftArm
    parts: tuple[Part, ...]
    early_s: float = 0.3
    margin_s: float = 0.1

    @classmethod
    def of(
        cls, model: DynamicModel, parts: Sequence[Part], *, early_s: float, margin_s: float
    ) -> StretchWeigher:
        """The weigher of a model and a table of parts."""
        return cls(ShiftArm.of(model), tuple(parts), early_s, margin_s)

    def init(self) -> WeigherState:
        """The state before the shift."""
        return WeigherState(self.arm.first, PositionFriction.unknown(self.arm.model.robot.n))

    def with_empty(self, state: WeigherState, stretch: Stretch) -> WeigherState:
        """The state after an unloaded stretch.

        Args:
            state: before
            stretch: with an open gripper, and with rows that count
        """
        state = self._after_pause(state, stretch)
        expected = state.by_position.torque(stretch)
        less = _without(expected, stretch)
        carry = Carry.of(self.arm, state.arm, less, self.parts[0], noise=state.noise)
        mass = carry.mass
        z = mass.value / mass.std
        if abs(z) > _MAX_BLANK_DEVIATIONS * state.widening:
            return self._refused(state, stretch, mass)
        arm = carry.before.after(carry.whole, stretch.weighed_s)
        if state.blanks:
            state = state.with_misfit(*carry.surprise)
        return replace(
            state,
            arm=arm,
            by_position=self._learned(state.by_position, arm, less, expected),
            blanks=state.blanks + 1,
            blank_squares=state.blank_squares + min(z**2, _LARGEST_SQUARE),
            refused=0,
            friction=(*state.friction, (stretch.weighed_s, *self.friction_of(arm).tolist())),
        )

    def weighed(self, state: WeigherState, stretch: Stretch) -> tuple[WeigherState, Weighed]:
        """The state after a carry, and what was carried.

        Args:
            state: before
            stretch: with a closed gripper, and with rows that count
        """
        state = self._after_pause(state, stretch)
        less = _without(state.by_position.torque(stretch), stretch)
        first = Carry.of(self.arm, state.arm, less, self.parts[0], noise=state.noise)
        widening = state.widening
        masses = [_widened(first.mass, widening)]
        for part in self.parts[1:]:
            found = first.fitted(part.mass, part.free_mass_std, part)
            masses.append(_widened(first.mass_of(found), widening))
        until_s = stretch.lift_s + self.margin_s + self.early_s
        found_all = Weighed(
            stretch,
            tuple(masses),
            tuple(_widened(first.early(until_s, part), widening) for part in self.parts),
            _weakened(first.lost(), widening),
            _weakened(first.slipped(), widening),
            blank=state.blanks == 0,
        )
        if state.blanks:
            state = state.with_misfit(*first.surprise)
        return state, found_all

    def early(self, state: WeigherState, stretch: Stretch) -> tuple[Mass, ...]:
        """The masses of a carry that has only begun, with the centre and inertia of each part.

        Args:
            state: after the last stretch
            stretch: the beginning of the carry
        """
        less = _without(state.by_position.torque(stretch), stretch)
        carry = Carry.of(self.arm, state.arm, less, self.parts[0], noise=state.noise)
        found = (carry.fitted(part.mass, part.free_mass_std, part) for part in self.parts)
        return tuple(_widened(carry.mass_of(one), state.widening) for one in found)

    def _learned(
        self, before: PositionFriction, arm: ArmState, less: Stretch, expected: Array
    ) -> PositionFriction:
        """Friction by position after an unloaded stretch.

        Args:
            before: what was known
            arm: state after the stretch
            less: the stretch without the friction that was expected
            expected: that friction, (N, n) [Nm or N]
        """
        rows = self.arm.model.rows(less.samples, arm.value)
        residual = rows.tau - rows.Y @ arm.value + expected
        usable = less.samples.away_from_reversals().mask & less.counting[:, None]
        return before.after(less, residual, usable)

    def friction_of(self, state: ArmState) -> Array:
        """Friction of each joint at 0.5 rad/s over that of the model, (n,)."""
        model = self.arm.model
        law = model.law
        speeds = np.full(model.robot.n, _SHOWN_SPEED)
        columns = law.at(speeds, None, np.ones(model.robot.n))
        now = (columns * law.coefficients(model.estimate.parameters, state.value)).sum(axis=0)
        then = (columns * model.friction.coefficients).sum(axis=0)
        return np.asarray(now / np.where(np.abs(then) > 1e-9, then, 1.0))

    def _after_pause(self, state: WeigherState, stretch: Stretch) -> WeigherState:
        """The state with a note where friction begins anew."""
        pause_s = stretch.start_s - state.arm.t_s
        if not np.isfinite(pause_s) or pause_s <= LONG_PAUSE_S:
            return state
        arm = self.arm.at(state.arm, stretch.weighed_s)
        words = (
            f"after the pause of {pause_s / 60:.0f} min before {stretch.start_s:.0f} s friction"
            " is taken as unknown again"
        )
        return replace(state, arm=arm, notes=(*state.notes, words))

    def _refused(self, state: WeigherState, stretch: Stretch, mass: Mass) -> WeigherState:
        """The state after an implausible unloaded stretch: with a load, or of a changed arm."""
        words = (
            f"with an open gripper the arm seems to carry {mass.value:.3f} kg from"
            f" {stretch.start_s:.1f} s on; this stretch does not count as empty"
        )
        refused = state.refused + 1
        arm = state.arm
        if refused >= _MAX_REFUSED_BLANKS:
            arm = replace(self.arm.first, t_s=stretch.weighed_s)
            words += ", and friction is taken as unknown again"
            refused = 0
        return replace(
            state,
            arm=arm,
            refused=refused,
            not_empty=(*state.not_empty, mass.value),
            notes=(*state.notes, words),
        )


def _without(torque: Array, stretch: Stretch) -> Stretch:
    """A stretch without some torque, (N, n) [Nm or N]."""
    samples = stretch.samples
    return replace(stretch, samples=replace(samples, tau=samples.tau - torque))


def _widened(mass: Mass, factor: float) -> Mass:
    return Mass(mass.value, factor * mass.own_std, factor * mass.common_std)


def _weakened(change: CarryEvent, factor: float) -> CarryEvent:
    """A change by torques whose deviations are larger by a factor."""
    return CarryEvent(change.evidence / factor**2, change.time_s, _widened(change.mass, factor))
