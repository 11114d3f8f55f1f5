"""One description for each saved value: the annotations of its class.

A `Value` is a frozen dataclass whose annotations say what each field may hold:

    @dataclass(frozen=True, eq=False)
    class Estimate(Value, error=InvalidSamples, derived={"ok": attrgetter("verdict.ok")}):
        value: Annotated[Array, Shape("p")]
        covariance: Annotated[Array, Shape("p", "p"), INFINITE, COVARIANCE]
        method: Literal["direct", "robust"]
        verdict: Verdict

Three things follow from them: the check of each new value, which files and Python callers pass
alike; its content for JSON (`to_dict`); and the value of such a content (`from_dict`). `to_arrays`
gives the same with arrays, for files and for values around it.

- numbers and arrays are finite unless INFINITE is given; `Range` says which ones are allowed
- sizes are letters, shared with the values inside: see `_kinds`
- sequences are tuples, arrays are read-only copies
- fields with a leading underscore, and those that `__init__` does not take, are not saved
- `derived` names are written for readers of the file, and must agree when they are read
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin

import numpy as np

from steelyard import _saved
from steelyard._kinds import (
    ANY_NUMBER,
    AS_TABLE,
    BARE,
    FLAG,
    INFINITE,
    ONE_LINE,
    TEXT,
    AsList,
    Bare,
    Choice,
    Either,
    EnumKind,
    Inlined,
    Kind,
    Line,
    Many,
    Named,
    Number,
    Numbers,
    Optional,
    Range,
    Refused,
    Shape,
    Size,
    Sizes,
    Time,
    TupleKind,
    expected,
    require_names,
)
from steelyard.errors import InvalidValue

_Tuple = TypeVar("_Tuple", bound=tuple[Any, ...])
Derived = Mapping[str, Callable[[Any], Any]]


class Value:
    """A frozen dataclass that is checked when it is made, written and read by its annotations.

    Keywords of its class:
        error: what a refusal raises
        derived: functions of the value that are written, too, by name
        partial: whether fields that a file lacks have their defaults
        optional: fields and derived names that older files lack; fields have their defaults
    """

    _error: ClassVar[type[ValueError]] = InvalidValue
    _derived: ClassVar[Derived] = {}
    _partial: ClassVar[bool] = False
    _optional: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(
        cls,
        *,
        error: type[ValueError] | None = None,
        derived: Derived | None = None,
        partial: bool | None = None,
        optional: tuple[str, ...] | None = None,
    ) -> None:
        super().__init_subclass__()
        if error is not None:
            cls._error = error
        if derived is not None:
            cls._derived = derived
        if partial is not None:
            cls._partial = partial
        if optional is not None:
            cls._optional = optional

    def __post_init__(self) -> None:
        """Checks every field, and makes arrays and sequences immutable."""
        sizes: Sizes = {}
        try:
            for name, kind in fields_of(type(self)).items():
                value = getattr(self, name)
                checked = kind.check(value, name, sizes)
                if checked is not value:
                    object.__setattr__(self, name, checked)
        except Refused as refused:
            raise self._error(str(refused)) from refused

    def to_dict(self) -> dict[str, Any]:
        """Everything, as texts, numbers and lists, for JSON; infinite numbers stay numbers."""
        table: dict[str, Any] = _saved.plain(self.to_arrays(), not_finite=float)
        return table

    def to_arrays(self) -> dict[str, Any]:
        """Everything, as texts, numbers and arrays: what `from_dict` reads, too."""
        content: dict[str, Any] = {}
        for name, kind in fields_of(type(self)).items():
            if isinstance(kind, _SpreadKind):
                content |= kind.write(getattr(self, name))
            else:
                content[name] = kind.write(getattr(self, name))
        for name, derive in self._derived.items():
            content[name] = derive(self)
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """The value that `to_dict` or `to_arrays` has written."""
        try:
            made: Self = _read(cls, content)
            return made
        except Refused as refused:
            raise cls._error(str(refused)) from refused


class FileValue(Value):
    """A value with a file of its own.

    Keywords of its class, beside those of `Value`:
        kind: what a file says that it holds
        version: of the content
        sealed: whether a file that was changed after it was saved is refused
    """

    _file_kind: ClassVar[str] = ""
    _version: ClassVar[int] = 1
    _sealed: ClassVar[bool] = False

    def __init_subclass__(
        cls,
        *,
        kind: str | None = None,
        version: int | None = None,
        sealed: bool | None = None,
        error: type[ValueError] | None = None,
        derived: Derived | None = None,
        optional: tuple[str, ...] | None = None,
    ) -> None:
        super().__init_subclass__(error=error, derived=derived, optional=optional)
        if kind is not None:
            cls._file_kind = kind
        if version is not None:
            cls._version = version
        if sealed is not None:
            cls._sealed = sealed

    def save(self, path: str | Path) -> None:
        """Writes everything to a JSON file that `load` reads."""
        _saved.save(
            self.to_arrays(), self._file_kind, path, version=self._version, sealed=self._sealed
        )

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The value in a JSON file that `save` wrote."""
        content = _saved.load(path, cls._file_kind, version=cls._version, sealed=cls._sealed)
        with _saved.reading(path, cls._file_kind):
            return cls.from_dict(content)


