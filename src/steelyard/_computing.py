"""Settings for long computations: BLAS threads, interpreter pauses, priority, Ctrl-C."""

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

ESTIMATES_PRIORITY = 1  # real-time priority of a thread that estimates for threads that take rows
ROWS_PRIORITY = 2  # real-time priority of a thread that takes rows as they come

Progress: TypeAlias = Callable[[float, str], None]
"""Called with the completed share of the work, 0 to 1, and a description of the current step."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limits BLAS to one thread and restores the previous limit afterwards; also a decorator.

    The matrices are small: with two threads a decomposition takes up to six times the processor
    time.
    """
    import scipy.linalg  # noqa: F401  its BLAS must be loaded to be limited

    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """The loaded libraries that use threads.

    Finding them takes 10 ms, so the result is cached until more modules are loaded.

    Args:
        modules: number of loaded modules
    """
    return ThreadpoolController()


@contextmanager
def short_pauses() -> Iterator[None]:
    """Shortens pauses of the interpreter while rows arrive, and restores its settings afterwards.

    The garbage collector skips objects that exist already, which would take 0.1 s, and collects
    new ones often. Threads switch after 0.5 ms instead of 5 ms.
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
def real_time_priority(level: int = ROWS_PRIORITY) -> Iterator[None]:
    """Gives this thread a low real-time priority, and restores its own afterwards.

    Long computations then yield to the threads that take rows. Threads and processes that are
    started meanwhile do not inherit the priority. Without effect where the system does not allow
    or have it (other than Linux), and where STEELYARD_REAL_TIME is 0.

    Args:
        level: of the priority
    """
    unwanted = os.environ.get("STEELYARD_REAL_TIME") == "0"
    if unwanted or not hasattr(os, "sched_setscheduler"):
        yield
        return
    before = (os.sched_getscheduler(0), os.sched_getparam(0))
    not_inherited = os.SCHED_RESET_ON_FORK
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR | not_inherited, os.sched_param(level))
    try:
        yield
    finally:
        with suppress(PermissionError):
            os.sched_setscheduler(0, before[0] | not_inherited, before[1])


@contextmanager
def interruptible() -> Iterator[None]:
    """Lets Ctrl-C raise KeyboardInterrupt; also a decorator.

    Without it the command line ends the process at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
