"""Recordings in text tables: a header, then a line of numbers for each time.

The first lines show the delimiter (comma, semicolon, tab, spaces) and a decimal comma. Comment
lines (#) may come first; the last of them is the header if numbers follow immediately, as
`numpy.savetxt` writes it. A table without a header needs names from the caller.

If the power fails while a log is written, it ends with half a line, with lines of too few fields,
or with NUL bytes. Such an end is left out and noted. A damaged line that is followed by intact ones
is refused, because other lines may be wrong, too.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from steelyard._arrays import Array
from steelyard.errors import NoHeader, UnreadableFile
from steelyard.io._binary import chosen_once
from steelyard.quality._table import counted
from steelyard.recording import Recording, imported, recording_of
from steelyard.recording._columns import Requested, find_layout
from steelyard.recording._notes import Note, NoteKind

_EMPTY_CELLS = ("", "nan", "NaN", "NAN", "null", "NULL", "NA", "N/A", "None")
_BOM = b"\xef\xbb\xbf"
_TAIL_LINES = 20  # lines before the last one that show the usual number of decimals


@dataclass(frozen=True)
class _Header:
    """Names of columns, and the format of the lines after them."""

    names: list[str]
    delimiter: str
    begin: int  # offset of the first line of numbers
    quoted: bool = False
    decimal: str = "."

    def fields(self, line: bytes) -> list[str]:
        text = line.decode(errors="replace").strip("\r\n")
        if self.delimiter == " ":
            return text.split()
        if self.quoted:
            try:
                return next(csv.reader([text], delimiter=self.delimiter), [])
            except csv.Error:  # a line end inside of a line; a field without end
                return []
        return text.split(self.delimiter)

    def is_whole(self, line: bytes, needed: list[int]) -> bool:
        """Whether a line has every field, and a number in those needed."""
        fields = self.fields(line)
        return len(fields) == len(self.names) and all(
            _is_number(fields[k], self.decimal) for k in needed
        )


def read_table(path: Path, requested: Requested) -> Recording:
    """The recording in a text table."""
    data = _text(path)
    header = _header(data, path, requested.names)
    layout = find_layout(header.names, requested, str(path))
    columns, damage = _columns(data, header, layout.names, path)
    if damage:
        layout = layout.noting(damage)
    layout = layout.in_seconds(lambda: columns, str(path))
    return recording_of(layout, layout.gather(columns), str(path))


def text_columns(
    path: Path, wanted: Collection[str], given: Sequence[str]
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Columns of a text table by name, and notes about the table.

    Args:
        wanted: names of the columns; missing ones are left out
        given: names of all columns of a table without a header
    """
    data = _text(path)
    header = _header(data, path, given)
    chosen = chosen_once(header.names, wanted, path)
    if not chosen:
        return {}, ()
    columns, damage = _columns(data, header, chosen, path)
    return columns, (damage,) if damage else ()


def text_column_names(path: Path) -> tuple[str, ...]:
    """Names of the columns of a text table."""
    return tuple(_header(_text(path), path, ()).names)


def _columns(
    data: bytes, header: _Header, names: Sequence[str], path: Path
) -> tuple[dict[str, Array], str]:
    """Columns by name, and a note about a damaged end, or an empty text."""
    needed = [header.names.index(name) for name in names]
    end = _end_of_whole(data, header, needed)
    if end == header.begin:
        _refuse_without_rows(data, header, path)
    values = _parse(memoryview(data)[header.begin : end], header, needed)
    if values is None:
        raise UnreadableFile(f"{path}: {_first_bad_line(data[:end], header, needed)}")
    return dict(zip(names, values, strict=True)), _damage(data, end) if data[end:].strip() else ""


