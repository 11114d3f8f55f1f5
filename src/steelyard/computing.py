"""How long work is done: with one BLAS thread, with progress that can be shown, and compiled by JAX."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from threadpoolctl import ThreadpoolController

from steelyard.arrays import Array
from steelyard.errors import InvalidTrajectory, MissingExtra

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

    The garbage collector no longer walks through what is there already, which takes a tenth of a second, but
    often through the little that is new; threads change over after half a millisecond instead of five.
    """
    switch_s, thresholds = sys.getswitchinterval(), gc.get_threshold()
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


def jax_numpy() -> tuple[Any, Any]:
    """The modules jax and jax.numpy, or a refusal that names the extra."""
    try:
        import jax
        import jax.numpy as jnp
    except ModuleNotFoundError as error:
        raise MissingExtra("jax", "excitation") from error
    _keep_what_is_compiled(jax)
    return jax, jnp


@cache
def _keep_what_is_compiled(jax: Any) -> None:
    """In the user's cache folder, unless JAX is set to another one."""
    if jax.config.jax_compilation_cache_dir is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        with suppress(OSError, AttributeError):
            (folder := Path(home) / "steelyard" / "jax").mkdir(parents=True, exist_ok=True)
            jax.config.update("jax_compilation_cache_dir", str(folder))
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


@contextmanager
def _on(device: str) -> Iterator[None]:
    """64-bit floats on a device, for the calling thread and while it lasts."""
    jax, _ = jax_numpy()
    if hasattr(jax, "enable_x64"):
        wide = jax.enable_x64(True)
    else:
        from jax.experimental import enable_x64

        wide = enable_x64(True)
    try:
        found = jax.devices(device)[0]
    except RuntimeError as error:
        raise InvalidTrajectory(
            f"JAX finds no {device} here, only {jax.devices()[0].platform}: leave the device out, or install"
            " JAX for it (jax[cuda13])"
        ) from error
    with wide, jax.default_device(found):
        yield


def compiled(function: Callable[..., Any], device: str = "cpu") -> Callable[..., Any]:
    """A function, compiled by JAX for a device, with NumPy arrays in and out.

    Args:
        function: that JAX can trace
        device: 'cpu' or 'gpu'
    """
    jax, _ = jax_numpy()
    with _on(device):
        program = jax.jit(function, compiler_options=_compiler_options() if device == "cpu" else None)

    def run(*arrays: Array) -> Any:
        with _on(device):
            return jax.tree_util.tree_map(np.asarray, program(*arrays))

    return run


@cache
def _compiler_options() -> dict[str, bool] | None:
    """Without fusion emitters XLA compiles in half the time; None where it does not know the option."""
    jax, jnp = jax_numpy()
    options = {"xla_cpu_use_fusion_emitters": False}
    try:
        with _on("cpu"):
            jax.jit(lambda x: x + 1, compiler_options=options)(jnp.zeros(1))
    except (RuntimeError, TypeError, ValueError):
        return None
    return options
