"""The interface of every tracker, which estimates a payload sample by sample.

    state = tracker.init()
    for sample in samples:
        state = tracker.step(state, sample)     # a new value; the old state is unchanged
    payload = tracker.estimate(state)           # nearest physical body, covariance, verdict
    progress = tracker.progress(state)          # plain estimate, contact force, next step

`TorqueTracker` (joint torques) and `WristTracker` (wrist sensor) implement it. Streams, recordings,
pages and commands use this interface only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from steelyard._arrays import Array
from steelyard._kinds import COVARIANCE, INFINITE, Shape
from steelyard._units import NORMAL_95
from steelyard.payload._payload import Payload
from steelyard.recording import Sample

_ADJECTIVES = {"spikes": "outlying"}  # of samples, where the name of a count is none
_NOT_SKIPPED = ("used", "gaps", "clocks")  # counts that are not of skipped samples
_LEAST_MASS = 1e-12  # [kg], keeps the relative half-width of no mass finite


class Counts(NamedTuple):
    """How many samples were used, and how many were not, by reason.

    Attributes:
        used: they count
        repeated: the same time as the one before
        late: an earlier time than the one before
        corrupt: NaN, infinite or absurdly large
        saturated: a torque or wrench at its limit
        spikes: a torque or wrench far from both its neighbours
        gaps: pauses in the stream, not samples
        impossible: a step of position that no drive makes
        frozen: the same reading as before, while the arm moved
        clocks: how often the clock was set back, not samples
    """

    used: int = 0
    repeated: int = 0
    late: int = 0
    corrupt: int = 0
    saturated: int = 0
    spikes: int = 0
    gaps: int = 0
    impossible: int = 0
    frozen: int = 0
    clocks: int = 0

    @property
    def words(self) -> str:
        """What was skipped, as 'skipped 3 late and 2 corrupt samples'; empty when nothing was."""
        bad = [
            f"{n} {_ADJECTIVES.get(name, name)}"
            for name, n in self._asdict().items()
            if n and name not in _NOT_SKIPPED
        ]
        if bad:
            skipped = f"skipped {', '.join(bad)} samples"
        else:
            skipped = ""
        if self.gaps == 1:
            paused = "1 pause"
        elif self.gaps:
            paused = f"{self.gaps} pauses"
        else:
            paused = ""
        if self.clocks:
            again = "the clock was set back: the payload before is forgotten"
        else:
            again = ""
        return "; ".join(word for word in (skipped, paused, again) if word)

    def plus(self, name: str, more: int = 1) -> Counts:
        """The counts with one of them larger."""
        return self._replace(**{name: getattr(self, name) + more})


SHARES_THAT_STAY = ("gains", "drift", "gravity")
"""Shares of the variance of a mass that no motion changes."""

OTHER_CAUSES = ("scale", "force")
"""Shares of the variance of a mass by other causes of the torques than a load."""


class Episode(NamedTuple):
    """One payload of the past.

    Attributes:
        start_s: end of the payload before, or time of the first sample, [s] on the stream's clock
        end_s: up to when it was this one for sure: the start of the window in which the change was
            seen, [s]; the change itself came later in that window (`window_s`), rarely at the end
            of the one before
        vector: the ten numbers in the order of `PARAMETER_NAMES`, plain estimate, (10,)
        covariance: of them, (10, 10); infinite where unknown
    """

    start_s: Annotated[float, INFINITE]
    end_s: Annotated[float, INFINITE]
    vector: Annotated[Array, Shape(10)]
    covariance: Annotated[Array, Shape(10, 10), INFINITE, COVARIANCE]


class ContactWrench(NamedTuple):
    """What the surroundings do to the load on a wrist sensor in the last sample.

    Attributes:
        wrench: (6,) [N, Nm], in the sensor frame
        std: its standard deviation, (6,); infinite while the load is unknown
    """

    wrench: Array
    std: Array


@dataclass(frozen=True, eq=False)
class Progress:
    """What a tracker knows at one instant.

    Attributes:
        t: time of the last sample, [s] on the stream's clock
        payload: plain estimate, without a search for the nearest physical body
        number: which payload it is, counted from 1
        converged: whether the mass is known to the requested accuracy
        counts: samples that were used, and those that were not
        next_step: what to do to learn more, a sentence without a full stop; empty where it was not
            requested
        contact: force and torque of a contact; None where the tracker measures none
        needed: by how much samples have to grow until the mass is known as requested, at least 1;
            infinite where no motion is enough, NaN where the tracker does not say
    """

    t: float
    payload: Payload
    number: int
    converged: bool
    counts: Counts
    next_step: str = ""
    contact: ContactWrench | None = None
    needed: float = float("nan")

    @classmethod
    def of(
        cls,
        state: TrackerState,
        payload: Payload,
        accuracy: float,
        *,
        next_step: str = "",
        contact: ContactWrench | None = None,
        needed: float = float("nan"),
    ) -> Progress:
        """The progress of a state.

        Args:
            payload: its plain estimate
            accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
            next_step: what to do to learn more
            contact: force and torque of a contact
            needed: by how much samples have to grow
        """
        converged = relative_half_width(payload) <= accuracy
        number = len(state.history) + 1
        return cls(
            state.last_s, payload, number, converged, state.counts, next_step, contact, needed
        )

    @property
    def mass(self) -> float:
        """[kg]."""
        return self.payload.body.mass

    @cached_property
    def mass_std(self) -> float:
        """Standard deviation of the mass, [kg]; infinite where unknown."""
        return float(self.payload.std[0])

    @cached_property
    def com(self) -> Array:
        """Centre of mass, (3,) [m], in the frame of the body; NaN while the mass may be zero."""
        if self._has_mass:
            return self.payload.body.com
        return np.full(3, np.nan)

    @cached_property
    def com_std(self) -> Array:
        """Standard deviation of the centre of mass, (3,) [m]; infinite if the mass may be zero."""
        if self._has_mass:
            return self.payload.com_std
        return np.full(3, np.inf)

    @property
    def status(self) -> str:
        """How good the estimate is, in sentences."""
        return self.payload.status

    @property
    def _has_mass(self) -> bool:
        return self.mass > NORMAL_95 * self.mass_std


def relative_half_width(payload: Payload) -> float:
    """Half-width of the 95 % interval of the mass over the mass."""
    return float(NORMAL_95 * payload.std[0] / max(abs(payload.body.mass), _LEAST_MASS))


class TrackerState(Protocol):
    """What the state of every tracker states."""

    @property
    def last_s(self) -> float:
        """Time of the last sample, [s] on the stream's clock; -infinity before the first."""

    @property
    def start_s(self) -> float:
        """Time at which this payload was first seen, [s] on the stream's clock."""

    @property
    def counts(self) -> Counts:
        """Samples that were used, and those that were not."""

    @property
    def history(self) -> tuple[Episode, ...]:
        """Earlier payloads."""

    @property
    def reduced(self) -> Any:
        """A smaller state with the same estimate and progress, to send to another process."""

    def to_dict(self) -> dict[str, Any]:
        """The state as lists, numbers and text, for JSON."""


