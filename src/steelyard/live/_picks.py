"""Picks of a live stream: each part is weighed when the gripper opens again.

Rows pass through the path of a tracker (`signals.JointPath`) in blocks of up to 16, which cost far
less time than single ones; samples come later than the rows by the delay of its filters. The edges
of the gripper are found in the rows. When the samples have passed an edge, the stretch before it is
complete: it is weighed and judged as in a log. The beginning of a lift is weighed, too, where an
early answer is requested (`EarlyAnswer`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard._arrays import Array
from steelyard._computing import one_blas_thread
from steelyard.errors import InvalidSamples, SourceFailed
from steelyard.identification import DynamicModel
from steelyard.io._parts import read_parts
from steelyard.live._picks_page import PicksPage
from steelyard.live._recorder import Recorder
from steelyard.live._source import Event, EventKind, Row, Stream
from steelyard.live._torque import TorqueCalibration, TorqueSetup
from steelyard.live._track import _source_of
from steelyard.payload import Part
from steelyard.picking import Decision, EarlyAnswer, Pick, PickingOptions, Shift
from steelyard.picking._segments import MOVING_SPEED, Stretch, require_gripper_signal
from steelyard.picking._shift import PickJudge, References, unused_known
from steelyard.picking._weigher import StretchWeigher, WeigherState
from steelyard.recording import Sample, Samples
from steelyard.recording._columns import Requested
from steelyard.workflow._data import identified_arm
from steelyard.workflow._picks import any_part

_BLOCK_ROWS = 16
_BLOCK_S = 0.1  # rows wait for others at most this long, by the sender's clock [s]
_MAX_STRETCH_S = 120.0  # samples of a longer rest or motion are dropped [s]


@dataclass(frozen=True, eq=False)
class PickStreamOptions:
    """What happens with a stream while its picks are weighed.

    Attributes:
        gripper: name of the column of the gripper
        seconds: how long it is read [s]
        record: file for every row (.parquet or .arrows); None to record nothing
        tables: statements about columns and units of a recording that is replayed
        on_pick: called with each pick; rows wait meanwhile, so it should return at once
        on_early: called with an early answer about each pick, some time into its lift; likewise
        page: shows the picks so far in a browser
        ends_at_interrupt: whether Ctrl-C ends the stream instead of raising `KeyboardInterrupt`
    """

    gripper: str = "gripper"
    seconds: float = float("inf")
    record: Path | None = None
    tables: Requested = field(default_factory=Requested)
    on_pick: Callable[[Pick], None] | None = None
    on_early: Callable[[EarlyAnswer], None] | None = None
    page: PicksPage | None = None
    ends_at_interrupt: bool = False


def live_picks(
    source: Any,
    model: DynamicModel | str | Path,
    *,
    parts: Sequence[Part] | str | Path = (),
    options: PickingOptions | None = None,
    stream: PickStreamOptions | None = None,
) -> Shift:
    """The picks of a live stream, each as soon as it ends.

    Args:
        source: a `Source`, its address (ur://HOST), or a file to replay
        model: of the arm with its empty gripper, or its file
        parts: that are picked, or a CSV file of them
        options: how picks are weighed and judged; `closed` must be 'high' or 'low'
        stream: what happens with the stream meanwhile
    """
    known = identified_arm(model)
    table = read_parts(parts) if isinstance(parts, str | Path) else tuple(parts)
    how = options or PickingOptions()
    if how.closed == "auto":
        raise InvalidSamples(
            "a stream needs `closed='high'` or `closed='low'`: which value of the gripper means"
            " closed cannot be found before the first pick"
        )
    given = stream or PickStreamOptions()
    rows = _source_of(source, known.robot.joint_names).read_with(given.tables)
    with ExitStack() as resources:
        resources.enter_context(one_blas_thread())
        opened = resources.enter_context(Stream(rows))
        watcher = PickWatcher.of(known, table, how, opened.columns, given.gripper, str(rows))
        watcher.on_early = _early_listener(given)
        recorder = None
        if given.record is not None:
            recorder = resources.enter_context(
                Recorder(given.record, opened.columns, opened.identity())
            )
        if given.page is not None:
            given.page.show(watcher.shift)
        try:
            for item in opened.items(given.seconds):
                if recorder is not None and isinstance(item, Row):
                    recorder.add(item)
                _tell(watcher, item, given)
        except KeyboardInterrupt:
            if not given.ends_at_interrupt:
                raise
        _tell_picks(watcher, watcher.flush(), given)
    shift = watcher.shift
    return replace(shift, notes=(*shift.notes, *unused_known(how.known, shift.picks)))


def _early_listener(stream: PickStreamOptions) -> Callable[[EarlyAnswer], None] | None:
    """A function that passes an early answer on to the user and the page; None for neither."""
    page = stream.page
    if page is None:
        return stream.on_early

    def tell(early: EarlyAnswer) -> None:
        if stream.on_early is not None:
            stream.on_early(early)
        page.show_early(early)

    return tell


def _tell(watcher: PickWatcher, item: Row | Event, stream: PickStreamOptions) -> None:
    """Passes an item on to the watcher, and its picks to the user and the page."""
    if stream.page is not None and isinstance(item, Row):
        stream.page.note_row()
    _tell_picks(watcher, watcher.taken(item), stream)


def _tell_picks(watcher: PickWatcher, picks: Iterable[Pick], stream: PickStreamOptions) -> None:
    """Passes picks on to the user and the page."""
    for pick in picks:
        if stream.on_pick is not None:
            stream.on_pick(pick)
        if stream.page is not None:
            stream.page.show(watcher.shift)


@dataclass(eq=False)
class PickWatcher:
    """Finds and weighs picks in rows as they come.

    Attributes:
        setup: how rows become samples
        weigher: weighs stretches
        judge: decides what picks are
        gripper: place of the gripper in a row
        picks: so far
        on_early: called with an early answer about each pick; None to compute none
    """

    setup: TorqueSetup
    weigher: StretchWeigher
    judge: PickJudge
    gripper: int
    state: WeigherState
    picks: list[Pick] = field(default_factory=list)
    common: list[float] = field(default_factory=list)
    references: References = field(default_factory=References)
    on_early: Callable[[EarlyAnswer], None] | None = None
    _calibration: TorqueCalibration | None = None
    _path_state: Any = None
    _first_rows: list[Row] = field(default_factory=list)
    _block: list[Row] = field(default_factory=list)
    _closed: bool | None = None
    _edge_s: float = 0.0
    _pending_edge: tuple[bool, float] | None = None
    _samples: list[tuple[float, Array, Array]] = field(default_factory=list)
    _edges: list[tuple[float, bool]] = field(default_factory=list)
    _lift_s: float | None = None
    _early_told: bool = False

    @classmethod
    def of(
        cls,
        model: DynamicModel,
        parts: tuple[Part, ...],
        options: PickingOptions,
        columns: tuple[str, ...],
        gripper: str,
        name: str,
    ) -> PickWatcher:
        """The watcher of a stream.

        Args:
            model: of the arm with its empty gripper
            parts: of the table
            options: how picks are weighed and judged
            columns: names of the values in a row
            gripper: name of the gripper's column
            name: of the source, for messages
        """
        if gripper not in columns:
            raise SourceFailed(
                f"{name} sends no column '{gripper}'; there are {', '.join(columns)}"
            )
        weigher = StretchWeigher.of(
            model, parts or (any_part(),), early_s=options.early_s, margin_s=options.margin_s
        )
        setup = TorqueSetup(model, columns, name)
        judge = PickJudge(parts, options)
        return cls(setup, weigher, judge, columns.index(gripper), weigher.init())

    @property
    def shift(self) -> Shift:
        """The picks so far."""
        friction = self.state.friction
        n = self.weigher.arm.model.robot.n
        return Shift(
            tuple(self.picks),
            self.judge.parts,
            self.judge.options.false_alarms_per_1000,
            np.array([row[0] for row in friction]),
            np.array([row[1:] for row in friction]).reshape(-1, n),
            tuple(self.common),
            self.weigher.arm.model.robot.joint_names,
            self.state.notes,
            self.setup.name,
            self.judge.options.tool,
        )

    def taken(self, item: Row | Event) -> Iterator[Pick]:
        """The picks that a row or an event completes."""
        if isinstance(item, Event):
            if item.kind in (EventKind.GAP, EventKind.CLOCK, EventKind.LOST, EventKind.DROPPED):
                self._forget()
            return
        if item.waiting:
            self._forget()
            return
        if self._calibration is None:
            self._first_rows.append(item)
            if not self.setup.is_enough(self._first_rows):
                return
            self._calibration = self.setup.calibrated(self._first_rows)
            self._path_state = self._calibration.path.init()
            waiting = self._first_rows
            self._first_rows = []
            for row in waiting:
                yield from self._with_row(row, self._calibration)
            return
        yield from self._with_row(item, self._calibration)

    def flush(self) -> Iterator[Pick]:
        """The picks that the rows complete which still wait for others: at the end of a stream."""
        if self._calibration is not None:
            yield from self._with_block(self._calibration)

    def _forget(self) -> None:
        """Leaves the present stretch out: rows are missing in it."""
        self._block = []
        self._samples = []
        self._edges = []
        self._lift_s = None
        self._early_told = False
        self._closed = None
        self._pending_edge = None
        self._first_rows = []

    def _with_row(self, row: Row, calibration: TorqueCalibration) -> Iterator[Pick]:
        self._watch_gripper(row)
        self._block.append(row)
        waited_s = row.t - self._block[0].t
        if len(self._block) == _BLOCK_ROWS or not 0 <= waited_s < _BLOCK_S:
            yield from self._with_block(calibration)

    def _with_block(self, calibration: TorqueCalibration) -> Iterator[Pick]:
        """The picks that the waiting rows complete."""
        if not self._block:
            return
        rows = calibration.block(self._block)
        self._block = []
        self._path_state, ready = calibration.path.steps(self._path_state, rows)
        for sample in ready:
            if sample.fault:
                continue
            self._samples.append((sample.t, sample.motion, sample.effort))
            self._drop_old_samples(sample.t)
            if self._edges and sample.t >= self._edges[0][0]:
                yield from self._completed(*self._edges.pop(0))
            if self.on_early is not None and not self._early_told:
                self._watch_lift(sample, self.on_early)

    def _watch_lift(self, sample: Sample[Array], on_early: Callable[[EarlyAnswer], None]) -> None:
        """Gives the early answer once a carry has moved for long enough."""
        closed = self._edges[0][1] if self._edges else self._closed
        if not closed:
            return
        if self._lift_s is None:
            if (np.abs(sample.motion[1]) > MOVING_SPEED).any():
                self._lift_s = sample.t
            return
        options = self.judge.options
        if sample.t < self._lift_s + options.margin_s + options.early_s:
            return
        self._early_told = True
        stretch = Stretch.begun(
            self._joined(self._samples),
            start_s=self._edge_s,
            lift_s=self._lift_s,
            margin_s=options.margin_s,
        )
        masses = self.weigher.early(self.state, stretch)
        number = len(self.picks) + 1
        on_early(self.judge.early(number, stretch.start_s, masses, self.references))

    def _drop_old_samples(self, now_s: float) -> None:
        """Keeps memory bounded while the gripper does not move."""
        if now_s - self._samples[0][0] > 2 * _MAX_STRETCH_S:
            oldest_s = now_s - 1.5 * _MAX_STRETCH_S
            self._samples = [one for one in self._samples if one[0] >= oldest_s]

    def _watch_gripper(self, row: Row) -> None:
        """Notes an edge of the gripper once it has lasted long enough not to be chatter."""
        options = self.judge.options
        value = row.values[self.gripper]
        if not math.isfinite(value):
            return
        require_gripper_signal(value)
        if options.bit is not None:
            value = (int(value) >> options.bit) & 1
        closed = (value > self._threshold(value)) == (options.closed == "high")
        if self._closed is None:
            self._closed = closed
            self._edge_s = row.t
        elif closed == self._closed:
            self._pending_edge = None
        elif self._pending_edge is None:
            self._pending_edge = (closed, row.t)
        elif row.t - self._pending_edge[1] >= options.min_pulse_s:
            self._edges.append((self._pending_edge[1], self._closed))
            self._closed = closed
            self._pending_edge = None

    def _threshold(self, value: float) -> float:
        """The value between open and closed; that of a position has to be given."""
        threshold = self.judge.options.threshold
        if threshold is not None:
            return threshold
        if value not in (0.0, 1.0):
            raise InvalidSamples(
                f"{self.setup.name}: the gripper column holds {value:g}, not 0 or 1: give the value"
                " between open and closed as `threshold`, or the bit of a field of outputs"
            )
        return 0.5

    def _completed(self, edge_s: float, was_closed: bool) -> Iterator[Pick]:
        """The pick of a stretch that ends at an edge."""
        before = [one for one in self._samples if one[0] < edge_s]
        self._samples = [one for one in self._samples if one[0] >= edge_s]
        start_s = self._edge_s
        self._edge_s = edge_s
        self._lift_s = None
        self._early_told = False
        kept = [one for one in before if one[0] >= edge_s - _MAX_STRETCH_S]
        if len(kept) < 2:
            return
        stretch = Stretch.of(
            self._joined(kept),
            closed=was_closed,
            start_s=start_s,
            end_s=edge_s,
            margin_s=self.judge.options.margin_s,
        )
        if was_closed:
            yield self._picked(stretch)
        elif stretch.counting_s >= self.judge.options.min_carry_s:
            self.state = self.weigher.with_empty(self.state, stretch)

    def _joined(self, rows: list[tuple[float, Array, Array]]) -> Samples:
        """The samples of a stretch."""
        model = self.weigher.arm.model
        motion = np.array([one[1] for one in rows])
        t = np.array([one[0] for one in rows])
        return Samples(
            motion[:, 0],
            motion[:, 1],
            motion[:, 2],
            np.array([one[2] for one in rows]),
            (len(t) - 1) / (t[-1] - t[0]),
            model.robot.joint_names,
            model.kinematics,
            start_s=float(t[0]),
            preparation=model.preparation,
        )

    def _picked(self, stretch: Stretch) -> Pick:
        number = len(self.picks) + 1
        common = 0.0
        if stretch.counting_s < self.judge.options.min_carry_s:
            words = f"only {stretch.counting_s:.2f} s of motion count"
            pick = Pick(
                number, stretch.start_s, stretch.end_s, Decision.NOT_WEIGHED, reasons=(words,)
            )
        else:
            self.state, weighed = self.weigher.weighed(self.state, stretch)
            mass = self.judge.mass_of(number, weighed, self.references)
            known = self.judge.options.known
            if number in known:
                self.references = self.references.with_known(mass, known[number])
            pick, self.references = self.judge.judged(number, weighed, self.references)
            common = mass.common_std
        self.picks.append(pick)
        self.common.append(common)
        return pick
