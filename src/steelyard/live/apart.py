"""The page in a process of its own: looking at a payload takes longer than the rows leave, drawing too.

The process that weighs sends what it has `Seen` when the other one is ready for it, which answers with its
`Update`; the page is drawn there. Nobody waits for the other: what is not taken in time is replaced by what
came later, events are kept. The page ends when the process that weighs does, however it ends.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from steelyard.computing import one_blas_thread
from steelyard.errors import SourceFailed, SteelyardError
from steelyard.identification import DynamicModel
from steelyard.live.source import Source
from steelyard.live.view import Seen, Update, View
from steelyard.live.weigher import LiveWeigher
from steelyard.robot.geometry import Body

_STARTING_S = 60.0
_ENDING_S = 5.0


@dataclass(frozen=True)
class PageOptions:
    """What a page looks like and where it is served, see `Page`; bodies come from a URDF where given."""

    urdf: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    dark: bool = False
    kept: Path | None = None


class PageApart:
    """A page in a process of its own; close it, or use it in a `with`.

    Attributes:
        url: where it is

    Args:
        weigher: what it looks at
        source: of the weigher's rows
        options: of the page
    """

    def __init__(self, weigher: LiveWeigher, source: Source, options: PageOptions | None = None) -> None:
        self._weigher, self._view = weigher, weigher.view
        apart = multiprocessing.get_context("spawn")
        self._pipe, theirs = apart.Pipe()
        arguments = theirs, _view_content(self._view), source, options or PageOptions()
        self._process = apart.Process(target=_serve, args=arguments, name="steelyard page", daemon=True)
        self._process.start()
        theirs.close()
        try:
            said = self._pipe.recv() if self._pipe.poll(_STARTING_S) else None
        except EOFError:
            said = None
        if isinstance(said, str):
            self.url, self._free = said, True
            return
        self.close()
        raise said if isinstance(said, SteelyardError) else SourceFailed("the page's process did not start")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Number of the page's process."""
        return self._process.pid or 0

    def close(self) -> None:
        """Ends the page."""
        self._pipe.close()
        self._process.join(_ENDING_S)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(_ENDING_S)

    def look(self, last: bool) -> Iterator[Update]:
        """Updates that have come; hands over what the weigher has seen, where the other process is free.

        Args:
            last: whether to wait for the update of what was seen last
        """
        try:
            yield from self._received(_ENDING_S if last else 0.0)
            if self._free and (seen := self._weigher.seen()) is not None:
                self._send(seen)
            if last:
                yield from self._received(_ENDING_S)
        except (OSError, EOFError) as error:
            raise SourceFailed("the page's process has ended; watch again, or without a page") from error

    def _received(self, within_s: float) -> Iterator[Update]:
        while not self._free and self._pipe.poll(within_s):
            self._free = True
            yield self._pipe.recv()

    def _send(self, seen: Seen) -> None:
        if self._weigher.view is not self._view:
            self._view = self._weigher.view
            self._pipe.send(_view_content(self._view))
        self._pipe.send(seen)
        self._free = False


def _view_content(view: View) -> dict[str, Any]:
    """Everything that makes a view, for another process."""
    return {
        "model": view.model.to_dict(),
        "columns": view.columns,
        "name": view.name,
        "accuracy": view.accuracy,
        "doubts": view.doubts,
    }


def _view(content: dict[str, Any]) -> View:
    return View(DynamicModel.from_dict(content.pop("model")), content.pop("columns"), **content)


def _serve(pipe: Connection, content: dict[str, Any], source: Source, options: PageOptions) -> None:
    """Serves a page until the other side of the pipe is closed."""
    from steelyard.live.page import Page

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: who weighs decides
    try:
        view = _view(content)
        page = Page(
            view,
            source,
            bodies=Body.to_draw(view.model.robot, options.urdf),
            host=options.host,
            port=options.port,
            dark=options.dark,
            kept=options.kept,
        )
    except SteelyardError as error:
        pipe.send(error)
        return
    with page, one_blas_thread():
        pipe.send(page.url)
        try:
            while True:
                came = pipe.recv()
                if isinstance(came, Seen):
                    update = page.view.update(came)
                    page.show(update)
                    pipe.send(update)
                else:
                    page.view = _view(came)
        except (EOFError, OSError):
            return
