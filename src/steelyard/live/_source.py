"""Sources of live rows as values, and a stream of rows that a slow reader cannot hold up.

A `Source` knows how to connect; each alternative has a file of its own (`_ur`, `_ros2`, `_franka`,
`_replay`). A `Stream` reads it on a separate thread into a bounded queue:

    source -> connection -> clock (gaps, going back) -> judge (fit for weighing?) -> queue -> take()

Rows come in the order in which they were sent. A step of the sender's clock above one and a half
nominal steps is a gap; a step backwards starts a new clock, as after a reboot. The stream connects
again, after pauses, when the connection is lost. When rows are not taken in time, the oldest are
dropped and counted: an arm never waits for the reader. A recording that is replayed as fast as
possible does: nothing of it is dropped.
"""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

from steelyard._computing import real_time_priority
from steelyard.errors import InvalidSamples, SourceFailed, UnknownName
from steelyard.recording import UNKNOWN_ARM, ArmIdentity, WrenchConvention
from steelyard.recording._columns import Requested

if TYPE_CHECKING:
    from steelyard.io._wrist import SensorDescription
    from steelyard.live._controller import Controller
    from steelyard.live._ros2_publisher import Ros2Publisher

_QUEUE_ROWS = 5000  # 10 s at 500 Hz
_NOMINAL_STEP_SAMPLES = 20  # steps whose median is the nominal step
_MAX_NOMINAL_STEPS = 1.5  # longer steps are gaps
_WRENCH_PREFIXES = ("ft_raw_wrench_", "wrench_stamped.")  # of the columns of the six axes

MOTION_COLUMN = "sensor_motion"
"""Prefix of columns with the motion of a wrist sensor, see `steelyard.wrist.tracking.WristPath`."""

SETTLING_S = 0.5
"""Rows are not fit for weighing for this time after a change of modes, [s]."""

Values: TypeAlias = tuple[float, ...]
"""Measured values of one instant, in the order of the columns; the sender's time comes first."""


class EventKind(StrEnum):
    """Kinds of events between the rows."""

    CONNECTED = "connected"
    LOST = "lost"  # the connection is lost; the stream connects again
    ENDED = "ended"  # nothing more will come
    GAP = "gap"  # the sender skipped rows
    CLOCK = "clock"  # the sender's clock went back: a new clock from here on
    DROPPED = "dropped"  # rows were not taken in time
    MODE = "mode"  # the mode of the arm changed
    PAYLOAD = "payload"  # the payload set on the controller changed
    TEMPERATURE = "temperature"
    MARK = "mark"  # the robot's program set a register or an output
    TEXT = "text"  # a message of the sender
    PICK = "pick"  # the arm carries more than before
    DROP = "drop"  # the arm carries less than before
    CONTACT = "contact"  # something pushes the arm


class Event(NamedTuple):
    """Something that happened between the rows.

    Attributes:
        kind: what happened
        words: a description for people
        t: the sender's time, [s]; the time of the last row where the event has none of its own
        rows: number of rows that are missing or were dropped
    """

    kind: EventKind
    words: str
    t: float = 0.0
    rows: int = 0


class Row(NamedTuple):
    """Values that an arm sent for one instant.

    Attributes:
        t: the sender's time, [s]
        values: in the order of `Stream.columns`
        clock: number of the clock that the time belongs to, from 0
        waiting: why the row is not fit for weighing; empty where it is fit
        received_s: time of arrival, [s] on the clock of this machine (`time.monotonic`)
        wrench: raw reading of a wrist sensor at this instant, (6,) [N, Nm]; None without a reading
    """

    t: float
    values: Values
    clock: int = 0
    waiting: str = ""
    received_s: float = 0.0
    wrench: Values | None = None


class Connection(ABC):
    """An open connection to a source.

    Attributes:
        columns: names of the values; the first is the sender's time [s]
        version: version of the sender's software; empty where the sender does not report it
        wrench_convention: sign convention of the wrench in a row, where the sender reports it
    """

    columns: tuple[str, ...]
    version: tuple[int, ...] = ()
    wrench_convention: WrenchConvention | None = None

    @abstractmethod
    def read(self) -> Sequence[Values]:
        """The rows since the last call, after a short wait; raises `SourceFailed` on a loss."""

    @abstractmethod
    def close(self) -> None:
        """Closes the connection; a second call does nothing."""

    def texts(self) -> Sequence[str]:
        """Messages of the sender since the last call."""
        return ()


