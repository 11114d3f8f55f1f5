"""Types of arrays, and read-only copies for values that must not change."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]

_MAX_GRAVITY = 30.0  # [m/s^2]; that of Jupiter is 25
_MAX_PRINTED_NUMBERS = 20  # of an array in a message


def read_only(values: ArrayLike) -> Array:
    """A read-only copy as floating-point numbers.

    Args:
        values: of any shape
    """
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array


def finite(values: ArrayLike, shape: tuple[int, ...], name: str, error: type[Exception]) -> Array:
    """A read-only copy of finite numbers with a given shape.

    Args:
        values: to copy
        shape: that they must have
        name: of the values, for messages
        error: raised where the shape differs or a number is not finite
    """
    array = read_only(values)
    if array.shape == shape and np.isfinite(array).all():
        return array
    wanted = str(shape)
    if shape == (3,):
        wanted = "three"
    elif len(shape) == 1:
        wanted = str(shape[0])
    got = f"shape {array.shape}"
    if array.size < _MAX_PRINTED_NUMBERS:
        got = str(array)
    raise error(f"{name} must be {wanted} finite numbers, got {got}")


def gravity_vector(values: ArrayLike, error: type[Exception]) -> Array:
    """A read-only copy of a gravity, (3,) [m/s^2], no larger than on any planet with a surface.

    Args:
        values: to copy
        error: raised where they are no gravity
    """
    array = finite(values, (3,), "gravity_base", error)
    if np.linalg.norm(array) > _MAX_GRAVITY:
        raise error(
            f"gravity_base must be at most {_MAX_GRAVITY:g} m/s^2 in size, got {array}: give it in"
            " m/s^2, say (0, 0, -9.81)"
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
