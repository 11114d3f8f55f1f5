"""The structure of a MATLAB file (version 5 to 7), checked before SciPy's reader sees the file.

That reader is compiled and uses types and sizes in a file as they are: one wrong bit can end the
process. A file is a header of 128 bytes and a sequence of elements, each of a tag (its type and
its number of bytes) and its bytes. An element holds one array, or the same compressed:

    array = flags, sizes, name, and what its class has
    numbers, texts      values, and imaginary values where a flag says so
    cell                an array for each cell
    struct, object      names of the fields, and an array for each field of each element
    sparse              rows, first of each column, values

Format: MathWorks, MAT-File Format. In a short element of up to four bytes, the number of bytes is
the upper half of the first word of the tag.
"""

from __future__ import annotations

import math
import mmap
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

from steelyard.errors import UnreadableFile

_HEADER_BYTES = 128
_ALIGNMENT = 8  # of the elements of an array, [bytes]
_MATRIX = 14
_COMPRESSED = 15
_INT8 = 1
_INT32 = 5
_UINT32 = 6
_UTF8 = 16
_NUMBERS = (1, 2, 3, 4, 5, 6, 7, 9, 12, 13)
_CHARACTERS = (*_NUMBERS, 16, 17, 18)
_TEXTS = (_INT8, _UTF8)

_CELL = 1
_STRUCT = 2
_OBJECT = 3
_CHAR = 4
_SPARSE = 5
_NUMERIC = range(6, 16)
_FUNCTION = 16
_OPAQUE = 17
_COMPLEX_FLAG = 0x800

_MAX_DEPTH = 50  # of cells and structs in each other
_MAX_SIZES = 32  # of an array
_MAX_EMPTY = 2**16  # elements of an array that need no bytes of their own


class _DataElement(NamedTuple):
    kind: int
    content: memoryview


def check_structure(path: Path, *, max_unpacked: int) -> None:
    """Raises ValueError where the elements of a file do not fit into each other.

    Args:
        path: a MATLAB file of version 5 to 7
        max_unpacked: number of bytes that the compressed arrays of the file may have together
    """
    with path.open("rb") as file:
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    if len(content) < _HEADER_BYTES:
        raise ValueError("its header is cut off")
    little = bytes(content[126:128]) == b"IM"
    elements = _Elements(content[_HEADER_BYTES:], "<" if little else ">", aligned=False)
    left = max_unpacked
    while elements.rest:
        element = elements.take((_MATRIX, _COMPRESSED))
        if element.kind == _MATRIX:
            _check_array(elements.inside(element), 0)
            continue
        array = _unpacked(element.content, left + 1)
        left = left - len(array)
        if left < 0:
            raise UnreadableFile(
                f"{path}: its arrays need more than {max_unpacked >> 20} MB of memory; write"
                " Parquet instead"
            )
        inner = elements.inside(_DataElement(_COMPRESSED, memoryview(array)))
        _check_array(inner.inside(inner.take((_MATRIX,))), 0)


def _unpacked(content: memoryview, limit: int) -> bytes:
    """The first bytes of a compressed element, up to a limit."""
    unpacker = zlib.decompressobj()
    found = unpacker.decompress(content, limit)
    if len(found) < limit and not unpacker.eof:
        raise ValueError("a compressed array is cut off")
    return found


