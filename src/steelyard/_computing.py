"""How long work is done: with one BLAS thread, and with progress that can be shown."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TypeAlias

from threadpoolctl import ThreadpoolController

Progress: TypeAlias = Callable[[float, str], None]
"""Called with the share of the work that is done, 0 to 1, and with what goes on, in words."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keeps BLAS to one thread, and restores what the program had; also a decorator.

    Our decompositions are small: with two threads they take up to six times the processor time.
    """
    import scipy.linalg  # noqa: F401  its BLAS must be loaded to be limited

    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """The libraries with threads, looked for again (10 ms) when more modules are loaded."""
    return ThreadpoolController()


@contextmanager
def short_pauses() -> Iterator[None]:
    """Keeps the interpreter's own pauses short while rows come, and restores what the program had.

    The garbage collector no longer walks through what is there already, which takes a tenth of a
    second, but often through the little that is new; threads change over after half a millisecond
    instead of five.
    """
    switch_s = sys.getswitchinterval()
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(200, 10, 1_000_000)
    sys.setswitchinterval(0.0005)
    try:
        yield
    finally:
        sys.setswitchinterval(switch_s)
        gc.set_threshold(*thresholds)
        gc.unfreeze()


@contextmanager
def ahead_of_others() -> Iterator[None]:
    """Gives this thread the lowest real-time priority where the system allows it, and takes it back; Linux.

    Who works for milliseconds at a time then waits for rows, and not they for it. Threads and
    processes that are started meanwhile have none of it.
    """
    if not hasattr(os, "sched_setscheduler"):
        yield
        return
    before = (os.sched_getscheduler(0), os.sched_getparam(0))
    not_inherited = os.SCHED_RESET_ON_FORK
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR | not_inherited, os.sched_param(1))
    try:
        yield
    finally:
        with suppress(PermissionError):
            os.sched_setscheduler(0, before[0] | not_inherited, before[1])


@contextmanager
def interruptible() -> Iterator[None]:
    """Lets Ctrl-C raise KeyboardInterrupt, where the command line would end at once; also a decorator."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
