"""xu2024 as published: recursive least squares of the loaded arm, then the difference.

From pi_b = pi_a and P = P0 1, with every sample (eq. (7)-(11), in the letters of the paper)

    K = P Y' (xi 1 + Y P Y')^-1,    e = tau - Y pi_b,    pi_b += K e,    P -= K Y P

until the base parameters of the last link alone (pi_31 ... pi_36 of the UR10) have changed by less
than 0.005 between samples more than 300 times in a row. Then the payload follows from epsilon =
pi_b - pi_a. The paper's equations (12)-(16) are the least-squares solution of epsilon = J phi_L on
13 of its rows (`UR10_ROWS`), all weighted alike; J, the payload Jacobian, exists for every robot,
and by default all rows that a payload changes are used. xi is called a forgetting factor in the
paper; as used it is a noise scale. The recursion loses symmetry and, with a larger P0, diverges;
`TorqueTracker` is what you want.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from steelyard._arrays import Array, Indices
from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.payload._tracking import Counts, Progress
from steelyard.recording import Sample
from steelyard.torque.tracking import TorqueTrackerOptions
from steelyard.torque.tracking._rows import TorqueRows
from steelyard.verdict import Doubt, DoubtKind, Verdict

UR10_ROWS = tuple(row - 1 for row in (7, 14, 22, 23, 27, 29, 30, 31, 32, 33, 34, 35, 36))
"""The base parameters of the UR10, counted from 0, that eq. (12)-(16) use."""

_UR10_CHANGED = {
    row - 1 for row in (1, 2, 4, 6, 7, 9, 11, 13, 14, 16, 20, 22, 23, 27, *range(29, 37))
}
_NOT_SAVED = "the tracker xu2024 does not save its state; use direct"
_NO_UNCERTAINTY = (
    "xu2024 gives no uncertainty: its rule of convergence says that the numbers stand still, not"
    " how far they are from the truth"
)
SMALL_CHANGE = 0.005
TIMES = 300
"""Convergence rule: smallest number of successive small changes of the watched parameters."""

_PAPER_HZ = 125.0  # rate of the rows in the paper
_FAST = 1.5  # times that rate, above which the verdict says what the rule then means


class Xu2024State(NamedTuple):
    """The state of the recursion.

    Attributes:
        parameters: pi_b, (p,)
        P: (p, p)
        memory: what friction remembers, (2, n)
        quiet: how many times in a row the last link's parameters hardly changed
        first_s: time of the first sample, [s]
        last_s: time of the last sample, [s]
        converged_s: when it converged, [s] on the stream's clock; infinite before
        counts: of samples
    """

    parameters: Array
    P: Array
    memory: Array
    quiet: int
    first_s: float
    last_s: float
    converged_s: float
    counts: Counts

    @property
    def start_s(self) -> float:
        """Time of the first sample, [s]."""
        return self.first_s

    @property
    def history(self) -> tuple[()]:
        """Payloads before this one: the recursion finds none."""
        return ()

    @property
    def reduced(self) -> Xu2024State:
        """A smaller state with the same estimate: this one, which is small."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Refused: the recursion does not save its state."""
        raise InvalidSamples(_NOT_SAVED)


