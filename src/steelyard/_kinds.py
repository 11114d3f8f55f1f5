"""What a field of a value may hold: one class for each kind, and the markers of annotations.

Each kind checks a value (and returns it in its one form: arrays read-only, sequences as tuples),
writes it for JSON and reads it back. `_codec` finds the kind of a field from its annotation.

Sizes are letters: the first array with n rows says what 'n' is, and all others must agree.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, TypeAlias
from unicodedata import category

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import SteelyardError

Sizes: TypeAlias = dict[str, int]
_LARGEST_INTEGER = 2**53  # whole numbers above it are not exact as floating-point numbers
_LARGEST = 1e100  # larger numbers count as infinite: their squares would be
_TOLERANCE = 1e-6  # of definiteness and rotations, relative
_SYMMETRY_TOLERANCE = 1e-9  # relative
_SMALLEST_VARIANCE = 1e-290  # smaller ones have lost digits
_SIZE = re.compile(r"(?P<factor>\d*)(?P<letter>[A-Za-z_]+|\*)(\+(?P<more>\d+))?")
_NOT_IN_A_LINE = ("Cc", "Cs", "Zl", "Zp")  # Unicode's control characters and line ends
_SHOWN_LETTERS = 60  # of a refused value in a message
_SHOWN_NUMBERS = 20  # of a refused array in a message


class Refused(ValueError):
    """A field that does not hold what its description allows.

    Attributes:
        place: the path of the field; empty for the value itself
        problem: what is wrong with it
    """

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        self.problem = problem
        super().__init__(f"'{place}' {problem}" if place else problem)

    def within(self, place: str) -> Refused:
        """The same refusal as a user of the outer value sees it."""
        if not self.place:
            return Refused(place, self.problem)
        dot = "" if self.place.startswith("[") or not place else "."
        return Refused(f"{place}{dot}{self.place}", self.problem)


def expected(what: str, place: str, found: Any) -> Refused:
    """The refusal of a value that is something else than what is expected."""
    text = " ".join(repr(found).split())
    if len(text) > _SHOWN_LETTERS:
        text = f"{text[:_SHOWN_LETTERS]}..."
    return Refused(place, f"must be {what}, got {text}")


# --- markers of annotations


@dataclass(frozen=True)
class Shape:
    """The shape of an array, or the length of a sequence.

    Attributes:
        sizes: numbers, or letters; '4n+1' is one more than four times 'n', '*' is any size
    """

    sizes: tuple[int | str, ...]

    def __init__(self, *sizes: int | str) -> None:
        object.__setattr__(self, "sizes", sizes)

    def agree(self, found: tuple[int, ...], place: str, sizes: Sizes) -> None:
        """Raises an error if a shape differs; letters that are not known yet become known."""
        right = len(found) == len(self.sizes)
        if right:
            for size, length in zip(self.sizes, found, strict=True):
                right = right and _size(size, length, sizes) == length
        if not right:
            raise Refused(place, f"must have shape {self._words(sizes)}, got {found}")

    def _words(self, sizes: Sizes) -> str:
        letters = {_parsed(size)[1] for size in self.sizes if isinstance(size, str)} & set(sizes)
        known = ", ".join(f"{letter} = {sizes[letter]}" for letter in sorted(letters))
        comma = "," if len(self.sizes) == 1 else ""
        shape = f"({', '.join(map(str, self.sizes))}{comma})"
        return f"{shape} with {known}" if known else shape


@dataclass(frozen=True)
class Size:
    """A letter whose size a value of another kind has.

    Attributes:
        letter: of the size
        of: gives the size of the value
    """

    letter: str
    of: Callable[[Any], int] = len


@dataclass(frozen=True)
class Range:
    """The numbers that are allowed.

    Attributes:
        low: the lowest one
        high: the highest one
        above: whether the lowest one itself is refused
    """

    low: float = -math.inf
    high: float = math.inf
    above: bool = False

    def broken_by(self, array: Any) -> bool:
        """Whether a number, or one of an array, is outside; NaN is not above any number."""
        if self.above:
            too_low = not np.all(array > self.low)
        else:
            too_low = bool(np.any(array < self.low))
        return too_low or bool(np.any(array > self.high))

    @property
    def words(self) -> str:
        """The range in words; empty where every number is allowed."""
        if self.low == -math.inf and self.high == math.inf:
            return ""
        if self.above and self.high < math.inf:
            return f" above {self.low:g}, up to {self.high:g}"
        if self.above:
            return f" above {self.low:g}"
        if self.high == math.inf:
            return f" of at least {self.low:g}"
        return f" from {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Inlined:
    """A value that a file holds as several fields of the value around it.

    Attributes:
        make: makes the value of its attributes
        names: attribute of the value for each name in the file
    """

    make: Callable[..., Any]
    names: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True)
class AsList:
    """A dataclass that is written as a list of some of its fields; others have their defaults.

    Attributes:
        names: of the fields, in the order of the list
    """

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)


@dataclass(frozen=True)
class _Marker:
    name: str


ANY_NUMBER = Range()
NOT_NEGATIVE = Range(0.0)
POSITIVE = Range(0.0, above=True)
INFINITE = _Marker("infinite numbers and NaN are allowed")
SYMMETRIC = _Marker("a symmetric matrix")
COVARIANCE = _Marker("symmetric, positive semidefinite; infinite variances are unknown numbers")
AS_TABLE = _Marker("a NamedTuple that is written as a table of its fields, not as a list")
BARE = _Marker("a NamedTuple of one field that is written as that field")
ONE_LINE = _Marker("a text without line ends and other control characters")
RIGID = _Marker("rotations and translations in the last two axes")


# --- kinds


class Kind:
    """What a field may hold; this one holds anything."""

    def check(self, value: Any, place: str, sizes: Sizes) -> Any:
        """The value in its one form; raises `Refused` if it is not of this kind."""
        return value

    def write(self, value: Any) -> Any:
        """The value as texts, numbers, arrays, lists and mappings."""
        return value

    def read(self, content: Any, place: str) -> Any:
        """What `check` accepts, made of what `write` gave; values inside are made and checked."""
        return content


@dataclass(frozen=True)
class Simple(Kind):
    """Texts and flags.

    Attributes:
        types: of Python
        to: converts to the one form
        words: for messages
    """

    types: tuple[type, ...]
    to: Callable[[Any], Any]
    words: str

    def check(self, value: Any, place: str, sizes: Sizes) -> Any:
        """The text or the flag."""
        if not isinstance(value, self.types):
            raise expected(self.words, place, value)
        return self.to(value)


TEXT = Simple((str,), lambda text: text, "a text")


@dataclass(frozen=True)
class Line(Kind):
    """A text of one line, which terminals and tables show as it is."""

    def check(self, value: Any, place: str, sizes: Sizes) -> str:
        """The text."""
        text: str = TEXT.check(value, place, sizes)
        if any(category(letter) in _NOT_IN_A_LINE for letter in text):
            raise expected("a text without control characters", place, value)
        return text


FLAG = Simple((bool, np.bool_), bool, "true or false")


@dataclass(frozen=True)
class Time(Kind):
    """A date with its time of day, written as a text (ISO 8601)."""

    def check(self, value: Any, place: str, sizes: Sizes) -> datetime:
        """The time."""
        if not isinstance(value, datetime):
            raise expected("a date with its time of day", place, value)
        return value

    def write(self, value: Any) -> str:
        """The text."""
        return str(value.isoformat())

    def read(self, content: Any, place: str) -> Any:
        """The time, or what is not one."""
        try:
            return datetime.fromisoformat(content)
        except (TypeError, ValueError):
            return content


@dataclass(frozen=True)
class Choice(Kind):
    """One of several values."""

    values: tuple[Any, ...]

    def check(self, value: Any, place: str, sizes: Sizes) -> Any:
        """One of the values."""
        for allowed in self.values:
            if type(value) is type(allowed) and value == allowed:
                return value
        known = [repr(allowed) for allowed in self.values]
        if len(known) > 2:
            words = f"one of {', '.join(known)}"
        else:
            words = " or ".join(known)
        raise expected(words, place, value)


@dataclass(frozen=True)
class EnumKind(Kind):
    """A member of an enumeration, written as its value."""

    members: type[Enum]

    def check(self, value: Any, place: str, sizes: Sizes) -> Any:
        """The member."""
        try:
            return self.members(value)
        except ValueError as error:
            known = ", ".join(str(member.value) for member in self.members)
            raise expected(f"one of {known}", place, value) from error

    def write(self, value: Any) -> Any:
        """The member's value."""
        return value.value