class Judge:
    """Decides for each row whether it is fit for weighing; this one accepts every row."""

    def judged(self, values: Values) -> str:
        """Why a row is not fit for weighing; empty where it is fit."""
        return ""

    def events(self) -> Iterator[Event]:
        """Changes since the last call."""
        yield from ()


class ModeJudge(Judge, ABC):
    """Rejects rows while `fault` names one, and for `SETTLING_S` afterwards."""

    def __init__(self) -> None:
        self._fault: str | None = None
        self._settled_s = float("-inf")
        self._pending: list[Event] = []

    @abstractmethod
    def fault(self, values: Values) -> str:
        """Why rows in the arm's present modes are not fit for weighing; empty where they are."""

    def judged(self, values: Values) -> str:
        """The present fault, or a note that one ended just now; empty for a row that is fit."""
        t = values[0]
        before = self._fault
        fault = self.fault(values)
        if fault != before:
            self._fault = fault
            if before is not None:
                self._settled_s = t + SETTLING_S
            if before is not None or fault:
                self._pending.append(Event(EventKind.MODE, fault or "the arm runs", t))
        if fault:
            return fault
        if self._settled_s - SETTLING_S <= t < self._settled_s:
            return "just started again"
        return ""

    def events(self) -> Iterator[Event]:
        """Changes since the last call."""
        pending = self._pending
        self._pending = []
        yield from pending


class Source(ABC):
    """A place where rows come from.

    Attributes:
        pauses_s: pause before each attempt to connect again, [s]; the last one is repeated
        waits_for_reader: whether rows wait until they are taken; else the oldest are dropped
    """

    pauses_s: tuple[float, ...] = (1.0, 2.0, 5.0)
    waits_for_reader = False

    @abstractmethod
    def connect(self) -> Connection:
        """A new connection; raises `SourceFailed` with one line that says what is wrong."""

    def judge(self, columns: Sequence[str]) -> Judge:
        """A new judge of rows with these columns."""
        return Judge()

    def with_joints(self, joint_names: tuple[str, ...]) -> Source:
        """The source for an arm; the same where rows come in the arm's order anyway.

        Args:
            joint_names: of the arm; empty where it is not known
        """
        return self

    def with_sensor(self, sensor: SensorDescription) -> Source:
        """The same source with a wrist sensor; recordings without joints need its description.

        Args:
            sensor: what it is
        """
        return self

    def read_with(self, tables: Requested) -> Source:
        """The same source with a user's statements about the columns and units of its rows.

        Args:
            tables: the statements; a source that names its own signals takes none

        Raises:
            SourceFailed: there are statements, and the source takes none
        """
        if tables == Requested():
            return self
        raise SourceFailed(
            f"{self} names its signals itself: columns, joints and units can only be stated for a"
            " recording"
        )

    @property
    def controller(self) -> Controller | None:
        """The controller behind the rows; None where there is none to command."""
        return None

    def publisher(self, topic: str) -> Ros2Publisher:
        """A publisher of what is weighed; refused where there are no topics.

        Args:
            topic: of the payload
        """
        raise UnknownName(
            f"{self} has no topics to publish on: use ros2://HOST or ros2-node: as the source"
        )


