"""Edits of an XML text that leave everything else unchanged.

Parsers that build trees lose comments, the order and quotes of attributes, and white space. This
module keeps the text: `xml.parsers.expat` reports the byte at which each element begins and ends,
edits are collected as replacements, and all of them are applied at the end.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from steelyard.errors import UnreadableFile

_ATTRIBUTE = re.compile(rb"""\s+([^\s=<>"'/]+)\s*=\s*("[^"]*"|'[^']*')""")
_START_TAG = re.compile(rb"""<[^>"']*(?:"[^"]*"[^>"']*|'[^']*'[^>"']*)*>""")
_HEAD_COMMENT = b"<!-- steelyard: "  # beginning of the comment of an earlier patch
_INDENT = "  "


@dataclass(eq=False)
class Element:
    """An element of the text, and its position.

    Attributes:
        tag: its name
        attributes: values by name
        parent: None for the root
        children: in their order
        start: offset of its first byte
        opened: offset after its start tag
        closing: offset of its end tag; `opened` for elements without one, as <a/>
        end: offset after the element
    """

    tag: str
    attributes: Mapping[str, str]
    parent: Element | None
    start: int
    opened: int
    children: list[Element] = field(default_factory=list)
    closing: int = 0
    end: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether it is written as <a/>."""
        return self.closing == self.end

    def every(self, tag: str) -> Iterator[Element]:
        """All elements inside it with a tag."""
        for child in self.children:
            if child.tag == tag:
                yield child
            yield from child.every(tag)

    def child(self, tag: str) -> Element | None:
        """Its first child with a tag."""
        return next((child for child in self.children if child.tag == tag), None)

    def named(self, tag: str, name: str) -> Element | None:
        """The first element inside it with a tag and a value of its attribute `name`."""
        return next(
            (inside for inside in self.every(tag) if inside.attributes.get("name") == name), None
        )


class Markup:
    """An XML text and edits of it."""

    def __init__(self, source: bytes, name: str, *, root: str) -> None:
        """Finds the elements.

        Args:
            source: content of the file, in UTF-8
            name: of the file, for messages
            root: required tag of its root
        """
        self.source = source
        self.name = name
        self._edits: list[tuple[int, int, bytes]] = []
        self._comments: list[tuple[int, int]] = []
        try:
            source.decode("utf-8")
            self.root = self._elements()
        except UnicodeDecodeError as error:
            raise UnreadableFile(f"{name} is not XML in UTF-8: {error}") from error
        except expat.ExpatError as error:
            raise UnreadableFile(f"{name} does not parse as XML: {error}") from error
        if self.root.tag != root:
            raise UnreadableFile(f"{name} has the root <{self.root.tag}>, not <{root}>")
        for other in self.root.children:
            if other.tag.startswith("xacro:"):
                raise UnreadableFile(
                    f"{name} is a xacro: convert it to a URDF first (xacro {name})"
                )

    def _elements(self) -> Element:
        parser = expat.ParserCreate()
        open_elements: list[Element] = []
        roots: list[Element] = []

        def start(tag: str, attributes: dict[str, str]) -> None:
            at = parser.CurrentByteIndex
            tag_text = _START_TAG.match(self.source, at)
            if tag_text:
                opened = tag_text.end()
            else:
                opened = at
            if open_elements:
                parent = open_elements[-1]
            else:
                parent = None
            element = Element(tag, attributes, parent, at, opened)
            (parent.children if parent else roots).append(element)
            open_elements.append(element)

        def end(_: str) -> None:
            element = open_elements.pop()
            at = parser.CurrentByteIndex
            if self.source[element.opened - 2 : element.opened] == b"/>":
                element.closing = element.end = element.opened
            else:
                element.closing, element.end = at, self.source.index(b">", at) + 1

        def comment(_: str) -> None:
            at = parser.CurrentByteIndex
            self._comments.append((at, self.source.index(b"-->", at) + 3))

        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.CommentHandler = comment
        parser.Parse(self.source, True)
        return roots[0]

    def set(self, element: Element, values: Mapping[str, str | None]) -> None:
        """Sets attributes of an element; a value of None removes an attribute."""
        tag = self.source[element.start : element.opened]
        there = {found[1].decode(): found for found in _ATTRIBUTE.finditer(tag)}
        new = ""
        for key, value in values.items():
            if key in there and value is None:
                self._edit(element.start + there[key].start(), element.start + there[key].end(), "")
            elif key in there:
                start, end = there[key].span(2)
                self._edit(element.start + start, element.start + end, quoteattr(str(value)))
            elif value is not None:
                new += f" {key}={quoteattr(value)}"
        if new:
            bare = tag.removesuffix(b">").removesuffix(b"/").rstrip()
            at = element.start + len(bare)
            self._edit(at, at, new)

    def insert(self, parent: Element, *children: ET.Element, first: bool = False) -> None:
        """Adds children after those of an element, or before them, each on a new line."""
        margin = self._margin(parent)
        inside = "".join(
            margin + _INDENT + _indented(child, margin + _INDENT) for child in children
        )
        if parent.is_empty:
            tag = self.source[parent.start : parent.opened].removesuffix(b"/>").rstrip()
            self._edit(parent.start + len(tag), parent.end, f">{inside}{margin}</{parent.tag}>")
        elif first:
            self._edit(parent.opened, parent.opened, inside)
        else:
            if parent.children:
                last = parent.children[-1].end
            else:
                last = parent.opened
            text = self.source[last : parent.closing]
            at = last + len(text.rstrip())  # after comments, too
            self._edit(at, at, inside + ("" if at < parent.closing else margin))

    def remove(self, element: Element) -> None:
        """Removes an element and the white space before it."""
        before = len(self.source[: element.start].rstrip())
        self._edit(before, element.end, "")

    def head(self, words: list[str]) -> None:
        """Writes a comment at the beginning of the root, replacing that of an earlier patch."""
        text = f"\n{2 * _INDENT}".join(
            ["steelyard: patched; everything that is not listed here is unchanged.", *words]
        )
        while "--" in text:
            text = text.replace("--", "- -")
        for start, end in self._comments:
            if self.source.startswith(_HEAD_COMMENT, start):
                self._edit(start, end, f"<!-- {text} -->")
                return
        self._edit(self.root.opened, self.root.opened, f"\n{_INDENT}<!-- {text} -->")

    def text(self) -> str:
        """The text with all changes."""
        pieces = []
        at = 0
        for start, end, new in sorted(self._edits, key=lambda edit: edit[:2]):
            pieces += [self.source[at:start], new]
            at = end
        return b"".join([*pieces, self.source[at:]]).decode("utf-8")

    def _edit(self, start: int, end: int, new: str) -> None:
        if b"\r\n" in self.source:
            newline = "\r\n"
        else:
            newline = "\n"
        self._edits.append((start, end, new.replace("\n", newline).encode("utf-8")))

    def _margin(self, element: Element) -> str:
        """A line break and the indentation of an element."""
        line = self.source[: element.start].rsplit(b"\n", 1)[-1]
        return "\n" + line[: len(line) - len(line.lstrip())].decode("utf-8")


def _indented(element: ET.Element, margin: str) -> str:
    ET.indent(element, _INDENT)
    return ET.tostring(element, encoding="unicode").strip().replace("\n", margin)
