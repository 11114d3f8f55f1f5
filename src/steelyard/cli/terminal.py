"""Text for people on stdout or stderr, with signs that the stream can show."""

from __future__ import annotations

import re
import sys
from typing import Any

INTERVAL = "+- (95 %)"
"""Head of a column of half-widths of 95 % intervals."""

_SIGNS = {"+-": "\u00b1", "m^2": "m\u00b2", "s^2": "s\u00b2"}
_SYMBOLS = re.compile(r"\+-|(?<= )m\^2|(?<=/)s\^2")


def say(text: str = "", *, flush: bool = False) -> None:
    """Prints a text for people on stdout.

    Args:
        text: of one or more lines
        flush: whether it appears at once
    """
    print(terminal_text(text), flush=flush)


def terminal_text(text: str, stream: Any = None) -> str:
    """A text with the signs for plus-minus and squares, where a stream can show them.

    Args:
        text: with +-, m^2 and s^2
        stream: to be written to; None for stdout
    """
    if not _shows_symbols(stream or sys.stdout):
        return text
    return _SYMBOLS.sub(lambda found: _SIGNS[found.group()], text)


def _shows_symbols(stream: Any) -> bool:
    encoding = getattr(stream, "encoding", None) or ""
    return encoding.lower().replace("-", "") == "utf8"