def checked(value: Any, annotation: Any, name: str, error: type[ValueError]) -> Any:
    """An argument in the form that an annotation describes; arrays are read-only copies.

    Args:
        annotation: as that of a field
        name: of the argument, for messages
        error: what a refusal raises
    """
    try:
        return _cached_kind(annotation).check(value, name, {})
    except Refused as refused:
        raise error(str(refused)) from refused


def to_table(value: Any) -> dict[str, Any]:
    """The fields of a NamedTuple by name, as texts, numbers and lists."""
    content = _cached_kind(Annotated[type(value), AS_TABLE]).write(value)
    table: dict[str, Any] = _saved.plain(content, not_finite=float)
    return table


def from_table(
    cls: type[_Tuple], content: Any, name: str, sizes: Mapping[str, int] | None = None
) -> _Tuple:
    """The NamedTuple that `to_table` has written.

    Args:
        cls: of the tuple
        content: what was written
        name: of the tuple, for messages
        sizes: that letters must have
    """
    kind = _cached_kind(Annotated[cls, AS_TABLE])
    try:
        made: _Tuple = kind.check(kind.read(content, name), name, dict(sizes or {}))
        return made
    except Refused as refused:
        raise InvalidValue(str(refused)) from refused


# --- kinds of values inside others


@dataclasses.dataclass(frozen=True)
class _Nested(Kind):
    """Another value, or any class with `to_dict` and `from_dict`."""

    cls: type[Any]
    size: Size | None

    def check(self, value: Any, place: str, sizes: Sizes) -> Any:
        if not isinstance(value, self.cls):
            raise expected(f"a value of {self.cls.__name__}", place, value)
        if self.size is not None:
            Shape(self.size.letter).agree((self.size.of(value),), place, sizes)
        if isinstance(value, Value):
            _collect_sizes(value, place, sizes)
        return value

    def write(self, value: Any) -> Any:
        if isinstance(value, Value):
            return value.to_arrays()
        return value.to_dict()

    def read(self, content: Any, place: str) -> Any:
        if not issubclass(self.cls, Value):
            return _made(lambda: self.cls.from_dict(content), place)
        try:
            return _read(self.cls, content)
        except Refused as refused:
            raise refused.within(place) from refused


@dataclasses.dataclass(frozen=True)
class _SpreadKind(Kind):
    """A value that is written as several fields of the value around it."""

    inner: Kind
    spread: Inlined

    def check(self, value: Any, place: str, sizes: Sizes) -> Any:
        return self.inner.check(value, place, sizes)

    def write(self, value: Any) -> dict[str, Any]:
        return {name: getattr(value, of) for name, of in self.spread.names.items()}

    def read(self, content: Any, place: str) -> Any:
        given = {of: content[name] for name, of in self.spread.names.items()}
        try:
            return _made(lambda: self.spread.make(**given), "")
        except Refused as refused:
            names = {of: name for name, of in self.spread.names.items()}
            raise Refused(names.get(refused.place, place), refused.problem) from refused