@dataclass(frozen=True)
class Number(Kind):
    """A number.

    Attributes:
        whole: whether it must be a whole number
        finite: whether infinity and NaN are refused
        range: of the numbers that are allowed
    """

    whole: bool
    finite: bool
    range: Range

    def check(self, value: Any, place: str, sizes: Sizes) -> float | int:
        """The number as float or int."""
        if self.whole:
            right = isinstance(value, int | np.integer) and abs(int(value)) < _LARGEST_INTEGER
            words = "a whole number"
        else:
            right = isinstance(value, float | int | np.floating | np.integer)
            right = right and not (isinstance(value, int) and abs(value) > _LARGEST_INTEGER**2)
            right = right and not (self.finite and not abs(value) < _LARGEST)
            words = "a finite number" if self.finite else "a number"
        if not right or isinstance(value, bool) or self.range.broken_by(value):
            raise expected(f"{words}{self.range.words}", place, value)
        return int(value) if self.whole else float(value)


@dataclass(frozen=True)
class Numbers(Kind):
    """An array of numbers.

    Attributes:
        dtype: of the array
        shape: None for any
        finite: whether infinity and NaN are refused
        range: of the numbers that are allowed
        properties: markers of what the array must be
    """

    dtype: np.dtype[Any]
    shape: Shape | None
    finite: bool
    range: Range
    properties: tuple[_Marker, ...]

    def check(self, value: Any, place: str, sizes: Sizes) -> Any:
        """A read-only copy; the array itself if it cannot be changed."""
        array = self._array(value, place, sizes)
        if self.shape is not None:
            self.shape.agree(array.shape, place, sizes)
        if self.finite and array.dtype.kind == "f" and not (np.abs(array) < _LARGEST).all():
            raise Refused(place, f"must be finite, got {_shown(array)}")
        if self.range is not ANY_NUMBER and self.range.broken_by(array):
            raise Refused(place, f"must be numbers{self.range.words}, got {_shown(array)}")
        if SYMMETRIC in self.properties:
            array = _symmetric(array, place)
        if COVARIANCE in self.properties and not is_covariance(array):
            raise Refused(
                place,
                "must be a covariance: symmetric, without negative variances"
                f" in any direction, got {_shown(array)}",
            )
        if RIGID in self.properties and not is_rigid(array):
            raise Refused(place, f"must be a rotation and a translation, got {_shown(array)}")
        array.setflags(write=False)
        return array

    def _array(self, value: Any, place: str, sizes: Sizes) -> Any:
        if isinstance(value, np.ndarray) and value.dtype == self.dtype and _is_constant(value):
            return value
        if self.dtype.kind == "b" and np.asarray(value).dtype.kind == "b":
            found = np.asarray(value)
        else:
            found = _numeric(value, place)
        if self.dtype.kind in "ib" and not _is_exact(found, self.dtype):
            raise Refused(place, f"must be whole numbers, got {_shown(found)}")
        array = np.array(found, dtype=self.dtype)
        if array.size == 0 and array.ndim == 1 and self.shape and len(self.shape.sizes) > 1:
            array = array.reshape((0, *(_size(x, 0, dict(sizes)) for x in self.shape.sizes[1:])))
        return array


