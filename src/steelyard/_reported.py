"""Results that write a report on themselves.

A report shows the recordings behind a result, so the function that makes the result from recordings
gives it the page. A result that was read from a file has no recordings.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any, Protocol, Self

from steelyard.errors import InvalidSamples, UnreadableFile

_ENDINGS = (".html", ".htm")
_PAGE = "_page"  # attribute that is neither saved nor compared


class WritablePage(Protocol):
    """A page that can be written."""

    def write(self, path: Path) -> None:
        """Writes the page as one HTML file."""


class Reported:
    """The base class of results with a report."""

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the page, whose recordings are not sent to other processes."""
        return {name: value for name, value in vars(self).items() if name != _PAGE}

    def with_page(self, page: Callable[[], WritablePage]) -> Self:
        """The same result with a function that makes its page.

        Args:
            page: makes the page when it is asked for
        """
        made = copy(self)
        object.__setattr__(made, _PAGE, page)
        return made

    def report(self, path: str | Path) -> None:
        """Writes the report as one HTML file, which needs no network.

        Args:
            path: of the file, which ends in .html
        """
        path = Path(path)
        if path.suffix.lower() not in _ENDINGS:
            raise UnreadableFile(f"{path}: the name of a report must end in .html")
        page: Callable[[], WritablePage] | None = vars(self).get(_PAGE)
        if page is None:
            raise InvalidSamples(
                "a report shows recordings, and a result that was read from a file or made by hand"
                " has none: identify or weigh the recordings again and report that result"
            )
        page().write(path)