def _collect_sizes(value: Value, place: str, sizes: Sizes) -> None:
    """Lets the sizes of a value inside another agree with those of the outer one."""
    for name, kind in fields_of(type(value)).items():
        if isinstance(kind, Optional):
            kind = kind.inner
        held = getattr(value, name)
        if isinstance(kind, Numbers | Many) and kind.shape is not None and held is not None:
            kind.shape.agree(np.shape(held)[: len(kind.shape.sizes)], f"{place}.{name}", sizes)
        elif isinstance(kind, _Nested) and held is not None:
            kind.check(held, f"{place}.{name}", sizes)


# --- reading


def _read(cls: Any, content: Any) -> Any:
    """The value of a content; raises `Refused` with the place inside the content."""
    kinds = fields_of(cls)
    known, required = _names_in_file(cls)
    require_names(content, known, required, "")
    given = {}
    for name, kind in kinds.items():
        if isinstance(kind, _SpreadKind):
            given[name] = kind.read(content, name)
        elif name in content:
            given[name] = kind.read(content[name], name)
    value = _made(lambda: cls(**given), "")
    for name, derive in cls._derived.items():
        if name in content:
            require_same(_saved.plain(derive(value)), _saved.plain(content[name]), name)
    return value


@cache
def _names_in_file(cls: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that a content may have, and those that it must have."""
    names: list[str] = []
    for name, kind in fields_of(cls).items():
        names += kind.spread.names if isinstance(kind, _SpreadKind) else [name]
    known = tuple(dict.fromkeys([*names, *cls._derived]))
    if not cls._partial:
        return known, tuple(name for name in known if name not in cls._optional)
    missing = dataclasses.MISSING
    defaults = {
        field.name
        for field in dataclasses.fields(cls)
        if field.default is not missing or field.default_factory is not missing
    }
    return known, tuple(name for name in known if name not in defaults)


def _made(make: Callable[[], Any], place: str) -> Any:
    """What a class or function makes; what it refuses is refused at a place."""
    try:
        return make()
    except Refused as refused:
        raise refused.within(place) from refused
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error.__cause__, Refused):
            raise error.__cause__.within(place) from error
        raise Refused(place, f"is refused: {error}" if place else str(error)) from error


def require_same(value: Any, content: Any, place: str) -> None:
    """Refuses a content that says something else than a value does.

    Args:
        value: as it would be written, plain
        content: what a file says, plain
        place: the name of the content, for messages
    """
    if isinstance(value, dict) and isinstance(content, dict):
        for name in {**value, **content}:
            require_same(value.get(name), content.get(name), f"{place}.{name}")
    elif isinstance(value, list) and isinstance(content, list) and len(value) == len(content):
        for k, (one, other) in enumerate(zip(value, content, strict=True)):
            if one != other:
                require_same(one, other, f"{place}[{k}]")
    elif not _same(value, content):
        raise Refused(
            place, f"says {str(content)[:60]}, the rest of the file gives {str(value)[:60]}"
        )


def _same(value: Any, content: Any) -> bool:
    if type(value) is float and type(content) in (float, int):
        return math.isclose(value, content, rel_tol=1e-9, abs_tol=1e-12)
    return type(value) is type(content) and bool(value == content)


# --- kinds of annotations


@cache
def _cached_kind(annotation: Any) -> Kind:
    return kind_of(annotation)


def fields_of(cls: Any) -> dict[str, Kind]:
    """The kind of each field that is saved, by name."""
    return _cached_fields(cls)


@cache
def _cached_fields(cls: Any) -> dict[str, Kind]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return {
        field.name: kind_of(hints[field.name])
        for field in dataclasses.fields(cls)
        if field.init and not field.name.startswith("_")
    }


def kind_of(annotation: Any) -> Kind:
    """The kind that an annotation describes."""
    if get_origin(annotation) is Annotated:
        base, *markers = get_args(annotation)
    else:
        base = annotation
        markers = []
    spread = next((marker for marker in markers if isinstance(marker, Inlined)), None)
    if spread is not None:
        rest = tuple(marker for marker in markers if marker is not spread)
        return _SpreadKind(_Nested(base, _marker(rest, Size)), spread)
    if get_origin(base) in (typing.Union, types.UnionType):
        return _union(get_args(base), tuple(markers))
    return _kind(base, tuple(markers))


def _union(members: tuple[Any, ...], markers: tuple[Any, ...]) -> Kind:
    inner = [
        kind_of(Annotated[member, *markers]) if markers else kind_of(member)
        for member in members
        if member is not types.NoneType
    ]
    kind = inner[0] if len(inner) == 1 else Either(tuple(inner))
    return Optional(kind) if types.NoneType in members else kind


def _kind(base: Any, markers: tuple[Any, ...]) -> Kind:
    origin = get_origin(base)
    shape = _marker(markers, Shape)
    allowed = _marker(markers, Range) or ANY_NUMBER
    if base is Any:
        return Kind()
    if base is str and ONE_LINE in markers:
        return Line()
    if base in (str, bool):
        return TEXT if base is str else FLAG
    if base is datetime:
        return Time()
    if base in (int, float):
        return Number(base is int, INFINITE not in markers, allowed)
    if origin is Literal:
        return Choice(get_args(base))
    if origin is np.ndarray:
        dtype = np.dtype(get_args(get_args(base)[1])[0])
        return Numbers(dtype, shape, INFINITE not in markers, allowed, markers)
    if origin is tuple and Ellipsis not in get_args(base):
        return TupleKind(tuple(map(kind_of, get_args(base))), tuple)
    if origin in (tuple, Sequence):
        return Many(kind_of(get_args(base)[0]), shape)
    if origin in (dict, Mapping):
        keys, values = get_args(base)
        return Named(kind_of(values), kind_of(keys))
    return _class_kind(base, markers)


def _class_kind(cls: Any, markers: tuple[Any, ...]) -> Kind:
    if isinstance(cls, type) and issubclass(cls, Enum):
        return EnumKind(cls)
    made = get_origin(cls) or cls
    if isinstance(made, type) and issubclass(made, tuple) and hasattr(made, "_fields"):
        hints = typing.get_type_hints(made, include_extras=True)
        given = dict(zip(getattr(made, "__parameters__", ()), get_args(cls), strict=True))
        make = typing.cast(Any, made)._make
        kinds = tuple(kind_of(given.get(hints[name], hints[name])) for name in made._fields)
        if BARE in markers:
            return Bare(kinds[0], made)
        return TupleKind(kinds, make, made._fields, AS_TABLE in markers)
    if dataclasses.is_dataclass(cls) and not hasattr(cls, "to_dict"):
        return _dataclass_kind(cls, _marker(markers, AsList))
    if isinstance(cls, type):
        return _Nested(cls, _marker(markers, Size))
    raise TypeError(f"no kind of field is known for the annotation {cls}")


def _dataclass_kind(cls: Any, listed: AsList | None) -> Kind:
    """The kind of a dataclass that is not a `Value`, and is checked only when it is read."""
    kinds = fields_of(cls)
    names = tuple(kinds) if listed is None else listed.names
    return TupleKind(
        tuple(kinds[name] for name in names),
        lambda items: cls(**dict(zip(names, items, strict=True))),
        names,
        listed is None,
        lambda value: tuple(getattr(value, name) for name in names),
    )


def _marker(markers: tuple[Any, ...], kind: type[Any]) -> Any:
    return next((marker for marker in markers if isinstance(marker, kind)), None)