@dataclass(frozen=True, eq=False)
class Xu2024Tracker:
    """The recursion of xu2024, for any robot.

    Attributes:
        model: of the empty arm: pi_a and the friction law with its exponents alpha_a
        kinematics: whether the stream holds 'measured' or 'commanded' motion (the paper: commanded)
        P0: initial P is this times the identity
        xi: noise scale
        rows: base parameters whose difference gives the payload, counted from 0; all that change
            when None
        lowest_speed: torques of joints that are slower do not count, [rad/s]; the paper counts all.
            A joint that turns round is held by any friction, and one sample of that is enough to
            delay convergence by 2.4 s
        options: of the replay, its accuracy
        watched: the parameters that the rule of convergence watches
    """

    model: DynamicModel
    kinematics: Literal["measured", "commanded"] = "commanded"
    P0: float = 10.0
    xi: float = 100.0
    rows: Sequence[int] | None = None
    lowest_speed: float = 0.0
    options: TorqueTrackerOptions = field(default_factory=TorqueTrackerOptions)
    _maker: TorqueRows = field(init=False, repr=False)
    watched: Indices = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.kinematics != self.model.kinematics:
            raise InvalidSamples(
                f"the model was fitted to {self.model.kinematics} motion, the stream holds"
                f" {self.kinematics} motion"
            )
        maker = TorqueRows.of(self.model)
        object.__setattr__(self, "_maker", maker)
        object.__setattr__(self, "watched", self._of_the_last_link_alone())
        if self.rows is None:
            chosen = maker.payload_rows
        else:
            chosen = np.array(self.rows, dtype=np.intp)
        object.__setattr__(self, "rows", tuple(chosen.tolist()))

    def init(self) -> Xu2024State:
        """The state before the first sample."""
        p = len(self.model.estimate.value)
        n = self.model.robot.n
        value = self.model.estimate.value.copy()
        never = np.inf
        return Xu2024State(
            value, self.P0 * np.eye(p), np.zeros((2, n)), 0, -never, -never, never, Counts()
        )

    def step(self, state: Xu2024State, sample: Sample[Array]) -> Xu2024State:
        """The state after one more sample; after convergence the parameters stay as they are.

        Args:
            state: as `init` or `step` gave it
            sample: one instant
        """
        if sample.fault:
            return state._replace(counts=state.counts.plus(sample.fault))
        n = self.model.robot.n
        row = self._maker.checked(sample)
        if fault := sample.fault or self._maker.fault(row, state.last_s):
            return state._replace(counts=state.counts.plus(fault))
        t = float(row[0])
        motion = row[1 : 1 + 3 * n].reshape(1, 3, n)
        counts = state.counts.plus("used")
        if state.converged_s < np.inf:
            return state._replace(last_s=t, counts=counts)
        memory = state.memory
        if state.first_s == -np.inf:
            memory = np.array([np.zeros(n), motion[0, 0]])
        Y, memory = self._regressor(motion, memory, state.parameters)
        counts_here = (np.abs(motion[0, 1]) >= self.lowest_speed)[:, None]
        e = (row[-n:] - Y[0] @ state.parameters) * counts_here[:, 0]
        Y = Y[0] * counts_here
        PY = state.P @ Y.T
        K = np.linalg.solve(self.xi * np.eye(n) + Y @ PY, PY.T).T
        change = K @ e
        if np.abs(change[self.watched]).max() < SMALL_CHANGE:
            quiet = state.quiet + 1
        else:
            quiet = 0
        return Xu2024State(
            state.parameters + change,
            state.P - K @ (Y @ state.P),
            memory,
            quiet,
            t if state.first_s == -np.inf else state.first_s,
            t,
            t if quiet > TIMES else np.inf,
            counts,
        )

    def torque(self, state: Xu2024State, sample: Sample[Array]) -> Array:
        """Torque by the estimate and by the empty arm, (2, n) [Nm or N].

        Args:
            state: as `init` or `step` gave it
            sample: one instant
        """
        motion = np.asarray(sample.motion, dtype=float)[None]
        unknowns = (state.parameters, self.model.estimate.value)
        return np.array([self._regressor(motion, state.memory, pi)[0][0] @ pi for pi in unknowns])

    def residual(self, state: Xu2024State, sample: Sample[Array]) -> None:
        """None: the paper states no noise that a push could be compared with.

        Args:
            state: as `init` or `step` gave it
            sample: one instant
        """

    def converged(self, state: Xu2024State) -> bool:
        """Whether the paper's rule says that it has converged.

        Args:
            state: as `init` or `step` gave it
        """
        return state.converged_s < np.inf

    def estimate(self, state: Xu2024State, *, physical: bool = False) -> Payload:
        """The payload from the difference of base parameters, without covariance, as published.

        Args:
            state: as `init` or `step` gave it
            physical: has no effect: the paper looks for no real body
        """
        chosen = np.array(self.rows, dtype=np.intp)
        epsilon = (state.parameters - self.model.estimate.value)[chosen]
        J = self.model.basis.payload_jacobian[chosen]
        vector = np.linalg.lstsq(J, epsilon, rcond=None)[0]
        body = InertialParameters.from_vector(vector, self.model.robot.flange)
        return Payload(
            body=body,
            unconstrained=body,
            covariance=np.diag(np.full(10, np.inf)),
            noise=self.model.estimate.noise,
            verdict=self._verdict(state),
            gives_intervals=False,
        )

    def progress(self, state: Xu2024State, *, advice: bool = True) -> Progress:
        """The estimate of a state; the paper gives no advice.

        Args:
            state: as `init` or `step` gave it
            advice: has no effect
        """
        return Progress.of(state, self.estimate(state), self.accuracy)

    def state_from_dict(self, content: Mapping[str, Any]) -> Xu2024State:
        """Refused: the recursion does not save its state.

        Args:
            content: of a file
        """
        raise InvalidSamples(_NOT_SAVED)

    @property
    def accuracy(self) -> float:
        """Half-width of the mass's 95 % interval over the mass that was requested."""
        return self.options.accuracy

    @property
    def gives_intervals(self) -> bool:
        """Whether estimates have a covariance."""
        return False

    @property
    def takes_raw_rows(self) -> bool:
        """Whether it is fed rows as they come: the paper filters nothing online."""
        return True

    @property
    def fingerprint(self) -> str:
        """Empty: states cannot be resumed."""
        return ""

    def _regressor(self, motion: Array, memory: Array, parameters: Array) -> tuple[Array, Array]:
        x = np.concatenate([np.zeros(10), parameters[self._maker.theta_order]])
        return self._maker.regressor(motion, memory, x)

    def _verdict(self, state: Xu2024State) -> Verdict:
        unknown = Doubt(DoubtKind.TOO_UNCERTAIN, _NO_UNCERTAINTY)
        if self.converged(state):
            after_s = state.converged_s - state.first_s
            summary = f"converged by the rule of xu2024 after {after_s:.2f} s{_at_rate(state)}"
            if state.counts.words:
                counted = f"; {state.counts.words}"
            else:
                counted = ""
            return Verdict(summary + counted, (unknown,))
        words = f"not converged: {state.quiet} of {TIMES + 1} small changes in a row"
        return Verdict(state.counts.words, (Doubt(DoubtKind.NOT_CONVERGED, words), unknown))

    def _of_the_last_link_alone(self) -> Indices:
        """Base parameters that are one parameter of the last link, or those of its group."""
        basis = self.model.basis
        n = self.model.robot.n
        last = basis.parameters.of_joint(n - 1) & basis.parameters.links
        single = last & ~np.array([parameter.regrouped for parameter in basis.parameters])
        return np.flatnonzero(single if single.any() else last)


def _at_rate(state: Xu2024State) -> str:
    """How short the rule of convergence is where rows come faster than in the paper."""
    length_s = state.last_s - state.first_s
    rate_hz = (state.counts.used - 1) / length_s if length_s > 0 else 0.0
    if rate_hz < _FAST * _PAPER_HZ:
        return ""
    count = TIMES + 1
    return (
        f"; the rule counts samples: {count} of them last {count / rate_hz:.2g} s at"
        f" {rate_hz:.0f} Hz and {count / _PAPER_HZ:.2g} s at the paper's {_PAPER_HZ:g} Hz, so it"
        " stops too early here"
    )


def tracker_for(model: DynamicModel, accuracy: float) -> Xu2024Tracker:
    """The published recursion as a tracker; for a UR10 with the rows of the paper.

    Args:
        model: of the empty arm
        accuracy: of the mass at which ours would have converged; the paper has a rule of its own
    """
    changed = set(TorqueRows.of(model).payload_rows.tolist())
    if changed == _UR10_CHANGED:
        rows = UR10_ROWS
    else:
        rows = None
    return Xu2024Tracker(
        model, model.kinematics, rows=rows, options=TorqueTrackerOptions(accuracy=accuracy)
    )