@dataclass(frozen=True)
class Optional(Kind):
    """A value of another kind, or None."""

    inner: Kind

    def check(self, value: Any, place: str, sizes: Sizes) -> Any:
        """None, or the value."""
        return None if value is None else self.inner.check(value, place, sizes)

    def write(self, value: Any) -> Any:
        """None, or what the other kind writes."""
        return None if value is None else self.inner.write(value)

    def read(self, content: Any, place: str) -> Any:
        """None, or what the other kind reads."""
        return None if content is None else self.inner.read(content, place)


@dataclass(frozen=True)
class Either(Kind):
    """A value of one of several kinds, none of which holds others."""

    kinds: tuple[Kind, ...]

    def check(self, value: Any, place: str, sizes: Sizes) -> Any:
        """The value in the form of the first kind that accepts it."""
        problems = []
        for kind in self.kinds:
            try:
                return kind.check(value, place, sizes)
            except Refused as refused:
                problems.append(refused.problem)
        wanted = [problem.partition(", got ")[0] for problem in problems]
        words = " or ".join(wanted).replace("must be ", "").replace("must have ", "an array with ")
        raise expected(words, place, value)


@dataclass(frozen=True)
class Many(Kind):
    """A sequence of values of one kind, kept as a tuple; members of an enumeration occur once."""

    inner: Kind
    shape: Shape | None

    def check(self, value: Any, place: str, sizes: Sizes) -> tuple[Any, ...]:
        """The tuple."""
        items = _items(value, place)
        if self.shape is not None:
            self.shape.agree((len(items),), place, sizes)
        found = tuple(self.inner.check(x, f"{place}[{k}]", sizes) for k, x in enumerate(items))
        if isinstance(self.inner, EnumKind):
            twice = next((x for x in found if found.count(x) > 1), None)
            if twice is not None:
                raise Refused(place, f"names {twice} twice")
        return found

    def write(self, value: Any) -> list[Any]:
        """A list."""
        return [self.inner.write(item) for item in value]

    def read(self, content: Any, place: str) -> list[Any]:
        """The values inside."""
        items = _items(content, place)
        return [self.inner.read(item, f"{place}[{k}]") for k, item in enumerate(items)]


