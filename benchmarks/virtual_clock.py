"""A clock for several processes that stands still while one of them computes.

`share_clock(clock)` replaces the clock and all waits of a process: time is what the clock says, and
a wait lasts until the clock has reached its end. A `Ticker` advances the clock, one step after the
other, each as soon as no process has anything left to do: no thread runs, nothing that was sent
waits to be read, and no wait is over. So a busy machine makes a trial longer and changes nothing
else.

In every process one thread ends the waits (`Timers`). It looks at the clock again and again, so
that its own state says nothing; the earliest end of a wait does.
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
import select
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

_LOOK_S = 5e-4  # between two looks at the clock, by the clock of the machine
_PAUSE_S = 2e-5  # at least, between two looks at the threads, by the clock of the machine
_MAX_PAUSE_S = 1e-3
_STOPPED = (b"", b"T", b"Z", b"X")  # states of threads that end no wait

_real_sleep = time.sleep
_real_select = select.select
_real_wait = threading.Condition.wait


class Timers:
    """The waits of this process, and the thread that ends them.

    Args:
        clock: three numbers that processes share: the time [s], and of the other process the thread
            that ends its waits, and the earliest end of a wait, [s]
        is_other: whether this is the other process
    """

    def __init__(self, clock: Any, *, is_other: bool) -> None:
        self._clock = clock
        self._is_other = is_other
        self._lock = threading.Lock()
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._thread = threading.Thread(target=self._run, name="timers", daemon=True)
        self.earliest_s = math.inf  # end of a wait
        self._thread.start()
        if is_other:  # in place of an earlier process
            clock[2] = math.inf
            clock[1] = self.thread

    @property
    def thread(self) -> int:
        """Number of the thread."""
        return self._thread.native_id or 0

    def add(self, end_s: float, action: Callable[[], None]) -> None:
        """Calls an action at a time of the clock, [s]."""
        with self._lock:
            heapq.heappush(self._heap, (end_s, next(self._count), action))
            self._tell()

    def _tell(self) -> None:
        self.earliest_s = self._heap[0][0] if self._heap else math.inf
        if self._is_other:
            self._clock[2] = self.earliest_s

    def _run(self) -> None:
        while True:
            while self.earliest_s <= self._clock[0]:
                with self._lock:
                    _, _, action = heapq.heappop(self._heap)
                action()
                with self._lock:
                    self._tell()
            _real_sleep(_LOOK_S)


def share_clock(clock: Any, *, is_other: bool) -> Timers:
    """Makes time and all waits of this process those of a clock.

    Args:
        clock: see `Timers`
        is_other: whether this is the process that has no `Ticker`
    """
    timers = Timers(clock, is_other=is_other)
    settimeout, setblocking = socket.socket.settimeout, socket.socket.setblocking
    recv = socket.socket.recv
    timeouts: weakref.WeakKeyDictionary[socket.socket, float] = weakref.WeakKeyDictionary()

    def now() -> float:
        return float(clock[0])

    def sleep(seconds: float) -> None:
        over = threading.Lock()
        over.acquire()
        timers.add(now() + seconds, over.release)
        over.acquire()

    def ready(r: Sequence[Any], w: Sequence[Any], x: Sequence[Any], timeout: Any = None) -> Any:
        if timeout is None or timeout <= 0:
            return _real_select(r, w, x, *([] if timeout is None else [0]))
        wake = _Wake()
        timers.add(now() + timeout, wake.over)
        found, *others = _real_select([*r, wake.reader], w, x)
        wake.close()
        return [one for one in found if one is not wake.reader], *others

    def waited(self: threading.Condition, timeout: float | None = None) -> bool:
        if timeout is None:
            return _real_wait(self)
        states: list[str] = []

        def end() -> None:
            with self:
                if not states:  # the wait goes on
                    states.append("over")
                    self.notify_all()

        timers.add(now() + timeout, end)
        _real_wait(self)
        states.append("ended")
        return states[0] == "ended"

    def set_timeout(self: socket.socket, timeout: float | None) -> None:
        settimeout(self, 0 if timeout == 0 else None)
        if timeout:
            timeouts[self] = timeout
        else:
            timeouts.pop(self, None)

    def set_blocking(self: socket.socket, flag: bool) -> None:
        setblocking(self, flag)
        timeouts.pop(self, None)

    def received(self: socket.socket, *args: Any) -> bytes:
        timeout = timeouts.get(self)
        if timeout is not None and not ready([self], [], [], timeout)[0]:
            raise TimeoutError("timed out")
        return recv(self, *args)

    patches: list[tuple[Any, str, Callable[..., Any]]] = [
        (time, "monotonic", now),
        (time, "sleep", sleep),
        (select, "select", ready),
        (threading.Condition, "wait", waited),
        (socket.socket, "settimeout", set_timeout),
        (socket.socket, "setblocking", set_blocking),
        (socket.socket, "recv", received),
    ]
    for owner, name, replacement in patches:
        setattr(owner, name, replacement)
    return timers


class _Wake:
    """Ends a `select` from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reader, self._writer = os.pipe()
        self._closed = False

    def over(self) -> None:
        with self._lock:
            if not self._closed:
                os.write(self._writer, b"x")

    def close(self) -> None:
        with self._lock:
            self._closed = True
            os.close(self.reader)
            os.close(self._writer)


