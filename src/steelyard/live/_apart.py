"""The page in a process of its own: looking at a payload takes longer than the rows leave, drawing too.

The process that weighs sends what it has `Seen` ten times per second, when the other one is ready
for it, which answers with its `Update`; the page is drawn there. Between two of them it sends the
newest row, so that the arm on the page moves smoothly. Nobody waits for the other: what is not
taken in time is replaced by what came later, events are kept. Rows come first: the page's process
has a lower priority and interrupts nobody. It ends when the process that weighs does, however that
ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Self

from steelyard._computing import one_blas_thread
from steelyard.errors import SourceFailed, SteelyardError
from steelyard.live._source import Row, Source
from steelyard.live._view import Seen, Update, View
from steelyard.live._weigher import LiveWeigher
from steelyard.live._wrist import WristUpdate, WristView, WristWeigher
from steelyard.robot._geometry import Body

_STARTING_S = 60.0
_ENDING_S = 5.0
_SEEN_S = 0.1  # between two looks at the payload, [s]
_NICE = 5  # so much lower is the priority of the page's process


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

    def __init__(
        self,
        weigher: LiveWeigher | WristWeigher,
        source: Source,
        options: PageOptions | None = None,
    ) -> None:
        self._weigher: LiveWeigher | WristWeigher = weigher
        self._view: View | WristView = weigher.view
        self._looked_at: Seen | WristUpdate | None = (
            None  # by the other process; None where it is free
        )
        apart = multiprocessing.get_context("spawn")
        self._pipe, theirs = apart.Pipe()
        arguments = theirs, _Content.of(self._view), source, options or PageOptions()
        self._process = apart.Process(
            target=_serve, args=arguments, name="steelyard page", daemon=True
        )
        self._process.start()
        theirs.close()
        try:
            if self._pipe.poll(_STARTING_S):
                said = self._pipe.recv()
            else:
                said = None
        except EOFError:
            said = None
        if isinstance(said, str):
            self.url = said
            self._due_s = 0.0
            return
        self.close()
        raise (
            said
            if isinstance(said, SteelyardError)
            else SourceFailed("the page's process did not start")
        )

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

    def look(self, last: bool) -> Iterator[Update | WristUpdate]:
        """Updates that have come; hands over what the weigher has seen, where the other process is free.

        Args:
            last: whether to wait for the update of what was seen last
        """
        try:
            yield from self._received(_ENDING_S if last else 0.0)
            if self._looked_at is None:
                self._send(last)
            if last:
                yield from self._received(_ENDING_S)
        except (OSError, EOFError) as error:
            raise SourceFailed(
                "the page's process has ended; watch again, or without a page"
            ) from error

    def _received(self, within_s: float) -> Iterator[Update | WristUpdate]:
        while (seen := self._looked_at) is not None and self._pipe.poll(within_s):
            self._looked_at, said = None, self._pipe.recv()
            yield seen if isinstance(seen, WristUpdate) else Update(**said, state=seen.state)

    def _send(self, last: bool) -> None:
        """Sends what was seen where it is time for it, and the newest row elsewhere."""
        now_s = time.monotonic()
        row = self._weigher.row
        if not last and now_s < self._due_s:
            if row is None:
                return None
            return self._pipe.send(row)
        if (seen := self._weigher.seen()) is None:
            return
        if self._weigher.view is not self._view:
            self._view = self._weigher.view
            self._pipe.send(_Content.of(self._view))
        light = seen._replace(state=seen.state.reduced) if isinstance(seen, Seen) else seen
        self._pipe.send(light)
        self._looked_at = seen
        self._due_s = now_s + _SEEN_S


class _Content(NamedTuple):
    """Everything that makes a view, for another process."""

    kind: type[View] | type[WristView]
    content: dict[str, Any]

    @classmethod
    def of(cls, view: View | WristView) -> _Content:
        return cls(type(view), view.content)

    @property
    def view(self) -> View | WristView:
        return self.kind.of(self.content)


def _serve(pipe: Connection, content: _Content, source: Source, options: PageOptions) -> None:
    """Serves a page until the other side of the pipe is closed."""
    from steelyard.live._page import Page

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: who weighs decides
    if hasattr(os, "nice"):
        os.nice(_NICE)
    if hasattr(os, "SCHED_BATCH"):  # it never takes the processor away when it wakes up
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        view = content.view
        page = Page(
            view,
            source,
            bodies=Body.to_draw(view.robot, options.urdf),
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
                if isinstance(came, Row):
                    page.follow(came)
                elif isinstance(came, _Content):
                    page.view = came.view
                else:
                    update = page.view.update(came)
                    page.show(update)
                    pipe.send({name: x for name, x in vars(update).items() if name != "state"})
        except (EOFError, OSError):
            return