@dataclass(frozen=True)
class TupleKind(Kind):
    """A tuple with one value of each kind.

    Attributes:
        kinds: of the values
        make: makes the tuple of its values: a NamedTuple, or `tuple`
        names: of the values of a NamedTuple
        as_table: whether it is written as a table of its fields, not as a list
        items: gives the values of a dataclass; None for tuples
    """

    kinds: tuple[Kind, ...]
    make: Callable[[list[Any]], Any]
    names: tuple[str, ...] = ()
    as_table: bool = False
    items: Callable[[Any], tuple[Any, ...]] | None = None

    def check(self, value: Any, place: str, sizes: Sizes) -> Any:
        """The tuple."""
        if self.items is not None and not isinstance(value, list):
            value = self.items(value)
        rows = self._rows(value, place)
        return self.make([kind.check(item, at, sizes) for kind, item, at in rows])

    def write(self, value: Any) -> Any:
        """A list, or a table."""
        if self.items is not None:
            value = self.items(value)
        items = [kind.write(item) for kind, item in zip(self.kinds, value, strict=True)]
        if self.as_table:
            return dict(zip(self.names, items, strict=True))
        return items

    def read(self, content: Any, place: str) -> list[Any]:
        """The values inside."""
        if self.as_table:
            require_names(content, self.names, self.names, place)
            content = [content[name] for name in self.names]
        return [kind.read(item, at) for kind, item, at in self._rows(content, place)]

    def _rows(self, value: Any, place: str) -> Iterator[tuple[Kind, Any, str]]:
        items = _items(value, place)
        if len(items) != len(self.kinds):
            raise Refused(place, f"must be a list of {len(self.kinds)}, got {len(items)}")
        for k, (kind, item) in enumerate(zip(self.kinds, items, strict=True)):
            yield kind, item, joined(place, self.names[k]) if self.names else f"{place}[{k}]"


@dataclass(frozen=True)
class Bare(Kind):
    """A NamedTuple of one field, written as that field.

    Attributes:
        inner: the kind of the field
        make: makes the tuple of the field
    """

    inner: Kind
    make: Callable[[Any], Any]

    def check(self, value: Any, place: str, sizes: Sizes) -> Any:
        """The tuple."""
        if isinstance(value, tuple):
            (value,) = value
        return self.make(self.inner.check(value, place, sizes))

    def write(self, value: Any) -> Any:
        """The field."""
        return self.inner.write(value[0])

    def read(self, content: Any, place: str) -> Any:
        """The field."""
        return self.inner.read(content, place)


@dataclass(frozen=True)
class Named(Kind):
    """A mapping of names to values of one kind."""

    inner: Kind
    keys: Kind = TEXT

    def check(self, value: Any, place: str, sizes: Sizes) -> dict[str, Any]:
        """The mapping."""
        if not isinstance(value, Mapping):
            raise expected("a table", place, value)
        return {
            self.keys.check(name, place, sizes): self.inner.check(item, f"{place}.{name}", sizes)
            for name, item in value.items()
        }

    def write(self, value: Any) -> dict[str, Any]:
        """A mapping."""
        return {name: self.inner.write(item) for name, item in value.items()}

    def read(self, content: Any, place: str) -> dict[str, Any]:
        """The values inside."""
        if not isinstance(content, Mapping):
            raise expected("a table", place, content)
        return {name: self.inner.read(x, f"{place}.{name}") for name, x in content.items()}


# --- properties of arrays


