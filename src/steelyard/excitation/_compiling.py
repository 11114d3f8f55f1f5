"""JAX, where it is installed: programs in 64 bits for a device, and what is compiled kept between calls."""

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
            f"JAX finds no {device} here, only {jax.devices()[0].platform}: leave the device out,"
            " or install"
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
        program = jax.jit(
            function, compiler_options=_compiler_options() if device == "cpu" else None
        )

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