S = TypeVar("S", bound=TrackerState)
M = TypeVar("M")


class Tracker(Protocol[S, M]):
    """Estimates a payload sample by sample. States are values; `step` changes none."""

    @property
    def accuracy(self) -> float:
        """Half-width of the mass's 95 % interval over the mass at which it has converged."""

    @property
    def gives_intervals(self) -> bool:
        """Whether estimates have a covariance."""

    @property
    def fingerprint(self) -> str:
        """Identifies the arm or sensor; a saved state can be resumed where it is the same."""

    def init(self) -> S:
        """The state before the first sample."""

    def step(self, state: S, sample: Sample[M]) -> S:
        """The state after one more sample. Bad samples are counted and skipped."""

    def estimate(self, state: S, *, physical: bool = True) -> Payload:
        """The payload, with all samples of the state; plain or the nearest physical body."""

    def progress(self, state: S, *, advice: bool = True) -> Progress:
        """The plain estimate, a contact force, and with advice what to do to learn more."""

    def state_from_dict(self, content: Mapping[str, Any]) -> S:
        """The state that its `to_dict` wrote."""


def convergence_times(points: Sequence[Progress]) -> dict[int, float]:
    """Since when each payload was known as requested, to its end, [s]; others are left out."""
    since: dict[int, float] = {}
    for point in points:
        if point.converged:
            since.setdefault(point.number, point.t)
        else:
            since.pop(point.number, None)
    return since