def _refuse_without_rows(data: bytes, header: _Header, path: Path) -> NoReturn:
    if not data[header.begin :].strip(b"\0\r\n\t "):
        raise UnreadableFile(f"{path}: it has a header, but no rows; nothing was recorded")
    raise UnreadableFile(
        f"{path}: no line after the header has {len(header.names)} fields with numbers where they"
        f" are needed; the first is line {_line_number(data, header.begin)}:"
        f" {_excerpt(data, header.begin)}"
    )


def _text(path: Path) -> bytes:
    data = path.read_bytes()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnreadableFile(f"{path}: the text is in UTF-16; save it as UTF-8")
    if b"\0" in data[: data.find(b"\n") + 1 or None]:
        raise UnreadableFile(
            f"{path}: it does not begin with text, but with NUL bytes; the file is damaged"
        )
    return data.removeprefix(_BOM)


def _header(data: bytes, path: Path, given: Sequence[str]) -> _Header:
    """The header: the first line that is not a comment, or the comment before the numbers.

    Args:
        data: content of the file
        path: of the file
        given: names of the columns of a table without a header
    """
    comment = line = b""
    offset = end = 0
    while end < len(data) and (not line or line.startswith(b"#")):
        comment = line or comment
        offset = end
        end = data.find(b"\n", end) + 1 or len(data)
        line = data[offset:end].strip()
    if not _is_numeric(line) and given:
        raise UnreadableFile(f"{path}: it has a header, {_excerpt(line, 0)}; do not give `names`")
    if _is_numeric(line):
        if given or not comment:
            return _without_names(data, offset, given, path)
        line = comment
        end = offset
    text = line.lstrip(b"#").strip().decode(errors="replace")
    delimiter = max(",;\t", key=text.count)
    if delimiter not in text:
        delimiter = " "
    first = data[end : data.find(b"\n", end) + 1 or None]
    header = _Header([], delimiter, end, b'"' in line + first, _decimal(first, delimiter))
    return replace(header, names=[name.strip(" \t\"'") for name in header.fields(text.encode())])


def _without_names(data: bytes, begin: int, given: Sequence[str], path: Path) -> _Header:
    """The header of a table that has none."""
    first = data[begin : data.find(b"\n", begin) + 1 or None]
    text = first.decode(errors="replace").strip()
    delimiter = next((x for x in ";\t," if x in text), " ")
    header = _Header([], delimiter, begin, decimal=_decimal(first, delimiter))
    count = len(header.fields(first))
    if len(given) != count:
        if given:
            but = f" (and {len(given)} names were given)"
        else:
            but = ""
        raise NoHeader(
            f"{path}: it has no header but {count} columns of numbers{but}; name each of them, in"
            f" their order, for example with `names='{_example_names(count)}'`, or current for"
            " motor currents (columns whose names are not those of a signal are ignored)",
            count,
        )
    return replace(header, names=list(given))


