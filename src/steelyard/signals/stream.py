"""From rows as a robot sends them to samples for an online estimator: `prepare` without the future.

    rows (jitter, holes, NaN) -> a uniform grid -> filtered, differentiated -> OnlineSample, `delay_s` late

Positions between rows come from the cubic through the four rows around, torques from a straight line. Motion
is filtered as `prepare` does it (see `FixedLag`), torques wait as long, so both belong to one instant. After
a hole in the stream everything starts anew. Rows that cannot be used are not swallowed: they go on as samples
that the estimator counts and skips, and do not touch the filters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from steelyard.arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.signals.fixed_lag import FixedLag
from steelyard.signals.prepare import Preparation

_LARGEST = 1e6  # SI: beyond, a number is corrupt
_ROUNDING = 1e-6  # of a step


class OnlineSample(NamedTuple):
    """Motion and torque of one instant.

    Attributes:
        t: time, [s], on any clock that goes forwards
        q: joint position, (n,) [rad or m]
        v: joint velocity, (n,) [rad/s or m/s]
        a: joint acceleration, (n,) [rad/s^2 or m/s^2]
        tau: torque that the drive applies to the joint, (n,) [Nm or N]
    """

    t: float
    q: ArrayLike
    v: ArrayLike
    a: ArrayLike
    tau: ArrayLike


class RawRow(NamedTuple):
    """What an arm sends at one instant.

    Attributes:
        t: time, [s], on any clock
        motion: position, then velocity and acceleration where they were commanded, (c, n), c = 1, 2 or 3
        tau: torque that the drive applies to the joint, (n,) [Nm or N]
    """

    t: float
    motion: Array
    tau: Array


class CausalState(NamedTuple):
    """What a causal path remembers.

    Attributes:
        rows: the last rows [t, motion, tau], at most four, (r, 1 + (c + 1) n)
        next_s: the next instant of the grid, [s]
        motion: state of the filter on the motion, (k, c n)
        tau: state of the filter on the torques, (k, n)
        last_s: time of the last sample that was made, [s]
    """

    rows: Array
    next_s: float
    motion: Array
    tau: Array
    last_s: float


@dataclass(frozen=True)
class CausalPath:
    """Makes samples of rows, one at a time. States are values; `step` changes none.

    Attributes:
        n: number of joints
        rate_hz: of the samples, [Hz], at most that of the rows
        preparation: how samples were made that the model was fitted to
        channels: 1 for positions, 2 with commanded velocities, 3 with accelerations too
    """

    n: int
    rate_hz: float
    preparation: Preparation = field(default_factory=Preparation)
    channels: int = 1
    _motion: FixedLag = field(init=False, repr=False, compare=False)
    _tau: FixedLag = field(init=False, repr=False, compare=False)
    _longest_gap_s: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        how = self.preparation
        if how.fourier_period_s is not None or how.mean_length > 1 or how.decimate > 1:
            raise InvalidSamples(
                "a stream can be filtered (cutoff_hz, torque_cutoff_hz), but not fitted with a Fourier"
                " series, averaged or decimated"
            )
        lag = max(
            FixedLag(cutoff, self.rate_hz, how.order).lag for cutoff in (how.cutoff_hz, how.torque_cutoff_hz)
        )
        make = (how.cutoff_hz, how.torque_cutoff_hz)
        motion, tau = (FixedLag(cutoff, self.rate_hz, how.order, shortest_lag=lag) for cutoff in make)
        longest = max(5 / self.rate_hz, 0.05) if how.longest_gap_s is None else how.longest_gap_s
        object.__setattr__(self, "_motion", motion)
        object.__setattr__(self, "_tau", tau)
        object.__setattr__(self, "_longest_gap_s", longest)

    @property
    def delay_s(self) -> float:
        """How long after its instant a sample comes, [s]: the filters, and two rows to interpolate."""
        return self._motion.delay_s + 2 / self.rate_hz

    def init(self) -> CausalState:
        """The state before the first row."""
        return self._empty(-np.inf)

    def step(self, state: CausalState, row: RawRow) -> tuple[CausalState, tuple[OnlineSample, ...]]:
        """The next state and the samples that are ready, in the order of time; mostly one.

        Args:
            state: as `init` or `step` gave it
            row: what the arm has sent
        """
        new = np.concatenate([[row.t], np.ravel(row.motion), row.tau])
        if new.size != 1 + (self.channels + 1) * self.n:
            raise InvalidSamples(
                f"a row is {self.channels} x {self.n} numbers of motion and {self.n} torques,"
                f" got {np.shape(row.motion)} and {np.shape(row.tau)}"
            )
        if not np.isfinite(new[0]) or not np.abs(new[1:]).max() < _LARGEST:
            return state, (self._bad(np.nan),)
        before = state.rows[-1, 0] if len(state.rows) else -np.inf
        if row.t <= before:
            return state, (self._bad(state.last_s if row.t == before else state.last_s - 1.0),)
        if len(state.rows) and row.t - before > self._longest_gap_s:
            state = self._empty(state.last_s)
        state = state._replace(rows=np.concatenate([state.rows[-3:], new[None]]))
        return self._through_filters(state) if len(state.rows) == 4 else (state, ())

    def _through_filters(self, state: CausalState) -> tuple[CausalState, tuple[OnlineSample, ...]]:
        """The state and samples after the instants of the grid between the two middle rows."""
        start, end = state.rows[1, 0], state.rows[2, 0]
        t = start if np.isinf(state.next_s) else state.next_s
        motion, tau, last_s, ready = state.motion, state.tau, state.last_s, []
        while t <= end + _ROUNDING / self.rate_hz:
            x, torque = self._between(state.rows, t)
            motion, moved = self._motion.step(motion, x)
            tau, pulled = self._tau.step(tau, torque)
            if moved is not None and pulled is not None:
                q, v, a = self._motion_of(moved.value, moved.first, moved.second)
                last_s = t - self._motion.delay_s
                ready.append(OnlineSample(last_s, q, v, a, pulled.value))
            t += 1.0 / self.rate_hz
        return CausalState(state.rows, t, motion, tau, last_s), tuple(ready)

    def _between(self, rows: Array, t: float) -> tuple[Array, Array]:
        """Motion and torque at an instant between the two middle rows of four."""
        times = rows[:, 0]
        weights = np.empty(4)
        for i in range(4):
            others = np.delete(times, i)
            weights[i] = np.prod((t - others) / (times[i] - others))
        share = (t - times[1]) / (times[2] - times[1])
        cut = 1 + self.channels * self.n
        return weights @ rows[:, 1:cut], (1 - share) * rows[1, cut:] + share * rows[2, cut:]

    def _motion_of(self, value: Array, first: Array, second: Array) -> tuple[Array, Array, Array]:
        n = self.n
        if self.channels == 1:
            return value, first, second
        if self.channels == 2:
            return value[:n], value[n:], first[n:]
        return value[:n], value[n : 2 * n], value[2 * n :]

    def _bad(self, t: float) -> OnlineSample:
        """A sample that is counted and skipped."""
        nothing = np.zeros(self.n)
        return OnlineSample(t, nothing, nothing, nothing, nothing)

    def _empty(self, last_s: float) -> CausalState:
        rows = np.zeros((0, 1 + (self.channels + 1) * self.n))
        motion, tau = self._motion.init(self.channels * self.n), self._tau.init(self.n)
        return CausalState(rows, -np.inf, motion, tau, last_s)
