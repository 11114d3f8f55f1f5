"""What to say about an estimate: how accurate it is, what is missing, and which motion would help.

For each joint a slow swing from the present posture (0.3 rad to both sides in 2 s, the others at
rest, whose torques then do not count) is imagined, and the standard deviation that a number would
have after it computed. As long as the mass is not known as asked for, that number is the mass; then
the one of the ten that is known least. To compare them, moments are divided by 0.1 m and inertias
by (0.1 m)^2, the size of a part in a gripper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array
from steelyard._units import NORMAL_95, with_interval
from steelyard.identification import DynamicModel
from steelyard.inertia import INERTIA, PARAMETER_NAMES
from steelyard.payload._judgement import (
    Evidence,
    influential_joints,
    large_residual_doubt,
    model_doubt,
)
from steelyard.payload._tracking import SHARES_THAT_STAY
from steelyard.torque._other_causes import OtherCauses
from steelyard.torque.tracking._prospect import Prospect
from steelyard.torque.tracking._rows import TorqueRows
from steelyard.torque.tracking._state import TorqueTrackerOptions, TorqueTrackerState
from steelyard.verdict import Doubt, DoubtKind

_SWING_AMPLITUDE = 0.3  # [rad or m]
_SWING_S = 2.0
_SWING_SAMPLES = 16
_SWING_ROWS = 250.0
_TYPICAL_SIZE = np.array([1.0] + 3 * [0.1] + 6 * [0.01])  # [1, m, m^2]
_PARAMETER_UNITS = ("kg", *3 * ("kg m",), *6 * ("kg m^2",))
_NAMES_IN_WORDS = (
    "the mass",
    *(f"the centre of mass along {x}" for x in "xyz"),
    *PARAMETER_NAMES[INERTIA],
)
_LARGEST_NEGLIGIBLE_MASS = 0.1  # [kg]
_MIN_IMPROVEMENT = 0.7  # largest ratio of standard deviations after and before, for advice


class Advice(NamedTuple):
    """What to say about an estimate, from the solution behind it.

    Attributes:
        evidence: the estimate, its covariance and what its verdict depends on
        x: all unknowns, (m,)
        S: factor of the covariance of all unknowns, S S', (m, m)
        weights: of the joints' rows, (n,)
        gain_error: how one standard deviation of each cause of wrong gains moves the payload, (10,
            causes); None where gains are exact
        causes: other causes of the torques than a load
        prospect: what more motion will say about them
    """

    evidence: Evidence
    x: Array
    S: Array
    weights: Array
    gain_error: Array | None
    causes: OtherCauses
    prospect: Prospect

    @property
    def half_width(self) -> float:
        """Half-width of the mass's 95 % interval over the mass."""
        return float(
            NORMAL_95 * np.sqrt(self.evidence.covariance[0, 0]) / max(abs(self.x[0]), 1e-12)
        )

    @property
    def reachable(self) -> float:
        """The half-width that would be left after endless motion: drive gains, and their drift."""
        share = self.evidence.shares.get("gains", 0.0) + self.evidence.shares.get("drift", 0.0)
        if share:
            return float(np.sqrt(share) * self.half_width)
        return 0.0

    def information_needed(self, accuracy: float) -> float:
        """By how much samples have to grow until the mass is known as requested, at least 1.

        Infinite where no motion is enough, NaN while nothing is known.

        Args:
            accuracy: half-width of the mass's 95 % interval over the mass
        """
        evidence = self.evidence
        total = float(evidence.covariance[0, 0])
        if not np.isfinite(total) or evidence.body_covariance is None:
            return float("nan")
        if self.half_width <= accuracy:
            return 1.0
        goal = (accuracy * abs(float(self.x[0])) / NORMAL_95) ** 2
        stays = total * sum(evidence.shares.get(name, 0.0) for name in SHARES_THAT_STAY)
        plain = max(float(evidence.body_covariance[0, 0]) - stays, 0.0)
        return self.prospect.growth_until(goal, plain=plain, stays=stays)

    def doubts(
        self,
        state: TorqueTrackerState,
        model: DynamicModel,
        noise: ArrayLike,
        options: TorqueTrackerOptions,
    ) -> tuple[Doubt, ...]:
        """What counts against the estimate beside its own numbers.

        Args:
            model: of the empty arm
            noise: standard deviation of the torques that is assumed, (n,) [Nm or N]
            options: of the estimate
        """
        seen = state.spread.rows > 0
        information = np.diagonal(state.information, axis1=1, axis2=2)[:, :4]
        influential = influential_joints(information / state.spread.inflation[:, None])
        strange = None
        if seen.all():
            today = np.asarray(noise) * np.sqrt(state.spread.squares / state.spread.rows)
            torque_rms = np.sqrt(state.torque_squares / max(state.counts.used, 1))
            strange = large_residual_doubt(
                model.robot.joint_names, today, model.estimate.noise, torque_rms, influential
            )
        strange = strange or state.spread.doubt(model.robot.joint_names, influential)
        doubts = (
            model_doubt(model.verdict),
            strange,
            self.untested(state),
            *self.causes.doubts,
            self.late(options.accuracy),
        )
        return tuple(doubt for doubt in doubts if doubt is not None)

    def untested(self, state: TorqueTrackerState) -> Doubt | None:
        """A doubt while a known load has moved too briefly to test other causes of the torques."""
        if state.settled or self.evidence.unknown[0]:
            return None
        words = (
            "the payload has moved too briefly to tell it from a force or from another scale of"
            " the torques: keep moving"
        )
        return Doubt(DoubtKind.NOT_CONVERGED, words)

    def late(self, accuracy: float) -> Doubt | None:
        """A doubt where the mass is not as sure as requested.

        Args:
            accuracy: half-width of its 95 % interval over the mass
        """
        if self.half_width <= accuracy:
            return None
        words = f"the mass is not yet known to {100 * accuracy:g} %"
        if self.reachable > accuracy:
            words = f"the mass is not known to {100 * accuracy:g} %, which no motion can show"
        return Doubt(DoubtKind.NOT_CONVERGED, words, blocks=False)

    @property
    def least_known(self) -> int:
        """Which of the ten is known least, for a part of 0.1 m."""
        std = np.sqrt(np.diag(self.evidence.covariance))
        if self.evidence.unobservable is not None:
            std = np.where(self.evidence.unobservable, 0.0, std)
        return int((std / _TYPICAL_SIZE).argmax())

    def best_motion(self, rows: TorqueRows, q: Array, which: int = 0) -> tuple[int, float]:
        """The joint whose swing determines a number best, and its standard deviation then, [SI].

        Args:
            q: present posture, (n,) [rad or m]
            which: of the ten; the mass by default
        """
        n = len(q)
        w = 2 * np.pi / _SWING_S
        phase = w * _SWING_S * (np.arange(_SWING_SAMPLES) + 0.5) / _SWING_SAMPLES
        std = np.empty(n)
        for j in range(n):
            motion = np.zeros((_SWING_SAMPLES, 3, n))
            motion[:, 0] = q
            motion[:, 0, j] += _SWING_AMPLITUDE * np.sin(phase)
            motion[:, 1, j] = _SWING_AMPLITUDE * w * np.cos(phase)
            motion[:, 2, j] = -_SWING_AMPLITUDE * w**2 * np.sin(phase)
            at_rest = np.array([np.zeros(n), motion[0, 0]])
            H, _ = rows.rows(motion, np.zeros((_SWING_SAMPLES, n)), at_rest, self.x)
            H = H[:, j, :-1] * self.weights[j]
            std[j] = _std_after(self.S, H * np.sqrt(_SWING_ROWS / _SWING_SAMPLES), which)
        best = int(std.argmin())
        return best, float(std[best])

    def words(
        self, state: TorqueTrackerState, rows: TorqueRows, *, accuracy: float, advice: bool
    ) -> str:
        """How far an online estimate has come, which motion would help, and what was skipped.

        Args:
            accuracy: that was asked for the mass
            advice: whether to look for a motion that would help
        """
        parts = [_how_well(self, accuracy)]
        if advice and np.isfinite(state.reach).all():
            parts.append(
                _advice(self, state, rows, 0 if self.half_width > accuracy else self.least_known)
            )
        if state.history:
            parts.append(f"payload {len(state.history) + 1}, since {state.start_s:.2f} s")
        return "; ".join(part for part in (*parts, state.counts.words) if part)

    def next_step(self, state: TorqueTrackerState, rows: TorqueRows, *, accuracy: float) -> str:
        """What to do to learn more, as a sentence without a full stop.

        Args:
            accuracy: that was asked for the mass
        """
        if not np.isfinite(state.reach).all():
            return "move the arm: nothing is known yet"
        half = NORMAL_95 * float(np.sqrt(self.evidence.covariance[0, 0]))
        if self.half_width > 1.0 and half < _LARGEST_NEGLIGIBLE_MASS:
            return f"nothing: less than {abs(self.x[0]) + half:.2g} kg is carried"
        if self.half_width > accuracy:
            which = 0
        else:
            which = self.least_known
        joint, after, now = _best_swing(self, state, rows, which)
        move = f"move {rows.robot.joint_names[joint]}"
        if self.evidence.unknown[which]:
            return f"{move}: {_NAMES_IN_WORDS[which]} is unknown"
        if after < _MIN_IMPROVEMENT * now and which:
            return f"{move}: {_NAMES_IN_WORDS[which]} is known least"
        if after < _MIN_IMPROVEMENT * now:
            shares = NORMAL_95 * np.array([now, after]) / max(abs(self.x[0]), 1e-12)
            if shares[0] < 1:
                known = f"known to {_percent(shares[0])}"
            else:
                known = "hardly known"
            if shares[1] < 1:
                then = f", then to about {_percent(shares[1])}"
            else:
                then = ""
            return f"{move}: the mass is {known}{then}"
        if not which:
            return (
                _advice(self, state, rows, 0)
                or "no motion makes it more accurate: the drive gains limit it"
            )
        return (
            "nothing: the mass is known as requested, and no swing of a joint would show much more"
        )


