"""Where live rows come from, as a value, and a stream of them that no slow reader can hold up.

A `Source` knows how to connect; one file per alternative (`ur`, `ros2`, `franka`, `replay`). A
`Stream` reads it on a thread of its own into a bounded queue:

    source -> connection -> clock (gaps, going back) -> judge (fit for weighing?) -> queue -> take()

Rows come in the order in which they were sent. A step of the sender's clock above one and a half
nominal steps is a gap; one backwards starts a new clock, as after a reboot. A connection that is
lost is made again, after pauses. When nobody takes rows, the oldest are dropped and counted: the
sender never waits for us.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from enum import StrEnum
from statistics import median
from typing import NamedTuple, Self, TypeAlias

from steelyard._computing import ahead_of_others
from steelyard.errors import SourceFailed
from steelyard.recording import WrenchConvention

_QUEUE_ROWS = 5000  # 10 s at 500 Hz
_FIRST_STEPS = 20  # their median is the nominal step
_GAP_STEPS = 1.5
_WRENCH_WORDS = ("ft_raw_wrench_", "wrench_stamped.")  # before the six axes, in columns

MOTION_COLUMN = "sensor_motion"
"""Begins the names of columns with the motion of a wrist sensor, see `steelyard.wrist.tracking.WristRow`."""

SETTLING_S = 0.5
"""So long after a change of modes rows are not fit for weighing, [s]."""

Values: TypeAlias = tuple[float, ...]
"""What was measured at one instant, in the order of the columns; the sender's time comes first."""


class EventKind(StrEnum):
    """What can happen beside the rows."""

    CONNECTED = "connected"
    LOST = "lost"  # the connection; it is made again
    ENDED = "ended"  # nothing more will come
    GAP = "gap"  # rows are missing
    CLOCK = "clock"  # the sender's clock went back: another clock from here on
    DROPPED = "dropped"  # rows that nobody took in time
    MODE = "mode"
    PAYLOAD = "payload"  # another one that the controller believes in
    TEMPERATURE = "temperature"
    MARK = "mark"  # a register or an output that the robot's program has set
    TEXT = "text"  # a message of the sender
    PICK = "pick"  # the arm carries more than before
    DROP = "drop"
    CONTACT = "contact"  # something pushes the arm


class Event(NamedTuple):
    """Something that happened beside the rows.

    Attributes:
        kind: what
        words: the same for people
        t: the sender's time, [s]; that of the last row where it has none of its own
        rows: how many are missing or were dropped
    """

    kind: EventKind
    words: str
    t: float = 0.0
    rows: int = 0


class Row(NamedTuple):
    """What an arm sent at one instant.

    Attributes:
        t: the sender's time, [s]
        values: as `Stream.columns` names them
        clock: which clock the time belongs to, counted from 0
        waiting: why the row is not fit for weighing, in words; empty where it is
        received_s: when it came, [s] on the clock of this machine (`time.monotonic`)
        wrench: raw reading of a wrist sensor at this instant, (6,) [N, Nm]; None where there is
            none
    """

    t: float
    values: Values
    clock: int = 0
    waiting: str = ""
    received_s: float = 0.0
    wrench: Values | None = None


class Connection(ABC):
    """Rows as they come in, until it is lost.

    Attributes:
        columns: names of the values; the first is the sender's time [s]
        version: of the sender's software; empty where it does not say
        wrench_convention: of the wrench in a row, where the sender says it
    """

    columns: tuple[str, ...]
    version: tuple[int, ...] = ()
    wrench_convention: WrenchConvention | None = None

    @abstractmethod
    def read(self) -> Sequence[Values]:
        """The rows since the last call, after a short wait; raises `SourceFailed` when it is lost."""

    @abstractmethod
    def close(self) -> None:
        """Ends it; a second time does nothing."""

    def texts(self) -> Sequence[str]:
        """Messages of the sender since the last call."""
        return ()


class Judge:
    """Says of each row whether it is fit for weighing, and what has changed; this one finds no fault."""

    def judged(self, values: Values) -> str:
        """Why a row is not fit for weighing, in words; empty where it is."""
        return ""

    def events(self) -> Iterator[Event]:
        """What has changed since the last call."""
        yield from ()


