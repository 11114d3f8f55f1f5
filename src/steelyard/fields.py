"""What the fields of a file may hold: one description for each format, checked at the door.

A description is a mapping of names to rules, and a rule is a function of a value, of where it
stands, and of sizes. Sizes are letters: the first array that has 'n' rows says what n is, and all
others must agree. What breaks a rule is a ValueError that names the field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Rule: TypeAlias = Callable[[Any, str, dict[str, int]], None]
Size: TypeAlias = int | str
_LARGEST = 2**1000  # of whole numbers, which then are floating-point numbers too
_BOUND = 1e100  # what is larger counts as infinite: its square would be
_SLACK = 1e-6  # of symmetry, definiteness and rotations, relative
_TINY = 1e-290  # variances below it have lost digits


def check(content: Any, rules: Mapping[str, Rule], place: str = "") -> None:
    """Refuses content that a description does not allow.

    Args:
        content: of a file, or a part of it
        rules: one for each field
        place: what comes before the names of its fields in messages
    """
    table(rules)(content, place, {})


def table(rules: Mapping[str, Rule], *, partial: bool = False) -> Rule:
    """A mapping with these fields and no others.

    Args:
        rules: one for each field
        partial: whether fields may be missing; else only optional ones
    """

    def rule(value: Any, place: str, sizes: dict[str, int]) -> None:
        _require(isinstance(value, Mapping), place, "a table of fields", value)
        unknown = sorted(set(value) - set(rules))
        _require(
            not unknown, f"{place}.{unknown[0]}" if unknown else place, "no field of this format"
        )
        for name, inner in rules.items():
            if place:
                here = f"{place}.{name}"
            else:
                here = name
            if name in value or not partial:
                inner(value.get(name, _MISSING), here, sizes)

    return rule


def named(inner: Rule) -> Rule:
    """A mapping of any names to values of one kind."""

    def rule(value: Any, place: str, sizes: dict[str, int]) -> None:
        _require(isinstance(value, Mapping), place, "a table", value)
        for name, item in value.items():
            inner(item, f"{place}.{name}", sizes)

    return rule


def each(inner: Rule, size: Size = "") -> Rule:
    """A list of values of one kind, of this size; of any by default."""

    def rule(value: Any, place: str, sizes: dict[str, int]) -> None:
        _require(isinstance(value, list | tuple), place, "a list", value)
        _require_shape((len(value),), (size,), place, sizes)
        for k, item in enumerate(value):
            inner(item, f"{place}[{k}]", sizes)

    return rule


def row(*inner: Rule) -> Rule:
    """A list with one value of each kind."""

    def rule(value: Any, place: str, sizes: dict[str, int]) -> None:
        right = isinstance(value, list | tuple) and len(value) == len(inner)
        _require(right, place, f"a list of {len(inner)}", value)
        for k, (item, one) in enumerate(zip(value, inner, strict=True)):
            one(item, f"{place}[{k}]", sizes)

    return rule


def optional(inner: Rule) -> Rule:
    """The same, or null, or missing."""

    def rule(value: Any, place: str, sizes: dict[str, int]) -> None:
        if value is not None and value is not _MISSING:
            inner(value, place, sizes)

    return rule


def or_null(inner: Rule) -> Rule:
    """The same, or null where it is not known; not missing."""

    def rule(value: Any, place: str, sizes: dict[str, int]) -> None:
        _require(value is not _MISSING, place, "there", value)
        if value is not None:
            inner(value, place, sizes)

    return rule


def one_of(*values: Any) -> Rule:
    """One of these values."""
    return _plain(
        f"one of {', '.join(map(str, values))}", lambda value: _hashable(value) and value in values
    )


def number(low: float = -math.inf, high: float = math.inf, *, finite: bool = True) -> Rule:
    """A number from low to high.

    Args:
        low: the lowest one
        high: the highest one
        finite: whether infinity is refused, and NaN with it
    """

    def right(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            return False
        if isinstance(value, int) and abs(value) > _LARGEST:
            return False
        found = float(value)
        return (abs(found) < _BOUND or not finite) and (math.isnan(found) or low <= found <= high)

    if math.isinf(low) and math.isinf(high):
        bounds = ""
    else:
        bounds = f" from {low:g} to {high:g}"
    return _plain(f"a {'finite ' if finite else ''}number{bounds}", right)


def count(low: int = 0) -> Rule:
    """A whole number."""

    def right(value: Any) -> bool:
        return (
            isinstance(value, int | np.integer)
            and not isinstance(value, bool)
            and low <= int(value) < 2**53
        )

    return _plain(f"a whole number from {low}", right)


def size_of(letter: str) -> Rule:
    """The size that a letter stands for: how long the arrays are that have it."""

    def rule(value: Any, place: str, sizes: dict[str, int]) -> None:
        count()(value, place, sizes)
        _require_shape((value,), (letter,), place, sizes)

    return rule


def numbers(
    *shape: Size,
    finite: bool = True,
    low: float = -math.inf,
    covariance: bool = False,
    rigid: bool = False,
) -> Rule:
    """An array of numbers.

    Args:
        shape: sizes; letters stand for themselves, 'p+1' is one more than 'p'
        finite: whether infinity and NaN are refused
        low: the lowest one
        covariance: whether it must be symmetric and not negative; infinite variances are unknown
            numbers
        rigid: whether its last two axes hold homogeneous transforms
    """

    def rule(value: Any, place: str, sizes: dict[str, int]) -> None:
        array = _array(value, place)
        if array.size == 0 and isinstance(shape[0], str) and array.ndim == 1:
            array = np.empty(
                (0, *(sizes.get(str(x), 0) if isinstance(x, str) else x for x in shape[1:]))
            )
        _require_shape(array.shape, shape, place, sizes)
        _require(not finite or bool((np.abs(array) < _BOUND).all()), place, "finite")
        _require(not (array < low).any(), place, f"at least {low:g}")
        _require(
            not covariance or _is_covariance(array), place, "a covariance: symmetric, none negative"
        )
        _require(not rigid or _is_rigid(array), place, "a rotation and a translation")

    return rule


def each_or_all(size: Size, low: float = -math.inf, *, finite: bool = True) -> Rule:
    """A number for all, or one for each.

    Args:
        size: how many there are
        low: the lowest one
        finite: whether infinity and NaN are refused
    """
    many = numbers(size, finite=finite, low=low)
    one = number(low, finite=finite)

    def rule(value: Any, place: str, sizes: dict[str, int]) -> None:
        (many if isinstance(value, list | tuple | np.ndarray) else one)(value, place, sizes)

    return rule


def _plain(what: str, right: Callable[[Any], bool]) -> Rule:
    def rule(value: Any, place: str, sizes: dict[str, int]) -> None:
        _require(right(value), place, what, value)

    return rule


_MISSING = object()
TEXT = _plain("a text", lambda value: isinstance(value, str))
FLAG = _plain("true or false", lambda value: isinstance(value, bool | np.bool_))
VERDICT = table(
    {
        "ok": FLAG,
        "summary": TEXT,
        "doubts": each(table({"kind": TEXT, "words": TEXT, "blocks": FLAG})),
        "sentence": TEXT,
    }
)


_RATE = optional(number(1e-9))
PREPARATION = {
    "rate_hz": _RATE,
    "cutoff_hz": lambda value, place, sizes: (
        None if value == "auto" else _RATE(value, place, sizes)
    ),
    **{name: count(1) for name in ("order", "mean_length", "fourier_harmonics", "decimate")},
    **dict.fromkeys(("torque_cutoff_hz", "fourier_period_s", "longest_gap_s"), _RATE),
    "kinematics": one_of("measured", "commanded"),
    **{name: number(0.0) for name in ("lowest_speed", "trim_s")},
    "lag_s": optional(numbers("n")),
}
"""Fields of a saved preparation; those that are missing have their defaults."""


def anything(value: Any, place: str, sizes: dict[str, int]) -> None:
    """A rule that everything keeps."""


def require_like(value: Any, fresh: Any, place: str) -> None:
    """Refuses a part of a saved state that has not the fields and shapes of a fresh one, or holds NaN.

    What is empty in a fresh one may hold anything finite; unknown covariances of the past are
    infinite.

    Args:
        value: the part
        fresh: the same part of a state before the first sample, as its `to_dict` gives it
        place: what it is called
    """
    if isinstance(fresh, Mapping):
        check(value, dict.fromkeys(fresh, anything), place)
        for name, part in fresh.items():
            require_like(value[name], part, f"{place}.{name}")
    elif (
        isinstance(fresh, list | tuple) and len({np.shape(part) for part in fresh}) > 1
    ):  # several kinds
        row(*[anything] * len(fresh))(value, place, {})
        for k, part in enumerate(fresh):
            require_like(value[k], part, f"{place}[{k}]")
    elif isinstance(fresh, list | tuple | np.ndarray) and len(fresh):
        numbers(*np.shape(fresh), finite=bool(np.isfinite(fresh).all()))(value, place, {})
    elif isinstance(fresh, list | tuple | np.ndarray):
        each(anything)(value, place, {})
        for k, part in enumerate(_flat(value)):
            number(finite=not place.endswith("history"))(part, f"{place}[{k}]", {})
    elif isinstance(fresh, bool):
        FLAG(value, place, {})
    elif isinstance(fresh, str):
        TEXT(value, place, {})
    elif fresh is not None:
        number(finite=bool(np.isfinite(fresh)))(value, place, {})


def _flat(value: Any) -> Iterator[Any]:
    for item in value:
        if isinstance(item, list):
            yield from _flat(item)
        else:
            yield item


def _hashable(value: Any) -> bool:
    return isinstance(value, str | int | float | bool | None)


def _array(value: Any, place: str) -> Array:
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        array = np.empty(0, dtype=object)
    if array.size == 0 and array.dtype.kind != "O":
        return array.astype(float)
    flags = isinstance(value, list) and any(isinstance(x, bool) for x in _flat(value))
    _require(array.dtype.kind in "fiu" and not flags, place, "an array of numbers")
    return array.astype(float)


def _require_shape(
    found: tuple[int, ...], shape: tuple[Size, ...], place: str, sizes: dict[str, int]
) -> None:
    wanted = [_size(size, length, sizes) for size, length in zip(shape, found, strict=False)]
    right = len(found) == len(shape) and list(found) == wanted
    words = " x ".join(str(_size(size, -1, {**sizes})) for size in shape).replace("-1", "any")
    _require(right, place, f"{words} values, not {' x '.join(map(str, found)) or 'one'}")


def _size(size: Size, length: int, sizes: dict[str, int]) -> int:
    """What a size is; a letter that is not known yet is the length that was found."""
    if isinstance(size, int):
        return size
    letter, _, more = size.partition("+")
    if not letter:
        return length
    return sizes.setdefault(letter, length - int(more or 0)) + int(more or 0)


def _is_covariance(C: Array) -> bool:
    variances = np.diag(C)
    known = np.isfinite(variances)
    inner = C[np.ix_(known, known)]
    if np.isnan(variances).any() or (variances < 0).any() or not np.isfinite(inner).all():
        return False
    std = np.sqrt(np.where(variances[known] > _TINY, variances[known], 1.0))
    scaled = inner / np.outer(std, std)
    if not np.allclose(scaled, scaled.T, atol=_SLACK):
        return False
    return not known.any() or bool(np.linalg.eigvalsh(scaled).min() >= -len(scaled) * _SLACK)


def _is_rigid(T: Array) -> bool:
    R = T[..., :3, :3]
    turned = (
        np.allclose(R @ np.swapaxes(R, -1, -2), np.eye(3), atol=_SLACK)
        and (np.linalg.det(R) > 0).all()
    )
    return bool(turned and np.allclose(T[..., 3, :], [0, 0, 0, 1], atol=_SLACK))


def _require(right: bool, place: str, what: str, *found: Any) -> None:
    if not right:
        if found and found[0] is _MISSING:
            raise ValueError(f"'{place}' is missing")
        if found:
            words = f", got {str(found[0])[:60]!r}"
        else:
            words = ""
        raise ValueError(f"'{place}' must be {what}{words}")
