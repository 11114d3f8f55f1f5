"""The page in a process of its own, because estimates and drawings take longer than a row.

The weighing process sends a `Snapshot` ten times per second, when the page's process is ready for
it; the page's process adds the estimate, draws the snapshot and sends it back. Between two
snapshots it receives the newest row, so that the arm on the page moves smoothly. Neither process
waits for the other: newer snapshots replace older ones, events are kept. The page's process has a
lower priority, and ends with the weighing process, however that ends.

A page takes seconds to start. It is therefore opened before the stream, and shows the weigher that
is attached to it later: no row waits for the page.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Self

from steelyard._computing import one_blas_thread
from steelyard.errors import SourceFailed, SteelyardError
from steelyard.live._setup import TrackerSetup
from steelyard.live._source import Row, Source
from steelyard.live._view import Snapshot, View
from steelyard.live._weigher import LiveWeigher
from steelyard.robot._geometry import Body

if TYPE_CHECKING:
    from steelyard.live._page import SnapshotPage

_START_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 5.0
_POLL_S = 0.2  # between two looks at the drawing thread
_SNAPSHOT_STEP_S = 0.1  # between two snapshots
_NICENESS = 5  # added to that of the weighing process, for a lower priority


@dataclass(frozen=True)
class PageOptions:
    """Appearance and address of a page, see `SnapshotPage`.

    Attributes:
        urdf: file whose meshes are shown; capsules by default
        host: address to listen at
        port: to listen at, or the next free one
        dark: whether the page is dark at first
        history_file: file for the payloads that are set on the page, to restore the one before
    """

    urdf: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    dark: bool = False
    history_file: Path | None = None


class LivePage:
    """A live page in a process of its own; close it, or use it in a `with`.

    Open it before the stream, whose rows would otherwise wait while the page starts.

    Attributes:
        url: address of the page

    Args:
        setup: what is known about the stream
        source: of the rows; the page can stop its arm and set its payload
        options: of the page
    """

    def __init__(
        self, setup: TrackerSetup, source: Source, options: PageOptions | None = None
    ) -> None:
        self._weigher: LiveWeigher | None = None
        self._view = View(setup)
        self._in_work: Snapshot | None = None  # by the page's process
        context = multiprocessing.get_context("spawn")
        self._pipe, page_end = context.Pipe()
        self._process = context.Process(
            target=_serve,
            args=(page_end, self._view, source, options or PageOptions()),
            name="steelyard page",
            daemon=True,
        )
        self._process.start()
        page_end.close()
        self._due_s = 0.0
        self.url = self._received_url()

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
        self._process.join(_END_TIMEOUT_S)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(_END_TIMEOUT_S)

    def attach(self, weigher: LiveWeigher) -> None:
        """Shows a weigher from now on.

        Args:
            weigher: of rows of the page's source
        """
        self._weigher = weigher

    def look(self, last: bool) -> Iterator[Snapshot]:
        """Snapshots that came back; sends the next one when the page's process is ready.

        Args:
            last: whether to wait for the last snapshot
        """
        try:
            if last:
                yield from self._received(_END_TIMEOUT_S)
            else:
                yield from self._received(0.0)
            if self._in_work is None:
                self._send(last)
            if last:
                yield from self._received(_END_TIMEOUT_S)
        except SteelyardError:
            raise
        except (OSError, EOFError) as error:
            raise SourceFailed(
                "the page's process has ended; track again, or without a page"
            ) from error

    def _received_url(self) -> str:
        """The address that the page's process reports; its error is raised here."""
        answer: object = None
        try:
            if self._pipe.poll(_START_TIMEOUT_S):
                answer = self._pipe.recv()
        except EOFError:
            answer = None
        if isinstance(answer, str):
            return answer
        self.close()
        if isinstance(answer, SteelyardError):
            raise answer
        raise SourceFailed("the page's process did not start")

    def _received(self, timeout_s: float) -> Iterator[Snapshot]:
        while (sent := self._in_work) is not None and self._pipe.poll(timeout_s):
            estimated: Snapshot | SteelyardError = self._pipe.recv()
            self._in_work = None
            if isinstance(estimated, SteelyardError):
                raise estimated
            yield replace(estimated, state=sent.state)

    def _send(self, last: bool) -> None:
        """Sends a snapshot where one is due, else the newest row."""
        now_s = time.monotonic()
        weigher = self._weigher
        if weigher is None:
            return
        if not last and now_s < self._due_s:
            if weigher.row is not None:
                self._pipe.send(weigher.row)
            return
        snapshot = weigher.rows_seen()
        if snapshot is None:
            return
        if weigher.view is not self._view:
            self._view = weigher.view
            self._pipe.send(self._view)
        self._pipe.send(snapshot.reduced)
        self._in_work = snapshot
        self._due_s = now_s + _SNAPSHOT_STEP_S


def _serve(pipe: Connection, view: View, source: Source, options: PageOptions) -> None:
    """Serves a page until the other end of the pipe is closed."""
    from steelyard.live._page import SnapshotPage

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the weighing process
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    if hasattr(os, "SCHED_BATCH"):  # does not preempt other processes when it wakes up
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        page = SnapshotPage(
            view,
            source,
            bodies=Body.to_draw(view.setup.arm, options.urdf),
            host=options.host,
            port=options.port,
            dark=options.dark,
            history_file=options.history_file,
        )
    except SteelyardError as error:
        pipe.send(error)
        return
    with page, one_blas_thread(), suppress(_PipeClosed):
        _send_to(pipe, page.url)
        try:
            while True:
                _answer(pipe, page)
        except _PipeClosed:
            raise
        except Exception as error:  # whatever it is, the weighing process must learn of it
            words = f"the page failed: {type(error).__name__}: {error}; track without a page"
            _send_to(pipe, SourceFailed(words))
            while True:  # until the weighing process has read that and closes the pipe
                _received_from(pipe)


class _PipeClosed(Exception):
    """The other end of the pipe was closed."""


def _answer(pipe: Connection, page: SnapshotPage) -> None:
    """Shows what comes from the weighing process, and answers a snapshot with its estimate."""
    if page.failure is not None:
        raise page.failure
    received = _received_from(pipe)
    if isinstance(received, Row):
        page.follow(received)
    elif isinstance(received, View):
        page.view = received
    elif isinstance(received, Snapshot):
        snapshot = page.view.estimated(received)
        page.show(snapshot)
        _send_to(pipe, replace(snapshot, state=None))


def _received_from(pipe: Connection) -> object:
    """What has come within a short time; None where nothing has."""
    try:
        if pipe.poll(_POLL_S):
            return pipe.recv()
    except (EOFError, OSError) as error:
        raise _PipeClosed from error
    return None


def _send_to(pipe: Connection, value: object) -> None:
    try:
        pipe.send(value)
    except (EOFError, OSError) as error:
        raise _PipeClosed from error