class ModeJudge(Judge, ABC):
    """Watches modes: rows are not fit for weighing while `fault` names one, and half a second longer."""

    def __init__(self) -> None:
        self._fault: str | None = None
        self._settled_s = float("-inf")
        self._news: list[Event] = []

    @abstractmethod
    def fault(self, values: Values) -> str:
        """Why the arm cannot be weighed with in its modes, in words; empty where it can."""

    def judged(self, values: Values) -> str:
        """The fault, or that there was one just now; empty for a row that is fit for weighing."""
        t = values[0]
        was = self._fault
        now = self.fault(values)
        if now != was:
            self._fault = now
            if was is not None:
                self._settled_s = t + SETTLING_S
            if was is not None or now:
                self._news.append(Event(EventKind.MODE, now or "the arm runs", t))
        return now or (
            "just started again" if self._settled_s - SETTLING_S <= t < self._settled_s else ""
        )

    def events(self) -> Iterator[Event]:
        """What has changed since the last call."""
        news = self._news
        self._news = []
        yield from news


class Source(ABC):
    """Where rows come from.

    Attributes:
        pauses_s: before each attempt to connect again, [s]; the last one counts for all that follow
    """

    pauses_s: tuple[float, ...] = (1.0, 2.0, 5.0)

    @abstractmethod
    def connect(self) -> Connection:
        """A new connection; raises `SourceFailed` with one line that says what is wrong."""

    def judge(self, columns: Sequence[str]) -> Judge:
        """A judge of rows with these columns, without memory of others."""
        return Judge()


