"""The kinds of arrays, and how a value keeps its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]


def read_only(values: ArrayLike) -> Array:
    """A copy as floating-point numbers that nobody can write to.

    Args:
        values: of any shape
    """
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array


def finite(values: ArrayLike, shape: tuple[int, ...], name: str, error: type[Exception]) -> Array:
    """A read-only copy of finite values of a shape; anything else is an error that names it."""
    array = read_only(values)
    if array.shape != shape or not np.isfinite(array).all():
        wanted = shape[0] if len(shape) == 1 else shape
        got = array if array.size < 20 else f"shape {array.shape}"
        raise error(
            f"{name} must be {'three' if wanted == 3 else wanted} finite numbers, got {got}"
        )
    return array


def freeze(value: object, *names: str) -> None:
    """Makes attributes of a frozen dataclass read-only copies; those that are None stay None.

    Args:
        value: the dataclass, in its `__post_init__`
        names: of the attributes
    """
    for name in names:
        if (array := getattr(value, name)) is not None:
            object.__setattr__(value, name, read_only(array))