def _how_well(advice: Advice, accuracy: float) -> str:
    if advice.evidence.unknown[0]:
        return ""
    if advice.half_width <= accuracy:
        return f"converged: the mass is known to {_percent(advice.half_width)}"
    kilograms = advice.x[0]
    half = NORMAL_95 * np.sqrt(advice.evidence.covariance[0, 0])
    known = f"mass {with_interval(kilograms, half)} kg"
    if advice.half_width < 1.0:
        known = f"the mass is known to {_percent(advice.half_width)}"
    if advice.reachable > accuracy:
        if advice.evidence.shares["gains"] > advice.evidence.shares["drift"]:
            limit = "gains"
        else:
            limit = "drift of the gains"
        return f"{known}; no motion brings it below {_percent(advice.reachable)}, for the {limit}"
    return f"{known}, {_percent(accuracy)} is requested"


def _best_swing(
    advice: Advice, state: TorqueTrackerState, rows: TorqueRows, which: int
) -> tuple[int, float, float]:
    """The most helpful joint, and the standard deviation after its swing and now.

    Errors of gains stay as they are; all other parts of the variance shrink together.
    """
    joint, std = advice.best_motion(rows, (state.reach[0] + state.reach[1]) / 2, which)
    now = float(np.sqrt(advice.evidence.covariance[which, which]))
    if advice.evidence.unknown[which]:
        return joint, std, now
    if advice.gain_error is None:
        by_gains = 0.0
    else:
        by_gains = min(float(advice.gain_error[which] @ advice.gain_error[which]), now**2)
    remaining = std**2 / float(advice.S[which] @ advice.S[which])
    return joint, float(np.sqrt(remaining * (now**2 - by_gains) + by_gains)), now


