"""Options and state of the tracker of joint torques.

A real stream repeats rows, delivers them late, loses some, and contains numbers that are not
finite. Such samples are counted and skipped; only one of another shape is refused, because it comes
from another robot. The state is a value: it can be kept, copied, saved and resumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard._codec import from_table, to_table
from steelyard._kinds import BARE, INFINITE, NOT_NEGATIVE, Shape
from steelyard.errors import InvalidSamples
from steelyard.payload._tracking import Counts, Episode
from steelyard.torque.tracking._factor import Knowledge
from steelyard.torque.tracking._noise import ResidualSpread, Unexplained

_MIN_SETTLED_WINDOWS = 10  # after which residuals show the noise
_MIN_MOVING_SHARE = 0.75  # of a window's samples, for a window in motion

_Triangle = Annotated[Knowledge, BARE]
_SampleRow = Annotated[Array, Shape("4n+1")]  # [t q v a tau]
_NoBlock = tuple[()]
_PreparedBlock = tuple[
    Annotated[Array, Shape("k", "n", "m+1")],
    Annotated[Array, Shape("k", "4n+1")],
    Annotated[Array, Shape("n")],
    Annotated[Array, Shape(4, "2n")],
    Annotated[Array, Shape("k", "n")],
]
"""Weighted rows, samples, the torque after them, creeping friction, weighted torque of 1 N."""


@dataclass(frozen=True)
class TorqueTrackerOptions:
    """How the tracker of joint torques works.

    Attributes:
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
        forgetting_s: time after which payload and friction count 1/e, [s]; None to forget nothing
        alarm: threshold of the test for a change, see `change`; None to test for none
        window_s: length of the tested windows, [s]; a change is seen after one to two of them
        friction_change: how much friction may change with the payload, and in a minute, as a share
            of Fc + Fv
        lowest_speed: torques of a joint that is slower do not count, [rad/s], as in `Preparation`;
            None for that of the model's
        longest_gap_s: a longer gap is a pause, [s]
        block: samples that are processed together
    """

    accuracy: float = 0.01
    forgetting_s: float | None = None
    alarm: float | None = 60.0
    window_s: float = 0.2
    friction_change: float = 0.03
    lowest_speed: float | None = None
    longest_gap_s: float = 0.25
    block: int = 5

    def __post_init__(self) -> None:
        for name in ("accuracy", "forgetting_s", "alarm", "window_s", "longest_gap_s", "block"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidSamples(f"{name} must be positive, got {value}")


class Window(NamedTuple):
    """Sums over a short stretch of samples, tested for a change of the payload.

    Attributes:
        start_s: [s]
        end_s: time of its last sample, [s]
        payload: sums of W'[H tau] for the first four payload columns W, (4, m + 1)
        joints: sums of the rows of each joint, (n, m + 1)
        friction: standard deviation of W'tau by unmodelled slow friction, for each drive and
            direction (see `Creep`), (4, 2 n)
        squares: sums of squared residuals over their noise, (n,)
        rows: number of rows of each joint, (n,)
        samples: number of samples, those at rest included
    """

    start_s: Annotated[float, INFINITE]
    end_s: Annotated[float, INFINITE]
    payload: Annotated[Array, Shape(4, "m+1")]
    joints: Annotated[Array, Shape("n", "m+1")]
    friction: Annotated[Array, Shape(4, "2n")]
    squares: Annotated[Array, Shape("n"), NOT_NEGATIVE]
    rows: Annotated[Array, Shape("n"), NOT_NEGATIVE]
    samples: Annotated[float, NOT_NEGATIVE]

    @classmethod
    def empty(cls, n: int, m: int, start_s: float = -np.inf) -> Window:
        """A window without samples.

        Args:
            start_s: when it begins, [s]
        """
        sums = (
            np.zeros((4, m + 1)),
            np.zeros((n, m + 1)),
            np.zeros((4, 2 * n)),
            np.zeros(n),
            np.zeros(n),
        )
        return cls(start_s, start_s, *sums, 0.0)

    def plus(self, other: Window) -> Window:
        """Both windows as one."""
        return Window(
            self.start_s,
            other.end_s,
            self.payload + other.payload,
            self.joints + other.joints,
            self.friction + other.friction,
            self.squares + other.squares,
            self.rows + other.rows,
            self.samples + other.samples,
        )

    @property
    def moving(self) -> bool:
        """Whether a joint moved nearly always; friction is irregular at starts and stops."""
        return bool(self.rows.max() >= _MIN_MOVING_SHARE * self.samples)


class EarlierKnowledge(NamedTuple):
    """What was known at an earlier time, and the samples in motion since then.

    Attributes:
        known: the estimate then
        expected: the same with plausible friction, which later samples are compared with
        spread: of the residuals then
        unexplained: residuals until then that no other payload explains
        window: number of the window that began then, from 0
        known_s: that time [s]; infinite before the first sample
        since: the samples since then
    """

    known: _Triangle
    expected: _Triangle
    spread: ResidualSpread
    unexplained: Unexplained
    window: Annotated[int, NOT_NEGATIVE]
    known_s: Annotated[float, INFINITE]
    since: Window

    def plus(self, window: Window) -> EarlierKnowledge:
        """The same with one more window."""
        return self._replace(since=self.since.plus(window))


NOT_BEHIND = (-np.inf, 0)
"""`TorqueTrackerState.behind` while no late samples come."""


class TorqueTrackerState(NamedTuple):
    """The state of the tracker of joint torques.

    Attributes:
        known: estimate with all samples so far
        at_start: estimate before this payload was picked up
        earlier: what was known at the starts of this window and of some before, newest first
        x: unknowns at the start of the window, (m,)
        pending: rows [t q v a tau] that wait for their block
        prepared: weighted rows, samples, the torque after them, creeping friction and the torque
            that holds 1 N down at the flange, of a block that waits for its update; or ()
        memory: of the friction law: direction and position of the drives, (2, n)
        last_s: time of the last sample, [s]
        behind: time of the last late sample, [s], and the number of late samples in order
        last_tau: torque of the last sample that was processed, (n,) [Nm or N]
        torque_squares: sum of squares of the torques of all samples, (n,) [Nm^2 or N^2]
        window: the samples that are tested for a change
        rest: what was known before the last rest, for a while after it; or None
        information: of payload and friction from each joint, (n, b, b)
        pull: H'tau of each joint, rows over their noise, (n, m)
        pushed: X'[H tau X] since the payload was picked up, X the torque that holds 1 N down at the
            flange, rows over their noise, (m + 2,)
        spread: of the residuals
        unexplained: residuals that no other payload explains
        reach: lowest and highest position, highest speed since the payload was picked up, (3, n)
        start_s: time at which this payload was first seen, [s]
        windows: number of windows with motion of this payload
        all_windows: number of windows with motion
        counts: of samples
        history: earlier payloads
    """

    known: _Triangle
    at_start: _Triangle
    earlier: tuple[EarlierKnowledge, ...]
    x: Annotated[Array, Shape("m")]
    pending: tuple[_SampleRow, ...]
    prepared: _NoBlock | _PreparedBlock
    memory: Annotated[Array, Shape(2, "n")]
    last_s: Annotated[float, INFINITE]
    behind: tuple[Annotated[float, INFINITE], int]
    last_tau: Annotated[Array, Shape("n")]
    torque_squares: Annotated[Array, Shape("n")]
    window: Window
    rest: EarlierKnowledge | None
    information: Annotated[Array, Shape("n", "b", "b")]
    pull: Annotated[Array, Shape("n", "m")]
    pushed: Annotated[Array, Shape("m+2")]
    spread: ResidualSpread
    unexplained: Unexplained
    reach: Annotated[Array, Shape(3, "n"), INFINITE]
    start_s: Annotated[float, INFINITE]
    windows: Annotated[int, NOT_NEGATIVE]
    all_windows: Annotated[int, NOT_NEGATIVE]
    counts: Counts
    history: tuple[Episode, ...]

    @classmethod
    def of(cls, known: Knowledge, n: int, nuisances: int) -> TorqueTrackerState:
        """The state before the first sample.

        Args:
            known: prior from the empty arm
            n: number of joints
            nuisances: number of unknowns that are payload or friction
        """
        x = known.solution
        first = EarlierKnowledge(
            known,
            known,
            ResidualSpread.nothing(n),
            Unexplained.nothing(n),
            0,
            np.inf,
            Window.empty(n, len(x)),
        )
        return cls(
            known=known,
            at_start=known,
            earlier=(first,),
            x=x,
            pending=(),
            prepared=(),
            memory=np.zeros((2, n)),
            last_s=-np.inf,
            behind=NOT_BEHIND,
            last_tau=np.zeros(n),
            torque_squares=np.zeros(n),
            window=Window.empty(n, len(x)),
            rest=None,
            information=np.zeros((n, nuisances, nuisances)),
            pull=np.zeros((n, len(x))),
            pushed=np.zeros(len(x) + 2),
            spread=ResidualSpread.nothing(n),
            unexplained=Unexplained.nothing(n),
            reach=no_reach(n),
            start_s=-np.inf,
            windows=0,
            all_windows=0,
            counts=Counts(),
            history=(),
        )

    @property
    def settled(self) -> bool:
        """Whether residuals show the noise, and no longer the unknowns."""
        return self.windows >= _MIN_SETTLED_WINDOWS

    @property
    def reduced(self) -> TorqueTrackerState:
        """A smaller state with the same estimate: without what only the next step needs."""
        return self._replace(earlier=(), rest=None)

    def to_dict(self) -> dict[str, Any]:
        """All fields by name as numbers and lists, exact, for JSON."""
        return to_table(self)

    @classmethod
    def from_dict(
        cls, content: Mapping[str, Any], sizes: Mapping[str, int] | None = None
    ) -> TorqueTrackerState:
        """The state that `to_dict` has written, of n joints, m unknowns and b nuisances."""
        return from_table(cls, content, "state", sizes)

    @property
    def sizes(self) -> dict[str, int]:
        """The number of joints n, of unknowns m, and of those that are payload or friction, b."""
        return {"n": len(self.last_tau), "m": len(self.x), "b": len(self.information[0])}


def no_reach(n: int) -> Array:
    """The reach of n joints before the first sample, (3, n)."""
    return np.array([np.full(n, np.inf), np.full(n, -np.inf), np.zeros(n)])
