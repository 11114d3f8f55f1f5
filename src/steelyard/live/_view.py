"""The knowledge of a payload at one moment: estimate, remaining time, next step.

It takes milliseconds, longer than the time between two rows, and needs only a `Snapshot` of the
weigher, so a thread (`_estimating`) or another process (`_page_process`) can do it.

**Time until the mass is known as requested.** Drive gains, their drift and local gravity are a part
g of the half-width w of its interval that stays; the information 1 / (w^2 - g^2) of the rest is
taken to grow on as in the last second.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steelyard._arrays import Array
from steelyard._units import NORMAL_95, with_interval
from steelyard.live._setup import Calibration, TrackerSetup
from steelyard.live._source import Event, EventKind, Row
from steelyard.payload import Payload
from steelyard.payload._tracking import (
    OTHER_CAUSES,
    SHARES_THAT_STAY,
    ContactWrench,
    Progress,
    relative_half_width,
)
from steelyard.recording import Sample

_GROWTH_TIME_S = 1.0  # over which the growth of information is measured
_ADVICE_STEP_S = 0.5  # between two searches for advice, which cost as much as an estimate
_MIN_CHANGE_HALF_WIDTHS = 20.0  # smallest reported change of mass, in 95 % half-widths


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One moment of a stream that is weighed, for a line, a page or a program.

    A weigher makes it of its rows. A `View` adds the last four attributes, which take longer.

    Attributes:
        row: the last one
        waiting: why nothing is weighed now, in words; empty where it is
        state: of the tracker; None before the calibration
        sample: the last one that was weighed, filtered; None before the first
        events: since the last snapshot
        rows: number of rows that have come
        missing: number of rows that the sender skipped
        dropped: number of rows that came, but were not taken in time
        progress: of the tracker; None before the first sample
        remaining_s: time until the mass is known as requested if the motion goes on, [s]; infinite
            where no motion can show it, NaN where that is not known yet
        trace: one instant of the page's curves, (curves, choices); None where there is none
        next_step: what to do to learn more, a sentence without a full stop
    """

    row: Row
    waiting: str
    state: Any
    sample: Sample[Any] | None
    events: tuple[Event, ...]
    rows: int
    missing: int
    dropped: int
    progress: Progress | None = None
    remaining_s: float = math.nan
    trace: Array | None = None
    next_step: str = ""

    @property
    def t(self) -> float:
        """The sender's time of the last row, [s]."""
        return self.row.t

    @property
    def values(self) -> tuple[float, ...]:
        """Values of the last row, as the stream's columns name them."""
        return self.row.values

    @property
    def payload(self) -> Payload | None:
        """The plain estimate, with its verdict; None before the first sample."""
        if self.progress is None:
            return None
        return self.progress.payload

    @property
    def converged(self) -> bool:
        """Whether the mass is known to the requested accuracy."""
        return self.progress is not None and self.progress.converged

    @property
    def contact(self) -> ContactWrench | None:
        """Force and torque of a contact; None where the tracker measures none."""
        if self.progress is None:
            return None
        return self.progress.contact

    @property
    def reduced(self) -> Snapshot:
        """The same with a smaller state, to send to another process."""
        if self.state is None:
            return self
        return replace(self, state=self.state.reduced)


class View:
    """Adds to snapshots what the tracker knows.

    Attributes:
        setup: what is known about the stream

    Args:
        setup: what is known about the stream
        calibration: tracker and path; None before the first rows have calibrated them
    """

    def __init__(self, setup: TrackerSetup, calibration: Calibration | None = None) -> None:
        self.setup = setup
        self._calibration = calibration
        self._advice = ""
        self._advised_s = float("inf")
        self._announced_start_s = -np.inf  # of the payload whose change was announced last, [s]
        self._growth: list[tuple[float, float]] = []  # time [s] and information of snapshots

    def estimated(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with progress, remaining time, trace, next step and changes of the payload.

        Args:
            snapshot: of the weigher
        """
        calibration = self._calibration
        if snapshot.sample is None or calibration is None:
            return replace(snapshot, next_step=f"wait: {snapshot.waiting}")
        due = not 0 <= snapshot.t - self._advised_s < _ADVICE_STEP_S
        progress = calibration.tracker.progress(snapshot.state, advice=due)
        if due:
            self._advised_s = snapshot.t
            self._advice = progress.next_step
        next_step = self._advice
        if snapshot.waiting:
            next_step = f"wait: {snapshot.waiting}"
        return replace(
            snapshot,
            progress=progress,
            remaining_s=self._remaining_s(progress),
            trace=calibration.trace(snapshot.state, snapshot.sample, progress),
            next_step=next_step,
            events=(*snapshot.events, *self._changes(snapshot, progress.payload)),
        )

    def answer(self, state: Any) -> Payload | None:
        """The nearest physical body, with all doubts; None before the calibration.

        Another thread may call it while this one adds estimates to snapshots.

        Args:
            state: of the tracker
        """
        if self._calibration is None or state is None:
            return None
        tracker = copy.deepcopy(self._calibration.tracker)  # Pinocchio's workspace is not shared
        found = tracker.estimate(state)
        verdict = found.verdict.doubted(*self._calibration.doubts)
        return replace(found, verdict=verdict, arm=self.setup.identity)

    def _changes(self, snapshot: Snapshot, payload: Payload) -> tuple[Event, ...]:
        """An event once another payload is known well enough to be called heavier or lighter."""
        state = snapshot.state
        if not state.history or state.start_s == self._announced_start_s:
            return ()
        change = payload.mass - float(state.history[-1].vector[0])
        half_width = NORMAL_95 * payload.std[0]
        if not abs(change) >= _MIN_CHANGE_HALF_WIDTHS * half_width:
            return ()
        self._announced_start_s = state.start_s
        if change > 0:
            kind = EventKind.PICK
            verb = "picked up"
        else:
            kind = EventKind.DROP
            verb = "put down"
        ago_s = state.last_s - state.start_s
        words = f"{verb} {with_interval(abs(change), half_width)} kg {ago_s:.1f} s ago"
        return (Event(kind, words, snapshot.row.t),)

    def _remaining_s(self, progress: Progress) -> float:
        """Time until the mass is known as requested, by the growth of what the samples say [s]."""
        payload = progress.payload
        accuracy = self.setup.accuracy
        width = relative_half_width(payload)
        if width <= accuracy:
            return 0.0
        if not np.isfinite(width):
            return float("nan")
        stays, by_causes = (
            width**2 * sum(payload.shares.get(name, 0.0) for name in names)
            for names in (SHARES_THAT_STAY, OTHER_CAUSES)
        )
        if stays >= accuracy**2:
            return float("inf")
        now = 1 / max(width**2 - stays - by_causes, 1e-12)
        needed = progress.needed
        if not np.isfinite(needed):
            needed = 1 / (accuracy**2 - stays) / now
        t = progress.t
        self._growth = [x for x in self._growth if t - _GROWTH_TIME_S <= x[0] < t and x[1] < now]
        self._growth.append((t, now))
        start_s, before = self._growth[0]
        if now > before:
            return float((needed - 1) * now * (t - start_s) / (now - before))
        return float("nan")