class Stream:
    """The rows of a source while they come; close it, or use it in a `with`.

    Args:
        source: connected at once; raises `SourceFailed` where that is not possible
        connection: an open connection of the source, for a caller that also sends commands by it
        queue_rows: largest number of rows that wait for `take`; older ones are dropped and counted,
            or the source waits (`Source.waits_for_reader`)

    Attributes:
        on_rows: called on the reader thread whenever rows have come; None for nothing
    """

    def __init__(
        self,
        source: Source,
        *,
        connection: Connection | None = None,
        queue_rows: int = _QUEUE_ROWS,
    ) -> None:
        self.source = source
        self._connection = connection or source.connect()
        self.columns = self._connection.columns
        self.dropped = 0
        self._queue: deque[Row | Event] = deque()
        # events between rows that were dropped
        self._kept_events: deque[Event] = deque(maxlen=_QUEUE_ROWS)
        self._limit = queue_rows
        self._new_drops = 0
        self._clock = _Clock()
        self._judge = source.judge(self.columns)
        self._wrench = _wrench_slice(self.columns)
        lock = threading.Lock()
        self._filled = threading.Condition(lock)
        self._emptied = threading.Condition(lock)
        self._closed = threading.Event()
        self._ended = False
        self.on_rows: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._read, name="steelyard source", daemon=True)
        self._put([Event(EventKind.CONNECTED, f"connected to {source}")])
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def version(self) -> tuple[int, ...]:
        """Version of the sender's software; empty where the sender does not report it."""
        return self._connection.version

    def identity(self) -> ArmIdentity:
        """The arm behind the rows, as far as its controller reports it, which is asked for it."""
        controller = self.source.controller
        if controller is None:
            return UNKNOWN_ARM
        return controller.identity(self.version)

    @property
    def wrench_convention(self) -> WrenchConvention | None:
        """Sign convention of the wrench in a row, where the sender reports it."""
        return self._connection.wrench_convention

    @property
    def ended(self) -> bool:
        """Whether nothing more will come and everything was taken."""
        with self._filled:
            return self._ended and not self._queue

    def take(self, timeout_s: float = 1.0) -> tuple[Row | Event, ...]:
        """All rows and events since the last call, in their order; waits for the first one.

        Args:
            timeout_s: longest wait, [s]
        """
        with self._filled:
            if not self._queue and not self._ended:
                self._filled.wait(timeout_s)
            taken = (*self._kept_events, *self._queue)
            self._kept_events.clear()
            self._queue.clear()
            dropped = self._new_drops
            self._new_drops = 0
            self._emptied.notify()
        if not dropped:
            return taken
        words = f"{dropped} rows were dropped here: they were not taken in time"
        return Event(EventKind.DROPPED, words, taken[0].t, dropped), *taken

    def row(self, within_s: float = 2.0) -> Row:
        """The newest row; earlier rows and events are discarded.

        Args:
            within_s: longest wait for a row, [s]
        """
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            if rows := [item for item in self.take(within_s) if isinstance(item, Row)]:
                return rows[-1]
        raise SourceFailed(f"{self.source} sent no row within {within_s:g} s")

    def named_row(self) -> dict[str, float]:
        """The values of the newest row by their column names."""
        return dict(zip(self.columns, self.row().values, strict=True))

    def items(self, seconds: float = float("inf")) -> Iterator[Row | Event]:
        """Rows and events, one after the other, until the stream ends.

        Args:
            seconds: longest time from now, not negative, [s]
        """
        if not seconds >= 0:
            raise InvalidSamples(f"`seconds` must not be negative, got {seconds:g}")
        return self._items(seconds)

    def _items(self, seconds: float) -> Iterator[Row | Event]:
        end = time.monotonic() + seconds
        while not self.ended and (left_s := end - time.monotonic()) > 0:
            yield from self.take(min(left_s, 1.0))

    def __iter__(self) -> Iterator[Row | Event]:
        return self.items()

    def close(self) -> None:
        """Closes the connection; rows that came before can still be taken."""
        self._closed.set()
        with self._filled:
            self._emptied.notify()
        self._connection.close()
        self._thread.join(timeout=5.0)

    # --- on the reader thread

    @real_time_priority()
    def _read(self) -> None:
        try:
            while not self._closed.is_set():
                self._read_connection()
        except SourceFailed as error:
            self._put([Event(EventKind.ENDED, str(error), self._clock.last_s)])
        except Exception as error:  # whatever it is, the caller of take() must learn of it
            words = f"reading {self.source} failed: {type(error).__name__}: {error}"
            self._put([Event(EventKind.ENDED, words, self._clock.last_s)])
        finally:
            self._connection.close()  # it may be newer than the one that close() has closed
            with self._filled:
                self._ended = True
                self._filled.notify_all()

    def _read_connection(self) -> None:
        """Reads until the connection is lost, then connects again."""
        connection = self._connection
        try:
            while not self._closed.is_set():
                rows = connection.read()
                self._put([*self._texts(connection), *self._marked(rows, time.monotonic())])
                if rows and (on_rows := self.on_rows) is not None:
                    on_rows()
        except EndOfSource:
            raise
        except SourceFailed as error:
            connection.close()
            if not self._closed.is_set():
                lost = Event(EventKind.LOST, str(error), self._clock.last_s)
                self._put([*self._texts(connection), lost])
                self._connect_again()

    def _connect_again(self) -> None:
        pauses = iter(self.source.pauses_s)
        pause_s = next(pauses)
        while not self._closed.wait(pause_s):
            pause_s = next(pauses, pause_s)
            try:
                self._connection = self.source.connect()
            except SourceFailed:
                continue
            if self._connection.columns != self.columns:
                raise SourceFailed(f"{self.source} sends other signals than before: start again")
            self._judge = self.source.judge(self.columns)
            words = f"connected to {self.source} again"
            return self._put([Event(EventKind.CONNECTED, words, self._clock.last_s)])

    def _texts(self, connection: Connection) -> Iterator[Event]:
        for words in connection.texts():
            yield Event(EventKind.TEXT, words, self._clock.last_s)

    def _marked(self, rows: Sequence[Values], received_s: float) -> Iterator[Row | Event]:
        """The rows, each preceded by the events of the clock and the judge."""
        for values in rows:
            t = values[0]
            if not math.isfinite(t):
                words = f"a row without a valid time was left out after {self._clock.last_s:.3f} s"
                yield Event(EventKind.GAP, words, self._clock.last_s, 1)
                continue
            yield from self._clock.events(t)
            waiting = self._judge.judged(values)
            yield from self._judge.events()
            wrench = self._reading(values)
            yield Row(t, values, self._clock.number, waiting, received_s, wrench)

    def _reading(self, values: Values) -> Values | None:
        """The wrench in a row; None where no sensor was read (six zeros, or NaN)."""
        if self._wrench is None:
            return None
        wrench = values[self._wrench]
        if any(wrench) and not any(map(math.isnan, wrench)):
            return wrench
        return None

    def _put(self, items: Sequence[Row | Event]) -> None:
        with self._filled:
            if self.source.waits_for_reader:
                self._emptied.wait_for(lambda: self._has_space(items) or self._closed.is_set())
            self._queue.extend(items)
            while len(self._queue) > self._limit and not self.source.waits_for_reader:
                oldest = self._queue.popleft()
                if isinstance(oldest, Event):
                    self._kept_events.append(oldest)
                else:
                    self.dropped += 1
                    self._new_drops += 1
            if items:
                self._filled.notify()

    def _has_space(self, items: Sequence[Row | Event]) -> bool:
        """Whether items fit into the queue; an empty queue takes any number."""
        return not self._queue or len(self._queue) + len(items) <= self._limit