def _example_names(count: int) -> str:
    """Names for `count` columns: time, positions and torques of one arm, and others."""
    n = max((count - 1) // 2, 1)
    names = f"t,q*{n},tau*{n}"
    if count > 1 + 2 * n:
        names += ",other"
    return names


def _decimal(line: bytes, delimiter: str) -> str:
    """The decimal separator of a line: a comma if it is not the delimiter and replaces points."""
    if delimiter != "," and b"," in line and b"." not in line:
        return ","
    return "."


def _is_numeric(line: bytes) -> bool:
    fields = [field for field in re.split(rb"[,;\s]+", line) if field]
    return bool(fields) and all(_is_number(field.decode(errors="replace"), ".") for field in fields)


def _is_number(text: str, decimal: str) -> bool:
    text = text.strip(' \t"')
    if text in _EMPTY_CELLS:
        return True
    try:
        float(text.replace(decimal, "."))
    except ValueError:
        return False
    return "_" not in text


def _end_of_whole(data: bytes, header: _Header, needed: list[int]) -> int:
    """Offset after the last complete line; that of the first line if there is none."""
    end = len(data)
    while end > header.begin:
        start = max(data.rfind(b"\n", header.begin, end - 1) + 1, header.begin)
        line = data[start:end]
        if header.is_whole(line, needed) and (
            line.endswith(b"\n") or not _may_be_cut(data, start, header)
        ):
            return end
        end = start
    return end


def _may_be_cut(data: bytes, start: int, header: _Header) -> bool:
    """Whether the last value of a last line without a line break may be incomplete.

    A value with an exponent may be (1e-0 of 1e-05); another one is complete if it has at least as
    many decimals as all values in the lines before it.
    """
    last = header.fields(data[start:])[-1].strip()
    before = data[max(header.begin, start - 1000 * _TAIL_LINES) : start].splitlines()[-_TAIL_LINES:]
    values = [header.fields(line)[-1].strip() for line in before if line.strip()]
    decimals = [len(value.partition(header.decimal)[2]) for value in (last, *values)]
    return "e" in last.lower() or decimals[0] < min(decimals[1:], default=0)


def _damage(data: bytes, end: int) -> Note:
    """The note about rows that were left out from a byte on."""
    lines = sum(1 for line in data[end:].split(b"\n") if line.strip(b"\0\r "))
    words = (
        f"damaged end: the last {len(data) - end} bytes ({counted(lines, 'broken line')},"
        f" from line {_line_number(data, end)}) are left out"
    )
    return Note(words, NoteKind.DAMAGED_END)


def _parse(rows: memoryview, header: _Header, needed: list[int]) -> list[Array] | None:
    """The needed columns of the lines after the header; None when a line is damaged."""
    csv_reader = imported("pyarrow.csv")
    import pyarrow as pa

    if header.delimiter == " ":
        rows = _single_spaced(rows)
    names = [str(k) for k in range(len(header.names))]
    chosen = [names[k] for k in needed]
    parsing = csv_reader.ParseOptions(
        delimiter=header.delimiter, quote_char='"' if header.quoted else False
    )
    converting = csv_reader.ConvertOptions(
        column_types=dict.fromkeys(chosen, pa.float64()),
        include_columns=chosen,
        null_values=list(_EMPTY_CELLS),
        decimal_point=header.decimal,
    )
    try:
        table = csv_reader.read_csv(
            pa.BufferReader(rows),
            read_options=csv_reader.ReadOptions(column_names=names),
            parse_options=parsing,
            convert_options=converting,
        )
    except pa.ArrowInvalid:
        return None
    return [table.column(name).to_numpy() for name in chosen]


def _single_spaced(rows: memoryview) -> memoryview:
    """One space between numbers and none around them."""
    text = bytes(rows).replace(b"\t", b" ").replace(b"\r", b"")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return memoryview(text.replace(b"\n ", b"\n").replace(b" \n", b"\n").strip(b" "))


def _first_bad_line(data: bytes, header: _Header, needed: list[int]) -> str:
    """Description of the first damaged line."""
    number = _line_number(data, header.begin)
    for line in data[header.begin :].split(b"\n"):
        if line.strip() and not header.is_whole(line, needed):
            return (
                f"line {number} is damaged, with good lines after it:"
                f" {_fault(line, header, needed)}; repair or remove the line"
            )
        number += 1
    return "the numbers cannot be read, although every line looks intact; write the table again"


def _fault(line: bytes, header: _Header, needed: list[int]) -> str:
    fields = header.fields(line)
    if len(fields) != len(header.names):
        return f"{len(fields)} fields instead of {len(header.names)}: {_excerpt(line, 0)}"
    wrong = next(k for k in needed if not _is_number(fields[k], header.decimal))
    return f"{fields[wrong][:40]!r} is not a number (column {header.names[wrong]})"


def _excerpt(data: bytes, offset: int) -> str:
    line = data[offset : data.find(b"\n", offset) + 1 or None]
    return repr(line[:60].decode(errors="replace").rstrip("\r\n"))


def _line_number(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1
