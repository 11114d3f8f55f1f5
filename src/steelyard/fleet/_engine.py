"""Where the work is done: in this process, on the cores of this machine, or on a cluster; by the same code.

A worker is one process with one thread and one BLAS thread. Tasks are handed out a few at a time,
so that neither this process nor the scheduler grows with the number of logs. A worker that dies
loses its tasks to others; a task whose workers die again and again fails alone.

Factors merge in trees, eight by eight: the leaves reduce to one by tasks of at most eight inputs
each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Protocol, TypeAlias, TypeVar

from steelyard._computing import one_blas_thread
from steelyard.errors import MissingExtra, SolverFailed

EIGHT = 8
"""How many inputs a merge has at most."""

_AHEAD = 4  # tasks for each worker that are handed out at once
_PATIENCE_S = 10.0
_THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
T = TypeVar("T")
Results: TypeAlias = Iterator[tuple[Any, T | Exception]]


class Engine(Protocol):
    """Something that works tasks off."""

    def each(
        self, work: Callable[..., T], tasks: Iterable[Sequence[Any]]
    ) -> Iterator[tuple[Any, T | Exception]]:
        """The result of each task, or why it has none, with the first argument of the task, as they are done.

        Args:
            work: a function of a module
            tasks: its arguments, made when there is room
        """
        ...

    def trees(
        self,
        leaf: Callable[..., T],
        merge: Callable[[Sequence[T]], T],
        groups: Iterable[Sequence[Any]],
    ) -> Iterator[tuple[Any, T]]:
        """One result for each group: leaves of at most eight items, merged eight by eight.

        Args:
            leaf: makes a result of some items
            merge: makes one of many
            groups: each a name and its pieces, a sequence of arguments of `leaf`
        """
        ...


@contextmanager
def engine(scheduler: str | None = None, workers: int | None = None) -> Iterator[Engine]:
    """An engine while it is needed.

    Args:
        scheduler: address of an existing cluster, as `tcp://host:8786`; the cores of this machine
            by default
        workers: how many processes here; as many as there are cores by default; one is this process
            itself
    """
    count = workers or os.cpu_count() or 1
    if scheduler is None and count == 1:
        yield _Here()
        return
    try:
        import dask
        import distributed
    except ImportError:
        raise MissingExtra("dask and distributed", "fleet") from None
    settings = {
        "distributed.comm.timeouts.connect": _PATIENCE_S,
        "distributed.worker.daemon": True,
        # a look at every thread, a hundred times per second
        "distributed.worker.profile.enabled": False,
        "distributed.nanny.pre-spawn-environ": _THREADS,
    }
    with dask.config.set(settings):
        if scheduler is not None:
            try:
                client: Any = distributed.Client(
                    scheduler, timeout=_PATIENCE_S, set_as_default=False
                )
            except (OSError, ValueError) as error:
                raise SolverFailed(
                    f"the scheduler {scheduler} does not answer:"
                    f" {str(error) or type(error).__name__}; is it"
                    " running, and can this machine reach it?"
                ) from error
            try:
                yield _Cluster(client)
            finally:
                client.close()
            return
        cluster = distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=50,
            memory_limit=0,
        )
        with cluster, distributed.Client(cluster, set_as_default=False) as client:
            yield _Cluster(client)


def _single(work: Callable[..., T], *arguments: Any) -> T:
    """What the work makes of its arguments, with one BLAS thread."""
    with one_blas_thread():
        return work(*arguments)


class _Here:
    """This process."""

    def each(
        self, work: Callable[..., T], tasks: Iterable[Sequence[Any]]
    ) -> Iterator[tuple[Any, T | Exception]]:
        """One after the other."""
        for task in tasks:
            yield task[0], _single(work, *task)

    def trees(
        self,
        leaf: Callable[..., T],
        merge: Callable[[Sequence[T]], T],
        groups: Iterable[Sequence[Any]],
    ) -> Iterator[tuple[Any, T]]:
        """One after the other."""
        for name, pieces in groups:
            results = [_single(leaf, *piece) for piece in pieces]
            while len(results) > 1:
                results = [
                    _single(merge, results[i : i + EIGHT]) for i in range(0, len(results), EIGHT)
                ]
            yield name, results[0]


class _Cluster:
    """A cluster of Dask, on this machine or elsewhere."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def _room(self) -> int:
        """How many tasks may be on their way."""
        return _AHEAD * max(len(self._client.nthreads()), 1)

    def each(
        self, work: Callable[..., T], tasks: Iterable[Sequence[Any]]
    ) -> Iterator[tuple[Any, T | Exception]]:
        """As they are done."""
        yield from self._flow(
            (task[0], self._client.submit(_single, work, *task, pure=False)) for task in tasks
        )

    def trees(
        self,
        leaf: Callable[..., T],
        merge: Callable[[Sequence[T]], T],
        groups: Iterable[Sequence[Any]],
    ) -> Iterator[tuple[Any, T]]:
        """As they are done."""
        submit = self._client.submit

        def planted() -> Iterator[tuple[Any, Any]]:
            for name, pieces in groups:
                futures = [submit(_single, leaf, *piece, pure=False) for piece in pieces]
                while len(futures) > 1:
                    futures = [
                        submit(_single, merge, futures[i : i + EIGHT], pure=False)
                        for i in range(0, len(futures), EIGHT)
                    ]
                yield name, futures[0]

        for name, result in self._flow(planted()):
            if isinstance(result, Exception):
                raise SolverFailed(
                    f"the factors of {name} could not be merged: {result}"
                ) from result
            yield name, result

    def _flow(self, submitted: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Results of futures as they come, with new ones submitted as there is room."""
        from distributed import as_completed

        names: dict[str, Any] = {}
        flow = as_completed([], loop=self._client.loop)

        def more(count: int) -> None:
            for name, future in islice(submitted, count):
                names[future.key] = name
                flow.add(future)

        more(self._room)
        try:
            for future in flow:
                error = future.exception()
                if error is not None:
                    result = error
                else:
                    result = future.result()
                future.release()
                yield names.pop(future.key), result
                more(max(1, self._room - len(names)))
        finally:
            self._client.cancel([future for future, _ in list(flow.futures.items())])