def _advice(advice: Advice, state: TorqueTrackerState, rows: TorqueRows, which: int) -> str:
    joint, std, now = _best_swing(advice, state, rows, which)
    name = rows.robot.joint_names[joint]
    if which:
        if advice.evidence.unknown[which]:
            known = ""
        else:
            known = f" (+- {NORMAL_95 * now:.2g} {_PARAMETER_UNITS[which]})"
        words = f"least known is {PARAMETER_NAMES[which]}{known}"
        if std < _MIN_IMPROVEMENT * now:
            return f"{words}: a swing of {name} would help most"
        return ""
    if std > _MIN_IMPROVEMENT * now:
        if advice.reachable > advice.half_width / np.sqrt(2):
            return ""
        return "keep moving"
    half = NORMAL_95 * std / max(abs(advice.x[0]), 1e-12)
    if advice.evidence.unknown[0] or half > 1.0:
        words = ""
    else:
        words = f" (to {_percent(half)})"
    return f"a swing of {name} by {_SWING_AMPLITUDE:g} to both sides would help most{words}"


def _percent(share: float) -> str:
    """A share in percent, two digits, never with an exponent: 0.64 %, 12 %, 150 %."""
    return f"{float(f'{100 * share:.2g}'):.15g} %"


def _std_after(S: Array, H: Array, which: int) -> float:
    """The standard deviation of one unknown after more rows."""
    HS = H @ S
    gain = np.linalg.solve(np.eye(len(H)) + HS @ HS.T, HS @ S[which])
    return float(np.sqrt(max(S[which] @ S[which] - (HS @ S[which]) @ gain, 0.0)))