class _Elements:
    """The elements that follow each other in some bytes.

    Attributes:
        rest: the bytes that were not taken yet

    Args:
        content: the bytes
        order: of the bytes of a number, '<' or '>'
        aligned: whether elements begin at multiples of eight bytes
    """

    def __init__(self, content: memoryview, order: str, *, aligned: bool = True) -> None:
        self.rest = content
        self._order = order
        self._aligned = aligned

    def inside(self, element: _DataElement) -> _Elements:
        """The elements inside of an element."""
        return _Elements(element.content, self._order)

    def take(self, kinds: tuple[int, ...]) -> _DataElement:
        """The next element, which must be of one of these types."""
        (word,) = self._words(self.rest[:4], 1)
        size = word >> 16
        if size:
            kind = word & 0xFFFF
            begin = 4
            end = 8
            if size > 4:
                raise ValueError(f"a short element says that it has {size} bytes")
        else:
            kind, size = self._words(self.rest[:8], 2)
            begin = 8
            end = begin + size
            if self._aligned:
                end += -size % _ALIGNMENT
        if kind not in kinds:
            raise ValueError(f"an element has the type {kind}, which cannot stand there")
        if begin + size > len(self.rest):
            raise ValueError(f"an element says that it has {size} bytes, which are not there")
        content = self.rest[begin : begin + size]
        self.rest = self.rest[end:]
        return _DataElement(kind, content)

    def numbers(self, kinds: tuple[int, ...]) -> tuple[int, ...]:
        """The next element as whole numbers of four bytes."""
        content = self.take(kinds).content
        if len(content) % 4:
            raise ValueError("an element of whole numbers is cut off")
        return self._words(content, len(content) // 4)

    def _words(self, content: memoryview, count: int) -> tuple[int, ...]:
        if len(content) < 4 * count:
            raise ValueError("it ends inside of an element")
        return struct.unpack(f"{self._order}{count}I", content)


def _check_array(array: _Elements, depth: int) -> None:
    """Checks the elements of an array."""
    if depth > _MAX_DEPTH:
        raise ValueError("its arrays are nested too deeply")
    available = len(array.rest)
    if available == 0:  # an empty array in a cell or a field
        return
    flags = array.numbers((_UINT32,))
    if len(flags) != 2:
        raise ValueError("an array has no flags")
    kind = flags[0] & 0xFF
    if kind == _OPAQUE:
        for _ in range(3):
            array.take(_TEXTS)
        _check_inner(array, 1, depth)
        return
    sizes = array.numbers((_INT32, _UINT32))
    array.take(_TEXTS)  # the name
    if not 1 <= len(sizes) <= _MAX_SIZES or max(sizes) >= 2**31:
        raise ValueError(f"an array has the sizes {sizes[:4]}")
    count = math.prod(sizes)
    if kind != _SPARSE and count > max(available, _MAX_EMPTY):
        raise ValueError(f"an array of {count} elements has {available} bytes")
    _check_content(array, kind, count, depth, is_complex=bool(flags[0] & _COMPLEX_FLAG))


def _check_content(
    array: _Elements, kind: int, count: int, depth: int, *, is_complex: bool
) -> None:
    """Checks what follows the name of an array of some class.

    Args:
        array: its remaining elements
        kind: its class
        count: number of its elements
        depth: of the array in others
        is_complex: whether its numbers have an imaginary part
    """
    if kind in _NUMERIC:
        for _ in range(1 + is_complex):
            array.take(_NUMBERS)
    elif kind == _CHAR:
        array.take(_CHARACTERS)
    elif kind == _SPARSE:
        for _ in range(3 + is_complex):
            array.take(_NUMBERS)
    elif kind == _CELL:
        _check_inner(array, count, depth)
    elif kind in (_STRUCT, _OBJECT):
        if kind == _OBJECT:
            array.take(_TEXTS)  # the name of the class
        _check_inner(array, count * _field_count(array), depth)
    elif kind == _FUNCTION:
        _check_inner(array, 1, depth)
    else:
        raise ValueError(f"an array has the class {kind}, which there is not")


def _field_count(array: _Elements) -> int:
    """The number of fields of a struct."""
    lengths = array.numbers((_INT32,))
    names = array.take(_TEXTS).content
    if len(lengths) != 1 or not 0 < lengths[0] <= max(len(names), 64):
        raise ValueError("a struct has no names of fields")
    if len(names) % lengths[0]:
        raise ValueError("the names of the fields of a struct are cut off")
    return len(names) // lengths[0]


def _check_inner(array: _Elements, count: int, depth: int) -> None:
    """Checks the next arrays inside of an array."""
    for _ in range(count):
        _check_array(array.inside(array.take((_MATRIX,))), depth + 1)
