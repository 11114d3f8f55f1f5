"""A clock for several processes that stands still while one of them computes.

`share_clock(clock)` replaces the clock and all waits of a process: time is what `clock` says, and a
wait lasts until the clock has advanced. `Ticker` advances the clock, one step after the other, each
as soon as no process has anything left to do: no thread runs, and nothing that was sent waits to be
read. So a busy machine makes a trial longer and changes nothing else.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

_SLICE_S = 1e-3  # of a wait, by the clock of the machine
_PAUSE_S = 2e-5  # at least, between two looks at the threads, by the clock of the machine

_real_sleep = time.sleep
_real_select = select.select


def share_clock(clock: Any) -> None:
    """Makes time and all waits of this process those of a clock.

    Args:
        clock: with the time in its attribute `value`, [s]; shared between processes
    """
    wait = threading.Condition.wait
    settimeout, setblocking = socket.socket.settimeout, socket.socket.setblocking
    recv = socket.socket.recv
    timeouts: weakref.WeakKeyDictionary[socket.socket, float] = weakref.WeakKeyDictionary()

    def now() -> float:
        return float(clock.value)

    def sleep(seconds: float) -> None:
        end_s = now() + seconds
        while now() < end_s:
            _real_sleep(_SLICE_S)

    def ready(r: Sequence[Any], w: Sequence[Any], x: Sequence[Any], timeout: Any = None) -> Any:
        if timeout is None:
            return _real_select(r, w, x)
        end_s = now() + timeout
        while True:
            found = _real_select(r, w, x, _SLICE_S if timeout > 0 else 0)
            if any(found) or now() >= end_s:
                return found

    def waited(self: threading.Condition, timeout: float | None = None) -> bool:
        if timeout is None:
            return wait(self)
        end_s = now() + timeout
        while not wait(self, _SLICE_S):
            if now() >= end_s:
                return False
        return True

    def event_set(self: threading.Event, timeout: float | None = None) -> bool:
        end_s = now() + (float("inf") if timeout is None else timeout)
        while not self.is_set() and now() < end_s:
            _real_sleep(_SLICE_S)
        return self.is_set()

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
        (threading.Event, "wait", event_set),
        (socket.socket, "settimeout", set_timeout),
        (socket.socket, "setblocking", set_blocking),
        (socket.socket, "recv", received),
    ]
    for owner, name, replacement in patches:
        setattr(owner, name, replacement)


class Ticker:
    """Advances a clock on a thread of its own, until it is closed.

    Args:
        clock: as in `share_clock`
        step_s: of the clock, [s]
        on_step: called after each step
        others: processes that must have nothing to do, besides the other threads of this one
        unread: whether something that was sent to this process waits to be read
    """

    def __init__(
        self,
        clock: Any,
        step_s: float,
        *,
        on_step: Callable[[], None],
        others: Callable[[], Sequence[int]],
        unread: Callable[[], bool],
    ) -> None:
        self._clock = clock
        self._step_s = step_s
        self._on_step = on_step
        self._others = others
        self._unread = unread
        self._closed = False
        self._threads = _Threads(0)
        self._thread = threading.Thread(target=self._run, name="virtual clock", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops the clock."""
        self._closed = True
        self._thread.join()

    def _run(self) -> None:
        self._threads = _Threads(threading.get_native_id())
        while not self._closed:
            self._await_idle()
            self._clock.value += self._step_s
            self._on_step()

    def _await_idle(self) -> None:
        pause_s = _PAUSE_S
        _real_sleep(pause_s)
        while self._unread() or self._threads.run(self._others()):
            _real_sleep(pause_s)
            pause_s = min(2 * pause_s, _SLICE_S)


class _Threads:
    """The states of threads, from files of `/proc` that are kept open.

    `except_thread` does not count: its number.
    """

    def __init__(self, except_thread: int) -> None:
        self._except = str(except_thread)
        self._files: dict[tuple[int, str], int] = {}

    def run(self, others: Sequence[int]) -> bool:
        """Whether a thread of this process or of others runs, or could run."""
        known = [self._state(*thread) for thread in tuple(self._files)]
        if b"R" in known:
            return True
        found = {thread for pid in (os.getpid(), *others) for thread in self._threads_of(pid)}
        for gone in self._files.keys() - found:
            os.close(self._files.pop(gone))
        return any(self._state(*thread) == b"R" for thread in found)

    def _threads_of(self, pid: int) -> Iterator[tuple[int, str]]:
        with suppress(OSError):  # the process has ended
            for thread in os.listdir(f"/proc/{pid}/task"):
                if thread != self._except:
                    yield pid, thread

    def _state(self, pid: int, thread: str) -> bytes:
        """One letter; empty for a thread that has ended."""
        with suppress(OSError):
            file = self._files.get((pid, thread))
            if file is None:
                file = os.open(f"/proc/{pid}/task/{thread}/stat", os.O_RDONLY)
                self._files[pid, thread] = file
            return os.pread(file, 200, 0).rpartition(b") ")[2][:1]
        return b""
