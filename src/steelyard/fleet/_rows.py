"""Rows of the tables of a fleet as dataclasses, whose annotations define the columns.

Values that come from a store or leave for a file pass through `read_rows` and `to_table`. The rows
of a store check themselves by their annotations, as saved models do, and carry a digest of their
numbers.
"""

from __future__ import annotations

import hashlib
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import numpy as np

from steelyard._arrays import Array
from steelyard._codec import Value
from steelyard._kinds import NOT_NEGATIVE, Range, Shape
from steelyard.errors import UnreadableFile
from steelyard.payload._plausibility import CARRIED_MASSES

if TYPE_CHECKING:
    import pyarrow as pa

LOADS = Range(0.0, CARRIED_MASSES.high)
"""Configured loads; 0 is empty, [kg]."""

TIMES = Range(0.0, 1e8)
"""Times since the start of a log, [s]; the largest are three years."""

TEMPERATURES = Range(-273.15, 1000.0)
"""Of an arm, [degrees Celsius]."""

_TimeInLog: TypeAlias = Annotated[float, TIMES]
_Degrees: TypeAlias = Annotated[float, TEMPERATURES]
_Torque: TypeAlias = Annotated[float, Range(0.0, 1e6)]  # [Nm], as recordings have
_Widening: TypeAlias = Annotated[float, Range(1.0 - 1e-9)]  # a mean of numbers of at least 1
Row = TypeVar("Row")
_ROUNDING = 1e-9  # of a residual, over the torque