class Ticker:
    """Advances a clock on a thread of its own, until it is closed.

    Args:
        timers: of this process
        clock: see `Timers`
        step_s: of the clock, [s]
        on_step: called after each step
        other: number of the other process
        unread: whether something that was sent to this process waits to be read
    """

    def __init__(
        self,
        timers: Timers,
        clock: Any,
        step_s: float,
        *,
        on_step: Callable[[], None],
        other: Callable[[], int],
        unread: Callable[[], bool],
    ) -> None:
        self._timers = timers
        self._clock = clock
        self._step_s = step_s
        self._on_step = on_step
        self._other = other
        self._unread = unread
        threading.Thread(target=self._run, name="virtual clock", daemon=True).start()

    def _run(self) -> None:
        mine = (self._timers.thread, threading.get_native_id())
        threads = _Threads()
        while True:
            pause_s = _PAUSE_S
            _real_sleep(pause_s)
            while self._is_busy(threads, mine):
                _real_sleep(pause_s)
                pause_s = min(2 * pause_s, _MAX_PAUSE_S)
            self._clock[0] += self._step_s
            self._on_step()

    def _is_busy(self, threads: _Threads, mine: Sequence[int]) -> bool:
        now_s = self._clock[0]
        if self._timers.earliest_s <= now_s or self._unread():
            return True
        pid = self._other()
        timer = int(self._clock[1])
        if self._clock[2] <= now_s and threads.state(pid, str(timer)) not in _STOPPED:
            return True
        return threads.run((os.getpid(), pid), {str(thread) for thread in (*mine, timer)})


class _Threads:
    """The states of threads, from files of `/proc` that are kept open."""

    def __init__(self) -> None:
        self._files: dict[tuple[int, str], int] = {}

    def run(self, processes: Sequence[int], excepted: set[str]) -> bool:
        """Whether a thread of these processes runs, or could run; some threads do not count."""
        if any(self.state(*x) == b"R" for x in tuple(self._files) if x[1] not in excepted):
            return True
        found = {thread for pid in processes for thread in _threads_of(pid)}
        for gone in self._files.keys() - found:
            os.close(self._files.pop(gone))
        return any(self.state(*x) == b"R" for x in found if x[1] not in excepted)

    def state(self, pid: int, thread: str) -> bytes:
        """One letter; empty for a thread that has ended."""
        with suppress(OSError):
            file = self._files.get((pid, thread))
            if file is None:
                file = os.open(f"/proc/{pid}/task/{thread}/stat", os.O_RDONLY)
                self._files[pid, thread] = file
            return os.pread(file, 200, 0).rpartition(b") ")[2][:1]
        return b""


def _threads_of(pid: int) -> Iterator[tuple[int, str]]:
    with suppress(OSError):  # the process has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            yield pid, thread
