"""A clock for several processes that stands still while one of them computes.

`share_clock(clock)` replaces the clock and all waits of a process: time is what `clock` says, and a
wait lasts until the clock has advanced. `Ticker` advances the clock, one step after the other, each
as soon as nobody has anything left to do: no thread runs, and nothing that was sent waits to be
read. So a busy machine makes a trial longer and changes nothing else.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

_SLICE_S = 1e-3  # of a wait, by the clock of the machine
_PAUSE_S = 2e-5  # between two looks at the threads, by the clock of the machine
_IDLE_LOOKS = 2  # in which no thread runs, one after the other

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
        self._thread = threading.Thread(target=self._run, name="virtual clock", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops the clock."""
        self._closed = True
        self._thread.join()

    def _run(self) -> None:
        while not self._closed:
            looks = 0
            while looks < _IDLE_LOOKS:
                _real_sleep(_PAUSE_S)
                looks = looks + 1 if self._idle() else 0
            self._clock.value += self._step_s
            self._on_step()

    def _idle(self) -> bool:
        if self._unread():
            return False
        mine = threading.get_native_id()
        return not any(_runs(pid, mine) for pid in (os.getpid(), *self._others()))


def _runs(pid: int, except_thread: int) -> bool:
    """Whether a thread of a process runs, or could run."""
    with suppress(OSError):  # the process or one of its threads has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            if int(thread) != except_thread and _state(pid, thread) == b"R":
                return True
    return False


def _state(pid: int, thread: str) -> bytes:
    file = os.open(f"/proc/{pid}/task/{thread}/stat", os.O_RDONLY)
    try:
        return os.read(file, 200).rpartition(b") ")[2][:1]
    finally:
        os.close(file)
