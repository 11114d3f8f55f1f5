"""Access to JAX: 64-bit programs for a device, with a persistent compilation cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidTrajectory, MissingExtra


def jax_numpy() -> tuple[Any, Any]:
    """The modules jax and jax.numpy; without JAX, an error that names the extra to install."""
    try:
        import jax
        import jax.numpy as jnp
    except ModuleNotFoundError as error:
        raise MissingExtra.of("jax", "excitation") from error
    _enable_compilation_cache(jax)
    return jax, jnp


@cache
def _enable_compilation_cache(jax: Any) -> None:
    """Keeps compiled programs in the user's cache folder, unless JAX has another one."""
    if jax.config.jax_compilation_cache_dir is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        with suppress(OSError, AttributeError):
            folder = Path(home) / "steelyard" / "jax"
            folder.mkdir(parents=True, exist_ok=True)
            jax.config.update("jax_compilation_cache_dir", str(folder))
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


@contextmanager
def _on(device: str) -> Iterator[None]:
    """A context with 64-bit floats on a device, for the calling thread."""
    jax, _ = jax_numpy()
    if hasattr(jax, "enable_x64"):
        double_precision = jax.enable_x64(True)
    else:
        from jax.experimental import enable_x64

        double_precision = enable_x64(True)
    try:
        first = jax.devices(device)[0]
    except RuntimeError as error:
        raise InvalidTrajectory(
            f"JAX finds no {device} on this machine, only {jax.devices()[0].platform}: leave the"
            " device out, or install JAX for it (jax[cuda13])"
        ) from error
    with double_precision, jax.default_device(first):
        yield


def compiled(function: Callable[..., Any], device: str = "cpu") -> Callable[..., Any]:
    """The function compiled by JAX for a device, with NumPy arrays in and out.

    Args:
        function: function that JAX can trace
        device: 'cpu' or 'gpu'
    """
    jax, _ = jax_numpy()
    options = _cpu_compiler_options() if device == "cpu" else None
    with _on(device):
        program = jax.jit(function, compiler_options=options)

    def run(*arrays: Array) -> Any:
        with _on(device):
            return jax.tree_util.tree_map(np.asarray, program(*arrays))

    return run


@cache
def _cpu_compiler_options() -> dict[str, bool] | None:
    """Options with which XLA compiles in half the time; None if it does not know them."""
    jax, jnp = jax_numpy()
    options = {"xla_cpu_use_fusion_emitters": False}
    try:
        with _on("cpu"):
            jax.jit(lambda x: x + 1, compiler_options=options)(jnp.zeros(1))
    except (RuntimeError, TypeError, ValueError):
        return None
    return options
