"""Text for people on stdout or stderr, with signs that the stream can show."""

from __future__ import annotations

from steelyard._units import printable

INTERVAL = "+- (95 %)"
"""Head of a column of half-widths of 95 % intervals."""


def say(text: str = "", *, flush: bool = False) -> None:
    """Prints a text for people on stdout.

    Args:
        text: of one or more lines
        flush: whether it appears at once
    """
    print(printable(text), flush=flush)
