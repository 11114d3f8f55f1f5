"""The payload while the arm moves: rows of a stream in, estimates out, on demand.

Rows become samples, and samples an estimate, with the same preparation and the same tracker as in
`steelyard.track` with a recording, so a recording of the stream gives the same numbers. Rows that
are not fit for weighing are left out; after them, and on another clock of the sender, the filters
start again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from steelyard._computing import one_blas_thread, real_time_priority, short_pauses
from steelyard.live._estimating import EstimatingThread, SnapshotEstimator
from steelyard.live._recorder import Recorder
from steelyard.live._setup import Calibration, ContactDetector, TrackerSetup
from steelyard.live._source import Event, EventKind, Row
from steelyard.live._view import Snapshot, View
from steelyard.payload import Payload
from steelyard.recording import Sample
from steelyard.workflow._tracking import RESUME_S, load_state

_SNAPSHOT_STEP_S = 0.1  # time between two snapshots
_PAGE_STEP_S = 1 / 30  # the same with a page, whose arm moves smoothly
_SILENCE = (EventKind.LOST, EventKind.ENDED)  # no rows come after these events
_NEW_CLOCK_S = 1.0  # pause between the last sample on one clock and the first row on the next


class LiveWeigher:
    """Weighs rows as they come.

    Attributes:
        setup: what is known about the stream
        view: adds estimates to snapshots
        calibration: tracker and path; None before the first rows have calibrated them
        state: of the tracker; None before the calibration
        row: the last one; None before the first

    Args:
        setup: for joint torques or for a wrist sensor
        resume: file of a saved state to continue from
    """

    def __init__(self, setup: TrackerSetup, *, resume: str | Path | None = None) -> None:
        self.setup = setup
        self.view = View(setup)
        self.calibration: Calibration | None = None
        self.state: Any = None
        self.row: Row | None = None
        self._resume = resume
        self._first: list[Row] = []
        self._path_state: Any = None
        self._detector: ContactDetector | None = None
        self._sample: Sample[Any] | None = None
        self._events: list[Event] = []
        self._rows = 0
        self._missing = 0
        self._dropped = 0
        self._clock = -1
        self._clock_start_s = 0.0
        self._offset_s = 0.0  # of this clock on the tracker's

    def take(self, item: Row | Event) -> None:
        """Takes the next row or event of the stream."""
        if isinstance(item, Event):
            self._events.append(item)
            self._missing += item.rows * (item.kind is EventKind.GAP)
            self._dropped += item.rows * (item.kind is EventKind.DROPPED)
            return
        self._rows += 1
        self.row = item
        if item.waiting or self.setup.missing(item):
            return
        if item.clock != self._clock:
            self._start_clock(item)
        if self.calibration is not None:
            self._weigh(self.calibration, item)
            return
        self._first.append(item)
        if self.setup.is_enough(self._first):
            self._calibrate()

    def snapshot(self) -> Snapshot | None:
        """What is known now, with the events since the last call; None before the first row."""
        seen = self.rows_seen()
        if seen is None:
            return None
        return self.view.estimated(seen)

    def rows_seen(self) -> Snapshot | None:
        """A snapshot without the estimate, which a view adds later; None before the first row."""
        if self.row is None:
            return None
        events = tuple(self._events)
        self._events = []
        return Snapshot(
            self.row,
            self._waiting(self.row),
            self.state,
            self._sample,
            events,
            self._rows,
            self._missing,
            self._dropped,
        )

    def payload(self) -> Payload | None:
        """The nearest physical body, with all doubts; None where nothing was weighed."""
        if self._sample is None:
            return None
        return self.view.answer(self.state)

    def _waiting(self, row: Row) -> str:
        """Why nothing is weighed now, in words; empty where it is."""
        if self._sample is None:
            return row.waiting or self.setup.missing(row) or self.setup.starting
        return row.waiting or self.setup.missing(row)

    def _start_clock(self, row: Row) -> None:
        """Continues on another clock, where the samples before have ended."""
        self._offset_s = 0.0
        if self.calibration is not None:
            self._path_state = self.calibration.path.init()
            if np.isfinite(self.state.last_s):
                self._offset_s = self.state.last_s + _NEW_CLOCK_S
        self._clock = row.clock
        self._clock_start_s = row.t
        self._first = []

    def _calibrate(self) -> None:
        """Calibrates with the first rows, and weighs them."""
        calibration = self.setup.calibrated(self._first)
        self.calibration = calibration
        self.view = View(self.setup, calibration)
        self._path_state = calibration.path.init()
        self._detector = calibration.contact_detector()
        if self._resume is None:
            self.state = calibration.tracker.init()
        else:
            self.state = load_state(self._resume, calibration.tracker)
            self._offset_s = self.state.last_s + RESUME_S
        for row in self._first:
            self._weigh(calibration, row)
        self._first = []

    def _weigh(self, calibration: Calibration, row: Row) -> None:
        t = row.t - self._clock_start_s + self._offset_s
        motion, effort = calibration.motion_and_effort(row)
        self._path_state, ready = calibration.path.step(self._path_state, t, motion, effort)
        for sample in ready:
            self.state = calibration.tracker.step(self.state, sample)
            if sample.fault:
                continue
            self._sample = sample
            if self._detector is not None and (words := self._detector(self.state, sample)):
                self._events.append(Event(EventKind.CONTACT, words, row.t))


def snapshots_of(
    items: Iterable[Row | Event],
    weigher: LiveWeigher,
    *,
    every_s: float | None = None,
    recorder: Recorder | None = None,
    page: SnapshotEstimator | None = None,
) -> Iterator[Snapshot]:
    """Snapshots while rows come, and one at the end.

    Their estimates are computed beside the rows, so a snapshot comes some rows after it was taken.

    Args:
        items: of a stream
        weigher: for its columns
        every_s: time between two snapshots, [s]; by default 0.1, and a third of it with a page
        recorder: receives every row
        page: adds the estimates, in another process, and shows the snapshots; without one a thread
            adds them
    """
    step_s = _SNAPSHOT_STEP_S
    if page is not None:
        step_s = _PAGE_STEP_S
    if every_s is not None:
        step_s = every_s
    with ExitStack() as resources:
        estimator: SnapshotEstimator
        if page is None:
            estimator = resources.enter_context(EstimatingThread())
        else:
            estimator = page
        estimator.attach(weigher)
        for context in (one_blas_thread(), short_pauses(), real_time_priority()):
            resources.enter_context(context)
        due_s = time.monotonic() + step_s
        for item in items:
            if recorder is not None and isinstance(item, Row):
                recorder.add(item)
            weigher.take(item)
            is_silence = isinstance(item, Event) and item.kind in _SILENCE
            if is_silence or time.monotonic() >= due_s:
                due_s = time.monotonic() + step_s
                yield from estimator.look(is_silence)
        yield from estimator.look(True)