def _wrench_slice(columns: Sequence[str]) -> slice | None:
    """Where the six numbers of a wrench lie in a row."""
    places = [k for k, name in enumerate(columns) if name.startswith(_WRENCH_PREFIXES)]
    if len(places) == 6:
        return slice(places[0], places[0] + 6)
    return None


class EndOfSource(SourceFailed):
    """A finite source has sent everything; connecting again makes no sense."""


class _Clock:
    """Follows the sender's time."""

    def __init__(self) -> None:
        self.last_s = float("-inf")
        self.number = 0
        self._steps: list[float] = []
        self._nominal_s = float("inf")

    def events(self, t: float) -> Iterator[Event]:
        """Events that follow from the time of one more row, [s]."""
        before = self.last_s
        self.last_s = t
        step = t - before
        if step < 0:
            self.number += 1
            yield Event(EventKind.CLOCK, f"the clock went back from {before:.3f} to {t:.3f} s", t)
        elif step > _MAX_NOMINAL_STEPS * self._nominal_s:
            count = max(round(step / self._nominal_s) - 1, 1)
            yield Event(EventKind.GAP, f"{count} rows are missing before {t:.3f} s", t, count)
        elif 0 < step < float("inf") and len(self._steps) < _NOMINAL_STEP_SAMPLES:
            self._steps.append(step)
            if len(self._steps) == _NOMINAL_STEP_SAMPLES:
                self._nominal_s = median(self._steps)