def is_covariance(C: Array) -> bool:
    """Whether a matrix C, (n, n), is a covariance; infinite variances are unknown numbers."""
    variances = np.diag(C)
    known = np.isfinite(variances)
    inner = C[np.ix_(known, known)]
    if np.isnan(variances).any() or (variances < 0).any() or not np.isfinite(inner).all():
        return False
    std = np.sqrt(np.where(variances[known] > _SMALLEST_VARIANCE, variances[known], 1.0))
    scaled = inner / np.outer(std, std)
    if not np.allclose(scaled, scaled.T, atol=_TOLERANCE):
        return False
    return not known.any() or bool(np.linalg.eigvalsh(scaled).min() >= -len(scaled) * _TOLERANCE)


def is_rigid(T: Array) -> bool:
    """Whether homogeneous transforms T, (..., 4, 4), are rotations and translations."""
    R = T[..., :3, :3]
    orthonormal = np.allclose(R @ np.swapaxes(R, -1, -2), np.eye(3), atol=_TOLERANCE)
    right_handed = bool((np.linalg.det(R) > 0).all())
    last_row = np.allclose(T[..., 3, :], [0, 0, 0, 1], atol=_TOLERANCE)
    return bool(orthonormal and right_handed and last_row)


def _symmetric(matrix: Array, place: str) -> Array:
    """The matrix without the rounding by which it is not symmetric."""
    other = matrix.T
    largest = float(np.abs(matrix).max(initial=0.0))
    if (np.abs(matrix - other) > _SYMMETRY_TOLERANCE * largest + 1e-12).any():
        raise Refused(place, f"must be symmetric, got {_shown(matrix)}")
    return np.asarray((matrix + other) / 2)


# --- helpers


def _size(size: int | str, length: int, sizes: Sizes) -> int:
    """What a size is; a letter that is not known yet is the length that was found."""
    if isinstance(size, int):
        return size
    factor, letter, more = _parsed(size)
    if letter == "*":
        return length
    return factor * sizes.setdefault(letter, (length - more) // factor) + more


@cache
def _parsed(size: str) -> tuple[int, str, int]:
    """The factor, the letter and the rest of a size such as '4n+1'."""
    found = _SIZE.fullmatch(size)
    if found is None:
        raise ValueError(f"'{size}' is no size")
    return int(found["factor"] or 1), found["letter"], int(found["more"] or 0)


def joined(place: str, name: str) -> str:
    """The path of a field inside a place."""
    return f"{place}.{name}" if place else name


def require_number(
    value: float, allowed: Range, argument: str, error: type[SteelyardError]
) -> None:
    """Refuses an argument that is not finite, or outside of a range.

    Args:
        value: of the argument
        allowed: its range
        argument: its name
        error: what is raised
    """
    if not abs(value) < math.inf or allowed.broken_by(value):
        raise error(f"`{argument}` must be a number{allowed.words}, got {str(value)[:20]}")


def require_names(
    content: Any, known: tuple[str, ...], required: tuple[str, ...], place: str
) -> None:
    """Refuses what is not a table with these names.

    Args:
        content: of a file
        known: the names that are allowed
        required: the names that must not be missing
        place: the path of the table
    """
    if not isinstance(content, Mapping):
        raise expected("a table of fields", place, content)
    for name in content:
        if name not in known:
            fields = ", ".join(known)
            raise Refused(joined(place, str(name)), f"is not a field; the fields are {fields}")
    for name in required:
        if name not in content:
            raise Refused(joined(place, name), "is missing")


def _items(value: Any, place: str) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return list(value.tolist())
    raise expected("a list", place, value)


def _numeric(value: Any, place: str) -> Any:
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        array = np.empty(0, dtype=object)
    if array.size == 0 and array.dtype.kind != "O":
        return array.astype(float)
    has_flags = isinstance(value, list | tuple) and any(isinstance(x, bool) for x in _flat(value))
    if array.dtype.kind not in "fiu" or has_flags:
        raise expected("an array of numbers", place, value)
    return array


def _flat(value: Any) -> Iterator[Any]:
    for item in value:
        if isinstance(item, list | tuple):
            yield from _flat(item)
        else:
            yield item


def _is_exact(array: Any, dtype: np.dtype[Any]) -> bool:
    """Whether an array has the same numbers in another type."""
    return bool(np.isfinite(array).all()) and np.array_equal(array, array.astype(dtype))


def _is_constant(array: Any) -> bool:
    """Whether nothing can write to the memory of an array."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None


def _shown(array: Any) -> str:
    if array.size < _SHOWN_NUMBERS:
        return " ".join(str(array).split())
    return f"an array of the shape {array.shape}"
