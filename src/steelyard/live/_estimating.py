"""Estimates beside the rows, on a thread of their own.

An estimate takes several milliseconds, longer than the time between two rows. Computed between two
rows, it delays all those that come meanwhile. On another thread it delays a row only until the
interpreter changes threads, which `short_pauses` makes it do often. A page has a process for its
estimates (`_page_process`); both are used alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, Self

from steelyard._computing import ESTIMATES_PRIORITY, real_time_priority
from steelyard.live._view import Snapshot, View

if TYPE_CHECKING:
    from steelyard.live._weigher import LiveWeigher


class SnapshotEstimator(Protocol):
    """Adds the estimates to snapshots without delaying rows: `LivePage` or `EstimatingThread`."""

    def attach(self, weigher: LiveWeigher) -> None:
        """Takes the snapshots of a weigher from now on.

        Args:
            weigher: of the rows
        """

    def look(self, last: bool) -> Iterable[Snapshot]:
        """Snapshots with their estimates.

        Args:
            last: whether to wait for the last one
        """


class EstimatingThread:
    """Adds the estimates to snapshots on a thread; close it, or use it in a `with`.

    One snapshot is in work at a time. Events that come meanwhile are in the next one. An error of
    an estimate is raised by `look`.
    """

    def __init__(self) -> None:
        self._weigher: LiveWeigher | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="steelyard estimates")
        self._in_work: Future[Snapshot] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the thread after the estimate that is in work."""
        self._thread.shutdown()

    def attach(self, weigher: LiveWeigher) -> None:
        """Takes the snapshots of a weigher from now on.

        Args:
            weigher: of the rows
        """
        self._weigher = weigher

    def look(self, last: bool) -> Iterator[Snapshot]:
        """Snapshots whose estimates are ready; begins the next one when none is in work.

        Args:
            last: whether to wait for the last snapshot
        """
        yield from self._ready(last)
        if self._in_work is None:
            self._begin()
        if last:
            yield from self._ready(last)

    def _begin(self) -> None:
        if self._weigher is None:
            return
        snapshot = self._weigher.rows_seen()
        if snapshot is not None:
            self._in_work = self._thread.submit(_estimated, self._weigher.view, snapshot)

    def _ready(self, wait: bool) -> Iterator[Snapshot]:
        """The snapshot in work, if it is ready or to be waited for."""
        in_work = self._in_work
        if in_work is not None and (wait or in_work.done()):
            self._in_work = None
            yield in_work.result()


@real_time_priority(ESTIMATES_PRIORITY)
def _estimated(view: View, snapshot: Snapshot) -> Snapshot:
    return view.estimated(snapshot)