def _no_numbers() -> Array:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class LogRow(Value, error=UnreadableFile):
    """One log, or one work cycle of a log, in the store.

    Attributes:
        robot: name of the arm
        key: identifies the log in the store
        file: of the log, as the catalogue gives it
        reduction: key of the reduction that made the factor
        start_s: start of the work cycle in the log, [s]; None for the start of the log
        end_s: end of the work cycle, [s]; None for the end of the log
        time: when the log began; None where it is unknown
        tool: of the arm; empty where the catalogue gives none
        load: configured payload beyond the tool, [kg]; None where the catalogue gives none
        ok: whether the log is usable; what follows `reason` is empty where it is not
        reason: why it is unusable
        content: digest of the file (sha256)
        duration_s: of its samples, [s]
        rate_hz: of its samples
        temperature: mean of each joint, or one for all, [degrees Celsius]; empty where unknown
        warnings: of the preparation
        from_currents: whether torques are motor currents times gains
        rows: number of rows of each joint, (n,)
        noise: standard deviation of the residuals of the log's own fit, (n,) [Nm]
        widening: factor on variances by correlation in time, (n,)
        torque: root mean square of the torques, (n,) [Nm]
        factor: upper triangles of [Y tau], joint after joint; empty where it was not read
        digest: of the numbers from `rows` to `factor`; empty before the row was stored
        written: when the row was stored; None before that
    """

    robot: str
    key: str
    file: str
    reduction: str
    start_s: _TimeInLog | None = None
    end_s: _TimeInLog | None = None
    time: datetime | None = None
    tool: str = ""
    load: Annotated[float, LOADS] | None = None
    ok: bool = False
    reason: str = ""
    content: str = ""
    duration_s: _TimeInLog = 0.0
    rate_hz: Annotated[float, Range(0.0, 1e5)] = 0.0
    temperature: tuple[_Degrees, ...] = ()
    warnings: tuple[str, ...] = ()
    from_currents: bool = False
    rows: Annotated[tuple[Annotated[int, NOT_NEGATIVE], ...], Shape("n")] = ()
    noise: Annotated[tuple[_Torque, ...], Shape("n")] = ()
    widening: Annotated[tuple[_Widening, ...], Shape("n")] = ()
    torque: Annotated[tuple[_Torque, ...], Shape("n")] = ()
    factor: Annotated[Array, Shape("*")] = field(default_factory=_no_numbers, repr=False)
    digest: str = ""
    written: datetime | None = None

    def __post_init__(self) -> None:
        """Checks every field, and that the numbers are those of one log."""
        try:
            super().__post_init__()
        except UnreadableFile as error:
            raise UnreadableFile(f"{self._words}: {error}; build the store again") from error
        require_cycle(self.start_s, self.end_s, self._words)
        if self.ok and not any(self.rows):
            raise UnreadableFile(f"{self._words} has no rows: build the store again")
        if len(self.factor):
            self._require_factor()

    def _require_factor(self) -> None:
        """Refuses a factor that is not that of the rows, or not the one that was stored.

        The last number of a joint's triangle is the residual that is left by the best fit to the
        joint alone, so it is at most that of the log's own fit, noise times the root of the rows.
        """
        n = len(self.rows)
        if not (n and _is_triangular(len(self.factor), n)):
            raise UnreadableFile(
                f"the factor of {self.file} ({self.robot}) has {len(self.factor)} numbers, which"
                f" are no triangles of {n} joints: build the store again"
            )
        of_joints = [bool(numbers.any()) for numbers in self.factor.reshape(n, -1)]
        for k, (has_numbers, rows) in enumerate(zip(of_joints, self.rows, strict=True)):
            if has_numbers != (rows > 0):
                raise UnreadableFile(
                    f"the factor of {self.file} ({self.robot}) is not that of joint {k + 1}, which"
                    f" has {rows} rows: build the store again"
                )
        is_stored = self.written is not None
        if (is_stored or self.digest) and self.digest != self.digest_of_numbers:
            raise UnreadableFile(
                f"the numbers of {self.file} ({self.robot}) were changed after they were stored:"
                " build the store again"
            )
        corners = np.abs(self.factor.reshape(n, -1)[:, -1])
        largest = np.asarray(self.noise) + _ROUNDING * np.asarray(self.torque)
        if (corners > largest * np.sqrt(self.rows)).any():
            raise UnreadableFile(
                f"the factor of {self.file} ({self.robot}) leaves larger residuals than its noise:"
                " build the store again"
            )

    @property
    def _words(self) -> str:
        return f"the row of {self.file} ({self.robot})"

    @property
    def digest_of_numbers(self) -> str:
        """A digest of `rows`, `noise`, `widening`, `torque` and `factor`."""
        digest = hashlib.sha256(np.ascontiguousarray(self.factor).tobytes())
        for values in (self.rows, self.noise, self.widening, self.torque):
            digest.update(repr(values).encode())
        return digest.hexdigest()[:24]

    @property
    def part(self) -> tuple[str, float | None, float | None]:
        """Identifies the samples: the content of the file and the part of it."""
        return self.content, self.start_s, self.end_s


@dataclass(frozen=True)
class KnownLog:
    """The part of a `LogRow` that tells whether a log has to be reduced again."""

    key: str
    content: str
    reduction: str
    load: float | None
    tool: str
    time: datetime | None


@dataclass(frozen=True)
class LogPayload:
    """The payload of one log; the first seven attributes are those of its `LogRow`.

    Attributes:
        mass: estimated, beyond the empty arm, [kg]
        mass_std: its standard deviation, [kg]
        error: mass less configured load, [kg]; None where the catalogue gives no load
        cx: centre of mass along x of the flange, [m]; cy and cz likewise
        cx_std: its standard deviation, [m]; cy_std and cz_std likewise
        ok: whether nothing counts against the payload
        verdict: in a few words
        doubts: kinds of what counts against it
    """

    robot: str
    file: str
    start_s: float | None
    end_s: float | None
    time: datetime | None
    tool: str
    load: float | None
    mass: float
    mass_std: float
    error: float | None
    cx: float
    cy: float
    cz: float
    cx_std: float
    cy_std: float
    cz_std: float
    ok: bool
    verdict: str
    doubts: tuple[str, ...]