class Stream:
    """The rows of a source while they come; close it, or use it in a `with`.

    Args:
        source: where they come from; it is connected now, or refused
        queue_rows: so many wait for `take` at most; older ones are dropped and counted
    """

    def __init__(self, source: Source, *, queue_rows: int = _QUEUE_ROWS) -> None:
        self.source = source
        self._connection = source.connect()
        self.columns = self._connection.columns
        self.dropped = 0
        self._queue: deque[Row | Event] = deque()
        self._kept: deque[Event] = deque(
            maxlen=_QUEUE_ROWS
        )  # events between rows that were dropped
        self._limit = queue_rows
        self._new_drops = 0
        self._clock, self._judge = _Clock(), source.judge(self.columns)
        self._wrench = _wrench_at(self.columns)
        self._filled, self._closed, self._ended = threading.Condition(), threading.Event(), False
        self._thread = threading.Thread(target=self._read, name="steelyard source", daemon=True)
        self._put([Event(EventKind.CONNECTED, f"connected to {source}")])
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def connection(self) -> Connection:
        """The one that is open now, for what else it can do; its rows are read here alone."""
        return self._connection

    @property
    def version(self) -> tuple[int, ...]:
        """Of the sender's software; empty where it does not say."""
        return self._connection.version

    @property
    def wrench_convention(self) -> WrenchConvention | None:
        """Of the wrench in a row, where the sender says it."""
        return self._connection.wrench_convention

    @property
    def ended(self) -> bool:
        """Whether nothing more will come, and all that came was taken."""
        with self._filled:
            return self._ended and not self._queue

    def take(self, timeout_s: float = 1.0) -> tuple[Row | Event, ...]:
        """All rows and events since the last call, in their order; waits for the first one.

        Args:
            timeout_s: how long at most, [s]
        """
        with self._filled:
            if not self._queue and not self._ended:
                self._filled.wait(timeout_s)
            taken = (*self._kept, *self._queue)
            self._kept.clear()
            self._queue.clear()
            dropped = self._new_drops
            self._new_drops = 0
        if not dropped:
            return taken
        words = f"{dropped} rows were dropped here: they were not taken in time"
        return Event(EventKind.DROPPED, words, taken[0].t, dropped), *taken

    def row(self, within_s: float = 2.0) -> Row:
        """The newest row now; whatever else has come is passed over.

        Args:
            within_s: how long to wait for one, [s]
        """
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            if rows := [item for item in self.take(within_s) if isinstance(item, Row)]:
                return rows[-1]
        raise SourceFailed(f"{self.source} sent no row within {within_s:g} s")

    def items(self, seconds: float = float("inf")) -> Iterator[Row | Event]:
        """What comes, one after the other, until the stream ends.

        Args:
            seconds: or until so long from now, [s]
        """
        end = time.monotonic() + seconds
        while not self.ended and (left_s := end - time.monotonic()) > 0:
            yield from self.take(min(left_s, 1.0))

    def __iter__(self) -> Iterator[Row | Event]:
        return self.items()

    def close(self) -> None:
        """Ends the connection; what came before can still be taken."""
        self._closed.set()
        self._connection.close()
        self._thread.join(timeout=5.0)

    # --- on the reader's thread

    @ahead_of_others()
    def _read(self) -> None:
        try:
            while not self._closed.is_set():
                self._read_connection()
        except SourceFailed as error:
            self._put([Event(EventKind.ENDED, str(error), self._clock.last_s)])
        finally:
            with self._filled:
                self._ended = True
                self._filled.notify_all()

    def _read_connection(self) -> None:
        """Reads until the connection is lost, and makes another one."""
        connection = self._connection
        try:
            while not self._closed.is_set():
                rows = connection.read()
                self._put([*self._texts(connection), *self._marked(rows, time.monotonic())])
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
            again = f"connected to {self.source} again"
            return self._put([Event(EventKind.CONNECTED, again, self._clock.last_s)])

    def _texts(self, connection: Connection) -> Iterator[Event]:
        for words in connection.texts():
            yield Event(EventKind.TEXT, words, self._clock.last_s)

    def _marked(self, rows: Sequence[Values], received_s: float) -> Iterator[Row | Event]:
        """The rows with what their clock and the judge say of them."""
        for values in rows:
            t = values[0]
            yield from self._clock.events(t)
            waiting = self._judge.judged(values)
            yield from self._judge.events()
            if self._wrench is not None:
                wrench = values[self._wrench]
            else:
                wrench = None
            if wrench is not None and not (any(wrench) and all(x == x for x in wrench)):
                wrench = None  # six zeros, or not a number: nobody has read a sensor
            yield Row(t, values, self._clock.number, waiting, received_s, wrench)

    def _put(self, items: Sequence[Row | Event]) -> None:
        with self._filled:
            self._queue.extend(items)
            while len(self._queue) > self._limit:
                oldest = self._queue.popleft()
                if isinstance(oldest, Event):
                    self._kept.append(oldest)
                else:
                    self.dropped += 1
                    self._new_drops += 1
            if items:
                self._filled.notify()


def _wrench_at(columns: Sequence[str]) -> slice | None:
    """Where the six numbers of a wrench lie in a row."""
    at = [k for k, name in enumerate(columns) if name.startswith(_WRENCH_WORDS)]
    if len(at) == 6:
        return slice(at[0], at[0] + 6)
    return None


class EndOfSource(SourceFailed):
    """Everything was sent: there is nothing to connect to again."""


class _Clock:
    """Watches the sender's time."""

    def __init__(self) -> None:
        self.last_s = float("-inf")
        self.number = 0
        self._steps: list[float] = []
        self._nominal_s = float("inf")

    def events(self, t: float) -> Iterator[Event]:
        """What the time of one more row says about those before it."""
        before = self.last_s
        self.last_s = t
        step = t - before
        if step < 0:
            self.number += 1
            yield Event(EventKind.CLOCK, f"the clock went back from {before:.3f} to {t:.3f} s", t)
        elif step > _GAP_STEPS * self._nominal_s:
            count = max(round(step / self._nominal_s) - 1, 1)
            yield Event(EventKind.GAP, f"{count} rows are missing before {t:.3f} s", t, count)
        elif 0 < step < float("inf") and len(self._steps) < _FIRST_STEPS:
            self._steps.append(step)
            if len(self._steps) == _FIRST_STEPS:
                self._nominal_s = median(self._steps)