@dataclass(frozen=True)
class SeriesChange:
    """The likeliest change of one series of an arm.

    Attributes:
        robot: name of the arm
        joint: number of the joint, from 1; 0 for the whole arm
        kind: of the series, as 'Fc' or 'payload'
        test: 'change', or 'level' for a payload unlike the configured one, from the first log or
            a certain step on
        since: when it began
        ramp: whether it is a ramp; else a step
        size: of the step, or of the ramp up to the last log
        std: its standard deviation
        before: median of the series before it
        p: probability of a change as clear as this without any
        words: a sentence
        q: smallest rate of false discoveries at which it would be flagged
        flagged: whether q is within the rate that was asked for
    """

    robot: str
    joint: int
    kind: str
    test: str
    since: datetime
    ramp: bool
    size: float
    std: float
    before: float
    p: float
    words: str
    q: float
    flagged: bool


def require_cycle(start_s: float | None, end_s: float | None, what: str) -> None:
    """Refuses a work cycle that ends before it begins.

    Args:
        start_s: of the cycle in its log, [s]; None for the start of the log
        end_s: of the cycle, [s]; None for the end of the log
        what: it is the cycle of
    """
    if end_s is not None and end_s <= (start_s or 0.0):
        raise UnreadableFile(
            f"{what} ends at {end_s:g} s, and begins at {start_s or 0.0:g} s: correct `start_s` or"
            " `end_s` in the catalogue"
        )


def to_table(rows: Sequence[Any], kind: type[Any]) -> pa.Table:
    """Rows as an Arrow table.

    Args:
        rows: all of one class
        kind: that class, which defines the columns
    """
    import pyarrow as pa

    schema = arrow_schema(kind)
    columns = [
        pa.array([getattr(row, name) for row in rows], schema.field(name).type)
        for name in schema.names
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def read_rows(table: pa.Table, kind: type[Row]) -> list[Row]:
    """The rows of an Arrow table; refuses columns that do not fit the class.

    Args:
        table: has a column for each field of the class that has no default
        kind: a dataclass of this module
    """
    hints = _hints(kind)
    present = [name for name in hints if name in table.column_names]
    columns = [_values(table, name, hints[name]) for name in present]
    return [
        kind(**dict(zip(present, values, strict=True))) for values in zip(*columns, strict=True)
    ]


def column_names(kind: type[Any]) -> list[str]:
    """The columns of a table of such rows, in their order."""
    return list(_hints(kind))


def arrow_schema(kind: type[Any]) -> pa.Schema:
    """The columns of a table of such rows, with their types."""
    import pyarrow as pa

    return pa.schema([pa.field(name, _arrow_type(hint)[0]) for name, hint in _hints(kind).items()])


def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def _arrow_type(hint: Any) -> tuple[Any, bool]:
    """The Arrow type of an annotation, and whether cells may be empty."""
    import pyarrow as pa

    plain = {
        str: pa.string(),
        float: pa.float64(),
        int: pa.int64(),
        bool: pa.bool_(),
        datetime: pa.timestamp("us", "UTC"),
        Array: pa.list_(pa.float64()),
    }
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (inner,) = (part for part in typing.get_args(hint) if part is not types.NoneType)
        return plain[inner], True
    if typing.get_origin(hint) is tuple:
        return pa.list_(plain[typing.get_args(hint)[0]]), False
    return plain[hint], False


def _values(table: pa.Table, name: str, hint: Any) -> Sequence[Any]:
    """The cells of a column as Python values."""
    column = table[name]
    expected, optional = _arrow_type(hint)
    if column.type != expected:
        raise UnreadableFile(f"column '{name}' holds {column.type}, where {expected} is needed")
    if column.null_count and not optional:
        raise UnreadableFile(f"column '{name}' has {column.null_count} empty cells")
    if hint == Array:
        return [cell.values.to_numpy() for cell in column]
    if typing.get_origin(hint) is tuple:
        return [tuple(cell) for cell in column.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


def _is_triangular(count: int, n: int) -> bool:
    """Whether a number of values fits n upper triangles of the same size."""
    size = int((np.sqrt(8 * (count // n) + 1) - 1) / 2)
    return count == n * size * (size + 1) // 2
